"""Rows that depend on each other are seen and named with what to type; sorted tables and chance are not."""

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

from knockoffs import KnockoffSelector, KnockoffWarning
from knockoffs.diagnostics.rows import find_dependence, local_correlation
from knockoffs.table.table import read_table
from knockoffs.table.target import as_target


def seen(X, y):
    table = read_table(X)
    return find_dependence(table, as_target(y, table))


def independent(rng, n=400, d=5):
    X = rng.standard_normal((n, d))
    return X, X[:, 0] + rng.standard_normal(n)


def test_rows_in_any_order_are_no_dependence(rng):
    """Sorted by a column, by the target or by classes: a trend, and nothing beyond it."""
    X, y = independent(rng)
    for order in (np.arange(400), np.argsort(X[:, 0]), np.argsort(y)):
        assert seen(X[order], y[order]) is None
    classes = np.digitize(y, [-1.0, 1.0])
    order = np.argsort(classes, kind="stable")
    assert seen(X[order], classes[order]) is None


def test_rows_that_few_values_let_coincide_are_no_copies(rng):
    X = rng.integers(3, size=(400, 4)).astype(float)
    assert seen(X, rng.integers(2, size=400)) is None
    X, y = independent(rng)
    assert seen(X.round(0), y.round(0)) is None


def test_a_table_sorted_by_several_columns_of_few_values_is_no_dependence(rng):
    """As the passengers of a ship, by class, age and sex; y is no sum of functions of them."""
    X = rng.integers(0, [4, 2, 3], size=(1200, 3)).astype(float)
    y = (rng.random(1200) < 0.15 + 0.6 * (X[:, 0] == 1) * X[:, 1]).astype(int)
    order = np.lexsort(X.T)
    assert seen(X[order], y[order]) is None


def test_copies_are_counted_and_each_has_its_set(rng):
    X, y = independent(rng, 100)
    X[3, 2] = np.nan
    rows = rng.permutation(np.repeat(np.arange(100), 2))
    found = seen(X[rows], y[rows])
    assert found.sentence.startswith("100 of 200 rows equal an earlier row") and "clusters=" in found.sentence
    assert (found.set_of[rows.argsort(kind="stable")].reshape(100, 2).T == found.set_of[np.argsort(rows)[::2]]).all()


def test_visits_of_a_patient_share_values_and_a_column_in_other_units_does_not(rng):
    X, y = independent(rng)
    patient = rng.permutation(np.repeat(np.arange(100), 4))
    X[:, 1:3] = rng.standard_normal((100, 2))[patient]
    found = seen(X, y)
    assert "Rows come in 100 sets that share 'x1', 'x2'" in found.sentence and "clusters=" in found.sentence
    assert len(np.unique(np.column_stack([found.set_of, patient]), axis=0)) == 100
    X[:, 2] = np.exp(X[:, 1])
    assert seen(X, y) is None


@pytest.mark.parametrize("name", ["Subject", "patient_id", "famID", "clinic"])
@pytest.mark.parametrize("kind", ["number", "survival"])
def test_a_column_called_like_a_patient_with_several_rows_each_is_asked_about(name, kind, rng):
    X, y = independent(rng, 120, 3)
    frame = pd.DataFrame(X, columns=list("abc"))
    frame[name] = rng.permutation(np.repeat(np.arange(30), 4)) + 300
    table = read_table(frame)
    found = find_dependence(table, as_target(y if kind == "number" else (np.exp(y), y > -1), table))
    assert found.sentence.startswith(f"Column '{name}' has 30 values, 4 rows each.")
    assert f"use clusters='{name}' (--clusters {name})." in found.sentence
    assert np.bincount(found.set_of).tolist() == [4] * 30
    again = np.append(np.flatnonzero(frame[name] != 305), [0, 0])  # a visit fewer here, more there
    assert "about 4 rows each" in find_dependence(table.rows(again), as_target(y[again], table.rows(again))).sentence


def test_labels_of_a_panel_are_asked_about_and_ordinary_labels_and_numbers_are_not(rng):
    X, y = independent(rng, 200, 3)
    states = rng.permutation(np.repeat([f"state {k}" for k in range(50)], 4))
    frame = pd.DataFrame(X, columns=list("abc"))
    assert "Column 'area' has 50 values, 4 rows each" in seen(frame.assign(area=states), y).sentence
    drawn = np.array([f"city {k}" for k in range(50)])[rng.integers(50, size=200)]
    for other in (
        {"area": drawn},
        {"area": np.where(states == "state 7", "state 8", states)},  # one with twice as many rows
        {"school": 8 + rng.binomial(12, 0.4, size=200)},  # years
        {"age": np.repeat(np.arange(20, 70), 4)},  # a number of a designed table
        {"subject": rng.permutation(np.repeat(list("abcde"), 40))},  # five topics
        {"acid": rng.permutation(np.repeat(np.arange(50), 4))},
    ):
        assert seen(frame.assign(**other), y) is None, other


@pytest.mark.parametrize("kind", ["number", "classes"])
def test_rows_in_time_name_the_columns_that_change_slowly(kind, rng):
    slow = lfilter([1], [1, -0.9], rng.standard_normal((800, 3)), axis=0)
    X = np.column_stack([slow[:, :2], rng.standard_normal((800, 2))])
    y = X[:, 0] + 2 * slow[:, 2]
    found = seen(X, y if kind == "number" else (y > 0) * 1)
    assert found.set_of is None and "'x0'" in found.sentence and "'x1'" in found.sentence
    assert "'x2'" not in found.sentence and "order=" in found.sentence and "clusters=" in found.sentence
    assert seen(X, X[:, 0] + rng.standard_normal(800)) is None  # noise that is not slow does no harm


def test_a_date_of_consecutive_days_is_the_order_to_use(rng):
    """A column that grows with every row, or falls; of rows that do not depend on it nothing is said."""
    slow = lfilter([1], [1, -0.9], rng.standard_normal((400, 2)), axis=0)
    days = pd.date_range("2020-01-31", periods=400)
    for dates in (days, days[::-1]):
        frame = pd.DataFrame({"x": slow[:, 0], "date": dates})
        assert "use order='date' (--order)" in seen(frame, slow.sum(axis=1)).advice
        assert seen(frame, rng.standard_normal(400)) is None
    assert "name it in order= (--order)" in seen(frame[["x"]], slow.sum(axis=1)).advice
    with pytest.warns(KnockoffWarning, match="use order='date'"):
        KnockoffSelector(random_state=0, verdict=False).fit(frame, slow.sum(axis=1))


def test_steps_over_two_rows_by_hand():
    """Squares of steps over one row: 1, 1, 9; over two: 4, 4. Their means are 11/3 and 4."""
    assert local_correlation(np.array([[0.0], [1.0], [2.0], [-1.0]]))[0] == pytest.approx(1 / 11)
    assert local_correlation(np.ones((5, 1)))[0] == 0


def test_fit_warns_with_what_to_type_and_not_where_it_was_typed(rng):
    X, y = independent(rng, 60)
    X, y, patient = np.repeat(X, 2, axis=0), np.repeat(y, 2), np.repeat(np.arange(60), 2)
    options = {"feature_model": "gaussian", "estimator": "lasso", "verdict": False}
    with pytest.warns(KnockoffWarning, match="60 of 120 rows equal an earlier row.*clusters="):
        KnockoffSelector(**options).fit(X, y)
    KnockoffSelector(clusters=patient, **options).fit(X, y)  # warnings are errors here
