"""
One Gaussian or a mixture: does it matter?
==========================================

It decides whether the false discovery rate is controlled. There are three groups of rows and thirty features. Within a
group ten features matter, ten others are near-duplicates of them, and ten are noise; over all rows the correlations
cancel. One Gaussian therefore draws independent knockoffs. (Section 5.1 of the paper.)
"""

# %%
# The features of one table. The overall correlation of a feature that matters with its near-duplicate is about zero.

import warnings

import numpy as np

from knockoffs import KnockoffWarning, ModelScore, false_discovery_proportion, knockoff_source, power, select_features
from knockoffs.importance.coefficients import coefficient_magnitude
from knockoffs.response.plain import PlainLogistic

WIDE, WEIGHT = 16.0, 0.15  # variance of one of the groups, and its share of the rows
MATTER = np.arange(30) < 10


def make_table(n, rng):
    """Features, classes, groups; feature j + 10 is nearly a copy of feature j in two groups, not in the third."""
    within = rng.uniform(0.92, 0.98, 10) * rng.choice([-1, 1], 10)
    group = rng.choice(3, n, p=[WEIGHT, (1 - WEIGHT) / 2, (1 - WEIGHT) / 2])
    R = np.where(group[:, None] == 0, -within * (1 - WEIGHT) / (WEIGHT * WIDE), within)
    X = rng.standard_normal((n, 30))
    X[:, 10:20] = R * X[:, :10] + np.sqrt(1 - R**2) * X[:, 10:20]
    X *= np.where(group[:, None] == 0, np.sqrt(WIDE), 1.0)
    X += 0.3 * rng.standard_normal((3, 30))[group]
    log_odds = X[:, :10] @ rng.choice([-1.0, 1.0], 10)
    return X, (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int), group


rng = np.random.default_rng(0)
X, y, group = make_table(2000, rng)
print("overall correlation of features 0 and 10:", np.corrcoef(X[:, 0], X[:, 10])[0, 1].round(2))
print("correlation within a group:", np.corrcoef(X[group == 1, 0], X[group == 1, 10])[0, 1].round(2))

# %%
# The same procedure with two models of the features, on ten tables. Everything else is equal.
N_TABLES, FDR = 10, 0.2
few = {"n_components": range(1, 5), "n_starts": 1}  # EM from one start saves time here
warnings.simplefilter("ignore", KnockoffWarning)  # a group of 311 rows for 30 columns: its covariance is shrunk
models = {
    "one Gaussian": knockoff_source("gaussian"),
    "mixture, number of groups by AIC": knockoff_source("mixture", few),
}
statistic = ModelScore(PlainLogistic(), coefficient_magnitude)
found = {name: [] for name in models}
scores = {name: [] for name in models}
for stream in rng.spawn(N_TABLES):
    X, y, _ = make_table(2000, stream)
    for name, source in models.items():
        options = {"knockoffs": source, "statistic": statistic, "fdr": FDR}
        selection = select_features(X, y, rng=stream.spawn(1)[0], **options)
        chosen = selection.selected
        found[name].append((false_discovery_proportion(chosen, MATTER), power(chosen, MATTER)))
        scores[name].append((selection.scores.Z, selection.scores.Z_tilde))
for name, runs in found.items():
    fdp, found_share = np.mean(runs, axis=0)
    print(f"{name}: FDR {fdp:.2f} (asked for {FDR}), power {found_share:.2f}")

# %%
# The nulls of all ten tables: importance of the feature against that of its knockoff. Nulls should lie on both sides of
# the diagonal equally often. With one Gaussian they beat their knockoffs, whose covariance is right and whose
# distribution is wrong.
kinds = {"near-copies": (slice(10, 20), "#c44e52"), "noise": (slice(20, 30), "#999999")}
for name, pairs in scores.items():
    Z, Z_tilde = np.transpose(pairs, (1, 0, 2))
    for kind, (part, _) in kinds.items():
        print(f"{name}, {kind}: {(Z > Z_tilde)[:, part].mean():.0%} beat their knockoff (fair: 50%)")
try:
    import matplotlib.pyplot as plt
except ImportError:
    plt = None
if plt is not None:
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.6))
    for ax, (name, pairs) in zip(axes, scores.items(), strict=True):
        Z, Z_tilde = np.transpose(pairs, (1, 0, 2))
        for kind, (part, colour) in kinds.items():
            ax.scatter(Z_tilde[:, part], Z[:, part], color=colour, label=kind, s=12)
        ax.plot([0, 0.6], [0, 0.6], color="k", linewidth=0.6)
        ax.set(xlabel="Z_tilde, of the knockoff", ylabel="Z, of the feature", xlim=(0, 0.6), ylim=(0, 0.6))
        ax.set_title(f"{name}\nFDR {np.mean(found[name], axis=0)[0]:.2f}, asked for {FDR}", fontsize=10)
    axes[0].legend(frameon=False, loc="lower right")
    figure.tight_layout()
