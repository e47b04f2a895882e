"""How many classes, in the columns' own units or in normal scores: one search, judged by held-out rows.

The correlations of each class are drawn towards what all classes have in common, as far as held-out rows ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knockoffs.features.covariance import N_FOLDS, PLENTY, bounded, fold_of, held_out_intensity, simplest
from knockoffs.features.em import Mixture
from knockoffs.features.latent.margins import Affine, Curve, fit_affine, fit_curve
from knockoffs.features.mixture_path import Fold, MakeFold, MixturePath

RIDGE = 1e-6  # of the common correlations, which are inverted


class Shrinkage(NamedTuple):
    """How far correlations are shrunk: 0 not at all, 1 all the way."""

    common: float  # the correlations that the classes have in common, towards none
    own: tuple[float, ...]  # those of each class, towards the common ones

    def __str__(self) -> str:
        said = [f"correlations shrunk by {self.common:.2g}"] if self.common > 0 else []
        if max(self.own) > 0:
            most = ", ".join(f"{a:.2g}" for a in self.own)
            said.append(f"those of the classes drawn towards the common ones by {most}")
        return ", ".join(said)


def choose_shrinkage(Z: NDArray, shares: NDArray, *, plenty: float = PLENTY) -> Shrinkage:
    """Shrinkage for which rows of each class have the largest likelihood given the other rows.

    A class of few rows cannot tell its correlations, but they are rarely far from those within the other classes: what
    it is drawn to is their average. Towards no correlation at all, knockoffs would lose the links between columns.
    With ``plenty`` rows a coordinate correlations are kept as they are. ``shares``, shape (n, l), are those of the
    classes in each row.
    """
    (n, D), l = Z.shape, shares.shape[1]  # noqa: E741
    if D == 1 or (l == 1 and n >= plenty * D):
        return Shrinkage(0.0, (0.0,) * l)
    common, whole, average = 0.0, np.zeros((n, D) if n < plenty * D else 0), np.zeros((D, D))
    for share in shares.T:  # one class at a time: each has a copy of the rows
        z = _in_units(Z, share)
        if l > 1:
            average += (share[:, None] * z).T @ z
        if whole.size:
            z *= np.sqrt(share)[:, None]
            whole += z
    if whole.size:
        common = held_out_intensity(whole, np.ones(n))
    del whole, z
    if l == 1:
        return Shrinkage(common, (0.0,))
    rows, average = shares.sum(axis=0), average / n
    target = (1 - common) * average + (common + RIDGE) * np.eye(D)
    whiten = np.linalg.inv(np.linalg.cholesky(target)).T  # rows are draws, so the factor multiplies from the right
    own = [0.0] * l
    for k in np.flatnonzero(rows < plenty * D):
        own[k] = held_out_intensity(_in_units(Z, shares[:, k]) @ whiten, shares[:, k])
    return Shrinkage(common, tuple(own))


def _in_units(Z: NDArray, share: NDArray, *, smallest: float = 1e-3) -> NDArray:
    """Rows in units of the deviations in a class, none of which is smaller than ``smallest``."""
    z = Z - share @ Z / share.sum()
    z /= np.maximum(np.sqrt(share @ z**2 / share.sum()), smallest)
    return z


def pool(weights: NDArray, covariances: NDArray, common: NDArray | float, own: Sequence[NDArray | float]) -> NDArray:
    """Covariances with their correlations drawn towards the average ones, variances kept, shape (l, D, D).

    ``common`` is what is left of the average correlations, ``own`` what is left of the difference of each class to
    them: numbers, or one for each entry.
    """
    sd = np.sqrt(np.maximum(np.einsum("kii->ki", covariances), 1e-12))
    correlations = covariances / (sd[:, :, None] * sd[:, None, :])
    average = np.einsum("k,kij->ij", weights / weights.sum(), correlations)
    target = np.where(np.eye(len(average), dtype=bool), average, common * average)
    pooled = np.stack([target + left * (R - target) for R, left in zip(correlations, own, strict=True)])
    return pooled * (sd[:, :, None] * sd[:, None, :])


def class_moments(Z: NDArray, shares: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Rows, means and covariances of the classes with these shares in each row, shape (n, l)."""
    rows = shares.sum(axis=0)
    means = shares.T @ Z / rows[:, None]
    centred = (Z - mean for mean in means)  # one class at a time
    raw = [(c * share[:, None]).T @ c / share.sum() for c, share in zip(centred, shares.T, strict=True)]
    return rows, means, np.stack(raw)


def shrink_mixture(Z: NDArray, mixture: Mixture) -> Mixture:
    """Mixture with the moments of complete rows, its correlations shrunk as far as held-out rows ask for it."""
    shares = mixture.posterior(Z) if mixture.n_components > 1 else np.ones((len(Z), 1))
    found = choose_shrinkage(Z, shares)
    rows, means, covariances = class_moments(Z, shares)
    # a single class has nothing of its own beside what is common
    left = [1 - a for a in found.own] if mixture.n_components > 1 else [0.0]
    S = pool(rows, covariances, 1 - found.common, left)
    floor = RIDGE * np.einsum("kii->ki", S)[:, :, None] * np.eye(Z.shape[1])
    return Mixture(rows / rows.sum(), means, S + floor)


