"""About how long a run takes yet: guessed from the size of the table, corrected by what its steps have taken so far."""

from __future__ import annotations

from collections.abc import Mapping

# Seconds of each step with every default, exp(a) n^b d^c: least squares of the logarithms of CPU seconds on 16 made-up
# tables, half of them with labels, 300 to 20,000 rows and 12 to 200 columns; the sums are .7 to 1.3 times the measured.
# A first guess, which another machine, another model or a loaded core make wrong: what a run takes corrects it.
COSTS = {
    "reading the table": (-9.0, 0.6, 0.6),
    "fitting P^X": (-5.86, 0.57, 0.4),
    "drawing knockoffs": (-12.34, 0.76, 0.89),
    "scoring features and knockoffs": (-4.25, 0.15, 0.78),
    "comparing knockoffs with features": (-4.56, 0.26, 0.61),
    "writing the report": (-8.22, 0.49, 0.45),
}
STEPS = tuple(COSTS)
INSIDE = {"tests of features": STEPS[3], "draws of knockoffs": STEPS[3]}  # loops that stand for a step
START = 1.5  # seconds until a process has imported what it needs
DOUBT = 1.0  # seconds: so much must have been seen before a correction counts half


def guess_steps(n_rows: int, n_columns: int, parameters: Mapping[str, object]) -> dict[str, float]:
    """Seconds that each step may take.

    >>> [round(sum(guess_steps(n, 20, {}).values())) for n in (1_000, 100_000)]
    [3, 11]
    """
    n, d = max(n_rows, 1), max(n_columns - 1, 1)
    seconds = {step: 2.718281828**a * n**b * d**c for step, (a, b, c) in COSTS.items()}
    seconds[STEPS[0]] += START
    draws = parameters.get("n_draws")
    seconds[STEPS[3]] *= max(draws, 1) if isinstance(draws, int) else 1
    return seconds


def left_in_all(
    guessed: Mapping[str, float], took: Mapping[str, float], step: str, spent: float, left: float | None
) -> float | None:
    """About how many seconds are left of a run; None before its first step.

    Parameters
    ----------
    guessed : mapping
        Seconds of every step, in their order, as they were guessed.
    took : mapping
        Seconds of the steps that are over.
    step : str
        The one that is going on.
    spent : float
        Seconds in it.
    left : float, optional
        What is left of it by the loop in it, where that is known: worth more than a guess.

    >>> guessed = {"a": 1.0, "b": 4.0, "c": 2.0}
    >>> left_in_all(guessed, {}, "a", 0.5, None)
    6.5
    >>> left_in_all(guessed, {"a": 3.0}, "b", 2.0, None)  # twice as slow as guessed, so 8 - 2 + 4
    10.0
    >>> left_in_all(guessed, {"a": 3.0}, "b", 20.0, None)  # longer than guessed: what is sure to come
    4.0
    """
    if step not in guessed:
        return None
    over = [name for name in took if name in guessed and name != step]
    ratio = (sum(took[name] for name in over) + DOUBT) / (sum(guessed[name] for name in over) + DOUBT)
    steps = list(guessed)
    later = sum(guessed[name] for name in steps[steps.index(step) + 1 :] if name not in over)
    here = max(guessed[step] * ratio - spent, 0.0) if left is None else left
    return round(here + ratio * later, 1)
