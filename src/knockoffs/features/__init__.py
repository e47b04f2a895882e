"""P^X: one file per family, each with its parameters, its fit and ``as_network``."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.sampling.network import BayesianNetwork


class FeatureModel(Protocol):
    """A fitted P^X: a value that can be written down as a Bayesian network."""

    def as_network(self) -> BayesianNetwork:
        """Return the network whose observed leaves are the columns of X; built once and kept."""
        ...


class FitFeatureModel(Protocol):
    """How a family is fitted to a table. Options are bound beforehand with functools.partial."""

    def __call__(self, X: NDArray, *, rng: Generator, n_jobs: int | None = None) -> FeatureModel:
        """Fit the family to X, shape (n, n_columns)."""
        ...


Part = TypeVar("Part")


def takes_labels(family: Part) -> Part:
    """Mark a family, its class or its fit, whose columns may hold labels: they come as codes 0, 1, ..."""
    marked: Any = family
    marked.takes_labels = True
    return family


def takes_only_labels(fit: Part) -> Part:
    """Mark a fit to which all columns are labels: whole numbers come as codes of themselves."""
    marked: Any = takes_labels(fit)
    marked.takes_only_labels = True
    return fit


# name -> "module:fit", imported when first used
FAMILIES: dict[str, str] = {
    "gaussian": "knockoffs.features.gaussian:fit_gaussian",
    "mixture": "knockoffs.features.gaussian_mixture:fit_gaussian_mixture",
    "naive_bayes": "knockoffs.features.naive_bayes:fit_naive_bayes",
    "hmm": "knockoffs.features.hidden_markov.fit:fit_hidden_markov",
    "lda": "knockoffs.features.latent_dirichlet:fit_latent_dirichlet",
    "network": "knockoffs.features.discrete_network:fit_discrete_network",
    "fastphase": "knockoffs.features.fastphase:fastphase_features",
}
