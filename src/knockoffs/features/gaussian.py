"""One Gaussian: P^X = N(mean, S), the mixture with one component."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import ColumnsError, InputError
from knockoffs.features.columns import check_independent, constant_columns, standardise
from knockoffs.features.shrinkage import estimate_covariance
from knockoffs.sampling.conjugates.gaussian import Gaussian, GaussianLaw
from knockoffs.sampling.conjugates.identity import Identity
from knockoffs.sampling.covariance import check_covariance
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL, solve_diagonal
from knockoffs.sampling.network import BayesianNetwork, Node
from knockoffs.sampling.swap import check_features


@dataclass(frozen=True)
class GaussianFeatures:
    """P^X = N(mean, covariance).

    Parameters
    ----------
    law : GaussianLaw
        Mean, covariance and D of the columns that vary.
    n_columns : int
    constant : array of int
        Columns that are constant: they are their own knockoff.
    feature_of : array of int, shape (n_columns,)
    """

    law: GaussianLaw
    n_columns: int
    constant: NDArray[np.intp]
    feature_of: NDArray[np.intp]

    def as_network(self) -> BayesianNetwork:
        """One observed node, X, and no hidden one."""
        return self._network

    @cached_property
    def _network(self) -> BayesianNetwork:
        varying = np.setdiff1d(np.arange(self.n_columns), self.constant)
        X = Node("X", (), Gaussian((self.law,)), columns=varying.tolist())
        return BayesianNetwork((X, *constant_node(self.constant)), feature_of=self.feature_of)


def constant_node(constant: NDArray[np.intp]) -> tuple[Node, ...]:
    """Node of the constant columns, which keep their value; none if there are none."""
    return (Node("constant", (), Identity(), columns=constant.tolist()),) if len(constant) else ()


def gaussian_law(mean: NDArray, covariance: NDArray, diagonal: str, feature_of: NDArray[np.intp]) -> GaussianLaw:
    """Gaussian with its matrix D solved."""
    return GaussianLaw(mean, covariance, solve_diagonal(covariance, diagonal, feature_of=feature_of))


def gaussian_features(
    mean: ArrayLike, covariance: ArrayLike, *, diagonal: str = DEFAULT_DIAGONAL, feature_of: ArrayLike | None = None
) -> GaussianFeatures:
    """P^X with given parameters.

    Parameters
    ----------
    mean : array-like, shape (d,)
    covariance : array-like, shape (d, d)
    diagonal : str
        Which matrix D: see ``DIAGONALS``.
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
    return GaussianFeatures(gaussian_law(mu, Sigma, diagonal, owners), len(Sigma), np.empty(0, np.intp), owners)


def fit_gaussian(
    X: NDArray,
    *,
    rng: Generator | None = None,
    n_jobs: int | None = None,
    diagonal: str = DEFAULT_DIAGONAL,
    feature_of: ArrayLike | None = None,
) -> GaussianFeatures:
    """Fit one Gaussian: mean and covariance of the rows, shrunk (and said so) if rows are few.

    Parameters
    ----------
    X : array, shape (n, d)
    rng, n_jobs
        Not used: the fit is not random.
    diagonal : str
        Which matrix D: see ``DIAGONALS``.
    feature_of : array-like of int, shape (d,), optional
        Feature of each column.
    """
    owners = check_features(feature_of, X.shape[1])
    constant, varying, Z, centre, scale = varying_columns(X)
    mean, correlation = estimate_covariance(Z, what="the Gaussian")
    law = gaussian_law(mean, correlation, diagonal, compact(owners[varying]))
    return GaussianFeatures(in_units(law, centre, scale), X.shape[1], constant, owners)


def varying_columns(X: NDArray) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray, NDArray, NDArray]:
    """Constant and varying columns, and the varying ones standardised with their centre and scale."""
    if len(X) < 3:
        raise InputError(f"X has {len(X)} rows: a covariance needs at least 3.")
    missing = np.flatnonzero(~np.isfinite(X).all(axis=0))
    if missing.size:
        raise ColumnsError(missing, "columns", "have missing or infinite values: fill them or drop the rows first.")
    constant = constant_columns(X)
    varying = np.setdiff1d(np.arange(X.shape[1]), constant)
    if not varying.size:
        raise InputError("every column of X is constant: there is nothing to select from.")
    Z, centre, scale = standardise(np.asarray(X[:, varying], dtype=float))
    try:
        check_independent(Z)
    except ColumnsError as error:  # counted among the varying columns; the user counts all
        raise ColumnsError(varying[list(error.columns)], error.before, error.after) from None
    return constant, varying, Z, centre, scale


def compact(owners: NDArray[np.intp]) -> NDArray[np.intp]:
    """Renumber features without gaps."""
    return np.unique(owners, return_inverse=True)[1]


def in_units(law: GaussianLaw, centre: NDArray, scale: NDArray) -> GaussianLaw:
    """Law of centre + scale * Z when Z has the law given; D moves along exactly."""
    units = np.outer(scale, scale)
    return GaussianLaw(centre + scale * law.mean, law.covariance * units, law.D * units)
