"""Knockoffs of columns and of groups in one answer: near copies, a tree that was given, and what is said of them."""

import numpy as np
import pytest

from knockoffs import KnockoffSelector
from knockoffs.errors import InputError
from knockoffs.record import record_selection


def copies(seed=0, n=400, n_blocks=24, size=2, n_signals=12, signal=0.5, noise=0.2):
    """Blocks of near copies, the first of them with a signal in their first column; and the signals."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_blocks)).repeat(size, axis=1) + noise * rng.standard_normal((n, n_blocks * size))
    causal = size * np.arange(n_signals)
    return X, signal * X[:, causal].sum(axis=1) + rng.standard_normal(n), causal


OPTIONS = {"feature_model": "gaussian", "method": "knockoffs", "verdict": False, "random_state": 0}


@pytest.fixture(scope="module")
def joined():
    X, y, causal = copies()
    return KnockoffSelector(0.1, **OPTIONS).fit(X, y), X, y, causal


def test_near_copies_are_found_as_groups_where_columns_are_not(joined):
    selector, X, y, causal = joined
    found = [set(one.features) for one in selector.discoveries_]
    covered = [any(f"x{j}" in group for group in found) for j in causal]
    assert np.mean(covered) >= 0.9
    assert any(len(group) == 2 for group in found)
    assert all(len({int(name[1:]) // 2 for name in group}) == 1 for group in found)  # a block, or a column of one
    named = set().union(*found)
    assert {f"x{j}" for j in np.flatnonzero(selector.get_support())} == named
    assert set(np.flatnonzero(selector.q_values_ <= 0.1)) == set(np.flatnonzero(selector.get_support()))
    assert "24 groups" in selector.selection_.notes["resolution"]
    alone = KnockoffSelector(0.1, resolution="columns", **OPTIONS).fit(X, y)
    assert alone.discoveries_ is None
    assert np.array_equal(alone.W_, selector.W_)  # columns have the same knockoffs in both


def test_what_is_said_is_the_false_discovery_rate_of_discoveries(joined):
    selector = joined[0]
    said = selector.selection_.explain()
    assert "at most 10% of the discoveries are false" in said
    assert "chance that any" not in said
    assert "false discovery rate 0.1 of features and groups" in str(selector.selection_)
    record = record_selection(selector.selection_, selector.table_, {}, {})
    assert all(one["p_value"] is None for one in record.discoveries)
    assert selector.to_frame(of="discoveries")["e_value"].to_numpy().min() > 0


def test_columns_without_near_copies_are_judged_alone():
    X, y, _ = copies(n_blocks=48, size=1)
    chosen = KnockoffSelector(0.1, **OPTIONS).fit(X, y)
    assert chosen.discoveries_ is None
    assert np.array_equal(chosen.q_values_, KnockoffSelector(0.1, resolution="columns", **OPTIONS).fit(X, y).q_values_)


@pytest.mark.parametrize("options", [{"offset": 0}, {"level": "post_hoc"}, {"estimator": "forest"}])
def test_where_groups_cannot_be_joined_columns_are_judged_alone(options):
    X, y, _ = copies(n=150)
    given = OPTIONS | options
    assert KnockoffSelector(0.1, **given).fit(X, y).discoveries_ is None


def test_the_groups_of_a_tree_are_those_of_its_depths():
    X, y, causal = copies(signal=1.0)
    tree = [[[f"x{2 * b}", f"x{2 * b + 1}"] for b in range(start, start + 2)] for start in range(0, 24, 2)]
    selector = KnockoffSelector(0.1, groups=tree, **OPTIONS).fit(X, y)
    assert "24 groups and 12 groups" in selector.selection_.notes["resolution"]
    assert np.mean([selector.get_support()[j] for j in causal]) >= 0.9
    with pytest.raises(InputError, match="level='fixed'"):
        KnockoffSelector(0.1, groups=tree, level="post_hoc", **OPTIONS).fit(X, y)


def test_a_covariate_is_in_no_group(joined):
    _, X, y, _ = joined
    beside = KnockoffSelector(0.1, covariates=["x1"], **OPTIONS).fit(X, y)
    assert all("x1" not in one.features for one in beside.discoveries_)
    assert beside.selection_.notes["resolution"].startswith("47 features")
