"""Gaussian P^X: one Gaussian, or a mixture of several, K -> X (the paper's first example)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import ColumnsError, InputError, name_some
from knockoffs.features.columns import Fixed, check_numbers, split_columns
from knockoffs.features.conditionals import Conditionals, Resampler
from knockoffs.features.covariance import Estimate, shrink_covariance
from knockoffs.sampling.categorical import normalise_log_weights, sample_categorical
from knockoffs.sampling.conjugates.gaussian import Gaussian, GaussianLaw
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL, check_covariance, solve_checked
from knockoffs.sampling.diagonal.representatives import ViaRepresentatives
from knockoffs.sampling.network import BayesianNetwork, Identity, Node
from knockoffs.sampling.pair import Pair, check_features
from knockoffs.sampling.sampler import KnockoffSampler, NetworkSampler, sample_knockoffs, sample_several

UNIT_RATIO = 2.0  # standard deviations that differ by more than this factor are in different units
ROWS_FOR_UNITS = 10  # rows from which a standard deviation shows the units
CRITERION_NAMES = {"aic": "AIC", "bic": "BIC", "held_out": "held-out likelihood"}


@dataclass(frozen=True)
class MixtureFeatures:
    """P^X = sum_k weights_k N(mean_k, S_k).

    ``gaussian_features`` and ``gaussian_mixture_features`` make it from given parameters, ``fit_gaussian`` and
    ``fit_gaussian_mixture`` from rows.

    Parameters
    ----------
    weights : array, shape (l,)
        Mixture proportions.
    laws : tuple of GaussianLaw
        Mean, covariance and D of each component, over the columns that vary freely.
    fixed : Fixed
        The others, which are constant.
    feature_of : array of int, shape (n_columns,)
    criterion : dict
        Value of the criterion for each number of components tried; empty for given parameters, or a given number.
    chosen_by : str
        The criterion that chose the number of components; empty where nothing was chosen.
    rows : float
        Rows it was fitted to; 0 for given parameters.
    intensities : tuple of float
        How far the covariance of each component was shrunk towards its diagonal.
    hidden : bool
        Whether the component is a hidden node K, which is drawn given X. A single Gaussian has none.
    """

    weights: NDArray
    laws: tuple[GaussianLaw, ...]
    fixed: Fixed
    feature_of: NDArray[np.intp]
    criterion: dict[int, float] = field(default_factory=dict)
    chosen_by: str = ""
    rows: float = 0.0
    intensities: tuple[float, ...] = ()
    hidden: bool = True

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
        return np.setdiff1d(np.arange(self.n_columns), self.fixed.columns)

    def free(self, X: NDArray) -> NDArray:
        """Rows of the columns that vary freely."""
        return X[:, self.varying] if len(self.fixed.columns) else X

    def log_joint(self, X: NDArray) -> NDArray:
        """Log weights_k N(x; mean_k, S_k) of the columns that vary freely, shape (n, l)."""
        pairs = zip(self.weights, self.laws, strict=True)
        return np.column_stack([np.log(weight) + law.log_density(self.free(X)) for weight, law in pairs])

    def log_density(self, X: NDArray) -> NDArray:
        """Log density of the columns that vary freely, shape (n,); the others are point masses.

        A constant column adds nothing where it has its value, and minus infinity where it has not.
        """
        density = np.logaddexp.reduce(self.log_joint(X), axis=1)
        return np.where(self.fixed.hold(X), density, -np.inf) if len(self.fixed.columns) else density

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
        if not len(self.fixed.columns):
            return drawn
        X = np.empty((n, self.n_columns))
        X[:, self.varying], X[:, self.fixed.columns] = drawn, self.fixed.values
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
        if len(self.fixed.columns):
            nodes.append(Node("fixed", (), Identity(), columns=self.fixed.columns.tolist()))
        sample_hidden = self._sample_component if self.hidden else None
        return BayesianNetwork(tuple(nodes), sample_hidden, self.feature_of, checked=True)

    def _sample_component(self, X: NDArray, rng: Generator) -> dict[str, NDArray]:
        """K ~ P(K | X) for each row."""
        return {"K": sample_categorical(self.log_joint(X), rng)}

    def as_sampler(self) -> KnockoffSampler:
        """Sampler of Algorithm 1; a constant column may share its feature with others."""
        if not len(self.fixed.columns):
            return NetworkSampler(self._network)
        inner = replace(self, fixed=Fixed.none(), feature_of=np.arange(len(self.varying)))
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

    def with_moments(self, found: Estimate, rows: float, diagonal: str | ViaRepresentatives) -> MixtureFeatures:
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
        constant = self.fixed.columns
        if constant.size:
            which = name_some(constant if names is None else [names[j] for j in constant])
            words.append(f"; columns {which} are constant" if constant.size > 1 else f"; column {which} is constant")
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


def gaussian_law(
    mean: NDArray, covariance: NDArray, diagonal: str | ViaRepresentatives, feature_of: NDArray[np.intp]
) -> GaussianLaw:
    """Gaussian with its D; through representatives the covariance is another, which D belongs to."""
    if isinstance(diagonal, ViaRepresentatives):
        return GaussianLaw(mean, *diagonal.solve(check_covariance(covariance), feature_of))
    return GaussianLaw(mean, covariance, solve_checked(check_covariance(covariance), diagonal, feature_of))


def single_gaussian(
    law: GaussianLaw, fixed: Fixed, feature_of: NDArray[np.intp], rows: float = 0.0, intensity: float = 0.0
) -> MixtureFeatures:
    """P^X of one component, which needs no hidden node."""
    return MixtureFeatures(np.ones(1), (law,), fixed, feature_of, rows=rows, intensities=(intensity,), hidden=False)


def gaussian_features(
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    diagonal: str | ViaRepresentatives = DEFAULT_DIAGONAL,
    feature_of: ArrayLike | None = None,
) -> MixtureFeatures:
    """P^X = N(mean, covariance) with given parameters.

    Parameters
    ----------
    mean : array-like, shape (d,)
    covariance : array-like, shape (d, d)
    diagonal : str or ViaRepresentatives
        Which matrix D: see ``DIAGONALS``; or through representatives of groups.
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
    return single_gaussian(gaussian_law(mu, Sigma, diagonal, owners), Fixed.none(), owners)


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
    diagonal: str | ViaRepresentatives = DEFAULT_DIAGONAL,
    feature_of: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> MixtureFeatures:
    """One Gaussian with the mean and covariance of the rows, shrunk (with a warning) if rows are few.

    Parameters
    ----------
    X : array, shape (n, d)
    rng, n_jobs
        Not used: the fit is not random.
    diagonal : str or ViaRepresentatives
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
    return single_gaussian(in_units(law, table.centre, table.scale), table.fixed, owners, float(len(X)), intensity)


def compact(owners: NDArray[np.intp]) -> NDArray[np.intp]:
    """Renumber features without gaps."""
    return np.unique(owners, return_inverse=True)[1]


def in_units(law: GaussianLaw, centre: NDArray, scale: NDArray) -> GaussianLaw:
    """Law of centre + scale * Z when Z has the law given; D moves along exactly."""
    units = np.outer(scale, scale)
    return GaussianLaw(centre + scale * law.mean, law.covariance * units, law.D * units)
