"""Flip-sign in distribution: over refitted models, the signs of null W are fair coins.

Given |W|, signs of null W are independent and fair (Lemma 3.3 of the paper's reference), so their number is binomial:
the check fails by chance with probability 1e-6, and with 5000 signs it sees a bias of 3.5 points (50 % to 53.5 %) half
the time, one of 6 points nearly always.
"""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeRegressor

from knockoffs.features.given import GivenKnockoffs
from knockoffs.importance.accuracy_drop import permutation_integral, swap_integral, swap_score
from knockoffs.importance.model_choice import BestOf
from knockoffs.importance.statistic import ModelScore
from knockoffs.procedure import select_features
from knockoffs.sampling.pair import Pair
from knockoffs.table.table import read_table
from knockoffs.table.target import as_target

N, D, N_NON_NULL = 100, 60, 5
N_SIGNS = 5000


class FirstHalf(RegressorMixin, BaseEstimator):
    """A fit that minds the order of its columns as much as can be: it looks at the first half only."""

    def fit(self, XX, y):
        self.half_ = XX.shape[1] // 2
        self.ridge_ = Ridge().fit(XX[:, : self.half_], y)
        return self

    def predict(self, XX):
        return self.ridge_.predict(XX[:, : self.half_])


def draw(rng, classes):
    """Independent columns, where an independent copy is a knockoff; the first five matter."""
    X, X_tilde = rng.normal(size=(2, N, D))
    signal = X[:, :N_NON_NULL].sum(axis=1) + X[:, 0] * X[:, 1] + rng.normal(size=N)
    return X, X_tilde, np.digitize(signal, [-1, 1]) if classes else signal


def null_signs(statistics, seed, classes):
    """Signs of the null W that are not zero, over as many refits as it takes."""
    signs = np.empty(0)
    for rng in np.random.default_rng(seed).spawn(2000):
        W = statistics(*draw(rng, classes), rng)[N_NON_NULL:]
        signs = np.append(signs, np.sign(W[W != 0]))
        if len(signs) >= N_SIGNS:
            return signs
    raise AssertionError(f"only {len(signs)} statistics are not zero")


def p_value(signs):
    return binomtest(int((signs > 0).sum()), len(signs)).pvalue


BOOSTING = HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=4)
LOG_LOSS = {"loss": "log_loss"}
CASES = {
    "forest, swap, log-loss, in sample": ModelScore(RandomForestClassifier(20), swap_score, LOG_LOSS),
    "boosting, swap integral, cross-fitted": ModelScore(BOOSTING, swap_integral, LOG_LOSS, "cross_fitted", n_folds=3),
    "logistic, permutation integral, held out": ModelScore(
        LogisticRegression(), permutation_integral, {"loss": "brier"}, "held_out", n_folds=3
    ),
    "best of two, swap, each its own": BestOf(
        (
            ModelScore(LogisticRegression(C=0.1), swap_score, LOG_LOSS, n_folds=3, name="logistic"),
            ModelScore(BOOSTING, swap_score, LOG_LOSS, "cross_fitted", n_folds=3, name="boosting"),
        ),
        "log_loss",
    ),
    "one tree, swap, in sample": ModelScore(DecisionTreeRegressor(), swap_score),
    "first half only, swap, in sample": ModelScore(FirstHalf(), swap_score),
}


@pytest.mark.filterwarnings("ignore:W is exactly 0")  # small trees leave most columns alone
@pytest.mark.parametrize("name", CASES)
def test_signs_of_refitted_nulls_are_fair(name, seed):
    def statistics(X, X_tilde, y, rng):
        return select_features(X, y, knockoffs=GivenKnockoffs(X_tilde), statistic=CASES[name], rng=rng).W

    signs = null_signs(statistics, seed, classes=name.split(",")[0] not in ("one tree", "first half only"))
    assert len(signs) >= N_SIGNS
    assert p_value(signs) > 1e-6


def test_the_check_sees_a_fit_that_minds_column_order(seed):
    # without the random swap of the procedure the same model puts every null on the side of X
    def statistics(X, X_tilde, y, rng):
        pair, target = Pair(X, X_tilde, np.arange(D)), as_target(y, read_table(X))
        scores = ModelScore(FirstHalf(), swap_score).scored(pair, target, rng=rng).scores
        return scores.Z - scores.Z_tilde

    assert p_value(null_signs(statistics, seed, classes=False)) < 1e-6
