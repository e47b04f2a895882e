"""The procedure: the swap before the fit and back, several draws, and tables that do not fit each other."""

from functools import partial

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from tests.refusals import refuses

from knockoffs.draws import draw_and_score
from knockoffs.errors import InputError
from knockoffs.features import Family
from knockoffs.features.gaussian import fit_gaussian, gaussian_features
from knockoffs.features.given import GivenKnockoffs
from knockoffs.features.naive_bayes import fit_naive_bayes
from knockoffs.features.source import Fitted, knockoff_source
from knockoffs.filter import difference
from knockoffs.filter.e_values import combine_draws
from knockoffs.importance.coefficients import coefficient_magnitude
from knockoffs.importance.saliency import gradient_saliency
from knockoffs.importance.scores import Scores, sum_by_feature
from knockoffs.importance.statistic import ModelScore, Scored
from knockoffs.procedure import Data, Plan, Streams, check_antisymmetric, select_features
from knockoffs.procedure import run as run_plan
from knockoffs.response.plain import PlainLinear, PlainLogistic
from knockoffs.sampling.conjugates.independent import Independent
from knockoffs.sampling.network import BayesianNetwork, Node
from knockoffs.sampling.pair import Pair
from knockoffs.selector import KnockoffSelector
from knockoffs.table.table import read_table
from knockoffs.table.target import Target, as_target


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
    source = GivenKnockoffs(given["knockoffs"]) if "knockoffs" in given else knockoff_source(given["feature_model"])
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


def test_a_model_that_swaps_in_groups_needs_features_that_are_such_groups(data):
    X, _, y = data
    model = gaussian_features(np.zeros(6), np.eye(6) + 0.5, feature_of=[0, 0, 1, 2, 3, 3])
    refuses("columns 0 and 1 are one feature of P", run, X, y, feature_model=model)
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


# ---- several draws, and a level chosen after looking ---------------------------------------------------------------


def strong_data(n=120, d=8):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, d))
    return X, X[:, :5].sum(axis=1) + 0.5 * rng.standard_normal(n)


LINEAR = ModelScore(PlainLinear(), coefficient_magnitude, {})


def select(X, y, **options):
    source = knockoff_source("gaussian")
    options = {"fdr": 0.3, "rng": np.random.default_rng(1)} | options
    return select_features(X, y, knockoffs=source, statistic=LINEAR, **options)


def single_draws(X, y, n_draws):
    """W of every draw, drawn and scored one by one from the streams of a selection with this seed."""
    source = knockoff_source("gaussian")
    table = source.read(X)
    target = as_target(y, table)
    streams = Streams(*np.random.default_rng(1).spawn(4))
    settled = source(table, rng=streams.fit)
    draws = [
        draw_and_score(settled.sampler, table, target, LINEAR, rng=stream) for stream in streams.draw.spawn(n_draws)
    ]
    return draws, np.stack([draw.scores.Z - draw.scores.Z_tilde for draw in draws])


@pytest.mark.parametrize("level", ["fixed", "post_hoc"])
def test_several_draws_are_single_draws_joined_by_their_e_values(level):
    X, y = strong_data()
    found = select(X, y, n_draws=3, level=level)
    draws, W = single_draws(X, y, 3)
    expected = combine_draws(W, 0.3, how=level)
    assert_array_equal(found.draws, W)
    assert len({tuple(row) for row in W}) == 3  # they are three
    assert_array_equal(found.W, W.mean(axis=0))
    assert_array_equal(found.scores.Z, np.mean([draw.scores.Z for draw in draws], axis=0))
    assert_array_equal(found.evidence.e_values, expected.e_values)
    assert_array_equal(found.selected, expected.selected)
    assert_array_equal(found.q_values, expected.levels)
    assert found.evidence.stated == expected.stated
    assert np.isnan(found.threshold)
    assert_array_equal(found.X_tilde, draws[0].pair.X_tilde)  # of the first
    assert expected.selected.any() and found.evidence.promise in found.explain()


