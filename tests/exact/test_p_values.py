"""p-values of the conditional test are super-uniform, exactly: by enumeration of all tables a group can be.

Given the other columns, a column is a coin that depends on them; the probabilities are quarters, so all tables are
equally probable if each is listed as often as its probability says. The observed table runs through all of them, and
is compared with all of them. P(p <= a) <= a is then checked for every a, without chance. Planted faults: draws that
forget the other columns, and a statistic that sees the observed table.

p-values that stop early are checked in the same way, over all orders of a few values.
"""

from itertools import permutations, product

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression

from knockoffs.conditional_tests import tests as module
from knockoffs.conditional_tests.sequential import Looks, fixed_looks, plan_looks, probability, sequential_p_value
from knockoffs.conditional_tests.tests import GroupTests
from knockoffs.response.linear import make_lasso

REST = np.array([1.0, 0.0, 1.0, 0.0])  # a column outside the group
Y = np.array([2.0, 0.5, 1.4, -0.3])
LASSO = make_lasso("regression", random_state=0).set_params(alpha=0.1)


def coin(given):
    """A coin that shows 1 in three of four cases where ``given`` is 1, and in one of four where it is 0."""
    return [1.0] * 3 + [0.0] if given == 1 else [1.0] + [0.0] * 3


def every_row(given, size, fair):
    """All rows of a group of one or two columns, as often as their probability says; the second follows the first."""
    first = [1.0, 0.0] * 2 if fair else coin(given)
    return [(a,) for a in first] if size == 1 else [(a, b) for a in first for b in coin(a)]


def every_table(n, size, fair=False):
    """All tables of the group, shape (n_tables, n, size)."""
    return np.array(list(product(*(every_row(given, size, fair) for given in REST[:n]))))


def p_values(n, size, response_model, *, fair=False, statistic=None):
    """p-value of each table that the group can be, as often as it can be it, against all of them."""
    drawn, truth = every_table(n, size, fair), every_table(n, size)
    columns = np.arange(size)

    def given_others(some):
        return lambda rng, m: drawn if m == len(drawn) else drawn[rng.integers(len(drawn), size=m)]

    found = {}
    for table in np.unique(truth, axis=0):
        tests = GroupTests(
            given_others,
            np.column_stack([table, REST[:n]]),
            Y[:n],
            "number",
            np.zeros(size + 1, bool),
            response_model,
            None,
            seed=np.random.SeedSequence(3),
            cells=10**7,
        )
        found[table.tobytes()] = tests.test(columns, fixed_looks(len(drawn))).p_value
    return np.array([found[table.tobytes()] for table in truth])


def exceeds_uniform(p):
    """Whether P(p <= a) > a for some a, over equally probable outcomes."""
    p = np.sort(p)
    return bool((np.arange(1, len(p) + 1) / len(p) > p + 1e-9).any())


@pytest.mark.parametrize("response_model", [DummyRegressor(), LinearRegression(), LASSO])
@pytest.mark.parametrize(("n", "size"), [(4, 1), (3, 2)])
def test_p_values_are_super_uniform_exactly(n, size, response_model):
    p = p_values(n, size, response_model)
    assert not exceeds_uniform(p)
    assert len(np.unique(p)) > 3  # and they do tell tables apart


@pytest.mark.parametrize(("n", "size"), [(4, 1), (3, 2)])
def test_draws_that_forget_the_other_columns_are_seen_exactly(n, size):
    assert exceeds_uniform(p_values(n, size, DummyRegressor(), fair=True))


@pytest.mark.parametrize(("n", "size"), [(4, 1), (3, 2)])
def test_a_statistic_that_sees_the_observed_table_is_seen_exactly(n, size, monkeypatch):
    """Weights turned so that the observed table has a large covariance with them."""
    test = GroupTests.test

    def peeking(self, columns, looks):
        distilled = self.response_without(columns).distil(self.without(columns))
        seen = self.X[:, columns].sum(axis=1)
        distilled.weights[:, 0] = seen - seen.mean() + 0.1 * distilled.weights[:, 0]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module.Response, "distil", lambda response, rest: distilled)
            return test(self, columns, looks)

    monkeypatch.setattr(GroupTests, "test", peeking)
    assert exceeds_uniform(p_values(n, size, DummyRegressor()))


# ---- p-values that stop early ---------------------------------------------------------------------------------------

LOOKS = {
    "one look": fixed_looks(6),
    "surely small": Looks((3, 6), (0, -1), (4, 0)),
    "surely large": Looks((2, 6), (-1, -1), (2, 0)),
    "both, three looks": Looks((2, 4, 6), (-1, 0, 2), (2, 3, 3)),
    "every draw": Looks((1, 2, 3, 4, 5, 6), (-1, -1, 0, 0, 1, 1), (2, 2, 2, 3, 3, 3)),
    "all end at once": Looks((2, 6), (2, 2), (3, 3)),
}


