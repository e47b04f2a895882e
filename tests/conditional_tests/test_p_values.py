import numpy as np
from tests.refusals import refuses

from knockoffs.conditional_tests.p_values import adjust_p_values


def step_up(p, q):
    """BH: reject the k smallest, k the largest with p_(k) <= q k / d."""
    d, ordered = len(p), sorted(p)
    k = max((k for k in range(1, d + 1) if ordered[k - 1] <= q * k / d), default=0)
    return [bool(k) and value <= ordered[k - 1] for value in p]


def test_adjusted_p_values_are_the_levels_of_the_step_up_procedures(rng):
    for _ in range(300):
        p = rng.random(8) ** 3
        harmonic = (1 / np.arange(1, 9)).sum()
        for q in (0.03, 0.1, 0.21, 0.5):
            assert ((adjust_p_values(p) <= q) == step_up(p, q)).all()
            assert ((adjust_p_values(p, "by") <= q) == step_up(p, q / harmonic)).all()


def test_errors():
    refuses("between 0 and 1", adjust_p_values, [0.5, 1.2])
    refuses("adjustment='bonferroni'", adjust_p_values, [0.5], "bonferroni")
