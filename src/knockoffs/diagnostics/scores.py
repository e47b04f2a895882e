"""RankScores of the columns: bounded functions of the ranks of X and X_tilde taken together.

The ranks of a column are those among the 2n values of x_j and x_tilde_j: that set does not change when rows are
swapped, so neither does the score of a value, and the coins of ``sign_tests.py`` stay fair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from knockoffs.sampling.pair import Pair

FEW_LEVELS = 20  # values of a column up to which each has a score of its own among the margins
NOMINAL_LEVELS = 4  # most frequent labels of a nominal column that stand for it among the pairs


@dataclass(frozen=True)
class RankScores:
    """Scores of X and X_tilde: k columns, each of one column of the table."""

    S: NDArray  # shape (n, k)
    S_tilde: NDArray
    column_of: NDArray[np.intp]  # shape (k,)
    far_out: NDArray[np.bool_]  # shape (k,): of how far out a value lies; others are of where it lies, or of a label

    @property
    def difference(self) -> NDArray:
        """S - S_tilde: changes its sign when the feature is swapped."""
        return self.S - self.S_tilde

    @property
    def middle(self) -> NDArray:
        """(S + S_tilde) / 2, centred: does not change when any feature is swapped."""
        M = self.S + self.S_tilde
        M /= 2
        M -= M.mean(axis=0)
        return M


def pooled_ranks(pair: Pair) -> tuple[NDArray, NDArray]:
    """Ranks among the 2n values of a column, between 0 and 1, ties at their middle; a missing cell is at 1/2.

    >>> pair = Pair(np.array([[1.0], [5.0]]), np.array([[3.0], [5.0]]), np.array([0]))
    >>> pooled_ranks(pair)[0].ravel()
    array([0.125, 0.75 ])
    """
    n = len(pair)
    ranks = np.empty((2 * n, pair.n_columns), order="F")  # columns are what is read
    for j in range(pair.n_columns):  # one by one: a few copies of a column, not of the table
        both = np.concatenate([pair.X[:, j], pair.X_tilde[:, j]]).astype(float, copy=False)
        missing = np.isnan(both[:n]) | np.isnan(both[n:])
        if not missing.any():
            ranks[:, j] = middle_ranks(both)
            continue
        seen = np.tile(~missing, 2)
        ranks[:, j] = 0.5
        ranks[seen, j] = middle_ranks(both[seen])
    return ranks[:n], ranks[n:]


def middle_ranks(x: NDArray) -> NDArray:
    """Ranks over their number, less half a step, shape (n,); equal values share the middle of theirs.

    >>> middle_ranks(np.array([7.0, 1.0, 7.0, 9.0]))
    array([0.5  , 0.125, 0.5  , 0.875])
    """
    order = np.argsort(x)
    ordered = x[order]
    new = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    steps = np.arange(0.5, len(x)) / max(len(x), 1)
    if len(new) + 1 < len(x):
        first, after = np.concatenate([[0], new]), np.concatenate([new, [len(x)]])
        steps = np.repeat((first + after) / 2, after - first) / len(x)
    ranks = np.empty(len(x))
    ranks[order] = steps
    return ranks


def link_scores(pair: Pair, kinds: tuple[str, ...], ranked: tuple[NDArray, NDArray] | None = None) -> RankScores:
    """Two scores a column, where it lies and how far out; labels of nominal columns one by one.

    The first is the normal score, the second cos(2 pi rank): largest at both ends, so that a link by a square is seen.
    ``ranked`` are the ranks of the pair, where they are known.
    """
    ranks, ranks_tilde = pooled_ranks(pair) if ranked is None else ranked
    most = sum(NOMINAL_LEVELS if kind == "nominal" else 2 for kind in kinds)
    S, S_tilde = (np.empty((len(pair), most), order="F") for _ in range(2))
    owners: list[int] = []
    far_out: list[bool] = []
    for j, kind in enumerate(kinds):
        r, r_tilde = ranks[:, j], ranks_tilde[:, j]
        if kind == "nominal":
            levels = frequent_levels(r, r_tilde, NOMINAL_LEVELS)
            columns = [(np.equal(r, level) * 1.0, np.equal(r_tilde, level) * 1.0) for level in levels]
        else:
            columns = [(ndtri(r), ndtri(r_tilde)), (np.cos(2 * np.pi * r), np.cos(2 * np.pi * r_tilde))]
            if not more_levels(r, 2) and len(np.unique([r, r_tilde])) <= 2:  # two values have one score
                columns = columns[:1]
        for place, (of_x, of_x_tilde) in enumerate(columns):
            S[:, len(owners)], S_tilde[:, len(owners)] = of_x, of_x_tilde
            owners.append(j)
            far_out.append(kind != "nominal" and place == 1)
    k = len(owners)
    return RankScores(S[:, :k], S_tilde[:, :k], np.array(owners, dtype=np.intp), np.array(far_out))


def more_levels(r: NDArray, most: int) -> bool:
    """Whether a few values of a column are more than ``most`` levels already: no sort of all of them for numbers.

    >>> more_levels(np.arange(1000.0), 20), more_levels(np.arange(1000.0) % 2, 20)
    (True, False)
    """
    return len(np.unique(r[: 4 * most + 20])) > most


def frequent_levels(r: NDArray, r_tilde: NDArray, most: int) -> NDArray:
    """Return the most frequent values of a column and its knockoff together."""
    levels, counts = np.unique(np.concatenate([r, r_tilde]), return_counts=True)
    return levels[np.argsort(-counts, kind="stable")[:most]]
