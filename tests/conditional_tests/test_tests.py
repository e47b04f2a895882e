"""The test is exact if draws are right and the distillation does not see X_j; each is broken once, and seen."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from scipy.linalg import toeplitz
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, RidgeClassifier

from knockoffs.conditional_tests.distil import distil
from knockoffs.conditional_tests.sequential import sequential_p_value
from knockoffs.conditional_tests.statistic import residual_statistic
from knockoffs.conditional_tests.tests import N_PILOT, p_value_of, randomization_tests, resampling
from knockoffs.errors import InputError
from knockoffs.features.gaussian import gaussian_features


@dataclass(frozen=True)
class GaussianConditional:
    """N(0, covariance); ``marginal`` is the fault of forgetting the other features."""

    covariance: np.ndarray
    marginal: bool = False

    def conditional(self, j, X, rng, n_draws):
        if self.marginal:
            return np.sqrt(self.covariance[j, j]) * rng.standard_normal((n_draws, len(X)))
        rest = np.delete(np.arange(len(self.covariance)), j)
        slope = np.linalg.solve(self.covariance[np.ix_(rest, rest)], self.covariance[rest, j])
        scale = np.sqrt(self.covariance[j, j] - self.covariance[j, rest] @ slope)
        return X[:, rest] @ slope + scale * rng.standard_normal((n_draws, len(X)))


@dataclass
class EveryTable:
    """X_0 given X_1 is a coin with P(1) = 3/4 where X_1 is 1 and 1/4 where it is 0: all tables, by their multiplicity.

    A call for all 4^n gives each 0/1 vector as often as its probability says; ``fair`` is the fault of a fair coin.
    """

    fair: bool = False

    def table(self, rest):
        ones = np.full(len(rest), 2) if self.fair else np.where(rest == 1, 3, 1)
        every = product(*[[1.0] * k + [0.0] * (4 - k) for k in ones])
        return np.array(list(every))

    def conditional(self, j, X, rng, n_draws):
        table = self.table(X[:, 1 - j])
        return table if n_draws == len(table) else table[rng.integers(len(table), size=n_draws)]


def exceeds_uniform(p):
    p = np.sort(p)
    return bool((np.arange(1, len(p) + 1) / len(p) > p + 1e-12).any())


def p_values_of_every_table(model, response_model):
    """The p-value of each table that X_0 can be, as often as it can be it, against all of them."""
    rest, y = np.array([1.0, 0.0, 1.0, 0.0]), np.array([2.0, 0.5, 1.4, -0.3])
    truth, found = EveryTable().table(rest), {}
    for x in np.unique(truth, axis=0):
        tested = conditional_tests_of_first(model, np.column_stack([x, rest]), y, response_model)
        found[tuple(x)] = tested
    return np.array([found[tuple(x)] for x in truth])


def conditional_tests_of_first(model, X, y, response_model):
    rng = np.random.default_rng(3)
    weights = distil(X[:, 1:], y, kind="number", model=response_model, rng=rng).weights
    statistic = residual_statistic(weights, model.conditional(0, X, rng, N_PILOT))
    n = 4 ** len(X)
    observed = statistic(X[None, :, 0])[0] - 1e-9
    return sequential_p_value(
        observed, lambda m: statistic(model.conditional(0, X, rng, m)), max_draws=n, enough=2 * n, batch=n
    )[0]


@pytest.mark.parametrize("response_model", [DummyRegressor(), LinearRegression()])
def test_p_values_are_super_uniform_exactly(response_model):
    assert not exceeds_uniform(p_values_of_every_table(EveryTable(), response_model))


def test_draws_that_forget_the_other_features_are_seen_exactly():
    assert exceeds_uniform(p_values_of_every_table(EveryTable(fair=True), DummyRegressor()))


def p_of(model, j, X, y, *, kind="number", max_draws, rng):
    options = {"kind": kind, "nominal": np.array([False]), "response_model": "lasso", "enough": 20, "encode": None}
    return p_value_of(resampling(model, X, rng), np.array([j]), X, y, max_draws=max_draws, rng=rng, **options)[0]


SIGMA = toeplitz(0.7 ** np.arange(4))


def null_p_values(model, rng, n_tables):
    """p-values of two null features, each of a table of its own."""
    found = []
    for _ in range(n_tables):
        X = rng.normal(size=(80, 4)) @ np.linalg.cholesky(SIGMA).T
        y = X[:, 1] + X[:, 2] ** 2 + rng.normal(size=80)
        found.append(p_of(model, rng.choice([0, 3]), X, y, rng=rng, max_draws=199))
    return np.array(found)


def largest_excess(p):
    """Sup of the empirical distribution over the uniform one: above e with probability <= exp(-2 m e^2) for m."""
    p = np.sort(p)
    return (np.arange(1, len(p) + 1) / len(p) - p).max()


def test_null_p_values_are_super_uniform(rng):
    assert largest_excess(null_p_values(GaussianConditional(SIGMA), rng, 150)) < 0.215  # false alarm 1e-6


def test_marginal_draws_are_seen(rng):
    assert largest_excess(null_p_values(GaussianConditional(SIGMA, marginal=True), rng, 40)) > 0.42  # 1e-6 if valid


def test_a_distillation_that_sees_the_feature_is_seen(rng):
    """The residuals' product with the feature that fits X_j best: valid with any choice that leaves X_j out."""

    def p_value(peeks):
        X = rng.normal(size=(60, 40))
        y = rng.normal(size=60)
        products = (y - y.mean())[:, None] * X[:, 1:]
        looked_at = X[:, 0] if peeks else rng.normal(size=60)
        best = np.argmax(np.abs(looked_at @ products))
        statistic = residual_statistic(products[:, [best]], rng.normal(size=(N_PILOT, 60)))
        observed = statistic(X[None, :, 0])[0] - 1e-9
        return sequential_p_value(observed, lambda m: statistic(rng.normal(size=(m, 60))), max_draws=99)[0]

    assert largest_excess([p_value(False) for _ in range(150)]) < 0.215
    assert largest_excess([p_value(True) for _ in range(150)]) > 0.5


