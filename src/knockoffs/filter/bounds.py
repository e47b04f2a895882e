"""What one W promises besides the FDR: expected and probable numbers of false selections, and FDP bounds for every set.

Run through the features from the largest |W| down. Given |W|, the signs of the null features are fair coins, so the
null features with a positive sign that come before the v-th negative are at most as many as the heads before the v-th
tail, a negative binomial number N_v with mean v: negatives that are not null only end the run earlier (Janson and Su,
2016). Features of equal |W| enter together or not at all, which selects no more than any order among them; W = 0 is
never selected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import nbinom

from knockoffs.errors import InputError, unknown_option
from knockoffs.filter import check_W, path_counts

BOUNDS = ("closed_testing", "exact", "closed_form")
SHARES = np.linspace(0.99, 0.5, 25)  # of b, tried for smaller sets of hypotheses
LARGEST = 3000  # features for which bounds are computed exactly, about 1 s; beyond it the closed form


def before_negative(W: ArrayLike, v: int) -> NDArray[np.bool_]:
    """Features with W > 0 that come before the v-th negative, from the largest |W| down; none for v = 0.

    >>> before_negative([6.0, 5.0, -4.0, 3.0, -2.0, 1.0], 2)
    array([ True,  True, False,  True, False, False])
    """
    W = check_W(W)
    t, _, n_below = path_counts(W)
    allowed = t[n_below < v]
    return allowed[0] <= W if allowed.size else np.zeros(len(W), dtype=bool)


def pfer(W: ArrayLike, v: float, *, rng: np.random.Generator | None = None) -> NDArray[np.bool_]:
    """Select with at most v false features expected (Janson and Su, 2016; Ren, Wei and Candes, 2023).

    What comes before the v-th negative. A v that is not whole is, with an ``rng``, one of its two neighbours at
    random, so that the mean is v; without, it is the smaller one, which promises less than v: the deterministic
    variant.

    >>> pfer([6.0, 5.0, -4.0, 3.0, -2.0, 1.0], 1)
    array([ True,  True, False, False, False, False])
    """
    if not v > 0:
        raise InputError(f"v={v!r}: the number of false selections expected is above 0, for instance 1.")
    whole = int(v)
    if rng is not None:
        whole += int(rng.random() < v - whole)
    return before_negative(W, whole)


def k_fwer(W: ArrayLike, k: int, level: float, *, rng: np.random.Generator | None = None) -> NDArray[np.bool_]:
    """Select so that k or more false features have probability at most ``level`` (Janson and Su, 2016).

    What comes before the v-th negative, v the largest with P(N_v >= k) <= level; with an ``rng``, v + 1 with the
    probability that spends the level exactly. Without one, k = 1 selects nothing below level 1/2, and v >= 1 needs
    2^-k <= level.

    >>> k_fwer([9, 8, 7, 6, 5, 4, -3, 2], 5, 0.05)
    array([ True,  True,  True,  True,  True,  True, False, False])
    """
    if isinstance(k, bool) or int(k) != k or k < 1:
        raise InputError(f"k={k!r}: use a whole number of false selections, 1 or more.")
    level = _check_share("level", level)

    def tail(v: int) -> float:
        """P(N_v >= k): k or more heads before the v-th tail of a fair coin."""
        return float(nbinom.sf(k - 1, v, 0.5)) if v else 0.0

    v = 0
    while tail(v + 1) <= level:
        v += 1
    if rng is not None:
        v += int(rng.random() < (level - tail(v)) / (tail(v + 1) - tail(v)))
    return before_negative(W, v)


@dataclass(frozen=True)
class FalseDiscoveryBounds:
    """Bounds on the number of null features in every set of features, all true at once with the stated confidence."""

    W: NDArray  # shape (d,)
    confidence: float
    # shape (d + 1,): before the v-th negative are at most allowed[v - 1] null features, for all v at once
    allowed: NDArray[np.intp]
    # (m, allowed): what is allowed where at most m null features have W != 0; m ascending, none allows more than the
    # next. It is not known how many there are, so a number of false features stands if any m lets it stand
    fewer: tuple[tuple[int, NDArray[np.intp]], ...] = ()

    def false_features(self, chosen: ArrayLike) -> int:
        """Largest number of null features that the set may hold.

        The smallest of |R| and, over v, allowed[v - 1] + the features of R not before the v-th negative: closed testing
        with the local tests "more than allowed[v - 1] positives before the v-th negative, for some v" ends there. With
        ``fewer`` the local test of a set of hypotheses has the numbers for its size, and the largest set that survives
        is looked for below that bound.
        """
        R = np.asarray(chosen, dtype=bool)
        if R.shape != self.W.shape:
            raise InputError(f"chosen has shape {R.shape}: expected {self.W.shape}, one truth value for each feature.")
        t, _, n_below = path_counts(self.W)
        inside = np.sort(np.where(R & (self.W > 0), self.W, -np.inf))
        n_inside = len(inside) - np.searchsorted(inside, t, side="left")
        bound = self.allowed[n_below] + R.sum() - n_inside
        largest = int(min(R.sum(), bound.min(initial=R.sum())))
        return self._survivors(R, largest) if self.fewer else largest

    def _survivors(self, R: NDArray[np.bool_], largest: int) -> int:
        """Most features of R in a set of hypotheses that survives its own local test, ``largest`` at most.

        Negatives and zeros only help a set to survive, so all are in it. Of the positives of R it has the b smallest,
        whose heads come last, and of the others the c smallest: for a given test as few as its size demands.
        """
        order = np.argsort(-self.W, kind="stable")[: int((self.W > 0).sum())]
        inside = R[order]
        negatives = np.sort(-self.W[self.W < 0])
        n_before = len(negatives) - np.searchsorted(negatives, self.W[order], side="left")
        from_end, other_from_end = (np.cumsum(some[::-1])[::-1] for some in (inside, ~inside))
        free, n_others = int(R.sum() - inside.sum()), int((~inside).sum())
        tests = (*self.fewer, (len(self.W), self.allowed))
        below = (-1, *(m for m, _ in self.fewer))
        for b in range(largest - free, 0, -1):
            for smaller, (most, allowed) in zip(below, tests, strict=True):
                c = max(0, smaller + 1 - len(negatives) - b)
                if c > n_others or len(negatives) + b + c > most:
                    continue
                J = np.where(inside, from_end <= b, other_from_end <= c)
                if (np.cumsum(J)[J] <= allowed[n_before[J]]).all():
                    return free + b
        return free

    def fdp(self, chosen: ArrayLike) -> float:
        """Upper bound on the FDP of any set, however it was chosen; 0 for the empty set."""
        n = int(np.asarray(chosen, dtype=bool).sum())
        return self.false_features(chosen) / n if n else 0.0

    def path(self) -> tuple[NDArray, NDArray, NDArray]:
        """Thresholds t, ascending, the size of {W >= t}, and the bound on its FDP: what a slider over t shows."""
        t, n_above, n_below = path_counts(self.W)
        if self.fewer:
            found = np.array([self.false_features(bound <= self.W) for bound in t])
            return t, n_above, found / np.maximum(n_above, 1)
        # a larger t' leaves n(t) - n(t') features out; a smaller one has more negatives and leaves out none
        spare = np.minimum.accumulate((self.allowed[n_below] - n_above)[::-1])[::-1]
        return t, n_above, np.minimum(n_above, n_above + spare) / np.maximum(n_above, 1)


def fdp_bounds(W: ArrayLike, confidence: float = 0.95, *, how: str = "closed_testing") -> FalseDiscoveryBounds:
    """Simultaneous bounds on the FDP of every set of features.

    Parameters
    ----------
    W : array-like, shape (d,)
    confidence : float
        With at least this probability no bound is wrong.
    how : {"closed_testing", "exact", "closed_form"}
        "closed_form" allows floor(c v) null features before the v-th negative, c = log(1/a) / log(2 - a) and a = 1 -
        confidence, whatever d is (Katsevich and Ramdas, 2020, Theorem 2). "exact" allows floor(v + b sqrt(v)) where
        that is less, with the smallest b for which d fair coins stay below with that probability, computed in O(d^2):
        never more than the closed form, and far less for large v, since the heads before the v-th tail are v give or
        take sqrt(2 v): a joint k-FWER bound with interpolation in the sense of Li, Maathuis and Goeman (2024).
        "closed_testing" is their last step: every set of hypotheses has the b of its own size, so that features that
        cannot all be null make the bounds of the others sharper, never above "exact". Above 3000 features both are the
        closed form.

    >>> bounds = fdp_bounds([9.0, 8, 7, 6, 5, 4, 3, 2, -1], 0.9)
    >>> bounds.false_features([True] * 8 + [False]), bounds.false_features([True] + [False] * 8)
    (3, 1)
    """
    W, miss = check_W(W), 1 - _check_share("confidence", confidence)
    if how not in BOUNDS:
        raise unknown_option("how", how, BOUNDS)
    v, n_coins = np.arange(1, len(W) + 2), int((W != 0).sum())
    allowed = _floor(np.log(1 / miss) / np.log(2 - miss) * v)
    fewer: tuple[tuple[int, NDArray[np.intp]], ...] = ()
    if how != "closed_form" and n_coins <= LARGEST:
        b = _smallest_factor(allowed, v, n_coins, miss)
        if how == "closed_testing":
            fewer = _by_size(allowed, v, b, n_coins, miss, int((W < 0).sum()))
        allowed = _at_most(allowed, v, b)
    return FalseDiscoveryBounds(W, float(confidence), allowed, fewer)


def _floor(x: NDArray) -> NDArray[np.intp]:
    return np.floor(x + 1e-9).astype(np.intp)  # 1e-9: what is whole but for rounding stays whole


def _at_most(allowed: NDArray[np.intp], v: NDArray, b: float) -> NDArray[np.intp]:
    return np.minimum(allowed, _floor(v + b * np.sqrt(v)))


def _smallest_factor(allowed: NDArray[np.intp], v: NDArray, n_coins: int, miss: float) -> float:
    """Smallest b for which n coins respect floor(v + b sqrt(v)) and what is allowed, to 1e-4, by bisection."""
    lower, upper = 0.0, float(((allowed - v + 1) / np.sqrt(v)).max())  # at the upper end nothing is changed
    while upper - lower > 1e-4:
        b = (lower + upper) / 2
        if crossing_probability(_at_most(allowed, v, b), n_coins) <= miss:
            upper = b
        else:
            lower = b
    return upper


def _by_size(
    allowed: NDArray[np.intp], v: NDArray, b: float, n_coins: int, miss: float, smallest: int
) -> tuple[tuple[int, NDArray[np.intp]], ...]:
    """(m, allowed by a smaller b that m coins respect), m ascending; none below ``smallest`` matters."""
    found: list[tuple[int, NDArray[np.intp]]] = []
    last = n_coins
    for share in SHARES:
        less = _at_most(allowed, v, share * b)
        m = int((crossing_probabilities(less, n_coins) <= miss).sum())
        if m < last:
            found, last = [(m, less), *found], m
        elif found:
            found[0] = (m, less)
        if m <= smallest:
            break
    return tuple(found)


def crossing_probability(allowed: NDArray[np.intp], n_coins: int) -> float:
    """P(for some v, more than allowed[v - 1] heads come before the v-th tail among n tosses of a fair coin).

    >>> crossing_probability(np.array([1, 2, 3]), 2)  # two heads at once
    0.25
    """
    return float(crossing_probabilities(allowed, n_coins)[-1]) if n_coins else 0.0


def crossing_probabilities(allowed: NDArray[np.intp], n_coins: int) -> NDArray:
    """``crossing_probability`` of the first 1, 2, ... n tosses, shape (n_coins,)."""
    # alive[b] = P(b tails so far and no crossing yet); after i tosses there are i - b heads, before tail v = b + 1
    alive, tails = np.zeros(n_coins + 1), np.arange(n_coins + 1)
    alive[0] = 1.0
    crossed = np.empty(n_coins)
    for i in range(1, n_coins + 1):
        alive = alive / 2
        alive[1:] += alive[:-1].copy()
        alive[i - tails > allowed[: n_coins + 1]] = 0.0
        crossed[i - 1] = 1 - alive.sum()
    return crossed


def _check_share(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating) or not 0 < value < 1:
        raise InputError(f"{name}={value!r}: use a number strictly between 0 and 1.")
    return float(value)
