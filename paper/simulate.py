"""The synthetic data of the paper: random mixtures, and labels by random cubic polynomials (appendix C)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from paper.mixtures import Simulation, draw_mixture, sample_mixture

NOISE_VARIANCE = 0.1  # the paper: epsilon ~ N(0, 0.1)
DEGREE = 3  # of the polynomials
CELLS = 20_000_000  # monomials held in memory at once

Labels = Callable[..., NDArray[np.intp]]


def simulate_mixture(
    n: int,
    d: int,
    *,
    n_components: int,
    n_classes: int,
    n_non_nulls: int,
    rng: Generator,
    spread: float,
    labels: Labels,
) -> Simulation:
    """Features from a random mixture of Gaussians whose means have standard deviation ``spread``, and labels.

    >>> sizes = {"n_components": 2, "n_classes": 3, "n_non_nulls": 2, "spread": 1.0}
    >>> data = simulate_mixture(100, 5, **sizes, labels=polynomial_labels, rng=np.random.default_rng(0))
    >>> data.X.shape, data.y.shape, int(data.non_nulls.sum())
    ((100, 5), (100,), 2)
    """
    X, _ = sample_mixture(draw_mixture(n_components, d, rng=rng, spread=spread), n, rng=rng)
    return simulate_labels(X, n_classes=n_classes, n_non_nulls=n_non_nulls, labels=labels, rng=rng)


def simulate_labels(X: NDArray, *, n_classes: int, n_non_nulls: int, rng: Generator, labels: Labels) -> Simulation:
    """Labels on given features, with non-nulls chosen at random; ``labels`` is one of the two functions below."""
    non_nulls = draw_non_nulls(X.shape[1], n_non_nulls, rng=rng)
    return Simulation(X, labels(X, non_nulls, n_classes=n_classes, rng=rng), non_nulls)


def draw_non_nulls(d: int, n_non_nulls: int, *, rng: Generator) -> NDArray[np.bool_]:
    """Mask of the non-null features, which are chosen uniformly at random."""
    non_nulls = np.zeros(d, dtype=bool)
    non_nulls[rng.choice(d, size=n_non_nulls, replace=False)] = True
    return non_nulls


def polynomial_labels(X: NDArray, non_nulls: NDArray[np.bool_], *, n_classes: int, rng: Generator) -> NDArray[np.intp]:
    r"""Labels :math:`Y_i = \arg\max_c (f_c(X_i) + \epsilon_{ic})` for random polynomials f_c of the non-null features.

    The coefficients are N(0, 1) and the noise is N(0, 0.1) (read as a variance). Columns are centred and scaled
    first, which the paper leaves open: a column in large units would otherwise determine every label.
    """
    return np.argmax(_noisy_polynomials(X[:, non_nulls], n_classes, rng), axis=1)


def level_set_labels(X: NDArray, non_nulls: NDArray[np.bool_], *, n_classes: int, rng: Generator) -> NDArray[np.intp]:
    """Labels by the level sets of one random polynomial of the non-null features (Figure 1 of the paper).

    The levels are quantiles of the noisy polynomial, so that all classes are equally frequent.

    >>> X = np.random.default_rng(0).standard_normal((6, 3))
    >>> y = level_set_labels(X, np.array([True, True, False]), n_classes=3, rng=np.random.default_rng(1))
    >>> np.bincount(y)
    array([2, 2, 2])
    """
    values = _noisy_polynomials(X[:, non_nulls], 1, rng)[:, 0]
    return np.argsort(np.argsort(values)) * n_classes // len(values)


def _noisy_polynomials(columns: NDArray, n_polynomials: int, rng: Generator) -> NDArray:
    """Values (n, n_polynomials) of random polynomials of the standardised columns, plus noise."""
    scale = columns.std(axis=0)
    columns = (columns - columns.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    n, k = columns.shape
    powers = [c for p in range(1, DEGREE + 1) for c in combinations_with_replacement(range(k), p)]
    coefficients = rng.standard_normal((len(powers), n_polynomials))
    values = np.empty((n, n_polynomials))
    step = max(1, CELLS // len(powers))
    for start in range(0, n, step):
        part = columns[start : start + step]
        values[start : start + step] = np.stack([np.prod(part[:, m], axis=1) for m in powers], axis=1) @ coefficients
    return values + np.sqrt(NOISE_VARIANCE) * rng.standard_normal(values.shape)
