"""The procedure: the swap before the fit and back, and tables that do not fit each other."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from knockoffs.errors import InputError
from knockoffs.features import Family
from knockoffs.features.gaussian import fit_gaussian, gaussian_features
from knockoffs.features.naive_bayes import fit_naive_bayes
from knockoffs.features.source import Brought, knockoff_source
from knockoffs.filter import difference
from knockoffs.importance.coefficients import coefficient_magnitude
from knockoffs.importance.saliency import gradient_saliency
from knockoffs.importance.scores import Scores, sum_by_feature
from knockoffs.importance.statistic import ModelScore
from knockoffs.procedure import select_features
from knockoffs.response.linear import PlainLinear, PlainLogistic
from knockoffs.table.target import as_target


class Sees:
    """A model that keeps the tables it is fitted on, and nothing else."""

    tables = []  # noqa: RUF012 - shared by the copies that the procedure makes

    def fit(self, XX, y, sample_weight=None):
        Sees.tables.append((XX.copy(), y.copy(), sample_weight))
        return self

    def predict(self, XX):
        return np.zeros(len(XX))


def places(model, X, X_tilde, y, *, feature_of, rng, sample_weight=None):
    """Z is what stands on the left and Z_tilde what stands on the right: the sum of each column."""
    return Scores(sum_by_feature(X.sum(axis=0), feature_of), sum_by_feature(X_tilde.sum(axis=0), feature_of))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X, X_tilde = rng.standard_normal((2, 40, 6))
    return X, X_tilde, rng.standard_normal(40)


def run(X, y, *, estimator=None, importance=places, feature_of=None, sample_weight=None, **options):
    """Selection from knockoffs that are brought along or come from a feature model."""
    given = {key: options.pop(key) for key in ("knockoffs", "feature_model") if key in options}
    source = Brought(given["knockoffs"]) if "knockoffs" in given else knockoff_source(given["feature_model"])
    how = {key: options.pop(key) for key in ("rows", "n_folds", "n_fits") if key in options}
    statistic = ModelScore(estimator or Sees(), importance, **how)
    table = source.read(X).with_groups(feature_of)
    target = as_target(y, table, task="regression" if estimator is None else None, weights=sample_weight)
    options = {"fdr": 0.5, "rng": np.random.default_rng(1)} | options
    return select_features(table, target, knockoffs=source, statistic=statistic, **options)


@pytest.mark.parametrize("feature_of", [None, np.array([0, 1, 1, 2, 0, 3])])
def test_features_are_swapped_at_random_before_the_fit_and_their_scores_are_swapped_back(data, feature_of):
    X, X_tilde, y = data
    owners = np.arange(6) if feature_of is None else feature_of
    swapped = []
    for seed in range(20):
        Sees.tables.clear()
        found = run(X, y, knockoffs=X_tilde, feature_of=feature_of, rng=np.random.default_rng(seed))
        ((XX, seen_y, _),) = Sees.tables
        S = np.array([not np.array_equal(XX[:, j], X[:, j]) for j in range(6)])
        assert_array_equal(XX, np.hstack([np.where(S, X_tilde, X), np.where(S, X, X_tilde)]))
        assert all(len(set(S[owners == f])) == 1 for f in owners)  # columns of a feature go together
        assert_array_equal(seen_y, y)
        assert_allclose(found.scores.Z, sum_by_feature(X.sum(axis=0), owners), rtol=1e-12)
        assert_allclose(found.scores.Z_tilde, sum_by_feature(X_tilde.sum(axis=0), owners), rtol=1e-12)
        assert_array_equal(found.W, difference(found.scores.Z, found.scores.Z_tilde))
        swapped.append(S)
    share = np.mean(swapped, axis=0)  # 20 fair coins: outside [1, 19] with probability 4e-6 a column
    assert ((share > 0) & (share < 1)).all()
    assert len({tuple(S) for S in swapped}) > 10  # and not all by one coin


@pytest.mark.filterwarnings("ignore:the Gaussian rests on 40 rows")
def test_the_knockoffs_do_not_depend_on_y_or_on_the_model_of_it(data):
    X, _, y = data
    first = run(X, y, feature_model=fit_gaussian)
    for other in (
        run(X, X[:, 0] > 0, feature_model=fit_gaussian),
        run(X, y, feature_model=fit_gaussian, estimator=PlainLinear(), importance=coefficient_magnitude),
        run(X, y, feature_model=fit_gaussian, sample_weight=np.linspace(0.1, 2, 40), n_fits=2, rows="held_out"),
    ):
        assert_array_equal(other.X_tilde, first.X_tilde)


def test_weights_reach_the_fit_in_their_own_rows(data):
    X, X_tilde, y = data
    weights = np.arange(1.0, 41.0)
    Sees.tables.clear()
    run(X, y, knockoffs=X_tilde, sample_weight=weights, rows="cross_fitted", n_folds=4)
    for _, seen_y, seen in Sees.tables:
        assert_array_equal(seen, weights[[np.flatnonzero(y == value)[0] for value in seen_y]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"knockoffs": np.zeros((1, 6))}, r"knockoffs have shape \(1, 6\) and X has shape \(40, 6\)"),
        ({"knockoffs": np.zeros((40, 1))}, r"knockoffs have shape \(40, 1\)"),
        ({"y": np.zeros(30)}, "y has 30 values and X has 40 rows"),
        ({"sample_weight": np.ones(41)}, r"sample_weight has shape \(41,\)"),
    ],
)
def test_tables_that_numpy_would_stretch_or_cut_are_refused(data, options, message):
    X, X_tilde, y = data
    with pytest.raises(InputError, match=message):
        run(X, **({"y": y, "knockoffs": X_tilde} | options))


def test_a_model_that_swaps_in_groups_needs_features_that_are_such_groups(data):
    X, _, y = data
    model = gaussian_features(np.zeros(6), np.eye(6) + 0.5, feature_of=[0, 0, 1, 2, 3, 3])
    with pytest.raises(InputError, match="columns 0 and 1 are one feature of P"):
        run(X, y, feature_model=model)
    for feature_of in ([0, 0, 1, 2, 3, 3], [0, 0, 0, 1, 2, 2]):  # the same groups, or larger ones
        assert len(run(X, y, feature_model=model, feature_of=np.array(feature_of)).W) == max(feature_of) + 1


def test_families_without_groups_serve_features_of_several_columns(data):
    X, _, y = data
    for fit in (fit_naive_bayes, Family(partial(fit_naive_bayes, n_classes=1))):
        assert len(run(X, y, feature_model=fit, feature_of=np.array([0, 0, 1, 1, 2, 2])).W) == 3


@pytest.mark.filterwarnings("ignore:knockoffs equal X")
@pytest.mark.parametrize("score", [coefficient_magnitude, gradient_saliency])
@pytest.mark.parametrize("model", [PlainLinear(), PlainLogistic()])
def test_a_feature_that_is_its_own_knockoff_has_W_zero_exactly(score, model):
    """Matrix products round by the place of a column: without care W is 1e-17 here, and of either sign."""
    rng = np.random.default_rng(0)
    X, X_tilde = rng.standard_normal((2, 120, 5)) * rng.uniform(0.1, 10, 5)
    X_tilde[:, [1, 2, 4]] = X[:, [1, 2, 4]]
    y = X[:, 0] + X[:, 1] - X[:, 2] + X[:, 4] + rng.standard_normal(120)
    y = y if isinstance(model, PlainLinear) else y > 0
    for seed in range(10):
        options = dict(estimator=model, importance=score, sample_weight=rng.uniform(0.1, 2, 120))
        found = run(X, y, knockoffs=X_tilde, rng=np.random.default_rng(seed), **options)
        assert_array_equal(found.W[[1, 2, 4]], 0.0)
        assert (found.W[[0, 3]] != 0).all()
        grouped = run(X, y, knockoffs=X_tilde, feature_of=np.array([0, 1, 1, 2, 2]), **options)
        assert grouped.W[1] == 0.0 and (grouped.W[[0, 2]] != 0).all()  # half a copy is none
