"""Fit the latent model to a table: margins, one class, the number of classes, several classes, D.

D by maximum entropy keeps L and L_tilde apart, and takes it that both are seen. Of a 0/1 column only the sign is. What
nobody sees need not be kept apart, and a number beside such a column can have more room than its coordinate would
leave it (``with_room``).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dpotrf

from knockoffs.errors import InputError, KnockoffWarning, name_some
from knockoffs.features.covariance import FEW, PLENTY, choose_correlations, held_out_intensity, weighted_moments
from knockoffs.features.em import Mixture, one_component
from knockoffs.features.gaussian import compact, gaussian_law
from knockoffs.features.gaussian_mixture import MixtureFeatures
from knockoffs.features.latent.kinds import check_cells, cut_again, fit_both, kinds_of, place_levels
from knockoffs.features.latent.margins import (
    POINT,
    Affine,
    ColumnMap,
    Coordinates,
    LatentCells,
    Rounded,
    lay_out,
    read_cells,
    write_values,
)
from knockoffs.features.latent.model import LatentFeatures
from knockoffs.features.latent.search import (
    ClassChoice,
    Shrinkage,
    candidates_for,
    choose_classes,
    choose_shrinkage,
    choose_units,
    class_moments,
)
from knockoffs.features.latent.stochastic_em import (
    FLOOR,
    Fit,
    Frame,
    fit_classes,
    fit_one_class,
    frame_of,
    pool_classes,
    separate,
)
from knockoffs.features.mixture_path import numbers_to_try
from knockoffs.sampling.conjugates.gaussian import GaussianLaw
from knockoffs.sampling.conjugates.low_rank import COLUMNS_AT_ONCE, LowRankLaw, low_rank_entropy
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL
from knockoffs.sampling.pair import check_features
from knockoffs.table.memory import check_covariance_memory

NEAR = 5 * FLOOR  # eigenvalue of latent correlations below which columns nearly determine one another


def fit_latent(
    X: NDArray,
    *,
    rng: Generator | None = None,
    n_jobs: int | None = None,
    kinds: Sequence[str] | None = None,
    feature_of: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    n_classes: int | Iterable[int] | None = None,
    diagonal: str = DEFAULT_DIAGONAL,
) -> LatentFeatures:
    """Latent Gaussian mixture with the fewest classes whose held-out log density is within one s.e. of the best.

    The model is X_j = g_j(L_j), L a mixture of Gaussians. Margins g_j have the distributions of the columns. Continuous
    columns are in their own units or in normal scores; correlations of few rows are shrunk, thresholded or those of
    nearest neighbours. All of it is chosen by the log density of held-out rows in the same four folds.

    Parameters
    ----------
    X : array, shape (n, d)
        Numbers, and codes of labels; NaN where a cell is missing. A row without any observed cell is allowed: its
        cells are drawn from the model, and it says nothing about it.
    rng : numpy.random.Generator, optional
        Not used. The fit is a function of the table: what is random in it has a stream of its own, always the same.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    kinds : sequence of str, optional
        "continuous", "count", "ordinal", "binary" or "nominal" for each column; inferred if left out.
    feature_of : array-like of int, shape (d,), optional
        Feature of each column.
    names : sequence of str, optional
        Names of the columns, for warnings.
    n_classes : int or iterable of int, optional
        A number, or the numbers to choose among; as many as there are rows for, if left out.
    diagonal : str
        Which matrix D: see ``DIAGONALS``.

    Notes
    -----
    At most 10,000 rows, or 40 for each coordinate if that is more, evenly spaced, take part in the search for classes
    and, where L is not known in every cell, in stochastic EM. Margins are learned from all rows, and so are the
    moments of the classes where L is known.
    """
    X = np.asarray(X, dtype=float)
    check_cells(X)
    owners = check_features(feature_of, X.shape[1])
    words = kinds_of(X, kinds)
    called = [str(name) for name in names] if names is not None else [str(j) for j in range(X.shape[1])]
    scored, in_units = fit_both(X, words)
    scored = place_levels(scored, X)
    in_units = tuple(own if isinstance(own, Affine) else score for own, score in zip(in_units, scored, strict=True))
    frame = frame_of(scored)
    D, inner = len(frame.unit), compact(owners[frame.layout.column_of])
    if not D:
        raise InputError("every column of X is constant: there is nothing to select from.")
    rows, cells = X, read_cells(scored, X)
    if not cells.all_points:
        rows, cells = X[spaced(len(X), D)], cells.rows(spaced(len(X), D))
    numbers = candidates_for(len(X), D) if n_classes is None else numbers_to_try("n_classes", n_classes, len(X))
    one = None if cells.all_points else _by_stochastic_em(cells, frame, n_jobs)
    L = cells.start if one is None else one[0].L
    choice = _choose(rows, L, scored, in_units, numbers, n_jobs)
    margins = in_units if choice.affine else scored
    if choice.affine:
        cells, one = read_cells(margins, rows), None
        L = np.where(cells.status == POINT, cells.start, L)
    wide = _of_few_rows(cells.start, inner, diagonal) if cells.all_points and choice.mixture.n_components == 1 else None
    if choice.mixture.n_components > 1:
        fit, how = _several(cells, frame, L, choice.mixture, n_jobs)
        margins = cut_again(margins, frame.layout.column_of, fit.weights, fit.means, fit.covariances)
    elif wide is not None:
        fit = Fit(np.ones(1), wide.mean[None], np.empty((0, D, D)), np.zeros(len(X), np.intp), cells.start)
        how = f"correlations shrunk by {wide.a:.2g}"
    elif cells.all_points:
        fit, how = _by_moments(cells.start, frame)
    else:
        fit, how = one or _by_stochastic_em(cells, frame, n_jobs)
    _warn_few(how, len(rows), D)
    _warn_near(fit.covariances, cells.start, frame.layout, called)
    laws = _laws(fit, diagonal, inner, unseen(cells.start, frame.unit)) if wide is None else (wide,)
    chosen_by = "held_out" if choice.values else ""
    mixture = MixtureFeatures(fit.weights, laws, inner, choice.values, chosen_by, float(len(X)))
    return LatentFeatures(tuple(margins), mixture, owners, words, choice.values, _notes(choice, how))


def _laws(
    fit: Fit, diagonal: str, feature_of: NDArray[np.intp], noise: NDArray
) -> tuple[GaussianLaw | LowRankLaw, ...]:
    """Gaussian of each class with its D."""
    pairs = zip(fit.means, fit.covariances, strict=True)
    laws = [gaussian_law(mean, S, diagonal, feature_of) for mean, S in pairs]
    return tuple(with_room(law, noise, feature_of) if diagonal == DEFAULT_DIAGONAL else law for law in laws)


def spaced(n: int, D: int, *, most: int = 10_000, a_coordinate: int = 40) -> slice | NDArray[np.intp]:
    """Rows that are enough to find classes in D coordinates: all, or so many evenly spaced ones if they are more.

    They are ``most``, or ``a_coordinate`` for each if that is more: the error of a correlation is then 0.01.
    """
    size = max(most, a_coordinate * D)
    return slice(None) if n <= size else np.arange(size) * n // size


def _choose(
    X: NDArray,
    L: NDArray,
    scored: Sequence[ColumnMap],
    in_units: Sequence[ColumnMap],
    numbers: Sequence[int],
    n_jobs: int | None,
) -> ClassChoice:
    """Units of the smooth columns, and classes; L completes the cells that are missing."""
    seen = spaced(len(X), L.shape[1])
    smooth = [j for j, margin in enumerate(in_units) if isinstance(margin, Affine)]
    complete = np.where(np.isnan(X[seen]), write_values(scored, L[seen]), X[seen])[:, smooth]
    for place, j in enumerate(smooth):
        margin = in_units[j]
        if isinstance(margin, Rounded):  # without ties, so that densities in either units can be compared
            complete[:, place] = margin.spread(complete[:, place], np.random.default_rng(j))
    places = np.searchsorted(lay_out(scored).column_of, smooth)
    if numbers == [1]:
        affine, gain = choose_units(complete) if smooth else (False, np.nan)
        return ClassChoice(affine, one_component(L[:1, :0]), {}, gain)  # its moments are learned later
    return choose_classes(complete, L[seen], places, numbers, n_jobs=n_jobs)


def _of_few_rows(
    L: NDArray, feature_of: NDArray[np.intp], diagonal: str, *, more_than: int = 1000
) -> LowRankLaw | None:
    """Law of one class whose correlations are only shrunk, as those of ``more_than`` columns are, without a matrix.

    None where rows are not few beside the columns, or D is another than one number of maximum entropy a column.
    """
    n, D = L.shape
    if D <= max(more_than, 4 * n) or diagonal != DEFAULT_DIAGONAL or feature_of.max() + 1 < D:
        return None
    mean, sd = L.mean(axis=0), L.std(axis=0)
    Z = (L - mean) / sd
    a = held_out_intensity(Z, np.ones(n))
    U = np.sqrt((1 - a) / n) * Z
    return LowRankLaw(mean, sd, a, U, low_rank_entropy(a, U)) if a > NEAR else None


def _by_moments(L: NDArray, frame: Frame) -> tuple[Fit, str]:
    """One class of rows whose L is known, and in words how its correlations were estimated."""
    n, D = L.shape
    check_covariance_memory(D)
    mean, S = weighted_moments(L, np.ones(n))
    how = ""
    if n < PLENTY * D:
        sd = np.sqrt(np.diagonal(S))
        R, how = choose_correlations((L - mean) / sd)
        S = R * np.outer(sd, sd)
    return Fit(np.ones(1), mean[None], separate(S, frame.within)[None], np.zeros(n, np.intp), L), how


def _by_stochastic_em(cells: LatentCells, frame: Frame, n_jobs: int | None) -> tuple[Fit, str]:
    """One class of rows whose L is known by intervals, and in words how its correlations were estimated."""
    check_covariance_memory(cells.start.shape[1])
    shrunk = _shrinkage(cells, np.ones((len(cells.start), 1)))
    return fit_one_class(cells, frame, a=shrunk.common, rng=np.random.default_rng(0), n_jobs=n_jobs), str(shrunk)


def _several(cells: LatentCells, frame: Frame, L: NDArray, mixture: Mixture, n_jobs: int | None) -> tuple[Fit, str]:
    """Several classes: moments where L is known, stochastic EM from them where it is not; and how, in words."""
    shares = mixture.posterior(L)
    shrunk = _shrinkage(cells, shares)
    rows, means, raw = class_moments(L, shares)
    covariances = pool_classes(rows, raw, cells, frame, shrunk)
    start = Fit(rows / rows.sum(), means, covariances, np.zeros(len(L), np.intp), L)
    if cells.all_points:
        return start, str(shrunk)
    fit = fit_classes(cells, frame, start, shrunk=shrunk, rng=np.random.default_rng(0), n_jobs=n_jobs)
    return fit, str(shrunk)


def _shrinkage(cells: LatentCells, shares: NDArray) -> Shrinkage:
    """Shrinkage by the scores of the cells.

    A completed L would repeat the covariance it was drawn with, and ask for too little. Scores do not: a correlation
    r of L is v r among scores, v the product of their standard deviations, and its error is that much smaller too.
    Rows are never plenty where cells are intervals: of a 0/1 column that is 1 in a few rows, only those tell.
    """
    return choose_shrinkage(cells.start, shares, plenty=PLENTY if cells.all_points else np.inf)


def _warn_few(how: str, n: int, D: int) -> None:
    if n < FEW * D:
        warnings.warn(
            f"the latent model rests on {n} rows for {D} coordinates: {how or 'correlations as they are'}. The FDR may "
            "exceed the level. Use more rows.",
            KnockoffWarning,
            stacklevel=3,
        )


def _warn_near(
    covariances: Iterable[NDArray], start: NDArray, layout: Coordinates, names: Sequence[str], *, alike: float = 0.9995
) -> None:
    """Warn of columns that nearly determine one another: their latent correlations were held below one.

    They are named below an eigenvalue ``NEAR`` of correlations, and above a correlation ``alike`` of scores.
    """
    Z = start - start.mean(axis=0)
    Z /= np.maximum(Z.std(axis=0), 1e-12)
    near = set[int]()
    for j in range(0, Z.shape[1], COLUMNS_AT_ONCE):
        R = np.abs(Z[:, j : j + COLUMNS_AT_ONCE].T @ Z) / len(Z)
        other = layout.first[j : j + COLUMNS_AT_ONCE, None] != layout.first
        near |= set(layout.column_of[((alike < R) & other).any(axis=0)].tolist())
    for S in covariances:
        sd = np.sqrt(np.diagonal(S))
        R = S / np.outer(sd, sd)
        if dpotrf(R - NEAR * np.eye(len(R)), lower=1)[1] == 0:  # no eigenvalue is that small
            continue
        values, vectors = np.linalg.eigh(R)
        for vector in vectors.T[values <= NEAR]:
            near |= set(layout.column_of[np.abs(vector) > 0.1].tolist())
    if near:
        warnings.warn(
            f"columns {name_some(names[j] for j in sorted(near))} nearly determine one another. Their latent "
            f"correlations are held below one, by a ridge of {FLOOR:g}, where they would reach it. None of them can "
            "matter much given the others: keep one of them, or make them one feature; dependent='drop' leaves out "
            "exact combinations.",
            KnockoffWarning,
            stacklevel=3,
        )


def _notes(choice: ClassChoice, how: str) -> tuple[str, ...]:
    notes = []
    if np.isfinite(choice.gain):
        units = "in their own units" if choice.affine else "Gaussianised"
        notes.append(f"continuous columns {units} (held-out log density {choice.gain:+.2g} per row)")
    return (*notes, how) if how else tuple(notes)


def unseen(start: NDArray, unit: NDArray[np.bool_]) -> NDArray:
    """Variance of the noise through which each coordinate is seen, shape (D,): zero where it is a point.

    A score that holds a share v of a coordinate's variance tells as much of it as the coordinate plus noise of
    variance (1 - v) / v. Coordinates known by intervals, ``unit``, have variance 1.
    """
    v = np.where(unit, start.var(axis=0).clip(1e-2, 1.0), 1.0)
    return (1 - v) / v


def with_room(
    law: GaussianLaw, noise: NDArray, feature_of: NDArray[np.intp], *, barrier: float = 0.05, n_steps: int = 50
) -> GaussianLaw:
    """Law with the D of maximum entropy of (L + noise, L_tilde + noise), each feature's block of D times a number.

    With S + N the covariance of what is seen, N = diag(noise), the entropy is log det(2S + N - D) + log det(D + N), up
    to a constant. It is maximised by Newton's method, from the D of the law in at most ``n_steps`` (ten are usual),
    with a small weight ``barrier`` on log det(2S - D) + log det(D), which hold D feasible: with weight 1 that is the
    entropy of L and L_tilde themselves.
    """
    if not noise.any():
        return law
    F = np.linalg.cholesky(law.D)
    inverse = np.linalg.inv(F)
    S, N = (inverse @ A @ inverse.T for A in (law.covariance, np.diag(noise)))
    s = np.ones(feature_of.max() + 1)
    value, gradient, hessian = _entropy(s, S, N, feature_of, barrier)
    for _ in range(n_steps):
        step = np.linalg.solve(hessian, gradient)
        decrement = float(gradient @ step)
        length = 1.0
        while (found := _entropy(s + length * step, S, N, feature_of, barrier))[0] < value + 0.1 * length * decrement:
            length /= 2
            if length < 1e-8:
                break
        else:
            s, (value, gradient, hessian) = s + length * step, found
            if decrement > 1e-8:
                continue
        break
    return GaussianLaw(law.mean, law.covariance, F * s[feature_of] @ F.T)


def _entropy(
    s: NDArray, S: NDArray, N: NDArray, feature_of: NDArray[np.intp], barrier: float
) -> tuple[float, NDArray, NDArray]:
    """Entropy, its gradient in the numbers of the features, and minus the matrix of its second derivatives."""
    own = (feature_of[:, None] == np.arange(len(s))).astype(float)
    D = np.diag(s[feature_of])
    total, gradient, hessian = 0.0, np.zeros(len(s)), np.zeros((len(s), len(s)))
    for weight, sign, A in (
        (1 - barrier, -1, 2 * S + N - D),
        (1 - barrier, 1, D + N),
        (barrier, -1, 2 * S - D),
        (barrier, 1, D),
    ):
        factor, failed = dpotrf(A, lower=1)
        if failed:
            return -np.inf, gradient, hessian
        P = np.linalg.inv(A)
        total += 2 * weight * float(np.log(np.diagonal(factor)).sum())
        gradient += weight * sign * np.diagonal(P) @ own
        hessian += weight * own.T @ (P * P) @ own
    return total, gradient, hessian
