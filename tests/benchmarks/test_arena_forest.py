"""The forest that Boruta is run with in the arena grows the trees of scikit-learn."""

import shutil

import numpy as np
import pytest
from benchmarks.arena.designs import draw
from benchmarks.arena.forest import Forest, importances
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
KINDS = ["ar_linear", "mixed_linear", "counts_linear", "ar_logistic", "ar_multinomial", "hmm_multinomial"]


def drawn_rows(n, trees, rng):
    return np.array([np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(trees)])


@pytest.mark.parametrize("design", KINDS)
def test_each_tree_is_that_of_scikit_learn(design):
    """Cuts at the root are the same; all cuts explain as much, where ties may be cut in another column."""
    data = draw(design, 0)
    X, rng = np.asarray(data.X, dtype=float), np.random.default_rng(1)
    n, d = X.shape
    counts = drawn_rows(n, 20, rng)
    kind = DecisionTreeClassifier if data.classes else DecisionTreeRegressor

    def theirs(depth):
        fitted = [kind(max_depth=depth, random_state=0).fit(X, data.y, sample_weight=one) for one in counts]
        return n * np.array([tree.tree_.compute_feature_importances(normalize=False) for tree in fitted])

    root = importances(X, data.y, counts, 1, d, data.classes, rng)
    np.testing.assert_allclose(root, theirs(1), rtol=1e-9, atol=1e-9)
    for depth in (2, 5):
        ours = importances(X, data.y, counts, depth, d, data.classes, rng).sum(axis=1)
        same = np.isclose(ours, theirs(depth).sum(axis=1), rtol=1e-9)
        assert same.mean() >= (1 if depth == 2 else 0.7)  # a tie at an upper level changes what is below it


def test_a_column_of_one_value_is_never_cut_and_others_are_looked_for():
    rng = np.random.default_rng(0)
    X = np.zeros((60, 40))
    X[:, 7] = rng.standard_normal(60)
    y = (X[:, 7] > 0).astype(int)
    ours = importances(X, y, drawn_rows(60, 50, rng), 5, 6, True, rng)
    assert (ours[:, 7] > 0).all()  # six columns are tried, and more until one has two values
    assert not np.delete(ours, 7, axis=1).any()


def test_what_the_source_cannot_hold_is_refused():
    with pytest.raises(ValueError, match="at most 4096 rows"):
        Forest(2).fit(np.zeros((5000, 2)), np.zeros(5000))
