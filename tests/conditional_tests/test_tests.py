"""Tests of features and groups: effects they find, what they refuse, and what the answer does not depend on."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.linalg import toeplitz
from sklearn.dummy import DummyRegressor

from knockoffs.conditional_tests.sequential import fixed_looks
from knockoffs.conditional_tests.tests import group_tests, randomization_tests
from knockoffs.errors import InputError
from knockoffs.features.gaussian import gaussian_features


@dataclass(frozen=True)
class GaussianConditional:
    """N(0, covariance), without a law of several columns."""

    covariance: np.ndarray

    def conditional(self, j, X, rng, n_draws):
        rest = np.delete(np.arange(len(self.covariance)), j)
        slope = np.linalg.solve(self.covariance[np.ix_(rest, rest)], self.covariance[rest, j])
        scale = np.sqrt(self.covariance[j, j] - self.covariance[j, rest] @ slope)
        return X[:, rest] @ slope + scale * rng.standard_normal((n_draws, len(X)))


def test_of(model, columns, X, y, *, kind="number", max_draws, rng, **options):
    given = {"nominal": (), "response_model": "lasso", "encode": None} | options
    tests = group_tests(model, X, y, kind=kind, rng=rng, **given)
    return tests.test(np.array(columns), fixed_looks(max_draws))


test_of.__test__ = False


def designs(name, X):
    return {"linear": X[:, 0], "u_shape": X[:, 0] ** 2, "interaction": X[:, 0] * X[:, 3], "step": 1.5 * (X[:, 0] > 1)}[
        name
    ]


@pytest.mark.parametrize("group", [[0], [0, 2]])
@pytest.mark.parametrize("design", ["linear", "u_shape", "interaction", "step"])
@pytest.mark.parametrize("kind", ["number", "binary", "classes"])
def test_effects_of_every_shape_are_found(design, kind, group, rng):
    covariance = toeplitz(0.3 ** np.arange(5))
    X = rng.normal(size=(400, 5)) @ np.linalg.cholesky(covariance).T
    signal = designs(design, X) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=400)
    y = {
        "number": signal,
        "binary": signal > np.median(signal),
        "classes": np.digitize(signal, np.quantile(signal, [0.3, 0.6])),
    }[kind]
    law = gaussian_features(np.zeros(5), covariance)
    found = test_of(law, group, X, y, kind=kind, max_draws=400, rng=rng)
    assert found.p_value == 1 / 401 and found.score > 4


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


def test_the_stronger_of_two_features_with_the_smallest_p_value_has_the_larger_score(rng):
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, 3.0, 0.0] + rng.normal(size=300)
    tested = randomization_tests(gaussian_features(np.zeros(3), np.eye(3)), X, y, kind="number", rng=rng, max_draws=99)
    assert tested.p_values[:2].tolist() == [0.01, 0.01] and tested.scores[1] > 1.5 * tested.scores[0] > 0
    assert abs(tested.scores[2]) < 4


def test_the_answer_does_not_depend_on_the_jobs_nor_on_the_names_of_classes(rng, jobs_are_threads):
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = GaussianConditional(np.eye(3))
    answers = [
        randomization_tests(model, X, labels, kind="binary", rng=np.random.default_rng(1), n_jobs=jobs, max_draws=99)
        for labels, jobs in ((y, 1), (y, 2), (y == "yes", 1))
    ]
    assert all((answer.p_values == answers[0].p_values).all() for answer in answers)
    assert answers[0].names == ("x0", "x1", "x2") and answers[0].p_values[0] == 0.01


def test_a_group_has_one_p_value_whatever_else_is_tested(rng):
    X, y = rng.normal(size=(60, 4)), rng.normal(size=60)
    law = gaussian_features(np.zeros(4), np.eye(4))
    first = randomization_tests(law, X, y, kind="number", rng=np.random.default_rng(0), feature_of=[0, 0, 1, 2])
    other = randomization_tests(law, X, y, kind="number", rng=np.random.default_rng(0), feature_of=[0, 0, 1, 1])
    assert first.p_values[0] == other.p_values[0] and first.n_draws[0] == other.n_draws[0]


@pytest.mark.parametrize("kind", ["number", "binary"])
def test_the_seed_moves_draws_alone_so_p_values_differ_by_their_monte_carlo_error(kind):
    """Ten seeds: a p-value by c draws as large as X has a relative standard error of 1 / sqrt(c).

    One of 180 differences of two exceeds five standard errors with probability 1e-4. A statistic centred by 100 pilot
    draws that are not stratified adds 0.25 to the errors, and fails.
    """
    rng = np.random.default_rng(0)
    covariance = toeplitz(0.5 ** np.arange(5))
    X = rng.normal(size=(150, 5)) @ np.linalg.cholesky(covariance).T
    y = X @ [1.0, 0.25, 0.2, 0.1, 0.0] + rng.normal(size=150)
    y = y > 0 if kind == "binary" else y
    law = gaussian_features(np.zeros(5), covariance)
    found = [
        randomization_tests(law, X, y, kind=kind, rng=np.random.default_rng(seed), max_draws=5000)
        for seed in range(100, 110)
    ]
    log_p = np.log([one.p_values for one in found])
    count = np.array([one.p_values * one.n_draws for one in found])
    assert (log_p[:, 0] == -np.log(5001)).all()  # the smallest possible
    assert (np.ptp(log_p, axis=0)[1:] > 0).all()  # the others move
    apart = np.abs(log_p[:, None] - log_p) / np.sqrt(1 / count[:, None] + 1 / count)
    assert apart.max() < 5


@pytest.mark.parametrize(("fdr", "draws"), [(0.2, "1,000"), (0.001, "200,000")])
def test_draws_near_the_threshold_suffice(fdr, draws):
    """100 d / fdr draws: at p = fdr / d 100 are expected as large, so the standard error is a tenth of p."""
    X, y = np.arange(40.0).reshape(20, 2) % 7, np.arange(20.0) % 3
    law = gaussian_features(np.zeros(2), np.eye(2))
    tested = randomization_tests(law, X, y, kind="number", fdr=fdr, rng=np.random.default_rng(0))
    assert f"at most {draws} draws" in tested.notes["max_draws"]


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


def test_all_columns_as_one_group(rng):
    X = rng.normal(size=(80, 3))
    law = gaussian_features(np.zeros(3), np.eye(3))
    for y, most in ((X.sum(axis=1), 0.01), (rng.normal(size=80), 1.0)):
        tested = randomization_tests(law, X, y, kind="number", rng=rng, max_draws=99, feature_of=np.zeros(3, int))
        assert tested.p_values.shape == (1,) and tested.p_values[0] <= most


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "numbers"}, "Did you mean 'number'"),
        ({"names": ["a"]}, "1 names for 2 features"),
        ({"response_model": "boost"}, "Did you mean 'boosting'"),
        ({"X": np.array([[1.0, np.nan]] * 10)}, "'1' has cells that are missing"),
        ({"y": np.zeros(3)}, r"y \(3,\)"),
        ({"model": object()}, r"object has no conditional\(j"),
        ({"feature_of": np.zeros(2, int)}, "GaussianConditional cannot draw a group of columns .* method='knockoffs'"),
    ],
)
def test_errors(change, message, rng):
    given = {"model": GaussianConditional(np.eye(2)), "X": np.ones((10, 2)), "y": np.arange(10.0), "kind": "number"}
    given |= change
    with pytest.raises(InputError, match=message):
        randomization_tests(given.pop("model"), given.pop("X"), given.pop("y"), rng=rng, **given)


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


def test_models_of_y_are_chosen_once_for_each_fifth_of_the_columns(monkeypatch, rng):
    """Twenty single columns ask for five choices, each from the sixteen columns outside the fifth."""
    from knockoffs.conditional_tests import tests as module

    seen, choose = [], module.choose_response

    def counted(rest, *arguments, **options):
        seen.append(rest.shape[1])
        return choose(rest, *arguments, **options)

    monkeypatch.setattr(module, "choose_response", counted)
    X = rng.standard_normal((60, 20))
    law = gaussian_features(np.zeros(20), np.eye(20))
    options = {"kind": "number", "rng": rng, "response_model": DummyRegressor(), "max_draws": 9}
    randomization_tests(law, X, X[:, 0], **options)
    assert seen == [16] * 5
    seen.clear()
    randomization_tests(law, X, X[:, 0], feature_of=np.arange(20) // 15, **options)
    assert seen == [5, 12]  # of a group that touches most fifths all columns outside it, else those outside the fifths
