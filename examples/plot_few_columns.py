"""
Few columns: discoveries, groups and their effects
==================================================

Which columns of a small table matter, and what can the data not distinguish? With fewer than 40 columns (at a level of
0.1) each column, and each group of similar columns, is tested: it is resampled many times given all the others, and a
model of the target shows whether the real column stands out.
"""

# %%
# Simulated houses, so that the truth is known: the price depends on five of the thirteen columns. All options have
# their defaults.
import numpy as np
import polars as pl

from knockoffs import KnockoffSelector
from knockoffs.simulate.examples import PRICED_BY, houses

table = pl.DataFrame(houses())
X, y = table.drop("price"), table["price"]
selector = KnockoffSelector().fit(X, y)
print(selector)
print("matter in truth:", ", ".join(PRICED_BY))

# %%
# Why not look at correlations? Nearly every column is correlated with the price, because it is correlated with one that
# matters: rooms with the area, the bus with the distance to the centre.
for name in ("rooms", "minutes by bus", "bathrooms", "km to school"):
    r = np.corrcoef(X[name], y)[0, 1]
    p = selector.p_values_[X.columns.index(name)]
    print(f"{name:>14}: correlation with the price {r:+.2f}, p-value given the others {p:.2g}")

# %%
# The answer as a table, one row per discovery.
print(selector.to_frame("discoveries"))

# %%
# The figures: the tests with their p-values, the tree of groups, and direction and size of two effects, in a model of
# the price on the discovered columns.
try:
    import matplotlib.pyplot as plt
except ImportError:
    plt = None
if plt is not None:
    figure, axes = plt.subplots(2, 2, figsize=(11, 8), height_ratios=[1.6, 1], layout="constrained")
    selector.plot(ax=axes[0, 0])
    selector.plot_tree(ax=axes[0, 1])
    selector.plot_effect("area", ax=axes[1, 0])
    selector.plot_effect("condition", ax=axes[1, 1])
