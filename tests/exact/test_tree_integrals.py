"""Tree ensembles: the exact path against brute-force prediction at many lambdas, and its integral against a sum."""

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from knockoffs.errors import InputError
from knockoffs.importance.paths.follow import BlackBoxPath, path_losses
from knockoffs.importance.paths.tree import TreePath
from knockoffs.response.tree_arrays import has_trees, single_precision_at_most, single_precision_below, tree_arrays


def xgboost(name, **options):
    module = pytest.importorskip("xgboost")
    return getattr(module, name)(n_estimators=8, max_depth=4, n_jobs=1, **options)


def lightgbm(name, **options):
    module = pytest.importorskip("lightgbm")
    return getattr(module, name)(n_estimators=8, num_leaves=12, min_child_samples=5, n_jobs=1, verbose=-1, **options)


CLASSIFIERS = {
    "forest": lambda: RandomForestClassifier(15, random_state=0),
    "shallow forest": lambda: RandomForestClassifier(15, max_depth=4, min_samples_leaf=3, random_state=0),
    "extra trees": lambda: ExtraTreesClassifier(15, min_samples_leaf=2, random_state=0),
    "one tree": lambda: DecisionTreeClassifier(max_depth=6, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=8, max_depth=3, random_state=0),
    "boosting from zero": lambda: GradientBoostingClassifier(n_estimators=8, init="zero", random_state=0),
    "histogram boosting": lambda: HistGradientBoostingClassifier(max_iter=8, max_leaf_nodes=8, random_state=0),
    "xgboost": lambda: xgboost("XGBClassifier"),
    "lightgbm": lambda: lightgbm("LGBMClassifier"),
}
REGRESSORS = {
    "forest": lambda: RandomForestRegressor(15, random_state=0),
    "extra trees": lambda: ExtraTreesRegressor(15, random_state=0),
    "boosting": lambda: GradientBoostingRegressor(n_estimators=8, random_state=0),
    "boosting of absolute errors": lambda: GradientBoostingRegressor(loss="absolute_error", n_estimators=8),
    "histogram boosting": lambda: HistGradientBoostingRegressor(max_iter=8, min_samples_leaf=5, random_state=0),
    "xgboost": lambda: xgboost("XGBRegressor"),
    "xgboost forest": lambda: xgboost("XGBRFRegressor"),
    "lightgbm": lambda: lightgbm("LGBMRegressor"),
}
FEATURE_OF2 = np.array([0, 1, 2, 2, 3, 4, 5, 6, 7, 7, 8, 9])  # the third feature owns two columns


def tables(n=120, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X, X_tilde = rng.normal(size=(2, n, 6))
    X[:, 4], X_tilde[:, 4] = rng.integers(0, 3, size=(2, n))  # a column of integers
    signal = X[:, 0] * X[:, 1] + X[:, 2] + X[:, 4] + 0.5 * rng.normal(size=n)
    labels = np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))
    return np.hstack([X, X_tilde]), np.hstack([X_tilde, X]), signal, labels


def random_lams(rng):
    return np.concatenate([[0.0, 1.0], rng.uniform(0, 10, size=12)])


class TiesKept:
    """A forest that sees ties as ties: leaf shares like 1/3 add up differently in another order, by rounding."""

    def __init__(self, forest):
        self.forest, self.classes_ = forest, forest.classes_
        self.predict_proba = forest.predict_proba

    def predict(self, XX):
        return self.classes_[np.argmax(np.round(self.forest.predict_proba(XX), 9), axis=1)]


