"""Data sets for the study of the verdict: knockoffs that are valid, and faults that must be seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from paper.mixtures import MixtureParameters, draw_mixture, draw_three_components, sample_mixture

from knockoffs.errors import KnockoffWarning
from knockoffs.features import FeatureModel
from knockoffs.features.gaussian import fit_gaussian, gaussian_features
from knockoffs.features.gaussian_mixture import MixtureFeatures, fit_gaussian_mixture, gaussian_mixture_features
from knockoffs.features.hmm import HiddenMarkov
from knockoffs.features.hmm.emissions import DiscreteEmissions
from knockoffs.features.naive_bayes import fit_naive_bayes
from knockoffs.features.network import DiscreteNetwork, fit_discrete_network
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import KnockoffSampler, NetworkSampler

D = 30  # columns of the simulated tables


@dataclass(frozen=True)
class Judged:
    """A pair and the kinds of its columns."""

    pair: Pair
    kinds: tuple[str, ...]


Case = Callable[[int, Generator], Pair | Judged]


# Features


def smooth_covariance(rho: float = 0.5) -> NDArray:
    """Correlations rho^|i - j|."""
    return rho ** np.abs(np.subtract.outer(np.arange(D), np.arange(D)))


def gaussian_rows(n: int, rng: Generator, rho: float = 0.5) -> NDArray:
    """Gaussian with correlations rho^|i - j|."""
    return rng.standard_normal((n, D)) @ np.linalg.cholesky(smooth_covariance(rho)).T


def mixture_law(mixture: MixtureParameters) -> MixtureFeatures:
    """P^X with the true parameters of a simulated mixture."""
    return gaussian_mixture_features(mixture.weights, mixture.means, mixture.covariances)


def drawn(model: FeatureModel, X: NDArray, rng: Generator) -> Pair:
    """X beside its knockoffs."""
    return NetworkSampler(model.as_network()).sample(X, rng)


def fitted(fit: Callable[..., FeatureModel], X: NDArray, rng: Generator) -> Pair:
    """P^X fitted to the rows it is then used for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KnockoffWarning)
        return drawn(fit(X, rng=rng), X, rng)


# Valid knockoffs


def true_gaussian(n: int, rng: Generator) -> Pair:
    """Gaussian, true parameters."""
    return drawn(gaussian_features(np.zeros(D), smooth_covariance()), gaussian_rows(n, rng), rng)


def fitted_gaussian(n: int, rng: Generator) -> Pair:
    """Gaussian, parameters fitted."""
    return fitted(fit_gaussian, gaussian_rows(n, rng), rng)


def true_mixture(n: int, rng: Generator) -> Pair:
    """Mixture of Figure 2, true parameters."""
    mixture = draw_three_components(rng=rng)
    return drawn(mixture_law(mixture), sample_mixture(mixture, n, rng=rng)[0], rng)


def fitted_mixture(n: int, rng: Generator) -> Pair:
    """Random mixture of three components in ten columns, fitted by EM."""
    X, _ = sample_mixture(draw_mixture(3, 10, rng=rng), n, rng=rng)
    return fitted(partial(fit_gaussian_mixture, n_components=3), X, rng)


def hidden_markov(n: int, rng: Generator) -> Pair:
    """Hidden Markov model of three symbols, true parameters."""
    K, M = 3, 3
    transitions = np.tile(0.8 * np.eye(K) + 0.2 / K, (D - 1, 1, 1))
    emissions = DiscreteEmissions(rng.dirichlet(np.ones(M), size=(D, K)))
    model = HiddenMarkov(np.full(K, 1 / K), transitions, emissions)
    H = np.empty((n, D), dtype=int)
    X = np.empty((n, D))
    for j in range(D):
        H[:, j] = (
            rng.integers(K, size=n) if j == 0 else np.where(rng.random(n) < 0.8, H[:, j - 1], rng.integers(K, size=n))
        )
        law = emissions.table[j][H[:, j]]
        X[:, j] = (law.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)
    return drawn(model, X, rng)


