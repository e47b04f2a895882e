"""Selection from summary statistics: z-scores of a study and the correlations of its columns, without any rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError
from knockoffs.filter import ErrorControl, Rule, check_antisymmetric, check_fdr, check_level, check_offset, difference
from knockoffs.importance.scores import Scores, mean_of, sum_by_feature
from knockoffs.procedure import decide
from knockoffs.response.gram_lasso import Quadratic, solve_quadratics
from knockoffs.sampling.conjugates.gaussian import GaussianLaw
from knockoffs.sampling.diagonal import check_covariance, solve_diagonal
from knockoffs.sampling.diagonal.linkage import LARGEST_BLOCK, solve_diagonal_blocks
from knockoffs.sampling.pair import Pair, check_features
from knockoffs.selection import Selection

SHARE = 0.6  # of the penalty that pure noise would need; not tuned
ROWS_AT_ONCE = 1024  # of a correlation matrix, while its blocks are looked for


def select_ghost(
    z: ArrayLike,
    correlation: ArrayLike,
    n: float,
    *,
    names: Sequence[str] | None = None,
    feature_of: ArrayLike | None = None,
    fdr: float = 0.1,
    offset: int = 1,
    n_draws: int = 1,
    level: str = "fixed",
    rule: Rule = difference,
    shrink: float = 0.0,
    penalty: float | None = None,
    rng: Generator,
) -> Selection:
    """Select the features that matter given all the others from marginal z-scores, by ghost knockoffs.

    Columns fall into blocks without a correlation between them, which are drawn and scored one by one: the lasso of the
    whole is exactly that of its blocks. Memory is that of the largest block, some ten matrices of its size.

    Parameters
    ----------
    z : array-like, shape (d,)
        z-score of y on each column alone, X^T y / sqrt(n) for standardised X and y; the t-statistics of a study of many
        rows are nearly that.
    correlation : array-like, shape (d, d)
        Of the columns, positive definite; a memory map will do.
    n : float
        Rows of the study.
    names : sequence of str, optional
        Of the features; x0, x1, ... by default.
    feature_of : array-like of int, shape (d,), optional
        Feature that owns each column.
    fdr, offset, n_draws, level, rule
        As in ``select_features``.
    shrink : float
        Share of the identity: (1 - shrink) correlation + shrink I. For correlations of a reference panel with few rows.
    penalty : float, optional
        Of the lasso, for standardised columns and y.
    rng : numpy.random.Generator

    Returns
    -------
    Selection
        Whose pair is one row: the z-scores and their knockoffs.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.standard_normal(40) + np.where(np.arange(40) < 15, 6.0, 0.0)
    >>> select_ghost(z, np.eye(40), 10_000, fdr=0.2, rng=rng).selected.sum()
    np.int64(15)
    """
    z, R = check_z(z), np.asanyarray(correlation)
    fdr, offset = check_fdr(fdr), check_offset(offset)
    check_antisymmetric(rule)
    owners = check_features(feature_of, len(z))
    _check(z, R, n, shrink, penalty)
    if level == "fixed":
        check_level(fdr, int(owners.max()) + 1, offset, n_draws)
    penalty = noise_penalty(len(z), n) if penalty is None else penalty
    blocks = uncorrelated_blocks(R, owners)
    prepared = [_Block.of(R, block, owners, shrink) for block in blocks]
    ghosts, scores = np.empty((n_draws, len(z))), []
    for k, stream in enumerate(rng.spawn(n_draws)):
        Z, Z_tilde = np.zeros(owners.max() + 1), np.zeros(owners.max() + 1)
        for block, one in zip(prepared, stream.spawn(len(blocks)), strict=True):
            ghosts[k, block.columns] = sample_ghost_knockoffs(z[block.columns], block.S, block.D, one)
            both = np.stack([z[block.columns], ghosts[k, block.columns]])
            found = ghost_scores(both / np.sqrt(n), block.S, block.D, block.feature_of, penalty)
            Z[block.features], Z_tilde[block.features] = found.Z, found.Z_tilde
        scores.append(Scores(Z, Z_tilde))
    W = np.stack([rule(one.Z, one.Z_tilde) for one in scores])
    largest = max(len(block) for block in blocks)
    said = {
        "knockoffs": f"ghost knockoffs of {len(z)} z-scores of {n:g} rows, in {len(blocks)} uncorrelated "
        f"block{'' if len(blocks) == 1 else 's'}, the largest of {largest} columns",
        "penalty": f"penalty={penalty:.4g} of the lasso; no rows are there to cross-validate it",
    }
    if shrink:
        said["correlation"] = f"shrink={shrink:g}: the correlations were moved towards none by this share"
    listed = [f"x{j}" for j in range(owners.max() + 1)] if names is None else [str(name) for name in names]
    if len(listed) != owners.max() + 1:
        raise InputError(f"names has {len(listed)} names for {owners.max() + 1} features.")
    return Selection(
        feature_names=tuple(listed),
        fdr=fdr,
        method="ghost",
        offset=offset,
        pair=Pair(z[None], ghosts[:1], owners),
        feature_model=None,
        scores=mean_of(scores),
        draws=W,
        notes=said,
        **decide(W, ErrorControl(fdr, offset, n_draws, level)),
    )


def sample_ghost_knockoffs(z: ArrayLike, correlation: ArrayLike, D: ArrayLike, rng: Generator) -> NDArray[np.float64]:
    """Z_tilde = (I - D S^-1) Z + N(0, 2D - D S^-1 D), shape (d,): what X_tilde^T y / sqrt(n) would have been.

    With X_tilde the Gaussian knockoffs of X, standardised, X^T y / sqrt(n) and X_tilde^T y / sqrt(n) are jointly as Z
    and Z_tilde given y. Z is one row, and its knockoff is that of the Gaussian conjugate with mean 0. The correlation
    S of the columns is the population's, or that of a reference panel; D is as ``solve_diagonal`` gives it.

    >>> sample_ghost_knockoffs([3.0, -1.0], np.eye(2), np.eye(2), np.random.default_rng(0)).shape
    (2,)
    """
    S, z, D = check_covariance(correlation, "correlation"), check_z(z), np.asarray(D, dtype=float)
    if not len(z) == len(S) == len(D):
        raise InputError(f"z has {len(z)} scores, correlation {len(S)} columns and D {len(D)}: they must agree.")
    return GaussianLaw(np.zeros(len(S)), S, D).sample(z[None], rng)[0]


def check_z(z: ArrayLike) -> NDArray[np.float64]:
    """Z-scores as a vector of finite floats."""
    scores = np.asarray(z, dtype=float)
    if scores.ndim != 1 or not scores.size:
        raise InputError(f"z has shape {scores.shape}: expected one score for each column.")
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise InputError(f"z is {scores[bad[0]]} at column {bad[0]}: drop the column, or give its score.")
    return scores


def noise_penalty(d: int, n: float) -> float:
    """Share of sqrt(2 log(2d) / n), about the largest of 2d correlations with y that pure noise gives.

    It depends on nothing that a swap could change.

    >>> round(noise_penalty(100, 1000), 4)
    0.0618
    """
    return SHARE * float(np.sqrt(2 * np.log(2 * d) / n))


def ghost_scores(r: NDArray, S: NDArray, D: NDArray, feature_of: NDArray[np.intp], penalty: float) -> Scores:
    """Absolute coefficients of the lasso on G = [[S, S - D], [S - D, S]] and the correlations r, shape (2, d).

    Minimises b^T G b / 2 - r^T b + penalty |b|_1: the lasso of y on [X, X_tilde] in the limit of many rows, y and
    columns standardised. Nothing is drawn, and swapping r_j and its ghost swaps the scores.
    """
    G: NDArray = np.block([[S, S - D], [S - D, S]])
    size = np.abs(solve_quadratics([Quadratic(G, r.ravel(), 1.0)], penalty)[0])
    Z, Z_tilde = (sum_by_feature(half, feature_of) for half in np.split(size, 2))
    return Scores(Z, Z_tilde)


@dataclass(frozen=True)
class _Block:
    """Columns that are correlated with no others: their correlations and D."""

    columns: NDArray[np.intp]
    features: NDArray[np.intp]
    feature_of: NDArray[np.intp]
    S: NDArray
    D: NDArray

    @classmethod
    def of(cls, R: NDArray, columns: NDArray[np.intp], owners: NDArray[np.intp], shrink: float) -> _Block:
        S = np.array(R[np.ix_(columns, columns)], dtype=float)
        if shrink:
            S *= 1 - shrink
            S.flat[:: len(S) + 1] += shrink
        S = check_covariance(S, "correlation")
        features, feature_of = np.unique(owners[columns], return_inverse=True)
        if len(columns) > LARGEST_BLOCK and len(features) == len(columns):
            D = np.diag(solve_diagonal_blocks(S))
        else:
            D = solve_diagonal(S, feature_of=feature_of)
        return cls(columns, features, feature_of, S, D)


def uncorrelated_blocks(R: NDArray, feature_of: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Blocks of columns without any correlation between them; columns of one feature stay together.

    >>> R = np.array([[1.0, 0.0, 0.2], [0.0, 1.0, 0.0], [0.2, 0.0, 1.0]])
    >>> [block.tolist() for block in uncorrelated_blocks(R, np.arange(3))]
    [[0, 2], [1]]
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    d = len(R)
    first = np.unique(feature_of, return_index=True)[1][feature_of]
    rows, columns = [np.arange(d)], [first]
    for start in range(0, d, ROWS_AT_ONCE):
        i, j = np.nonzero(R[start : start + ROWS_AT_ONCE])
        some = j > i + start
        rows.append(i[some] + start)
        columns.append(j[some])
    pairs = (np.concatenate(rows), np.concatenate(columns))
    links = coo_matrix((np.ones(len(pairs[0]), dtype=np.int8), pairs), shape=(d, d))
    n_blocks, label = connected_components(links, directed=False)
    order = np.argsort(label, kind="stable")
    return np.split(order, np.cumsum(np.bincount(label, minlength=n_blocks))[:-1])


def _check(z: NDArray, R: NDArray, n: float, shrink: float, penalty: float | None) -> None:
    if R.shape != (len(z), len(z)):
        raise InputError(f"correlation has shape {R.shape} for {len(z)} z-scores: expected ({len(z)}, {len(z)}).")
    if R.dtype.kind not in "iuf":
        raise InputError(f"correlation holds {R.dtype}: correlations are real numbers.")
    if not (np.isfinite(n) and n > 0):
        raise InputError(f"n={n!r}: give the number of rows behind the z-scores.")
    if not 0 <= shrink < 1:
        raise InputError(f"shrink={shrink!r}: use a share from 0 to below 1.")
    if penalty is not None and not 0 <= penalty < np.inf:
        raise InputError(f"penalty={penalty!r}: use a number from 0 on, or leave it out.")
    off = np.flatnonzero(np.abs(np.diagonal(R) - 1) > 1e-6)
    if off.size:
        raise InputError(
            f"correlation has {np.diagonal(R)[off[0]]:g} on its diagonal, in column {off[0]}: correlations of columns "
            "with themselves are 1. Divide a covariance by the standard deviations."
        )
    large = np.flatnonzero(z**2 >= n)
    if large.size:
        raise InputError(
            f"z is {z[large[0]]:g} at column {large[0]}, beyond sqrt(n) = {np.sqrt(n):.4g}: no correlation of y with a "
            f"column is so large. Is n={n:g} the number of rows?"
        )
