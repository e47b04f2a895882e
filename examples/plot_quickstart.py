"""
Which mutations make HIV resistant to a drug?
=============================================

One call, and a figure of the answer. The table has 767 isolates of the virus, the presence of 201 mutations, and the
resistance to the drug amprenavir.
"""

# %%
# Without the data folder (KNOCKOFFS_DATA), a similar table is simulated: a chain of 100 mutations, the first 30 matter.
import os
from pathlib import Path

import numpy as np

from knockoffs import DiscreteNetwork, KnockoffSelector

table = Path(os.environ.get("KNOCKOFFS_DATA", "")) / "hiv" / "PI.csv.gz"  # Stanford HIV Drug Resistance Database
if table.is_file():
    import pandas as pd

    data = pd.read_csv(table).dropna(subset=["APV"])
    y = np.log(data["APV"].to_numpy())
    data = data.loc[:, [name for name in data if name.startswith("P") and data[name].sum() >= 3]]
    data = data.loc[:, ~data.T.duplicated()]
    X, names = data.to_numpy(float), tuple(data.columns)
    # positions of mutations that treatment selects (Rhee et al., 2005)
    positions = "10 11 20 23 24 30 32 33 34 35 43 46 47 48 50 53 54 55 58 66 67 71 73 74 76 79 82 84 85 88 89 90 92 95"
    known = np.array([name[1:].split(".")[0] in positions.split() for name in names])
else:
    print("KNOCKOFFS_DATA names no folder with these data: the table is simulated")
    rng = np.random.default_rng(0)
    names = tuple(f"mutation {j}" for j in range(100))
    link = [[0.8, 0.2], [0.4, 0.6]]
    parents = {name: (names[j - 1],) if j else () for j, name in enumerate(names)}
    tables = {name: link if j else [0.7, 0.3] for j, name in enumerate(names)}
    X = DiscreteNetwork(parents, tables).sample(767, rng).astype(float)
    known = np.arange(100) < 30
    y = X[:, known] @ rng.choice([-0.5, 0.5], size=30) + rng.standard_normal(767)
print(f"{X.shape[0]} isolates, {X.shape[1]} mutations")

# %%
# The call. The columns are binary and depend on each other, so the model of the features is a discrete network, a tree
# fitted to the table. Nothing is assumed about how mutations affect resistance; the model of y is the better predictor
# of lasso and boosting.
selector = KnockoffSelector(fdr=0.1, feature_model="network", random_state=0).fit(X, y)
selection = selector.selection_
print(selector.explain())

# %%
# The five mutations with the largest statistic, and the level at which each would be selected.
for j in np.argsort(-selection.W)[:5]:
    print(f"{names[j]:>12}  W = {selection.W[j]:.3f}  q-value {selection.q_values[j]:.3f}")
print(f"{(selection.selected & known).sum()} of {selection.selected.sum()} are at positions known from biology")

# %%
# Every non-zero W, sorted. On the left are features that lost against their knockoff: visible mistakes. For each of
# them there may be an invisible one on the right. The threshold leaves few of both.
try:
    import matplotlib.pyplot as plt
except ImportError:
    plt = None
if plt is not None:
    order = [j for j in np.argsort(selection.W) if selection.W[j] != 0]
    colours = ["#c44e52" if known[j] else "#999999" for j in order]
    figure, ax = plt.subplots(figsize=(8, 4))
    ax.bar(range(len(order)), selection.W[order], color=colours, width=1.0)
    for t in (-selection.threshold, selection.threshold):
        ax.axhline(t, color="k", linestyle="--", linewidth=0.8)
    ax.bar(0, 0, color="#c44e52", label="at a position known from biology (not used)")
    ax.bar(0, 0, color="#999999", label="elsewhere")
    ax.legend(frameon=False, loc="upper left")
    ax.set_xlabel("mutations with W other than 0, in order")
    ax.set_ylabel("W")
    ax.set_title(f"{selection.selected.sum()} of {len(names)} mutations selected at FDR {selection.fdr:g}", loc="left")
    figure.tight_layout()
