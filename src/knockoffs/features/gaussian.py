"""One Gaussian: P^X = N(mean, S), the mixture with one component."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import ColumnsError, InputError, name_some
from knockoffs.features.columns import Fixed, check_numbers, split_columns
from knockoffs.features.conditionals import Conditionals, Resampler
from knockoffs.features.shrinkage import Estimate, shrink_covariance
from knockoffs.sampling.conjugates.gaussian import Gaussian, GaussianLaw
from knockoffs.sampling.conjugates.identity import Identity
from knockoffs.sampling.copies import Copies
from knockoffs.sampling.covariance import check_covariance
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL, solve_checked
from knockoffs.sampling.diagonal.representatives import ViaRepresentatives
from knockoffs.sampling.network import BayesianNetwork, Node
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import KnockoffSampler, NetworkSampler, sample_knockoffs
from knockoffs.sampling.several import sample_several
from knockoffs.sampling.swap import check_features

UNITS = 2.0  # standard deviations that differ by more than this factor are in different units
ENOUGH = 10  # rows from which on a standard deviation tells the units


@dataclass(frozen=True)
class GaussianFeatures:
    """P^X = N(mean, covariance); `gaussian_features` makes it from given parameters, `fit_gaussian` from rows.

    Parameters
    ----------
    law : GaussianLaw
        Mean, covariance and D of the columns that vary freely.
    fixed : Fixed
        The others, which are constant.
    feature_of : array of int, shape (n_columns,)
    rows : float
        Rows it was fitted to; 0 for given parameters.
    intensity : float
        How far the covariance was shrunk towards its diagonal.
    """

    law: GaussianLaw
    fixed: Fixed
    feature_of: NDArray[np.intp]
    rows: float = 0.0
    intensity: float = 0.0

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        return len(self.feature_of)

    @cached_property
    def varying(self) -> NDArray[np.intp]:
        """Columns that vary freely."""
        return free_columns(self.fixed, self.n_columns)

    def log_density(self, X: NDArray) -> NDArray:
        """Log density of the columns that vary freely, shape (n,); the others are point masses.

        A constant column adds nothing where it has its value, and minus infinity where it has not.
        """
        columns = X[:, self.varying] if len(self.fixed.columns) else X
        return with_fixed(self.law.log_density(columns), self.fixed, X)

    def sample(self, n: int, rng: Generator) -> NDArray:
        """Draw n rows, shape (n, n_columns)."""
        return add_fixed(self.law.sample_rows(n, rng), self.fixed, self.varying)

    def given_others(self, X: NDArray) -> Conditionals:
        """Laws of each column that varies freely (in the order of ``varying``) given the others of these."""
        columns = np.asarray(X[:, self.varying], dtype=float)
        return Conditionals((self.law,), columns, np.zeros((len(X), 1)))

    def conditional(self, j: int, X: NDArray, rng: Generator, n_draws: int) -> NDArray:
        """Draws of X_j given the other columns that vary freely, shape (n_draws, n); a fixed column is itself."""
        return draw_conditional(self.resampler(X, rng), j, rng, n_draws)

    def conditional_together(self, columns: NDArray[np.intp], X: NDArray, rng: Generator, n_draws: int) -> NDArray:
        """Draws of several columns given the others that vary freely, shape (n_draws, n, n_columns)."""
        return self.resampler(X, rng).given_others(columns)(rng, n_draws)

    def resampler(self, X: NDArray, rng: Generator) -> Resampler:
        """Draws of columns given the others for conditional tests, each law computed once."""
        return Resampler(self.given_others(X), self.varying, X)

    def as_network(self) -> BayesianNetwork:
        """One observed node, X, and no hidden one."""
        return self._network

    @cached_property
    def _network(self) -> BayesianNetwork:
        X = Node("X", (), Gaussian((self.law,)), columns=self.varying.tolist())
        return BayesianNetwork((X, *fixed_node(self.fixed)), feature_of=self.feature_of, checked=True)

    def as_sampler(self) -> KnockoffSampler:
        """Sampler of Algorithm 1; a constant column may share its feature with others."""
        if not len(self.fixed.columns):
            return NetworkSampler(self._network)
        inner = Node("X", (), Gaussian((self.law,)), columns=range(len(self.varying)))
        return FreeColumns(BayesianNetwork((inner,)), self.varying, self.feature_of)

    def coordinates(self, X: NDArray) -> NDArray:
        """Rows without missing cells, of the columns that vary freely, by whose moments P^X is told."""
        columns = X[:, self.varying]
        return columns[~np.isnan(columns).any(axis=1)]

    def with_moments(self, found: Estimate, rows: float, diagonal: str | ViaRepresentatives) -> GaussianFeatures:
        """P^X with other moments of ``coordinates``, and D anew."""
        unit = np.sqrt(np.diagonal(found.covariance))
        inner, centre = compact(self.feature_of[self.varying]), np.zeros(len(unit))
        law = gaussian_law(centre, found.covariance / np.outer(unit, unit), diagonal, inner)
        return replace(self, law=in_units(law, found.mean, unit), rows=rows, intensity=found.intensity)

    def say(self, names: Sequence[str] | None = None) -> str:
        """Tell in one sentence what P^X is and how it was fitted."""
        fitted = f", fitted to {self.rows:,.0f} rows" if self.rows else " with given parameters"
        shrunk = f"; its covariance was shrunk towards the diagonal by {self.intensity:.2g}" if self.intensity else ""
        return f"P^X is a Gaussian of {len(self.varying)} columns{fitted}{shrunk}{say_fixed(self.fixed, names)}."


@dataclass(frozen=True)
class FreeColumns:
    """Knockoffs of the columns that vary; the others are constant, and keep their value."""

    network: BayesianNetwork
    varying: NDArray[np.intp]
    feature_of: NDArray[np.intp]

    def sample(self, X: NDArray, rng: Generator) -> Pair:
        """X and its knockoffs."""
        if X.ndim != 2 or X.shape[1] != len(self.feature_of):
            raise InputError(f"X has shape {X.shape}: P^X has {len(self.feature_of)} columns.")
        X_tilde = X.astype(float)
        X_tilde[:, self.varying] = sample_knockoffs(self.network, X[:, self.varying], rng)
        return Pair(X, X_tilde, self.feature_of)

    def sample_several(self, X: NDArray, m: int, rng: Generator) -> Copies:
        """X and m knockoffs of it."""
        copies = np.repeat(X.astype(float)[None], m, axis=0)
        copies[:, :, self.varying] = sample_several(self.network, X[:, self.varying], m, rng)
        return Copies((X, *copies), self.feature_of)


def free_columns(fixed: Fixed, n_columns: int) -> NDArray[np.intp]:
    """Columns that are not constant."""
    return np.setdiff1d(np.arange(n_columns), fixed.columns)


def fixed_node(fixed: Fixed) -> tuple[Node, ...]:
    """Node of the columns that keep their value; none if there are none."""
    return (Node("fixed", (), Identity(), columns=fixed.columns.tolist()),) if len(fixed.columns) else ()


def with_fixed(log_density: NDArray, fixed: Fixed, X: NDArray) -> NDArray:
    """Minus infinity in rows where a fixed column does not have its value."""
    return np.where(fixed.hold(X), log_density, -np.inf) if len(fixed.columns) else log_density


def add_fixed(drawn: NDArray, fixed: Fixed, varying: NDArray[np.intp]) -> NDArray:
    """Rows of all columns from rows of those that vary."""
    if not len(fixed.columns):
        return drawn
    X = np.empty((len(drawn), len(varying) + len(fixed.columns)))
    X[:, varying], X[:, fixed.columns] = drawn, fixed.values
    return X


def draw_conditional(resampler: Resampler, j: int, rng: Generator, n_draws: int) -> NDArray:
    """Draws of column j given the others, shape (n_draws, n)."""
    if not 0 <= j < resampler.X.shape[1]:
        raise InputError(f"j={j}: X has columns 0 to {resampler.X.shape[1] - 1}.")
    return resampler.given_others(np.array([j]))(rng, n_draws)[..., 0]


def say_fixed(fixed: Fixed, names: Sequence[str] | None) -> str:
    """Constant columns, as the end of a sentence."""
    columns = fixed.columns
    if not columns.size:
        return ""
    which = name_some(columns if names is None else [names[j] for j in columns])
    return f"; column{'s' if columns.size > 1 else ''} {which} {'are' if columns.size > 1 else 'is'} constant"


def gaussian_law(
    mean: NDArray, covariance: NDArray, diagonal: str | ViaRepresentatives, feature_of: NDArray[np.intp]
) -> GaussianLaw:
    """Gaussian with its matrix D solved; through representatives it is another, of which D is a part."""
    if isinstance(diagonal, ViaRepresentatives):
        return GaussianLaw(mean, *diagonal.solve(check_covariance(covariance), feature_of))
    return GaussianLaw(mean, covariance, solve_checked(check_covariance(covariance), diagonal, feature_of))


def gaussian_features(
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    diagonal: str | ViaRepresentatives = DEFAULT_DIAGONAL,
    feature_of: ArrayLike | None = None,
) -> GaussianFeatures:
    """P^X with given parameters.

    Parameters
    ----------
    mean : array-like, shape (d,)
    covariance : array-like, shape (d, d)
    diagonal : str or Through
        Which matrix D: see ``DIAGONALS``; or through representatives of groups.
    feature_of : array-like of int, shape (d,), optional
        Feature of each column.

    >>> model = gaussian_features([0, 0], [[1, 0.5], [0.5, 1]])
    >>> model.law.D.shape
    (2, 2)
    """
    Sigma = check_covariance(covariance, "covariance")
    mu = np.asarray(mean, dtype=float)
    if mu.shape != (len(Sigma),) or not np.isfinite(mu).all():
        raise InputError(f"mean has shape {mu.shape}: expected {len(Sigma)} finite numbers, one for each column.")
    owners = check_features(feature_of, len(Sigma))
    return GaussianFeatures(gaussian_law(mu, Sigma, diagonal, owners), Fixed.none(), owners)


def check_covariance_units(covariance: ArrayLike, X: NDArray) -> None:
    """Refuse a covariance whose standard deviations are not those of the columns of X, up to a factor of 2.

    Columns that are constant in X, and tables of fewer than 10 rows, say nothing about units.

    Parameters
    ----------
    covariance : array-like, shape (d, d)
    X : array, shape (n, d)

    Raises
    ------
    ColumnsError
        Names the columns, with the two standard deviations of the first.
    """
    if len(X) < ENOUGH:
        return
    theirs, own = np.sqrt(np.diagonal(np.asarray(covariance, dtype=float))), X.std(axis=0)
    with np.errstate(divide="ignore"):
        wrong = np.flatnonzero((own > 0) & (np.abs(np.log(own / theirs)) > np.log(UNITS)))
    if wrong.size:
        j = wrong[0]
        raise ColumnsError(
            wrong,
            "the covariance is in other units than X in columns",
            f"(standard deviation {theirs[j]:.3g} in the covariance and {own[j]:.3g} in X for the first of them). Give "
            "both in the same units: a correlation matrix is for columns divided by their standard deviations.",
        )


def fit_gaussian(
    X: NDArray,
    *,
    rng: Generator | None = None,
    n_jobs: int | None = None,
    diagonal: str | ViaRepresentatives = DEFAULT_DIAGONAL,
    feature_of: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> GaussianFeatures:
    """Fit one Gaussian: mean and covariance of the rows, shrunk (and said so) if rows are few.

    Parameters
    ----------
    X : array, shape (n, d)
    rng, n_jobs
        Not used: the fit is not random.
    diagonal : str or Through
        Which matrix D: see ``DIAGONALS``; or through representatives of groups.
    feature_of : array-like of int, shape (d,), optional
        Feature of each column.
    names : sequence of str, optional
        Of the columns, for messages.
    """
    X = check_numbers(X)
    owners = check_features(feature_of, X.shape[1])
    table = split_columns(X, names=names)
    rest = table.Z.mean(axis=0)  # what rounding left of the means: nothing, but for columns far from 0 for their spread
    correlation = table.correlation - np.outer(rest, rest)
    mean, correlation, intensity = shrink_covariance(table.Z, np.ones(len(X)), rest, correlation, what="the Gaussian")
    law = gaussian_law(mean, correlation, diagonal, compact(owners[table.varying]))
    in_X = in_units(law, table.centre, table.scale)
    return GaussianFeatures(in_X, table.fixed, owners, float(len(X)), intensity)


def compact(owners: NDArray[np.intp]) -> NDArray[np.intp]:
    """Renumber features without gaps."""
    return np.unique(owners, return_inverse=True)[1]


def in_units(law: GaussianLaw, centre: NDArray, scale: NDArray) -> GaussianLaw:
    """Law of centre + scale * Z when Z has the law given; D moves along exactly."""
    units = np.outer(scale, scale)
    return GaussianLaw(centre + scale * law.mean, law.covariance * units, law.D * units)
