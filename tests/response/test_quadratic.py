"""The quadratic approximation: its L1 solution at the exact fit is that fit, and batches and swaps do not matter."""

import numpy as np
import pytest

from knockoffs.response.gram import Pilot, fold_grams
from knockoffs.response.gram_lasso import fit_lasso
from knockoffs.response.linear import LassoPathCV, LogisticPathCV, PoissonPathCV

n, p = 600, 8


def data(kind, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.2) * np.geomspace(0.1, 10, p) + np.arange(p)
    eta = (X - X.mean(0)) / X.std(0) @ np.where(np.arange(p) < 3, 0.6, 0.0)
    y = {
        "number": lambda: eta + rng.standard_normal(n),
        "count": lambda: rng.poisson(np.exp(eta / 2)).astype(float),
        "binary": lambda: np.where(rng.random(n) < 1 / (1 + np.exp(-eta)), "yes", "no"),
        "classes": lambda: np.array(["a", "b", "c"])[
            np.argmax(np.outer(eta, [1.0, 0.0, -1.0]) + rng.gumbel(size=(n, 3)), axis=1)
        ],
    }[kind]()
    return X, y, rng


MODELS = {"number": LassoPathCV, "count": PoissonPathCV, "binary": LogisticPathCV, "classes": LogisticPathCV}


def grams_of(pilot, X, y, fold_of, size=n, weights=None):
    added = None
    for i in range(0, len(y), size):
        rows = slice(i, i + size)
        part = fold_grams(pilot, X[rows], y[rows], fold_of[rows], 5, None if weights is None else weights[rows])
        added = part if added is None else added + part
    return added


@pytest.mark.parametrize("kind", ["count", "binary"])
def test_the_exact_fit_is_a_fixed_point(kind):
    """The L1 solution of the quadratic at the L1 solution, for the same penalty, is that solution."""
    X, y, rng = data(kind)
    model = MODELS[kind](alpha=0.03).fit(X, y)
    grams = grams_of(Pilot.of(model), X, y, rng.integers(5, size=n))
    # penalties of the fit are for responses of total variance 1 (and Poisson's for counts of mean 1)
    spread = np.sqrt(sum(sum(g.scatter[-1, -1] for g in [sum(f[1:], f[0])]) for f in grams.outputs) / n)
    scale = y.mean() if kind == "count" else 1.0
    fit = fit_lasso(grams, alpha=0.03 * scale / spread)
    np.testing.assert_allclose(fit.coef * X.std(0), np.atleast_2d(model.coef_) * X.std(0), atol=1e-8)
    np.testing.assert_allclose(fit.intercept, np.atleast_1d(model.intercept_), atol=1e-7)
    assert 0 < (fit.coef != 0).sum() < p


@pytest.mark.parametrize("kind", list(MODELS))
def test_batches_do_not_matter(kind):
    X, y, rng = data(kind)
    fold_of, weights = rng.integers(5, size=n), rng.random(n)
    pilot = Pilot.of(MODELS[kind](random_state=0).fit(X[:200], y[:200]))
    whole = fit_lasso(grams_of(pilot, X, y, fold_of, weights=weights))
    assert whole.coef.any()
    for size in (1, 50, 333):
        fit = fit_lasso(grams_of(pilot, X, y, fold_of, size, weights))
        np.testing.assert_allclose(fit.coef * X.std(0), whole.coef * X.std(0), atol=1e-10)


@pytest.mark.parametrize("kind", list(MODELS))
def test_order_of_columns_does_not_matter(kind):
    """Swapping columns, for the pilot and for the Gram, swaps the coefficients: flip-sign."""
    X, y, rng = data(kind)
    fold_of, order = rng.integers(5, size=n), rng.permutation(p)
    folds = rng.integers(5, size=200)
    found = []
    for XX in (X, X[:, order]):
        pilot = Pilot.of(MODELS[kind](folds=folds).fit(XX[:200], y[:200]))
        found.append(fit_lasso(grams_of(pilot, XX, y, fold_of)).coef)
    np.testing.assert_allclose(found[0][:, order] * X.std(0)[order], found[1] * X.std(0)[order], atol=1e-7)


@pytest.mark.parametrize("kind", ["count", "binary", "classes"])
def test_near_the_fit_to_all_rows(kind):
    """One step from a third of the rows is much nearer to the fit to all rows than where it started."""
    X, y, rng = data(kind)
    fold_of = rng.integers(5, size=n)
    start = MODELS[kind](folds=fold_of[:200]).fit(X[:200], y[:200])
    whole = MODELS[kind](folds=fold_of).fit(X, y)
    fit = fit_lasso(grams_of(Pilot.of(start), X, y, fold_of))
    after, before = (
        np.linalg.norm((np.atleast_2d(one) - np.atleast_2d(whole.coef_)) * X.std(0)) for one in (fit.coef, start.coef_)
    )
    assert after < before / (1.5 if kind == "classes" else 3)


def test_certain_rows_stay_finite():
    X, y, rng = data("binary")
    model = LogisticPathCV(alpha=0.01).fit(X, y)
    pilot = Pilot(np.atleast_2d(model.coef_) * 1e4, model.intercept_, model.classes_)
    fit = fit_lasso(grams_of(pilot, X, y, rng.integers(5, size=n)))
    assert np.isfinite(fit.coef).all()
