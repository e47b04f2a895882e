"""Discoveries at the resolution the data allow: group knockoffs of nested partitions, joined by e-values.

Resolution l divides the features into groups and has knockoffs of its own. Its statistics W_l give the e-values

    e_g = w_l m 1{W_g >= T_l} / (1 + #{W_l <= -T_l}),    sum of w_l = 1,

where m is the number of knockoffs that a group is compared with and T_l the knockoff threshold at the level w_l fdr
(``e_values.py``, divided by the number of groups). A group is null if none of its features matters given all others,
and then all groups inside it are null. Over the null groups of resolution l the e-values have an expected sum of at
most w_l, and so of at most 1 over those of all resolutions, however dependent these are. This is the first half of
KeLP (Gablenz and Sabatti, arXiv 2306.09976).

Two discoveries are disjoint, so each may count all the evidence inside it: E_g is the sum of e_h over all groups h of
all resolutions that lie in g, itself included. A set S of disjoint groups is self-consistent at level a if

    E_g >= 1 / (a |S|)    for all g in S.

Then FDP(S), the sum over null g in S of 1 / |S|, is at most a times the sum of E_g over null g in S, which is at most a
times the sum of e_h over all null h: each h lies in one g of S at most, and is null if g is. The expectation of that is
at most a: **the FDR of any self-consistent set is at most its level**, though it is chosen after looking at everything.

KeLP chooses a set by a linear program that favours small groups. For nested groups none is needed. E_g never falls as
g grows, so where E_g >= c it is so for all groups around g; let M(c) be the finest groups with E_g >= c. With c the
smallest E in a self-consistent set S, each member of S holds a group of M(c), so |M(c)| >= |S| and M(c) is
self-consistent as well. As c falls, groups of M(c) are added or divided and never lost. Hence the last self-consistent
M(c) has the most groups of all self-consistent sets, and a group inside each group of each of them: it is the best
answer for every weight of groups that does not rise with their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError
from knockoffs.filter import check_draws, check_fdr
from knockoffs.filter.e_values import ROUNDING, knockoff_e_values


@dataclass(frozen=True)
class Localised:
    """Disjoint groups of features, each of which holds one that matters."""

    groups: tuple[NDArray[np.intp], ...]  # features of each discovery, surest first
    group_e_values: NDArray  # shape (n_discoveries,): E of each discovery, at least 1 / (fdr n_discoveries)
    # shape (n_features,): E of the discovery with each feature, or of the coarsest group with it that holds none
    e_values: NDArray
    levels: NDArray  # shape (n_features,): smallest level at which that group is found; infinity where it never is


def localise(
    W: Sequence[ArrayLike],
    partitions: Sequence[ArrayLike],
    fdr: float,
    *,
    weights: Sequence[float] | None = None,
    n_knockoffs: Sequence[int] | None = None,
) -> Localised:
    """Finest disjoint groups with an FDR of at most ``fdr``, from group knockoffs of nested partitions.

    Parameters
    ----------
    W : sequence of arrays, shape (n_groups,) or (n_draws, n_groups)
        Statistics of the groups of each partition; e-values of several draws are averaged.
    partitions : sequence of arrays of int, shape (n_features,)
        Group 0, 1, ... of each feature, the finest partition first. Each group lies in one group of the next.
    weights : sequence of float, optional
        Share of the level that a partition gets, fixed without a look at y; equal by default.
    n_knockoffs : sequence of int, optional
        Knockoffs of each group that W of a partition compares it with; one by default.

    >>> found = localise([[9, 1, 8, -1, 1, -2, 1, -1], [8, 9, 7, -1]], [np.arange(8), np.arange(8) // 2], 0.7)
    >>> [group.tolist() for group in found.groups]
    [[0], [2], [4, 5]]
    """
    fdr, owners = check_fdr(fdr), check_nested(partitions)
    E = _evidence(W, owners, fdr, weights, n_knockoffs)
    parents = [_parents(fine, coarse) for fine, coarse in pairwise(owners)]
    for i, parent in enumerate(parents):
        E[i + 1] = E[i + 1] + np.bincount(parent, weights=E[i])
    for i, parent in reversed(list(enumerate(parents))):  # a group of two partitions is one, with the evidence of both
        E[i] = np.where(np.bincount(parent)[parent] == 1, E[i + 1][parent], E[i])
    steps = np.unique(np.concatenate(E))  # c, from the smallest
    steps = steps[steps > 0]
    level = np.array([1 / (c * sum(one.sum() for one in finest_groups(E, parents, c))) for c in steps])
    best = np.append(np.minimum.accumulate(level), np.inf)  # smallest level at which groups with E >= c are found
    consistent = np.flatnonzero(level <= fdr * ROUNDING)
    c = steps[consistent[0]] if consistent.size else np.inf
    chosen = finest_groups(E, parents, c)
    found = [
        (float(E[i][g]), np.flatnonzero(owners[i] == g)) for i, one in enumerate(chosen) for g in np.flatnonzero(one)
    ]
    found.sort(key=lambda one: -one[0])
    free = [np.where((e >= c) & ~one, 0.0, e)[own] for e, one, own in zip(E, chosen, owners, strict=True)]
    evidence = np.max(free, axis=0)
    levels = best[np.where(evidence > 0, np.searchsorted(steps, evidence), -1)]
    return Localised(tuple(group for _, group in found), np.array([e for e, _ in found]), evidence, levels)


def finest_groups(E: Sequence[NDArray], parents: Sequence[NDArray[np.intp]], c: float) -> list[NDArray[np.bool_]]:
    """Which groups of each partition M(c) holds: those with E >= c in which no smaller group has that.

    ``parents`` has the group of the next partition with each group of a partition.
    """
    enough = [e >= c for e in E]
    holds = [
        np.bincount(parent[one], minlength=len(e)) > 0
        for parent, one, e in zip(parents, enough[:-1], E[1:], strict=True)
    ]
    return [enough[0]] + [one & ~other for one, other in zip(enough[1:], holds, strict=True)]


def check_nested(partitions: Sequence[ArrayLike]) -> list[NDArray[np.intp]]:
    """Group of each feature in each partition; a group that lies in two groups of the next partition is an error.

    >>> check_nested([[0, 1, 1], [0, 0, 1]])
    Traceback (most recent call last):
    knockoffs.errors.InputError: partition 1 divides group 1 of partition 0: each group must lie in one of the next.
    """
    owners = [np.asarray(partition, dtype=np.intp) for partition in partitions]
    for number, (fine, coarse) in enumerate(pairwise(owners)):
        divided = fine[coarse != _parents(fine, coarse)[fine]]
        if divided.size:
            raise InputError(
                f"partition {number + 1} divides group {divided[0]} of partition {number}: each group must lie in one "
                "of the next."
            )
    return owners


def _parents(fine: NDArray[np.intp], coarse: NDArray[np.intp]) -> NDArray[np.intp]:
    """Group of the coarse partition with the first feature of each group of the fine one."""
    return coarse[np.unique(fine, return_index=True)[1]]


def _evidence(
    W: Sequence[ArrayLike],
    owners: Sequence[NDArray[np.intp]],
    fdr: float,
    weights: Sequence[float] | None,
    n_knockoffs: Sequence[int] | None,
) -> list[NDArray]:
    """e_g of the groups of each partition."""
    n = len(owners)
    shares = np.full(n, 1 / n) if weights is None else np.asarray(weights, dtype=float)
    copies = [1] * n if n_knockoffs is None else list(n_knockoffs)
    if not len(W) == len(shares) == len(copies) == n:
        raise InputError(f"{n} partitions: expected W, a weight and a number of knockoffs for each of them.")
    if not (shares > 0).all() or not np.isclose(shares.sum(), 1):
        raise InputError(f"weights={shares.tolist()}: expected numbers above 0 that add up to 1.")
    found = []
    for w, own, share, m in zip(W, owners, shares, copies, strict=True):
        draws = check_draws(np.atleast_2d(np.asarray(w, dtype=float)))
        if draws.shape[1] != own.max() + 1:
            raise InputError(f"W has {draws.shape[1]} entries for a partition of {own.max() + 1} groups.")
        each = [knockoff_e_values(one, share * fdr, stop="no_negative", n_knockoffs=m) for one in draws]
        found.append(share * np.mean(each, axis=0) / draws.shape[1])
    return found
