"""How many classes, in the columns' own units or in normal scores: one search, judged by held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knockoffs.features.em import Fold, MakeFold, MixturePath
from knockoffs.features.em_steps import Mixture
from knockoffs.features.held_out import N_FOLDS, bounded, fold_of, simplest
from knockoffs.features.latent.margins import Affine, Curve, fit_affine, fit_curve
from knockoffs.features.latent.pooling import shrink_mixture


class ClassChoice(NamedTuple):
    """What held-out rows chose.

    Parameters
    ----------
    affine : bool
        Whether smooth columns are in their own units.
    mixture : Mixture
        The classes, over the coordinates in these units.
    values : dict
        Minus twice the held-out log density of all rows, for each number of classes tried; empty where no choice of
        the number was given.
    gain : float
        Held-out log density of a row that these units gain over the others; NaN where there are no smooth columns.
    """

    affine: bool
    mixture: Mixture
    values: dict[int, float]
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
    other way round. The units that are better with the first number are searched first, and the others no further
    than the number found in these.

    Parameters
    ----------
    X : array, shape (n, s)
        Complete values of the smooth columns.
    L : array, shape (n, D)
        Coordinates with smooth columns in normal scores.
    smooth : array of int, shape (s,)
        Coordinates of the smooth columns.
    numbers : sequence of int
    n_jobs : int, optional
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


def choose_units(X: NDArray) -> tuple[bool, float]:
    """Whether smooth columns stay in their own units where there is one class, and the held-out log density gained.

    Correlations count the same in both units, so that each column is judged by its own density.

    Parameters
    ----------
    X : array, shape (n, s)
        Complete values.
    """
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
    """Folds of the coordinates, in which the held-out rows have no part in the margins of the smooth columns."""
    return [_MakeFold(X, Z, smooth, affine, fold_of(len(Z)) == k) for k in range(N_FOLDS)]


@dataclass(frozen=True)
class _MakeFold:
    """Fold whose margins are fitted once, and whose rows are read whenever they are needed."""

    X: NDArray
    Z: NDArray
    smooth: NDArray[np.intp]
    affine: bool
    held: NDArray[np.bool_]

    @cached_property
    def margins(self) -> list[tuple[float, Affine | Curve]]:
        """Scale of each smooth column, and its margin in that scale: slopes then have a size of their own."""
        # in units of a power of two, which is exact: squares of extreme numbers would leave the range of floats
        units = np.exp2(np.frexp(np.abs(self.X).max(axis=0))[1] - 1)
        scales = [float((x / unit).std() * unit) for x, unit in zip(self.X.T, units, strict=True)]
        fit = fit_affine if self.affine else fit_curve
        return [(scale, fit(x[~self.held] / scale)) for scale, x in zip(scales, self.X.T, strict=True)]

    def __call__(self) -> Fold:
        rows, held = self.Z[~self.held], self.Z[self.held]
        log_slope = np.zeros(len(held))
        for i, x, (scale, margin) in zip(self.smooth.tolist(), self.X.T, self.margins, strict=True):
            x = x / scale
            rows[:, i] = margin.read(x[~self.held]).start[:, 0]
            held[:, i] = margin.read(x[self.held]).start[:, 0]
            log_slope += margin.log_slope(x[self.held])
        return Fold(rows, held, log_slope)
