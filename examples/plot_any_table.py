"""
Which columns of a mixed table with gaps matter?
================================================

The table has numbers, skewed measurements, counts, grades, labels and missing laboratory values. It is simulated, so
the truth is known: 14 of the 24 columns matter.
"""

# %%
# Pass the table unchanged.
import numpy as np

from knockoffs import KnockoffSelector
from knockoffs.simulate.patients import MATTER, make_patients

X, y = make_patients(1000, np.random.default_rng(0))
selector = KnockoffSelector(fdr=0.2, method="knockoffs", random_state=0).fit(X, y)
print(selector.explain())
print(selector.verdict_.say())

# %%
# The kind of each column, and the fitted model of the features.
for column in selector.table_.columns[:6]:
    print(f"{column.name:>10}: {column.kind}, {column.n_missing} cells missing")
print(selector.selection_.notes["feature_model"])

# %%
# Knockoffs have the format of the table: the same kinds of values, and the same distributions.
print(
    X[["age", "smokes", "visits", "crp"]].head(3),
    selector.knockoffs_[["age", "smokes", "visits", "crp"]].head(3),
    sep="\n",
)

# %%
# Left: W of every feature. Right: a skewed column beside its knockoff, without missing cells. The two have the same
# distribution, but the knockoff of each row differs from its value.
try:
    import matplotlib.pyplot as plt
except ImportError:
    plt = None
if plt is not None:
    W, names = selector.W_, np.array(X.columns)
    order = np.argsort(W)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 5), width_ratios=(3, 2))
    colours = ["#c44e52" if names[j] in MATTER else "#999999" for j in order]
    left.barh(range(len(W)), W[order], color=colours)
    left.set_yticks(range(len(W)), names[order])
    left.axvline(selector.threshold_, color="k", linestyle="--", linewidth=0.8)
    left.barh(0, 0, color="#c44e52", label="matters")
    left.barh(0, 0, color="#999999", label="does not")
    left.legend(frameon=False, loc="lower right")
    left.set(xlabel="W", title=f"{selector.get_support().sum()} of {len(W)} features selected, FDR {selector.fdr:g}")
    seen = X["crp"].notna()
    edges = np.geomspace(X["crp"].min(), X["crp"].max(), 30)
    right.hist(X["crp"][seen], edges, histtype="step", color="#c44e52", label="crp")
    right.hist(selector.knockoffs_["crp"][seen], edges, histtype="step", color="#4c72b0", label="its knockoff")
    right.set(xscale="log", xlabel="crp", ylabel="patients", title="a column and its knockoff")
    right.legend(frameon=False)
    figure.tight_layout()
