"""P^X: one file per family, each with its parameters, its fit and ``as_network``; what a fitted P^X can do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.sampling.network import BayesianNetwork


class FeatureModel(Protocol):
    """A fitted P^X: a distribution. Options of sampling are arguments of ``as_network``."""

    def log_density(self, X: NDArray) -> NDArray:
        """Log density (or probability) of every row of X, shape (n,)."""
        ...

    def sample(self, n: int, rng: Generator) -> NDArray:
        """Draw n rows, shape (n, n_columns)."""
        ...

    @property
    def as_network(self) -> Callable[..., BayesianNetwork]:
        """``as_network(**how)``: the network whose observed leaves are the columns of X, built once for every ``how``.

        ``how`` are options of execution: ``n_jobs``, and what else the family names in its own signature.
        """
        ...


@runtime_checkable
class Conditional(Protocol):
    """A P^X that can draw one column given all the others, exactly."""

    def conditional(self, j: int, X: NDArray, rng: Generator, n_draws: int) -> NDArray:
        """Draws of X_j given the other columns of each row, shape (n_draws, n); column j of X is not looked at."""
        ...


@runtime_checkable
class Groupable(Protocol):
    """A P^X whose knockoffs depend on which columns are one feature, by a matrix D that is solved for them."""

    def regroup(self, feature_of: NDArray[np.intp], diagonal: str) -> FeatureModel:
        """Return the same law with knockoffs of other features, shape (n_columns,)."""
        ...


@dataclass(frozen=True)
class Prepared:
    """A law with some options of ``as_network`` settled beforehand, for callers that pass none."""

    law: FeatureModel
    how: Mapping[str, object] = field(default_factory=dict)

    def log_density(self, X: NDArray) -> NDArray:
        """Log density of the law."""
        return self.law.log_density(X)

    def sample(self, n: int, rng: Generator) -> NDArray:
        """Draw n rows of the law."""
        return self.law.sample(n, rng)

    def as_network(self, **how: object) -> BayesianNetwork:
        """Return the network of the law, by the settled options where others are not passed."""
        return self.law.as_network(**{**self.how, **how})


Law = TypeVar("Law")
How = ParamSpec("How")


def kept_per_how(
    build: Callable[Concatenate[Law, How], BayesianNetwork],
) -> Callable[Concatenate[Law, How], BayesianNetwork]:
    """``as_network`` of a frozen law whose networks are built once for every set of options, and kept with the law."""

    @wraps(build)
    def as_network(self: Law, /, *args: How.args, **how: How.kwargs) -> BayesianNetwork:
        kept = vars(self).setdefault("_networks", {})  # no field: not compared, not written down
        key = repr(sorted((name, np.asarray(value).tolist()) for name, value in how.items()))
        if key not in kept:
            kept[key] = build(self, *args, **how)
        return kept[key]

    return as_network


# Families by name


class FitFeatureModel(Protocol):
    """How a family is fitted to a table."""

    def __call__(self, X: NDArray, *, rng: Generator, n_jobs: int | None = None) -> FeatureModel:
        """Fit the family to X, shape (n, n_columns)."""
        ...


@dataclass(frozen=True)
class Family:
    """A family of P^X that is fitted to a table.

    Parameters
    ----------
    fit : str or callable
        "module:function", imported when first used; or the function, ``fit(X, *, rng, n_jobs, **options)``.
    takes : tuple of str
        What its columns may hold: "numbers", "labels" (as codes 0, 1, ...), "codes" (labels only: whole numbers come as
        codes of themselves), "alike" (all columns numbers, or all labels), "missing" (cells that are NaN), "order" (a
        chain along the columns: groups are of neighbours, and ``as_network`` is told of them), "constant" (columns that
        do not vary; of other families they are their own knockoffs, beside the law). And what its fit is handed
        besides X: "names", "kinds", "groups" (which columns are one feature, as ``feature_of``). "free": columns that
        others determine are left out before the fit, unless a user says otherwise. "every": constant columns are not
        left out, because the law comes with a place for every column. "same": columns are sites or words, so that no
        covariate can be one of them. "fixed": there is no law; the rows whose target is known are a fixed design, and
        the fit is handed the places of the ``covariates``.
    options : tuple of str, optional
        Options of the fit that a user may set; None for a function of one's own, which takes what it takes.
    how : tuple of str
        Options of ``as_network``, about how knockoffs are drawn and not about the law.
    """

    fit: str | FitFeatureModel
    takes: tuple[str, ...] = ("numbers",)
    options: tuple[str, ...] | None = None
    how: tuple[str, ...] = ()


_LATENT = "knockoffs.features.latent.fit:fit_latent"
_ANY = ("numbers", "labels", "missing", "kinds", "names", "groups", "free", "constant")

FAMILIES: dict[str, Family] = {
    "auto": Family(_LATENT, _ANY, ("n_classes", "diagonal"), ("n_sweeps", "n_jobs")),
    "latent": Family(_LATENT, _ANY, ("n_classes", "diagonal"), ("n_sweeps", "n_jobs")),
    "gaussian": Family("knockoffs.features.gaussian:fit_gaussian", ("numbers", "groups", "names"), ("diagonal",)),
    "mixture": Family(
        "knockoffs.features.gaussian_mixture:fit_gaussian_mixture",
        ("numbers", "groups", "names"),
        ("n_components", "criterion", "n_starts", "diagonal"),
    ),
    "naive_bayes": Family(
        "knockoffs.features.naive_bayes:fit_naive_bayes",
        ("numbers", "labels", "kinds", "constant"),
        ("n_classes", "criterion", "n_starts", "pseudo_count", "max_iter", "tol"),
        ("n_jobs",),
    ),
    "hmm": Family(
        "knockoffs.features.hmm.fit:fit_hidden_markov",
        ("numbers", "labels", "missing", "alike", "kinds", "order", "same", "constant"),
        ("n_states", "emissions", "shared", "criterion", "n_starts", "max_iter", "tol", "pseudocount"),
        ("hidden_knockoff", "n_jobs"),
    ),
    "lda": Family(
        "knockoffs.features.lda.fit:fit_latent_dirichlet",
        ("numbers", "same", "constant"),
        ("n_topics", "max_iter", "view"),
        ("n_sweeps", "hidden_knockoff", "n_jobs"),
    ),
    "network": Family(
        "knockoffs.features.network.fit:fit_discrete_network",
        ("labels", "codes", "names", "constant"),
        ("parents", "pseudo_count", "max_table"),
        ("hidden_knockoff", "n_jobs"),
    ),
    "fastphase": Family(
        "knockoffs.features.fastphase:fastphase_features",
        ("numbers", "missing", "order", "every", "same", "constant"),
        ("prefix", "haplotypes", "start"),
        ("hidden_knockoff", "n_jobs"),
    ),
    "genotypes": Family(
        "knockoffs.features.hmm.mosaic_fit:fit_genotypes",
        ("numbers", "missing", "order", "every", "same"),
        ("n_ancestors", "max_iter", "tol", "pseudocount"),
        ("hidden_knockoff", "n_jobs"),
    ),
    "fixed": Family("knockoffs.features.fixed:fixed_design", ("numbers", "groups", "names", "fixed"), ("diagonal",)),
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
