"""
Nothing was selected: what does a threshold of infinity mean?
=============================================================

Twelve of a hundred features matter. With 1,500 rows they are found; with 150 rows the answer is "nothing", although the
best features are the right ones. The figure shows what the filter uses.
"""

# %%
# The same features and the same target, with many rows and with few.
import numpy as np

from knockoffs import KnockoffSelector, gaussian_features

d, n_non_nulls, fdr = 100, 12, 0.1
place = np.arange(d)
Sigma = 0.4 ** np.abs(place[:, None] - place)
features = gaussian_features(np.zeros(d), Sigma)
rng = np.random.default_rng(1)
X = rng.multivariate_normal(np.zeros(d), Sigma, size=1500)
y = 0.25 * X[:, ::8][:, :n_non_nulls].sum(axis=1) + rng.standard_normal(len(X))

runs = {n: KnockoffSelector(fdr, feature_model=features, random_state=0).fit(X[:n], y[:n]) for n in (1500, 150)}
for n, selector in runs.items():
    print(f"{n} rows, threshold {selector.threshold_:.3g}: {selector.explain()}\n")

# %%
# For every number of features with the largest W, the filter estimates the share of false ones: one plus the number of
# equally large negative W, over the number selected. It selects the largest set whose estimate is at most the level.
# The "one plus" is why small sets are never selected: a set of 5 has an estimate of at least 1/5.


def estimates(W):
    """Estimated share of false discoveries among the 1, 2, 3, ... features with the largest W > 0."""
    thresholds = np.sort(W[W > 0])[::-1]
    sizes = np.arange(1, len(thresholds) + 1)
    return sizes, np.array([(1 + np.sum(W <= -t)) / k for k, t in zip(sizes, thresholds, strict=True)])


for n, selector in runs.items():
    sizes, share = estimates(selector.W_)
    print(f"{n} rows: smallest estimate {share.min():.3f}, for the {sizes[share.argmin()]} features with the largest W")

# %%
# The curve of 1,500 rows falls below the level, that of 150 rows does not. Remedies: more rows, a better model of the
# target, a larger level (chosen before looking) or, if few features matter, conditional tests.
try:
    import matplotlib.pyplot as plt
except ImportError:
    plt = None
if plt is not None:
    figure, ax = plt.subplots(figsize=(7, 4))
    for (n, selector), colour in zip(runs.items(), ("#4c72b0", "#c44e52"), strict=True):
        sizes, share = estimates(selector.W_)
        ax.plot(sizes, share, marker="o", markersize=3, color=colour, label=f"{n} rows")
    ax.plot(sizes := np.arange(1, 36), 1 / sizes, color="#999999", linestyle=":", label="1 / size: never below this")
    ax.axhline(fdr, color="k", linestyle="--", linewidth=0.8, label=f"level {fdr:g}")
    ax.set(ylim=(0, 1.05), xlim=(0, 35), xlabel="features that would be selected", ylabel="estimated false share")
    ax.legend(frameon=False)
    figure.tight_layout()
