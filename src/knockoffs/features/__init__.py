"""P^X: one file per family, each with its parameters, its fit and ``as_network``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.features.family import FeatureModel

__all__ = ["FAMILIES", "Family", "FeatureModel", "FitFeatureModel", "family_of"]


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
