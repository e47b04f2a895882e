"""Linear models: optimality conditions first, then scikit-learn as the oracle, then invariances."""

import tracemalloc
import warnings
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LassoCV, LinearRegression, LogisticRegression
from sklearn.utils.estimator_checks import estimator_checks_generator
from tests.refusals import refuses

from knockoffs.response.l1_path import assign_folds, make_design
from knockoffs.response.linear import (
    LassoPathCV,
    LogisticPathCV,
    PoissonPathCV,
    sums_are_cheaper,
)
from knockoffs.response.plain import PlainLinear, PlainLogistic

L1_MODELS = [LassoPathCV, LogisticPathCV, PoissonPathCV]
KINDS = {
    "lasso": LassoPathCV,
    "binary": LogisticPathCV,
    "multiclass": LogisticPathCV,
    "poisson": PoissonPathCV,
    "linear": PlainLinear,
    "logistic": PlainLogistic,
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def numeric(n=200, d=30, seed=0, noise=1.0, rho=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    X = X * rng.uniform(0.1, 10, d) + rng.normal(0, 5, d)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    y = Z[:, : min(5, d)] @ np.array([1, -1, 0.5, 0.7, -0.3])[: min(5, d)] + noise * rng.standard_normal(n)
    return X, y


def classes(n_classes, n=300, d=20, seed=0):
    rng = np.random.default_rng(seed)
    X, _ = numeric(n, d, seed)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    utility = 1.5 * Z[:, :n_classes] + rng.gumbel(size=(n, n_classes))
    return X, np.array(["delta", "alpha", "charlie", "bravo"])[utility.argmax(axis=1)]


def table_for(kind, n, d):
    """Rows and a response that a model of this kind is fitted to."""
    if kind == "multiclass":
        return classes(3, n=n, d=d)
    X, y = numeric(n, d)
    if kind == "poisson":
        return X, np.random.default_rng(1).poisson(np.exp(y / 2))
    return X, y > 0 if kind in ("binary", "logistic") else y


def model_for(kind, **options):
    """Unfitted model; options are those of paths."""
    return KINDS[kind](**options) if hasattr(KINDS[kind](), "folds") else KINDS[kind]()


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def violation(gradient, coef, alpha):
    """Largest violation of the optimality conditions: |g| <= alpha, and g = alpha sign(coef) where coef is not 0."""
    return max(
        np.maximum(np.abs(gradient) - alpha, 0).max(),
        np.abs(gradient - alpha * np.sign(coef))[coef != 0].max(initial=0),
    )


# ---- exact: optimality ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "d"), [(200, 30), (60, 200), (40, 400)])
@pytest.mark.parametrize("alpha", [0.3, 0.1, 0.03])
def test_lasso_is_optimal_to_rounding(n, d, alpha):
    X, y = numeric(n, d)
    Z, ys = standardised(X), (y - y.mean()) / y.std()
    coef = LassoPathCV(alpha=alpha).fit(X, y).coef_ * X.std(axis=0) / y.std()
    assert violation(Z.T @ (ys - Z @ coef) / n, coef, alpha) < 1e-12
    # duality gap, written out: the residual itself is dual feasible here
    r = ys - Z @ coef
    r = r * min(1, alpha / np.abs(Z.T @ r / n).max())
    primal = ((ys - Z @ coef) ** 2).sum() / (2 * n) + alpha * np.abs(coef).sum()
    dual = (ys @ ys - (ys - r) @ (ys - r)) / (2 * n)
    assert abs(primal - dual) < 1e-12


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("alpha", [0.1, 0.02, 0.004])
def test_l1_logistic_is_optimal_to_rounding(n_classes, alpha):
    X, y = classes(n_classes)
    Z = standardised(X)
    model = LogisticPathCV(alpha=alpha).fit(X, y)
    coef, P = model.coef_ * X.std(axis=0), model.predict_proba(X)
    Y = y[:, None] == model.classes_
    g = (Y - P).T @ Z / len(y)
    g0 = (Y - P).mean(axis=0)
    if n_classes == 2:
        g, g0 = g[1:], g0[1:]
    assert np.abs(g0).max() < 1e-13
    assert violation(g, coef, alpha) < 2e-11


# ---- scikit-learn as the oracle ------------------------------------------------------------------------------------


def test_cross_validation_agrees_with_scikit_learn():
    X, y = numeric(150, 40, noise=2.0)
    fold_of = assign_folds(5, 150, np.random.default_rng(3))
    ours = LassoPathCV(folds=fold_of).fit(X, y)
    walked = ours.cross_validation_
    Z, ys = standardised(X), (y - y.mean()) / y.std()
    splits = [(np.flatnonzero(fold_of != f), np.flatnonzero(fold_of == f)) for f in range(5)]
    theirs = LassoCV(alphas=walked.alphas, cv=splits, tol=1e-10, max_iter=100_000).fit(Z, ys)
    # Lasso at 1e-7 of duality gap: predictions to a few 1e-4, squared errors near their minimum much closer
    np.testing.assert_allclose(walked.losses.T, theirs.mse_path_, rtol=1e-3)
    assert ours.alpha_ == pytest.approx(theirs.alpha_)
    np.testing.assert_allclose(ours.coef_ * X.std(axis=0) / y.std(), theirs.coef_, atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_log_loss_of_the_folds_agrees_with_scikit_learn(n_classes):
    X, y = classes(n_classes, n=150, d=10)
    _, codes = np.unique(y, return_inverse=True)
    fold_of = assign_folds(3, len(y), np.random.default_rng(0), codes)
    walked = LogisticPathCV(folds=fold_of).fit(X, y).cross_validation_
    Z = standardised(X)
    for fold in range(3):
        train, test = fold_of != fold, fold_of == fold
        for i in (5, walked.best):
            C = 1 / (train.sum() * walked.alphas[i])
            theirs = LogisticRegression(l1_ratio=1, C=C, solver="saga", tol=1e-8, max_iter=100_000)
            P = theirs.fit(Z[train], y[train]).predict_proba(Z[test])
            loss = -np.log(P[np.arange(test.sum()), codes[test]]).mean()
            assert walked.losses[fold, i] == pytest.approx(loss, rel=1e-3)


def test_plain_models_agree_with_scikit_learn():
    X, y = numeric()
    np.testing.assert_allclose(PlainLinear().fit(X, y).coef_, LinearRegression().fit(X, y).coef_, rtol=1e-9)
    X, y = classes(2)
    ours = PlainLogistic(ridge=1e-9).fit(X, y)
    theirs = LogisticRegression(C=1e12, solver="newton-cholesky", tol=1e-12, max_iter=200).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-7)


# ---- invariances ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [-1.0, 1e-12, -1e-9, 1e12])
def test_units_and_sign_of_y(factor):
    X, y = numeric()
    a = LassoPathCV(random_state=0).fit(X, y)
    b = LassoPathCV(random_state=0).fit(X, factor * (y + 3))
    np.testing.assert_allclose(b.coef_ / factor, a.coef_, rtol=1e-9, atol=1e-12)
    assert b.intercept_ / factor == pytest.approx(a.intercept_ + 3, rel=1e-8)


@pytest.mark.parametrize("model", L1_MODELS)
@pytest.mark.parametrize("factor", [-1e-12, 1e12])
def test_units_of_the_columns(model, factor):
    X, y = numeric()
    y = y if model is LassoPathCV else (y > 0).astype(float)
    a, b = (model(random_state=0).fit(XX, y).coef_ for XX in (X, X * factor))
    np.testing.assert_allclose(b * factor, a, rtol=1e-8, atol=1e-11)


@every_kind
def test_no_order_of_the_columns_matters(kind):
    X, y = table_for(kind, 120, 60)
    model = model_for(kind, random_state=1)
    order = np.random.default_rng(0).permutation(60)
    coef = np.atleast_2d(clone(model).fit(X, y).coef_)
    permuted = np.atleast_2d(clone(model).fit(X[:, order], y).coef_)
    np.testing.assert_allclose(permuted, coef[:, order], atol=1e-8 * np.abs(coef).max())
    assert ((permuted != 0) == (coef[:, order] != 0)).all()


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_names_of_the_classes_do_not_matter(n_classes):
    X, y = classes(n_classes)
    names = {name: f"{'zyxw'[i]}" for i, name in enumerate(np.unique(y))}  # reverses their order
    a = LogisticPathCV(alpha=0.02).fit(X, y)
    b = LogisticPathCV(alpha=0.02).fit(X, np.array([names[v] for v in y]))
    sign = -1 if n_classes == 2 else 1
    np.testing.assert_allclose(b.coef_[::-1] * sign, a.coef_, atol=1e-9)


@pytest.mark.parametrize("y_of", [lambda y: y > 0, lambda y: np.where(y > 0, "yes", "no"), lambda y: (y > 0) + 7])
def test_labels_of_any_kind(y_of):
    X, y = numeric()
    labels = y_of(y)
    model = LogisticPathCV(alpha=0.05).fit(X, labels)
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    assert set(model.predict(X)) <= set(labels)
    np.testing.assert_allclose(model.coef_, LogisticPathCV(alpha=0.05).fit(X, y > 0).coef_)


@every_kind
def test_weights_are_repeated_rows(kind):
    X, y = table_for(kind, 80, 8)
    counts = np.random.default_rng(0).integers(0, 4, 80)
    rows = np.repeat(np.arange(80), counts)
    folds = np.arange(80) % 4
    weighted = model_for(kind, folds=folds).fit(X, y, sample_weight=counts)
    repeated = model_for(kind, folds=folds[rows]).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-7, atol=1e-9)


def test_generators_and_seeds():
    X, y = numeric(noise=4.0)
    a, b = (LassoPathCV(random_state=s).fit(X, y) for s in (5, np.random.default_rng(5)))
    assert (a.cross_validation_.losses == b.cross_validation_.losses).all()
    c = LassoPathCV(random_state=6).fit(X, y)
    assert not np.array_equal(a.cross_validation_.losses[:, 3], c.cross_validation_.losses[:, 3])


# ---- by sums over the rows -------------------------------------------------------------------------------------------


def by_rows_and_by_sums(monkeypatch, model, X, y, **more):
    found = []
    for many in (np.inf, 0):
        monkeypatch.setattr("knockoffs.response.linear.MANY_CELLS", many)
        assert sums_are_cheaper(X, y) == (many == 0)
        found.append(clone(model).fit(X, y, **more))
    return found


@pytest.mark.parametrize("case", ["plain", "weights", "folds", "alpha", "awkward"])
def test_by_sums_as_by_rows(monkeypatch, case):
    X, y = numeric(400, 20, noise=3.0)
    model = {"folds": LassoPathCV(folds=np.arange(400) % 7), "alpha": LassoPathCV(alpha=0.1)}
    if case == "awkward":
        X = np.column_stack([np.full(400, 1e6 + 0.1), X, X[:, 0], 4 - 2 * X[:, 0], 1e30 * X[:, 1]])
    more = {"sample_weight": np.random.default_rng(0).integers(0, 4, 400)} if case == "weights" else {}
    rows, sums = by_rows_and_by_sums(monkeypatch, model.get(case, LassoPathCV(random_state=0)), X, y, **more)
    scale = X.std(axis=0)
    np.testing.assert_allclose(sums.coef_ * scale, rows.coef_ * scale, atol=1e-9)
    np.testing.assert_allclose([sums.alpha_, sums.intercept_], [rows.alpha_, rows.intercept_], rtol=1e-8, atol=1e-8)
    if case != "alpha":
        np.testing.assert_allclose(sums.cross_validation_.losses, rows.cross_validation_.losses, rtol=1e-5)  # CV_TOL


def test_numbers_whose_products_are_not_exact_are_left_to_the_rows(monkeypatch):
    """The planted fault: by sums, columns of 1e-170 have no variance, and those of 1e170 an infinite one."""
    X, y = numeric(400, 20)
    for factor in (1e-170, 1e170):
        monkeypatch.setattr("knockoffs.response.linear.MANY_CELLS", 0)
        assert not sums_are_cheaper(X * factor, y) and not sums_are_cheaper(X, y * factor)
        assert (LassoPathCV(random_state=0).fit(X * factor, y).coef_[:2] != 0).all()
    with monkeypatch.context() as patch:
        patch.setattr("knockoffs.response.linear.EXACT_SIZES", (0, np.inf))
        assert not LassoPathCV(random_state=0).fit(X * 1e-170, y).coef_.any()


# ---- awkward tables ------------------------------------------------------------------------------------------------


@every_kind
def test_constant_and_repeated_columns(kind):
    X, y = table_for(kind, 120, 6)
    model = model_for(kind, random_state=1)
    awkward = np.column_stack([np.full(120, 1e6 + 0.1), X, X[:, 0], 4 - 2 * X[:, 0]])
    coef = np.atleast_2d(clone(model).fit(awkward, y).coef_)
    assert (coef[:, 0] == 0).all()
    np.testing.assert_array_equal(coef[:, 1], coef[:, 7])
    np.testing.assert_allclose(coef[:, 1], -2 * coef[:, 8], rtol=1e-9)
    if kind in ("lasso", "binary", "poisson"):  # the whole is what one column alone would have had
        alone = np.atleast_2d(clone(model).fit(X, y).coef_)
        np.testing.assert_allclose(3 * coef[:, 1], alone[:, 0], rtol=1e-8)


def test_nearly_equal_columns_still_solve():
    X, y = numeric(100, 5)
    X = np.column_stack([X, X + 1e-9 * np.random.default_rng(0).standard_normal(X.shape)])
    Z, ys = standardised(X), (y - y.mean()) / y.std()
    coef = LassoPathCV(alpha=0.05).fit(X, y).coef_ * X.std(axis=0) / y.std()
    assert violation(Z.T @ (ys - Z @ coef) / 100, coef, 0.05) < 1e-4


def test_separated_classes_stay_finite():
    X, y = numeric(60, 3)
    y = X[:, 0] > np.median(X[:, 0])
    for model in (PlainLogistic(), LogisticPathCV(random_state=0)):
        coef = model.fit(X, y).coef_ * X.std(axis=0)
        assert np.isfinite(coef).all()
        assert 1 < np.abs(coef[0, 0]) < 1000
        assert np.abs(coef[0, 0]) > 3 * np.abs(coef[0, 1:]).max()


def test_a_class_of_one_row_stays_in_training():
    X, y = classes(3, n=90, d=5)
    y[0] = "rare"
    fold_of = assign_folds(5, 90, np.random.default_rng(0), np.unique(y, return_inverse=True)[1])
    assert fold_of[0] == -1 and (fold_of[1:] >= 0).all()
    model = LogisticPathCV(random_state=0).fit(X, y)
    assert np.isfinite(model.cross_validation_.losses).all()
    assert list(model.classes_) == ["alpha", "charlie", "delta", "rare"]


def test_folds_are_stratified():
    codes = np.repeat([0, 1, 2], [50, 30, 7])
    fold_of = assign_folds(5, 87, np.random.default_rng(0), codes)
    counts = np.array([np.bincount(fold_of[codes == k], minlength=5) for k in range(3)])
    assert (np.ptp(counts, axis=1) <= 1).all()
    assert np.ptp(np.bincount(fold_of)) <= 1


def test_nothing_to_find():
    X, _ = numeric(100, 20)
    y = np.random.default_rng(1).standard_normal(100)
    assert (LassoPathCV(random_state=0).fit(X, y).coef_ != 0).sum() <= 10
    constant = LassoPathCV(random_state=0).fit(X, np.full(100, 7.0))
    assert (constant.coef_ == 0).all() and constant.intercept_ == pytest.approx(7)


def test_more_columns_than_rows():
    X, y = numeric(80, 1000, noise=0.3, rho=0.0)
    model = LassoPathCV(random_state=0).fit(X, y)
    assert (model.coef_[:4] != 0).all()
    binary = LogisticPathCV(random_state=0).fit(X, y > 0)
    assert binary.coef_[0, 0] > 0 > binary.coef_[0, 1]
    assert PlainLinear().fit(X, y).score(X, y) == pytest.approx(1)
    assert PlainLogistic().fit(X, y > 0).score(X, y > 0) == 1


# ---- as scikit-learn estimators ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [LassoPathCV(), LogisticPathCV(n_alphas=15, folds=2), PoissonPathCV(), PlainLinear(), PlainLogistic()],
    ids=repr,
)
def test_scikit_learn_checks(model):
    failed = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for estimator, check in estimator_checks_generator(model):
            try:
                check(estimator)
            except SkipTest as skip:
                assert "SCIPY_ARRAY_API is not set" in str(skip)
            except Exception as error:
                failed.append(f"{getattr(check, 'func', check).__name__}: {type(error).__name__}: {error}"[:300])
    # weights equal rows only in the same folds, which rows removed or repeated cannot be in
    excused = "check_sample_weight_equivalence" if hasattr(model, "folds") else "none"
    assert [f for f in failed if not f.startswith(excused)] == []


