"""p-values of the conditional test are super-uniform, exactly: by enumeration of all tables a group can be.

Given the other columns, a column is a coin that depends on them; the probabilities are quarters, so all tables are
equally probable if each is listed as often as its probability says. The observed table runs through all of them, and
is compared with all of them. P(p <= a) <= a is then checked for every a, without chance. Planted faults: draws that
forget the other columns, and a statistic that sees the observed table.
"""

from itertools import product

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression

from knockoffs.conditional_tests import tests as module
from knockoffs.conditional_tests.sequential import fixed_looks
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
    return bool((np.arange(1, len(p) + 1) / len(p) > p + 1e-12).any())


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