class ClassChoice(NamedTuple):
    """What held-out rows chose."""

    affine: bool  # whether smooth columns are in their own units
    mixture: Mixture  # the classes, over the coordinates in these units
    # minus twice the held-out log density of all rows, for each number of classes tried; empty where no choice of the
    # number was given
    values: dict[int, float]
    # held-out log density of a row that these units gain over the others; NaN where there are no smooth columns
    gain: float


def candidates_for(n: int, D: int) -> list[int]:
    """Numbers of classes to try: 1, 2, 3, ... in growing steps, as far as each class can have 2 (D + 1) rows.

    >>> candidates_for(2000, 30), candidates_for(100, 30)
    ([1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29], [1])
    """
    numbers = [1]
    while (k := max(numbers[-1] + 1, round(1.2 * numbers[-1]))) <= n // (2 * (D + 1)):
        numbers.append(k)
    return numbers


def choose_classes(
    X: NDArray, L: NDArray, smooth: NDArray[np.intp], numbers: Sequence[int], *, n_jobs: int | None = None
) -> ClassChoice:
    """Fewest classes, in either units, within one standard error of the best held-out log density.

    A mixture of Gaussians is one in the columns' own units, and is none after normal scores; skewed columns are the
    other way round. The units that are better with the first number are searched first, and the others no further than
    the number found in these. X, shape (n, s), holds complete values of the smooth columns, whose coordinates are
    ``smooth``, and L, shape (n, D), the coordinates with smooth columns in normal scores.
    """
    paths = {affine: _path(X, L, smooth, affine, n_jobs) for affine in ((True, False) if smooth.size else (False,))}
    first, *rest = numbers
    for path in paths.values():
        path.walk([first], np.random.default_rng(0))
    ahead = min(paths, key=lambda affine: paths[affine].values[first])
    paths[ahead].walk(rest, np.random.default_rng(0))
    found = paths[ahead].best
    for affine in set(paths) - {ahead}:
        paths[affine].walk([k for k in rest if k <= found], np.random.default_rng(0))
    judged = {affine: path.log_densities for affine, path in paths.items() if path.log_densities}
    if not judged:  # a number was asked for that no fold can fit
        return ClassChoice(ahead, paths[ahead].mixture(first), {}, np.nan)
    tried = sorted((k, -values.mean(), affine) for affine, found in judged.items() for k, values in found.items())
    k, _, affine = tried[simplest([judged[affine][k] for k, _, affine in tried])]
    best = {units: max(values.mean() for values in found.values()) for units, found in judged.items()}
    gain = best[affine] - best[not affine] if len(best) == 2 else np.nan
    return ClassChoice(affine, paths[affine].mixture(k), paths[affine].values if rest else {}, float(gain))


def choose_units(X: NDArray, *, most_columns: int = 300) -> tuple[bool, float]:
    """Whether smooth columns of one class stay in their own units, and the held-out log density gained.

    Correlations count the same in both units, so that each column, complete, is judged by its own density. Of more than
    ``most_columns`` as many are judged, evenly spaced.
    """
    X = X[:, :: -(-X.shape[1] // most_columns)]
    densities = []
    for affine in (True, False):
        made = (make() for make in _folds(X, X, np.arange(X.shape[1]), affine))
        parts = [bounded(-0.5 * (f.held**2 + np.log(2 * np.pi)).sum(axis=1), f.held) + f.log_slope for f in made]
        densities.append(np.concatenate(parts))
    affine = simplest(densities) == 0
    own, scores = (float(values.mean()) for values in densities)
    return affine, own - scores if affine else scores - own


def _path(X: NDArray, L: NDArray, smooth: NDArray[np.intp], affine: bool, n_jobs: int | None) -> MixturePath:
    Z = L.copy()
    if affine:
        for i, x in zip(smooth.tolist(), X.T, strict=True):
            Z[:, i] = fit_affine(x).read(x).start[:, 0]
    return MixturePath(Z, folds=_folds(X, Z, smooth, affine), settle=shrink_mixture, n_starts=2, n_jobs=n_jobs)


def _folds(X: NDArray, Z: NDArray, smooth: NDArray[np.intp], affine: bool) -> list[MakeFold]:
    """Folds of the coordinates, in which the held-out rows have no part in the margins of the smooth columns.

    Each column has a scale, in which slopes have a size of their own.
    """
    # in units of a power of two, which is exact: squares of extreme numbers would leave the range of floats
    units = np.exp2(np.frexp(np.abs(X).max(axis=0))[1] - 1)
    scales = [float((x / unit).std() * unit) for x, unit in zip(X.T, units, strict=True)]
    folds = (fold_of(len(Z)) == k for k in range(N_FOLDS))
    fit = fit_affine if affine else fit_curve
    columns = list(zip(smooth.tolist(), X.T, scales, strict=True))  # scaled when they are read, not copied
    return [partial(_make_fold, columns, Z, held, [fit(x[~held] / scale) for _, x, scale in columns]) for held in folds]


def _make_fold(
    columns: list[tuple[int, NDArray, float]], Z: NDArray, held: NDArray[np.bool_], margins: Sequence[Affine | Curve]
) -> Fold:
    """Fold whose rows are read whenever they are needed."""
    rows, others, log_slope = Z[~held], Z[held], np.zeros(held.sum())
    for (i, x, scale), margin in zip(columns, margins, strict=True):
        rows[:, i], others[:, i] = (margin.read(part / scale).start[:, 0] for part in (x[~held], x[held]))
        log_slope += margin.log_slope(x[held] / scale)
    return Fold(rows, others, log_slope)