def test_bad_input():
    X, y = numeric()
    refuses("one class only", LogisticPathCV().fit, X, np.ones(len(y), dtype=int))
    refuses("shape \\(3,\\)", LassoPathCV().fit, X, y, sample_weight=[1, 2, 3])
    refuses("not negative", LassoPathCV().fit, X, y, sample_weight=-np.ones(len(y)))
    refuses("folds=1", LassoPathCV(folds=1).fit, X, y)


@pytest.mark.parametrize("seed", range(4))
def test_stopping_early_does_not_change_the_choice(seed, monkeypatch):
    X, y = numeric(100, 40, seed=seed, noise=2.0)
    early = LassoPathCV(random_state=0).fit(X, y)
    monkeypatch.setattr("knockoffs.response.l1_path._past_minimum", lambda *_: False)
    full = LassoPathCV(random_state=0).fit(X, y)
    assert early.cross_validation_.alphas.size < full.cross_validation_.alphas.size
    assert early.alpha_ == full.alpha_
    np.testing.assert_array_equal(early.coef_, full.coef_)


@pytest.mark.parametrize("kind", L1_MODELS)
@pytest.mark.parametrize(
    "options",
    [
        {"alpha": -1.0},
        {"alpha": np.nan},  # a lasso would leave every column out and say nothing
        {"alpha": np.inf},
        {"n_alphas": 1},
        {"n_alphas": 2.5},
        {"alpha_ratio": 0.0},
        {"alpha_ratio": 2.0},
    ],
)
def test_penalties_that_are_none_are_refused(kind, options):
    X = np.random.default_rng(0).standard_normal((20, 2))
    refuses(f"{next(iter(options))}=", kind(**options).fit, X, (X[:, 0] > 0).astype(float))
    if kind is not LassoPathCV:  # without a penalty it is another model
        refuses("alpha=0.0: use a positive number", kind(alpha=0.0).fit, X, (X[:, 0] > 0).astype(float))


