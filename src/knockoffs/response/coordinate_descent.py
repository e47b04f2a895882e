"""Coordinate descent for L1-penalised quadratics, compiled: the one kernel under every L1 model of the package.

Loops instead of ``numpy.linalg`` and of assignments to slices, which take seconds to compile in a first call.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knockoffs.machine.compiled import njit

DEPTH = 5  # sweeps between two extrapolations


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "reassoc"})
def _sweep(G: NDArray, penalty: NDArray, beta: NDArray, q: NDArray, m: int | np.int64) -> float:
    """Update each of m coordinates once; return the largest gain h step^2 of one of them."""
    largest = 0.0
    for j in range(m):
        h = G[j, j]
        if h <= 0.0:
            continue
        b = beta[j]
        z = q[j] + h * b
        alpha = penalty[j]
        if z > alpha:
            new = (z - alpha) / h
        elif z < -alpha:
            new = (z + alpha) / h
        else:
            new = 0.0
        step = new - b
        if step != 0.0:
            beta[j] = new
            row = G[j]  # G is symmetric and a row is contiguous
            for k in range(m):
                q[k] -= step * row[k]
            largest = max(largest, h * step * step)
    return largest


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "reassoc"})
def _residual(G: NDArray, c: NDArray, beta: NDArray, q: NDArray, m: int) -> None:
    """Set q to c - G beta."""
    for k in range(m):
        q[k] = c[k]
    for j in range(m):
        b = beta[j]
        if b != 0.0:
            row = G[j]
            for k in range(m):
                q[k] -= b * row[k]


@njit(cache=True, nogil=True)
def _solve(U: NDArray, b: NDArray) -> None:
    """Set b to the solution of U x = b, for a small positive definite U, which is overwritten."""
    n = b.size
    for i in range(n):
        for k in range(i + 1, n):
            factor = U[k, i] / U[i, i]
            for j in range(i + 1, n):
                U[k, j] -= factor * U[i, j]
            b[k] -= factor * b[i]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            b[i] -= U[i, j] * b[j]
        b[i] /= U[i, i]


@njit(cache=True, nogil=True)
def _extrapolate(last_beta: NDArray, last_q: NDArray, c: NDArray, penalty: NDArray, beta: NDArray, q: NDArray) -> None:
    """Anderson acceleration: move to the combination of the last iterates whose steps nearly cancel, if it is better.

    Between changes of sign coordinate descent is a linear iteration, whose limit such a combination finds. q is
    affine in beta and the weights add to one, so q is combined likewise: no product with G.
    """
    depth, size = last_beta.shape[0] - 1, beta.size
    U = np.zeros((depth, depth))
    trace, total = 0.0, 0.0
    for i in range(depth):
        for k in range(i + 1):
            for j in range(size):
                U[i, k] += (last_beta[i + 1, j] - last_beta[i, j]) * (last_beta[k + 1, j] - last_beta[k, j])
            U[k, i] = U[i, k]
        trace += U[i, i]
    if trace <= 0.0:
        return
    weights = np.ones(depth)
    for i in range(depth):
        U[i, i] += 1e-10 * trace
    _solve(U, weights)
    for i in range(depth):
        total += weights[i]
    beta_new, q_new = np.zeros(size), np.zeros(size)
    for i in range(depth):
        for j in range(size):
            beta_new[j] += weights[i] / total * last_beta[i + 1, j]
            q_new[j] += weights[i] / total * last_q[i + 1, j]
    objective, objective_new = 0.0, 0.0
    for j in range(size):
        objective += penalty[j] * abs(beta[j]) - 0.5 * beta[j] * (c[j] + q[j])
        objective_new += penalty[j] * abs(beta_new[j]) - 0.5 * beta_new[j] * (c[j] + q_new[j])
    if objective_new < objective:
        for j in range(size):
            beta[j], q[j] = beta_new[j], q_new[j]


@njit(cache=True, nogil=True)
def minimise_quadratic(
    G: NDArray, c: NDArray, penalty: NDArray, beta: NDArray, q: NDArray, m: int, y2: float, tol: float, max_sweeps: int
) -> int:
    """Minimise b'Gb/2 - c'b + sum(penalty |b|) over the first m coordinates; return the number of sweeps.

    Descends on the coordinates that are not zero or should not be, in a small matrix of their own, then looks at
    all. ``beta`` is the start and becomes the answer; ``q`` becomes c - G beta, minus the gradient of the smooth
    part. Where ``y2`` > 0 it is |y|^2 in the same units, the problem is a lasso with one common penalty, and the
    descent stops when its duality gap is at most ``tol * y2``. Otherwise it stops when a sweep over all has no
    coordinate that gains more than ``tol``.

    Parameters
    ----------
    G : array, shape (at least m, at least m)
        Symmetric, positive semidefinite; C order.
    c, penalty, beta, q : arrays, shape (at least m,)
    """
    _residual(G, c, beta, q, m)
    chosen, active = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    for j in range(m):
        chosen[j] = 0
    sweeps = 0
    inner_tol = 0.5 * tol
    while sweeps < max_sweeps:
        new = 0
        for j in range(m):
            if chosen[j] == 0 and (beta[j] != 0.0 or abs(q[j]) > penalty[j]):
                chosen[j] = 1
                new += 1
        if y2 > 0.0:
            if lasso_gap(c, penalty[0], beta, q, m, y2) <= tol * y2:
                break
        elif new == 0:
            break
        if new == 0:  # the gap is not closed by rounding of the last look
            inner_tol *= 0.1
            if inner_tol < 1e-3 * tol:
                break
        size = m * 0  # not the literal 0, for which what takes it would be compiled once more
        for j in range(m):
            if chosen[j] == 1:
                active[size] = j
                size += 1
        G_active = np.empty((size, size))
        c_active, beta_active, q_active, penalty_active = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
        for i in range(size):
            j = active[i]
            row = G[j]
            for k in range(size):
                G_active[i, k] = row[active[k]]
            c_active[i], beta_active[i], q_active[i], penalty_active[i] = c[j], beta[j], q[j], penalty[j]
        last_beta, last_q = np.empty((DEPTH + 1, size)), np.empty((DEPTH + 1, size))
        held = 0
        while sweeps < max_sweeps:
            gain = _sweep(G_active, penalty_active, beta_active, q_active, size)
            sweeps += 1
            for i in range(size):
                last_beta[held, i], last_q[held, i] = beta_active[i], q_active[i]
            held += 1
            if held == DEPTH + 1:
                _extrapolate(last_beta, last_q, c_active, penalty_active, beta_active, q_active)
                held = 0
            if y2 > 0.0:
                if gain == 0.0 or (
                    gain <= inner_tol * y2
                    and lasso_gap(c_active, penalty[0], beta_active, q_active, size, y2) <= inner_tol * y2
                ):
                    break
            elif gain <= inner_tol:
                break
        for i in range(size):
            beta[active[i]] = beta_active[i]
        _residual(G, c, beta, q, m)
    return sweeps


@njit(cache=True, nogil=True)
def lasso_gap(c: NDArray, alpha: float, beta: NDArray, q: NDArray, m: int | np.int64, y2: float) -> float:
    """Duality gap of the lasso at beta, from inner products alone.

    With r = y - X beta: y'r = y2 - c'beta and r'r = y'r - q'beta. The dual point is r shrunk until it is feasible.
    """
    cb = 0.0
    qb = 0.0
    l1 = 0.0
    q_max = 0.0
    for j in range(m):
        q_max = max(q_max, abs(q[j]))
        b = beta[j]
        if b != 0.0:
            cb += c[j] * b
            qb += q[j] * b
            l1 += abs(b)
    yr = y2 - cb
    rr = max(yr - qb, 0.0)
    shrink = 1.0 if q_max <= alpha else alpha / q_max
    return 0.5 * rr + alpha * l1 - (shrink * yr - 0.5 * shrink * shrink * rr)


def lasso_path(
    G: NDArray,
    c: NDArray,
    alphas: NDArray,
    beta: NDArray,
    path: NDArray,
    m: int,
    y2: float,
    tol: float,
    max_sweeps: int,
) -> int:
    """Lasso solutions at several penalties, each started from the one before; return the number of sweeps.

    ``beta`` holds the start and then the last solution; row l of ``path`` becomes the solution at ``alphas[l]``.
    """
    q = np.empty(m)
    sweeps = 0
    for alpha, found in zip(alphas, path, strict=True):  # not compiled: that would compile what it calls once more
        sweeps += minimise_quadratic(G, c, np.full(m, alpha), beta, q, m, y2, tol, max_sweeps)
        found[:] = beta[:m]
    return sweeps