def group_p_values(model, rng, n_tables, effect=0.0):
    """p-value of the group of the first two columns, y depending on the third, which they resemble."""
    found = []
    for _ in range(n_tables):
        X = rng.normal(size=(80, 4)) @ np.linalg.cholesky(SIGMA).T
        y = X[:, 2] + effect * X[:, 0] * X[:, 1] + rng.normal(size=80)
        options = {"kind": "number", "response_model": DummyRegressor(), "max_draws": 99}
        tested = randomization_tests(model, X, y, rng=rng, feature_of=np.array([0, 0, 1, 2]), **options)
        assert len(tested.p_values) == 3 and tested.names == ("x0", "x1", "x2")
        found.append(tested.p_values[0])
    return np.array(found)


def test_p_values_of_a_null_group_are_super_uniform_and_marginal_draws_are_seen(rng):
    class Marginal:
        """The fault of drawing the group without a look at the others."""

        def conditional(self, j, X, rng, n_draws):
            return rng.normal(size=(n_draws, len(X)))

        def conditional_together(self, columns, X, rng, n_draws):
            return rng.multivariate_normal(np.zeros(2), SIGMA[:2, :2], size=(n_draws, len(X)))

    known = gaussian_features(np.zeros(4), SIGMA)
    assert largest_excess(group_p_values(known, rng, 100)) < 0.263  # false alarm 1e-6
    assert largest_excess(group_p_values(Marginal(), rng, 20)) > 0.588
    assert (group_p_values(known, rng, 3, effect=3.0) <= 0.02).all()


def test_a_group_needs_a_law_of_several_columns(rng):
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    model = GaussianConditional(np.eye(3))
    with pytest.raises(InputError, match="GaussianConditional cannot draw a group of columns .* method='knockoffs'"):
        randomization_tests(model, X, y, kind="number", rng=rng, feature_of=np.array([0, 0, 1]))


def designs(name, X):
    return {
        "linear": X[:, 0],
        "u_shape": X[:, 0] ** 2,
        "interaction": X[:, 0] * X[:, 3],
        "step": 1.5 * (X[:, 0] > 1),
    }[name]


@pytest.mark.parametrize("design", ["linear", "u_shape", "interaction", "step"])
@pytest.mark.parametrize("kind", ["number", "binary", "classes"])
def test_effects_of_every_shape_are_found(design, kind, rng):
    covariance = toeplitz(0.3 ** np.arange(5))
    X = rng.normal(size=(400, 5)) @ np.linalg.cholesky(covariance).T
    signal = designs(design, X) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=400)
    y = {
        "number": signal,
        "binary": signal > np.median(signal),
        "classes": np.digitize(signal, np.quantile(signal, [0.3, 0.6])),
    }[kind]
    assert p_of(GaussianConditional(covariance), 0, X, y, kind=kind, max_draws=400, rng=rng) == 1 / 401


def test_levels_without_an_order(rng):
    """Three levels of which the middle one raises y: seen by the indicators, whatever the codes are."""

    class Coin:
        def conditional(self, j, X, rng, n_draws):
            return rng.integers(3, size=(n_draws, len(X))).astype(float)

    X = rng.integers(3, size=(300, 3)).astype(float)
    y = (X[:, 0] == 1) + 0.5 * rng.normal(size=300)
    for nominal in ((), (0, 1, 2)):
        tested = randomization_tests(Coin(), X, y, kind="number", rng=rng, nominal=nominal, response_model="lasso")
        assert tested.selected[0]


