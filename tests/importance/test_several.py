"""Scores of several knockoffs: they follow the copies, one knockoff as before, and only linear models have them."""

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.importance.accuracy_drop import swap_score
from knockoffs.importance.coefficients import coefficient_magnitude, contribution
from knockoffs.importance.model_choice import BestOf
from knockoffs.importance.statistic import ModelScore
from knockoffs.response.plain import PlainLinear
from knockoffs.sampling.pair import Pair
from knockoffs.table.target import Target

GROUPS = np.array([0, 0, 1, 2, 2, 2])


def data(m=2, n=200):
    rng = np.random.default_rng(1)
    parts = tuple(rng.standard_normal((m + 1, n, 6)))
    y = parts[0][:, 0] + parts[m][:, 3] + 0.1 * rng.standard_normal(n)
    return Pair.of(parts, GROUPS), Target(y)


def scored(statistic, pair, target):
    return statistic(pair, target, rng=np.random.default_rng(0))


SEVERAL = [coefficient_magnitude, contribution]


@pytest.mark.parametrize("score", SEVERAL)
def test_scores_follow_the_copies(score):
    """Least squares does not mind the order of its columns: scores change places as copies do, exactly."""
    copies, target = data()
    statistic = ModelScore(PlainLinear(), score)
    found = scored(statistic, copies, target)
    Z, place = found.scores.parts, np.array([[2, 1, 0], [0, 0, 1], [1, 2, 2]])
    moved = scored(statistic, copies.permute(place), target).scores
    np.testing.assert_allclose(moved.parts, np.take_along_axis(Z, place, axis=0), atol=1e-9)
    np.testing.assert_allclose(moved.put_back(place).parts, Z, atol=1e-9)
    assert found.used is statistic and Z[0, 0] > 10 * Z[1:, 0].max() and Z[2, 2] > 10 * Z[:2, 2].max()


def test_the_best_of_several_models_is_chosen():
    copies, target = data()
    good, bad = ModelScore(PlainLinear(), contribution, name="good"), ModelScore(Mean(), contribution, name="bad")
    found = scored(BestOf((bad, good), "squared_error"), copies, target)
    assert found.used is good and "estimator='good'" in found.notes["estimator"]


class Mean:
    """Predicts the mean."""

    def fit(self, X, y):
        self.mean, self.coef_ = y.mean(), np.zeros(X.shape[1])
        return self

    def predict(self, X):
        return np.full(len(X), self.mean)

    def get_params(self, deep=True):
        return {}


def test_other_scores_and_rows_are_refused():
    copies, target = data()
    for statistic in (
        ModelScore(PlainLinear(), swap_score, {"loss": "squared_error"}),
        ModelScore(PlainLinear(), contribution, rows="cross_fitted"),
    ):
        with pytest.raises(InputError, match="n_knockoffs=2: several knockoffs of a feature take a linear model"):
            scored(statistic, copies, target)


@pytest.mark.parametrize("score", SEVERAL, ids=lambda score: score.__name__)
def test_a_weight_of_two_is_the_row_twice(score):
    """Copies of different spread, so that deviations without the weights, or of one copy alone, are seen."""
    copies, target = data()
    parts = [part * (1 + k + np.arange(200)[:, None] / 100) for k, part in enumerate(copies.parts)]
    model = PlainLinear().fit(np.hstack(parts), target.values)
    weight = np.random.default_rng(2).integers(0, 3, size=200)

    def of(parts, y, **weights):
        return score(model, *parts[:2], y, feature_of=GROUPS, more=parts[2:], **weights).parts

    weighted = of(parts, target.values, sample_weight=weight.astype(float))
    twice = [np.repeat(part, weight, axis=0) for part in parts]
    np.testing.assert_allclose(weighted, of(twice, np.repeat(target.values, weight)), rtol=1e-9)
    assert not np.allclose(weighted, of(parts, target.values), rtol=1e-3)
