import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.sampling.categorical import normalise_log_weights, sample_categorical, sample_weights


def test_frequencies_match_the_weights():
    # 5 standard errors on each of 5 classes: false alarm about 3e-6; a shift of 0.5 % of a probability shows.
    rng = np.random.default_rng(0)
    p = np.array([0.0, 0.5, 0.0, 0.2, 0.3, 0.0])
    with np.errstate(divide="ignore"):
        log_weights = np.log(p) - 5000.0
    n = 200_000
    draws = sample_categorical(np.tile(log_weights, (n, 1)), rng)
    share = np.bincount(draws, minlength=6) / n
    assert (np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / n)).all()


def test_the_ends_of_the_unit_interval():
    class Ends:
        def random(self, n):
            return np.array([0.0, 1.0 - 2.0**-53])

    assert sample_weights(np.array([[0.0, 1.0, 3.0, 0.0]] * 2), Ends()).tolist() == [1, 2]
    for total in np.random.default_rng(0).random(1000):
        assert sample_weights(np.array([[total, 0.0]] * 2), Ends()).tolist() == [0, 0]


def test_normalised_posterior_and_evidence():
    log_weights = np.log(np.array([[0.1, 0.3], [0.2, 0.6]])) - 900
    log_posterior, log_evidence = normalise_log_weights(log_weights)
    assert np.exp(log_posterior) == pytest.approx(np.array([[0.25, 0.75], [0.25, 0.75]]))
    assert log_evidence == pytest.approx(np.log([0.4, 0.8]) - 900)


@pytest.mark.parametrize("bad", [-np.inf, np.nan])
def test_impossible_rows_are_named(bad):
    log_weights = np.zeros((4, 2))
    log_weights[2] = bad
    with pytest.raises(InputError, match="rows '2' are impossible"):
        sample_categorical(log_weights, np.random.default_rng(0))
