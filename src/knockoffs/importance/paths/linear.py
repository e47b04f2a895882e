"""The loss along lambda paths of a linear model, in closed form.

Moving a feature moves a linear model's scores on lines: ``a + lam * b``. Integrals are exact for the squared error and
for accuracy (the own class wins on an interval of lambda, for any number of classes). The log-loss, the Brier score and
the Poisson deviance use Gauss-Legendre quadrature on 32 panels of 8 points. Points are always exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from knockoffs.importance.losses import LOSSES, SMALLEST_PROBABILITY, Loss, class_codes
from knockoffs.importance.paths.moves import Moves

LARGEST_LOG_LOSS = -np.log(SMALLEST_PROBABILITY)
N_PANELS, N_POINTS = 32, 8  # Gauss-Legendre, where no closed form is used
CHECKED_ROWS = 16
CELLS = 4_000_000  # of one temporary array


def linear_path(model: Any, moves: Moves, loss: Loss) -> LinearPath | None:
    """Path losses of a linear model; None if its predictions are not those of its coefficients, or for other losses.

    Coefficients do not say by themselves how predictions come from them (a Poisson regression has them too), so the
    model is asked on a few rows and compared.
    """
    if LOSSES.get(loss.name) is not loss or loss.name == "partial_likelihood":  # which is no sum over rows
        return None
    if not np.all(np.isfinite(moves.XX + moves.XX_fake)):
        return None
    try:
        coef = np.atleast_2d(np.asarray(model.coef_, dtype=float))
        intercept = np.atleast_1d(np.asarray(model.intercept_, dtype=float))
    except (AttributeError, TypeError, ValueError):
        return None
    if coef.ndim != 2 or coef.shape[1] != moves.XX.shape[1] or len(intercept) not in (1, len(coef)):
        return None
    path = LinearPath(coef, np.broadcast_to(intercept, (len(coef),)), moves, loss, getattr(model, "classes_", None))
    return path if path.speaks_for(model) else None


@dataclass(frozen=True)
class LinearPath:
    """Loss along the paths of a linear model: one row of coefficients for numbers and two classes, else one a class."""

    coef: NDArray
    intercept: NDArray
    moves: Moves
    loss: Loss
    classes: NDArray | None

    def speaks_for(self, model: Any) -> bool:
        """Whether the model's own predictions, on some rows moved and unmoved, are those of its coefficients."""
        n_scores = 1 if self.classes is None or len(self.classes) == 2 else len(self.classes)
        if len(self.coef) != n_scores:
            return False
        rows = np.vstack([self.moves.XX[:CHECKED_ROWS], self.moves.XX_fake[:CHECKED_ROWS]])
        scores = rows @ self.coef.T + self.intercept
        if self.classes is None:
            said, meant = np.ravel(model.predict(rows)), scores[:, 0]
        elif self.loss.needs == "predict_proba":
            said = model.predict_proba(rows)
            meant = softmax(np.hstack([0 * scores, scores]) if n_scores == 1 else scores, axis=1)
        elif not hasattr(model, "decision_function"):
            return False
        else:
            said, meant = model.decision_function(rows).reshape(len(rows), -1), scores
            # all rows here: a threshold of the model's own may show in few of them
            if self.loss.needs == "predict" and not all(
                np.array_equal(model.predict(table), self._winners(table))
                for table in (self.moves.XX, self.moves.XX_fake)
            ):
                return False
        return said.shape == meant.shape and bool(np.allclose(said, meant, rtol=1e-9, atol=1e-9))

    def _winners(self, XX: NDArray) -> NDArray:
        """Class with the largest score in each row, the first of equal ones."""
        assert self.classes is not None
        scores = XX @ self.coef.T + self.intercept
        return self.classes[np.argmax(np.hstack([0 * scores, scores]) if self._two else scores, axis=1)]

    def unmoved(self) -> float:
        """Mean loss of the table as it is."""
        rest = self._rest()
        return float(self._row_losses(rest[None])[0] @ self.moves.weights)

    def at(self, lams: NDArray) -> NDArray:
        """Mean loss at each lam, shape (2m, n_lams)."""
        rest, lams = self._rest(), np.asarray(lams, dtype=float)
        losses = np.empty((self.moves.n_features2, len(lams)))
        for feature in range(len(losses)):
            slope = self._slope(feature)
            if not slope.any():  # a coefficient of 0, as a lasso has many
                losses[feature] = self.unmoved()
                continue
            for block in _blocks(len(lams), rest.size):
                scores = rest + lams[block, None, None] * slope
                losses[feature, block] = self._row_losses(scores) @ self.moves.weights
        return losses

    def integral(self, low: float, high: float, n_lams: int) -> NDArray:
        """Integral of the mean loss, in closed form or by quadrature as the file's first lines say."""
        rest = self._rest()
        exact = self._closed_form()
        if exact is None:
            lams, weights = _gauss_legendre(low, high)
            return self.at(lams) @ weights
        return np.array(
            [
                exact(rest, self._slope(feature), low, high) @ self.moves.weights
                for feature in range(self.moves.n_features2)
            ]
        )

    def _rest(self) -> NDArray:
        """Scores of the unmoved table, (n, n_scores)."""
        return self.moves.XX @ self.coef.T + self.intercept

    def _slope(self, feature: int) -> NDArray:
        """Change of the scores per unit of lambda, (n, n_scores)."""
        columns = self.moves.feature_of2 == feature
        return (self.moves.XX_fake[:, columns] - self.moves.XX[:, columns]) @ self.coef[:, columns].T

    @property
    def _two(self) -> bool:
        return self.classes is not None and len(self.classes) == 2

    def _codes(self) -> NDArray[np.intp]:
        assert self.classes is not None
        return class_codes(self.moves.y, self.classes)

    def _signed(self, scores: NDArray) -> NDArray:
        """Score of the own class against the other of two, scores (..., n, 1) -> (..., n)."""
        return scores[..., 0] * np.where(self._codes() == 1, 1.0, -1.0)

    def _row_losses(self, scores: NDArray) -> NDArray:
        """Loss of each row, scores (L, n, n_scores) -> (L, n)."""
        name, y = self.loss.name, self.moves.y
        if name == "squared_error":
            return (y - scores[..., 0]) ** 2
        if name == "poisson_deviance":
            return self.loss(y, scores[..., 0])
        codes = self._codes()
        if self._two:
            own = self._signed(scores)
            if name == "accuracy":  # scikit-learn predicts the second class where the score is positive
                return np.where(codes == 1, own <= 0, own < 0).astype(float)
            if name == "log_loss":
                return np.minimum(np.logaddexp(0.0, -own), LARGEST_LOG_LOSS)
            return 2.0 * expit(-own) ** 2
        if name == "accuracy":
            return (np.argmax(scores, axis=-1) != codes).astype(float)
        P = softmax(scores, axis=-1)
        p = np.take_along_axis(P, np.broadcast_to(codes[:, None], (*scores.shape[:-1], 1)), axis=-1)[..., 0]
        if name == "log_loss":
            return -np.log(np.maximum(p, SMALLEST_PROBABILITY))
        return (P**2).sum(axis=-1) + 1.0 - 2.0 * p

    def _closed_form(self) -> Callable[[NDArray, NDArray, float, float], NDArray] | None:
        """Return (rest, slope, low, high) -> integral of each row's loss, (n,); None where there is none."""
        name, y = self.loss.name, self.moves.y
        if name == "squared_error":
            return lambda rest, slope, low, high: _integral_of_square(rest[:, 0] - y, slope[:, 0], low, high)
        return self._time_lost if name == "accuracy" else None

    def _time_lost(self, rest: NDArray, slope: NDArray, low: float, high: float) -> NDArray:
        """Length of lambda on which another class wins: the own one is ahead of each other on one interval."""
        codes = self._codes()[:, None]
        if self._two:
            lead, gain = self._signed(rest)[:, None], self._signed(slope)[:, None]
            loses_tie = codes == 1
        else:
            lead = np.take_along_axis(rest, codes, axis=1) - rest
            gain = np.take_along_axis(slope, codes, axis=1) - slope
            loses_tie = np.arange(lead.shape[1]) < codes
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = -lead / gain
        first = np.where(gain > 0, crossing, low).max(axis=1, initial=low)
        last = np.where(gain < 0, crossing, high).min(axis=1, initial=high)
        behind = (gain == 0) & ((lead < 0) | ((lead == 0) & loses_tie))
        won = np.where(behind.any(axis=1), 0.0, np.clip(last - first, 0.0, high - low))
        return (high - low) - won


def _integral_of_square(a: NDArray, b: NDArray, low: float, high: float) -> NDArray:
    """Integral of (a + lam b)^2: about the middle, where it is a^2 + b^2 h^2 / 12 times the length h."""
    h = high - low
    return h * ((a + b * (low + high) / 2) ** 2 + b**2 * h**2 / 12)


def _gauss_legendre(low: float, high: float) -> tuple[NDArray, NDArray]:
    """Points and weights of N_PANELS panels of N_POINTS points."""
    points, weights = np.polynomial.legendre.leggauss(N_POINTS)
    edges = np.linspace(low, high, N_PANELS + 1)
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (points + 1)).ravel(), (half * weights).ravel()


def _blocks(n: int, size: int) -> list[slice]:
    step = max(1, CELLS // max(size, 1))
    return [slice(start, start + step) for start in range(0, n, step)]
