"""Knockoffs of a known Gaussian, several draws a data set: the promises hold, and each planted mistake breaks them.

A mean is let pass up to 4 standard errors above its bound: a valid procedure at the bound fails with probability 3e-5.
The statistics are least-squares coefficients, which are quick; the selections are those of the library.
"""

import numpy as np
import pytest
from scipy.linalg import toeplitz

from knockoffs.features.gaussian import gaussian_features
from knockoffs.filter import false_discovery_proportion, knockoff_filter
from knockoffs.filter.e_values import combine_draws, e_bh, e_levels, knockoff_e_values
from knockoffs.sampling.sampler import sample_knockoffs

N_DATA, N_DRAWS, N_ROWS, D, FDR = 400, 4, 260, 60, 0.2
TRUE = np.arange(D) % 5 == 0


@pytest.fixture(scope="module")
def statistics():
    """W of every draw of every data set, shape (N_DATA, N_DRAWS, D)."""
    rng = np.random.default_rng(2)
    covariance = toeplitz(0.4 ** np.arange(D))
    network = gaussian_features(np.zeros(D), covariance).as_network()
    root = np.linalg.cholesky(covariance)

    def draw(X, y):
        b = np.abs(np.linalg.lstsq(np.hstack([X, sample_knockoffs(network, X, rng)]), y, rcond=None)[0])
        return b[:D] - b[D:]

    W = np.empty((N_DATA, N_DRAWS, D))
    for i in range(N_DATA):
        X = rng.normal(size=(N_ROWS, D)) @ root.T
        y = X @ (0.35 * TRUE) + rng.normal(size=N_ROWS)
        W[i] = [draw(X, y) for _ in range(N_DRAWS)]
    return W


def excess(values, bound):
    """Standard errors by which the mean is above the bound."""
    return (np.mean(values) - bound) / (np.std(values, ddof=1) / np.sqrt(len(values)))


def fdps(statistics, select):
    return [false_discovery_proportion(select(W), TRUE) for W in statistics]


def ratios(statistics, select):
    """FDP over stated level, 0 where nothing is selected."""
    found = [select(W) for W in statistics]
    return [false_discovery_proportion(selected, TRUE) / level if selected.any() else 0.0 for selected, level in found]


def test_fdr_at_a_fixed_level(statistics):
    values = fdps(statistics, lambda W: combine_draws(W, FDR).selected)
    assert excess(values, FDR) < 4 and np.mean([combine_draws(W, FDR).selected.any() for W in statistics]) > 0.5


def test_fdp_over_a_level_chosen_after_looking(statistics):
    def select(W):
        found = combine_draws(W, FDR, how="post_hoc", cap=1.0)
        return found.selected, found.stated

    assert excess(ratios(statistics, select), 1.0) < 4
    assert excess(ratios(statistics, lambda W: select(W[:1])), 1.0) < 4


def at_the_wrong_level(W):
    return knockoff_filter(W[0], 2 * FDR)


def negatives_not_counted(W):
    e = np.mean([D * (knockoff_e_values(w, FDR) > 0) for w in W[:1]], axis=0)
    return e_bh(e, FDR / 2)


def one_draw_used_twice(W):
    return e_bh(np.sum([knockoff_e_values(w, 2 * FDR) for w in (W[0], W[0])], axis=0), FDR)


@pytest.mark.parametrize(
    ("fault", "bound"), [(at_the_wrong_level, FDR), (negatives_not_counted, FDR / 2), (one_draw_used_twice, FDR)]
)
def test_mistakes_break_the_fdr(statistics, fault, bound):
    assert excess(fdps(statistics, fault), bound) > 4


def test_mistakes_break_the_post_hoc_promise(statistics):
    def negatives_not_counted(W):
        e = D * (knockoff_e_values(W[0], FDR, stop="no_negative") > 0)
        return e > 0, e_levels(e)[e > 0].max(initial=0.0)

    assert excess(ratios(statistics, negatives_not_counted), 1.0) > 4