# ---- rules -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        lambda Z, Z_tilde: Z,
        lambda Z, Z_tilde: np.abs(Z - Z_tilde),
        lambda Z, Z_tilde: Z - Z_tilde + 1e-6,
        lambda Z, Z_tilde: (Z - Z_tilde).sum(),
        lambda Z, Z_tilde: (Z - Z_tilde)[:-1],
    ],
)
def test_a_rule_that_is_not_antisymmetric_is_refused(rule):
    refuses("rule is not antisymmetric", check_antisymmetric, rule)
    refuses("rule is not antisymmetric", select, *strong_data(), rule=rule)


# ---- rows without a target, and labels -------------------------------------------------------------------------------


def test_rows_without_a_target_are_used_for_p_x_and_left_out_of_the_model_of_y():
    X, y = strong_data()
    y[::4] = np.nan
    fitted_on = []

    def spy(X, *, rng, n_jobs=None):
        fitted_on.append(X.copy())
        return fit_gaussian(X, rng=rng)

    Sees.tables.clear()
    statistic = ModelScore(Sees(), places, {})
    found = select_features(
        X, y, knockoffs=Fitted(Family(spy)), statistic=statistic, fdr=0.5, rng=np.random.default_rng(0)
    )
    ((seen,),) = (fitted_on,)
    assert_array_equal(seen, X)
    ((XX, seen_y, _),) = Sees.tables
    assert XX.shape == (90, 16) and np.isfinite(seen_y).all()
    assert_array_equal(seen_y, y[~np.isnan(y)])
    assert found.X_tilde.shape == X.shape


def mixed_data(n=60):
    rng = np.random.default_rng(0)
    colour = rng.choice(["blue", "green", "red"], n)
    X = pl.DataFrame({"a": rng.standard_normal(n), "colour": colour, "b": rng.standard_normal(n)})
    other = pl.DataFrame({"a": rng.standard_normal(n), "colour": rng.permutation(colour), "b": rng.standard_normal(n)})
    return X, other, rng.standard_normal(n)


def blocks_go_together():
    """Whether a label reaches the model of y as indicators that are swapped as one, over 20 seeds."""
    X, X_tilde, y = mixed_data()
    halves = [
        np.column_stack([one["a"], *(one["colour"] == level for level in ("blue", "green", "red")), one["b"]])
        for one in (X, X_tilde)
    ]
    sides = []
    for seed in range(20):
        Sees.tables.clear()
        found = run(X, y, knockoffs=X_tilde, rng=np.random.default_rng(seed))
        XX = Sees.tables[-1][0]
        assert XX.shape == (60, 10)
        whole = []
        for block in ([0], [1, 2, 3], [4]):
            left, right = XX[:, block], XX[:, [j + 5 for j in block]]
            here, there = halves[0][:, block], halves[1][:, block]
            stays = np.array_equal(left, here) and np.array_equal(right, there)
            moved = np.array_equal(left, there) and np.array_equal(right, here)
            if not (stays or moved):
                return False
            whole.append(stays)
        sides.append(tuple(whole))
        assert found.W.shape == (3,)
    return len(set(sides)) > 4  # 20 throws of three coins: fewer sides with probability 1e-4


def test_labels_reach_the_model_of_y_as_blocks_that_are_swapped_as_one():
    assert blocks_go_together()


# ---- tests in place of knockoffs -------------------------------------------------------------------------------------


def by_tests(X, y, source, model="best"):
    table = source.read(X)
    plan = Plan(source, method="conditional_test", test_model=model)
    return run_plan(plan, Data(table, as_target(y, table)), rng=np.random.default_rng(0))


def test_features_are_tested_by_draws_given_the_others():
    X, y = strong_data()
    y[:10] = np.nan
    found = by_tests(X, y, knockoff_source("gaussian"), "lasso")
    assert found.method == "conditional_test"
    assert found.selected[:5].all() and (found.p_values[:5] < 0.01).all()
    assert np.isnan(found.W).all() and found.scores is None and np.isnan(found.threshold)
    assert found.pair.X.shape == X.shape
    assert "conditional randomization test" in found.explain()


