"""Linear models: points against prediction, integrals against adaptive quadrature."""

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
)
from sklearn.svm import SVC, LinearSVC

from knockoffs.importance.paths.follow import BlackBoxPath, path_losses
from knockoffs.importance.paths.linear import LinearPath
from knockoffs.response.cox import partial_likelihood_loss

FEATURE_OF2 = np.array([0, 1, 2, 2, 3, 4, 5, 5])


def tables(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X, X_tilde = rng.normal(size=(2, n, 4))
    signal = X @ [2.0, -1.0, 0.5, 0.5] + 0.5 * rng.normal(size=n)
    return np.hstack([X, X_tilde]), np.hstack([X_tilde, X]), signal


CASES = [
    (LinearRegression(), 0, "squared_error"),
    (Ridge(), 0, "squared_error"),
    (Lasso(0.1), 0, "squared_error"),
    (LogisticRegression(C=5), 2, "accuracy"),
    (LogisticRegression(C=5), 2, "log_loss"),
    (LogisticRegression(C=5), 2, "brier"),
    (LogisticRegression(C=5), 3, "accuracy"),
    (LogisticRegression(C=5), 3, "log_loss"),
    (LogisticRegression(C=5), 3, "brier"),
    (LinearSVC(), 2, "accuracy"),
    (LinearSVC(), 3, "accuracy"),
    (RidgeClassifier(), 3, "accuracy"),
]


def test_the_deviance_of_counts_predicted_by_a_linear_model():
    XX, XX_fake, y = tables()
    y = np.random.default_rng(0).poisson(np.exp(0.3 * y))
    model = LinearRegression().fit(XX, y)
    path = path_losses(model, XX, XX_fake, y, "poisson_deviance", feature_of2=FEATURE_OF2)
    assert isinstance(path, LinearPath)
    lams = np.array([0.0, 1.0, 0.37, 5.0])
    np.testing.assert_allclose(path.at(lams), BlackBoxPath(model, path.moves, path.loss).at(lams), rtol=1e-10)


def test_a_partial_likelihood_is_followed_by_predictions():
    XX, XX_fake, y = tables()
    y = np.where(np.arange(len(y)) % 3, 1.0, -1.0) * np.exp(-y)  # signed times
    model = LinearRegression().fit(XX, y)
    path = path_losses(model, XX, XX_fake, y, "partial_likelihood", feature_of2=FEATURE_OF2)
    at_one = path.at(np.ones(1))[0, 0]
    moved = np.where(FEATURE_OF2 == 0, XX_fake, XX)
    assert at_one == pytest.approx(partial_likelihood_loss(y, model.predict(moved)).mean(), rel=1e-12)


@pytest.mark.parametrize(("model", "n_classes", "loss"), CASES)
def test_points_and_integrals(model, n_classes, loss):
    XX, XX_fake, y = tables()
    if n_classes:
        y = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))]
    model.fit(XX, y)
    weight = np.random.default_rng(2).uniform(0.5, 2, size=len(y))
    path = path_losses(model, XX, XX_fake, y, loss, feature_of2=FEATURE_OF2, sample_weight=weight)
    assert isinstance(path, LinearPath)
    brute = BlackBoxPath(model, path.moves, path.loss)
    # scikit-learn's own 1 - p loses digits far out, where this does not
    lams = np.array([0.0, 1.0, 0.37, 1.5] if loss == "log_loss" else [0.0, 1.0, 0.37, 5.0, 9.3])
    np.testing.assert_allclose(path.at(lams), brute.at(lams), rtol=1e-10, atol=1e-10)
    assert path.unmoved() == pytest.approx(brute.unmoved(), abs=1e-12)
    exact = path.integral(0.5, 4.0, 2)
    # midpoint rule of 7,000 cells: errors of 1e-8 of the second derivative, a cell for each jump of accuracy (up to
    # 40 jumps of 1/40); the bound of the log-loss cuts the order of the quadrature
    middle = np.linspace(0.5, 4.0, 7001)[:-1] + 2.5e-4
    losses = np.hstack([path.at(part) for part in np.array_split(middle, 5)])
    assert losses.std() > 0.005
    tolerance = 5e-4 if loss == "accuracy" else 1e-5 if n_classes == 3 else 1e-6
    np.testing.assert_allclose(exact, losses.mean(axis=1) * 3.5, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
def test_integrals_of_smooth_losses_to_ten_digits(loss):
    XX, XX_fake, y = tables()
    model, target = (LinearRegression(), y) if loss == "squared_error" else (LogisticRegression(), y > 0)
    path = path_losses(model.fit(XX, target), XX, XX_fake, target, loss)
    for feature in (0, 1, 6):
        area, _ = quad(lambda lam, f=feature: path.at(np.array([lam]))[f, 0], 0.5, 4.0, epsabs=0, epsrel=1e-11)
        assert path.integral(0.5, 4.0, 2)[feature] == pytest.approx(area, rel=1e-10)


def test_log_loss_far_away_and_for_small_moves():
    XX, XX_fake, y = tables()
    labels = (y > 0).astype(int)
    steep = LogisticRegression(C=1e8, max_iter=1000)
    steep.fit(XX, labels)
    steep.coef_ = steep.coef_ * 40  # scores beyond the bound of the log-loss
    path = path_losses(steep, XX, XX_fake, labels, "log_loss")
    lams = np.linspace(0, 10, 20_001)
    losses = path.at(lams)
    # the quadrature meets kinks: 3e-4 here, where the trapezoid on 21 points of a black box would miss by 1e-2
    np.testing.assert_allclose(path.integral(0.0, 10.0, 2), np.trapezoid(losses, lams, axis=1), rtol=1e-3)
    assert losses.max() > 15
    near = XX + 1e-9 * (XX_fake - XX)
    gentle = LogisticRegression().fit(XX, labels)
    still = path_losses(gentle, XX, near, labels, "log_loss")
    np.testing.assert_allclose(still.integral(0.0, 10.0, 2), 10 * still.unmoved(), rtol=1e-7)


def test_ties_go_to_the_first_class():
    model = LogisticRegression().fit([[0.0, 0.0], [1.0, 1.0]], [0, 1])
    model.coef_, model.intercept_ = np.zeros((1, 2)), np.zeros(1)
    XX = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]])
    y = np.array([0, 1, 1, 1])  # not as many of each, so that the wrong winner is seen
    path = path_losses(model, XX, XX[::-1], y, "accuracy")
    assert isinstance(path, LinearPath)
    np.testing.assert_array_equal(path.integral(0.0, 2.0, 2), [1.5, 1.5])
    np.testing.assert_array_equal(path.at(np.array([1.0]))[:, 0], [0.75, 0.75])
    model = LogisticRegression().fit([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]], [0, 1, 2])
    model.coef_, model.intercept_ = np.zeros((3, 2)), np.zeros(3)
    path = path_losses(model, XX, XX[::-1], np.array([0, 1, 2, 2]), "accuracy")
    assert isinstance(path, LinearPath)
    np.testing.assert_array_equal(path.integral(0.0, 2.0, 2), [1.5, 1.5])


