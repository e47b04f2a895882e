"""Three correlated Gaussians whose covariance, taken together, looks diagonal (section 5.1 of the paper)."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.simulate.mixtures import MixtureParameters, Simulation, sample_mixture

GROUP = 10  # the paper: ten non-nulls, ten nulls correlated with them, ten independent nulls
MEAN_SPREAD = 0.3  # standard deviation of the means: small, or they alone would correlate all features


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
