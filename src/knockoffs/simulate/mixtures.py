"""Mixtures of Gaussians and of t distributions with random parameters (appendix C of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError


@dataclass(frozen=True)
class Simulation:
    """A table whose non-null features are known."""

    X: NDArray  # shape (n, d)
    y: NDArray  # shape (n,)
    non_nulls: NDArray[np.bool_]  # shape (d,): true for the features y depends on given the others
    parameters: Any = None  # what X was drawn from (a ``MixtureParameters``), or None for features that were given


@dataclass(frozen=True)
class MixtureParameters:
    """A mixture of Gaussian or t distributions."""

    weights: NDArray  # shape (n_components,)
    means: NDArray  # shape (n_components, d)
    # shape (n_components, d, d): scale matrices; the covariance of a t component is df / (df - 2) times as large
    covariances: NDArray
    degrees_of_freedom: float = np.inf  # infinity for Gaussian components


def draw_mixture(
    n_components: int,
    d: int,
    *,
    rng: Generator,
    spread: float = 1.0,
    concentration: float = 10.0,
    degrees_of_freedom: float = np.inf,
) -> MixtureParameters:
    """Draw a mixture: Dirichlet proportions, normal means, covariances from scikit-learn's ``make_spd_matrix``.

    Parameters
    ----------
    spread : float
        Standard deviation of every coordinate of every mean; variances are between 1 and 2.
    concentration : float
        Of the symmetric Dirichlet law of the proportions: at 10, the smallest of 20 is about a third of the mean.
    degrees_of_freedom : float
        Of the components; infinity for Gaussian ones.

    >>> draw_mixture(3, 4, rng=np.random.default_rng(0)).covariances.shape
    (3, 4, 4)
    """
    from sklearn.datasets import make_spd_matrix

    _check_positive(n_components=n_components, d=d, concentration=concentration, degrees_of_freedom=degrees_of_freedom)
    weights = rng.dirichlet(np.full(n_components, float(concentration)))
    means = spread * rng.standard_normal((n_components, d))
    # make_spd_matrix takes a seed, not a Generator: the seed is drawn
    covariances = [make_spd_matrix(d, random_state=int(rng.integers(2**31))) for _ in range(n_components)]
    return MixtureParameters(weights, means, np.stack(covariances), float(degrees_of_freedom))


def sample_mixture(mixture: MixtureParameters, n: int, *, rng: Generator) -> tuple[NDArray, NDArray[np.intp]]:
    """Draw n rows and the component of each.

    Returns
    -------
    X : array, shape (n, d)
    K : array of int, shape (n,)
    """
    K = rng.choice(len(mixture.weights), size=n, p=mixture.weights)
    noise = rng.standard_normal((n, mixture.means.shape[1]))
    df = mixture.degrees_of_freedom
    if np.isfinite(df):  # one chi-square for the whole row: the multivariate t distribution
        noise *= np.sqrt(df / rng.chisquare(df, size=n))[:, None]
    X = np.empty_like(noise)
    for k, factor in enumerate(np.linalg.cholesky(mixture.covariances)):
        rows = K == k
        X[rows] = mixture.means[k] + noise[rows] @ factor.T  # rows are draws, so L multiplies from the right
    return X, K


def mixture_moments(mixture: MixtureParameters) -> tuple[NDArray, NDArray]:
    """Mean and covariance of the mixture as a whole: what one Gaussian would be fitted to.

    >>> one = MixtureParameters(np.ones(1), np.zeros((1, 2)), np.eye(2)[None])
    >>> mixture_moments(one)[1]
    array([[1., 0.],
           [0., 1.]])
    """
    df = mixture.degrees_of_freedom
    inflation = df / (df - 2) if np.isfinite(df) else 1.0
    mean = mixture.weights @ mixture.means
    between = (mixture.means - mean).T @ ((mixture.means - mean) * mixture.weights[:, None])
    within = np.einsum("k,kij->ij", mixture.weights, mixture.covariances) * inflation
    return mean, within + between


def _check_positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise InputError(f"{name}={value!r} must be positive.")
