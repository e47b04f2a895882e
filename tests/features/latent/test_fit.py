"""Fitting: parameters come back, bad columns are named, special cases are those of the other families."""

import warnings

import numpy as np
import pytest

from knockoffs.errors import ColumnsError, InputError, KnockoffWarning
from knockoffs.features.gaussian import fit_gaussian
from knockoffs.features.latent.fit import fit_latent
from knockoffs.features.latent.kinds import kinds_of
from knockoffs.features.latent.margins import Affine, Constant, Curve, Rounded, Steps
from knockoffs.features.latent.nominal import Nominal


def ar(d, r):
    return r ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))


def gaussian(rng, n, d, r=0.5):
    return rng.multivariate_normal(np.zeros(d), ar(d, r), size=n)


def test_gaussian_columns_give_the_gaussian_family(rng):
    X = 3 + 2 * gaussian(rng, 800, 6)
    model, plain = fit_latent(X, rng=rng), fit_gaussian(X)
    assert model.n_classes == 1 and all(isinstance(margin, Affine) for margin in model.margins)
    scale = np.array([margin.scale for margin in model.margins])
    (law,) = model.mixture.laws
    np.testing.assert_allclose(law.covariance * np.outer(scale, scale), plain.laws[0].covariance, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(law.D * np.outer(scale, scale), plain.laws[0].D, rtol=1e-6, atol=1e-8)


def test_more_classes_than_are_looked_for_at_first_are_found(rng):
    centres = 12 * rng.standard_normal((14, 6))
    X = centres[rng.integers(14, size=1400)] + rng.standard_normal((1400, 6))
    model = fit_latent(X, rng=np.random.default_rng(0))
    assert model.n_classes == 14
    assert min(model.criterion, key=model.criterion.__getitem__) == 14


@pytest.mark.parametrize("kind", ["binary", "count", "missing", "mixed"])
def test_latent_correlations_come_back(kind, rng):
    n = 4000
    L = gaussian(rng, n, 4, 0.6)
    X = L.copy()
    if kind == "binary":
        X = (L > [0.0, 0.5, -0.5, 1.0]).astype(float)
    elif kind == "count":
        X = np.floor(np.exp(L))
    elif kind == "missing":
        X[rng.random(X.shape) < 0.3] = np.nan
    else:
        X[:, 0], X[:, 1] = L[:, 0] > 0, np.floor(np.exp(L[:, 1]))
        X[rng.random(X.shape) < 0.2] = np.nan
    model = fit_latent(X, rng=rng)
    assert model.n_classes == 1
    # the standard error of a tetrachoric correlation is at most about 2 / sqrt(n) at these cuts; 5 of them
    np.testing.assert_allclose(model.mixture.laws[0].covariance, ar(4, 0.6), atol=5 * 2 / np.sqrt(n))


@pytest.mark.parametrize("cut", [0.0, 1.3])
def test_strong_correlations_of_binary_columns_come_back(cut, rng):
    """Stochastic EM forgets them slowly: it starts from tetrachoric correlations, inside the cells and settled."""
    L = gaussian(rng, 4000, 6, 0.9)
    model = fit_latent((L > cut).astype(float), rng=rng, n_classes=1)
    found = np.diagonal(model.mixture.laws[0].covariance, 1)
    assert abs(found.mean() - 0.9) < 0.03  # 5 standard errors of a mean of five tetrachoric correlations are 0.02


def test_nominal_columns_keep_their_dependence(rng):
    n = 4000
    score = rng.standard_normal(n)
    utility = rng.standard_normal((n, 3)) * 0.7 + np.outer(score, [1.0, 0.0, -1.0])
    X = np.column_stack([utility.argmax(axis=1), score, rng.standard_normal(n)]).astype(float)
    X[rng.random(n) < 0.1, 0] = np.nan
    model = fit_latent(X, rng=rng, kinds=["nominal", "continuous", "continuous"], n_classes=1)
    assert isinstance(model.margins[0], Nominal)
    drawn = model.sample(40_000, rng)
    seen = ~np.isnan(X[:, 0])
    for level in range(3):
        there, here = drawn[drawn[:, 0] == level, 1], X[seen & (X[:, 0] == level), 1]
        se = np.sqrt(there.var() / len(there) + here.var() / len(here))
        assert abs(there.mean() - here.mean()) < 5 * se + 0.05  # 0.05 for the error of stochastic EM
        assert (drawn[:, 0] == level).mean() == pytest.approx((X[seen, 0] == level).mean(), abs=0.03)


def test_classes_of_labels_and_numbers(rng):
    """Two classes that differ in a binary and two continuous columns."""
    n = 1500
    K = rng.integers(2, size=n)
    X = np.column_stack(
        [4 * K + rng.standard_normal(n), -4 * K + rng.standard_normal(n), rng.random(n) < 0.1 + 0.8 * K]
    )
    model = fit_latent(X.astype(float), rng=rng)
    assert model.n_classes >= 2  # L of the 0/1 column was completed under one class, so AIC may see a third
    drawn = model.sample(20_000, rng)
    share = drawn[drawn[:, 0] > 2, 2].mean()
    assert share == pytest.approx(X[X[:, 0] > 2, 2].mean(), abs=0.06)


def test_more_columns_than_rows(rng):
    X = gaussian(rng, 60, 100)
    X[:, ::2] = X[:, ::2] > 0
    with pytest.warns(KnockoffWarning, match="rests on 60 rows for 100 coordinates"):
        model = fit_latent(X, rng=rng)
    pair = model.as_sampler().sample(X, rng)
    assert np.isfinite(pair.X_tilde).all() and set(pair.X_tilde[:, 0]) <= {0.0, 1.0}
    assert "shrunk" in model.say()


def test_near_copies_are_named(rng):
    X = gaussian(rng, 400, 4)
    X[:, 3] = X[:, 1]
    with pytest.warns(KnockoffWarning, match="'b', 'd' nearly determine one another"):
        model = fit_latent(X, rng=rng, names=list("abcd"), n_classes=1)
    assert np.isfinite(model.as_sampler().sample(X, rng).X_tilde).all()
    counts = np.floor(np.exp(X))
    with pytest.warns(KnockoffWarning, match="nearly determine"):
        fit_latent(counts, rng=rng, n_classes=1)


def test_margins_by_kind(rng):
    n = 200
    X = np.column_stack(
        [
            rng.standard_normal(n),
            rng.poisson(4, n),
            rng.integers(5, size=n),
            rng.integers(2, size=n),
            rng.integers(4, size=n),
            np.full(n, 7.0),
            np.round(rng.standard_normal(n), 1),
        ]
    ).astype(float)
    kinds = ["continuous", "count", "ordinal", "binary", "nominal", "continuous", "continuous"]
    X[0, 5] = np.nan
    model = fit_latent(X, rng=rng, kinds=kinds, n_classes=1)
    expected = [(Affine, Curve), Steps, Steps, Steps, Nominal, Constant, (Rounded, Steps)]
    for margin, kind in zip(model.margins, expected, strict=True):
        assert isinstance(margin, kind)
    pair = model.as_sampler().sample(X, rng)
    assert (pair.X[:, 5] == 7).all() and (pair.X_tilde[:, 5] == 7).all()
    for j in (1, 2, 3, 4, 6):
        assert set(pair.X_tilde[:, j]) <= set(X[:, j])


def test_kinds_are_inferred(rng):
    X = np.column_stack([np.arange(30) % 2, np.arange(30), np.arange(30) - 3, np.arange(30) / 7, np.arange(30) % 6])
    assert kinds_of(X, None) == ("binary", "continuous", "continuous", "continuous", "ordinal")


def test_features_of_several_columns(rng):
    model = fit_latent(gaussian(rng, 300, 4), rng=rng, feature_of=[0, 0, 1, 2], n_classes=1)
    D = model.mixture.laws[0].D
    assert D[0, 1] != 0 and D[0, 2] == 0


class TestBadInput:
    def test_all_missing_column(self, rng):
        X = gaussian(rng, 50, 3)
        X[:, 1] = np.nan
        with pytest.raises(ColumnsError, match="'1' has no observed cell"):
            fit_latent(X, rng=rng)

    def test_hardly_observed_column(self, rng):
        X = gaussian(rng, 50, 3)
        X[5:, 2] = np.nan
        with pytest.raises(ColumnsError, match="'2' has fewer than 10 observed cells"):
            fit_latent(X, rng=rng)

    @pytest.mark.parametrize(
        "kinds, match",
        [
            (["binary"] * 3, "kind 'binary' was given, but 100 distinct values are in column '0'"),
            (["count"] * 3, "negative or fractional"),
            (["continuous"], "kinds has 1 words: expected 3"),
            (["ordnial"] * 3, "Did you mean 'ordinal'"),
        ],
    )
    def test_kinds_that_contradict(self, rng, kinds, match):
        with pytest.raises(InputError, match=match):
            fit_latent(gaussian(rng, 100, 3), rng=rng, kinds=kinds)

    @pytest.mark.parametrize("n_classes", [0, 2.5, []])
    def test_n_classes(self, rng, n_classes):
        with pytest.raises(InputError, match="n_classes"):
            fit_latent(gaussian(rng, 50, 3), rng=rng, n_classes=n_classes)

    def test_a_category_that_appears_once(self, rng):
        X = gaussian(rng, 200, 3)
        X[:, 0] = rng.integers(3, size=200)
        X[7, 0] = 3
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = fit_latent(X, rng=rng, kinds=["nominal", "continuous", "continuous"], n_classes=1)
        assert np.isfinite(model.as_sampler().sample(X, rng).X_tilde).all()