def random_network(rng: Generator, d: int = 12) -> DiscreteNetwork:
    """Draw a tree of three-valued nodes."""
    names = [f"v{j}" for j in range(d)]
    parents = {name: () if j == 0 else (names[rng.integers(j)],) for j, name in enumerate(names)}
    tables = {name: rng.dirichlet(np.ones(3), size=(3,) if parents[name] else None) for name in names}
    return DiscreteNetwork(parents, tables)


def true_network(n: int, rng: Generator) -> Pair:
    """Discrete network, true parameters."""
    model = random_network(rng)
    return drawn(model, model.sample(n, rng), rng)


def fitted_network(n: int, rng: Generator) -> Pair:
    """Discrete network, tree and tables fitted."""
    return fitted(fit_discrete_network, random_network(rng).sample(n, rng).astype(float), rng)


def fitted_naive_bayes(n: int, rng: Generator) -> Pair:
    """Two classes with 0/1, count and number columns, naive Bayes fitted."""
    K = rng.integers(2, size=n)[:, None]
    binary = rng.random((n, 5)) < 0.3 + 0.4 * K
    X = np.hstack([binary, rng.poisson(2 + 3 * K, size=(n, 5)), rng.standard_normal((n, 5)) + 2 * K]).astype(float)
    return fitted(partial(fit_naive_bayes, n_classes=2), X, rng)


MIXED = ("continuous",) * 5 + ("count",) * 3 + ("ordinal",) * 3 + ("binary",) * 3 + ("nominal",)


def mixed_rows(n: int, rng: Generator) -> NDArray:
    """Columns of every kind, monotone functions of a Gaussian with correlations 0.6^|i - j|; labels as codes."""
    coordinates = len(MIXED) + 2  # three for the labels
    L = rng.standard_normal((n, coordinates))
    for j in range(1, coordinates):
        L[:, j] = 0.6 * L[:, j - 1] + 0.8 * L[:, j]
    smooth = np.column_stack([L[:, :2], np.exp(L[:, 2:4]), np.sinh(L[:, 4])])
    counts = np.stack([np.digitize(L[:, j], np.log(np.arange(1, 12))) for j in range(5, 8)], axis=1)
    grades = np.digitize(L[:, 8:11], [-1.0, 0.0, 0.8])
    labels = L[:, 14:].argmax(axis=1)
    return np.column_stack([smooth, counts, grades, L[:, 11:14] > 0.5, labels]).astype(float)


def fitted_latent(n: int, rng: Generator) -> Judged:
    """Columns of every kind, latent Gaussian model fitted, which is the default."""
    from knockoffs.features.latent.fit import fit_latent

    X = mixed_rows(n, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KnockoffWarning)
        model = fit_latent(X, kinds=MIXED, rng=rng)
        return Judged(model.as_sampler().sample(X, rng), MIXED)


@lru_cache(maxsize=1)
def known_latent() -> KnockoffSampler:
    """Latent Gaussian model of these columns, fitted to 20,000 rows of its own: all but the true parameters."""
    from knockoffs.features.latent.fit import fit_latent

    rng = np.random.default_rng(0)
    return fit_latent(mixed_rows(20_000, rng), kinds=MIXED, rng=rng).as_sampler()


def true_latent(n: int, rng: Generator) -> Judged:
    """Columns of every kind, latent Gaussian model that was fitted to 20,000 other rows."""
    return Judged(known_latent().sample(mixed_rows(n, rng), rng), MIXED)


# Faults


def one_gaussian(n: int, rng: Generator) -> Pair:
    """One Gaussian fitted to the mixture of Figure 2."""
    return fitted(fit_gaussian, sample_mixture(draw_three_components(rng=rng), n, rng=rng)[0], rng)


def binary_as_gaussian(n: int, rng: Generator) -> Pair:
    """0/1 columns modelled as Gaussian."""
    return fitted(fit_gaussian, (gaussian_rows(n, rng) > 0) * 1.0, rng)