def agrees(model, XX, XX_fake, y, loss, tolerance):
    rng = np.random.default_rng(1)
    lams, weight = random_lams(rng), rng.uniform(0.5, 2.0, size=len(y))
    path = path_losses(model, XX, XX_fake, y, loss, feature_of2=FEATURE_OF2, sample_weight=weight)
    assert isinstance(path, TreePath)
    plain = TiesKept(model) if getattr(model, "min_samples_leaf", 1) > 1 and loss == "accuracy" else model
    exact, brute = path.at(lams), BlackBoxPath(plain, path.moves, path.loss).at(lams)
    np.testing.assert_allclose(exact, brute, rtol=0, atol=tolerance)
    assert np.ptp(exact, axis=1).max() > 0.01  # the moves matter
    assert path.unmoved() == pytest.approx(brute[0, 0], abs=tolerance)
    # the integral is the sum over the pieces between breakpoints that a fine grid can see
    fine = np.linspace(0.5, 3.0, 2001)
    middle = (fine[1:] + fine[:-1]) / 2
    area = path.at(middle).sum(axis=1) * (fine[1] - fine[0])
    # a jump within a cell costs at most a cell times its height; there are about as many as thresholds
    np.testing.assert_allclose(path.integral(0.5, 3.0, 2), area, rtol=2e-3, atol=2e-3 * np.ptp(exact))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["accuracy", "log_loss", "brier"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_against_brute_force(name, loss, n_classes):
    XX, XX_fake, _, labels = tables(n_classes=n_classes)
    y = labels if name == "xgboost" else np.array(["a", "b", "c"])[labels]
    model = CLASSIFIERS[name]().fit(XX, y)
    # XGBoost adds its leaves in single precision, and so does its softmax
    agrees(model, XX, XX_fake, y, loss, 2e-6 if name == "xgboost" else 1e-10)


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_against_brute_force(name):
    XX, XX_fake, y, _ = tables()
    model = REGRESSORS[name]().fit(XX, y)
    agrees(model, XX, XX_fake, y, "squared_error", 1e-5 if "xgboost" in name else 1e-10)


COUNTERS = {
    "forest": lambda: RandomForestRegressor(15, min_samples_leaf=3, random_state=0),
    "histogram boosting": lambda: HistGradientBoostingRegressor(loss="poisson", max_iter=8, min_samples_leaf=5),
    "xgboost": lambda: xgboost("XGBRegressor", objective="count:poisson"),
    "lightgbm": lambda: lightgbm("LGBMRegressor", objective="poisson"),
}


@pytest.mark.parametrize("loss", ["poisson_deviance", "squared_error"])
@pytest.mark.parametrize("name", COUNTERS)
def test_counts_against_brute_force(name, loss):
    XX, XX_fake, signal, _ = tables()
    y = np.random.default_rng(2).poisson(np.exp(0.5 * signal))
    model = COUNTERS[name]().fit(XX, y)
    agrees(model, XX, XX_fake, y, loss, 2e-5 if name == "xgboost" else 1e-10)


def test_counts_are_not_negative():
    XX, XX_fake, signal, _ = tables()
    model = COUNTERS["histogram boosting"]().fit(XX, np.abs(signal))
    with pytest.raises(InputError, match="'poisson_deviance' is for counts, and y holds -"):
        path_losses(model, XX, XX_fake, signal, "poisson_deviance")


def jump_by_jump(model, x, fake, columns, low, high):
    """Integral of one row's prediction by bisection down to every jump: no thresholds are known here."""

    def output(lam):
        moved = x.copy()
        moved[columns] = x[columns] + lam * (fake[columns] - x[columns])
        return float(model.predict(moved[None])[0])

    def area(a, b, f_a, f_b, depth):
        if depth == 0:
            return (b - a) * (f_a + f_b) / 2
        middle = (a + b) / 2
        f_m = output(middle)
        if f_a == f_m == f_b and depth < 34:
            return (b - a) * f_a
        return area(a, middle, f_a, f_m, depth - 1) + area(middle, b, f_m, f_b, depth - 1)

    return area(low, high, output(low), output(high), 40)


def test_integral_is_exact_to_rounding():
    # one deep tree, few rows: bisection finds the jumps to 1e-12 without the kernel's help
    XX, XX_fake, y, _ = tables(n=12)
    model = DecisionTreeRegressor(max_depth=3, random_state=1).fit(XX, y)
    identity = path_losses(model, XX[:2], XX_fake[:2], y[:2] * 0, "squared_error").integral(0.0, 4.0, 21)
    expected = np.zeros(12)
    leaves = model.tree_.value[:, 0, 0]

    class Squared:
        def predict(self, rows):
            return model.predict(rows) ** 2

    for column in range(12):
        expected[column] = np.mean([jump_by_jump(Squared(), XX[i], XX_fake[i], [column], 0.0, 4.0) for i in range(2)])
    assert len(np.unique(leaves)) > 2
    np.testing.assert_allclose(identity, expected, atol=1e-9)


def test_thresholds_in_single_precision():
    rng = np.random.default_rng(0)
    thresholds = np.concatenate([rng.normal(size=200), [0.0, 1.0, -1.0]])
    singles = thresholds.astype(np.float32).astype(float)
    for t, at_most, below in zip(
        thresholds, single_precision_at_most(thresholds), single_precision_below(singles), strict=True
    ):
        nudge = 1e-10 * max(abs(t), 1e-30)
        assert np.float32(at_most - nudge) <= t < np.float32(at_most + nudge)
        assert np.float32(below - nudge) < np.float32(t) <= np.float32(below + nudge)


def test_points_at_the_breakpoints_themselves():
    # a fake that equals a threshold: x <= threshold holds there, from either side
    XX, XX_fake, y, _ = tables()
    model = HistGradientBoostingRegressor(max_iter=5, random_state=0).fit(XX, y)
    trees = tree_arrays(model, XX)
    for column in np.unique(trees.column[trees.column >= 0]):
        XX_fake[:, column] = trees.threshold[trees.column == column][0]
    path = path_losses(model, XX, XX_fake, y, "squared_error")
    brute = BlackBoxPath(model, path.moves, path.loss)
    np.testing.assert_allclose(path.at(np.array([1.0])), brute.at(np.array([1.0])), atol=1e-12)


def test_models_that_cannot_be_followed_fall_back():
    XX, XX_fake, y, labels = tables()
    start = GradientBoostingRegressor(n_estimators=3, init=RandomForestRegressor(2, random_state=0)).fit(XX, y)
    exponential = GradientBoostingClassifier(loss="exponential", n_estimators=3).fit(XX, labels)
    gamma = HistGradientBoostingRegressor(loss="gamma", max_iter=3).fit(XX, np.exp(y))
    categorical = HistGradientBoostingRegressor(max_iter=3, categorical_features=[4, 10]).fit(XX, y)
    for model, target in [(start, y), (exponential, labels), (gamma, y), (categorical, y)]:
        assert has_trees(model)
        assert isinstance(path_losses(model, XX, XX, target, None), BlackBoxPath)
    forest = RandomForestRegressor(3, random_state=0).fit(XX, y)
    assert isinstance(path_losses(forest, XX, XX_fake, y, lambda y, p: (y - p) ** 4), BlackBoxPath)
    gaps = np.where(np.arange(12) == 3, np.nan, XX)
    assert isinstance(path_losses(RandomForestRegressor(3).fit(gaps, y), gaps, gaps, y, None), BlackBoxPath)


def test_early_stopped_boosting_uses_its_best_iteration():
    XX, XX_fake, y, labels = tables()
    for module in ("xgboost", "lightgbm"):
        library = pytest.importorskip(module)
        if module == "xgboost":
            model = library.XGBClassifier(n_estimators=60, early_stopping_rounds=2, n_jobs=1)
            model.fit(XX[:80], labels[:80], eval_set=[(XX[80:], labels[80:])], verbose=False)
        else:
            model = library.LGBMClassifier(n_estimators=60, n_jobs=1, verbose=-1)
            stop = library.early_stopping(2, verbose=False)
            model.fit(XX[:80], labels[:80], eval_X=XX[80:], eval_y=labels[80:], callbacks=[stop])
        path = path_losses(model, XX, XX_fake, labels, "log_loss")
        assert isinstance(path, TreePath) and len(path.trees.roots) < 60
        np.testing.assert_allclose(
            path.at(np.array([1.5])), BlackBoxPath(model, path.moves, path.loss).at([1.5]), atol=1e-6
        )


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(2, random_state=0),
        GradientBoostingClassifier(n_estimators=2, random_state=0),
        HistGradientBoostingClassifier(max_iter=2),
    ],
)
def test_a_tie_of_two_classes_goes_where_the_library_lets_it_go(model):
    """Two trees that disagree, and boosting without a split from as many rows of both classes: ties everywhere."""
    XX, XX_fake, _, labels = tables(n_classes=2)
    if isinstance(model, RandomForestClassifier):
        model.fit(XX, labels)
    else:
        model.fit(np.zeros((40, XX.shape[1])), np.repeat(np.unique(labels), 20))
    tied = np.isclose(model.predict_proba(XX)[:, 0], 0.5)
    y = np.where(np.arange(len(XX)) % 4 == 0, *model.classes_)
    assert tied.sum() >= 5
    path = path_losses(model, XX, XX_fake, y, "accuracy")
    assert isinstance(path, TreePath)
    assert path.unmoved() == pytest.approx((model.predict(XX) != y).mean(), abs=1e-12)
    lams = np.array([0.0, 0.5, 2.0])
    np.testing.assert_allclose(path.at(lams), BlackBoxPath(model, path.moves, path.loss).at(lams), atol=1e-12)
