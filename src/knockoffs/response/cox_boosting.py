"""Boosted trees of a log-hazard: Poisson deviance of the events, given how many are expected without columns."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from knockoffs.response.cox import expected_events
from knockoffs.table.target_kind import split_times


def events_as_counts(y: NDArray, weights: NDArray | None = None) -> tuple[NDArray, NDArray]:
    """Events over those expected without columns, and weights, so that their Poisson deviance is that of the events.

    Given the hazard of all rows together, events are Poisson counts with means exp(log-hazard) times what is expected
    (LeBlanc and Crowley, 1992). Rows of which nothing is expected, before the first event, weigh nothing.

    >>> ratio, weights = events_as_counts(np.array([1.0, -2.0, 2.0]))
    >>> ratio.round(2).tolist(), weights.round(2).tolist()
    ([3.0, 0.0, 1.2], [0.33, 0.83, 0.83])
    """
    expected = expected_events(y, weights=weights)
    ratio = np.divide(split_times(y)[1], expected, out=np.zeros(len(y)), where=expected > 0)
    return ratio, expected if weights is None else expected * weights


class CoxBoosting(HistGradientBoostingRegressor):
    """Histogram gradient boosting of signed survival times; ``predict`` gives the log-hazard."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to X, shape (n, n_columns), and signed times y, (n,) or (n, 2): negative where a row is censored."""
        given = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        ratio, weights = events_as_counts(np.asarray(y, dtype=float), given)
        return super().fit(X, ratio, sample_weight=weights)

    def predict(self, X: ArrayLike) -> NDArray:
        """Log-hazard of the rows of X."""
        return np.log(super().predict(X))
