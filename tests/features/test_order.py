"""How many components: which rows a candidate is fitted on and judged on, and which one is kept."""

from dataclasses import dataclass

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.features.order import HELD_OUT, choose_order


@dataclass
class Candidate:
    """Keeps the rows it was fitted on and judged on; the criteria are numbers of their own."""

    order: int
    rows: tuple
    drawn: float
    judged: list

    def aic(self, X):
        return {1: 3.0, 2: 1.0, 3: 2.0}[self.order]

    def bic(self, X):
        return {1: 1.0, 2: 2.0, 3: 3.0}[self.order]

    def score(self, X):
        self.judged.append(tuple(X[:, 0]))
        return {1: -3.0, 2: -2.0, 3: -1.0}[self.order]


def run(criterion, seed=0, **options):
    judged = []
    fitted = []

    def fit(X, order, rng):
        fitted.append(Candidate(order, tuple(X[:, 0]), rng.random(), judged))
        return fitted[-1]

    X = np.arange(50.0)[:, None]
    model, values = choose_order(X, [1, 2, 3], fit, criterion=criterion, rng=np.random.default_rng(seed), **options)
    return model, values, fitted, judged


@pytest.mark.parametrize(("criterion", "best"), [("aic", 2), ("bic", 1), ("held_out", 3)])
def test_the_smallest_criterion_is_kept_and_fitted_on_all_rows(criterion, best):
    model, values, fitted, _ = run(criterion)
    assert model.order == best == min(values, key=values.get)
    assert model.rows == tuple(np.arange(50.0))
    assert len({one.drawn for one in fitted[:3]}) == 3  # a stream for every candidate


def test_held_out_rows_are_drawn_at_random_and_never_fitted():
    sets = []
    for seed in range(5):
        _, values, fitted, judged = run("held_out", seed)
        held = set(judged[0])
        assert len(held) == HELD_OUT * 50 and all(set(rows) == held for rows in judged)
        for candidate in fitted[:3]:
            assert set(candidate.rows) == set(np.arange(50.0)) - held
        assert values == {1: 60.0, 2: 40.0, 3: 20.0}  # -2 log likelihood of 10 rows
        sets.append(frozenset(held))
    assert len(set(sets)) == 5  # a table sorted by something must not lose one end of it


def test_an_unknown_criterion_is_refused():
    with pytest.raises(InputError, match="criterion='aicc' is not known"):
        run("aicc")
