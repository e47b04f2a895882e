"""Several environments, exactly: signs of null features are enumerated, and the FDR is at most the level."""

from itertools import product

import numpy as np
import pytest

from knockoffs.filter import filter_statistics
from knockoffs.filter.environments import join_environments


class Uniforms:
    """Numbers in the place of a generator's."""

    def __init__(self, *values):
        self.values = np.array(values)

    def random(self, d):
        return self.values[:d]


def test_all_environments_ask_for_all_signs():
    W = [np.array([3.0, -2.0, 1.0, 0.0, 4.0]), np.array([2.0, 2.0, 0.5, 5.0, -1.0])]
    for u in (0.01, 0.99):  # nothing is left to chance
        joined, odds = join_environments(W, 2, Uniforms(*[u] * 5))
        assert odds == 1 and np.sign(joined).tolist() == [1, -1, 1, 0, -1]
    mean = [np.abs(one).mean() for one in W]
    assert np.abs(joined[0]) == pytest.approx(min(3 / mean[0], 2 / mean[1]))


def test_sizes_do_not_depend_on_signs_nor_on_units():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(4, 6))
    for r in (1, 2, 3, 4):
        sizes = np.abs(join_environments(W, r, rng)[0])
        flipped = np.abs(join_environments(W * rng.choice([-1, 1], W.shape) * 10.0 ** np.arange(4)[:, None], r, rng)[0])
        np.testing.assert_allclose(sizes, flipped)
        ordered = np.sort(np.abs(W) / np.abs(W).mean(axis=1, keepdims=True), axis=0)[::-1]
        np.testing.assert_allclose(sizes, ordered[r - 1])


def chance_of_plus(E, r, null, beaten_elsewhere):
    """P(+) of a feature that is null in so many environments, the others being beaten so often; U exactly."""
    total, steps = 0.0, (np.arange(2000) + 0.5) / 2000
    for signs in product((-1.0, 1.0), repeat=null):
        others = [-1.0] * beaten_elsewhere + [1.0] * (E - null - beaten_elsewhere)
        W = np.tile(np.array([*signs, *others])[:, None], (1, len(steps)))
        total += (join_environments(W, r, Uniforms(*steps))[0] > 0).mean() / 2**null
    return total


@pytest.mark.parametrize("E", [2, 3, 4])
def test_the_sign_of_a_null_is_plus_once_in_odds_and_one(E):
    """U on a grid of 2,000: sums are exact to 1 / 2,000."""
    for r in range(1, E + 1):
        c = 1 / (1 + join_environments(np.ones((E, 1)), r, Uniforms(0.5))[1])
        assert c == (0.5 if r == E else 0.25)
        assert chance_of_plus(E, r, E - r + 1, 0) == pytest.approx(c, abs=6e-4)  # matters in r - 1, and is seen there
        for null in range(E - r + 1, E + 1):
            for beaten in range(E - null + 1):
                assert chance_of_plus(E, r, null, beaten) <= c + 6e-4
        if r > 1:  # a feature that matters in r environments is no null, and does better
            assert chance_of_plus(E, r, E - r, 0) > c + 0.1


@pytest.mark.parametrize("r", [1, 2, 3])
def test_the_false_discovery_rate_by_brute_force(r):
    """Three environments, five features, which matter in 3, 2, 1, 0 and 0: signs of nulls and U are enumerated.

    U takes the middles of 8 intervals, on which signs do not change: the chances of m coins are eighths or quarters.
    """
    matters, E = np.array([3, 2, 1, 0, 0]), 3
    null = np.arange(E)[:, None] >= matters
    rng = np.random.default_rng(r)
    for q, case in ((0.2, 1), (0.5, 0)):
        size = rng.exponential(size=(E, 5)) * np.where(null, 1.0, 1.0 + case)
        false = matters < r
        signs = np.array(list(product((-1.0, 1.0), repeat=int(null.sum()))))
        total, counted = 0.0, 0
        for some in signs:
            W = size.copy()
            W[null] *= some
            joined, odds = join_environments(W, r, Uniforms(*[0.5] * 5))
            for flip in range(8):  # of U of the features, moved together by an eighth: each is uniform
                u = ((np.arange(5) * 3 + flip) % 8 + 0.5) / 8
                joined, odds = join_environments(W, r, Uniforms(*u))
                found = filter_statistics(joined, q, 1, odds).selected
                total += (found & false).sum() / max(found.sum(), 1)
                counted += 1
        assert total / counted <= q + 1e-12
