"""Grams add up over batches, and the lasso on them is the lasso on the rows."""

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.response.gram import FoldGrams, Gram, total
from knockoffs.response.gram_lasso import fit_lasso
from knockoffs.response.linear import LassoPathCV


def data(n=300, p=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.3) * np.geomspace(1e-3, 1e3, p) + np.linspace(-100, 1e6, p)
    y = (X - X.mean(0)) / X.std(0) @ np.where(np.arange(p) < 4, 1.0, 0.0) + 8 * rng.standard_normal(n) + 50
    return X, y, rng


@pytest.mark.parametrize("weighted", [False, True])
def test_batches_add_up_to_the_whole(weighted):
    X, y, rng = data()
    w = rng.random(len(y)) if weighted else None
    whole = Gram.of(X, y, w)
    scale = np.sqrt(np.outer(np.diag(whole.scatter), np.diag(whole.scatter)))
    for size in (1, 7, 100, 299, 300):
        starts = range(0, len(y), size)
        parts = [Gram.of(X[i : i + size], y[i : i + size], None if w is None else w[i : i + size]) for i in starts]
        for order in (parts, parts[::-1]):
            added = total(order)
            assert added.rows == pytest.approx(whole.rows, rel=1e-13)
            np.testing.assert_allclose(added.mean, whole.mean, rtol=1e-12)
            np.testing.assert_allclose(added.scatter / scale, whole.scatter / scale, atol=1e-10)


def test_raw_products_would_lose_what_centred_ones_keep():
    """The planted fault: sums of x^2 less n mean^2 are wrong in the third digit for a column far from zero."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(1000) + 1e7
    gram = total([Gram.of(x[i : i + 10, None], x[i : i + 10]) for i in range(0, 1000, 10)])
    true = ((x - x.mean()) ** 2).sum()
    assert abs(gram.scatter[0, 0] / true - 1) < 1e-8
    assert abs((np.sum(x * x) - 1000 * x.mean() ** 2) / true - 1) > 1e-4


def test_empty_batches_change_nothing():
    X, y, _ = data()
    gram = Gram.of(X, y)
    for same in (gram + Gram.of(X[:0], y[:0]), Gram.empty(X.shape[1]) + gram):
        np.testing.assert_array_equal(same.scatter, gram.scatter)
        assert same.rows == gram.rows


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(300, 12), (60, 80)])
def test_the_same_lasso_as_on_rows(weighted, shape):
    X, y, rng = data(*shape)
    w = rng.random(len(y)) + 0.1 if weighted else None
    fold_of = rng.integers(5, size=len(y))
    model = LassoPathCV(folds=fold_of).fit(X, y, sample_weight=w)
    added = None
    for i in range(0, len(y), 37):
        rows = slice(i, i + 37)
        part = FoldGrams.of_numbers(X[rows], y[rows], fold_of[rows], 5, None if w is None else w[rows])
        added = part if added is None else added + part
    fit = fit_lasso(added)
    assert fit.alpha == pytest.approx(model.alpha_, rel=1e-9)
    np.testing.assert_allclose(fit.coef[0] * X.std(0), model.coef_ * X.std(0), atol=1e-9)
    assert fit.intercept[0] == pytest.approx(model.intercept_, rel=1e-8)
    np.testing.assert_allclose(fit.cross_validation.losses, model.cross_validation_.losses, rtol=1e-4)
    assert 0 < (fit.coef != 0).sum() < X.shape[1]


def test_a_constant_response_has_no_coefficients():
    X, y, rng = data()
    fit = fit_lasso(FoldGrams.of_numbers(X, np.full(len(y), 3.0), rng.integers(3, size=len(y)), 3, None))
    assert not fit.coef.any() and fit.intercept[0] == pytest.approx(3.0)


def test_infinite_products_are_refused():
    X, y, rng = data()
    grams = FoldGrams.of_numbers(X * 1e200, y, rng.integers(3, size=len(y)), 3, None)
    with pytest.raises(InputError, match="very large numbers"):
        fit_lasso(grams)
