"""Gaussian P^X: one Gaussian, or a mixture of several, K -> X (the paper's first example)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import ColumnsError, InputError, name_some
from knockoffs.features.conditionals import Conditionals, Resampler
from knockoffs.features.covariance import Estimate, shrink_covariance
from knockoffs.sampling.categorical import normalise_log_weights, sample_categorical
from knockoffs.sampling.conjugates.gaussian import Gaussian, GaussianLaw
from knockoffs.sampling.conjugates.low_rank import LowRankLaw
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL, check_covariance, solve_checked
from knockoffs.sampling.network import BayesianNetwork, Identity, Node
from knockoffs.sampling.pair import Pair, check_features
from knockoffs.sampling.sampler import KnockoffSampler, NetworkSampler, sample_knockoffs, sample_several
from knockoffs.table.memory import check_covariance_memory
from knockoffs.table.redundancy import constant_columns, dependent_columns, dependent_error, standardise

UNIT_RATIO = 2.0  # standard deviations that differ by more than this factor are in different units
ROWS_FOR_UNITS = 10  # rows from which a standard deviation shows the units
CRITERION_NAMES = {"aic": "AIC", "bic": "BIC", "held_out": "held-out likelihood"}


@dataclass(frozen=True)
class MixtureFeatures:
    """P^X = sum_k weights_k N(mean_k, S_k).

    ``gaussian_features`` and ``gaussian_mixture_features`` make it from given parameters, ``fit_gaussian`` and
    ``fit_gaussian_mixture`` from rows.
    """

    weights: NDArray  # shape (l,): mixture proportions
    laws: tuple[
        GaussianLaw | LowRankLaw, ...
    ]  # mean, covariance and D of each component, over the columns that vary freely
    feature_of: NDArray[np.intp]  # shape (n_columns,)
    # value of each other column, which is constant, by its place
    fixed: Mapping[int, float] = field(default_factory=dict)
    # value of the criterion for each number of components tried; empty for given parameters, or a given number
    criterion: dict[int, float] = field(default_factory=dict)
    chosen_by: str = ""  # the criterion that chose the number of components; empty where nothing was chosen
    rows: float = 0.0  # rows it was fitted to; 0 for given parameters
    intensities: tuple[float, ...] = ()  # how far the covariance of each component was shrunk towards its diagonal
    hidden: bool = True  # whether the component is a hidden node K, which is drawn given X. A single Gaussian has none

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.weights)

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        return len(self.feature_of)

    @cached_property
    def varying(self) -> NDArray[np.intp]:
        """Columns that vary freely."""
        return np.setdiff1d(np.arange(self.n_columns), list(self.fixed))

    def free(self, X: NDArray) -> NDArray:
        """Rows of the columns that vary freely."""
        return X[:, self.varying] if self.fixed else X

    def log_joint(self, X: NDArray) -> NDArray:
        """Log weights_k N(x; mean_k, S_k) of the columns that vary freely, shape (n, l)."""
        pairs = zip(self.weights, self.laws, strict=True)
        return np.column_stack([np.log(weight) + law.log_density(self.free(X)) for weight, law in pairs])

    def log_density(self, X: NDArray) -> NDArray:
        """Log density of the columns that vary freely, shape (n,); the others are point masses.

        A constant column adds nothing where it has its value, up to rounding, and minus infinity where it has not.
        """
        density = np.logaddexp.reduce(self.log_joint(X), axis=1)
        for j, value in self.fixed.items():
            density[np.abs(X[:, j] - value) > 1e-9 * abs(value)] = -np.inf
        return density

    def posterior(self, X: NDArray) -> NDArray:
        """P(K = k | X), shape (n, l), computed in log space."""
        return np.exp(normalise_log_weights(self.log_joint(X))[0])

    def sample(self, n: int, rng: Generator) -> NDArray:
        """Draw n rows, shape (n, n_columns)."""
        if self.hidden:
            K = rng.choice(self.n_components, size=n, p=self.weights)
            drawn = np.empty((n, len(self.varying)))
            for k, law in enumerate(self.laws):
                drawn[K == k] = law.sample_rows(int((K == k).sum()), rng)
        else:
            drawn = self.laws[0].sample_rows(n, rng)
        if not self.fixed:
            return drawn
        X = np.empty((n, self.n_columns))
        X[:, self.varying], X[:, list(self.fixed)] = drawn, list(self.fixed.values())
        return X

    def given_others(self, X: NDArray) -> Conditionals:
        """Laws of each column that varies freely (in the order of ``varying``) given the others of these."""
        columns = np.asarray(self.free(X), dtype=float)
        return Conditionals(self.laws, columns, np.asarray(self.weights))

    def conditional(self, j: int, X: NDArray, rng: Generator, n_draws: int) -> NDArray:
        """Draws of X_j given the other columns that vary freely, shape (n_draws, n); a fixed column is itself."""
        if not 0 <= j < X.shape[1]:
            raise InputError(f"j={j}: X has columns 0 to {X.shape[1] - 1}.")
        return self.resampler(X, rng).given_others(np.array([j]))(rng, n_draws)[..., 0]

    def conditional_together(self, columns: NDArray[np.intp], X: NDArray, rng: Generator, n_draws: int) -> NDArray:
        """Draws of several columns given the others that vary freely, shape (n_draws, n, n_columns)."""
        return self.resampler(X, rng).given_others(columns)(rng, n_draws)

    def resampler(self, X: NDArray, rng: Generator) -> Resampler:
        """Draws of columns given the others for conditional tests, each law computed once."""
        return Resampler(self.given_others(X), self.varying, X)

    def as_network(self) -> BayesianNetwork:
        """K -> X: K keeps its value, X moves by the Gaussian conjugate of its component; X alone without K."""
        return self._network

    @cached_property
    def _network(self) -> BayesianNetwork:
        nodes = [Node("K", (), Identity())] if self.hidden else []
        parent = "K" if self.hidden else None
        conjugate = Gaussian(self.laws, component=parent)
        nodes.append(Node("X", (parent,) if parent else (), conjugate, columns=self.varying.tolist()))
        if self.fixed:
            nodes.append(Node("fixed", (), Identity(), columns=list(self.fixed)))
        sample_hidden = self._sample_component if self.hidden else None
        return BayesianNetwork(tuple(nodes), sample_hidden, self.feature_of, checked=True)

    def _sample_component(self, X: NDArray, rng: Generator) -> dict[str, NDArray]:
        """K ~ P(K | X) for each row."""
        return {"K": sample_categorical(self.log_joint(X), rng)}

    def as_sampler(self) -> KnockoffSampler:
        """Sampler of Algorithm 1; a constant column may share its feature with others."""
        if not self.fixed:
            return NetworkSampler(self._network)
        inner = replace(self, fixed={}, feature_of=np.arange(len(self.varying)))
        return FreeColumns(inner.as_network(), self.varying, self.feature_of)

    def coordinates(self, X: NDArray) -> NDArray:
        """Rows without missing cells, of the columns that vary freely; no rows of a mixture."""
        columns = X[:, self.varying]
        return columns[:0] if self.hidden else columns[~np.isnan(columns).any(axis=1)]

    def regroup(self, feature_of: NDArray[np.intp], diagonal: str) -> MixtureFeatures:
        """Return the same law with D for knockoffs of other features, shape (n_columns,)."""
        inner = compact(feature_of[self.varying])
        laws = tuple(gaussian_law(law.mean, law.covariance, diagonal, inner) for law in self.laws)
        return replace(self, laws=laws, feature_of=feature_of)

    def with_moments(self, found: Estimate, rows: float, diagonal: str) -> MixtureFeatures:
        """Gaussian with other moments of ``coordinates``, and its own D."""
        unit = np.sqrt(np.diagonal(found.covariance))
        inner, centre = compact(self.feature_of[self.varying]), np.zeros(len(unit))
        law = gaussian_law(centre, found.covariance / np.outer(unit, unit), diagonal, inner)
        return replace(self, laws=(in_units(law, found.mean, unit),), rows=rows, intensities=(found.intensity,))

    def say(self, names: Sequence[str] | None = None) -> str:
        """Sentence that says what P^X is and how it was fitted."""
        what = "a Gaussian" if self.n_components == 1 else f"a mixture of {self.n_components} Gaussians"
        words = [f"P^X is {what} of {len(self.varying)} columns"]
        if self.criterion:
            tried = f"{min(self.criterion)} to {max(self.criterion)}"
            words.append(f" (chosen by {CRITERION_NAMES[self.chosen_by]} among {tried} components)")
        words.append(f", fitted to {self.rows:,.0f} rows" if self.rows else " with given parameters")
        if self.rows and self.n_components > 1:
            words.append(", " + ", ".join(f"{self.rows * weight:,.0f}" for weight in self.weights) + " a component")
        if any(self.intensities):
            shrunk = ", ".join(f"{intensity:.2g}" for intensity in self.intensities)
            whose = "its covariance was" if self.n_components == 1 else "their covariances were"
            words.append(f"; {whose} shrunk towards the diagonal by {shrunk}")
        if self.fixed:
            which = name_some(self.fixed if names is None else [names[j] for j in self.fixed])
            words.append(f"; columns {which} are constant" if len(self.fixed) > 1 else f"; column {which} is constant")
        return "".join(words) + "."


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

    def sample_several(self, X: NDArray, m: int, rng: Generator) -> Pair:
        """X and m knockoffs of it."""
        copies = np.repeat(X.astype(float)[None], m, axis=0)
        copies[:, :, self.varying] = sample_several(self.network, X[:, self.varying], m, rng)
        return Pair.of([X, *copies], self.feature_of)


def gaussian_law(mean: NDArray, covariance: NDArray, diagonal: str, feature_of: NDArray[np.intp]) -> GaussianLaw:
    """Gaussian with its D."""
    return GaussianLaw(mean, covariance, solve_checked(check_covariance(covariance), diagonal, feature_of))


def gaussian_features(
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    diagonal: str = DEFAULT_DIAGONAL,
    feature_of: ArrayLike | None = None,
) -> MixtureFeatures:
    """P^X = N(mean, covariance) with given parameters.

    Parameters
    ----------
    mean : array-like, shape (d,)
    covariance : array-like, shape (d, d)
    diagonal : str
        Which matrix D: see ``DIAGONALS``.
    feature_of : array-like of int, shape (d,), optional
        Feature of each column.

    >>> model = gaussian_features([0, 0], [[1, 0.5], [0.5, 1]])
    >>> model.laws[0].D.shape
    (2, 2)
    """
    Sigma = check_covariance(covariance, "covariance")
    mu = np.asarray(mean, dtype=float)
    if mu.shape != (len(Sigma),) or not np.isfinite(mu).all():
        raise InputError(f"mean has shape {mu.shape}: expected {len(Sigma)} finite numbers, one for each column.")
    owners = check_features(feature_of, len(Sigma))
    law = gaussian_law(mu, Sigma, diagonal, owners)
    return MixtureFeatures(np.ones(1), (law,), owners, intensities=(0.0,), hidden=False)


def check_covariance_units(covariance: ArrayLike, X: NDArray) -> None:
    """Refuse a covariance whose standard deviations are not those of the columns of X, up to a factor of 2.

    Columns that are constant in X, and tables of fewer than 10 rows, say nothing about units.
    """
    if len(X) < ROWS_FOR_UNITS:
        return
    theirs, own = np.sqrt(np.diagonal(np.asarray(covariance, dtype=float))), X.std(axis=0)
    with np.errstate(divide="ignore"):
        wrong = np.flatnonzero((own > 0) & (np.abs(np.log(own / theirs)) > np.log(UNIT_RATIO)))
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
    diagonal: str = DEFAULT_DIAGONAL,
    feature_of: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> MixtureFeatures:
    """One Gaussian with the mean and covariance of the rows, shrunk (with a warning) if rows are few.

    Parameters
    ----------
    X : array, shape (n, d)
    rng, n_jobs
        Not used: the fit is not random.
    diagonal : str
        Which matrix D: see ``DIAGONALS``.
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
    laws = (in_units(law, table.centre, table.scale),)
    return MixtureFeatures(
        np.ones(1), laws, owners, table.fixed, rows=float(len(X)), intensities=(intensity,), hidden=False
    )


