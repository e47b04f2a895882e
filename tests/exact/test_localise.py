"""Discoveries at several resolutions: the best self-consistent set, and its FDR, by enumeration."""

from functools import reduce
from itertools import chain, combinations, product

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.filter import localise as room
from knockoffs.filter.localise import localise

NESTED = [
    [[0, 1, 2, 3]],
    [[0, 1, 2, 3], [0, 0, 1, 1]],
    [[0, 1, 2, 3], [0, 0, 1, 2]],  # features 2 and 3 are groups of both
    [[0, 1, 2, 3], [0, 0, 1, 2], [0, 0, 1, 1]],
    [[0, 0, 1, 2], [0, 0, 0, 1]],  # no resolution of single features
]
LEVELS = (0.3, 0.6, 0.9)


def groups_of(partitions):
    """All groups of all partitions, each once."""
    return sorted({frozenset(np.flatnonzero(np.equal(p, g)).tolist()) for p in partitions for g in set(p)}, key=sorted)


def evidence(W, partitions, fdr, weights):
    """E of each group by its definition: e-values of all groups of all resolutions that lie in it, added up."""
    own = []
    for w, partition, share in zip(W, partitions, weights, strict=True):
        sizes = sorted({abs(x) for x in w if x})
        counts = [(t, sum(x >= t for x in w), sum(x <= -t for x in w)) for t in sizes]
        stopped = [t for t, above, below in counts if below == 0 or (1 + below) <= share * fdr * above]
        for g, x in enumerate(w):
            T = min(stopped, default=np.inf)
            e = share * (x >= T) / (1 + sum(other <= -T for other in w))
            own.append((frozenset(np.flatnonzero(np.equal(partition, g)).tolist()), e))
    return {group: sum(e for inside, e in own if inside <= group) for group in groups_of(partitions)}


def antichains(groups):
    sets = chain.from_iterable(combinations(groups, k) for k in range(1, len(groups) + 1))
    return [some for some in sets if sum(map(len, some)) == len(reduce(frozenset.union, some))]


def statistics(partitions, rng):
    """Sizes in random order with random signs, and some ties and zeros."""
    return [rng.choice([-1, 1, 1], n) * rng.integers(0, 2 * n, n) for n in (max(p) + 1 for p in partitions)]


@pytest.mark.parametrize("partitions", NESTED)
def test_the_answer_is_the_best_of_all_self_consistent_sets(partitions, seed):
    rng = np.random.default_rng(seed)
    found_some = 0
    for _ in range(60):
        W, fdr = statistics(partitions, rng), float(rng.choice(LEVELS))
        weights = rng.dirichlet(np.ones(len(partitions)))
        E = evidence(W, partitions, fdr, weights)
        sets = [some for some in antichains(list(E)) if min(E[g] for g in some) * len(some) * fdr >= 1 - 1e-9]
        found = localise(W, partitions, fdr, weights=weights)
        answer = [frozenset(group.tolist()) for group in found.groups]
        assert bool(answer) == bool(sets)
        if answer:
            found_some += 1
            assert set(answer) in [set(some) for some in sets]
            assert [E[g] for g in answer] == pytest.approx(found.group_e_values)
            for some in sets:
                assert all(any(own <= group for own in answer) for group in some)  # a finer one in each group
                for weigh in (lambda g: 1.0, lambda g: 1 / len(g), lambda g: len(g) ** -2.0):
                    assert sum(map(weigh, some)) <= sum(map(weigh, answer)) + 1e-12
            assert set(np.flatnonzero(found.levels <= fdr * (1 + 1e-9))) == set().union(*answer)
    assert found_some > 5


def worst_fdr(partitions, fdr, non_nulls, *, coupled=False, weights=None):
    """Largest expected FDP over some orders of |W|, when the signs of null groups are fair coins."""
    sizes = [max(p) + 1 for p in partitions]
    members = [[set(np.flatnonzero(np.equal(p, g))) for g in range(n)] for p, n in zip(partitions, sizes, strict=True)]
    null = [np.array([not (group & non_nulls) for group in groups]) for groups in members]
    flips = [list(product([-1, 1], repeat=int(one.sum()))) for one in null]
    most = max(map(len, flips))
    # coupled: the same coins in all resolutions, each sign as likely as before
    joint = (
        [tuple(flip[i * len(flip) // most] for flip in flips) for i in range(most)] if coupled else [*product(*flips)]
    )
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(6):
        orders = [1.0 + rng.permutation(n) for n in sizes]
        mean = []
        for signs in joint:
            W = [order.copy() for order in orders]
            for w, one, sign in zip(W, null, signs, strict=True):
                w[one] *= sign
            groups = localise(W, partitions, fdr, weights=weights).groups
            mean.append(np.mean([not (set(group.tolist()) & non_nulls) for group in groups]) if groups else 0.0)
        worst = max(worst, float(np.mean(mean)))
    return worst


COLUMNS, PAIRS, HALVES = [0, 1, 2, 3, 4, 5], [0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("non_nulls", [set(), {0}, {0, 2}, {0, 1, 2}])
@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.9, 0.1), (0.2, 0.8)])
def test_the_fdr_is_held_exactly(coupled, non_nulls, weights):
    for fdr in (0.4, 0.6):
        assert worst_fdr([COLUMNS, PAIRS], fdr, non_nulls, coupled=coupled, weights=weights) <= fdr + 1e-12


def thrice(W, *args, **options):
    return 3 * room_e_values(W, *args, **options)


room_e_values = room.knockoff_e_values


def test_groups_that_overlap_break_it(monkeypatch):
    """A feature, its pair and its half are no three discoveries: the evidence for the feature would count thrice."""
    nested = {"partitions": [COLUMNS, PAIRS, HALVES], "weights": (0.9, 0.05, 0.05)}
    assert worst_fdr(fdr=0.4, non_nulls=set(), coupled=True, **nested) < 0.2
    monkeypatch.setattr(room, "finest_groups", lambda E, parents, c: [e >= c for e in E])
    assert worst_fdr(fdr=0.4, non_nulls=set(), coupled=True, **nested) > 0.45


@pytest.mark.parametrize(
    "options", [{"partitions": [[0, 1, 1], [0, 0, 1]]}, {"weights": (0.5, 0.6)}, {"W": [[1, 2, 3]]}]
)
def test_what_does_not_fit_together_is_refused(options):
    given = {"W": [[1, 2, 3], [1, 2]], "partitions": [[0, 1, 2], [0, 0, 1]], "weights": None} | options
    if "partitions" in options:
        given["W"] = [[1, 2], [1, 2]]
    with pytest.raises(InputError, match="divides|add up to 1|expected W"):
        localise(given["W"], given["partitions"], 0.1, weights=given["weights"])
