"""Tables with known truth, one registry: features of every kind, responses of every kind.

A design names a law of the features (``FEATURES``) and a law of y given some of them (``RESPONSES``). Repetition r of a
design is always the same table, whichever designs and methods are run with it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import block_diag, toeplitz
from scipy.special import expit, ndtr, softmax
from scipy.stats import poisson

N_CLASSES = 4  # of multinomial responses
N_LEVELS = 3  # of nominal columns
DEGREES = 4.0  # of freedom of heavy tails


@dataclass(frozen=True)
class Design:
    """Law of a table.

    Parameters
    ----------
    features, response : str
        Keys of ``FEATURES`` and ``RESPONSES``.
    strength : float
        Size of every effect, for columns of variance 1 and noise of variance 1.
    n, d, n_non_nulls : int
        Rows, columns, and columns that y depends on.
    """

    features: str
    response: str
    strength: float
    n: int = 500
    d: int = 50
    n_non_nulls: int = 15


@dataclass(frozen=True)
class Data:
    """One table of a design.

    Attributes
    ----------
    X : array or data frame, shape (n, d)
        Numbers; codes of the levels in nominal columns. The suites of columns and of real tables have data frames.
    y : array, shape (n,)
        Numbers, counts, or codes of classes.
    non_nulls : array of bool, shape (d,)
    nominal : tuple of int
        Columns whose numbers are codes of labels.
    classes : bool
        Whether y holds classes.
    features : str
        Law of X, a key of ``FEATURES``: for the oracle alone.
    kinds : dict, optional
        Kinds of columns that the selector cannot infer.
    exact : callable, optional
        Options of a selector that knows the law of X, as a function of a generator: for the oracle alone.
    """

    X: Any
    y: NDArray
    non_nulls: NDArray[np.bool_]
    nominal: tuple[int, ...] = ()
    classes: bool = False
    features: str = ""
    kinds: dict[str, list[str]] | None = None
    exact: Callable[[Generator], dict[str, Any]] | None = None


# Features: functions of (n, d, rng) to an array of shape (n, d)


def normal(Sigma: NDArray, n: int, rng: Generator) -> NDArray:
    """Rows of N(0, Sigma)."""
    return rng.standard_normal((n, len(Sigma))) @ np.linalg.cholesky(Sigma).T


def fading(d: int, rho: float = 0.5) -> NDArray:
    """Correlations rho^|i - j|."""
    return toeplitz(rho ** np.arange(d))


def equal(d: int, rho: float = 0.5) -> NDArray:
    """All correlations equal."""
    return np.full((d, d), rho) + (1 - rho) * np.eye(d)


def in_blocks(d: int, size: int = 5) -> NDArray:
    """Blocks of equicorrelated columns, none between the blocks."""
    return block_diag(*[equal(size, 0.6)] * -(-d // size))[:d, :d]


def autoregressive(n: int, d: int, rng: Generator, rho: float = 0.5) -> NDArray:
    """Gaussian, each column made of the one before it."""
    return normal(fading(d, rho), n, rng)


def equicorrelated(n: int, d: int, rng: Generator) -> NDArray:
    """Gaussian, all correlations equal."""
    return normal(equal(d), n, rng)


def blocks(n: int, d: int, rng: Generator) -> NDArray:
    """Gaussian, in blocks."""
    return normal(in_blocks(d), n, rng)


def mixture(n: int, d: int, rng: Generator) -> NDArray:
    """Three Gaussians with means and correlations of their own (rho^|i - j|, rho = -0.5, 0.3, 0.8)."""
    means = 0.7 * rng.standard_normal((3, d))
    Sigmas = [fading(d, rho) for rho in (-0.5, 0.3, 0.8)]
    drawn = np.stack([means[k] + normal(Sigma, n, rng) for k, Sigma in enumerate(Sigmas)])
    return drawn[rng.integers(0, 3, n), np.arange(n)]


def heavy_tailed(n: int, d: int, rng: Generator, df: float = DEGREES) -> NDArray:
    """Multivariate t: whole rows are wide or narrow."""
    return autoregressive(n, d, rng) / np.sqrt(rng.chisquare(df, n) / df)[:, None]


def log_normal(n: int, d: int, rng: Generator) -> NDArray:
    """Exponentials of correlated Gaussians."""
    return np.exp(autoregressive(n, d, rng))


def counts(n: int, d: int, rng: Generator, mean: float = 2.0) -> NDArray:
    """Poisson margins, correlated."""
    return poisson.ppf(ndtr(autoregressive(n, d, rng)), mean)


def zero_one(n: int, d: int, rng: Generator) -> NDArray:
    """0 and 1, correlated, ones a third."""
    return (autoregressive(n, d, rng, 0.6) > 0.43).astype(float)


def hidden_chain(n: int, d: int, rng: Generator, n_states: int = 5, stay: float = 0.8) -> NDArray:
    """0, 1, 2 as in genotypes: a hidden chain of states, each with a frequency of its own at each site."""
    frequency = rng.beta(1.0, 1.5, (d, n_states))
    X = np.empty((n, d))
    state = rng.integers(0, n_states, n)
    for j in range(d):
        state = np.where(rng.random(n) < stay, state, rng.integers(0, n_states, n))
        X[:, j] = rng.binomial(2, frequency[j, state])
    return X


MIXED = ("number", "skewed", "count", "binary", "ordinal", "nominal")  # kinds of columns, in turn


def mixed(n: int, d: int, rng: Generator) -> NDArray:
    """Columns of six kinds in turn, from one correlated Gaussian; a label is the largest of three coordinates."""
    L = np.stack([autoregressive(n, d, rng, 0.6) for _ in range(N_LEVELS)])
    z = L[0]
    kinds = [z, np.exp(z), poisson.ppf(ndtr(z), 2.0), z > 0.43, np.searchsorted([-1.5, -0.5, 0.5, 1.2], z)]
    kinds.append(np.argmax(L, axis=0))
    return np.stack([kinds[j % len(MIXED)][:, j] for j in range(d)], axis=1).astype(float)


FEATURES: dict[str, Callable[[int, int, Generator], NDArray]] = {
    "ar": autoregressive,
    "equicorrelated": equicorrelated,
    "blocks": blocks,
    "mixture": mixture,
    "t": heavy_tailed,
    "log_normal": log_normal,
    "counts": counts,
    "zero_one": zero_one,
    "mixed": mixed,
    "hmm": hidden_chain,
}


# Responses: functions of (scores of the non-nulls, shape (n, k), strength, rng) to y


def linear(S: NDArray, strength: float, rng: Generator) -> NDArray:
    """Sum of the columns with random signs, and Gaussian noise."""
    return strength * S @ signs(S, rng) + rng.standard_normal(len(S))


def logistic(S: NDArray, strength: float, rng: Generator) -> NDArray:
    """Two classes, log odds linear."""
    return (rng.random(len(S)) < expit(strength * S @ signs(S, rng))).astype(np.intp)


def multinomial(S: NDArray, strength: float, rng: Generator) -> NDArray:
    """Four classes, log odds linear with normal coefficients."""
    P = softmax(strength * S @ rng.standard_normal((S.shape[1], N_CLASSES)), axis=1)
    return (rng.random((len(S), 1)) > np.cumsum(P, axis=1)[:, :-1]).sum(axis=1)


def poisson_counts(S: NDArray, strength: float, rng: Generator) -> NDArray:
    """Draw counts, log rate linear."""
    return rng.poisson(np.exp(np.clip(0.5 + strength * S @ signs(S, rng), None, 6.0)))


def cubic(S: NDArray, strength: float, rng: Generator) -> NDArray:
    """Third Hermite polynomial of every column, cut at 2.5: hardly any linear trend in a Gaussian one."""
    S = np.clip(S, -2.5, 2.5)
    return strength * ((S**3 - 3 * S) / np.sqrt(6)) @ signs(S, rng) + rng.standard_normal(len(S))


def products(S: NDArray, strength: float, rng: Generator) -> NDArray:
    """Products of the columns in pairs (an odd one alone)."""
    pairs = S[:, 0:-1:2] * S[:, 1::2]
    terms = np.hstack([pairs, S[:, -1:]]) if S.shape[1] % 2 else pairs
    return strength * terms @ signs(terms, rng) + rng.standard_normal(len(S))


def heteroscedastic(S: NDArray, strength: float, rng: Generator) -> NDArray:
    """Mean linear in the first two thirds of the columns, log of the noise in the others."""
    k = 2 * S.shape[1] // 3
    mean, spread = S[:, :k] @ signs(S[:, :k], rng), S[:, k:] @ signs(S[:, k:], rng)
    return strength * mean + np.exp(np.clip(0.4 * spread, -3, 3)) * rng.standard_normal(len(S))


def signs(S: NDArray, rng: Generator) -> NDArray:
    """Draw a sign for each column."""
    return rng.choice([-1.0, 1.0], S.shape[1])


RESPONSES: dict[str, Callable[[NDArray, float, Generator], NDArray]] = {
    "linear": linear,
    "logistic": logistic,
    "multinomial": multinomial,
    "poisson": poisson_counts,
    "cubic": cubic,
    "products": products,
    "heteroscedastic": heteroscedastic,
}
CLASSES = ("logistic", "multinomial")

DESIGNS: dict[str, Design] = {
    "ar_linear": Design("ar", "linear", 0.18),
    "equicorrelated_linear": Design("equicorrelated", "linear", 0.25),
    "blocks_linear": Design("blocks", "linear", 0.22),
    "wide_linear": Design("ar", "linear", 0.4, n=200, d=300, n_non_nulls=20),
    "mixture_linear": Design("mixture", "linear", 0.25),
    "t_linear": Design("t", "linear", 0.18),
    "log_normal_linear": Design("log_normal", "linear", 0.18),
    "counts_linear": Design("counts", "linear", 0.18),
    "zero_one_linear": Design("zero_one", "linear", 0.2),
    "mixed_linear": Design("mixed", "linear", 0.2),
    "hmm_linear": Design("hmm", "linear", 0.2),
    "ar_logistic": Design("ar", "logistic", 0.5),
    "ar_multinomial": Design("ar", "multinomial", 0.5),
    "ar_poisson": Design("ar", "poisson", 0.15),
    "ar_cubic": Design("ar", "cubic", 0.8, n=800),
    "ar_products": Design("ar", "products", 0.6, n=800, n_non_nulls=16),
    "ar_heteroscedastic": Design("ar", "heteroscedastic", 0.35),
    "mixture_logistic": Design("mixture", "logistic", 0.6),
    "mixed_logistic": Design("mixed", "logistic", 0.5),
    "mixed_cubic": Design("mixed", "cubic", 0.8, n=800),
    "zero_one_products": Design("zero_one", "products", 0.5, n=800, n_non_nulls=16),
    "hmm_multinomial": Design("hmm", "multinomial", 0.5),
    "ar_null": Design("ar", "linear", 0.0, n_non_nulls=0),
}


def generator(name: str, repetition: int) -> Generator:
    """Stream of one repetition of a design."""
    return np.random.default_rng([zlib.crc32(name.encode()), repetition])


def draw(name: str, repetition: int, designs: dict[str, Design] = DESIGNS) -> Data:
    """Table of one repetition.

    >>> data = draw("mixed_logistic", 0)
    >>> data.X.shape, int(data.non_nulls.sum()), len(data.nominal)
    ((500, 50), 15, 8)
    """
    design, rng = designs[name], generator(name, repetition)
    X = FEATURES[design.features](design.n, design.d, rng)
    nominal = tuple(range(len(MIXED) - 1, design.d, len(MIXED))) if design.features == "mixed" else ()
    chosen = rng.permutation(design.d)[: design.n_non_nulls]  # not sorted: neighbours need not be partners
    S = np.column_stack([score(X[:, j], j in nominal, rng) for j in chosen]) if len(chosen) else np.zeros((len(X), 1))
    y = RESPONSES[design.response](S, design.strength, rng)
    non_nulls = np.isin(np.arange(design.d), chosen)
    return Data(X, y, non_nulls, nominal, design.response in CLASSES, design.features)


def score(x: NDArray, nominal: bool, rng: Generator) -> NDArray:
    """Column with mean 0 and variance 1; levels of a nominal one get the values of a random permutation."""
    values = rng.permutation(N_LEVELS)[x.astype(int)].astype(float) if nominal else x
    spread = values.std()
    return (values - values.mean()) / (spread if spread > 0 else 1.0)