def heavy_tails(n: int, rng: Generator) -> Pair:
    """Columns with a t distribution of 3 degrees of freedom, one Gaussian fitted."""
    return fitted(fit_gaussian, rng.standard_t(3, size=(n, D)), rng)


def one_heavy_tail(n: int, rng: Generator) -> Pair:
    """One such column among Gaussian ones."""
    X = gaussian_rows(n, rng)
    X[:, 0] = rng.standard_t(3, size=n)
    return fitted(fit_gaussian, X, rng)


def log_normal(n: int, rng: Generator) -> Pair:
    """Log-normal columns, one Gaussian fitted."""
    return fitted(fit_gaussian, np.exp(gaussian_rows(n, rng)), rng)


def curved(n: int, rng: Generator, n_links: int = D // 2) -> Pair:
    """Half of the columns are squares of the others plus noise, one Gaussian fitted."""
    X = rng.standard_normal((n, D))
    X[:, D - n_links :] += X[:, :n_links] ** 2
    return fitted(fit_gaussian, X, rng)


def curved_normal_scores(n: int, rng: Generator) -> Pair:
    """Do the same, each column made Gaussian by its ranks first: only the links are wrong."""
    from scipy.special import ndtri

    X = rng.standard_normal((n, D))
    X[:, D // 2 :] += X[:, : D // 2] ** 2
    return fitted(fit_gaussian, ndtri((X.argsort(axis=0).argsort(axis=0) + 0.5) / n), rng)


def transposed_factor(n: int, rng: Generator, rho: float = 0.5) -> Pair:
    """Noise multiplied by the transposed Cholesky factor, equicorrelated D, true parameters."""
    Sigma = smooth_covariance(rho)
    X = gaussian_rows(n, rng, rho)
    Dm = np.eye(D) * min(1.0, 2 * np.linalg.eigvalsh(Sigma)[0])
    V = 2 * Dm - Dm @ np.linalg.solve(Sigma, Dm) + 1e-10 * np.eye(D)
    mean = X - X @ np.linalg.solve(Sigma, Dm)
    return Pair(X, mean + rng.standard_normal((n, D)) @ np.linalg.cholesky(V), np.arange(D))


def permuted_columns(n: int, rng: Generator) -> Pair:
    """Each column permuted on its own."""
    X = gaussian_rows(n, rng)
    return Pair(X, rng.permuted(X, axis=0), np.arange(D))


def permuted_rows(n: int, rng: Generator) -> Pair:
    """Rows of X permuted: X_tilde has the law of X, and is not linked to it."""
    X = gaussian_rows(n, rng)
    return Pair(X, rng.permutation(X), np.arange(D))


def plus_noise(n: int, rng: Generator) -> Pair:
    """X plus noise of half its standard deviation."""
    X = gaussian_rows(n, rng)
    return Pair(X, X + 0.5 * rng.standard_normal(X.shape), np.arange(D))


VALID: dict[str, Case] = {
    "gaussian_true": true_gaussian,
    "gaussian_fitted": fitted_gaussian,
    "mixture_true": true_mixture,
    "mixture_fitted": fitted_mixture,
    "hmm_true": hidden_markov,
    "network_true": true_network,
    "network_fitted": fitted_network,
    "naive_bayes_fitted": fitted_naive_bayes,
    "latent_true": true_latent,
    "latent_fitted": fitted_latent,
}
FAULTS: dict[str, Case] = {
    "one_gaussian": one_gaussian,
    "binary_as_gaussian": binary_as_gaussian,
    "heavy_tails": heavy_tails,
    "one_heavy_tail": one_heavy_tail,
    "log_normal": log_normal,
    "curved": curved,
    "curved_one": partial(curved, n_links=1),
    "curved_normal_scores": curved_normal_scores,
    "transposed_factor": transposed_factor,
    "permuted_columns": permuted_columns,
    "permuted_rows": permuted_rows,
    "plus_noise": plus_noise,
}
CASES = VALID | FAULTS
