"""
A p-value for each of ten columns
=================================

Knockoffs select ten features or none at a level of 0.1, so a table of ten columns is no table for them. It gets a
p-value for every column instead: the column is drawn anew, many times, from its law given all the others, and a model
of the target says whether the real one stands out.
"""

# %%
# The diabetes data of scikit-learn: ten columns of 442 patients, and the progression of the disease a year later. Every
# option is left at its default, and the notes say what it chose.
import numpy as np
from sklearn.datasets import load_diabetes

from knockoffs import KnockoffSelector

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = X.rename(
    columns={"s1": "cholesterol", "s2": "ldl", "s3": "hdl", "s4": "chol. / hdl", "s5": "triglycerides", "s6": "glucose"}
)
selector = KnockoffSelector(random_state=0, estimator="lasso").fit(X, y)
print(selector.selection_.notes["method"])
print(selector.explain())

# %%
# Why is no measurement of the blood among them, when a linear regression is sure of the triglycerides? Because four of
# them determine one another, though not linearly. LDL was not measured but computed, as cholesterol - HDL -
# triglycerides / 5, and the column of the triglycerides holds their logarithm. Given three of the four the last is
# known, so none of them can matter given the others. P^X has found the bent relation by its classes: a column drawn
# anew is nearly itself, and does not stand out. One Gaussian cannot see it, and calls three of the four clear
# discoveries.
gaussian = KnockoffSelector(random_state=0, estimator="lasso", feature_model="gaussian").fit(X, y)
implied = np.log((X["cholesterol"] - X["ldl"] - X["hdl"]).clip(lower=1))
r = np.corrcoef(implied, X["triglycerides"])[0, 1]
print(f"correlation of the triglycerides with log(cholesterol - ldl - hdl): {r:.5f}")
for name, p, p_gaussian in zip(X.columns, selector.p_values_, gaussian.p_values_, strict=True):
    print(f"{name:>14}: p = {p:.3f}, with one Gaussian {p_gaussian:.3f}")

# %%
# The picture: what the others explain *linearly* is the size of the dots, and does not tell the whole story.
Z = (X - X.mean()) / X.std()
explained = 1 - 1 / np.diagonal(np.linalg.inv(np.corrcoef(Z.T)))
correlation = Z.corrwith(y).abs()
try:
    import matplotlib.pyplot as plt
except ImportError:
    plt = None
if plt is not None:
    figure, ax = plt.subplots(figsize=(7, 4.5))
    selected = selector.get_support()
    ax.scatter(
        correlation, selector.p_values_, c=np.where(selected, "#c44e52", "#999999"), s=200 * (1 - explained) + 15
    )
    for x, p, name in zip(correlation, selector.p_values_, X.columns, strict=True):
        ax.annotate(name, (x, p), textcoords="offset points", xytext=(8, 4))
    ax.set(yscale="log", xlabel="|correlation| with the target", ylabel="p-value given all the others", xlim=(0, 0.72))
    ax.set_title("selected in red; the larger, the less the others determine it linearly", loc="left")
    figure.tight_layout()
