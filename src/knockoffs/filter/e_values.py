"""Many draws of knockoffs to one selection: e-values, e-BH, and a level that may be chosen after looking.

One draw gives one vector W. Given |W| and the signs of the non-null features, the signs of the null features are fair
coins, and with V+(t), V-(t) the null features at or above t in size with a positive, a negative sign, V+(t) / (1 +
V-(t)) is a supermartingale as t grows, in the filtration that knows |W|, the signs below t, and how many signs of
each kind remain (Barber and Candes, 2015). Every stopping time T of that filtration therefore gives

    e_j = d 1{W_j >= T} / (1 + #{W <= -T})    with    E[sum of e_j over the null features] <= d,

compound e-values (Ren and Barber, 2024). Their mean over draws, however dependent, keeps the inequality, and e-BH
asks for nothing else: what it selects at level a has FDP <= a (sum of e_j over the null features) / d, *for all
levels at once*. So a fixed level gives FDR <= a, and a level chosen after looking at the e-values gives E[FDP /
stated level] <= 1 (Fischer and Sechidis, arXiv 2511.11166). The e_j are compound only, E[e_j] <= 1 need not hold for
one null feature, so that sharper procedures that need it, closed e-BH among them, do not apply.

With m knockoffs of every feature a null feature is the first of its m + 1 with probability 1 / (m + 1), whatever |W|
and the other features (Gimenez and Zou, 2019): the coins have that chance of a positive sign. Given how many signs of
each kind remain, every order of them is as likely as before, so V+(t) / (1 + V-(t)) is a supermartingale as before; it
begins with an expectation of at most 1 / m, where it was 1 (for V+ ~ Bin(N, p), E[V+ / (1 + N - V+)] is p / (1 - p)
(1 - p^N)). So m times the e-values above are compound e-values again, and all that was said of these holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, unknown_option
from knockoffs.filter import (
    check_draws,
    check_fdr,
    check_floats,
    check_offset,
    check_W,
    filter_statistics,
    path_counts,
)

WAYS = ("fixed", "post_hoc")
STOPS = ("level", "unreachable", "no_negative")
ROUNDING = 1 + 1e-12  # d / (k e) with e = d / (1 + negatives) may miss (1 + negatives) / k by the last digit


def knockoff_e_values(
    W: ArrayLike, level: float, *, offset: int = 1, stop: str = "level", n_knockoffs: int = 1
) -> NDArray:
    """e_j = m d 1{W_j >= T} / (1 + #{W <= -T}), T the knockoff threshold at an inner level (Ren and Barber, 2024).

    m is the number of knockoffs that W compares each feature with, one where nothing else is said.

    Parameters
    ----------
    W : array-like, shape (d,)
    level : float
        Inner level of the threshold T. It decides how much evidence is found, never whether the e-values are valid.
    offset : {1, 0}
        That of the threshold; the 1 in the denominator of e_j stays.
    stop : {"level", "unreachable", "no_negative"}
        What T is where the level is not reached: infinity; the smallest t with #{W >= t} < offset / (m level), from
        where the level is out of reach (Ren and Barber, equation 14); or the smallest t with no negative beyond it,
        from where waiting cannot lower the estimate. All three look at the counts at t and at what lies below, so T is
        a stopping time, as the t with the smallest estimate of all would not be.
    n_knockoffs : int
        m, the knockoffs of every feature, where W is of ``several_statistics``.

    Returns
    -------
    array, shape (d,)
        E[sum over the null features] <= d.

    >>> knockoff_e_values([6, 5, 4, 3, -2, 1], level=0.25)
    array([6., 6., 6., 6., 0., 0.])
    >>> [knockoff_e_values([6, 5, -4, 3], level=0.25, stop=stop).tolist() for stop in STOPS]
    [[0.0, 0.0, 0.0, 0.0], [2.0, 2.0, 0.0, 2.0], [4.0, 4.0, 0.0, 0.0]]
    """
    if stop not in STOPS:
        raise unknown_option("stop", stop, STOPS)
    return _e_values(check_W(W), check_fdr(level), check_offset(offset), stop, check_number(n_knockoffs))


def _e_values(W: NDArray, level: float, offset: int, stop: str, m: int) -> NDArray:
    t, n_above, n_below = path_counts(W)
    stopped = (offset + n_below) / m / np.maximum(n_above, 1) <= level
    if stop == "unreachable":
        stopped |= n_above * m * level < offset
    elif stop == "no_negative":
        stopped |= n_below == 0
    if not stopped.any():
        return np.zeros(len(W))
    first = int(np.argmax(stopped))
    return np.where(t[first] <= W, m * len(W) / (1.0 + n_below[first]), 0.0)


def e_bh(e: ArrayLike, fdr: float) -> NDArray[np.bool_]:
    """Which features e-BH selects: the k largest e-values, for the largest k with e_(k) >= d / (k fdr).

    (Wang and Ramdas, 2022.)

    >>> e_bh([40.0, 30.0, 2.0, 0.0], 0.1)
    array([ True,  True, False, False])
    """
    return e_levels(e) <= check_fdr(fdr) * ROUNDING


def e_levels(e: ArrayLike) -> NDArray:
    """Smallest level at which e-BH selects each feature, the q-value of an e-value; infinity for e_j = 0.

    The k largest are selected together at d / (k e_(k)), and a feature whenever a longer list is: a running minimum.

    >>> e_levels([40.0, 30.0, 2.0, 0.0])
    array([0.06666667, 0.06666667, 0.66666667,        inf])
    """
    e = check_floats(e, "e")
    if e.ndim != 1:
        raise InputError(f"e has shape {e.shape}: expected one e-value for each feature.")
    if not (e >= 0).all():
        raise InputError(f"e-value {e[~(e >= 0)][0]} of feature {int(np.argmin(e >= 0))} is not a number >= 0.")
    return _levels(e)


def _levels(e: NDArray) -> NDArray:
    order = np.argsort(-e, kind="stable")
    k = np.arange(1, len(e) + 1)
    with np.errstate(divide="ignore"):
        alpha = len(e) / (k * e[order])
    levels = np.empty(len(e))
    levels[order] = np.minimum.accumulate(alpha[::-1])[::-1]
    return levels


def choose_level(levels: NDArray, fdr: float, cap: float) -> tuple[NDArray[np.bool_], float]:
    """Find the selection and the level stated for it from the levels, shape (d,).

    Selected are all features with a level <= fdr, where there are any; else those of the smallest level, if it is
    <= cap. Stated is the largest level among the selected, NaN if there are none. Any other rule that reads the levels
    only would keep E[FDP / stated level] <= 1 too.

    >>> choose_level(np.array([0.07, 0.07, 0.67, np.inf]), 0.05, cap=0.5)
    (array([ True,  True, False, False]), 0.07)
    """
    best = levels.min(initial=np.inf)
    reached = fdr if best <= fdr * ROUNDING else min(best, cap)
    selected = levels <= reached * ROUNDING
    return selected, float(levels[selected].max()) if selected.any() else float("nan")


@dataclass(frozen=True)
class Combined:
    """What many draws say together."""

    selected: NDArray[np.bool_]  # shape (d,)
    e_values: NDArray  # shape (d,): mean over the draws
    # shape (d,): share of the draws in which the knockoff filter alone, at the target level, selects the feature
    frequencies: NDArray
    levels: NDArray  # shape (d,): smallest level at which e-BH selects each feature; infinity where none does
    stated: float  # the level the promise is made at; NaN where a post-hoc selection is empty
    promise: str


def combine_draws(
    W: ArrayLike,
    fdr: float,
    *,
    how: str = "fixed",
    inner: float | None = None,
    stop: str = "no_negative",
    offset: int = 1,
    cap: float | None = None,
    n_knockoffs: int = 1,
) -> Combined:
    """One selection from many draws: e-values of every draw, averaged, and e-BH.

    With one draw, how="fixed" and inner=fdr this is the knockoff filter.

    Parameters
    ----------
    W : array-like, shape (M, d)
        The feature statistics of each draw.
    fdr : float
        Target level.
    how : {"fixed", "post_hoc"}
        "fixed" promises FDR <= fdr; "post_hoc" states a level after looking and promises E[FDP / stated level] <= 1.
    inner : float, optional
        Inner level of the thresholds, to be fixed before looking; fdr for one draw and fdr / 2 for more (Ren and
        Barber).
    stop : {"no_negative", "unreachable", "level"}
        What the thresholds do where the inner level is not reached: see ``knockoff_e_values``.
    offset : {1, 0}
    cap : float
        Largest level that "post_hoc" may state; above it, it selects nothing. One half, or fdr if that is more.
    n_knockoffs : int
        Knockoffs of every feature in a draw, with which W compares it.
    """
    draws, fdr, offset = check_draws(W), check_fdr(fdr), check_offset(offset)
    if how not in WAYS:
        raise unknown_option("how", how, WAYS)
    if stop not in STOPS:
        raise unknown_option("stop", stop, STOPS)
    inner = None if inner is None else check_fdr(inner)
    if cap is not None and not fdr <= cap <= 1:
        raise InputError(f"cap={cap!r}: the largest level that may be stated lies between fdr={fdr:g} and 1.")
    m = check_number(n_knockoffs)
    return join_draws(draws, fdr, how, offset, inner=inner, stop=stop, cap=cap, m=m)


def join_draws(
    W: NDArray,
    fdr: float,
    how: str,
    offset: int,
    *,
    inner: float | None = None,
    stop: str = "no_negative",
    cap: float | None = None,
    m: int = 1,
) -> Combined:
    """Join draws as ``combine_draws`` does, at a level and with an offset that were checked before."""
    inner = (fdr if len(W) == 1 else fdr / 2) if inner is None else inner
    e = np.mean([_e_values(w, inner, offset, stop, m) for w in W], axis=0)
    levels = _levels(e)
    if how == "post_hoc":
        selected, stated = choose_level(levels, fdr, max(0.5, fdr) if cap is None else cap)
    else:
        selected, stated = levels <= fdr * ROUNDING, fdr
    frequencies = np.mean([filter_statistics(w, fdr, offset, m).selected for w in W], axis=0)
    return Combined(selected, e, frequencies, levels, stated, _promise(how, stated))


def _promise(how: str, stated: float) -> str:
    if how == "fixed":
        return f"FDR <= {stated:g}: the expected share of null features among the selected is at most {stated:g}."
    if np.isnan(stated):
        return "E[FDP / stated level] <= 1, the level being chosen after looking; nothing was selected."
    return (
        f"E[FDP / stated level] <= 1, the level being chosen after looking; it is {stated:.3g} here. "
        f"This is not FDR <= {stated:.3g}, which a level fixed beforehand would promise."
    )


def check_number(n_knockoffs: object) -> int:
    """Return how many knockoffs a feature is compared with."""
    if isinstance(n_knockoffs, bool) or not isinstance(n_knockoffs, int | np.integer) or n_knockoffs < 1:
        raise InputError(f"n_knockoffs={n_knockoffs!r}: expected a whole number of at least 1.")
    return int(n_knockoffs)
