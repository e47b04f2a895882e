"""Gaussian P^X: one Gaussian, or a mixture of several, K -> X (the paper's first example)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import ColumnsError, InputError
from knockoffs.features import kept_per_how
from knockoffs.features.conditionals import Conditionals
from knockoffs.features.covariance import Estimate, shrink_covariance
from knockoffs.sampling.categorical import normalise_log_weights, sample_categorical
from knockoffs.sampling.conjugates.gaussian import Gaussian, GaussianLaw
from knockoffs.sampling.conjugates.low_rank import LowRankLaw
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL, check_covariance, solve_checked
from knockoffs.sampling.network import BayesianNetwork, Identity, Node
from knockoffs.sampling.pair import check_features
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
    laws: tuple[GaussianLaw | LowRankLaw, ...]  # mean, covariance and D of each component
    feature_of: NDArray[np.intp]  # shape (n_columns,)
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

    def log_joint(self, X: NDArray) -> NDArray:
        """Log weights_k N(x; mean_k, S_k), shape (n, l)."""
        pairs = zip(self.weights, self.laws, strict=True)
        return np.column_stack([np.log(weight) + law.log_density(X) for weight, law in pairs])

    def log_density(self, X: NDArray) -> NDArray:
        """Log density of each row, shape (n,)."""
        return np.logaddexp.reduce(self.log_joint(X), axis=1)

    def posterior(self, X: NDArray) -> NDArray:
        """P(K = k | X), shape (n, l), computed in log space."""
        return np.exp(normalise_log_weights(self.log_joint(X))[0])

    def sample(self, n: int, rng: Generator) -> NDArray:
        """Draw n rows, shape (n, n_columns)."""
        if not self.hidden:
            return self.laws[0].sample_rows(n, rng)
        K = rng.choice(self.n_components, size=n, p=self.weights)
        X = np.empty((n, self.n_columns))
        for k, law in enumerate(self.laws):
            X[K == k] = law.sample_rows(int((K == k).sum()), rng)
        return X

    def conditional(self, j: int, X: NDArray, rng: Generator, n_draws: int) -> NDArray:
        """Draws of X_j given the other columns, shape (n_draws, n)."""
        if not 0 <= j < X.shape[1]:
            raise InputError(f"j={j}: X has columns 0 to {X.shape[1] - 1}.")
        return self.resampler(X, rng).given_others(np.array([j]))(rng, n_draws)[..., 0]

    def resampler(self, X: NDArray, rng: Generator) -> Conditionals:
        """Draws of columns given the others for conditional tests, each law computed once."""
        return Conditionals(self.laws, np.asarray(X, dtype=float), np.asarray(self.weights))

    @kept_per_how
    def as_network(self) -> BayesianNetwork:
        """K -> X: K keeps its value, X moves by the Gaussian conjugate of its component; X alone without K."""
        nodes = [Node("K", (), Identity())] if self.hidden else []
        parent = "K" if self.hidden else None
        conjugate = Gaussian(self.laws, component=parent)
        nodes.append(Node("X", (parent,) if parent else (), conjugate, columns=range(self.n_columns)))
        sample_hidden = self._sample_component if self.hidden else None
        return BayesianNetwork(tuple(nodes), sample_hidden, self.feature_of, checked=True)

    def _sample_component(self, X: NDArray, rng: Generator) -> dict[str, NDArray]:
        """K ~ P(K | X) for each row."""
        return {"K": sample_categorical(self.log_joint(X), rng)}

    def coordinates(self, X: NDArray) -> NDArray:
        """Rows without missing cells; no rows of a mixture."""
        return X[:0] if self.hidden else X[~np.isnan(X).any(axis=1)]

    def regroup(self, feature_of: NDArray[np.intp], diagonal: str) -> MixtureFeatures:
        """Return the same law with D for knockoffs of other features, shape (n_columns,)."""
        laws = tuple(gaussian_law(law.mean, law.covariance, diagonal, feature_of) for law in self.laws)
        return replace(self, laws=laws, feature_of=feature_of)

    def with_moments(self, found: Estimate, rows: float, diagonal: str) -> MixtureFeatures:
        """Gaussian with other moments of ``coordinates``, and its own D."""
        unit = np.sqrt(np.diagonal(found.covariance))
        law = gaussian_law(np.zeros(len(unit)), found.covariance / np.outer(unit, unit), diagonal, self.feature_of)
        return replace(self, laws=(in_units(law, found.mean, unit),), rows=rows, intensities=(found.intensity,))

    def say(self, names: Sequence[str] | None = None) -> str:
        """Sentence that says what P^X is and how it was fitted."""
        what = "a Gaussian" if self.n_components == 1 else f"a mixture of {self.n_components} Gaussians"
        words = [f"P^X is {what} of {self.n_columns} columns"]
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
        return "".join(words) + "."


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
    table = free_columns(X, names=names)
    rest = table.Z.mean(axis=0)  # what rounding left of the means: nothing, but for columns far from 0 for their spread
    correlation = table.correlation - np.outer(rest, rest)
    mean, correlation, intensity = shrink_covariance(table.Z, np.ones(len(X)), rest, correlation, what="the Gaussian")
    law = in_units(gaussian_law(mean, correlation, diagonal, owners), table.centre, table.scale)
    return MixtureFeatures(np.ones(1), (law,), owners, rows=float(len(X)), intensities=(intensity,), hidden=False)


def compact(owners: NDArray[np.intp]) -> NDArray[np.intp]:
    """Renumber features without gaps."""
    return np.unique(owners, return_inverse=True)[1]


def in_units(law: GaussianLaw, centre: NDArray, scale: NDArray) -> GaussianLaw:
    """Law of centre + scale * Z when Z has the law given; D moves along exactly."""
    units = np.outer(scale, scale)
    return GaussianLaw(centre + scale * law.mean, law.covariance * units, law.D * units)


class Columns(NamedTuple):
    """Columns of a table that a continuous law is fitted to, standardised."""

    Z: NDArray  # shape (n, d): (x - centre) / scale
    correlation: NDArray  # shape (d, d): Z^T Z / n
    centre: NDArray  # shape (d,)
    scale: NDArray  # shape (d,)


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


def free_columns(X: NDArray, *, names: Sequence[str] | None = None) -> Columns:
    """Columns standardised; refuses what a continuous law cannot hold.

    Knockoffs of columns that determine one another would have to obey the same equation, which a fitted covariance
    hides behind rounding or shrinkage: a smallest set of them is named, without which the rest is free. Refused are
    also constant columns, missing or infinite values, and fewer than 3 rows.
    """
    if len(X) < 3:
        raise InputError(f"X has {len(X)} rows: a covariance needs at least 3.")
    finite = np.isfinite(X.sum(axis=0, dtype=float))  # a sum may overflow, so what it accuses is looked at
    missing = np.flatnonzero(~finite)
    missing = missing[~np.isfinite(X[:, missing]).all(axis=0)]
    if missing.size:
        raise ColumnsError(missing, "columns", "have missing or infinite values: fill them or drop the rows first.")
    constant = constant_columns(X)
    if constant.size:
        raise ColumnsError(constant, "columns", "are constant: drop them.")
    check_covariance_memory(X.shape[1])
    Z, centre, scale = standardise(
        np.array(X, dtype=float, order="C"), copy=False
    )  # the one copy of X that a fit makes
    correlation = Z.T @ Z / len(Z)
    relations = dependent_columns(Z, correlation)
    if relations:
        raise dependent_error(relations, names, ", or pass dependent='drop' to the selector (--dependent drop)")
    return Columns(Z, correlation, centre, scale)
