"""Gaussian mixtures fitted by EM, and from given parameters."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import ColumnsError, InputError, KnockoffWarning
from knockoffs.features.covariance import Estimate, estimate_covariance
from knockoffs.features.em import MAX_STEPS, Mixture, collapsed
from knockoffs.features.gaussian import MixtureFeatures, check_numbers, free_columns, gaussian_law, in_units
from knockoffs.features.mixture_path import N_STARTS, numbers_to_try, search_mixture
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL, check_covariance
from knockoffs.sampling.pair import check_features

N_COMPONENTS = range(1, 11)


def gaussian_mixture_features(
    weights: ArrayLike,
    means: ArrayLike,
    covariances: ArrayLike,
    *,
    diagonal: str = DEFAULT_DIAGONAL,
    feature_of: ArrayLike | None = None,
) -> MixtureFeatures:
    """P^X with given parameters.

    Parameters
    ----------
    weights : array-like, shape (l,)
        Mixture proportions, which add up to one.
    means : array-like, shape (l, d)
    covariances : array-like, shape (l, d, d)
    diagonal : str
        Which matrix D: see ``DIAGONALS``.
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
    return MixtureFeatures(w / w.sum(), laws, owners)


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
    criterion: str = "held_out",
    n_starts: int = N_STARTS,
    diagonal: str = DEFAULT_DIAGONAL,
    feature_of: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> MixtureFeatures:
    """Fit a Gaussian mixture by EM, with the number of components chosen by held-out rows, or by AIC as in the paper.

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
    Z = table.Z
    if n_components is None:
        most = max(len(Z) // (2 * (Z.shape[1] + 1)), 1)  # rows of its own: at least twice its dimension
        n_components = [k for k in N_COMPONENTS if k <= most]
    candidates = numbers_to_try("n_components", n_components, len(Z))
    em, values = search_mixture(Z, candidates, criterion=criterion, rng=rng, n_jobs=n_jobs, n_starts=n_starts)
    if (place := collapsed(em)) is not None:
        raise ColumnsError(
            [place[1]],
            f"with {em.n_components} components, component {place[0]} of the mixture collapsed onto a single value of "
            "column",
            "(many rows share it, so a density is no model of them). Fit fewer components, or drop the column.",
        )
    if not em.converged:
        warnings.warn(
            f"EM with {em.n_components} components had not converged after {MAX_STEPS} steps: the FDR may exceed "
            "the level. Fit fewer components.",
            KnockoffWarning,
            stacklevel=2,
        )
    weights, moments = _shrunk_components(Z, em)
    laws = tuple(in_units(gaussian_law(mean, S, diagonal, owners), table.centre, table.scale) for mean, S, _ in moments)
    intensities = tuple(estimate.intensity for estimate in moments)
    chosen_by = criterion if values else ""
    return MixtureFeatures(weights, laws, owners, values, chosen_by, float(len(X)), intensities)


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
