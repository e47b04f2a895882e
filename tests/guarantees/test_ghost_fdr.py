"""False discoveries of selections from z-scores."""

import numpy as np
from tests.streaming.test_ghost import N, study

from knockoffs.streaming.ghost import select_ghost


def test_false_discoveries_and_power():
    """400 studies at level 0.2: mean FDP at most 0.2 + 4 sd / 20 (false alarm 3e-5), and real power."""
    false, power = [], []
    for seed in range(400):
        z, S, matters, rng = study(seed)
        selected = select_ghost(z, S, N, fdr=0.2, rng=rng).selected
        false.append((selected & ~matters).sum() / max(selected.sum(), 1))
        power.append((selected & matters).mean() / matters.mean())
    assert np.mean(false) <= 0.2 + 4 * np.std(false) / 20
    assert np.mean(power) > 0.7


def test_ghosts_drawn_without_correlations_are_caught():
    """The planted fault: S = I in the place of S makes correlated nulls look real, and the same bound breaks."""
    false = []
    for seed in range(200):
        z, S, matters, rng = study(seed, sizes=(35,), signals=6, strength=0.25)
        selected = select_ghost(z, np.eye(35), N, fdr=0.2, rng=rng).selected
        false.append((selected & ~matters).sum() / max(selected.sum(), 1))
    assert np.mean(false) > 0.2 + 4 * np.std(false) / np.sqrt(200)
