"""The verdict over many data sets: few false alarms where P^X is right, broken where it is wrong."""

import numpy as np
import pytest
from benchmarks.verdict_cases import CROSSED, FAULTS, VALID
from benchmarks.verdict_study import repeat

from knockoffs.diagnostics.verdict import WORDS

RUNS = 20
DEPENDENT = ("autocorrelated", "twice", "visits", "visits_shuffled")
HARDER = ("one_heavy_tail", "curved_one")  # one wrong column or pair of thirty
SEEN = [name for name in FAULTS if name not in HARDER]


def words(case, n, seed, runs=RUNS):
    found = np.stack([repeat(case, n, rng) for rng in np.random.default_rng([seed, n]).spawn(runs)])
    return found[:, :2].astype(int), found[:, 5] > 0


@pytest.mark.parametrize("n", [200, 1000])
def test_false_alarms_are_rare(seed, n):
    """At most 5 % doubtful and 1 % broken, plus 4 standard errors: a valid verdict fails this once in 30,000."""
    found = np.concatenate([words(case, n, seed)[0] for case in VALID | CROSSED])
    print(f"n = {n}: {(found >= 1).mean(axis=0)} doubtful or worse, {(found == 2).mean(axis=0)} broken of {len(found)}")
    for word, level in (("doubtful", 0.05), ("broken", 0.01)):
        rates = (found >= WORDS.index(word)).mean(axis=0)  # by the full budget and by the small one
        assert (rates <= level + 4 * np.sqrt(level * (1 - level) / len(found))).all()


@pytest.mark.parametrize("case", SEEN)
def test_faults_are_broken_at_500_rows(seed, case):
    """18 of 20 or more: a rate of 0.99 fails this once in 1,000, and one of 0.7 passes once in 30."""
    found, rows = words(case, 500, seed)
    assert ((found == 2).sum(axis=0) >= 18).all()
    if case in DEPENDENT:
        assert rows.sum() >= 18
