"""Answers at the resolution the data allow: single features, or groups of which one matters."""

import numpy as np
import pytest

from knockoffs import KnockoffSelector
from knockoffs.conditional_tests.column_tree import association, column_tree
from knockoffs.conditional_tests.resolution import Discovery
from knockoffs.errors import InputError


@pytest.fixture
def near_copies(rng):
    """y depends on one of two near copies (correlation .999) and on a column of its own; two columns are noise."""
    x = rng.standard_normal((300, 4))
    X = np.column_stack([x[:, 0], x[:, 0] + 0.04 * rng.standard_normal(300), x[:, 1:]])
    return X, x[:, 0] + x[:, 1] + rng.standard_normal(300)


def test_near_copies_are_one_discovery_and_other_columns_stand_alone(near_copies):
    selector = KnockoffSelector(resolution="auto", random_state=0, feature_model="gaussian").fit(*near_copies)
    assert {found.features for found in selector.discoveries_} == {("x0", "x1"), ("x2",)}
    assert selector.get_support().tolist() == [True, True, True, False, False]
    assert "x0 or x1 matters; the data cannot say which." in selector.explain()
    assert "probability of any false discovery is at most 10%" in selector.explain()
    alone = KnockoffSelector(random_state=0, feature_model="gaussian").fit(*near_copies)
    assert alone.discoveries_ is None
    assert alone.get_support().tolist() == [False, False, True, False, False]  # neither copy matters given the other


def test_noise_is_no_discovery(rng):
    X = rng.standard_normal((100, 4))
    selector = KnockoffSelector(resolution="auto", random_state=0).fit(X, rng.standard_normal(100))
    assert selector.discoveries_ == () and not selector.get_support().any()
    assert "all features together are not significant" in selector.explain()


def test_one_column(rng):
    x = rng.standard_normal((100, 1))
    selector = KnockoffSelector(resolution="auto", random_state=0).fit(x, x[:, 0] + rng.standard_normal(100))
    assert [found.features for found in selector.discoveries_] == [("x0",)]


def test_a_resolution_that_is_none_is_refused(near_copies):
    with pytest.raises(InputError, match="Did you mean 'columns'"):
        KnockoffSelector(resolution="column").fit(*near_copies)


def test_knockoffs_say_that_they_have_no_resolution(rng):
    X = rng.standard_normal((200, 50))
    selector = KnockoffSelector(resolution="auto", random_state=0, feature_model="gaussian", verdict=False)
    selection = selector.fit(X, X[:, 0] + rng.standard_normal(200)).selection_
    assert selection.method == "knockoffs" and "no effect" in selection.notes["resolution"]


def test_association_sees_squares_labels_and_their_indicators(rng):
    x, z = rng.standard_normal((2, 400))
    label = rng.integers(4, size=400).astype(float)
    X = np.column_stack([x, x**2, label, label == 2, z])
    found = association(X, np.array([False, False, True, False, False]))
    assert found[0, 1] > 0.95 and found[2, 3] > 0.95
    others = found[np.triu_indices(5, 1)]
    assert (np.sort(others)[:-2] < 0.25).all()
    np.testing.assert_allclose(found, found.T)
    tree = column_tree(X, np.array([False, False, True, False, False]), np.arange(5))
    assert {(0, 1), (2, 3)} <= {node.features for node in tree.walk()}


def test_features_of_several_columns_are_leaves(rng):
    tree = column_tree(rng.standard_normal((50, 4)), np.zeros(4, bool), np.array([0, 0, 1, 2]))
    assert sorted(node.features for node in tree.walk() if not node.children) == [(0,), (1,), (2,)]


def test_the_sentence_names_all_features():
    assert Discovery(("a", "b", "c"), 0.01, 0.02, 3.0).sentence == "One of a, b, c matters; the data cannot say which."