def test_the_answer_does_not_depend_on_the_jobs_nor_on_the_names_of_classes(rng):
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = GaussianConditional(np.eye(3))
    answers = [
        randomization_tests(model, X, labels, kind="binary", rng=np.random.default_rng(1), n_jobs=jobs, max_draws=99)
        for labels, jobs in ((y, 1), (y, 2), (y == "yes", 1))
    ]
    assert all((answer.p_values == answers[0].p_values).all() for answer in answers)
    assert answers[0].names == ("x0", "x1", "x2") and answers[0].p_values[0] == 0.01


def test_a_column_that_the_others_determine_has_p_value_one(rng):
    class Copy:
        def conditional(self, j, X, rng, n_draws):
            return np.tile(X[:, 1 - j], (n_draws, 1))

    x = rng.normal(size=50)
    tested = randomization_tests(Copy(), np.column_stack([x, x]), x, kind="number", rng=rng, max_draws=50)
    assert (tested.p_values == 1).all()


def test_one_feature_needs_no_model(rng):
    x = rng.normal(size=50)
    tested = randomization_tests(GaussianConditional(np.eye(1)), x[:, None], x, kind="number", rng=rng, max_draws=99)
    assert tested.p_values == [0.01]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "numbers"}, "Did you mean 'number'"),
        ({"names": ["a"]}, "1 names for 2 features"),
        ({"response_model": "boost"}, "Did you mean 'boosting'"),
        ({"X": np.array([[1.0, np.nan]] * 10)}, "'1' has cells that are missing"),
        ({"y": np.zeros(3)}, r"y \(3,\)"),
        ({"model": object()}, r"object has no conditional\(j"),
    ],
)
def test_errors(change, message, rng):
    given = {"model": GaussianConditional(np.eye(2)), "X": np.ones((10, 2)), "y": np.arange(10.0), "kind": "number"}
    given |= change
    with pytest.raises(InputError, match=message):
        randomization_tests(given.pop("model"), given.pop("X"), given.pop("y"), rng=rng, **given)


class Plain:
    """A model of one's own: no get_params, and a fit that returns nothing."""

    def fit(self, rest, y):
        self.model = LinearRegression().fit(rest, y)

    def predict(self, rest):
        return self.model.predict(rest)


def test_a_model_of_ones_own_needs_fit_and_predict_and_nothing_else(rng):
    rest = rng.standard_normal((60, 3))
    y = rest @ [1.0, 2.0, 0.0] + rng.standard_normal(60)
    ours, theirs = (
        distil(rest, y, kind="number", model=model, rng=np.random.default_rng(0))
        for model in (Plain(), LinearRegression())
    )
    np.testing.assert_array_equal(ours.weights, theirs.weights)


def test_the_seed_reaches_a_model_without_one_and_the_global_state_is_left_alone(rng):
    rest = rng.standard_normal((60, 3))
    y = rest @ [1.0, 2.0, 0.0] + rng.standard_normal(60)
    forest = RandomForestRegressor(n_estimators=3)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again, other = (
        distil(rest, y, kind="number", model=forest, rng=np.random.default_rng(seed)).weights for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_labels_that_a_model_predicts_are_compared_with_each_class(rng):
    rest = rng.standard_normal((90, 2))
    y = (rest[:, 0] > -0.5).astype(int) + (rest[:, 0] > 0.5)
    found = distil(rest, y, kind="classes", model=RidgeClassifier(), rng=np.random.default_rng(0))
    r = found.weights[:, : found.n_residuals] - found.weights[:, : found.n_residuals].min(axis=0)
    assert found.n_residuals == 3 and np.ptp(r) <= 2  # an indicator less an indicator, not less a code up to 2


def test_draws_are_not_those_that_the_statistic_was_made_of():
    """Pilot draws set its means and deviations; counted again among the draws they would be nearer to these than X."""
    asked = {}

    class Coins:
        def conditional(self, j, X, rng, n_draws):
            drawn = rng.standard_normal((n_draws, len(X)))
            asked.setdefault(j, []).append(drawn)
            return drawn

    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    randomization_tests(Coins(), X, X[:, 0] + rng.standard_normal(60), kind="number", rng=rng, max_draws=60)
    first = {j: [tuple(row[:5]) for drawn in some for row in drawn] for j, some in asked.items()}
    assert set(first) == {0, 1, 2} and all(len(some) > 110 for some in first.values())
    every = [row for some in first.values() for row in some]
    assert len(set(every)) == len(every)


@pytest.mark.parametrize("strong", [0, 1, 2])
def test_a_group_is_as_striking_as_any_of_its_columns(strong):
    """200 rows and a correlation of .7 with y: the smallest p-value there is, whichever column of the group has it."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 5))
    y = X[:, strong] + rng.standard_normal(200)
    owners = np.array([0, 0, 0, 1, 1])
    law = gaussian_features(np.zeros(5), np.eye(5))
    found = randomization_tests(law, X, y, kind="number", rng=rng, max_draws=99, feature_of=owners)
    assert found.p_values[0] == 0.01
