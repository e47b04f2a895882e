"""The coding and the units of a column do not matter: kinds, codes, and the laws that are fitted to them."""

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.features.hmm import DiscreteEmissions, GaussianEmissions, fit_hidden_markov
from knockoffs.features.naive_bayes import fit_naive_bayes
from knockoffs.sampling.sampler import sample_knockoffs


def columns(n=300):
    """Two classes and a column of each kind: 0/1, grades 0 to 4, counts up to some 30, numbers."""
    rng = np.random.default_rng(0)
    K = rng.integers(2, size=n)
    return np.column_stack(
        [
            rng.random(n) < np.where(K, 0.8, 0.3),
            np.minimum(rng.poisson(np.where(K, 2.5, 1.0)), 4),
            rng.poisson(np.where(K, 18.0, 6.0)),
            rng.normal(np.where(K, 2.0, 0.0)),
        ]
    ).astype(float)


# new values = a + b * old, a column: 1/2 for 0/1, grades from 1, counts in tenths, Fahrenheit
RECODED = {
    "0/1 and 1/2": (0, 1.0, 1.0),
    "0/1 and -7/3": (0, -7.0, 10.0),
    "grades 1 to 5": (1, 1.0, 1.0),
    "grades in halves": (1, -3.0, 0.5),
    "counts times 12": (2, 0.0, 12.0),
    "other degrees": (3, 32.0, 1.8),
}


@pytest.mark.parametrize("name", RECODED)
def test_naive_bayes_does_not_mind_coding_and_units(name):
    """The same classes, the knockoffs recoded alike to the last bit, and none outside the column's own values."""
    j, a, b = RECODED[name]
    X = columns()
    recoded = X.copy()
    recoded[:, j] = a + b * X[:, j]
    laws = [fit_naive_bayes(table, rng=np.random.default_rng(1), n_classes=2, n_starts=2) for table in (X, recoded)]
    assert [type(group) for group in laws[0].children] == [type(group) for group in laws[1].children]
    np.testing.assert_allclose(laws[1].weights, laws[0].weights, rtol=1e-6)
    draws = [
        sample_knockoffs(law.as_network(), table, np.random.default_rng(2))
        for law, table in zip(laws, (X, recoded), strict=True)
    ]
    np.testing.assert_allclose(draws[1][:, j], a + b * draws[0][:, j], rtol=1e-6, atol=1e-6)
    if j < 2:
        assert set(draws[1][:, j]) <= set(recoded[:, j])
    if j == 2:  # a count that was seen is the number that was seen
        assert len(set(draws[1][:, j]) & set(recoded[:, j])) > 20
        near = np.abs(draws[1][:, [j]] - np.unique(recoded[:, j])).min(axis=1)
        assert ((near == 0) | (near > 0.5 * b)).all()


@pytest.mark.parametrize(
    ("a", "b"), [(1.0, 1.0), (-1.0, 1.0), (0.0, 0.1), (0.0, -1.0), (-3.0, 2.5)], ids=lambda value: f"{value:g}"
)
def test_hidden_markov_models_do_not_mind_the_names_of_symbols(a, b):
    """-1 is a symbol like any other: 0, 1, 2 and a + b times them have the same law."""
    rng = np.random.default_rng(3)
    H = np.cumsum(rng.random((200, 6)) < 0.2, axis=1) % 2
    X = (H + rng.integers(2, size=H.shape)).astype(float)
    laws = [
        fit_hidden_markov(a * use + (b if use else 1.0) * X, rng=np.random.default_rng(4), n_states=2, n_starts=1)
        for use in (False, True)
    ]
    assert all(isinstance(law.emissions, DiscreteEmissions) for law in laws)
    density = [laws[0].log_density(X), laws[1].log_density(a + b * X)]
    np.testing.assert_allclose(density[1], density[0], rtol=1e-6 if b > 0 else 0.02)
    X_tilde = sample_knockoffs(laws[1].as_network(), a + b * X, rng)
    assert set(np.unique(X_tilde)) <= set(np.unique(a + b * X))


def test_many_values_of_a_chain_are_numbers_in_any_units():
    X = np.random.default_rng(5).poisson(30, size=(100, 4)).astype(float)
    for unit in (1.0, 0.1, -3.0):
        assert isinstance(
            fit_hidden_markov(unit * X, rng=np.random.default_rng(0), n_states=1).emissions, GaussianEmissions
        )


def test_a_missing_cell_is_nan_and_nothing_else():
    rng = np.random.default_rng(6)
    X = rng.integers(-1, 2, size=(60, 4)).astype(float)
    law = fit_hidden_markov(X, rng=rng, n_states=1, n_starts=1)
    assert law.emissions.symbols.tolist() == [-1, 0, 1]
    assert (sample_knockoffs(law.as_network(), X, rng) == -1).mean() == pytest.approx(1 / 3, abs=0.15)
    X[0, 0] = np.nan
    assert np.isnan(sample_knockoffs(law.as_network(), X, rng)).sum() == 1


def test_kinds_overrule_the_values():
    X = columns()
    law = fit_naive_bayes(
        X, rng=np.random.default_rng(0), kinds=["binary", "count", "ordinal", "continuous"], n_classes=1
    )
    assert [(type(group).__name__, group.columns) for group in law.children] == [
        ("CategoricalColumn", (0,)),
        ("PoissonColumn", (1,)),
        ("CategoricalColumn", (2,)),
        ("GaussianColumn", (3,)),
    ]
    with pytest.raises(InputError, match="columns '3' are not of kind 'count': expected whole numbers"):
        fit_naive_bayes(X, rng=np.random.default_rng(0), kinds=["binary", "nominal", "count", "count"])
    with pytest.raises(InputError, match="columns '1' are not of kind 'binary': expected two values"):
        fit_naive_bayes(X, rng=np.random.default_rng(0), kinds=["binary"] * 4)
    chain = fit_hidden_markov(X[:, :2], rng=np.random.default_rng(0), n_states=1, kinds=["continuous"] * 2)
    assert isinstance(chain.emissions, GaussianEmissions)
    with pytest.raises(InputError, match="columns '0' hold labels and columns '1' continuous numbers"):
        fit_hidden_markov(X[:, :2], rng=np.random.default_rng(0), kinds=["nominal", "continuous"])
    numbers = fit_hidden_markov(X[:, 2:], rng=np.random.default_rng(0), n_states=1, kinds=["ordinal", "continuous"])
    assert isinstance(numbers.emissions, GaussianEmissions)
    with pytest.raises(InputError, match="kinds='colour' is not known"):
        fit_hidden_markov(X[:, :2], rng=np.random.default_rng(0), kinds=["nominal", "colour"])


def test_a_constant_column_is_its_own_knockoff():
    X = np.column_stack([columns()[:, 3], np.full(300, 3.0)])
    law = fit_naive_bayes(X, rng=np.random.default_rng(0), n_classes=1)
    assert (sample_knockoffs(law.as_network(), X, np.random.default_rng(1))[:, 1] == 3.0).all()