def test_coefficients_that_do_not_speak_for_the_model_fall_back():
    XX, XX_fake, y = tables()
    labels = np.digitize(y, [-1, 1])
    poisson = PoissonRegressor().fit(XX, np.exp(y))
    kernel = SVC(kernel="linear").fit(XX, labels)
    for model, target in [(poisson, np.exp(y)), (kernel, labels)]:
        assert isinstance(path_losses(model, XX, XX_fake, target, None), BlackBoxPath)
    line = LinearRegression().fit(XX, y)
    assert isinstance(path_losses(line, XX, XX_fake, y, lambda y, p: (y - p) ** 4), BlackBoxPath)


def test_cross_validated_models_are_linear_too():
    XX, XX_fake, y = tables()
    model = LogisticRegressionCV(Cs=2, cv=2, l1_ratios=(0,), use_legacy_attributes=False, scoring="neg_log_loss").fit(
        XX, y > 0
    )
    assert isinstance(path_losses(model, XX, XX_fake, y > 0, "log_loss"), LinearPath)


class Cautious(LogisticRegression):
    """A linear model with a threshold of its own: its scores are those of its coefficients, its classes are not."""

    def predict(self, X):
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.9).astype(int)]


def test_a_model_with_a_threshold_of_its_own_is_asked_for_its_classes():
    XX, XX_fake, signal = tables()
    y = (signal > 0).astype(int)
    model = Cautious().fit(XX, y)
    assert (model.predict(XX) != LogisticRegression().fit(XX, y).predict(XX)).any()
    path = path_losses(model, XX, XX_fake, y, "accuracy", feature_of2=FEATURE_OF2)
    assert not isinstance(path, LinearPath)
    assert path.unmoved() == pytest.approx((model.predict(XX) != y).mean())
    assert isinstance(path_losses(model, XX, XX_fake, y, "log_loss", feature_of2=FEATURE_OF2), LinearPath)
    differ = model.predict(XX) != LogisticRegression().fit(XX, y).predict(XX)
    last = np.argsort(differ, kind="stable")  # where it shows in the last rows only
    path = path_losses(model, XX[last], XX[last], y[last], "accuracy", feature_of2=FEATURE_OF2)
    assert path.unmoved() == pytest.approx((model.predict(XX) != y).mean())