def compact(owners: NDArray[np.intp]) -> NDArray[np.intp]:
    """Renumber features without gaps."""
    return np.unique(owners, return_inverse=True)[1]


def in_units(law: GaussianLaw, centre: NDArray, scale: NDArray) -> GaussianLaw:
    """Law of centre + scale * Z when Z has the law given; D moves along exactly."""
    units = np.outer(scale, scale)
    return GaussianLaw(centre + scale * law.mean, law.covariance * units, law.D * units)


# Columns that a continuous law cannot hold: constants, and columns that others determine exactly


@dataclass(frozen=True)
class Columns:
    """Columns of a table that a continuous law is fitted to, standardised, and those that it leaves out."""

    Z: NDArray  # shape (n, d): the d columns that vary freely, as (x - centre) / scale
    correlation: NDArray  # shape (d, d): Z^T Z / n
    centre: NDArray  # shape (d,)
    scale: NDArray  # shape (d,)
    varying: NDArray[np.intp]  # shape (d,): their places in the table
    fixed: dict[int, float]  # value of each column that is constant, by its place


def check_numbers(X: object) -> NDArray:
    """Array of numbers, shape (n, n_columns); anything else is refused.

    >>> check_numbers([["a"]])
    Traceback (most recent call last):
    knockoffs.errors.InputError: X has dtype <U1: a covariance is of numbers.
    """
    values = np.asarray(X)
    if values.ndim != 2:
        raise InputError(f"X has shape {values.shape}: expected a row for each sample and a column for each feature.")
    if values.dtype.kind not in "biuf":
        raise InputError(f"X has dtype {values.dtype}: a covariance is of numbers.")
    return values