def test_a_p_x_without_conditionals_is_not_tested_and_features_of_several_columns_are_where_it_can_draw_them():
    X, y = strong_data()
    refuses("cannot draw a feature given all the others", by_tests, X, y, knockoff_source(fit_gaussian(X).as_network()))
    source = knockoff_source("gaussian")
    table = source.read(X).with_groups(np.repeat(np.arange(4), 2))
    found = by_tests(table, y, source, "lasso")
    assert found.p_values.shape == (4,) and found.selected[:2].all() and len(found.feature_names) == 4
    law = fit_naive_bayes((X > 0).astype(int), n_classes=2, rng=np.random.default_rng(0))
    coded = knockoff_source(law)
    table = coded.read((X > 0).astype(int)).with_groups(np.repeat(np.arange(4), 2))
    refuses("cannot draw a group of columns given all the others", by_tests, table, y, coded)


@pytest.mark.parametrize("drawn", [np.nan, np.inf])
@pytest.mark.parametrize(("estimator", "m"), [("lasso", 1), ("boosting", 1), ("lasso", 3)])
def test_knockoffs_that_are_no_numbers_are_refused_whatever_the_model_of_y_takes(drawn, estimator, m):
    rng = np.random.default_rng(0)

    def draw(blanket, n, rng):
        u = rng.normal(size=(n, 12))
        u[3, 5] = drawn
        return u

    law = Independent(draw, log_prob=lambda u, blanket: np.zeros(len(u)))
    network = BayesianNetwork([Node("X", (), law, columns=range(12))])
    X = rng.normal(size=(60, 12))
    with pytest.raises(InputError, match=f"the knockoff of column 'x5' is {drawn} in row 3: .* must draw numbers"):
        KnockoffSelector(0.3, feature_model=network, estimator=estimator, n_knockoffs=m, random_state=0).fit(
            X, X[:, 0] + rng.normal(size=60)
        )


def test_knockoffs_swaps_and_scores_have_streams_of_their_own():
    """The first 64 coins of each: two that are the same stream agree in all, two that are not with chance 2^-64."""
    coins = {}

    class Sampler:
        feature_of = np.arange(64)

        def sample(self, X, rng):
            coins["knockoffs"] = rng.random(64) < 0.5
            return Pair(X, X + 1.0, self.feature_of)

    def statistic(pair, target, *, rng, n_jobs=None):
        coins["swaps"] = pair.X[0] > 0.5  # X is 0 and its knockoff 1
        coins["scores"] = rng.random(64) < 0.5
        return Scored(Scores(pair.X[0], pair.X_tilde[0]))

    X = np.zeros((5, 64))
    X[1] = np.arange(64)
    draw_and_score(Sampler(), read_table(X), Target(np.arange(5.0)), statistic, rng=np.random.default_rng(0))
    found = {tuple(some) for some in coins.values()}
    assert len(coins) == len(found) == 3 and coins["swaps"].any()


def test_a_fit_that_fails_leaves_the_selector_unfitted():
    """Before the work and within it, and nothing of an earlier fit survives."""
    X, y = strong_data()
    selector = KnockoffSelector(0.3, feature_model="gaussian", estimator="lasso", verdict=False, random_state=0)
    for change in ({"fdr": 2.0}, {"estimator": Fails()}):
        selector.set_params(fdr=0.3, estimator="lasso").fit(X, y)
        assert {"selection_", "n_features_in_"} < set(vars(selector))
        with pytest.raises((InputError, ZeroDivisionError)):
            selector.set_params(method="knockoffs", **change).fit(X, y)
        assert set(vars(selector)) == set(selector.get_params())
        with pytest.raises(NotFittedError):
            selector.get_support()


class Fails(PlainLinear):
    def fit(self, X, y, sample_weight=None):
        raise ZeroDivisionError
