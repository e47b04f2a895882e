"""Sums in a fixed order: the brackets are those of the definition, whoever adds and wherever a run goes on."""

from dataclasses import dataclass

import numpy as np
import pytest

from knockoffs.streaming.tower import FAN, Part, Tower, add_up, runs


@dataclass(frozen=True)
class Sum:
    """A sum that remembers its brackets."""

    text: str

    def __add__(self, other):
        return Sum(f"({self.text}+{other.text})")


def parts(n):
    return [Sum(str(k)) for k in range(n)]


def defined(own):
    """Eight by eight, until one is left."""
    while len(own) > 1:
        own = [add_up(own[i : i + FAN]) for i in range(0, len(own), FAN)]
    return own[0]


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 72, 73, 130, 512, 513, 700])
def test_the_brackets_are_those_of_the_definition(n):
    tower = Tower()
    for one in parts(n):
        tower = tower.put(one)
    assert tower.done == n and tower.total() == defined(parts(n))


@pytest.mark.parametrize("most", [0, 1, 2])
@pytest.mark.parametrize("n", [3, 8, 20, 64, 75, 200])
def test_sums_of_workers_fit_in_wherever_a_run_goes_on(n, most):
    for done in range(0, n, 5):
        tower = Tower()
        for one in parts(done):
            tower = tower.put(one)
        for first, last, level in runs(done, n, most):
            assert first == tower.done
            tower = tower.put(defined(parts(n)[first:last]), last - first, level)
        assert tower.done == n and tower.total() == defined(parts(n))


def test_another_order_is_seen():
    """The planted fault: two runs that change places."""
    own = parts(20)
    tower = Tower()
    for first, last, level in ((8, 16, 1), (0, 8, 1), (16, 20, 1)):
        tower = tower.put(defined(own[first:last]), last - first, level)
    assert tower.total() != defined(own)


def test_parts_without_a_sum_change_nothing():
    some = Part((2.0, None), (np.array([True, False]), np.array([False, False])), np.array([1, 0]))
    none = Part((None, None), (np.array([False, False]), np.array([False, True])), np.array([0, 2]))
    for both in (some + none, none + some):
        assert both.totals == (2.0, None)
        np.testing.assert_array_equal(both.moved, [[True, False], [False, True]])
        np.testing.assert_array_equal(both.n_unknown, [1, 2])
    assert Tower().total() is None
