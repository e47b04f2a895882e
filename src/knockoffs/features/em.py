"""EM for Gaussian mixtures, and where it starts.

One pass over blocks of rows is an E-step and the sums of an M-step, both in BLAS-3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs
from scipy.linalg.lapack import dpotrf, dtrtri

from knockoffs.features.covariance import FEW, NEGLIGIBLE, ROWS_AT_ONCE

RIDGE = 1e-6  # added to every variance, in units of the column's own, so that a component of few rows has a density
MAX_STEPS = 500


@dataclass(frozen=True)
class Mixture:
    """Parameters of a mixture of l Gaussians."""

    weights: NDArray  # shape (l,)
    means: NDArray  # shape (l,)
    covariances: NDArray  # shape (l,)
    converged: bool = False  # whether EM had come to its end; no start has

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.weights)

    @property
    def n_parameters(self) -> int:
        """Free parameters: weights, means and covariances."""
        k, d = self.means.shape
        return k - 1 + k * d + k * d * (d + 1) // 2

    @cached_property
    def whiteners(self) -> tuple[tuple[NDArray, float], ...]:
        """L^-1 (lower triangular) and log det L of each component, L L^T its covariance."""
        return tuple(map(_whitener, self.covariances))

    def log_joint(self, Z: NDArray) -> NDArray:
        """Log weights_k N(z; mean_k, S_k), shape (n, l)."""
        value = np.empty((self.n_components, len(Z))).T  # work goes component by component: contiguous columns
        constant = -0.5 * Z.shape[1] * np.log(2 * np.pi)
        trmm = get_blas_funcs("trmm", dtype=Z.dtype)
        for start in range(0, len(Z), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            for k, (inverse, log_det) in enumerate(self.whiteners):
                centred = Z[rows] - self.means[k].astype(Z.dtype)
                # rows are draws, BLAS sees columns: L^-1 (z - mean)^T
                z = trmm(1.0, inverse.astype(Z.dtype, order="F", copy=False), centred.T, lower=True, overwrite_b=True).T
                value[rows, k] = -0.5 * np.einsum("ij,ij->i", z, z) + (np.log(self.weights[k]) - log_det + constant)
        return value

    def log_density(self, Z: NDArray) -> NDArray:
        """Log density of each row, shape (n,)."""
        return np.logaddexp.reduce(self.log_joint(Z), axis=1)

    def posterior(self, Z: NDArray) -> NDArray:
        """Responsibilities P(K = k | z), shape (n, l)."""
        return _normalise(self.log_joint(Z))[0]


def _whitener(covariance: NDArray) -> tuple[NDArray, float]:
    """L^-1 and log det L; LAPACK is called as it is, which takes half the time of few columns."""
    L, failed = dpotrf(covariance.T, lower=1, clean=1)
    ridge = RIDGE
    while failed:  # rounding of a component with fewer rows than columns
        L, failed = dpotrf(covariance.T + ridge * np.eye(len(covariance)), lower=1, clean=1)
        ridge *= 10
    log_det = float(np.log(np.diagonal(L)).sum())
    return dtrtri(L, lower=1, overwrite_c=1)[0], log_det


def _normalise(log_joint: NDArray) -> tuple[NDArray, NDArray]:
    """Responsibilities and log evidence."""
    top = log_joint.max(axis=1)
    shares = np.exp(log_joint - top[:, None])
    total = shares.sum(axis=1)
    return shares / total[:, None], top + np.log(total)


# Steps of EM


class _Sums:
    """Sums of an M-step around the means before it: centred, so that far and narrow components keep their digits."""

    def __init__(self, centres: NDArray) -> None:
        k, d = centres.shape
        self.centres, self.total = centres, np.zeros(k)
        self.first, self.second = np.zeros((k, d)), np.zeros((k, d, d))

    def add(self, block: NDArray, responsibilities: NDArray) -> None:
        self.total += responsibilities.sum(axis=0)
        for k, centre in enumerate(self.centres):
            weights = responsibilities[:, k]
            rows = np.flatnonzero(weights > NEGLIGIBLE)  # far components share few rows: most of the work is saved
            if not rows.size:
                continue
            root = np.sqrt(weights[rows]).astype(block.dtype)
            weighted = (block if len(rows) == len(block) else block[rows]) - centre.astype(block.dtype)
            weighted *= root[:, None]
            self.first[k] += root @ weighted
            self.second[k] += weighted.T @ weighted

    def mixture(self) -> Mixture:
        total = self.total + 10 * np.finfo(float).eps  # an empty component keeps its place
        moved = self.first / total[:, None]
        covariances = self.second / total[:, None, None] - moved[:, :, None] * moved[:, None, :]
        np.einsum("kii->ki", covariances)[:] += RIDGE
        return Mixture(total / total.sum(), self.centres + moved, covariances)


def mixture_of(Z: NDArray, responsibilities: NDArray) -> Mixture:
    """M-step: weights and weighted moments of the rows, shape (n, d), with responsibilities of shape (n, l)."""
    sums = _Sums(np.zeros((responsibilities.shape[1], Z.shape[1])))
    for start in range(0, len(Z), ROWS_AT_ONCE):
        sums.add(Z[start : start + ROWS_AT_ONCE], responsibilities[start : start + ROWS_AT_ONCE])
    return sums.mixture()


def one_component(Z: NDArray) -> Mixture:
    """Mixture of one component: the moments of the rows."""
    return replace(mixture_of(Z, np.ones((len(Z), 1))), converged=True)


def em_step(Z: NDArray, mixture: Mixture) -> tuple[Mixture, float]:
    """Mixture after one step of EM, and the log-likelihood of all rows before it.

    Rows in float32 are computed in float32, with sums over blocks in float64.
    """
    sums, log_likelihood = _Sums(mixture.means), 0.0
    for start in range(0, len(Z), ROWS_AT_ONCE):
        block = Z[start : start + ROWS_AT_ONCE]
        responsibilities, log_evidence = _normalise(mixture.log_joint(block))
        log_likelihood += float(log_evidence.sum())
        sums.add(block, responsibilities)
    return sums.mixture(), log_likelihood


def em_steps(Z: NDArray, mixture: Mixture, n_steps: int) -> tuple[Mixture, NDArray]:
    """Mixture after some steps of EM, and the log-likelihood before each step, shape (n_steps,)."""
    trace = np.empty(n_steps)
    for step in range(n_steps):
        mixture, trace[step] = em_step(Z, mixture)
    return mixture, trace


def run_em(
    Z: NDArray, mixture: Mixture, *, max_steps: int = MAX_STEPS, precision: float = 5e-3
) -> tuple[Mixture, float]:
    """Mixture at the end of EM, and its log-likelihood.

    Gains shrink by a factor that the last two of them tell, so what is left is a geometric series (Aitken). A fitted
    likelihood is n_parameters / 2 above that of the truth by chance alone: EM stops when a share of it,
    ``precision * n_parameters``, is left to gain.
    """
    values: list[float] = []
    for _ in range(max_steps):
        following, value = em_step(Z, mixture)
        values.append(value)
        if len(values) > 3 and _left_to_gain(*values[-3:]) < precision * mixture.n_parameters:
            return replace(mixture, converged=True), value
        mixture = following
    return mixture, float(mixture.log_density(Z).sum())


def _left_to_gain(first: float, second: float, third: float) -> float:
    before, last = second - first, third - second
    if last <= 0:
        return 0.0
    shrinks = min(max(last / before, 0.0), 0.99) if before > 0 else 0.99
    return last * shrinks / (1 - shrinks)


def admissible(mixture: Mixture, n: int) -> bool:
    """Whether a candidate's likelihood can be compared: it is inflated where a component has few rows or no spread."""
    few = mixture.weights.min() * n < FEW * mixture.means.shape[1]
    return mixture.n_components == 1 or not (few or collapsed(mixture))


