"""Mixtures with random parameters (appendix C of the paper), and three components that look like one (section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError

GROUP = 10  # the paper: ten non-nulls, ten nulls correlated with them, ten independent nulls
MEAN_SPREAD = 0.3  # standard deviation of the means: small, or they alone would correlate all features


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


def draw_three_components(
    *,
    rng: Generator,
    wide_variance: float = 16.0,
    wide_weight: float = 0.15,
    correlation: tuple[float, float] = (0.92, 0.98),
    degrees_of_freedom: float = np.inf,
) -> MixtureParameters:
    """Draw the mixture of section 5.1 in 30 dimensions.

    Non-null j and null j + 10 have a correlation near 1 (of random sign) in two narrow components and the opposite
    one in a wide component, of the size that makes their covariance over the whole mixture zero. One Gaussian then
    takes all the features for independent, although in most rows each null is nearly a copy of its non-null.

    Parameters
    ----------
    wide_variance, wide_weight : float
        Variance of the features in the wide component (1 in the others) and its proportion.
    correlation : pair of float
        Least and largest absolute correlation in the narrow components, drawn for each pair.
    degrees_of_freedom : float
        Of t distributions in place of the Gaussians; infinity keeps these.

    >>> draw_three_components(rng=np.random.default_rng(0)).means.shape
    (3, 30)
    """
    low, high = correlation
    ratio = (1 - wide_weight) / (wide_weight * wide_variance)
    if not 0 <= low <= high < 1:
        raise InputError(f"correlation={correlation!r} must be two ordered numbers from 0 to below 1.")
    if ratio * high >= 1:
        raise InputError(f"wide_variance={wide_variance:g} is too small to cancel correlations of {high:g}.")
    narrow = rng.uniform(low, high, size=GROUP) * rng.choice([-1.0, 1.0], size=GROUP)
    weights = np.array([wide_weight, (1 - wide_weight) / 2, (1 - wide_weight) / 2])
    means = MEAN_SPREAD * rng.standard_normal((3, 3 * GROUP))
    covariances = np.stack([wide_variance * _pairs(-ratio * narrow), _pairs(narrow), _pairs(narrow)])
    return MixtureParameters(weights, means, covariances, degrees_of_freedom)


def simulate_three_components(n: int, *, rng: Generator, amplitude: float = 1.0, **options: float) -> Simulation:
    """Features of section 5.1 and labels whose log odds are a sum of the first ten features with random signs.

    Parameters
    ----------
    amplitude : float
        Absolute value of the ten coefficients.
    **options
        Of `draw_three_components`.

    >>> data = simulate_three_components(20, rng=np.random.default_rng(0))
    >>> data.X.shape, int(data.non_nulls.sum())
    ((20, 30), 10)
    """
    mixture = draw_three_components(rng=rng, **options)  # type: ignore[arg-type]
    X, _ = sample_mixture(mixture, n, rng=rng)
    beta = np.zeros(3 * GROUP)
    beta[:GROUP] = amplitude * rng.choice([-1.0, 1.0], size=GROUP)
    y = (rng.random(n) < 1 / (1 + np.exp(-X @ beta))).astype(np.intp)
    return Simulation(X, y, beta != 0, mixture)


def _pairs(correlations: NDArray) -> NDArray:
    """Correlation matrix in which only features j and j + 10 are correlated."""
    C = np.eye(3 * GROUP)
    j = np.arange(GROUP)
    C[j, j + GROUP] = C[j + GROUP, j] = correlations
    return C
