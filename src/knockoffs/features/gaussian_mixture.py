"""Gaussian mixtures: K -> X, the paper's first example."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import ColumnsError, InputError, KnockoffWarning
from knockoffs.features.columns import Fixed, check_numbers, split_columns
from knockoffs.features.conditionals import Conditionals, Resampler
from knockoffs.features.em import N_STARTS, collapsed, search_mixture
from knockoffs.features.em_steps import MAX_STEPS, Mixture
from knockoffs.features.gaussian import (
    FreeColumns,
    add_fixed,
    compact,
    draw_conditional,
    fixed_node,
    free_columns,
    gaussian_law,
    in_units,
    say_fixed,
    with_fixed,
)
from knockoffs.features.posterior.categorical import normalise_log_weights, sample_categorical
from knockoffs.features.shrinkage import Estimate, estimate_covariance
from knockoffs.sampling.conjugates.gaussian import Gaussian, GaussianLaw
from knockoffs.sampling.conjugates.identity import Identity
from knockoffs.sampling.covariance import check_covariance
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL
from knockoffs.sampling.diagonal.representatives import ViaRepresentatives
from knockoffs.sampling.network import BayesianNetwork, Node
from knockoffs.sampling.sampler import KnockoffSampler, NetworkSampler
from knockoffs.sampling.swap import check_features

N_COMPONENTS = range(1, 11)
CRITERION_NAMES = {"aic": "AIC", "bic": "BIC", "held_out": "held-out likelihood"}


@dataclass(frozen=True)
class MixtureFeatures:
    """P^X = sum_k weights_k N(mean_k, S_k); `gaussian_mixture_features` makes it from given parameters.

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
    """

    weights: NDArray
    laws: tuple[GaussianLaw, ...]
    fixed: Fixed
    feature_of: NDArray[np.intp]
    criterion: dict[int, float] = field(default_factory=dict)
    chosen_by: str = ""
    rows: float = 0.0
    intensities: tuple[float, ...] = ()

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
        return free_columns(self.fixed, self.n_columns)

    def _free(self, X: NDArray) -> NDArray:
        return X[:, self.varying] if len(self.fixed.columns) else X

    def log_joint(self, X: NDArray) -> NDArray:
        """Log weights_k N(x; mean_k, S_k) of the columns that vary freely, shape (n, l)."""
        return log_joint(self.weights, self.laws, self._free(X))

    def log_density(self, X: NDArray) -> NDArray:
        """Log density of the columns that vary freely, shape (n,); the others are point masses.

        A constant column adds nothing where it has its value, and minus infinity where it has not.
        """
        return with_fixed(np.logaddexp.reduce(self.log_joint(X), axis=1), self.fixed, X)

    def posterior(self, X: NDArray) -> NDArray:
        """P(K = k | X), shape (n, l), computed in log space."""
        return np.exp(normalise_log_weights(self.log_joint(X))[0])

    def sample(self, n: int, rng: Generator) -> NDArray:
        """Draw n rows, shape (n, n_columns)."""
        K = rng.choice(self.n_components, size=n, p=self.weights)
        drawn = np.empty((n, len(self.varying)))
        for k, law in enumerate(self.laws):
            drawn[K == k] = law.sample_rows(int((K == k).sum()), rng)
        return add_fixed(drawn, self.fixed, self.varying)

    def given_others(self, X: NDArray) -> Conditionals:
        """Laws of each column that varies freely (in the order of ``varying``) given the others of these."""
        columns = np.asarray(self._free(X), dtype=float)
        return Conditionals(self.laws, columns, log_joint(self.weights, self.laws, columns))

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
        """K -> X: K keeps its value, X moves by the Gaussian conjugate of its component."""
        return self._network

    @cached_property
    def _network(self) -> BayesianNetwork:
        K = Node("K", (), Identity())
        X = Node("X", ("K",), Gaussian(self.laws, component="K"), columns=self.varying.tolist())
        nodes = (K, X, *fixed_node(self.fixed))
        sample_hidden = partial(sample_component, self)
        return BayesianNetwork(nodes, sample_hidden, self.feature_of, checked=True)

    def as_sampler(self) -> KnockoffSampler:
        """Sampler of Algorithm 1; a constant column may share its feature with others."""
        if not len(self.fixed.columns):
            return NetworkSampler(self._network)
        d = len(self.varying)
        free = MixtureFeatures(self.weights, self.laws, Fixed.none(), np.arange(d))
        return FreeColumns(free.as_network(), self.varying, self.feature_of)

    def say(self, names: Sequence[str] | None = None) -> str:
        """Tell in one sentence what P^X is and how it was fitted."""
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
        return "".join(words) + say_fixed(self.fixed, names) + "."


def log_joint(weights: NDArray, laws: Sequence[GaussianLaw], X: NDArray) -> NDArray:
    """Log weights_k N(x; mean_k, S_k), shape (n, l)."""
    return np.column_stack([np.log(weight) + law.log_density(X) for weight, law in zip(weights, laws, strict=True)])


def sample_component(mixture: MixtureFeatures, X: NDArray, rng: Generator) -> dict[str, NDArray]:
    """K ~ P(K | X) for each row."""
    return {"K": sample_categorical(mixture.log_joint(X), rng)}


def gaussian_mixture_features(
    weights: ArrayLike,
    means: ArrayLike,
    covariances: ArrayLike,
    *,
    diagonal: str | ViaRepresentatives = DEFAULT_DIAGONAL,
    feature_of: ArrayLike | None = None,
) -> MixtureFeatures:
    """P^X with given parameters.

    Parameters
    ----------
    weights : array-like, shape (l,)
        Mixture proportions, which add up to one.
    means : array-like, shape (l, d)
    covariances : array-like, shape (l, d, d)
    diagonal : str or Through
        Which matrix D: see ``DIAGONALS``; or through representatives of groups.
    feature_of : array-like of int, shape (d,), optional
        Feature of each column.
    """
    w, mu = np.asarray(weights, dtype=float), np.asarray(means, dtype=float)
    Sigma = np.asarray(covariances, dtype=float)
    _check_weights(w)
    if mu.ndim != 2 or len(mu) != len(w):
        raise InputError(f"means has shape {mu.shape}: expected ({len(w)}, d), one row for each component.")
    if Sigma.shape != (len(w), mu.shape[1], mu.shape[1]):
        raise InputError(f"covariances has shape {Sigma.shape}: expected {(len(w), mu.shape[1], mu.shape[1])}.")
    if not np.isfinite(mu).all():
        raise InputError(f"mean of component {np.argwhere(~np.isfinite(mu))[0, 0]} is not finite.")
    owners = check_features(feature_of, mu.shape[1])
    laws = tuple(
        gaussian_law(mu[k], check_covariance(Sigma[k], f"covariance of component {k}"), diagonal, owners)
        for k in range(len(w))
    )
    return MixtureFeatures(w / w.sum(), laws, Fixed.none(), owners)


def _check_weights(weights: NDArray) -> None:
    if weights.ndim != 1 or not len(weights) or not np.isfinite(weights).all():
        raise InputError(f"weights has shape {weights.shape}: expected one finite proportion for each component.")
    for k in np.flatnonzero(weights <= 0):
        raise InputError(f"component {k} has weight {weights[k]:g}: it is empty. Leave it out.")
    if abs(weights.sum() - 1) > 1e-8:
        raise InputError(f"weights add up to {weights.sum():g}: expected 1.")


def fit_gaussian_mixture(
    X: NDArray,
    *,
    rng: Generator,
    n_jobs: int | None = None,
    n_components: int | Iterable[int] | None = None,
    criterion: str = "aic",
    n_starts: int = N_STARTS,
    diagonal: str | ViaRepresentatives = DEFAULT_DIAGONAL,
    feature_of: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> MixtureFeatures:
    """Fit a Gaussian mixture by EM, with the number of components chosen by AIC as in the paper.

    Parameters
    ----------
    X : array, shape (n, d)
    rng : numpy.random.Generator
    n_jobs : int, optional
        Starts tried at a time; the answer does not depend on it.
    n_components : int or iterable of int, optional
        A number, or the numbers to choose among; 1 to 10 if left out, as far as there are rows for them. Numbers are
        tried in order until two in a row are worse than the best.
    criterion : {"aic", "bic", "held_out"}
        What chooses the number of components.
    n_starts : int
        Starts of EM for each number of components.
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
    Z = table.Z
    candidates = _candidates(n_components, *Z.shape)
    em, values = search_mixture(Z, candidates, criterion=criterion, rng=rng, n_jobs=n_jobs, n_starts=n_starts)
    if (place := collapsed(em)) is not None:
        raise ColumnsError(
            [table.varying[place[1]]],
            f"with {em.n_components} components, component {place[0]} of the mixture collapsed onto a single value of "
            "column",
            "(many rows share it, so a density is no model of them). Fit fewer components, or drop the column.",
        )
    if not em.converged:
        warnings.warn(
            f"EM with {em.n_components} components had not converged after {MAX_STEPS} steps: the fitted P^X, and "
            "with it the FDR, is less sure. Fit fewer components.",
            KnockoffWarning,
            stacklevel=2,
        )
    weights, moments = _shrunk_components(Z, em)
    inner = compact(owners[table.varying])
    laws = tuple(in_units(gaussian_law(mean, S, diagonal, inner), table.centre, table.scale) for mean, S, _ in moments)
    intensities = tuple(estimate.intensity for estimate in moments)
    chosen_by = criterion if values else ""
    return MixtureFeatures(weights, laws, table.fixed, owners, values, chosen_by, float(len(X)), intensities)


