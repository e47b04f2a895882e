"""p-values of null features under every family that can be tested with, P^X being fitted to the table as a user has it.

Exact conditionals give p-values that are exactly valid (see ``tests/exact``). A fitted P^X is near
the truth only, so this is a measurement: one null feature a table, which hangs together with a feature that matters,
and the share of p-values below any level, as far as chance allows. There is no model of y at all, so that everything
rests on P^X: the null feature has a good deal to do with y until the others are known. A family that is listed is
tested: without tables of its kind here, the first test fails. Permuted columns, which forget the others, are the
planted fault.
"""

import warnings

import numpy as np
import pytest
from scipy.linalg import toeplitz
from sklearn.dummy import DummyRegressor

from knockoffs import KnockoffSelector
from knockoffs.conditional_tests import tests as conditional
from knockoffs.conditional_tests.choice import CONDITIONAL_FAMILIES

N_TABLES, N_FAULTY, N_ROWS, D, NULL, PARTNER = 40, 12, 300, 5, 2, 3
ROOT = np.linalg.cholesky(toeplitz(0.7 ** np.arange(D)))


def correlated(rng):
    return rng.normal(size=(N_ROWS, D)) @ ROOT.T


def two_components(rng):
    K = rng.random(N_ROWS) < 0.4
    other = rng.normal(size=(N_ROWS, D)) @ np.linalg.cholesky(toeplitz((-0.6) ** np.arange(D))).T
    return np.where(K[:, None], correlated(rng), other + 2.0)


def mixed_columns(rng):
    Z = correlated(rng)
    return np.column_stack([np.exp(Z[:, 0]), Z[:, 1], np.floor(np.exp(1 + 0.5 * Z[:, 2])), Z[:, 3], Z[:, 4] > 0.3])


def two_classes(rng):
    K = rng.random(N_ROWS) < 0.5
    return (rng.random((N_ROWS, D)) < np.where(K[:, None], 0.85, 0.2)).astype(float)


def chain(rng, stay=0.9):
    H = np.empty((N_ROWS, D), dtype=bool)
    H[:, 0] = rng.random(N_ROWS) < 0.5
    for t in range(1, D):
        H[:, t] = H[:, t - 1] ^ (rng.random(N_ROWS) > stay)
    return H


def hidden_chain(rng):
    return (rng.random((N_ROWS, D)) < np.where(chain(rng), 0.9, 0.1)).astype(float)


def binary_chain(rng):
    return chain(rng, 0.8).astype(float)


TABLES = {
    "auto": mixed_columns,
    "latent": mixed_columns,
    "gaussian": correlated,
    "mixture": two_components,
    "naive_bayes": two_classes,
    "hmm": hidden_chain,
    "network": binary_chain,
}


def test_every_family_has_its_tables():
    assert set(TABLES) == set(CONDITIONAL_FAMILIES)


def null_p_values(family, n_tables):
    """p-value of the null feature of each table."""
    found = []
    for seed in range(n_tables):
        rng = np.random.default_rng([seed, 7])
        X = TABLES[family](rng)
        y = X[:, PARTNER] / X[:, PARTNER].std() + 0.5 * X[:, 0] / X[:, 0].std() + rng.normal(size=N_ROWS)
        selector = KnockoffSelector(
            0.2,
            feature_model=family,
            estimator=DummyRegressor(),
            method="conditional_test",
            resolution="columns",
            verdict=False,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(selector.fit(X, y).p_values_[NULL])
    return np.array(found)


def far(n_tables):
    """Excess over the uniform distribution that chance reaches once in 10^6 times (Massart)."""
    return np.sqrt(np.log(1e6) / (2 * n_tables))


def largest_excess(p):
    """Sup over a of the share of p-values <= a, less a."""
    p = np.sort(p)
    return (np.arange(1, len(p) + 1) / len(p) - p).max()


@pytest.mark.parametrize("family", CONDITIONAL_FAMILIES)
def test_null_p_values_of_a_fitted_family(family):
    p = null_p_values(family, N_TABLES)
    assert largest_excess(p) < far(N_TABLES)
    assert np.sum(p <= 0.05) <= 9  # of 40: a binomial number of mean 2 exceeds it 2 times in 10^5
    assert np.mean(p > 0.5) > 0.25  # and not all of them are small


@pytest.mark.parametrize("family", CONDITIONAL_FAMILIES)
def test_permuted_columns_are_seen(family, monkeypatch):
    def permuted(model, X, rng):
        return lambda columns: lambda rng, n_draws: rng.permuted(np.tile(X[:, columns], (n_draws, 1, 1)), axis=1)

    monkeypatch.setattr(conditional, "sampling_given_others", permuted)
    assert largest_excess(null_p_values(family, N_FAULTY)) > far(N_FAULTY)
