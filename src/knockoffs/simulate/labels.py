"""Labels by the largest of several random cubic polynomials (appendix C of the paper)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.simulate.simulation import Simulation

NOISE_VARIANCE = 0.1  # the paper: epsilon ~ N(0, 0.1)
CELLS = 20_000_000  # monomials held in memory at once


def draw_non_nulls(d: int, n_non_nulls: int, *, rng: Generator) -> NDArray[np.bool_]:
    """Choose which features are non-null, uniformly at random.

    >>> int(draw_non_nulls(10, 3, rng=np.random.default_rng(0)).sum())
    3
    """
    if not 1 <= n_non_nulls <= d:
        raise InputError(f"n_non_nulls={n_non_nulls} must be between 1 and the number of features, {d}.")
    non_nulls = np.zeros(d, dtype=bool)
    non_nulls[rng.choice(d, size=n_non_nulls, replace=False)] = True
    return non_nulls


def polynomial_labels(
    X: NDArray,
    non_nulls: NDArray[np.bool_],
    *,
    n_classes: int,
    rng: Generator,
    degree: int = 3,
    n_monomials: int | None = None,
    noise_variance: float = NOISE_VARIANCE,
) -> NDArray[np.intp]:
    r"""Labels :math:`Y_i = \arg\max_c (f_c(X_i) + \epsilon_{ic})` for random polynomials f_c of the non-null features.

    The coefficients are N(0, 1) and the noise is N(0, 0.1) (read as a variance). Columns are centred and scaled
    first, which the paper leaves open: a column in large units would otherwise decide every label.

    Parameters
    ----------
    X : array, shape (n, d)
    non_nulls : array of bool, shape (d,)
    n_classes : int
    degree : int
        3 in the paper.
    n_monomials : int, optional
        How many monomials each polynomial has, drawn anew for every class, so that each non-null feature is in at
        least one polynomial. None takes all of them.
    noise_variance : float

    Returns
    -------
    array of int, shape (n,)

    >>> X = np.random.default_rng(0).standard_normal((6, 3))
    >>> polynomial_labels(X, np.array([True, True, False]), n_classes=2, rng=np.random.default_rng(1))
    array([...])
    """
    if n_classes < 2:
        raise InputError(f"n_classes={n_classes}: labels need at least two classes.")
    values = _polynomial_values(X[:, non_nulls], degree, n_classes, n_monomials, rng)
    noise = np.sqrt(noise_variance) * rng.standard_normal(values.shape)
    return np.argmax(values + noise, axis=1)


def level_set_labels(
    X: NDArray,
    non_nulls: NDArray[np.bool_],
    *,
    n_classes: int,
    rng: Generator,
    degree: int = 3,
    n_monomials: int | None = None,
    noise_variance: float = NOISE_VARIANCE,
) -> NDArray[np.intp]:
    """Labels by the level sets of one random polynomial of the non-null features (Figure 1 of the paper).

    The levels are quantiles of the noisy polynomial, so that all classes are equally frequent. Parameters are those
    of `polynomial_labels`.

    >>> X = np.random.default_rng(0).standard_normal((6, 3))
    >>> y = level_set_labels(X, np.array([True, True, False]), n_classes=3, rng=np.random.default_rng(1))
    >>> np.bincount(y)
    array([2, 2, 2])
    """
    if n_classes < 2:
        raise InputError(f"n_classes={n_classes}: labels need at least two classes.")
    values = _polynomial_values(X[:, non_nulls], degree, 1, n_monomials, rng)[:, 0]
    values = values + np.sqrt(noise_variance) * rng.standard_normal(values.shape)
    return np.argsort(np.argsort(values)) * n_classes // len(values)


def _polynomial_values(
    columns: NDArray, degree: int, n_polynomials: int, n_monomials: int | None, rng: Generator
) -> NDArray:
    """Values (n, n_polynomials) of random polynomials of the columns, which are centred and scaled first."""
    scale = columns.std(axis=0)
    columns = (columns - columns.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    n, k = columns.shape
    powers = [c for p in range(1, degree + 1) for c in combinations_with_replacement(range(k), p)]
    coefficients = rng.standard_normal((len(powers), n_polynomials))
    if n_monomials is not None:
        coefficients *= _choose_monomials(powers, k, n_monomials, n_polynomials, rng)
    used = np.flatnonzero(coefficients.any(axis=1))
    values = np.empty((n, n_polynomials))
    step = max(1, CELLS // len(used))
    for start in range(0, n, step):
        part = columns[start : start + step]
        monomials = np.stack([np.prod(part[:, powers[m]], axis=1) for m in used], axis=1)
        values[start : start + step] = monomials @ coefficients[used]
    return values


def simulate_labels(
    X: NDArray,
    *,
    n_classes: int,
    n_non_nulls: int,
    rng: Generator,
    n_monomials: int | None = None,
    labels: Callable[..., NDArray[np.intp]] = polynomial_labels,
) -> Simulation:
    """Synthetic labels on given (for instance real) features, with non-nulls chosen at random.

    Parameters
    ----------
    X : array, shape (n, d)
    n_classes, n_non_nulls : int
    n_monomials : int, optional
        See `polynomial_labels`.
    labels : callable
        `polynomial_labels` or `level_set_labels`.

    >>> X = np.random.default_rng(0).standard_normal((50, 4))
    >>> simulate_labels(X, n_classes=2, n_non_nulls=2, rng=np.random.default_rng(1)).non_nulls.sum()
    np.int64(2)
    """
    non_nulls = draw_non_nulls(X.shape[1], n_non_nulls, rng=rng)
    y = labels(X, non_nulls, n_classes=n_classes, n_monomials=n_monomials, rng=rng)
    return Simulation(X, y, non_nulls)


def _choose_monomials(
    powers: list[tuple[int, ...]], k: int, n_monomials: int, n_classes: int, rng: Generator
) -> NDArray[np.bool_]:
    """Mask (monomial, class) with n_monomials a class; every one of the k features occurs in some class."""
    if not 1 <= n_monomials <= len(powers):
        raise InputError(f"n_monomials={n_monomials} must be between 1 and {len(powers)}, the number there is.")
    holds = np.zeros((len(powers), k), dtype=bool)
    for m, power in enumerate(powers):
        holds[m, list(power)] = True
    mask = np.zeros((len(powers), n_classes), dtype=bool)
    for c in range(n_classes):
        mask[rng.choice(len(powers), size=n_monomials, replace=False), c] = True
    for j in rng.permutation(k):  # a feature no monomial took: one of its own is added
        if not (mask.any(axis=1) & holds[:, j]).any():
            mask[rng.choice(np.flatnonzero(holds[:, j])), rng.integers(n_classes)] = True
    return mask