def _candidates(n_components: int | Iterable[int] | None, n: int, d: int) -> list[int]:
    if n_components is None:
        most = max(n // (2 * (d + 1)), 1)  # a component needs rows of its own: at least twice its dimension
        return [k for k in N_COMPONENTS if k <= most]
    listed: Sequence[int] = [n_components] if isinstance(n_components, int | np.integer) else list(n_components)
    for k in listed:
        if not isinstance(k, int | np.integer) or k < 1 or k > n:
            raise InputError(f"n_components={k!r}: expected whole numbers between 1 and the number of rows, {n}.")
    if not listed:
        raise InputError("n_components is empty: give a number or a range, for instance range(1, 11).")
    return sorted({int(k) for k in listed})


def _shrunk_components(Z: NDArray, em: Mixture) -> tuple[NDArray, list[Estimate]]:
    """Weights and moments of the components; a covariance that rests on few rows is shrunk, and says so."""
    responsibilities = em.posterior(Z)
    rows = responsibilities.sum(axis=0)
    kept = rows > 1.0
    if not kept.all():
        warnings.warn(
            f"{(~kept).sum()} components of the mixture are empty after EM and were left out.",
            KnockoffWarning,
            stacklevel=3,
        )
        rows, responsibilities = rows[kept], responsibilities[:, kept]
    moments = [
        estimate_covariance(Z, responsibilities[:, k], what=f"component {k} of the mixture") for k in range(len(rows))
    ]
    return rows / rows.sum(), moments
