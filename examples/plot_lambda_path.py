"""
What does a lambda path show?
=============================

A fitted model predicts while one column moves on a straight line from its values (lambda = 0) through
those of its knockoff (lambda = 1) and far beyond (lambda = 10). The loss rises if the model uses the column. W is the
rise for the feature minus the rise for its knockoff, and its path is Figure 1c of the paper.
"""

# %%
# Fifteen correlated features and three classes that depend on the first five, by products and squares.
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from knockoffs import gaussian_features, sample_knockoffs
from knockoffs.importance.paths.lambda_path import lambda_path

rng = np.random.default_rng(0)
place = np.arange(15)
Sigma = 0.3 ** np.abs(place[:, None] - place)
X = rng.multivariate_normal(np.zeros(15), Sigma, size=3000)
y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2] ** 2 - 1 + X[:, 3] + X[:, 4], [-1.0, 1.0])
non_nulls = place < 5

# %%
# Knockoffs, and a forest fitted on features and knockoffs together. Half of the rows are kept aside for the score.
X_tilde = sample_knockoffs(gaussian_features(np.zeros(15), Sigma).as_network(), X, rng)
fit, score = slice(0, 1500), slice(1500, 3000)
forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=0)
forest.fit(np.hstack([X, X_tilde])[fit], y[fit])
print(f"accuracy on unseen rows: {forest.score(np.hstack([X, X_tilde])[score], y[score]):.2f}")

# %%
# The paths, by accuracy (the paper's choice) and by log-loss. They are exact: a forest's output jumps where the moving
# column crosses a threshold, and all thresholds are known.
paths = {
    loss: lambda_path(forest, X[score], X_tilde[score], y[score], rng=rng, loss=loss)
    for loss in ("accuracy", "log_loss")
}
for loss, path in paths.items():
    at_one, at_ten = path.W[:, path.lams == 1][:, 0], path.W[:, -1]
    for lam, W in ((1, at_one), (10, at_ten)):
        gap = W[non_nulls].min() / np.abs(W[~non_nulls]).max()
        print(f"{loss} at lambda = {lam}: smallest W of a non-null is {gap:.1f} times the largest |W| of a null")

# %%
# Red: features that matter. Grey: the others, whose paths stay near zero on either side.
try:
    import matplotlib.pyplot as plt
except ImportError:
    plt = None
if plt is not None:
    figure, axes = plt.subplots(1, 2, figsize=(9, 4))
    for ax, (loss, path) in zip(axes, paths.items(), strict=True):
        for W, matters in sorted(zip(path.W, non_nulls, strict=True), key=lambda each: each[1]):
            ax.plot(path.lams, W, color="#c44e52" if matters else "#999999", linewidth=1.2)
        ax.set(xlabel="lambda", ylabel="W")
        ax.axvline(1, color="k", linestyle=":", linewidth=0.8)
        ax.set_title(f"{loss.replace('_', '-')}; dotted: the score Swap", loc="left", fontsize=10)
    figure.tight_layout()
