"""Support: do knockoffs take the values that their features take?

A value is repeated if it stands more than once among the 2n values of a column and its knockoff. Where X holds 0 and 1,
or whole numbers, or many zeros, its values are repeated; those of a Gaussian knockoff are not. Whether a value is
repeated does not change when rows are swapped, so the difference between x_j and x_tilde_j changes its sign.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import name_some
from knockoffs.sampling.pair import Pair
from knockoffs.validity.signs import Check, critical_value, sign_p_value, sign_sums, worst_columns


def check_support(pair: Pair, names: Sequence[str]) -> Check:
    """Compare how often the values of a column and of its knockoff are repeated."""
    D = np.column_stack([repeated(pair.X[:, j], pair.X_tilde[:, j]) for j in range(pair.n_columns)])
    t = np.abs(sign_sums(D))
    worst = worst_columns(t, names, critical_value(len(t)))
    p, effect = float(sign_p_value(t.max(), len(t))), float(t.max() / np.sqrt(len(pair)))
    if p > 0.05:
        sentence = "Knockoffs take the values that their features take."
    else:
        j = int(t.argmax())
        sentence = f"Knockoffs take values that their features do not: {name_some(worst)}; {strange(pair, j)}."
    return Check("support", p, float(t.max()), effect, worst, sentence)


def repeated(x: NDArray, x_tilde: NDArray) -> NDArray:
    """1 where only x, -1 where only x_tilde stands more than once among both, shape (n,).

    >>> repeated(np.array([0, 1, 0]), np.array([0.3, 0.7, 0.1]))
    array([ 1.,  0.,  1.])
    """
    n = len(x)
    code, counts = np.unique(np.concatenate([x, x_tilde]), return_inverse=True, return_counts=True)[1:]
    more = (counts > 1)[code.ravel()]
    return np.subtract(more[:n], more[n:], dtype=float)


def strange(pair: Pair, j: int) -> str:
    """Say how many values of a knockoff are not among those of its feature."""
    x, x_tilde = pair.X[:, j], pair.X_tilde[:, j]
    new = ~np.isin(x_tilde, x)
    levels = len(np.unique(x))
    return f"the feature has {levels} different values in {len(x)} rows, and {new.mean():.0%} of the knockoffs none of them"
