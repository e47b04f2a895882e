"""Support: whether knockoffs take the values that their features take.

Where X holds 0 and 1, or grades, or many zeros, some values stand in many rows (atoms); a Gaussian knockoff never takes
them. Whether a value is an atom is counted among the 2n values of a column and its knockoff together, which does not
change when rows are swapped, so the difference between x_j and x_tilde_j changes its sign.

A number that was rounded is no atom: its knockoffs are not rounded, and nothing comes of it. So an atom of numbers and
counts holds a tenth of the rows; among labels and grades every value that stands twice is one. Before the other checks,
`round_alike` rounds knockoffs as their features are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from knockoffs.diagnostics.scores import FEW_LEVELS
from knockoffs.diagnostics.sign_tests import Check, critical_value, sign_p_value, sign_sums, worst_columns
from knockoffs.errors import name_some
from knockoffs.sampling.pair import Pair

ATOM = 0.1  # share of the rows from which a value of a numeric column is an atom
LABEL_KINDS = ("binary", "ordinal", "nominal")  # kinds whose values are few and fixed


def check_support(pair: Pair, names: Sequence[str], kinds: tuple[str, ...]) -> Check:
    """Compare how many rows of a column and of its knockoff hold an atom."""
    n = len(pair)
    least = [2 if kind in LABEL_KINDS else max(2.0, ATOM * n) for kind in kinds]
    D = np.column_stack([atoms(pair.X[:, j], pair.X_tilde[:, j], least[j]) for j in range(pair.n_columns)])
    t, share = np.abs(sign_sums(D)), np.abs(D.mean(axis=0))
    worst = worst_columns(t, names, critical_value(len(t)))
    p, j = float(sign_p_value(t.max(), len(t))), int(t.argmax())
    sentence = "Knockoffs take the values that their features take."
    if p <= 0.05:
        sentence = (
            f"Knockoffs take values that their features do not: {name_some(worst)}; {strange(pair, j, names[j])}."
        )
    return Check("support", p, float(t[j]), float(share[j]), worst, sentence)


def atoms(x: NDArray, x_tilde: NDArray, least: float) -> NDArray:
    """1 where only x, -1 where only x_tilde is a value that stands ``least`` times or more among both, shape (n,).

    >>> atoms(np.array([0, 1, 0]), np.array([0.3, 0.7, 0.1]), 2)
    array([1., 0., 1.])
    """
    n, both = len(x), np.concatenate([x, x_tilde])
    ordered, apart = np.sort(both), max(int(np.ceil(least)) - 1, 1)
    if not (ordered[apart:] == ordered[:-apart]).any() and not np.isnan(ordered[-1]):
        return np.zeros(n)  # as for most numbers: no value stands so often
    code, counts = np.unique(both, return_inverse=True, return_counts=True)[1:]
    often = (counts >= least)[code.ravel()]
    return np.subtract(often[:n], often[n:], dtype=float)


def round_alike(pair: Pair, kinds: tuple[str, ...]) -> Pair:
    """Move the values of rounded columns, and of their knockoffs, to the nearest value that stands more than once."""
    grids = {
        j: grid
        for j, kind in enumerate(kinds)
        if kind not in LABEL_KINDS and len(grid := grid_of(pair.X[:, j], pair.X_tilde[:, j]))
    }
    if not grids:
        return pair  # as it is: a copy would be as large
    X, X_tilde = pair.X.copy(), pair.X_tilde.copy()
    for j, grid in grids.items():
        edges = (grid[1:] + grid[:-1]) / 2
        X[:, j], X_tilde[:, j] = (grid[np.searchsorted(edges, values)] for values in (X[:, j], X_tilde[:, j]))
    return Pair(X, X_tilde, pair.feature_of)


def grid_of(x: NDArray, x_tilde: NDArray) -> NDArray:
    """Values that stand more than once, if they are many, hold half of the rows and none is an atom; else none.

    >>> x = np.arange(60) % 30
    >>> len(grid_of(x, x + np.linspace(0.1, 0.5, 60))), len(grid_of(x, x * 0.0)), len(grid_of(x % 15, x))
    (30, 0, 0)
    """
    ordered = np.sort(np.concatenate([x, x_tilde]))
    if (ordered[1:] == ordered[:-1]).sum() < len(x) / 4:  # as for most numbers: too few stand more than once
        return np.empty(0)
    values, counts = np.unique(ordered, return_counts=True)
    rounded = (counts > 1) & np.isfinite(values)
    whole = rounded.sum() > FEW_LEVELS and counts[rounded].sum() >= len(x) / 2 and counts.max() < ATOM * len(x)
    return values[rounded] if whole and np.isfinite(values).all() else np.empty(0)


def strange(pair: Pair, j: int, name: str) -> str:
    """Say how many values of a knockoff are not among those of its feature."""
    x, x_tilde = pair.X[:, j], pair.X_tilde[:, j]
    share = f"{np.mean(~np.isin(x_tilde, x)):.0%} of its knockoffs none of them"
    return f"{name!r} has {len(np.unique(x))} different values in {len(x)} rows, and {share}"