def feed(values):
    """Hand out the values in order, as many as are asked for."""
    left = list(values)

    def draw(m):
        return np.array([left.pop(0) for _ in range(m)], dtype=float)

    return draw


@pytest.mark.parametrize("name", LOOKS)
def test_p_values_of_exchangeable_values_are_super_uniform_exactly(name):
    def p_value(v):
        return sequential_p_value(v[0], feed(v[1:]), LOOKS[name]).p_value

    every = np.sort([p_value(v) for v in permutations(range(7))])
    assert not exceeds_uniform(every)
    reached = np.searchsorted(every, every + 1e-9, side="right") / len(every)
    np.testing.assert_allclose(reached, every, atol=1e-9)  # P(p <= a) = a at every value of p: nothing is lost
    assert not exceeds_uniform([p_value(v) for v in product((0, 1, 2), repeat=7)])  # with ties


def test_faults_are_seen():
    looks = LOOKS["both, three looks"]

    def without_itself(v):  # a p-value that can be 0
        return np.mean([value >= v[0] for value in v[1:]])

    def as_if_fixed(v):  # the looks are not paid for
        found = sequential_p_value(v[0], feed(v[1:]), looks)
        count = sum(value >= v[0] for value in v[1 : 1 + found.n_draws])
        return (1 + count) / (1 + found.n_draws)

    for fault in (without_itself, as_if_fixed):
        assert exceeds_uniform([fault(v) for v in permutations(range(7))])


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_batches_do_not_change_the_answer(batch, rng):
    looks = plan_looks((0.1, 0.2), 40)
    for _ in range(30):
        draws, observed = rng.standard_normal(looks.n[-1]), rng.standard_normal() + 1
        answer = sequential_p_value(observed, feed(draws), looks, batch=batch)
        assert answer[:2] == sequential_p_value(observed, feed(draws), looks)[:2]


@pytest.mark.parametrize("levels", [(0.01, 0.01), (0.002, 0.1), (0.1, 0.1)])
def test_looks_end_early_where_the_answer_is_clear_and_p_is_near_the_share_of_draws(levels, rng):
    """300 statistics. p is on the wrong side of a level that is three times or a third of it with probability 1e-6.

    Where no draw is as large p is 1 / (1 + n) for the first n of 7 / level or more: a third of the share at the least.
    """
    looks = plan_looks(levels, 400)
    assert looks.n[-1] == np.ceil(400 / levels[0])
    for share in (levels[0] / 30, levels[0] / 3, levels[1] * 3, 0.5):
        for _ in range(25):
            found = sequential_p_value(0.0, lambda m, p=share: np.where(rng.random(m) < p, 1.0, -1.0), looks)
            assert (found.p_value <= levels[0]) == (share < levels[0])
            assert found.n_draws < looks.n[-1] or levels[0] < levels[1]
            assert found.p_value > share / 6
    assert sequential_p_value(1.0, np.zeros, looks).n_draws <= 16 / levels[0]


def test_a_p_value_at_the_level_has_a_twentieth_of_it_as_standard_error(rng):
    """60 p-values of a share that equals the level: the standard error of their deviation is 9 % of it."""
    looks = plan_looks((0.02, 0.02), 400)
    found = [sequential_p_value(0.0, lambda m: np.where(rng.random(m) < 0.02, 1.0, -1.0), looks)[0] for _ in range(60)]
    assert np.std(np.array(found) / 0.02) < 0.05 * (1 + 5 * 0.09)


def test_the_probability_of_all_ends_is_one():
    looks = plan_looks((0.05, 0.05), 100)
    last = len(looks.n) - 1
    assert probability(looks, last, looks.n[-1]) == pytest.approx(
        1 - sum(_ends_high(looks, i) for i in range(last)), abs=1e-9
    )


def _ends_high(looks, i):
    """P(reach look i, and end there with a high count): the p-value of all counts less that of counts below."""
    return probability(looks, i, looks.n[i]) - probability(looks, i, looks.high[i] - 1)


def test_the_score_is_in_standard_deviations_of_the_draws_and_has_no_part_in_the_p_value():
    draws = [0.0, 2.0, 0.0, 2.0]
    for observed, score in ((3.0, 2.0), (11.0, 10.0)):
        answer = sequential_p_value(observed, feed(draws), fixed_looks(4))
        assert answer.p_value == 0.2 and answer.score == pytest.approx(score)
    assert sequential_p_value(3.0, np.zeros, fixed_looks(4)).score == 0
