"""An l1 solution made exact: its support is known nearly, and the rest is linear algebra."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class FullLoss(Protocol):
    """The loss of the full data as a function of all coefficients, minimised over the intercepts."""

    def gradient(self, beta: NDArray) -> NDArray:
        """Minus the gradient at beta, shape (n_outputs, d) like beta."""
        ...

    def newton_step(self, active: NDArray[np.bool_], right: NDArray) -> NDArray | None:
        """Solve H step = right on the active coefficients at the last beta; None where H is singular."""
        ...


def polish(smooth: FullLoss, beta: NDArray, alpha: float, max_steps: int = 200) -> NDArray:
    """Sharpen an L1 solution to rounding error: Newton's method on the active coefficients, their signs held.

    A coefficient that would change its sign stops at zero and leaves; a column that violates its optimality
    condition enters. What comes out satisfies all conditions to about 1e-13 and so does not depend on where the
    descent before it stopped, on the order of the columns or on the number of threads. Where the active columns
    are linearly dependent the solution is not unique and ``beta`` is returned as it was.
    """
    start, beta = beta, beta.copy()
    sign = np.sign(beta)
    best, stalls = np.inf, 0
    for _ in range(max_steps):
        g = smooth.gradient(beta)
        active = sign != 0
        right = (g - alpha * sign)[active]
        error = float(np.abs(right).max()) if right.size else 0.0
        stalls = 0 if error < 0.5 * best else stalls + 1
        best = min(best, error)
        if error <= 1e-14 or (error <= 1e-10 and stalls >= 1):  # the second: rounding is all that is left
            excess = np.where(active, 0.0, np.abs(g) - alpha)
            worst = np.unravel_index(int(np.argmax(excess)), excess.shape)
            if excess[worst] <= 1e-9 * alpha:
                return beta
            sign[worst] = np.sign(g[worst])
            best, stalls = np.inf, 0
            continue
        if stalls > 10:
            break
        step = smooth.newton_step(active, right)
        if step is None:
            break
        current = beta[active]
        crossing = (current + step) * sign[active] < 0
        length = 1.0
        if crossing.any():
            ratios = np.where(crossing, -current / np.where(crossing, step, 1.0), np.inf)
            length = float(ratios.min())
            leaving = ratios <= length
        moved = current + length * step
        if crossing.any():
            moved[leaving] = 0.0
            best, stalls = np.inf, 0
        beta[active] = moved
        if crossing.any():
            sign[np.nonzero(active)[0][leaving], np.nonzero(active)[1][leaving]] = 0.0
    return start
