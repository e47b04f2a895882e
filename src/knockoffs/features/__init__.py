"""P^X: one file per family, each with its parameters, its fit and ``as_network``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
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
    """How a family is fitted to a table."""

    def __call__(self, X: NDArray, *, rng: Generator, n_jobs: int | None = None) -> FeatureModel:
        """Fit the family to X, shape (n, n_columns)."""
        ...


Part = TypeVar("Part")


def takes_labels(family: Part) -> Part:
    """Mark a family, its class or its fit, whose columns may hold labels: they come as codes 0, 1, ..."""
    return family


takes_only_labels = takes_labels


@dataclass(frozen=True)
class Family:
    """A family of P^X that is fitted to a table.

    Parameters
    ----------
    fit : str or callable
        "module:function", imported when first used; or the function, ``fit(X, *, rng, n_jobs, **options)``.
    takes : tuple of str
        What its columns may hold: "numbers", "labels" (as codes 0, 1, ...), "codes" (labels only: whole numbers come as
        codes of themselves), "alike" (all columns numbers, or all labels), "missing" (cells that are NaN). And what
        its fit is handed besides X: "names", "kinds", "groups" (which columns are one feature, as ``feature_of``).
    options : tuple of str, optional
        Options of the fit that a user may set; None for a function of one's own, which takes what it takes.
    """

    fit: str | FitFeatureModel
    takes: tuple[str, ...] = ("numbers",)
    options: tuple[str, ...] | None = None


FAMILIES: dict[str, Family] = {
    "gaussian": Family("knockoffs.features.gaussian:fit_gaussian", ("numbers", "groups"), ("diagonal",)),
    "mixture": Family(
        "knockoffs.features.gaussian_mixture:fit_gaussian_mixture",
        ("numbers", "groups"),
        ("n_components", "criterion", "n_starts", "diagonal"),
    ),
    "naive_bayes": Family(
        "knockoffs.features.naive_bayes:fit_naive_bayes",
        ("numbers", "labels", "kinds"),
        ("kinds", "n_classes", "criterion", "n_starts", "pseudo_count", "max_iter", "tol"),
    ),
    "hmm": Family(
        "knockoffs.features.hidden_markov_fit:fit_hidden_markov",
        ("numbers", "labels", "alike"),
        ("n_states", "emissions", "shared", "criterion", "n_starts", "max_iter", "tol", "pseudocount")
        + ("hidden_knockoff",),
    ),
    "lda": Family(
        "knockoffs.features.latent_dirichlet:fit_latent_dirichlet",
        ("numbers",),
        ("n_topics", "max_iter", "view", "posterior", "n_sweeps", "fit"),
    ),
    "network": Family(
        "knockoffs.features.discrete_network:fit_discrete_network",
        ("labels", "codes", "names"),
        ("parents", "names", "pseudo_count", "max_table"),
    ),
    "fastphase": Family(
        "knockoffs.features.fastphase:fastphase_features",
        ("numbers",),
        ("prefix", "haplotypes", "start", "hidden_knockoff"),
    ),
}


def family_of(fit: Any) -> Family:
    """Family of a fit: the registered one where it is ours, otherwise one that takes numbers."""
    if isinstance(fit, Family):
        return fit
    for family in FAMILIES.values():
        module, _, name = str(family.fit).partition(":")
        if module in sys.modules and getattr(sys.modules[module], name, None) is fit:
            return family
    return Family(fit)
