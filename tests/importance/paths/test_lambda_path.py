from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from tests.refusals import refuses

from knockoffs.errors import InputError
from knockoffs.importance.accuracy_drop import permuted
from knockoffs.importance.paths.follow import BlackBoxPath, path_losses
from knockoffs.importance.paths.lambda_path import lambda_path
from knockoffs.importance.paths.moves import both_halves, check_lams, move

X, X_TILDE = np.random.default_rng(2).normal(size=(2, 50, 3))
XX, XX_FAKE, Y = np.hstack([X, X_TILDE]), np.hstack([X_TILDE, X]), X[:, 0] + X[:, 1] ** 2


@pytest.fixture
def model():
    return KNeighborsRegressor(4).fit(XX, Y)


class Counting:
    """A black box that writes down the size of the tables it is asked about."""

    def __init__(self, model):
        self.model, self.sizes = model, []

    def predict(self, XX):
        self.sizes.append(XX.size * 8)
        return self.model.predict(XX)


def test_black_box_written_out(model):
    feature_of2 = both_halves(np.array([0, 1, 0]))
    lams = [0.0, 0.5, 1.0, 4.0]
    losses = path_losses(model, XX, XX_FAKE, Y, feature_of2=feature_of2).at(lams)
    assert losses.shape == (4, 4)
    for feature in range(4):
        for place, lam in enumerate(lams):
            moved = XX.copy()
            for column in np.flatnonzero(feature_of2 == feature):
                moved[:, column] += lam * (XX_FAKE[:, column] - XX[:, column])
            assert losses[feature, place] == pytest.approx(np.mean((Y - model.predict(moved)) ** 2))


def test_few_large_calls_within_the_memory(model):
    lams, expected = np.linspace(0, 10, 11), None
    for memory, most_calls in [(256e6, 1), (20 * XX.nbytes, 4), (XX.nbytes, 61), (XX.nbytes / 7, 61 * 8)]:
        counting = Counting(model)
        losses = replace(path_losses(counting, XX, XX_FAKE, Y), memory=memory).at(lams)
        expected = losses if expected is None else expected
        np.testing.assert_allclose(losses, expected, rtol=1e-12)
        assert max(counting.sizes) <= memory and len(counting.sizes) <= most_calls
        assert sum(counting.sizes) == 61 * XX.nbytes  # six features at ten lambdas, and once the unmoved table


def test_integral_is_a_trapezoid_on_the_grid(model):
    lams = np.linspace(1, 3, 9)
    path = path_losses(model, XX, XX_FAKE, Y)
    np.testing.assert_allclose(path.integral(1, 3, 9), np.trapezoid(path.at(lams), lams, axis=1))
    assert isinstance(path, BlackBoxPath)


def test_the_ends_of_a_move_are_exact():
    x, fake = np.array([0.1, 1e17]), np.array([0.3, 1.0])
    np.testing.assert_array_equal(move(x, fake, 0.0), x)
    np.testing.assert_array_equal(move(x, fake, 1.0), fake)


def test_path_of_W():
    model = LinearRegression().fit(XX, Y)
    path = lambda_path(model, X, X_TILDE, Y, rng=np.random.default_rng(0), lams=[0, 1, 2])
    assert path.W.shape == (3, 3) and path.loss == "squared_error"
    np.testing.assert_allclose(path.W[:, 0], 0.0, atol=1e-12)
    losses = path_losses(model, XX, np.hstack([X_TILDE, X]), Y).at(np.array([2.0]))[:, 0]
    np.testing.assert_allclose(path.W[:, 2], losses[:3] - losses[3:])
    labels = lambda_path(
        KNeighborsClassifier(3).fit(XX, Y > 1), X, X_TILDE, Y > 1, rng=np.random.default_rng(0), fake=permuted
    )
    assert labels.loss == "accuracy" and labels.lams[-1] == 10 and len(labels.lams) == 21


def test_input_that_cannot_be_used(model):
    refuses("give at least one lambda", check_lams, [])
    refuses("at least 0, got -1", lambda_path, model, X, X_TILDE, Y, rng=np.random.default_rng(0), lams=[0.0, -1.0])
    refuses(r"shape \(50, 6\) and its fake \(50, 5\)", path_losses, model, XX, XX_FAKE[:, 1:], Y)
    with pytest.raises(InputError, match="feature_names has 1 names"):
        lambda_path(model, X, X_TILDE, Y, rng=np.random.default_rng(0), feature_names=["a"])


def test_blocks_of_rows_keep_their_weights(model):
    """A table too large for one call is cut into rows, and every row keeps its own weight."""
    weight = np.random.default_rng(0).uniform(0, 2, len(Y))
    memories = (256e6, 8.0 * XX.shape[1] * 7)
    path = path_losses(model, XX, XX_FAKE, Y, sample_weight=weight)
    whole, cut = (replace(path, memory=memory) for memory in memories)
    np.testing.assert_allclose(cut.at([0.0, 0.5, 1.0]), whole.at([0.0, 0.5, 1.0]), rtol=1e-12)