@pytest.mark.parametrize("kind", [LassoPathCV, LogisticPathCV])
def test_the_penalty_has_the_smallest_loss_over_all_held_out_weight(kind):
    """Folds of unequal weight: each counts by it, so that a row counts the same wherever it was held out."""
    differs = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 5))
        y = X[:, 0] + 2 * rng.standard_normal(60)
        y = y if kind is LassoPathCV else y > 0
        folds, weights = np.repeat([0, 1, 2], [8, 12, 40]), rng.uniform(0.2, 3.0, 60)
        model = kind(folds=folds, n_alphas=40).fit(X, y, sample_weight=weights)
        total = np.bincount(folds, weights)
        mean = np.average(model.cross_validation_.losses, axis=0, weights=total)
        assert model.alpha_ == model.cross_validation_.alphas[np.argmin(mean)]
        differs += np.argmin(mean) != np.argmin(model.cross_validation_.losses.mean(axis=0))
    assert differs > 0  # else the weights of the folds were not tested


def test_copies_have_the_sign_of_the_column_that_stands_for_them():
    """Copies in other units and signs round differently, so any of them may be the first that is compared."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        a = rng.standard_normal(30)
        units = rng.choice([-1.0, 1.0], 4) * rng.uniform(0.1, 10, 4)
        X = np.column_stack([*(a[:, None] * units + rng.standard_normal(4)).T, rng.standard_normal(30)])
        design = make_design(X, None, np.zeros(30, dtype=np.intp))
        assert design.X.shape[1] == 2
        np.testing.assert_allclose((X - design.mean) / design.scale, design.X[:, design.column_of] * design.sign_of)


def test_few_rows_of_many_columns_take_little_memory():
    """Of 6 rows hundreds of columns seem to matter at first: their Gram matrices took 88 MB, of a table of 400 kB."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((6, 8000))
    y = X[:, 0] + rng.standard_normal(6)
    tracemalloc.start()
    try:
        model = LassoPathCV(random_state=0).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50e6
    Z, r = (X - X.mean(axis=0)) / X.std(axis=0), y - model.predict(X)
    gradient = np.abs(Z.T @ r) / 6 / y.std()
    assert gradient.max() <= model.alpha_ * (1 + 1e-6)
    np.testing.assert_allclose(gradient[model.coef_ != 0], model.alpha_, rtol=1e-6)
