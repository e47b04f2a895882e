"""The knockoff filter and its q-values are their definitions, on many random W; levels that are none: tests/hostile."""

import numpy as np
import pytest

from knockoffs.filter import RULES, false_discovery_proportion, knockoff_filter, knockoff_threshold, power, q_values


def threshold_by_definition(W, q, offset):
    """min{t in {|W_j|} without 0 : (offset + #{W_j <= -t}) / max(#{W_j >= t}, 1) <= q}, or None."""
    for t in sorted({abs(w) for w in W if w != 0}):
        below, above = sum(w <= -t for w in W), sum(w >= t for w in W)
        if above and (offset + below) / above <= q:
            return t
    return None


def random_W(rng):
    d = rng.integers(1, 25)
    W = rng.integers(-4, 6, size=d).astype(float)  # many ties of mixed sign, many zeros
    kind = rng.integers(4)
    if kind == 1:
        W += rng.normal(size=d) * (rng.random(d) < 0.5)
    if kind == 2:
        W[rng.random(d) < 0.2] = np.inf
        W[rng.random(d) < 0.1] = -np.inf
    return W


def test_filter_is_the_definition_on_many_random_W(rng):
    levels = np.array([0.05, 0.1, 0.2, 0.25, 0.3, 0.5, 0.9])
    for _ in range(20_000):
        W, q, offset = random_W(rng), levels[rng.integers(len(levels))], int(rng.integers(2))
        expected = threshold_by_definition(W.tolist(), q, offset)
        chosen = knockoff_filter(W, q, offset=offset)
        if expected is None:
            assert knockoff_threshold(W, q, offset=offset) == np.inf and not chosen.any()
        else:
            assert knockoff_threshold(W, q, offset=offset) == expected
            assert (chosen == (W >= expected)).all()
        assert not chosen[W == 0].any()


def test_q_value_is_the_smallest_level_that_selects(rng):
    for _ in range(400):
        W, offset = random_W(rng), int(rng.integers(2))
        q = q_values(W, offset=offset)
        counts = [(offset + b) / a for a in range(1, len(W) + 1) for b in range(len(W) + 1)]
        levels = sorted({level for level in counts if 0 < level < 1})
        for level in levels:
            assert ((q <= level) == knockoff_filter(W, level, offset=offset)).all()
            t = threshold_by_definition(W.tolist(), level, offset)
            assert ((q <= level) == (np.zeros(len(W), bool) if t is None else t <= W)).all()
        assert np.isinf(q[W <= 0]).all()


def test_ten_plus_and_ten_minus_select_nothing():
    W = np.repeat([1.0, -1.0], 10)
    assert knockoff_threshold(W, 0.1) == np.inf
    assert not knockoff_filter(W, 0.1).any()


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_rules_are_antisymmetric_and_follow_the_sign(rule, rng):
    Z, Z_tilde = rng.exponential(size=(2, 50))
    Z_tilde[:5] = Z[:5]
    W = rule(Z, Z_tilde)
    np.testing.assert_allclose(rule(Z_tilde, Z), -W, rtol=1e-12)
    assert (np.sign(W) == np.sign(Z - Z_tilde)).all()
    W = rule(Z - 1, Z_tilde - 1)  # scores of accuracy drops can be negative
    np.testing.assert_allclose(rule(Z_tilde - 1, Z - 1), -W, rtol=1e-12)
    assert (W * np.sign(Z - Z_tilde) >= 0).all()


def test_signed_maximum_negates():
    assert RULES["signed_maximum"](np.array([1.0]), np.array([4.0]))[0] == -4.0


def test_fdp_and_power_by_hand():
    selected, true = [1, 1, 1, 0], [1, 0, 0, 1]
    assert false_discovery_proportion(selected, true) == 2 / 3
    assert power(selected, true) == 1 / 2
    assert false_discovery_proportion([0, 0], [1, 0]) == 0.0
