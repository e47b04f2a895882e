"""Exact, by enumeration: given |W| and the signs of the non-null features, the signs of the nulls are fair coins."""

from functools import cache, partial
from itertools import combinations, product

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.filter.bounds import (
    FalseDiscoveryBounds,
    before_negative,
    crossing_probability,
    fdp_bounds,
    k_fwer,
    pfer,
)

EXACT = 1 + 1e-9
SIZES = {"distinct": [6, 5, 4, 3, 2, 1], "tied": [3, 3, 2, 2, 1, 1], "a_zero": [5, 4, 3, 2, 1, 0]}


def worst_mean(quantity, sizes, roles=None):
    """Largest expectation of quantity(W, nulls) over the roles of the features: null (0) or non-null."""
    means = []
    for role in product((0, 1, -1), repeat=len(sizes)) if roles is None else roles:
        choices = [(1, -1) if sign == 0 else (sign,) for sign in role]
        draws = [np.multiply(sizes, signs).astype(float) for signs in product(*choices)]
        means.append(np.mean([quantity(W, np.equal(role, 0)) for W in draws]))
    return max(means)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("v", [1, 2, 3])
def test_pfer_exactly(sizes, v):
    worst = worst_mean(lambda W, nulls: (pfer(W, v) & nulls).sum(), sizes)
    assert worst <= v * EXACT
    assert worst > 0.4 * v or sizes != SIZES["distinct"]


def test_one_negative_too_many_is_seen():
    assert worst_mean(lambda W, nulls: (pfer(W, 2) & nulls).sum(), SIZES["distinct"]) > 1.5


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize(("k", "level"), [(1, 0.5), (2, 0.3), (3, 0.15), (5, 0.05)])
def test_k_fwer_exactly(sizes, k, level):
    assert worst_mean(lambda W, nulls: (k_fwer(W, k, level) & nulls).sum() >= k, sizes) <= level * EXACT


def test_k_fwer_takes_the_largest_v():
    # P(N_2 >= 5) = 7/64 is the last below 0.12: k heads before the second tail
    W = np.array([9.0, -8, 7, 6, 5, 4, -3, 2])
    assert (k_fwer(W, 5, 0.12) == before_negative(W, 2)).all()
    assert (k_fwer(W, 5, 0.109) == before_negative(W, 1)).all()


def test_randomised_rules_spend_the_whole_promise(rng):
    W, n = np.array([1.0, -1e-3]), 10_000
    # v = 0.3: the first feature with probability 0.3; 5 standard errors are 0.023, false alarm about 1e-6
    assert abs(np.mean([pfer(W, 0.3, rng=rng)[0] for _ in range(n)]) - 0.3) < 0.023
    # k = 1 at 0.05: P(N_1 >= 1) = 1/2, so v = 1 with probability 0.1; 5 standard errors are 0.015
    assert abs(np.mean([k_fwer(W, 1, 0.05, rng=rng)[0] for _ in range(n)]) - 0.1) < 0.015
    assert not pfer(W, 0.3).any() and not k_fwer(W, 1, 0.05).any()


def worst_set_is_wrong(bounds, nulls):
    """Whether some set has more nulls than its bound: the nulls themselves, cut at any size, are the worst sets."""
    order = np.argsort(-bounds.W, kind="stable")
    ranked = [j for j in order if nulls[j] and bounds.W[j] > 0]
    for size in range(1, len(ranked) + 1):
        R = np.zeros(len(bounds.W), dtype=bool)
        R[ranked[:size]] = True
        if bounds.false_features(R) < size:
            return True
    return False


@pytest.mark.parametrize("how", ["closed_testing", "exact", "closed_form"])
@pytest.mark.parametrize("confidence", [0.6, 0.8, 0.9])
@pytest.mark.parametrize("sizes", [SIZES["distinct"][1:], SIZES["tied"][1:], SIZES["a_zero"][1:]])
def test_bounds_fail_together_with_at_most_the_stated_probability(how, confidence, sizes):
    of_signs = cache(lambda signs: fdp_bounds(np.multiply(sizes, signs).astype(float), confidence, how=how))

    def wrong(W, nulls):
        return worst_set_is_wrong(of_signs(tuple(np.sign(W))), nulls)

    assert worst_mean(wrong, sizes) <= (1 - confidence) * EXACT


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95])
def test_bounds_of_ten_features(confidence):
    sizes = np.arange(10, 0, -1)
    by_negatives = {n: fdp_bounds(sizes * np.where(sizes <= n, -1.0, 1.0), confidence) for n in range(11)}

    def wrong(W, nulls, less=0, last=0):
        bounds = by_negatives[int((W < 0).sum())]  # the numbers depend on the sizes and signs by their counts only
        fewer = tuple((m + last, allowed - less) for m, allowed in bounds.fewer)
        return worst_set_is_wrong(FalseDiscoveryBounds(W, confidence, bounds.allowed - less, fewer), nulls)

    assert worst_mean(wrong, sizes, [(0,) * 10, (1, 1, 1) + (0,) * 7]) <= (1 - confidence) * EXACT
    # planted: one null feature fewer everywhere; and the numbers of small sets of hypotheses for all of them
    assert worst_mean(partial(wrong, less=1), sizes, [(0,) * 10]) > 1 - confidence
    assert worst_mean(partial(wrong, last=10), sizes, [(0,) * 10]) > 1 - confidence


