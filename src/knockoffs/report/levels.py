"""What is selected at each level, and what is then promised: a level chosen after looking is not a level asked for.

The false discovery rate is held at one level, which was fixed before the answer was seen. A reader who moves a slider
chooses after looking, and then only what holds for all levels at once may be said:

- one draw of knockoffs: the simultaneous bounds on the FDP, with 95 % confidence for every set (`fdp_bounds`);
- e-values: E[FDP / level] <= 1 for a level chosen after looking (`evidence`);
- p-values: with 95 % confidence none of the features that Holm's rule rejects at 0.05 is false, however the p-values
  depend on each other; so in any set at most those are false that it does not reject.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knockoffs.filter.bounds import fdp_bounds
from knockoffs.filter.e_values import ROUNDING
from knockoffs.report.formatting import count
from knockoffs.selection import Selection

CONFIDENCE = 0.95
GRID = (*(k / 100 for k in range(1, 21)), 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Stop:
    """One level of the slider.

    Parameters
    ----------
    level : float
    n_selected : int
        The surest so many are selected: the first in the order of ``ranked``.
    asked : bool
        Whether it is the level that was asked for.
    promise : str
        What holds of this selection.
    caution : str
        What does not hold; empty at the level that was asked for.
    """

    level: float
    n_selected: int
    asked: bool
    promise: str
    caution: str


def ranked(selection: Selection) -> NDArray[np.intp]:
    """Features, the surest first."""
    return selection.surest_first


def stops(selection: Selection, grid: Sequence[float] = GRID) -> tuple[Stop, ...]:
    """Levels of the slider, ascending; the one that was asked for is among them."""
    levels = sorted({*grid, selection.fdr, start(selection)})
    q = np.sort(selection.q_values)
    slack = 1.0 if selection.evidence is None else ROUNDING
    counts = np.searchsorted(q, np.array(levels) * slack, side="right")
    false = most_false(selection, counts)
    return tuple(
        _stop(selection, level, int(n), None if false is None else int(v))
        for level, n, v in zip(levels, counts, false if false is not None else counts, strict=True)
    )


def start(selection: Selection) -> float:
    """Level of the answer: the one asked for, or the one stated after looking."""
    stated = float("nan") if selection.evidence is None else selection.evidence.stated
    return selection.fdr if np.isnan(stated) else float(stated)


def most_false(selection: Selection, counts: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """Most false features among the first ``counts``, for all counts at once with confidence 0.95; None of e-values."""
    if selection.evidence is not None:
        return None
    if selection.p_values is not None:
        rejected = holm(selection.p_values, 1 - CONFIDENCE)[ranked(selection)]
        return counts - np.concatenate([[0], np.cumsum(rejected)])[counts]
    bounds, order = fdp_bounds(selection.W, CONFIDENCE), ranked(selection)
    return np.array([bounds.false_features(_first(order, n)) for n in counts], dtype=np.intp)


def _first(order: NDArray[np.intp], n: int) -> NDArray[np.bool_]:
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order[:n]] = True
    return chosen


def holm(p_values: NDArray, level: float) -> NDArray[np.bool_]:
    """Which hypotheses Holm's rule rejects, with probability at most ``level`` that any of them is true.

    >>> holm(np.array([0.04, 0.01, 0.03]), 0.05)
    array([False,  True, False])
    """
    order = np.argsort(p_values, kind="stable")
    passed = p_values[order] * np.arange(len(order), 0, -1) <= level
    rejected = np.zeros(len(order), dtype=bool)
    rejected[order] = np.logical_and.accumulate(passed)
    return rejected


def _stop(selection: Selection, level: float, n: int, false: int | None) -> Stop:
    evidence = selection.evidence
    post_hoc = evidence is not None and "after looking" in evidence.promise
    asked = level == selection.fdr and not post_hoc
    if not n:
        said = _asked(selection, level) if asked else "Nothing is claimed, so nothing can be false."
        return Stop(level, 0, asked, said, "")
    if asked:
        besides = "" if false is None else f" Besides: {_bound(n, false)}"
        return Stop(level, n, True, _asked(selection, level) + besides, "")
    if false is None:
        return Stop(
            level,
            n,
            False,
            _after(level),
            f"FDR ≤ {level:.4g} is not promised: that takes a level fixed before looking.",
        )
    caution = (
        f"This level is chosen after looking, so FDR ≤ {level:.4g} is not promised for it. That promise was made at "
        f"{selection.fdr:.4g} alone, the level asked for."
    )
    return Stop(level, n, False, _bound(n, false), caution)


def _after(level: float) -> str:
    return (
        f"E[FDP / level] ≤ 1, with the level {level:.4g}: over repeated data the share of false features among the "
        "selected, divided by the level that was chosen, is at most 1 on average, also where the level is chosen after "
        "looking, as here."
    )


def _asked(selection: Selection, level: float) -> str:
    if selection.offset == 0 and selection.evidence is None and selection.p_values is None:
        return (
            f"A modified false discovery rate is at most {level:.4g} (offset=0); the false discovery rate itself is "
            "not promised."
        )
    return (
        f"FDR ≤ {level:.4g}: on average over repeated data at most {100 * level:.10g} % of the selected features are "
        "false, for this level, fixed before looking."
    )


def _bound(n: int, false: int) -> str:
    sure = f"With {100 * CONFIDENCE:g} % confidence"
    everywhere = "for all levels of the slider at once."
    if false == 0:
        return f"{sure} none of {count(n, 'feature')} is false, {everywhere}"
    verb, share = "is" if false == 1 else "are", 100 * false / n
    return f"{sure} at most {false} of {count(n, 'feature')} ({share:.0f} %) {verb} false, {everywhere}"
