"""Stochastic EM: draw L given the cells and the parameters, take moments of L, average them over the last steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf
from scipy.special import ndtri

from knockoffs.features.latent.chain import classes, has_jumps, jump, start_latent, sweep
from knockoffs.features.latent.margins import FREE, INTERVAL, ColumnMap, Coordinates, LatentCells, Steps, lay_out
from knockoffs.features.latent.nominal import Nominal
from knockoffs.features.latent.search import Shrinkage, pool
from knockoffs.progress import track

FLOOR = 1e-6  # smallest eigenvalue of a latent correlation matrix; columns nearer to dependence are moved apart


class Frame(NamedTuple):
    """What the margins fix about L."""

    layout: Coordinates
    # shape (D,): coordinates known by intervals only, whose pooled mean and variance the margin fixes at 0 and 1. Those
    # of one label are independent, in every class.
    unit: NDArray[np.bool_]

    @property
    def within(self) -> NDArray[np.bool_]:
        """Pairs of coordinates of the same column, shape (D, D)."""
        return np.equal.outer(self.layout.first, self.layout.first)


def frame_of(margins: Sequence[ColumnMap]) -> Frame:
    """Coordinates, and what is fixed about them."""
    layout = lay_out(margins)
    unit = np.array([isinstance(margins[j], Steps | Nominal) for j in layout.column_of], dtype=bool)
    return Frame(layout, unit)


class Fit(NamedTuple):
    """Weights, means and covariances of the classes, and the last draw of (K, L)."""

    weights: NDArray
    means: NDArray
    covariances: NDArray
    K: NDArray[np.intp]
    L: NDArray


def softening(start: NDArray, frame: Frame, a: float) -> NDArray:
    """Factors of the covariances in a step of EM, by which its limit is shrunk by a.

    Where a share f of a covariance is drawn from the model, a factor s in every step has the limit
    s (1 - f) / (1 - s f) of what the cells say; s = (1 - a) / (1 - a f) makes that 1 - a. To first order f is one
    minus the product of the two scores' variances.
    """
    v = np.ones(len(frame.unit))
    v[frame.unit] = start[:, frame.unit].var(axis=0).clip(0, 1)
    observed = np.outer(v, v)
    return np.where(frame.within, 1.0, (1 - a) / (1 - a * (1 - observed)))


def first_covariance(cells: LatentCells, frame: Frame, *, coarse_below: float = 0.9, closest: float = 0.999) -> NDArray:
    """Covariances of the scores, pairwise where observed, corrected for what steps take away.

    Between a step and a point the correction is exact, between fine steps nearly so. Two coarse columns, whose scores
    have a variance below ``coarse_below`` (at most about four even levels), have their tetrachoric correlation, from
    the cuts nearest to their medians: stochastic EM would take long to get there. None is larger than ``closest``.
    """
    seen = (cells.status != FREE).astype(float)
    pairs = np.maximum(seen.T @ seen, 1.0)
    S = cells.start.T @ cells.start / pairs  # scores have mean zero where observed
    layout = frame.layout
    scale = np.where(frame.unit, 1 / np.maximum(np.diagonal(S), 1e-2), 1.0)
    corrected = S * np.outer(scale, scale)
    sd = np.where(frame.unit, 1.0, np.sqrt(np.maximum(np.diagonal(S), 1e-12)))
    c = corrected / np.outer(sd, sd)
    coarse = np.flatnonzero(frame.unit & (layout.last == layout.first + 1) & (np.diagonal(S) < coarse_below))
    if coarse.size:
        c[np.ix_(coarse, coarse)] = _coarse_correlations(cells, coarse, closest)
    corrected = np.where(frame.within, np.eye(len(S)), np.clip(c, -closest, closest)) * np.outer(sd, sd)
    return decouple(_positive((corrected + corrected.T) / 2), layout)


def _coarse_correlations(cells: LatentCells, coarse: NDArray[np.intp], closest: float) -> NDArray:
    """Tetrachoric correlations of columns of steps, each cut in two where that is nearest to halves."""
    seen = (cells.status[:, coarse] == INTERVAL).astype(float)
    ends = np.where(np.isfinite(cells.high[:, coarse]), cells.high[:, coarse], np.inf)
    cut = np.take_along_axis(ends, np.abs(ends).argmin(axis=0)[None], axis=0)[0]
    above = ((cells.low[:, coarse] >= cut) & (seen > 0)).astype(float)
    pairs = seen.T @ seen
    first = (above.T @ seen + 0.5) / (pairs + 1)
    both = (above.T @ above + 0.25) / (pairs + 1)
    return tetrachoric(both, first, first.T, most=closest)


def _positive(S: NDArray, least: float = 1e-3) -> NDArray:
    """Nearest matrix with eigenvalues of at least a bound, variances kept."""
    values, vectors = np.linalg.eigh(S)
    if values[0] >= least:
        return S
    lifted = (vectors * values.clip(least)) @ vectors.T
    scale = np.sqrt(np.diagonal(S) / np.diagonal(lifted))
    return lifted * np.outer(scale, scale)


def lift(S: NDArray, a: float, frame: Frame, *, clearly: float = 0.1) -> NDArray:
    """Covariance with the eigenvalues that shrinking by a leaves: those of (1 - a) R + a I are at least a.

    The factors of ``softening`` differ from pair to pair, and what they leave of a positive definite matrix need not be
    one. A single direction without variance would make every knockoff that has a part in it its column's twin. Where
    next to nothing is shrunk, such a direction is what the cells say, and stays: below ``clearly``.
    """
    sd = np.sqrt(np.maximum(np.diagonal(S), 1e-12))
    if a < clearly or np.linalg.eigvalsh(S / np.outer(sd, sd))[0] > a - 1e-9:
        return S
    R = _positive(S / np.outer(sd, sd), a)
    for first, last in frame.layout.blocks:
        b = slice(first, last)
        own = S[b, b] / np.outer(sd[b], sd[b])
        T = np.linalg.cholesky(own + 1e-9 * np.eye(last - first)) @ np.linalg.inv(np.linalg.cholesky(R[b, b]))
        R[b], R[:, b] = T @ R[b], R[:, b] @ T.T
        R[b, b] = own
    return (R + R.T) / 2 * np.outer(sd, sd)


def normalise(mean: NDArray, S: NDArray, frame: Frame) -> tuple[NDArray, NDArray]:
    """Pooled moments with what the margins fix put back: mean 0, variance 1, the coordinates of a label independent."""
    scale = np.where(frame.unit, 1 / np.sqrt(np.maximum(np.diagonal(S), 1e-12)), 1.0)
    return np.where(frame.unit, 0.0, mean), decouple(S * np.outer(scale, scale), frame.layout)


def decouple(S: NDArray, layout: Coordinates) -> NDArray:
    """Covariance in which the coordinates of a label are independent, variances kept: they are mixed until they are."""
    S = S.copy()
    for first, last in layout.blocks:
        b, sd = slice(first, last), np.sqrt(np.diagonal(S)[first:last])
        own = S[b, b] + 1e-9 * np.diag(sd**2)
        T = sd[:, None] * np.linalg.inv(np.linalg.cholesky(own))
        S[b], S[:, b] = T @ S[b], S[:, b] @ T.T
        S[b, b] = np.diag(sd**2)
    return (S + S.T) / 2


def separate(S: NDArray, within: NDArray[np.bool_], a: float = 0.0) -> NDArray:
    """Covariance whose correlations have eigenvalues above FLOOR.

    Where they have not, all covariances between columns give way by the same factor, until the smallest eigenvalue is
    the one that shrinking by a leaves. Without any of them the matrix is diagonal, as the coordinates of one column
    (``within``) are independent, so that there is always such a factor.
    """
    variances = np.diagonal(S)
    if dpotrf(S - FLOOR * np.diag(variances), lower=1)[1] == 0:
        return S
    smallest = np.linalg.eigvalsh(S / np.sqrt(np.outer(variances, variances)))[0]
    left = (1 - max(2 * FLOOR, a)) / (1 - min(smallest, FLOOR))
    return np.where(within, S, left * S)


def pool_classes(counts: NDArray, raw: NDArray, cells: LatentCells, frame: Frame, shrunk: Shrinkage) -> NDArray:
    """Covariances of the classes, drawn towards what they have in common, shape (l, D, D)."""
    own = [softening(cells.start, frame, a) for a in shrunk.own]
    pooled = pool(counts, raw, softening(cells.start, frame, shrunk.common), own)
    least = [shrunk.common * a for a in shrunk.own]
    lifted = [decouple(lift(S, a, frame), frame.layout) for S, a in zip(pooled, least, strict=True)]
    return np.stack([separate(S, frame.within, a) for S, a in zip(lifted, least, strict=True)])


def stochastic_em(
    cells: LatentCells,
    start: Fit,
    maximise: Callable[[NDArray, NDArray, NDArray], tuple[NDArray, NDArray, NDArray]],
    *,
    rng: Generator,
    n_settling: int = 1,
    n_forgotten: int = 8,
    n_averaged: int = 16,
    steps_a_jump: int = 4,
    n_jobs: int | None = None,
) -> Fit:
    """Classes and the last draw of (K, L), from parameters and a draw to start with, which is moved.

    ``maximise`` takes the shares of the classes, and their sums and sums of products over n, averaged over the last
    ``n_averaged`` steps, after ``n_forgotten`` others, and returns weights, means and covariances. The first step has
    ``n_settling`` sweeps; rows jump between classes in every ``steps_a_jump``-th step.
    """
    L, K, (l, D) = start.L, start.K, start.means.shape  # noqa: E741
    n, shares, first, second = len(L), np.zeros(l), np.zeros((l, D)), np.zeros((l, D, D))
    parameters = start.weights, start.means, start.covariances
    for step in track(range(n_forgotten + n_averaged), "stochastic EM of P^X"):
        law = classes(*parameters)
        if step % steps_a_jump == 0 and has_jumps(cells, law):
            jump(L, K, cells, law, rng=rng, n_jobs=n_jobs)
        sweep(L, K, cells, law, rng=rng, n_sweeps=1 if step else n_settling, n_jobs=n_jobs)
        gain = 1 / max(step - n_forgotten + 1, 1)
        for k in range(l):
            rows = L if l == 1 else L[K == k]
            shares[k] += gain * (len(rows) / n - shares[k])
            first[k] += gain * (rows.sum(axis=0) / n - first[k])
            second[k] += gain * (rows.T @ rows / n - second[k])
        parameters = maximise(shares, first, second)
    return Fit(*parameters, K, L)


def fit_one_class(
    cells: LatentCells, frame: Frame, *, a: float, rng: Generator, n_settling: int = 40, n_jobs: int | None = None
) -> Fit:
    """One Gaussian for L, its covariance shrunk by a.

    The first step has ``n_settling`` sweeps: coarse columns that are strongly correlated forget slowly.
    """
    n, D = cells.start.shape
    one, soft = np.ones(1), softening(cells.start, frame, a)
    S = separate(np.where(frame.within, 1.0, 1 - a) * first_covariance(cells, frame), frame.within)[None]
    L = start_latent(cells, classes(one, np.zeros((1, D)), S), rng=rng)

    def maximise(shares: NDArray, first: NDArray, second: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        mean, S = normalise(first[0], second[0] - np.outer(first[0], first[0]), frame)
        return one, mean[None], separate(lift(S * soft, a, frame), frame.within, a)[None]

    start = Fit(one, np.zeros((1, D)), S, np.zeros(n, np.intp), L)
    return stochastic_em(cells, start, maximise, rng=rng, n_settling=n_settling, n_jobs=n_jobs)


def fit_classes(
    cells: LatentCells,
    frame: Frame,
    start: Fit,
    *,
    shrunk: Shrinkage,
    rng: Generator,
    pseudo_rows: float = 2.0,
    n_jobs: int | None = None,
) -> Fit:
    """Several classes, from parameters and a draw of L to start with, which is moved.

    So many ``pseudo_rows`` with the pooled covariance are added to every class, so that none collapses on a label.
    """
    n = len(start.L)

    def maximise(shares: NDArray, first: NDArray, second: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        pooled_mean = first.sum(axis=0)
        pooled = second.sum(axis=0) - np.outer(pooled_mean, pooled_mean)
        counts = np.maximum(n * shares, 1e-6)
        means = n * first / counts[:, None]
        spread = n * second / counts[:, None, None] - means[:, :, None] * means[:, None, :]
        mixed = (counts[:, None, None] * spread + pseudo_rows * pooled) / (counts + pseudo_rows)[:, None, None]
        return counts / counts.sum(), means, pool_classes(counts, mixed, cells, frame, shrunk)

    return stochastic_em(cells, start, maximise, rng=rng, n_jobs=n_jobs)


def tetrachoric(
    both: NDArray, first: NDArray, second: NDArray, *, most: float, n_nodes: int = 24, n_halvings: int = 24
) -> NDArray:
    """Correlation r for which P(A > h, B > k) = both, with P(A > h) = first and P(B > k) = second.

    P(A > h, B > k; r) = P(A > h) P(B > k) + integral from 0 to asin r of exp(-(h^2 + k^2 - 2 h k sin t) / (2 cos^2 t))
    / (2 pi) dt, which grows in r: solved by bisection, up to ``most``. The integral is right to 1e-6 up to a
    correlation of 0.99.

    >>> tetrachoric(np.array([1 / 3]), np.array([0.5]), np.array([0.5]), most=0.999).round(4)
    array([0.5])
    """
    h, k = -ndtri(first), -ndtri(second)
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    low, high = np.full(h.shape, -np.arcsin(most)), np.full(h.shape, np.arcsin(most))
    for _ in range(n_halvings):
        middle = (low + high) / 2
        total = np.zeros(h.shape)
        for node, weight in zip(nodes, weights, strict=True):
            t = middle * (node + 1) / 2
            total += weight * np.exp(-(h**2 + k**2 - 2 * h * k * np.sin(t)) / (2 * np.cos(t) ** 2))
        below = first * second + total * middle / (4 * np.pi) < both
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.sin((low + high) / 2)
