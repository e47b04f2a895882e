"""EM for Gaussian mixtures: one pass over blocks of rows is an E-step and the sums of an M-step, both in BLAS-3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs
from scipy.linalg.lapack import dpotrf, dtrtri

ROWS_AT_ONCE = 2048  # a block, whitened for one component, stays in the cache; memory does not grow with n
RIDGE = 1e-6  # added to every variance, in units of the column's own, so that a component of few rows has a density
NEGLIGIBLE = 1e-16  # responsibility under which a row is left out of a component's sums: less than their rounding
MAX_STEPS = 500
PRECISION = 5e-3  # EM stops when what is left to gain is under this share of the number of parameters
AT_LEAST = 3  # steps before the gain that is left can be told from the last two gains


@dataclass(frozen=True)
class Mixture:
    """Parameters of a mixture of l Gaussians.

    Parameters
    ----------
    weights : array, shape (l,)
    means : array, shape (l, d)
    covariances : array, shape (l, d, d)
    converged : bool
        Whether EM had come to its end; no start has.
    """

    weights: NDArray
    means: NDArray
    covariances: NDArray
    converged: bool = False

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
        value = _by_component(len(Z), self.n_components)
        for start in range(0, len(Z), ROWS_AT_ONCE):
            value[start : start + ROWS_AT_ONCE] = _log_joint(Z[start : start + ROWS_AT_ONCE], self)
        return value

    def log_density(self, Z: NDArray) -> NDArray:
        """Log density of each row, shape (n,)."""
        return np.logaddexp.reduce(self.log_joint(Z), axis=1)

    def posterior(self, Z: NDArray) -> NDArray:
        """Responsibilities P(K = k | z), shape (n, l)."""
        return _normalise(self.log_joint(Z))[0]


@dataclass(frozen=True)
class Fitted:
    """A mixture and its log-likelihood, summed over the rows it was fitted to."""

    mixture: Mixture
    log_likelihood: float


def mixture_of(Z: NDArray, responsibilities: NDArray) -> Mixture:
    """M-step: weights and weighted moments of the rows.

    Parameters
    ----------
    Z : array, shape (n, d)
    responsibilities : array, shape (n, l)
    """
    k, d = responsibilities.shape[1], Z.shape[1]
    sums = _Sums(np.zeros((k, d)))
    for start in range(0, len(Z), ROWS_AT_ONCE):
        sums.add(Z[start : start + ROWS_AT_ONCE], responsibilities[start : start + ROWS_AT_ONCE])
    return sums.mixture()


def em_steps(Z: NDArray, parameters: Mixture, n_steps: int) -> tuple[Mixture, NDArray]:
    """Take some steps of EM from given parameters.

    Parameters
    ----------
    Z : array, shape (n, d)
        Complete rows, standardised; float32 is computed in float32, with sums over blocks in float64.
    parameters : Mixture
    n_steps : int

    Returns
    -------
    mixture : Mixture
        After the last step.
    log_likelihood : array, shape (n_steps,)
        Of all rows, before each step.
    """
    trace = np.empty(n_steps)
    for step in range(n_steps):
        parameters, trace[step] = _em_step(Z, parameters)
    return parameters, trace


def run_em(Z: NDArray, parameters: Mixture, *, max_steps: int = MAX_STEPS) -> Fitted:
    """EM until what is left to gain does not matter.

    Gains shrink by a factor that the last two of them tell, so what is left is a geometric series (Aitken). A fitted
    likelihood is n_parameters / 2 above that of the truth by chance alone: EM stops when ``PRECISION`` of that is left.

    Parameters
    ----------
    Z : array, shape (n, d)
    parameters : Mixture
        Where to start.
    max_steps : int
    """
    precision = PRECISION * parameters.n_parameters
    values: list[float] = []
    for _ in range(max_steps):
        following, value = _em_step(Z, parameters)
        values.append(value)
        if len(values) > AT_LEAST and _left_to_gain(values) < precision:
            return Fitted(replace(parameters, converged=True), value)
        parameters = following
    return Fitted(parameters, _log_likelihood(Z, parameters))


def _left_to_gain(values: Sequence[float] | NDArray) -> float:
    before, last = values[-2] - values[-3], values[-1] - values[-2]
    if last <= 0:
        return 0.0
    shrinks = min(max(last / before, 0.0), 0.99) if before > 0 else 0.99
    return last * shrinks / (1 - shrinks)


def _em_step(Z: NDArray, mixture: Mixture) -> tuple[Mixture, float]:
    """Return the mixture after one step, and the log-likelihood before it."""
    sums, log_likelihood = _Sums(mixture.means), 0.0
    for start in range(0, len(Z), ROWS_AT_ONCE):
        block = Z[start : start + ROWS_AT_ONCE]
        responsibilities, log_evidence = _normalise(_log_joint(block, mixture))
        log_likelihood += float(log_evidence.sum())
        sums.add(block, responsibilities)
    return sums.mixture(), log_likelihood


def _log_likelihood(Z: NDArray, mixture: Mixture) -> float:
    return float(sum(mixture.log_density(Z[i : i + ROWS_AT_ONCE]).sum() for i in range(0, len(Z), ROWS_AT_ONCE)))


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
        d = covariances.shape[1]
        covariances[:, np.arange(d), np.arange(d)] += RIDGE
        return Mixture(total / total.sum(), self.centres + moved, covariances)


def _log_joint(block: NDArray, mixture: Mixture) -> NDArray:
    trmm = get_blas_funcs("trmm", dtype=block.dtype)
    value = _by_component(len(block), mixture.n_components)
    constant = -0.5 * block.shape[1] * np.log(2 * np.pi)
    for k, (inverse, log_det) in enumerate(mixture.whiteners):
        centred = block - mixture.means[k].astype(block.dtype)
        # rows are draws, BLAS sees columns: L^-1 (z - mean)^T
        z = trmm(1.0, inverse.astype(block.dtype, order="F", copy=False), centred.T, lower=True, overwrite_b=True).T
        value[:, k] = -0.5 * np.einsum("ij,ij->i", z, z) + (np.log(mixture.weights[k]) - log_det + constant)
    return value


def _by_component(n: int, k: int) -> NDArray:
    """Empty array of shape (n, k) whose columns are contiguous: work goes component by component."""
    return np.empty((k, n)).T


def _normalise(log_joint: NDArray) -> tuple[NDArray, NDArray]:
    """Responsibilities and log evidence."""
    top = log_joint.max(axis=1)
    shares = np.exp(log_joint - top[:, None])
    total = shares.sum(axis=1)
    return shares / total[:, None], top + np.log(total)


def _whitener(covariance: NDArray) -> tuple[NDArray, float]:
    """L^-1 and log det L; LAPACK is called as it is, which takes half the time of few columns."""
    L, failed = dpotrf(covariance.T, lower=1, clean=1)
    ridge = RIDGE
    while failed:  # rounding of a component with fewer rows than columns
        L, failed = dpotrf(covariance.T + ridge * np.eye(len(covariance)), lower=1, clean=1)
        ridge *= 10
    log_det = float(np.log(np.diagonal(L)).sum())
    return dtrtri(L, lower=1, overwrite_c=1)[0], log_det
