"""Normal scores of the columns: what a linear model of y sees of heavy tails and skewed shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from knockoffs.sampling.pair import Pair
from knockoffs.table.target import Target

NEARLY_NORMAL = 0.97  # correlation with their normal scores from which values stay as they are
MOST_KNOTS = 4096  # of a function from values to scores
ENOUGH_ROWS = 20_000  # that tell whether a column is nearly normal,
SURELY = 0.005  # by so much more than NEARLY_NORMAL; nearer to it all rows are asked
FEWEST_VALUES = 3  # of a column; scores of two values are the values in other units


@dataclass(frozen=True)
class ScoreMap:
    """Normal scores as functions of the values, learned on one pair and used on others."""

    # of the columns that are changed; between the values scores are interpolated, beyond them they stay
    knots: Mapping[int, tuple[NDArray, NDArray]]

    def __call__(self, pair: Pair) -> Pair:
        """Change the columns of a pair, a feature and its knockoffs by the same function."""
        if not self.knots:
            return pair
        parts = tuple(part.astype(float) for part in pair.parts)
        for j, (values, scores) in self.knots.items():
            for part in parts:
                column = part[:, j].copy()
                order = np.argsort(column)  # values in their order are found sooner
                column[order] = np.interp(column[order], values, scores)
                part[:, j] = column
        return Pair.of(parts, pair.feature_of)


def learn_scores(pair: Pair, most: int | None = MOST_KNOTS) -> ScoreMap:
    """Functions that give the ``normal_scores`` of this pair, but for at most ``most`` knots a column.

    >>> pair = Pair(np.array([[0.0], [1e6]]), np.array([[1.0], [2.0]]), np.array([0]))
    >>> learn_scores(pair)(pair).stacked.round(2)
    array([[-1.15, -0.32],
           [ 1.15,  0.32]])
    """
    knots = {}
    for j in range(pair.n_columns):
        found = _knots([part[:, j] for part in pair.parts])
        if found is not None:
            n = len(found[0])
            if most is not None and n > most:
                kept = np.unique(np.linspace(0, n - 1, most).round().astype(np.intp))
                found = found[0][kept], found[1][kept]
            knots[j] = found
    return ScoreMap(knots)


def normal_scores(pair: Pair) -> Pair:
    """Columns by their normal scores, but those that are nearly normal; the pair itself where all are.

    A feature and its m knockoffs are ranked together, so the scores do not know which is which, and a swap of the
    columns is a swap of their scores.

    >>> pair = Pair(np.array([[0.0], [1e6]]), np.array([[1.0], [2.0]]), np.array([0]))
    >>> normal_scores(pair).stacked.round(2)
    array([[-1.15, -0.32],
           [ 1.15,  0.32]])
    """
    return learn_scores(pair, None)(pair)


def scores_of_target(target: Target) -> Target | None:
    """Target by its normal scores; none where it is no number, or its values are nearly normal as they are.

    A few rows with much noise are most of a squared error, and little of one in normal scores. Rows of weight 0 are not
    there, and keep their values.

    >>> scores_of_target(Target(np.array([-1.0, 0.0, 1.0, 1e6]))).values.round(2)
    array([-1.15, -0.32,  0.32,  1.15])
    >>> scores_of_target(Target(np.array([-1.0, 0.0, 1.0])))
    """
    there = slice(None) if target.weights is None else target.weights > 0
    found = _knots([target.values[there]]) if target.kind == "number" else None
    if found is None:
        return None
    values = target.values.astype(float)
    values[there] = np.interp(values[there], *found)
    return replace(target, values=values)


def _knots(parts: Sequence[NDArray]) -> tuple[NDArray, NDArray] | None:
    """Distinct values of a column and its knockoffs, and their normal scores; none where the values are as good.

    Of many rows some are asked first, the same of all parts, so that a swap changes nothing.
    """
    step = len(parts[0]) // ENOUGH_ROWS
    if step > 1:
        some = _ranked(np.concatenate([part[::step] for part in parts]))
        if some is not None and some[2] > NEARLY_NORMAL + SURELY:
            return None
    found = _ranked(np.concatenate(parts))
    return None if found is None or found[2] > NEARLY_NORMAL else found[:2]


def _ranked(column: NDArray) -> tuple[NDArray, NDArray, float] | None:
    """Distinct values, their normal scores, and the correlation of all values with theirs; none of too few values."""
    from scipy.special import ndtri

    values, counts = np.unique(column, return_counts=True)
    if len(values) < FEWEST_VALUES:
        return None
    ends = np.cumsum(counts)
    scores = ndtri((ends - counts / 2) / len(column))  # ties in the middle
    spread = values / np.abs(values).max()  # squares of very large numbers would be infinite
    C = np.cov(spread, scores, fweights=counts)
    return values, scores, float(C[0, 1] / np.sqrt(C[0, 0] * C[1, 1]))
