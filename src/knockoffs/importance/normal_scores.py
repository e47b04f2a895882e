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


def normal_scores(pair: Pair) -> Pair:
    """Columns by their normal scores, but those that are nearly normal; the pair itself where all are.

    A feature and its knockoff are ranked together, so the scores do not know which is which, and a swap of the columns
    is a swap of their scores.

    Parameters
    ----------
    pair : Pair
        With m knockoffs of each feature all m + 1 are ranked together.

    >>> pair = Pair(np.array([[0.0], [1e6]]), np.array([[1.0], [2.0]]), np.array([0]))
    >>> normal_scores(pair).stacked.round(2)
    array([[-1.15, -0.32],
           [ 1.15,  0.32]])
    """
    n, changed = len(pair), {}
    for j in range(pair.n_columns):
        scores = _scores([part[:, j] for part in pair.parts])
        if scores is not None:
            changed[j] = scores
    if not changed:
        return pair
    parts = tuple(part.astype(float) for part in pair.parts)
    for j, scores in changed.items():
        for part, some in zip(parts, scores.reshape(-1, n), strict=True):
            part[:, j] = some
    return Pair.of(parts, pair.feature_of)


def scores_of_target(target: Target) -> Target | None:
    """Target by its normal scores; none where it is no number, or its values are nearly normal as they are.

    A few rows with much noise are most of a squared error, and little of one in normal scores. Rows of weight 0 are not
    there, and keep their values.

    >>> scores_of_target(Target(np.array([-1.0, 0.0, 1.0, 1e6]))).values.round(2)
    array([-1.15, -0.32,  0.32,  1.15])
    >>> scores_of_target(Target(np.array([-1.0, 0.0, 1.0])))
    """
    there = slice(None) if target.weights is None else target.weights > 0
    scores = _scores([target.values[there]]) if target.kind == "number" else None
    if scores is None:
        return None
    values = target.values.astype(float)
    values[there] = scores
    return replace(target, values=values)


@dataclass(frozen=True)
class ScoreMap:
    """Normal scores as functions of the values, learned on one pair and used on others."""

    # of the columns that are changed; between the values scores are interpolated, beyond them they stay
    knots: Mapping[int, tuple[NDArray, NDArray]]

    def __call__(self, pair: Pair) -> Pair:
        """Change the columns of a pair, a feature and its knockoff by the same function."""
        if not self.knots:
            return pair
        X, X_tilde = pair.X.astype(float), pair.X_tilde.astype(float)
        for j, (values, scores) in self.knots.items():
            X[:, j], X_tilde[:, j] = np.interp(X[:, j], values, scores), np.interp(X_tilde[:, j], values, scores)
        return Pair(X, X_tilde, pair.feature_of)


def learn_scores(pair: Pair, most: int = MOST_KNOTS) -> ScoreMap:
    """Functions that give the ``normal_scores`` of this pair, but for at most ``most`` knots a column.

    >>> pair = Pair(np.array([[0.0], [1e6]]), np.array([[1.0], [2.0]]), np.array([0]))
    >>> learn_scores(pair)(pair).stacked.round(2)
    array([[-1.15, -0.32],
           [ 1.15,  0.32]])
    """
    knots = {}
    for j in range(pair.n_columns):
        scores = _scores([pair.X[:, j], pair.X_tilde[:, j]])
        if scores is not None:
            both = np.concatenate([pair.X[:, j], pair.X_tilde[:, j]])
            values, place = np.unique(both, return_index=True)
            kept = np.unique(np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(np.intp))
            knots[j] = (values[kept], scores[place[kept]])
    return ScoreMap(knots)


def _scores(parts: Sequence[NDArray]) -> NDArray | None:
    """Return the normal scores of a column and its knockoffs, one after another; none where the values are as good.

    Of many rows some are asked first, the same of all parts, so that a swap changes nothing.
    """
    from scipy.special import ndtri
    from scipy.stats import rankdata

    step = len(parts[0]) // ENOUGH_ROWS
    if step > 1:
        some = _normality(np.concatenate([part[::step] for part in parts]))
        if some is not None and some > NEARLY_NORMAL + SURELY:
            return None
    values = np.concatenate(parts)
    found = _normality(values)
    if found is None or found > NEARLY_NORMAL:
        return None
    return ndtri((rankdata(values) - 0.5) / len(values))


def _normality(values: NDArray) -> float | None:
    """Return the correlation of the values with their normal scores, ties in the middle; none of too few values."""
    from scipy.special import ndtri

    ordered = np.sort(values)  # all that a correlation needs: a sort is a quarter of what ranks take
    n, new = len(values), np.flatnonzero(ordered[1:] > ordered[:-1]) + 1
    if len(new) < FEWEST_VALUES - 1:
        return None
    ends = np.concatenate([[0], new, [n]])  # of the runs of equal values
    scores = ndtri((ends[1:] + ends[:-1]) / (2 * n))
    spread = ordered / np.abs(ordered).max()  # squares of very large numbers would be infinite
    return float(np.corrcoef(spread, np.repeat(scores, np.diff(ends)))[0, 1])
