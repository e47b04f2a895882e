"""Remedies are done until the knockoffs look good: a table for each that is broken before and good after."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri
from scipy.stats import rankdata

from knockoffs import KnockoffSelector
from knockoffs.defaults import repair_ways
from knockoffs.diagnostics.repair import judged, repair
from knockoffs.features.source import knockoff_source

pytestmark = pytest.mark.filterwarnings("ignore::knockoffs.KnockoffWarning")


def run(X, family="auto", options=None, kinds=None, seed=1):
    """Word before, and table, note and word after."""
    source = knockoff_source(family, options)
    table = source.read(X, kinds=kinds)
    before = judged(table, source, np.random.default_rng(seed), None).found
    table, ready = repair(table, source, repair_ways(source), rng=np.random.default_rng(seed))
    after = judged(table, ready, np.random.default_rng(seed + 1), None).found
    return before, table, ready.settled.notes["repair"], after


def linked(n, d, rng):
    return rng.standard_normal((n, d)) + 0.8 * rng.standard_normal((n, 1))


def test_transformation():
    before, _, said, after = run(np.exp(linked(600, 6, np.random.default_rng(0))), "gaussian")
    assert before.word == "broken" and after.word == "good"
    assert "as asked for: broken; normal scores of 'x" in said
    assert "Done: normal scores of" in said


def test_another_kind_by_a_model_that_heeds_kinds():
    """0/1 columns as Gaussians: the kinds were recognised, and the family does not ask for them."""
    rng = np.random.default_rng(1)
    before, _, said, after = run((linked(600, 6, rng) > 0).astype(float), "gaussian")
    assert before.word == "broken" and after.word == "good"
    assert "Done: a family that heeds kinds, for 'x" in said


def test_another_kind_for_numbers_that_are_codes():
    """Codes of regions taken for grades: the other columns neither rise nor fall with them."""
    rng = np.random.default_rng(2)
    region = rng.integers(4, size=1500)
    level = np.array([1.0, -1.0, -1.0, 1.0])[region]
    others = 0.8 * level[:, None] * [1.0, -1.0, 0.5] + rng.standard_normal((1500, 3))
    X = pd.DataFrame(np.column_stack([others, rng.standard_normal((1500, 2))]), columns=list("abcde"))
    X["region"] = region
    before, table, said, after = run(X, options={"n_classes": 1})
    assert before.word == "broken" and after.word == "good"
    assert "'region' is nominal" in said.split("Done: ")[1]
    assert table.columns[5].kind == "nominal" and table.columns[5].levels == (0, 1, 2, 3)
    assert table.decode(table.X)["region"].tolist() == region.tolist()


def test_more_classes():
    """Three clusters, one Gaussian."""
    rng = np.random.default_rng(3)
    centres = 4 * rng.standard_normal((3, 5))
    X = centres[rng.integers(3, size=700)] + rng.standard_normal((700, 5))
    before, _, said, after = run(X, "mixture", {"n_components": 1})
    assert before.word == "broken" and after.word == "good"
    assert "Done:" in said and ("family auto" in said or "classes" in said)


def test_a_group_for_twins():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((400, 6))
    X[:, 1] = X[:, 0] + 0.05 * X[:, 1]
    before, table, said, after = run(X, "gaussian")
    assert before.twins and not after.twins
    assert "Done: a group of 'x0', 'x1'" in said
    assert table.feature_names[0] == "x0 and x1" and table.feature_of.tolist() == [0, 0, 1, 2, 3, 4]


def test_fewer_columns():
    """One column follows the square of another; margins are normal, so that only the link is wrong."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((1000, 8))
    X[:, 7] = ndtri((rankdata(X[:, 0] ** 2 + 0.3 * X[:, 7]) - 0.5) / 1000)
    source = knockoff_source("gaussian")
    ways = repair_ways(source)
    only = type(ways)(source, {}, lambda *_: None)  # no other family at hand
    table, ready = repair(source.read(X), source, only, rng=np.random.default_rng(1))
    said = ready.settled.notes["repair"]
    assert "as asked for: broken" in said and "Done: without " in said
    assert 4 <= len(table.columns) < 8
    assert judged(table, ready, np.random.default_rng(2), None).found.word == "good"


def test_columns_left_out_are_not_selected_and_what_was_done_is_said():
    rng = np.random.default_rng(6)
    X = pd.DataFrame(linked(400, 6, rng), columns=list("abcdef"))
    X["g"] = X["a"] + 0.05 * rng.standard_normal(400)
    y = X["a"] - X["f"] + rng.standard_normal(400)
    options = {"repair": True, "fdr": 0.4, "method": "knockoffs", "estimator": "lasso", "random_state": 3}
    first = KnockoffSelector(feature_model="gaussian", drop=["b"], **options).fit(X, y)
    assert "a group of 'a', 'g'" in first.selection_.notes["repair"]
    assert first.table_.feature_names == ("a and g", "c", "d", "e", "f")
    assert first.get_support().shape == (7,) and not first.get_support()[1]
    assert first.get_support()[0] == first.get_support()[6]
    other = KnockoffSelector(feature_model="gaussian", drop=["b"], **options).fit(
        X, -y.to_numpy()[::-1]
    )  # y is not looked at
    pd.testing.assert_frame_equal(first.knockoffs_, other.knockoffs_)


def test_support_after_a_column_was_left_out(monkeypatch):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((300, 6))
    y = 3 * X[:, 5] + X[:, 4] + 0.1 * rng.standard_normal(300)

    def leave_out(table, source, ways, *, rng, n_jobs=None):
        return table.without(["x0"]), source

    monkeypatch.setattr("knockoffs.diagnostics.repair.repair", leave_out)
    selector = KnockoffSelector(0.5, repair=True, feature_model="gaussian", method="knockoffs", random_state=0).fit(
        X, y
    )
    assert selector.get_support().shape == (6,) and selector.get_support()[5] and not selector.get_support()[0]
    assert selector.knockoffs_.shape == (300, 5)


def test_where_nothing_helps_it_says_so():
    X = np.repeat(np.random.default_rng(2).standard_normal((150, 5)), 2, axis=0)  # every row twice
    before, _, said, after = run(X, "gaussian")
    assert before.word == after.word == "broken"
    assert "Nothing makes them look good" in said


def test_what_looks_good_is_kept():
    before, table, said, _ = run(linked(400, 6, np.random.default_rng(8)), "gaussian")
    assert before.word == "good" and not table.grouped
    assert said.endswith("as asked for: good. Done: nothing, they look good")
