"""The lasso on summary statistics: importance scores from z-scores and ghost knockoffs, without any rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError
from knockoffs.importance.scores import Scores, sum_by_feature
from knockoffs.sampling.ghost import check_z
from knockoffs.sampling.pair import check_features

SHARE = 0.6  # of the penalty that pure noise would need; not tuned


def check_penalty(penalty: float) -> float:
    """Check the penalty of a lasso: none is below 0."""
    if not 0 <= penalty < np.inf:
        raise InputError(f"penalty={penalty!r}: use a number from 0 on, or leave it out.")
    return float(penalty)


def noise_penalty(d: int, n: float, share: float = SHARE) -> float:
    """Share of sqrt(2 log(2d) / n), about the largest of 2d correlations with y that pure noise gives.

    It depends on nothing that a swap could change. Correlated columns need less: lower the share.

    >>> round(noise_penalty(100, 1000), 4)
    0.0618
    """
    return share * float(np.sqrt(2 * np.log(2 * d) / n))


def ghost_scores(
    z: ArrayLike,
    z_tilde: ArrayLike,
    correlation: ArrayLike,
    D: ArrayLike,
    n: float,
    *,
    feature_of: ArrayLike | None = None,
    penalty: float | None = None,
) -> Scores:
    """Absolute coefficients of the lasso on G = [[S, S - D], [S - D, S]] and correlations r = [z, z_tilde] / sqrt(n).

    Minimises b^T G b / 2 - r^T b + penalty |b|_1: the lasso of y on [X, X_tilde] in the limit of many rows, y and
    columns standardised. Nothing is drawn, and swapping z_j and z_tilde_j swaps the scores.

    Parameters
    ----------
    z, z_tilde : array-like, shape (d,)
    correlation, D : array-like, shape (d, d)
    n : float
        Rows behind the z-scores.
    feature_of : array-like of int, shape (d,), optional
        Feature that owns each column; its columns' coefficients are added up.
    penalty : float, optional
        ``noise_penalty(d, n)`` by default: there are no rows to cross-validate with.

    Returns
    -------
    Scores
    """
    from knockoffs.response.gram_lasso import Quadratic, solve_quadratics

    scores, ghosts = check_z(z), check_z(z_tilde)
    S, D = np.asarray(correlation, dtype=float), np.asarray(D, dtype=float)
    d = len(scores)
    if ghosts.shape != (d,) or S.shape != (d, d) or D.shape != (d, d):
        raise InputError(
            f"z has shape {scores.shape}, z_tilde {ghosts.shape}, correlation {S.shape} and D {D.shape}: expected "
            f"({d},), ({d},), ({d}, {d}) and ({d}, {d})."
        )
    if not n > 0:
        raise InputError(f"n={n!r}: give the number of rows behind the z-scores.")
    G: NDArray = np.block([[S, S - D], [S - D, S]])
    r = np.concatenate([scores, ghosts]) / np.sqrt(n)
    alpha = noise_penalty(d, n) if penalty is None else check_penalty(penalty)
    size = np.abs(solve_quadratics([Quadratic(G, r, 1.0)], alpha)[0])
    owners = check_features(feature_of, d)
    return Scores(sum_by_feature(size[:d], owners), sum_by_feature(size[d:], owners))
