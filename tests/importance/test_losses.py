import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, mean_poisson_deviance
from sklearn.svm import LinearSVC
from tests.refusals import refuses

from knockoffs.errors import InputError
from knockoffs.importance.losses import LOSSES, Loss, class_codes, resolve_loss


@pytest.fixture
def table():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4))
    y = np.array(["blue", "green", "red"])[np.argmax(X[:, :3] + rng.normal(size=(60, 3)), axis=1)]
    return X, y


def test_losses_of_classes_agree_with_scikit_learn(table):
    X, y = table
    model = LogisticRegression().fit(X, y)
    P = model.predict_proba(X)
    assert LOSSES["accuracy"](y, model.predict(X)).mean() == pytest.approx(1 - model.score(X, y))
    assert LOSSES["log_loss"](y, P, model.classes_).mean() == pytest.approx(log_loss(y, P))
    expected = brier_score_loss(y, P, labels=model.classes_, scale_by_half=False)
    assert LOSSES["brier"](y, P, model.classes_).mean() == pytest.approx(expected)


def test_log_loss_is_bounded():
    P = np.array([[1.0, 0.0]])
    np.testing.assert_allclose(LOSSES["log_loss"](np.array([1]), P, np.array([0, 1])), 34.538776394910684)


def test_losses_of_numbers():
    y, prediction = np.array([1.0, 2.0]), np.array([3.0, 1.5])
    np.testing.assert_array_equal(LOSSES["squared_error"](y, prediction), [4.0, 0.25])


def test_poisson_deviance():
    rng = np.random.default_rng(0)
    y, mean = rng.poisson(2.0, 200), rng.uniform(0.1, 5, 200)
    losses = LOSSES["poisson_deviance"](y, mean)
    assert losses.mean() == pytest.approx(mean_poisson_deviance(y, mean))
    assert (losses >= 0).all()
    np.testing.assert_array_equal(LOSSES["poisson_deviance"](y, y), 2e-15 * (y == 0))
    zero = LOSSES["poisson_deviance"](np.array([0, 3]), np.array([-1.0, -1.0]))  # a mean that a count cannot have
    np.testing.assert_allclose(zero, [2e-15, 6 * np.log(3e15) - 6])
    refuses("is for counts, and y holds -2", LOSSES["poisson_deviance"], np.array([1, -2]), np.ones(2))


def test_any_function_is_a_loss(table):
    X, y = table
    model = LinearRegression().fit(X, X[:, 0])

    def cubic(y, prediction):
        return np.abs(y - prediction) ** 3

    loss = resolve_loss(cubic, model)
    assert isinstance(loss, Loss) and loss.name == "cubic"
    np.testing.assert_array_equal(loss(np.array([2.0]), np.array([1.0])), [1.0])
    with pytest.raises(InputError, match=r"gave shape \(\) for 60 rows: it must give one loss a row"):
        resolve_loss(lambda y, prediction: 1.0, model)(X[:, 0], X[:, 0])


def test_classes_never_seen_are_named():
    refuses("not fitted on: 'c', 'd'; it knows 'a', 'b'", class_codes, ["a", "c", "d"], ["a", "b"])
    np.testing.assert_array_equal(class_codes([2, 5, 2], [5, 2]), [1, 0, 1])


def test_losses_that_do_not_fit(table):
    X, y = table
    classifier, regressor = LogisticRegression().fit(X, y), LinearRegression().fit(X, X[:, 0])
    refuses("loss='log_los' is not known. Did you mean 'log_loss'", resolve_loss, "log_los", classifier)
    with pytest.raises(InputError, match="LinearRegression predicts numbers. Use 'squared_error', 'poisson_deviance'"):
        resolve_loss("accuracy", regressor)
    refuses("LogisticRegression predicts classes. Use 'accuracy'", resolve_loss, "squared_error", classifier)
    refuses("neither a name", resolve_loss, 3, classifier)
    refuses("LinearSVC has no predict_proba.*use loss='accuracy', or", resolve_loss, "log_loss", LinearSVC().fit(X, y))


def test_a_model_without_any_method():
    class Mute:
        classes_ = np.array([0, 1])

    refuses("Mute has no predict, .*No accuracy-drop score works without it", resolve_loss, "accuracy", Mute())