def survives(index, W, bounds):
    """Whether the local test of a set of hypotheses lets it stand, by its definition."""
    n_coins = sum(W[j] != 0 for j in index)
    allowed = next((allowed for m, allowed in bounds.fewer if n_coins <= m), bounds.allowed)
    positives = negatives = 0
    for size in sorted({abs(W[j]) for j in index if W[j]}, reverse=True):
        positives += sum(W[j] == size for j in index)
        negatives += sum(W[j] == -size for j in index)
        if positives > allowed[negatives]:
            return False
    return True


@pytest.mark.parametrize("how", ["exact", "closed_testing"])
@pytest.mark.parametrize("confidence", [0.5, 0.7, 0.9])
def test_bounds_are_closed_testing(how, confidence):
    """Against all 2^d intersections, with the local tests that the numbers allowed stand for; ties and zeros too."""
    rng = np.random.default_rng(0)
    for sizes in ([*range(1, 9)], [1, 1, 2, 2, 3, 3, 4, 4], [0, 0, 1, 2, 3, 4, 5, 5]):
        for _ in range(3):
            W = rng.permutation(np.array(sizes, dtype=float)) * rng.choice([1, 1, 1, -1], size=8)
            bounds = fdp_bounds(W, confidence, how=how)
            alive = [set(J) for k in range(9) for J in combinations(range(8), k) if survives(J, W, bounds)]
            for _ in range(10):
                R = rng.random(8) < 0.6
                assert bounds.false_features(R) == max(len(J & set(np.flatnonzero(R))) for J in alive)


def test_each_way_is_never_above_the_one_before(rng):
    """Closed testing, then interpolation alone, then Katsevich and Ramdas; and each is below the next somewhere."""
    below = np.zeros(2)
    for seed in range(12):
        W = np.where(np.arange(60) < 20, 3.0, 0.0) + rng.normal(size=60)
        closed, exact, form = (fdp_bounds(W, 0.9, how=how) for how in ("closed_testing", "exact", "closed_form"))
        sets = [t <= W for t in np.sort(W[W > 0])] + [rng.random(60) < 0.4 for _ in range(10)]
        found = np.array([[bounds.false_features(R) for R in sets] for bounds in (closed, exact, form)])
        assert (np.diff(found, axis=0) >= 0).all(), seed
        below += (np.diff(found, axis=0) > 0).sum(axis=1)
    assert (below > 0).all()


@pytest.mark.parametrize("d", [1, 4, 9])
@pytest.mark.parametrize("slope", [0.5, 1.0, 1.5, 3.0])
def test_crossing_probability_by_enumeration(slope, d):
    allowed = np.floor(slope * np.arange(1, d + 2)).astype(int)

    def crosses(coins):
        heads = np.cumsum(coins)
        return (heads > allowed[np.arange(1, d + 1) - heads]).any()

    assert np.isclose(crossing_probability(allowed, d), np.mean([crosses(c) for c in product((0, 1), repeat=d)]))


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("d", [5, 50, 400])
def test_closed_form_is_valid_and_the_exact_one_never_allows_more(confidence, d):
    W = np.arange(1.0, d + 1)
    closed, exact = (fdp_bounds(W, confidence, how=how).allowed for how in ("closed_form", "exact"))
    assert crossing_probability(closed, d) <= 1 - confidence
    assert crossing_probability(exact, d) <= 1 - confidence
    assert (exact <= closed).all() and exact[-1] < 0.75 * closed[-1] + 2


def test_path_is_the_bound_of_each_of_its_sets(rng):
    for i in range(200):
        W = rng.integers(-4, 9, size=20) + rng.normal(size=20) * rng.integers(0, 2)
        bounds = fdp_bounds(W, 0.8, how=("closed_form", "closed_testing")[i % 2])
        t, size, fdp = bounds.path()
        assert [(W >= bound).sum() for bound in t] == size.tolist()
        assert np.allclose(fdp, [bounds.fdp(bound <= W) for bound in t])


def test_path_and_sets_by_hand():
    W = [9.0, 8, 7, 6, 5, 4, 3, -2, 1]
    bounds = fdp_bounds(W, 0.95, how="closed_form")  # 4 before the first negative, 8 before the second
    t, size, fdp = bounds.path()
    assert t.tolist() == list(range(1, 10)) and size.tolist() == [8, 7, 7, 6, 5, 4, 3, 2, 1]
    assert np.allclose(fdp, [5 / 8, 4 / 7, 4 / 7, 4 / 6, 4 / 5, 1, 1, 1, 1])
    assert bounds.false_features([True] + [False] * 7 + [True]) == 2
    assert bounds.fdp([False] * 9) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pfer([1.0], 0), "v=0"),
        (lambda: k_fwer([1.0], 0, 0.1), "k=0"),
        (lambda: k_fwer([1.0], 1, 5), "level=5"),
        (lambda: fdp_bounds([1.0], 95), "confidence=95"),
        (lambda: fdp_bounds([1.0], 0.9, how="closed"), "Did you mean 'closed_form'"),
        (lambda: fdp_bounds([1.0], 0.9).fdp([True, False]), r"expected \(1,\)"),
    ],
)
def test_errors(call, message):
    with pytest.raises(InputError, match=message):
        call()
