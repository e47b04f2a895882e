from itertools import permutations, product

import numpy as np
import pytest

from knockoffs.conditional_tests.sequential import sequential_p_value


def feed(values):
    """Hand out the values in order, as many as are asked for."""
    left = list(values)

    def draw(m):
        return np.array([left.pop(0) for _ in range(m)], dtype=float)

    return draw


def by_definition(observed, draws, enough):
    reached = 0
    for i, value in enumerate(draws, start=1):
        reached += value >= observed
        if reached == enough:
            return enough / i, i
    return (1 + reached) / (1 + len(draws)), len(draws)


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_batches_do_not_change_the_answer(batch, rng):
    for _ in range(300):
        draws, observed, enough = rng.integers(0, 5, size=12), rng.integers(0, 6), int(rng.integers(1, 6))
        answer = sequential_p_value(observed, feed(draws), max_draws=12, enough=enough, batch=batch)
        assert answer[:2] == by_definition(observed, draws, enough)


def exceeds_uniform(p):
    """Whether P(p <= a) > a for some a, over equally probable outcomes."""
    p = np.sort(p)
    return bool((np.arange(1, len(p) + 1) / len(p) > p + 1e-12).any())


@pytest.mark.parametrize("enough", [1, 2, 3, 10])
@pytest.mark.parametrize("sure", [None, 2, 3, 6])
def test_p_values_of_exchangeable_values_are_super_uniform_exactly(enough, sure):
    def p_value(v):
        return sequential_p_value(v[0], feed(v[1:]), max_draws=6, enough=enough, sure=sure)[0]

    every = np.sort([p_value(v) for v in permutations(range(7))])
    assert not exceeds_uniform(every)
    reached = np.searchsorted(every, every + 1e-12, side="right") / len(every)
    np.testing.assert_allclose(reached, every)  # P(p <= a) = a at every value that p takes: nothing is lost
    assert not exceeds_uniform([p_value(v) for v in product((0, 1, 2), repeat=7)])


def test_faults_are_seen():
    def without_itself(v):  # a p-value that can be 0
        return np.mean([value >= v[0] for value in v[1:]])

    def stopped_when_small(v):  # stop as soon as it looks good
        return min(by_definition(v[0], v[1 : 1 + i], 99)[0] for i in range(2, 7))

    def sure_for_nothing(v):  # surely small after three draws, and otherwise as if it had not been looked at
        return min(by_definition(v[0], v[1:4], 99)[0], by_definition(v[0], v[1:], 99)[0])

    for fault in (without_itself, stopped_when_small, sure_for_nothing):
        assert exceeds_uniform([fault(v) for v in permutations(range(7))])


def test_the_score_is_in_standard_deviations_of_the_draws_and_has_no_part_in_the_p_value():
    draws = [0.0, 2.0, 0.0, 2.0]
    for observed, score in ((3.0, 2.0), (11.0, 10.0)):
        answer = sequential_p_value(observed, feed(draws), max_draws=4)
        assert answer.p_value == 0.2 and answer.score == pytest.approx(score)
    assert sequential_p_value(3.0, np.zeros, max_draws=4).score == 0
