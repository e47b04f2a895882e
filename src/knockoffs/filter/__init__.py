"""From importance scores to a selection: W, threshold, q-values, FDP and power, as pure functions of arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError

Rule = Callable[[NDArray, NDArray], NDArray]  # W from Z and Z_tilde


def difference(Z: NDArray, Z_tilde: NDArray) -> NDArray:
    """W = Z - Z_tilde.

    >>> difference(np.array([3.0, 1.0]), np.array([1.0, 2.0]))
    array([ 2., -1.])
    """
    return Z - Z_tilde


def signed_maximum(Z: NDArray, Z_tilde: NDArray) -> NDArray:
    """W = max(Z, Z_tilde) with the sign of Z - Z_tilde, and 0 where both are below 0.

    >>> signed_maximum(np.array([3.0, 1.0, 2.0, -1.0]), np.array([1.0, 2.0, 2.0, -3.0]))
    array([ 3., -2.,  0.,  0.])
    """
    # a score below 0 says that faking the feature did no harm: as a size it would turn the sign around
    return np.maximum(np.maximum(Z, Z_tilde), 0.0) * np.sign(Z - Z_tilde)


RULES: dict[str, Rule] = {
    "difference": difference,
    "signed_maximum": signed_maximum,
}


def check_antisymmetric(rule: Rule) -> None:
    """Refuse a rule whose W does not change its sign when Z and Z_tilde change places, tried on random numbers."""
    Z, Z_tilde = np.random.default_rng(0).standard_normal((2, 64))
    W, back = np.asarray(rule(Z, Z_tilde)), np.asarray(rule(Z_tilde, Z))
    if W.shape != Z.shape or not np.allclose(W, -back, rtol=1e-9, atol=1e-12):
        raise InputError(
            "rule is not antisymmetric: rule(Z_tilde, Z) must be -rule(Z, Z_tilde), one number for each feature, or "
            "null features are not fair coins and the false discovery rate is not controlled."
        )


@dataclass(frozen=True)
class ErrorControl:
    """The level to hold, and how."""

    fdr: float = 0.1  # target false discovery rate
    offset: int = 1  # 1 or 0: 1 is knockoff+, which controls the FDR
    n_draws: int = 1  # draws of knockoffs, joined by their e-values
    level: str = "fixed"  # "fixed" or "post_hoc": "post_hoc" chooses the level after looking, and states it
    n_knockoffs: int = 1  # knockoffs that a feature is compared with in a draw


def check_floats(values: ArrayLike, argument: str) -> NDArray:
    """Numbers as floats; what is no real number is refused.

    >>> check_floats(["a"], "W")
    Traceback (most recent call last):
    knockoffs.errors.InputError: W holds what is no number: could not convert string to float: 'a'.
    """
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{argument} holds what is no number: {error}.") from None


def check_W(W: ArrayLike) -> NDArray:
    """W as a vector of floats; NaN is an error, infinities are not."""
    W = check_floats(W, "W")
    if W.ndim != 1:
        raise InputError(f"W has shape {W.shape}: expected one statistic for each feature.")
    refuse_nan(W)
    return W


def refuse_nan(W: NDArray) -> None:
    """Refuse statistics, shape (..., d), some of which are NaN."""
    if not W.shape[-1]:
        raise InputError("W is empty: expected one statistic for each feature.")
    bad = np.flatnonzero(np.isnan(W.reshape(-1, W.shape[-1])).any(axis=0))
    if bad.size:
        raise InputError(f"W is NaN for {bad.size} features, the first is feature {bad[0]}: the score failed there.")


def check_draws(W: ArrayLike) -> NDArray:
    """W of every draw, shape (M, d) with M >= 1."""
    draws = np.asarray(W, dtype=float)
    if draws.ndim != 2 or len(draws) == 0:
        raise InputError(f"W has shape {draws.shape}: expected one row of statistics for each draw, (n_draws, d).")
    refuse_nan(draws)
    return draws


def check_fdr(fdr: float) -> float:
    """Target FDR as a float strictly between 0 and 1."""
    if isinstance(fdr, bool) or not isinstance(fdr, int | float | np.integer | np.floating):
        raise InputError(f"fdr={fdr!r} is not a number: use a level between 0 and 1, for instance 0.1.")
    if not 0 < fdr < 1:
        hint = f" Did you mean {fdr / 100:g}?" if 1 <= fdr < 100 else " Use for instance 0.1."
        shown = fdr if isinstance(fdr, int) else f"{fdr:g}"  # a whole number may be larger than any float
        raise InputError(f"fdr={shown} is not between 0 and 1.{hint}")
    return float(fdr)


def check_offset(offset: int) -> int:
    """1 for knockoff+, 0 for knockoff."""
    if offset not in (0, 1):
        raise InputError(f"offset={offset!r}: use 1 (knockoff+, controls the FDR) or 0 (controls a modified FDR).")
    return int(offset)


# what to do if knockoffs would have to select more features than there are, or than matter
FEW_FEATURES = (
    "Use method='conditional_test', which gives every feature a p-value and needs no minimum (method='auto' chooses "
    "it), or level='post_hoc', which reports the smallest level that selects something."
)


def check_level(fdr: float, n_features: int, offset: int, n_draws: int = 1, n_knockoffs: int = 1) -> None:
    """Refuse a level at which knockoff+, or the e-values of several draws, can never select.

    >>> check_level(0.05, 10, 1)
    Traceback (most recent call last):
    knockoffs.errors.InputError: fdr=0.05 can never select with 10 features: knockoff+ needs at least 20 selections. Use
    method='conditional_test', which gives every feature a p-value and needs no minimum (method='auto' chooses
    it), or level='post_hoc', which reports the smallest level that selects something.
    """
    if (offset == 0 and n_draws == 1) or 1 / n_features <= fdr * n_knockoffs:
        return
    needed = fewest_selected(fdr, n_knockoffs) if fdr > 1e-9 else f"{1 / fdr:.0e}"
    if n_knockoffs > 1:
        who = f"knockoff+ with {n_knockoffs} knockoffs per feature needs"
    elif n_draws > 1:  # no e-value exceeds n_features, so e-BH selects 1 / fdr at least, whatever the offset
        who = f"the e-values of {n_draws} draws need"
    else:
        who = "knockoff+ needs"
    there = "1 feature (n_features=1)" if n_features == 1 else f"{n_features} features"
    raise InputError(f"fdr={fdr:g} can never select with {there}: {who} at least {needed} selections. {FEW_FEATURES}")


def fewest_selected(fdr: float, n_knockoffs: int = 1) -> int:
    """Smallest number of features that knockoff+ selects, if it selects any.

    >>> fewest_selected(0.1), fewest_selected(0.1, 5)
    (10, 2)
    """
    return math.ceil(1 / (n_knockoffs * fdr) - 1e-9)


@dataclass(frozen=True)
class Filtered:
    """What the knockoff filter says of W at one level: see the three functions of the same names."""

    threshold: float
    q_values: NDArray
    selected: NDArray[np.bool_]


def filter_statistics(W: NDArray, fdr: float, offset: int, m: int = 1) -> Filtered:
    """Threshold, q-values and selection at once; W, the level and the offset were checked before.

    Under the null a feature beats its m knockoffs once in m + 1 times, so m features that are beaten count for one that
    is not: the threshold is the smallest t with (offset + #{W <= -t}) / m / #{W >= t} <= fdr (Gimenez and Zou 2019).
    Thus 1 / (m fdr) discoveries are enough.
    """
    t, n_above, n_below = path_counts(W)
    fdp = np.where(n_above > 0, (offset + n_below) / m / np.maximum(n_above, 1), np.inf)
    q = np.full(W.shape, np.inf)
    positive = W > 0
    # feature j is selected at level q if some t <= W_j has an estimate <= q: a running minimum from below
    best = np.minimum.accumulate(fdp)
    q[positive] = best[np.searchsorted(t, W[positive])]
    passing = t[fdp <= fdr]
    # through the q-values, because W = inf makes the threshold inf ambiguous: reached, or none at all
    return Filtered(float(passing[0]) if passing.size else float("inf"), q, q <= fdr)


def several_statistics(Z: ArrayLike) -> NDArray:
    """W, shape (d,), from the scores of each feature and of its m knockoffs, shape (m + 1, d).

    |W| is the largest score less the median of the others (He et al. 2021); W is positive if the feature has the
    largest. Under the null the m + 1 scores are exchangeable, which leaves |W| as it is, and W > 0 once in m + 1 times.

    >>> several_statistics([[5.0, 1.0], [1.0, 4.0], [2.0, 3.0], [0.0, 2.0]])
    array([ 4., -2.])
    """
    Z = np.asarray(Z, dtype=float)
    if Z.ndim != 2 or len(Z) < 2:
        raise InputError(f"Z has shape {Z.shape}: expected (m + 1, d), a feature and its knockoffs.")
    if np.isnan(Z).any():
        raise InputError("Z holds NaN: the score failed there.")
    ordered = np.sort(Z, axis=0)[::-1]
    size = ordered[0] - np.median(ordered[1:], axis=0)
    return np.where(Z[0] > Z[1:].max(axis=0), size, -size)


def knockoff_threshold(W: ArrayLike, fdr: float, *, offset: int = 1) -> float:
    """Smallest t among the |W_j| > 0 with (offset + #{W <= -t}) / #{W >= t} <= fdr; infinity if there is none.

    Parameters
    ----------
    W : array-like, shape (d,)
    fdr : float
        Target level q.
    offset : {1, 0}
        1 is knockoff+, which controls the FDR; 0 is knockoff, which controls a modified FDR.

    Returns
    -------
    float
        The selected features are those with W >= threshold.

    >>> knockoff_threshold([5, 4, 3, 2, -1], fdr=0.25)
    2.0
    >>> knockoff_threshold([5, 4, -3], fdr=0.25)
    inf
    """
    return filter_statistics(check_W(W), check_fdr(fdr), check_offset(offset)).threshold


def knockoff_filter(W: ArrayLike, fdr: float, *, offset: int = 1) -> NDArray[np.bool_]:
    """Which features the filter selects: those with W >= threshold, where a threshold exists.

    >>> knockoff_filter([5, 4, 3, 2, -1, 0], fdr=0.25)
    array([ True,  True,  True,  True, False, False])
    """
    return filter_statistics(check_W(W), check_fdr(fdr), check_offset(offset)).selected


def q_values(W: ArrayLike, *, offset: int = 1) -> NDArray:
    """Smallest level q at which each feature is selected; infinity for W <= 0, which no level selects.

    >>> q_values([5.0, 4.0, -3.0, 2.0, 0.0])
    array([0.5       , 0.5       ,        inf, 0.66666667,        inf])
    """
    return filter_statistics(check_W(W), 1.0, check_offset(offset)).q_values


def path_counts(W: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Candidate thresholds t, the |W_j| > 0 in ascending order, with #{W >= t} and #{W <= -t} at each of them.

    >>> path_counts(np.array([3.0, -2.0, 2.0, 0.0]))
    (array([2., 3.]), array([2, 1]), array([1, 0]))
    """
    t = np.unique(np.abs(W[W != 0]))
    ordered = np.sort(W)
    n_above = len(W) - np.searchsorted(ordered, t, side="left")
    n_below = np.searchsorted(ordered, -t, side="right")
    return t, n_above, n_below


def false_discovery_proportion(selected: ArrayLike, non_nulls: ArrayLike) -> float:
    """Share of the selected features that are null; 0 when nothing is selected.

    >>> false_discovery_proportion([True, True, False], [True, False, False])
    0.5
    """
    chosen, true = np.asarray(selected, dtype=bool), np.asarray(non_nulls, dtype=bool)
    return float((chosen & ~true).sum() / max(chosen.sum(), 1))


def power(selected: ArrayLike, non_nulls: ArrayLike) -> float:
    """Share of the non-null features that are selected.

    >>> power([True, True, False], [True, False, True])
    0.5
    """
    chosen, true = np.asarray(selected, dtype=bool), np.asarray(non_nulls, dtype=bool)
    if not true.any():
        raise InputError("power is not defined without a non-null feature.")
    return float((chosen & true).sum() / true.sum())
