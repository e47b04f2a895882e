"""Several knockoffs: the filter against its definition, and its FDR by enumerating every order of null scores."""

from itertools import permutations, product

import numpy as np
import pytest
from tests.refusals import refuses

from knockoffs.filter import filter_statistics, knockoff_filter, q_values, several_statistics


def several_filter(Z, fdr, offset=1):
    return filter_statistics(several_statistics(Z), fdr, offset, len(Z) - 1)


def by_hand(Z, q, offset):
    m = len(Z) - 1
    size = np.sort(Z, axis=0)[-1] - np.median(np.sort(Z, axis=0)[:-1], axis=0)
    first = (Z[0] > Z[1:]).all(axis=0)
    for t in np.sort(size[size > 0]):
        if (offset + (~first & (size >= t)).sum()) / m <= q * (first & (size >= t)).sum():
            return first & (size >= t)
    return np.zeros(Z.shape[1], dtype=bool)


@pytest.mark.parametrize("offset", [1, 0])
@pytest.mark.parametrize("m", [1, 2, 5])
def test_against_the_definition_with_ties(m, offset):
    rng = np.random.default_rng(m)
    for _ in range(200):
        Z = rng.integers(0, 6, size=(m + 1, 12)) + 3.0 * (rng.random(12) < 0.4) * (np.arange(m + 1) == 0)[:, None]
        for q in (0.05, 0.2, 0.5):
            found = several_filter(Z, q, offset=offset)
            np.testing.assert_array_equal(found.selected, by_hand(Z, q, offset))
            np.testing.assert_array_equal(found.selected, several_statistics(Z) >= found.threshold)


def test_one_knockoff_is_the_usual_filter():
    Z = np.random.default_rng(0).standard_normal((2, 30))
    W = Z[0] - Z[1]
    np.testing.assert_allclose(several_statistics(Z), W)
    np.testing.assert_array_equal(several_filter(Z, 0.3).q_values, q_values(W))
    np.testing.assert_array_equal(several_filter(Z, 0.3).selected, knockoff_filter(W, 0.3))


def test_the_size_does_not_know_which_is_the_feature():
    scores = np.array([3.0, 1.0, 0.5, 2.0])
    W = [several_statistics(np.array(order)[:, None])[0] for order in permutations(scores)]
    assert len({abs(w) for w in W}) == 1
    assert np.mean(np.array(W) > 0) == 1 / 4


def exact_fdr(m, q, signals=(4.5, 2.0), select=several_filter):
    """E[FDP] with five nulls over all (m + 1)^5 places of their largest score, which are equally likely."""
    sizes, total = np.array([5.0, 4.0, 3.0, 2.5, 1.0]), 0.0
    for places in product(range(m + 1), repeat=5):
        Z = np.zeros((m + 1, 5 + len(signals)))
        Z[list(places), np.arange(5)] = sizes
        Z[0, 5:] = signals
        chosen = select(Z, q).selected
        total += chosen[:5].sum() / max(chosen.sum(), 1)
    return total / (m + 1) ** 5


@pytest.mark.parametrize("signals", [(), (4.5, 2.0)])
@pytest.mark.parametrize("q", [0.1, 0.2, 0.34, 0.5])
@pytest.mark.parametrize("m", [2, 3])
def test_fdr_is_held_exactly(m, q, signals):
    assert exact_fdr(m, q, signals) <= q


def test_the_check_above_sees_a_filter_that_counts_too_little():
    """Those that are not first counted half."""
    assert exact_fdr(2, 0.34, (), lambda Z, q: several_filter(Z, 2 * q)) > 0.34


def test_refusals():
    refuses(r"expected \(m \+ 1, d\)", several_filter, np.ones(3), 0.1)
    refuses("NaN", several_filter, [[np.nan], [1.0]], 0.1)
