"""Fit the model of fastPHASE to unphased genotypes by expectation and maximisation (Scheet and Stephens, 2006).

Both chains of a person are summed out together, in O(K^2) a site. What is expected given the genotypes are the jumps
into each ancestor at each site, and the alleles that each ancestor has shown there.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.features.hmm.model import check_sites
from knockoffs.features.hmm.mosaic import GenotypeModel, Mosaic
from knockoffs.machine.compiled import njit
from knockoffs.progress import track
from knockoffs.sampling.conjugates.markov_chain import encode_states

PEOPLE_AT_ONCE = 64  # a task of its own; the sums do not depend on the number of threads


def fit_genotypes(
    X: NDArray,
    *,
    rng: Generator,
    n_jobs: int | None = None,
    n_ancestors: int = 12,
    max_iter: int = 40,
    tol: float = 1e-4,
    pseudocount: float = 0.1,
) -> GenotypeModel:
    """Fit a mosaic of ancestral haplotypes to unphased genotypes.

    Parameters
    ----------
    X : array, shape (n, p)
        Copies 0, 1, 2 of an allele; NaN and negative numbers are missing. Columns are sites in their order.
    rng : numpy.random.Generator
        Draws the people whose genotypes are the first guess at the ancestors.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    n_ancestors : int
        K. The time grows with its square.
    max_iter, tol : int, float
        The fit stops when a round gains less than ``tol`` in mean log likelihood a cell.
    pseudocount : float
        Prior weight, in observations, of the frequency of the allele in each ancestor, and of a jump to any ancestor.

    Returns
    -------
    GenotypeModel
    """
    n, p = X.shape
    for name, number, least in (("n_ancestors", n_ancestors, 1), ("max_iter", max_iter, 1)):
        if number < least or number != int(number):
            raise InputError(f"{name}={number!r}: expected a whole number, at least {least}.")
    if not pseudocount > 0:
        raise InputError(f"pseudocount={pseudocount!r}: expected a number above 0.")
    codes = encode_states(check_sites(X, p), 3, missing=True, flagged=True, name="genotype")
    known = codes < 3
    frequency = (np.where(known, codes, 0).sum(axis=0) + 1.0) / (2.0 * known.sum(axis=0) + 2.0)
    mosaic, before = _start(codes, frequency, int(n_ancestors), rng), -np.inf
    for _ in track(range(int(max_iter)), "rounds of the genotype model"):
        jumps, carried, ones, value = _expect(codes, mosaic, n_jobs)
        mosaic = _maximise(jumps, carried, ones, frequency, n, pseudocount)
        if value - before < tol * n * p:
            break
        before = value
    return GenotypeModel(mosaic)


def _start(codes: NDArray, frequency: NDArray, K: int, rng: Generator) -> Mosaic:
    """Ancestors between the genotypes of some people, drawn at random, and the frequencies."""
    n, p = codes.shape
    some = codes[rng.choice(n, size=K, replace=n < K)].T
    theta = 0.8 * np.where(some < 3, some / 2, frequency[:, None]) + 0.2 * frequency[:, None]
    return Mosaic(np.full(p, 0.05), np.full((p, K), 1 / K), theta)


def _expect(codes: NDArray, mosaic: Mosaic, n_jobs: int | None) -> tuple[NDArray, NDArray, NDArray, float]:
    """Jumps of one chain into each ancestor, how often it carries a known allele, and allele 1; the log likelihood."""
    from joblib import delayed

    from knockoffs.machine.parallel import parallel_map

    p, K = mosaic.theta.shape
    jump = np.concatenate([[1.0], mosaic.chain.jump])

    def work(start: int) -> tuple[NDArray, float]:
        counts = np.zeros((3, p, K))
        rows = codes[start : start + PEOPLE_AT_ONCE]
        return counts, _expect_rows(rows, jump, mosaic.alpha, mosaic.theta, *counts)

    jobs = (delayed(work)(start) for start in range(0, len(codes), PEOPLE_AT_ONCE))
    total, value = np.zeros((3, p, K)), 0.0
    for counts, log_likelihood in parallel_map(jobs, n_jobs, threads=True):
        total += counts
        value += log_likelihood
    return *total, value


def _maximise(
    jumps: NDArray, carried: NDArray, ones: NDArray, frequency: NDArray, n: int, pseudocount: float
) -> Mosaic:
    """Parameters of the next round."""
    K = jumps.shape[1]
    jump = np.clip(jumps.sum(axis=1) / n, 1e-6, 1 - 1e-6)
    alpha = jumps + pseudocount / K
    theta = (ones + pseudocount * frequency[:, None]) / (carried + pseudocount)
    return Mosaic(-np.log1p(-jump), alpha / alpha.sum(axis=1, keepdims=True), theta)


@njit(cache=True, nogil=True)
def _expect_rows(codes, jump, alpha, theta, jumps, carried, ones):  # type: ignore[no-untyped-def]
    """Add the expected counts of some people, and return their log likelihood.

    ``law`` is P(both ancestors | genotypes up to a site), ``ahead`` is proportional to P(genotypes after it | both).
    A jump into the first site is certain.
    """
    n, p = codes.shape
    K = alpha.shape[1]
    law, side = np.empty((p, K, K)), np.zeros((p, K))
    ahead, seen = np.empty((K, K)), np.empty((K, K))
    landed = np.empty(K)
    value = 0.0
    for i in range(n):
        for j in range(p):
            go, stay, total, g = jump[j], 1 - jump[j], 0.0, codes[i, j]
            for a in range(K):
                for b in range(a + 1):
                    weight = go * go * alpha[j, a] * alpha[j, b]
                    if j > 0:
                        crossed = alpha[j, a] * side[j - 1, b] + alpha[j, b] * side[j - 1, a]
                        weight += stay * (stay * law[j - 1, a, b] + go * crossed)
                    weight *= _likelihood(g, theta[j, a], theta[j, b])
                    law[j, a, b] = law[j, b, a] = weight
                    total += weight if a == b else 2 * weight
            value += np.log(total)
            for a in range(K):
                side[j, a] = 0.0
                for b in range(K):
                    law[j, a, b] /= total
                    side[j, a] += law[j, a, b]
        ahead[:] = 1.0
        for j in range(p - 1, -1, -1):
            go, stay, g = jump[j], 1 - jump[j], codes[i, j]
            total = 0.0
            for a in range(K):
                for b in range(K):
                    total += law[j, a, b] * ahead[a, b]
            for a in range(K):
                for b in range(K):
                    weight = law[j, a, b] * ahead[a, b] / total
                    if g < 3:
                        carried[j, a] += weight
                    if g == 2:
                        ones[j, a] += weight
                    elif g == 1:
                        here, there = theta[j, a] * (1 - theta[j, b]), theta[j, b] * (1 - theta[j, a])
                        ones[j, a] += weight * here / (here + there)
            if j == 0:
                for a in range(K):
                    for b in range(K):
                        jumps[0, a] += law[0, a, b] * ahead[a, b] / total
                break
            scale, both = 0.0, 0.0
            for a in range(K):
                for b in range(K):
                    seen[a, b] = _likelihood(g, theta[j, a], theta[j, b]) * ahead[a, b]
            for a in range(K):
                landed[a] = 0.0
                for b in range(K):
                    landed[a] += alpha[j, b] * seen[a, b]
                both += alpha[j, a] * landed[a]
            for a in range(K):
                for b in range(K):
                    ahead[a, b] = stay * (stay * seen[a, b] + go * (landed[a] + landed[b])) + go * go * both
                    scale += law[j - 1, a, b] * ahead[a, b]
            for a in range(K):
                arrived = 0.0
                for b in range(K):
                    arrived += seen[a, b] * (stay * side[j - 1, b] + go * alpha[j, b])
                jumps[j, a] += go * alpha[j, a] * arrived / scale
                for b in range(K):
                    ahead[a, b] /= scale
    return value


@njit(cache=True, nogil=True)
def _likelihood(genotype, first, second):  # type: ignore[no-untyped-def]
    """P(genotype | P(allele 1) of both chains); 1 if it is missing."""
    if genotype == 0:
        return (1 - first) * (1 - second)
    if genotype == 1:
        return first * (1 - second) + second * (1 - first)
    return first * second if genotype == 2 else 1.0
