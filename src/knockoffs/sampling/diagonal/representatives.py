"""Knockoffs of groups through representatives: a smaller D, and a law in which groups are linked by these alone.

With R_g the representatives of group g and N_g its other columns, the law is changed so that N_g and all other groups
are independent given R_g: X_N = A X_R + e with A = S_NR S_RR^-1 within each group, the e of different groups
independent. Then knockoffs of the representatives, with a D_R of theirs, are carried on by X_tilde_N = A X_tilde_R +
e_tilde, e_tilde a draw of its own: a swap of group g exchanges (X_R, e)_g with (X_tilde_R, e_tilde)_g, which have the
same law. Written for all columns, with B the matrix of the regressions on the representatives (the identity for
themselves) and V the covariance of e,

    S' = B S_RR B^T + V,    D' = B D_R B^T + V,

which is again a Gaussian law with a block-diagonal D, so that nothing else has to know. Within groups, and between
representatives, S' is S. (Chu et al., Second-order group knockoffs with applications to GWAS, arXiv 2310.15069.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError

EXPLAINED_SHARE = 0.5  # of what a group shares with the others that its representatives must hold, as in Knockoffs.jl


@dataclass(frozen=True)
class ViaRepresentatives:
    """Choice of D by representatives, in place of the name of one."""

    method: str  # choice of D for the representatives, see ``DIAGONALS``
    share: float = EXPLAINED_SHARE  # as in ``representatives``

    def solve(self, S: NDArray, feature_of: NDArray[np.intp]) -> tuple[NDArray, NDArray]:
        """S' and D', shape (d, d) each."""
        return solve_through(S, feature_of, representatives(S, feature_of, share=self.share), self.method)


def solve_through(
    S: NDArray, feature_of: NDArray[np.intp], chosen: NDArray[np.intp], method: str
) -> tuple[NDArray, NDArray]:
    """S' and D' of the representatives ``chosen``; see the head of this file.

    >>> S = np.array([[1.0, 0.8, 0.4], [0.8, 1.0, 0.1], [0.4, 0.1, 1.0]])
    >>> solve_through(S, np.array([0, 0, 1]), np.array([0, 2]), "mvr")[0].round(2)  # 0.8 * 0.4 in place of 0.1
    array([[1.  , 0.8 , 0.4 ],
           [0.8 , 1.  , 0.32],
           [0.4 , 0.32, 1.  ]])
    """
    from knockoffs.sampling.diagonal import solve_checked

    d = len(S)
    B, V = np.zeros((d, len(chosen))), np.zeros((d, d))
    B[chosen, np.arange(len(chosen))] = 1.0
    owner = feature_of[chosen]
    for group in np.unique(feature_of):
        columns, place = np.flatnonzero(feature_of == group), np.flatnonzero(owner == group)
        own, rest = chosen[place], np.setdiff1d(columns, chosen)
        if rest.size:
            A = np.linalg.solve(S[np.ix_(own, own)], S[np.ix_(own, rest)]).T
            B[np.ix_(rest, place)] = A
            left = S[np.ix_(rest, rest)] - A @ S[np.ix_(own, rest)]
            V[np.ix_(rest, rest)] = (left + left.T) / 2
    S_R = S[np.ix_(chosen, chosen)]
    D_R = solve_checked(S_R, method, np.unique(owner, return_inverse=True)[1])
    S_new, D = B @ S_R @ B.T + V, B @ D_R @ B.T + V
    D[feature_of[:, None] != feature_of] = 0.0  # as it is, but for rounding
    return (S_new + S_new.T) / 2, (D + D.T) / 2


def representatives(
    correlation: ArrayLike, feature_of: ArrayLike, n: int = 1, *, share: float | None = None
) -> NDArray[np.intp]:
    """Columns that represent their groups best, in the order of the table, without a look at the target.

    They are chosen one by one to explain the most variance of the group: ``n`` of each group, or all of it where it
    has fewer. With a ``share`` there are so many that the variance of the group's other columns that they explain is
    at least this share of what they and all columns outside of the group explain.

    >>> R = np.array([[1.0, 0.9, 0.5, 0.0], [0.9, 1.0, 0.9, 0.0], [0.5, 0.9, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    >>> representatives(R, [0, 0, 0, 1])
    array([1, 3])
    """
    if n < 1:
        raise InputError(f"n={n!r}: a group needs at least one representative.")
    if share is not None and not 0 < share <= 1:
        raise InputError(f"share={share!r}: use a number above 0 and up to 1.")
    S, owners = np.asarray(correlation, dtype=float), np.asarray(feature_of)
    precision = None if share is None else np.linalg.inv(S)
    chosen: list[int] = []
    for group in np.unique(owners):
        columns = np.flatnonzero(owners == group)
        left = S[np.ix_(columns, columns)].copy()
        taken = np.zeros(len(columns), dtype=bool)
        while not taken.all():
            variance = np.diagonal(left)
            explained = np.where(variance > 1e-10, (left**2).sum(axis=0) / np.maximum(variance, 1e-10), -1.0)
            explained[taken] = -2.0
            best = int(explained.argmax())
            taken[best] = True
            if variance[best] > 1e-10:
                left = left - np.outer(left[:, best], left[best]) / variance[best]
            if _enough(S, precision, columns, taken, left, n, share):
                break
        chosen += columns[taken].tolist()
    return np.array(sorted(chosen), dtype=np.intp)


def _enough(
    S: NDArray,
    precision: NDArray | None,
    columns: NDArray[np.intp],
    taken: NDArray[np.bool_],
    left: NDArray,
    n: int,
    share: float | None,
) -> bool:
    """Whether a group has representatives enough: n of them, or those that hold the share."""
    if precision is None or share is None:
        return int(taken.sum()) >= n
    rest = columns[~taken]
    if not rest.size:
        return True
    total = np.diagonal(S)[rest]
    by_taken = ((total - np.diagonal(left)[~taken]) / total).sum()
    given_all = np.diagonal(np.linalg.inv(precision[np.ix_(rest, rest)]))  # variance given these and the other groups
    return bool(by_taken >= share * ((total - given_all) / total).sum())
