"""Margins: whether every knockoff column has the distribution of its feature."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from knockoffs.diagnostics.scores import FEW_LEVELS, frequent_levels, more_levels, pooled_ranks
from knockoffs.diagnostics.sign_tests import Check, critical_value, either, sign_sums, worst_columns
from knockoffs.errors import name_some
from knockoffs.sampling.pair import Pair

N_WAVES = 5  # cos(pi k rank), k = 1, ..., 5: where a column lies, its spread, its skewness, ...
TAILS = (0.01, 0.05)  # share of the values in a tail


def check_margins(
    pair: Pair, names: Sequence[str], kinds: tuple[str, ...], ranked: tuple[NDArray, NDArray] | None = None
) -> Check:
    """Compare f(x_j) with f(x_tilde_j) for several f and every column, and for all columns together.

    f(x_j) - f(x_tilde_j) changes its sign when feature j is swapped; its sum over the columns when all are. ``ranked``
    are the pooled ranks of the pair, where they are known.
    """
    sums, pooled = margin_differences(pair, kinds, ranked, of=sign_sums)
    per_column = np.array([np.abs(t).max(initial=0.0) for t in sums])
    together = np.abs(sign_sums(pooled)).max(initial=0.0)
    n_sums = sum(map(len, sums))
    worst = worst_columns(per_column, names, critical_value(n_sums))
    p, t = either((per_column.max(), n_sums), (together, pooled.shape[1]))
    effect = t / np.sqrt(len(pair))
    if p > 0.05:
        sentence = "Each knockoff column has the distribution of its feature, as far as can be seen."
    elif worst:
        sentence = f"Knockoffs do not have the distribution of their features: {name_some(worst)}."
    else:
        sentence = "Knockoffs do not have the distribution of their features: a little in many columns."
    return Check("margins", p, float(t), float(effect), worst, sentence)


def margin_differences(
    pair: Pair,
    kinds: tuple[str, ...],
    ranked: tuple[NDArray, NDArray] | None = None,
    *,
    of: Callable[[NDArray], NDArray] = np.asarray,
) -> tuple[list[NDArray], NDArray]:
    """f(x_j) - f(x_tilde_j): for each column an array (n, number of f), and the sum over columns of those all have.

    Of each array only what the function ``of`` makes of it is kept: nine columns for one are too much of a wide table.
    """
    ranks, ranks_tilde = pooled_ranks(pair) if ranked is None else ranked
    shared = np.zeros((len(pair), N_WAVES + 2 * len(TAILS)))
    columns = []
    for j, kind in enumerate(kinds):
        r, r_tilde = ranks[:, j], ranks_tilde[:, j]
        D = wave_differences(r, r_tilde)
        if kind != "nominal":
            shared += D
            if more_levels(r, FEW_LEVELS):
                columns.append(of(D))
                continue
        levels = frequent_levels(r, r_tilde, FEW_LEVELS + 1)
        if len(levels) == 2:
            D = np.subtract(r == levels[0], r_tilde == levels[0], dtype=float)[:, None]
        elif len(levels) <= FEW_LEVELS or kind == "nominal":
            D = np.subtract(r[:, None] == levels, r_tilde[:, None] == levels, dtype=float)
        columns.append(of(D))
    return columns, shared


def wave_differences(r: NDArray, r_tilde: NDArray) -> NDArray:
    """Differences of waves and of indicators of tails, shape (n, N_WAVES + 2 len(TAILS))."""
    n = len(r)
    both = np.concatenate([r, r_tilde])
    found = np.empty((N_WAVES + 2 * len(TAILS), 2 * n))
    found[0] = wave = np.cos(np.pi * both)
    before = np.ones(2 * n)
    for k in range(1, N_WAVES):  # cos((k + 1) a) = 2 cos(a) cos(k a) - cos((k - 1) a): one cosine, not five
        found[k] = 2 * wave * found[k - 1] - before
        before = found[k - 1]
    for place, share in enumerate(TAILS):
        found[N_WAVES + 2 * place], found[N_WAVES + 2 * place + 1] = both < share, 1 - both < share
    return np.subtract(found[:, :n], found[:, n:]).T
