"""The law of (K, L) as the compiled loops read it, and draws of it given the cells."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from joblib import delayed, effective_n_jobs
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtri

from knockoffs.features.latent.gibbs import Classes, draw_starts, jump_rows, log_densities, sweep_rows
from knockoffs.features.latent.margins import FREE, POINT, LatentCells
from knockoffs.machine.parallel import in_place


def classes(weights: NDArray, means: NDArray, covariances: NDArray) -> Classes:
    """Precisions and their determinants of positive definite covariances."""
    P, W, half = np.empty(covariances.shape), np.empty(covariances.shape), np.empty(len(weights))
    for k, S in enumerate(covariances):
        factor = dpotrf(S, lower=1)[0]
        W[k] = np.tril(dtrtri(factor, lower=1)[0])
        P[k] = W[k].T @ W[k]
        half[k] = -np.log(np.diagonal(factor)).sum()
    return Classes(np.log(weights), np.ascontiguousarray(means, dtype=float), P, W, half)


def sweep(
    L: NDArray,
    K: NDArray[np.intp],
    cells: LatentCells,
    law: Classes,
    *,
    rng: Generator,
    n_sweeps: int,
    backward: bool = False,
    n_jobs: int | None = None,
) -> None:
    """Move L, shape (n, D), and K, shape (n,), by some sweeps of Gibbs sampling, in place; ``backward`` in time.

    The random numbers of a row do not depend on n_jobs.
    """
    key = rng.integers(2**64, size=2, dtype=np.uint64)

    def work(rows: slice) -> None:
        sweep_rows(L[rows], K[rows], cells.rows(rows), law, key, rows.start, n_sweeps, backward)

    _in_blocks(work, len(L), n_jobs)


def jump(
    L: NDArray,
    K: NDArray[np.intp],
    cells: LatentCells,
    law: Classes,
    *,
    rng: Generator,
    n_draws: int = 2,
    n_jobs: int | None = None,
) -> None:
    """Move L and K among n_draws draws of every class, in place; see ``jump_rows``."""
    order = points_first(cells)
    F = factors_of(law, order)
    means = np.ascontiguousarray(law.means[:, order])
    key = rng.integers(2**64, size=2, dtype=np.uint64)

    def work(rows: slice) -> None:
        moved = np.ascontiguousarray(L[rows][:, order])
        jump_rows(moved, K[rows], cells.rows(rows).columns(order), law.log_weights, means, F, key, rows.start, n_draws)
        L[rows, order] = moved

    _in_blocks(work, len(L), n_jobs)


def _in_blocks(work: Callable[[slice], None], n: int, n_jobs: int | None) -> None:
    """Work on blocks of rows in threads, a few for each."""
    parts = max(effective_n_jobs(n_jobs), 1)
    step = max(-(-n // (4 * parts)), 64) if parts > 1 else max(n, 1)
    in_place((delayed(work)(slice(start, start + step)) for start in range(0, n, step)), n_jobs)


def points_first(cells: LatentCells) -> NDArray[np.intp]:
    """Order of the coordinates with those that are mostly points first."""
    return np.argsort(-(cells.status == POINT).mean(axis=0), kind="stable")


def log_density_of(cells: LatentCells, law: Classes, *, n_draws: int) -> NDArray:
    """Log density of the cells of each row, by importance sampling with fixed random numbers."""
    order = points_first(cells)
    means, key = np.ascontiguousarray(law.means[:, order]), np.array([1, 2], np.uint64)
    return log_densities(cells.columns(order), law.log_weights, means, factors_of(law, order), key, n_draws)


def factors_of(law: Classes, order: NDArray[np.intp]) -> NDArray:
    """Cholesky factors of the covariances of the classes, the coordinates in another order, shape (l, D, D)."""
    factors = np.linalg.inv(law.whiteners)
    covariances = factors @ factors.transpose(0, 2, 1)
    return np.linalg.cholesky(covariances[:, order][:, :, order])


def start_latent(cells: LatentCells, law: Classes, *, rng: Generator) -> NDArray:
    """L inside the cells, drawn coordinate by coordinate from the Gaussian with the mixture's moments."""
    order = points_first(cells)
    weights = np.exp(law.log_weights)
    mean = weights @ law.means
    spread = np.einsum("k,ki,kj->ij", weights, law.means - mean, law.means - mean)
    factors = np.linalg.inv(law.whiteners)
    S = np.einsum("k,kij,klj->il", weights, factors, factors, optimize=True) + spread
    key = rng.integers(2**64, size=2, dtype=np.uint64)
    F = np.linalg.cholesky(S[np.ix_(order, order)])
    L = np.empty(cells.start.shape)
    L[:, order] = draw_starts(cells.columns(order), mean[order], F, key)
    return L


def draw_latent(
    cells: LatentCells, law: Classes, *, rng: Generator, n_sweeps: int, n_jobs: int | None = None
) -> tuple[NDArray[np.intp], NDArray]:
    """(K, L) given the cells, after n_sweeps sweeps."""
    started = (cells.status > FREE).any()  # without an interval the first sweep is exact from anywhere
    L = start_latent(cells, law, rng=rng) if started else np.array(cells.start, order="C")
    K = np.zeros(len(L), np.intp)
    run_chain(L, K, cells, law, rng=rng, n_sweeps=n_sweeps, n_jobs=n_jobs)
    return K, L


def run_chain(
    L: NDArray,
    K: NDArray[np.intp],
    cells: LatentCells,
    law: Classes,
    *,
    rng: Generator,
    n_sweeps: int,
    jump_every: int = 10,
    n_jobs: int | None = None,
) -> None:
    """Move L and K by some sweeps, in place; with a jump before every ``jump_every`` of them, where it is of use."""
    if not has_jumps(cells, law):
        return sweep(L, K, cells, law, rng=rng, n_sweeps=n_sweeps, n_jobs=n_jobs)
    for done in range(0, n_sweeps, jump_every):
        jump(L, K, cells, law, rng=rng, n_jobs=n_jobs)
        some = min(jump_every, n_sweeps - done)
        sweep(L, K, cells, law, rng=rng, n_sweeps=some, n_jobs=n_jobs)


def has_jumps(cells: LatentCells, law: Classes) -> bool:
    """Whether a chain may be held in a class: there are several, and intervals."""
    return len(law.log_weights) > 1 and bool((cells.status > FREE).any())
