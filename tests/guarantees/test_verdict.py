"""The checks over many data sets: few false alarms where P^X is right, broken where it is wrong."""

import numpy as np
import pytest
from benchmarks.verdict_cases import CASES, FAULTS, VALID, Judged

from knockoffs.diagnostics.comparison import verdict
from knockoffs.diagnostics.verdict import WORDS

RUNS = 20
HARDER = ("one_heavy_tail", "curved_one")  # one wrong column or pair of thirty
SEEN = [name for name in FAULTS if name not in HARDER]


def words(case, n, seed, runs=RUNS):
    found = []
    for rng in np.random.default_rng([seed, n]).spawn(runs):
        data_rng, check_rng = rng.spawn(2)
        made = CASES[case](n, data_rng)
        pair, kinds = (made.pair, made.kinds) if isinstance(made, Judged) else (made, None)
        found.append(verdict(pair, names=[f"x{j}" for j in range(pair.n_columns)], kinds=kinds, rng=check_rng))
    return np.array([WORDS.index(one.word) for one in found])


@pytest.mark.parametrize("n", [200, 1000])
def test_false_alarms_are_rare(seed, n):
    """At most 5 % doubtful and 1 % broken, plus 4 standard errors: a valid verdict fails this once in 30,000."""
    found = np.concatenate([words(case, n, seed) for case in VALID])
    for word, level in (("doubtful", 0.05), ("broken", 0.01)):
        rate = (found >= WORDS.index(word)).mean()
        assert rate <= level + 4 * np.sqrt(level * (1 - level) / len(found))


@pytest.mark.parametrize("case", SEEN)
def test_faults_are_broken_at_500_rows(seed, case):
    """18 of 20 or more: a rate of 0.99 fails this once in 1,000, and one of 0.7 passes once in 30."""
    assert (words(case, 500, seed) == 2).sum() >= 18
