"""Answers at the resolution the data allow: single features, or groups of which one matters."""

import numpy as np
import pytest
from tests.refusals import refuses

from knockoffs import KnockoffSelector
from knockoffs.conditional_tests.resolution import Discovery, discover
from knockoffs.conditional_tests.sequential import Randomization
from knockoffs.conditional_tests.tree import column_tree


@pytest.fixture
def near_copies(rng):
    """y depends on one of two near copies (correlation .999) and on a column of its own; two columns are noise."""
    x = rng.standard_normal((300, 4))
    X = np.column_stack([x[:, 0], x[:, 0] + 0.04 * rng.standard_normal(300), x[:, 1:]])
    return X, x[:, 0] + x[:, 1] + rng.standard_normal(300)


def test_near_copies_are_one_discovery_and_other_columns_stand_alone(near_copies):
    selector = KnockoffSelector(feature_model="gaussian", verdict=False).fit(*near_copies)
    assert {found.features for found in selector.discoveries_} == {("x0", "x1"), ("x2",)}
    assert selector.get_support().tolist() == [True, True, True, False, False]
    assert "2 discoveries among 5 features: x2; one of x0, x1. " in selector.explain()
    assert "The chance that any discovery is false is at most 10%" in selector.explain()
    assert (selector.q_values_ <= 0.1).tolist() == selector.get_support().tolist()
    alone = KnockoffSelector(resolution="columns", feature_model="gaussian", verdict=False).fit(*near_copies)
    assert alone.discoveries_ is None
    assert alone.get_support().tolist() == [False, False, True, False, False]  # neither copy matters given the other


def test_noise_is_no_discovery(rng):
    X = rng.standard_normal((100, 4))
    selector = KnockoffSelector(verdict=False).fit(X, rng.standard_normal(100))
    assert selector.discoveries_ == () and not selector.get_support().any()
    assert "the p-value of all features together is" in selector.explain()
    assert len(set(selector.q_values_)) == 1  # one group was tested: all features


def test_one_column(rng):
    x = rng.standard_normal((100, 1))
    selector = KnockoffSelector(verdict=False).fit(x, x[:, 0] + rng.standard_normal(100))
    assert [found.features for found in selector.discoveries_] == [("x0",)]


def test_a_resolution_that_is_none_is_refused(near_copies):
    refuses("Did you mean 'columns'", KnockoffSelector(resolution="column").fit, *near_copies)


def test_a_model_that_cannot_draw_groups_tests_single_features(rng):
    X = rng.integers(2, size=(200, 4)).astype(float)
    y = np.where(rng.random(200) < 0.1, 1 - X[:, 0], X[:, 0])
    selector = KnockoffSelector(random_state=0, feature_model="naive_bayes", verdict=False).fit(X, y)
    assert selector.discoveries_ is None and selector.get_support()[0]
    assert "cannot draw groups" in selector.selection_.notes["resolution"]


@pytest.mark.parametrize("groups", [{"pair": ["x0", "x1"]}, None])
def test_frames_list_features_and_discoveries(near_copies, groups):
    pl = pytest.importorskip("polars")
    X = pl.DataFrame(near_copies[0], schema=[f"x{j}" for j in range(5)])
    selector = KnockoffSelector(random_state=0, feature_model="gaussian", groups=groups, verdict=False)
    selector.fit(X, near_copies[1])
    features, found = selector.to_frame(), selector.to_frame("discoveries")
    assert isinstance(features, pl.DataFrame) and isinstance(found, pl.DataFrame)
    pair = "one of x0, x1" if groups is None else "pair"
    assert set(found["discovery"]) == {"x2", pair}
    assert set(features["discovery"].head(2 if groups else 3)) == {"x2", pair}
    assert features["q_value"].is_sorted()
    refuses("Did you mean 'features'", selector.to_frame, "feature")


def test_the_answer_in_words_is_short_and_speaks_of_one_error_rate(near_copies):
    from knockoffs.report.facts import Facts
    from knockoffs.report.page import page

    selector = KnockoffSelector(feature_model="gaussian", verdict=False).fit(*near_copies)
    selection = selector.selection_
    assert repr(selection) == "Selection(method='conditional_test', fdr=0.1: " + selector.explain().split(". ")[0] + ")"
    written = page(Facts(selection)) + selector.explain() + str(dict(selection.notes))
    for words in ("false discovery rate", "FDR", "Benjamini"):
        assert words not in written
    assert "Goeman" in written and "one of x0, x1" in written


def test_the_tree_sees_squares_labels_and_their_indicators(rng):
    x, z = rng.standard_normal((2, 400))
    label = rng.integers(4, size=400).astype(float)
    X = np.column_stack([x, x**2, label, label == 2, z])
    tree = column_tree(X, np.array([False, False, True, False, False]), np.arange(5))
    assert {(0, 1), (2, 3)} <= {node.features for node in tree.walk()}


def test_sums_lie_with_their_parts_rather_than_with_what_they_resemble(rng):
    """s = a + b + a little: given the rest each of the three is determined; t resembles a more, and is not."""
    a, b, e, f = rng.standard_normal((4, 500))
    X = np.column_stack([a, b, a + b + 0.05 * e, a + 0.7 * f])
    tree = column_tree(X, np.zeros(4, bool), np.arange(4))
    assert [child.features for child in tree.children] == [(3,), (0, 1, 2)]


def test_columns_without_spread_or_with_few_rows_have_a_tree(rng):
    X = np.column_stack([np.ones(8), rng.standard_normal((8, 12))])
    tree = column_tree(X, np.zeros(13, bool), np.arange(13))
    assert tree.features == tuple(range(13)) and tree.n_leaves == 13
    copies = column_tree(X[:, [1, 1, 1]], np.zeros(3, bool), np.arange(3))
    assert copies.n_leaves == 3


def test_features_of_several_columns_are_leaves(rng):
    tree = column_tree(rng.standard_normal((50, 4)), np.zeros(4, bool), np.array([0, 0, 1, 2]))
    assert sorted(node.features for node in tree.walk() if not node.children) == [(0,), (1,), (2,)]


def test_the_sentence_names_all_features():
    assert Discovery(("a", "b", "c"), 0.01, 0.02, 3.0).sentence == "One of a, b, c matters; the data cannot say which."


def test_a_discovery_has_a_score_that_is_as_clear_as_its_p_value():
    """Draws with a few huge values have a mean above the observed statistic; its rank counts."""

    class Heavy:
        X = np.zeros((100, 2))

        def test_all(self, groups, n_jobs, looks):
            return [Randomization(0.01, 999, -0.03) for _ in groups]

        def notes_on(self, groups):
            return {}

    found = discover(Heavy(), ["a", "b"], np.arange(2), 0.1, tree=("a", "b"))
    assert [one.features for one in found.discoveries] == [("a",), ("b",)]
    assert np.allclose([one.score for one in found.discoveries], 2.326, atol=1e-3)