def collapsed(mixture: Mixture, *, least: float = 1e-4) -> tuple[int, int] | None:
    """Component and column where a component sits on one value, or None: its variance is below ``least``.

    Variances are in units of the column's own.
    """
    spread = np.einsum("kii->ki", mixture.covariances) - RIDGE
    if len(spread) == 1 or spread.min() >= least:
        return None
    k, column = np.unravel_index(int(spread.argmin()), spread.shape)
    return int(k), int(column)


# Starts


def sample_rows(
    Z: NDArray, most: int, rng: Generator, *, enough: int = 4096, a_column: int = 20, safe: float = 1e-3
) -> NDArray:
    """Rows that starts with at most so many components are found on, in float32 where that is exact enough.

    They are ``enough``, or ``a_column`` for each column and component if that is more. float32 is exact enough where
    the smallest eigenvalue of the correlations is above ``safe``.
    """
    n, d = Z.shape
    size = max(enough, a_column * d * most)
    rows = Z[np.sort(rng.choice(n, size, replace=False))] if n > size else Z
    exact = n > d and np.linalg.eigvalsh(rows.T @ rows / len(rows))[0] > safe
    return rows.astype(np.float32) if exact else rows


def clusters_start(Z: NDArray, n_components: int, rng: Generator, *, n_steps: int = 20) -> Mixture:
    """Moments of the clusters of k-means: seeds far from one another (k-means++), then at most n_steps of Lloyd."""
    from sklearn.cluster import kmeans_plusplus

    centres, _ = kmeans_plusplus(Z, n_components, random_state=int(rng.integers(2**31)))
    before = np.full(len(Z), -1)
    for _ in range(n_steps):
        nearest = (Z @ centres.T - 0.5 * (centres**2).sum(axis=1)).argmax(axis=1)
        if np.array_equal(nearest, before):  # all further steps would be this one
            break
        members = np.eye(n_components, dtype=Z.dtype)[nearest]
        counts = members.sum(axis=0)[:, None]
        centres = np.where(counts > 0, members.T @ Z / np.maximum(counts, 1), centres)
        before = nearest
    return mixture_of(Z, members)


