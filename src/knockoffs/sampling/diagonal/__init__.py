"""The matrix D of Gaussian knockoffs: Cov(X, X_tilde) = Sigma - D, with D and 2 Sigma - D positive definite.

Each choice is a function ``(R, shape) -> D``. R is Sigma whitened within each feature (the correlation matrix, where a
feature is one column), so no choice depends on the units of X. D has a number for every column, or a positive definite
block for every feature that owns several; its entries are one vector, whose places ``shape`` knows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dpotrf

from knockoffs.errors import InputError
from knockoffs.registry import load

ASYMMETRY = 1e-8  # of an entry, relative to its two standard deviations: more than rounding
# Power of the lasso difference at FDR 0.1 (0.2), n = 500, 150 columns, 30 signals, 40 to 80 draws of four designs:
# AR(1) 0.5, equal correlations 0.5, factors, blocks of correlation 0.7. The standard error of a difference to MVR is
# 0.009 (0.004) or less.  maximum entropy .751 .534 .280 .325 (.873 .758 .493 .549)
#                          MVR             .747 .534 .276 .317 (.861 .760 .495 .546)
#                          SDP             .762 .000 .007 .081 (.877 .000 .169 .250)
DEFAULT_DIAGONAL = "maximum_entropy"


DIAGONALS: dict[str, str] = {
    "equicorrelated": "knockoffs.sampling.diagonal.newton:equicorrelated",
    "sdp": "knockoffs.sampling.diagonal.newton:sdp",
    "mvr": "knockoffs.sampling.diagonal.newton:mvr",
    "maximum_entropy": "knockoffs.sampling.diagonal.newton:maximum_entropy",
}


def solve_diagonal(
    Sigma: ArrayLike, method: str = DEFAULT_DIAGONAL, feature_of: ArrayLike | None = None
) -> NDArray[np.float64]:
    """D for which [[Sigma, Sigma - D], [Sigma - D, Sigma]] is positive definite, by one of ``DIAGONALS``.

    With L the Cholesky factors of the features' own blocks of Sigma and R = L^-1 Sigma L^-T, D is L S L^T: S is
    diagonal where every feature owns one column, and otherwise block diagonal, each block whatever is best ("sdp",
    "mvr", "maximum_entropy") or the same multiple of the identity for all ("equicorrelated"). The result is strictly
    feasible: D > 0 and 2 Sigma - D >= MARGIN Sigma, MARGIN = 1e-6 (``newton.py``). The optimised methods "mvr" and
    "maximum_entropy" are further inside by themselves; "sdp" and "equicorrelated", whose optimum makes 2 Sigma - D
    singular, are moved inside by that much.

    Parameters
    ----------
    Sigma : array-like, shape (d, d)
        Symmetric and positive definite.
    method : {"maximum_entropy", "mvr", "sdp", "equicorrelated"}
    feature_of : array-like of int, shape (d,), optional
        Feature that owns each column; one column a feature by default.

    Returns
    -------
    ndarray, shape (d, d)
        Diagonal, or block diagonal over the features where a feature owns several columns.

    >>> solve_diagonal([[1.0, 0.0], [0.0, 4.0]])
    array([[1., 0.],
           [0., 4.]])
    """
    from knockoffs.sampling.pair import check_features

    Sigma = check_covariance(Sigma)
    return solve_checked(Sigma, method, check_features(feature_of, len(Sigma)))


def solve_checked(Sigma: NDArray, method: str, owners: NDArray[np.intp]) -> NDArray:
    """D as ``solve_diagonal`` finds it, for a covariance and features that have been checked."""
    from knockoffs.sampling.diagonal.newton import MARGIN, factor
    from knockoffs.sampling.diagonal.shape import shape_of

    solver, shape = load(DIAGONALS, "diagonal", method), shape_of(owners)
    R, blocks = whiten(Sigma, owners)
    order = np.ix_(shape.order, shape.order)
    D = solver(R[order], shape)
    # checked with half of the margin that is promised, the other half being left to rounding
    if not (shape.eigh(D)[0] > 0).all() or factor((1 - MARGIN / 4) * R[order], shape, D) is None:
        raise not_inside(method, R)
    S = np.empty_like(R)
    S[order] = shape.scatter(D)
    return unwhiten(S, blocks)


def not_inside(method: str, R: NDArray) -> InputError:
    """Error for a covariance so near to singular that rounding decides."""
    smallest = float(np.linalg.eigvalsh(R)[0])
    return InputError(
        f"no D can be found safely inside by method={method!r}: the covariance is too near to singular "
        f"(smallest eigenvalue {smallest:.3g} as a correlation matrix). Shrink it, or drop dependent columns."
    )


def whiten(Sigma: NDArray, feature_of: NDArray) -> tuple[NDArray, list[tuple[NDArray, NDArray]]]:
    """R = L^-1 Sigma L^-T, and the blocks of L as pairs (columns of the feature, Cholesky factor of its block).

    The features with one column come first, all in one pair whose factor is the vector of standard deviations.
    """
    from scipy.linalg import solve_triangular

    sizes = np.bincount(feature_of)
    single = np.flatnonzero(sizes[feature_of] == 1)
    sd = np.sqrt(np.diagonal(Sigma))
    R = Sigma / sd / sd[:, None]
    blocks = [(single, sd[single])]
    for feature in np.flatnonzero(sizes > 1):
        columns = np.flatnonzero(feature_of == feature)
        L = np.linalg.cholesky(R[np.ix_(columns, columns)])
        R[columns] = solve_triangular(L, R[columns], lower=True)
        R[:, columns] = solve_triangular(L, R[:, columns].T, lower=True).T
        R[np.ix_(columns, columns)] = np.eye(len(columns))
        blocks.append((columns, sd[columns, None] * L))
    np.fill_diagonal(R, 1.0)
    return (R + R.T) / 2, blocks


def unwhiten(S: NDArray, blocks: list[tuple[NDArray, NDArray]]) -> NDArray:
    """D = L S L^T, for a block-diagonal S."""
    (single, sd), *others = blocks
    D = np.zeros_like(S)
    D[single, single] = S[single, single] * sd**2
    for columns, L in others:
        block = L @ S[np.ix_(columns, columns)] @ L.T
        D[np.ix_(columns, columns)] = (block + block.T) / 2
    return D


def check_covariance(Sigma: ArrayLike, name: str = "covariance") -> NDArray[np.float64]:
    """Sigma as a symmetric positive definite float array; rounding in its symmetry is averaged out.

    Whether it is positive definite is decided for the correlation matrix, so the answer does not depend on units:
    its smallest eigenvalue must exceed d times the rounding of its largest row sum.

    Parameters
    ----------
    Sigma : array-like, shape (d, d)
    name : str
        How the message calls it, for instance "covariance of component 3".

    >>> check_covariance([[4.0, 1.0], [1.0, 1.0]])
    array([[4., 1.], [1., 1.]])
    >>> check_covariance([[1.0, 2.0], [2.0, 1.0]])
    Traceback (most recent call last):
    knockoffs.errors.InputError: covariance is not positive definite (smallest eigenvalue -1 as a correlation matrix).
    Drop duplicated or dependent columns, or shrink it.
    """
    try:
        Sigma = np.array(Sigma, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not a matrix of numbers: {error}.") from None
    if Sigma.ndim != 2 or Sigma.shape[0] != Sigma.shape[1] or Sigma.shape[0] == 0:
        raise InputError(
            f"{name} has shape {Sigma.shape}: expected (d, d), one row and one column for each column of X."
        )
    if not np.isfinite(Sigma).all():
        i, j = np.argwhere(~np.isfinite(Sigma))[0]
        raise InputError(f"{name} is {Sigma[i, j]} at row {i}, column {j}: every entry must be finite.")
    variances = np.diagonal(Sigma)
    if (variances <= 0).any():
        j = int(np.argmin(variances > 0))
        raise InputError(
            f"{name} has variance {variances[j]:g} in column {j}: drop constant columns; variances are > 0."
        )
    sd = np.sqrt(variances)
    R = Sigma / sd / sd[:, None]
    asymmetry = np.abs(R - R.T)
    if asymmetry.max() > ASYMMETRY:
        i, j = np.unravel_index(int(asymmetry.argmax()), R.shape)
        raise InputError(
            f"{name} is not symmetric: {Sigma[i, j]:g} at row {i}, column {j}, "
            f"but {Sigma[j, i]:g} at row {j}, column {i}."
        )
    R = (R + R.T) / 2
    rounding = len(R) * np.finfo(float).eps * np.abs(R).sum(axis=1).max()
    if dpotrf(R - rounding * np.eye(len(R)), lower=1)[1] != 0:
        smallest = float(np.linalg.eigvalsh(R)[0])
        raise InputError(
            f"{name} is not positive definite (smallest eigenvalue {smallest:.3g} as a correlation matrix). "
            "Drop duplicated or dependent columns, or shrink it."
        )
    return (Sigma + Sigma.T) / 2