def split_columns(X: NDArray, *, names: Sequence[str] | None = None) -> Columns:
    """Columns that vary freely, standardised, apart from constant ones; refuses columns that others determine.

    Knockoffs of columns that determine one another would have to obey the same equation, which a fitted covariance
    hides behind rounding or shrinkage: a smallest set of them is named, without which the rest is free. Refused are
    also fewer than 3 rows, missing or infinite values, and tables of which no column varies.
    """
    if len(X) < 3:
        raise InputError(f"X has {len(X)} rows: a covariance needs at least 3.")
    finite = np.isfinite(X.sum(axis=0, dtype=float))  # a sum may overflow, so what it accuses is looked at
    missing = np.flatnonzero(~finite)
    missing = missing[~np.isfinite(X[:, missing]).all(axis=0)]
    if missing.size:
        raise ColumnsError(missing, "columns", "have missing or infinite values: fill them or drop the rows first.")
    constant = constant_columns(X)
    varying = np.setdiff1d(np.arange(X.shape[1]), constant)
    if not varying.size:
        raise InputError("every column of X is constant: there is nothing to select from.")
    check_covariance_memory(len(varying))
    own = np.take(X, varying, axis=1).astype(float, copy=False)  # the one copy of X that a fit makes
    Z, centre, scale = standardise(own, copy=False)
    correlation = Z.T @ Z / len(Z)
    relations = {int(varying[j]): varying[of] for j, of in dependent_columns(Z, correlation).items()}
    if relations:
        raise dependent_error(relations, names, ", or pass dependent='drop' to the selector (--dependent drop)")
    return Columns(Z, correlation, centre, scale, varying, {int(j): float(X[0, j]) for j in constant})