def split_start(Z: NDArray, mixture: Mixture, least: float, *, n_steps: int = 5) -> Mixture | None:
    """Mixture with the component split in two whose split gains most on its own rows.

    A component is cut in half in four ways, each followed by ``n_steps`` of EM with two components. None if no
    component has the ``least`` rows that each half needs.
    """
    owner = mixture.log_joint(Z).argmax(axis=1)
    best, best_gain = None, -np.inf
    for k in range(mixture.n_components):
        rows = Z[owner == k]
        if len(rows) < 2 * least:
            continue
        whole = mixture_of(rows, np.ones((len(rows), 1)))
        before = whole.log_density(rows).sum()
        for half in _halves(rows, whole):
            pair, values = em_steps(rows, mixture_of(rows, np.column_stack([half, ~half])), n_steps)
            if values[-1] - before > best_gain and pair.weights.min() * len(rows) >= least / 2:
                kept = np.arange(mixture.n_components) != k
                best, best_gain = (
                    Mixture(
                        np.concatenate([mixture.weights[kept], mixture.weights[k] * pair.weights]),
                        np.concatenate([mixture.means[kept], pair.means]),
                        np.concatenate([mixture.covariances[kept], pair.covariances]),
                    ),
                    values[-1] - before,
                )
    return best


def _halves(rows: NDArray, whole: Mixture) -> list[NDArray]:
    """Four ways to cut the rows of one Gaussian in half, as masks.

    With z the whitened rows, the extreme eigenvectors of E[|z|^2 z z^T] are the directions of least and largest
    kurtosis: between two clusters of like size, and towards a small one, whatever the covariance hides. The radius
    |z| separates a wide component from a narrow one inside it, the first principal axis what lies far apart.
    """
    inverse, _ = whole.whiteners[0]
    centred = rows - whole.means[0].astype(rows.dtype)
    z = centred @ inverse.T.astype(rows.dtype)
    squares = np.einsum("ij,ij->i", z, z)
    weighted = z * np.sqrt(squares)[:, None]
    kurtosis = np.linalg.eigh((weighted.T @ weighted).astype(float))[1]
    principal = np.linalg.eigh(whole.covariances[0])[1][:, -1]
    least, most, principal = (v.astype(rows.dtype) for v in (kurtosis[:, 0], kurtosis[:, -1], principal))
    with np.errstate(invalid="ignore"):  # some kernels of BLAS read beyond the end of a float32 row, and flag it
        scores = (z @ least, z @ most, squares, centred @ principal)
    masks = [values > np.median(values) for values in scores]
    return [mask for mask in masks if 0 < mask.sum() < len(mask)]
