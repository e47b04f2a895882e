"""Columns that others determine exactly are dropped by one argument, whatever the family and the method."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import make_classification
from tests.refusals import refuses

from knockoffs import KnockoffSelector
from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.features.source import knockoff_source, read_features
from knockoffs.table.redundancy import dependent_in_covariance, drop_dependent, find_relations
from knockoffs.table.table import read_table


def made_classes():
    """What make_classification gives: two of its twenty columns are combinations of two others."""
    X, y = make_classification(random_state=0, n_samples=1000)
    free = [j for j in range(20) if np.linalg.matrix_rank(np.delete(X, j, axis=1)) == np.linalg.matrix_rank(X) - 1]
    return pd.DataFrame(X, columns=[f"gene {j}" for j in range(20)]), y, free


def selector(feature_model, **options):
    options = {"estimator": "lasso", "random_state": 0, "verdict": False, "method": "knockoffs", **options}
    return KnockoffSelector(0.2, feature_model=feature_model, **options)


@pytest.mark.parametrize("feature_model", ["auto", "gaussian", "naive_bayes"])
def test_one_argument_takes_what_make_classification_gives(feature_model):
    X, y, free = made_classes()
    options = {"feature_model_options": {"n_classes": 1}} if feature_model != "gaussian" else {}
    with pytest.warns(KnockoffWarning, match="dropped as copies or exact combinations of other columns"):
        found = selector(feature_model, dependent="drop", **options).fit(X, y)
    left = set(found.selection_.feature_names)
    assert len(left) == 18 and {f"gene {j}" for j in free} <= left
    assert np.linalg.matrix_rank(X[sorted(left)]) == 18
    assert list(found.knockoffs_.columns) == list(found.selection_.feature_names)
    assert len(found.get_support()) == 20 and set(found.get_feature_names_out()) <= left
    assert found.selection_.notes["dependent"].startswith("dropped as copies or exact combinations")


def test_by_default_auto_drops_them_and_the_gaussian_names_a_smallest_set():
    X, y, _ = made_classes()
    with pytest.warns(KnockoffWarning, match=r"dropped as copies.*\(dependent='auto'\)"):
        found = selector("auto", feature_model_options={"n_classes": 1}).fit(X, y)
    assert len(found.W_) == 18
    with pytest.warns(KnockoffWarning) as said:
        found = selector("auto", feature_model_options={"n_classes": 1}, dependent="refuse").fit(X, y)
    assert len(found.W_) == 20
    assert "columns are copies or exact combinations of others" in str(said[0].message)  # before the work
    assert "nearly determine one another" in str(said[1].message)
    with pytest.raises(
        InputError, match=r"exact combinations.*\(drop=\[.*\]\), or pass dependent='drop' to the selector"
    ) as caught:
        selector("gaussian").fit(X, y)
    named = str(caught.value).split("(drop=[")[1].split("])")[0].replace("'", "").split(", ")
    assert len(named) == 2
    selector("gaussian", drop=named).fit(X, y)  # obeying it once is enough


def test_all_of_many_are_named_at_once():
    """Twelve sums: the message is long, and complete."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 13))
    X = np.hstack([X, X[:, :12] + X[:, 1:]])
    with pytest.raises(InputError) as caught:
        selector("gaussian").fit(X, X[:, 0] ** 2)
    assert f"drop={[f'x{j}' for j in range(13, 25)]!r}" in str(caught.value)


def test_dropping_is_the_same_as_a_table_without_them():
    X, y, _ = made_classes()
    with pytest.warns(KnockoffWarning, match="dropped"):
        found = selector("gaussian", dependent="drop").fit(X, y)
    without = selector("gaussian").fit(X[list(found.selection_.feature_names)], y)
    np.testing.assert_array_equal(found.W_, without.W_)


def test_a_table_without_relations_is_taken_as_it_is():
    X = np.random.default_rng(0).standard_normal((50, 5))
    table = read_table(X)
    assert drop_dependent(table) == (table, {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = X[:, 0] ** 2
        np.testing.assert_array_equal(
            selector("gaussian", dependent="drop").fit(X, y).W_, selector("gaussian").fit(X, y).W_
        )


def test_copies_with_the_same_gaps_are_found_and_labels_are_not_numbers():
    rng = np.random.default_rng(0)
    age, label = rng.normal(50, 9, 60), rng.choice(["a", "b", "c"], 60)
    age[:7] = np.nan
    frame = pd.DataFrame(
        {"age": age, "label": label, "months": 12 * age, "other": rng.normal(size=60), "same label": label, "one": 1.0}
    )
    with pytest.warns(KnockoffWarning, match="'months' of 'age'"):
        table, notes = drop_dependent(read_table(frame))
    assert table.names == ("age", "label", "other", "one")
    assert list(table.native.columns) == list(table.names) and "'months' of 'age'" in notes["dependent"]
    np.testing.assert_array_equal(table.X[:, 0], age)


@pytest.mark.parametrize("make", [lambda X: X, pd.DataFrame, pl.DataFrame], ids=["array", "pandas", "polars"])
def test_the_format_stays_and_so_do_groups(make):
    X = np.random.default_rng(0).standard_normal((40, 4))
    X = make(np.column_stack([X[:, 0], X[:, 0] - X[:, 1], X]))
    source = knockoff_source("gaussian")
    names = read_table(X).names
    groups = {"first": [names[0], names[1]], "second": [names[2], names[5]]}
    with pytest.warns(KnockoffWarning, match="dropped"):
        table, _ = read_features(source, X, groups=groups, dependent="drop")
    assert table.names == (names[0], names[1], names[4], names[5])  # the later of two goes
    assert table.feature_names == ("first", names[4], "second")
    assert table.feature_of.tolist() == [0, 0, 1, 2]
    assert type(table.decode(table.X)) is type(X)


def test_it_is_for_a_law_that_is_fitted():
    X = np.random.default_rng(0).standard_normal((40, 3))
    with pytest.raises(InputError, match="dependent='drop' is for a feature model that is fitted"):
        selector(np.eye(3), dependent="drop").fit(X, X[:, 0] ** 2)
    with pytest.raises(InputError, match="dependent='dorp' is not known. Did you mean 'drop'"):
        selector("gaussian", dependent="dorp").fit(X, X[:, 0] ** 2)


def test_a_singular_covariance_is_refused_by_name():
    """Brute force: the set named has the size of the rank that is lacking, and the rest is not singular."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 4))
    X = np.column_stack([X, X[:, 0] + X[:, 1], 2 * X[:, 3]]) * [1, 1e3, 1, 1e-3, 5, 1]
    Sigma = np.cov(X.T)
    relations = dependent_in_covariance(Sigma)
    assert {j: of.tolist() for j, of in relations.items()} == {4: [0, 1], 5: [3]} or list(relations) == [4, 5]
    sd = np.sqrt(np.diagonal(Sigma))
    rest = [j for j in range(6) if j not in relations]
    assert np.linalg.eigvalsh((Sigma / np.outer(sd, sd))[np.ix_(rest, rest)])[0] > 0.1
    frame, noise = pd.DataFrame(X, columns=list("abcdef")), rng.standard_normal(200)
    refuses(r"drop them \(drop=\['e', 'f'\]\) from X and from the covariance", selector(Sigma).fit, frame, noise)
    with pytest.raises(InputError, match="not positive definite"):
        no_covariance = np.eye(6)
        no_covariance[0, 1] = no_covariance[1, 0] = 2.0
        selector(np.outer(sd, sd) * no_covariance).fit(frame, noise)


# ---- what is a copy, and what is not ---------------------------------------------------------------------------------

RNG = np.random.default_rng(5)
N = 80
X = RNG.standard_normal((N, 3))
SEX = RNG.choice(["f", "m"], N)
TOWN = RNG.choice(["Bern", "Chur", "Genf"], N)
STEPS = RNG.integers(0, 4, N).astype(float)
GAPS = np.where(RNG.random(N) < 0.2, np.nan, X[:, 0])
SAME_STEP = np.flatnonzero(STEPS == STEPS[0])[1:3]
RELATED = {
    "the same twice": (X[:, 0], X[:, 0]),
    "other units": (X[:, 0], 2 * X[:, 0] + 1),
    "the other way round": (X[:, 0], 5 - X[:, 0]),
    "its exponential": (X[:, 0], np.exp(X[:, 0])),
    "its cube, falling": (X[:, 0], -(X[:, 0] ** 3)),
    "with the same gaps": (GAPS, np.exp(GAPS)),
    "labels and codes": (SEX, (SEX == "f").astype(float)),
    "labels of other words": (TOWN, np.char.add(TOWN, "!")),
    "labels numbered": (TOWN, np.searchsorted(["Bern", "Chur", "Genf"], TOWN).astype(float)),
    "steps in another order": (STEPS, (3 * STEPS + 1) % 4),
}
UNRELATED = {
    "rounded": (X[:, 0], np.round(X[:, 0], 1)),
    "its square": (X[:, 0], X[:, 0] ** 2),
    "but for two cells": (X[:, 0], np.r_[X[1, 0], X[0, 0], X[2:, 0]]),
    "with gaps of its own": (X[:, 0], GAPS),
    "with other gaps": (GAPS, GAPS[::-1]),
    "one gap each, where the cells agree": tuple(np.where(np.arange(N) == i, np.nan, STEPS) for i in SAME_STEP),
    "coarser labels": (TOWN, np.where(TOWN == "Genf", "west", "east")),
    "steps and coarser ones": (STEPS, STEPS // 2),
    "two constants": (np.ones(N), np.zeros(N)),
    "all different labels of numbers": (np.arange(N) % 40.0, RNG.permutation(N) % 40.0),
}


@pytest.mark.parametrize(("a", "b"), RELATED.values(), ids=RELATED)
def test_copies_are_found_in_either_order(a, b):
    for first, second in ((a, b), (b, a)):
        table = read_table(pd.DataFrame({"other": X[:, 1], "first": first, "between": X[:, 2], "second": second}))
        assert {j: of.tolist() for j, of in find_relations(table).items()} == {3: [1]}


@pytest.mark.parametrize(("a", "b"), UNRELATED.values(), ids=UNRELATED)
def test_what_does_not_determine_one_another_is_no_copy(a, b):
    table = read_table(pd.DataFrame({"other": X[:, 1], "first": a, "between": X[:, 2], "second": b}))
    assert find_relations(table) == {}


def test_sums_and_a_block_of_indicators():
    parts = np.random.default_rng(0).gamma(2.0, size=(N, 3))
    block = (TOWN[:, None] == ["Bern", "Chur", "Genf"]).astype(float)
    table = read_table(np.column_stack([X[:, 0], parts, block, parts.sum(axis=1)]))
    assert {j: of.tolist() for j, of in find_relations(table).items()} == {6: [4, 5], 7: [1, 2, 3]}


def test_wide_tables_have_copies_and_no_sums():
    wide = np.random.default_rng(0).standard_normal((25, 30))
    table = read_table(np.column_stack([wide, np.exp(wide[:, 4]), wide[:, 0] + wide[:, 1]]))
    assert {j: of.tolist() for j, of in find_relations(table).items()} == {30: [4]}


@pytest.mark.parametrize("row", [0, 5, 6000], ids=["a row looked at", "a row that is not", "the last"])
def test_what_some_rows_say_is_checked_on_all(row):
    long = np.random.default_rng(0).standard_normal((6001, 3))
    long = np.column_stack([long, np.exp(long[:, 0]), long[:, 1] - long[:, 2]])
    assert {j: of.tolist() for j, of in find_relations(read_table(long)).items()} == {3: [0], 4: [1, 2]}
    long[row, 3:] += 1
    assert find_relations(read_table(long)) == {}


def test_the_columns_of_one_feature_may_be_copies():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": 2 * X[:, 0], "d": np.exp(X[:, 1]), "e": X[:, 2]})
    source = knockoff_source("auto")
    with pytest.warns(KnockoffWarning, match=r"\(dependent='auto'\): 'd' of 'b'\. The answer"):
        table, notes = read_features(source, frame, groups={"both": ["a", "c"]}, dependent="auto")
    assert table.names == ("a", "b", "c", "e") and table.feature_names == ("both", "b", "e")
    with pytest.warns(KnockoffWarning, match="Use drop=.'d'. or dependent='drop'"):
        table, notes = read_features(source, frame, groups={"both": ["a", "c"]}, dependent="refuse")
    assert len(table.names) == 5 and "dependent" not in notes


# ---- constant columns --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("feature_model", ["auto", "gaussian", "naive_bayes"])
@pytest.mark.parametrize("method", ["knockoffs", "conditional_test"])
def test_constant_columns_are_no_hypotheses(feature_model, method):
    """The answer is that of the table without them: Benjamini and Hochberg divide by the other columns alone."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.standard_normal((150, 5)), columns=list("abcde"))
    y = X["a"] + X["b"] + rng.standard_normal(150)
    holes = np.where(np.arange(150) % 2, np.nan, 1.0)
    with_constants = X.assign(region="north", year=2020, lost=holes)[
        ["region", "a", "b", "year", "c", "d", "e", "lost"]
    ]
    if feature_model != "auto":
        with_constants = with_constants.drop(columns=["region", "lost"])
    options = {"method": method, "feature_model_options": {} if feature_model == "gaussian" else {"n_classes": 1}}
    without = selector(feature_model, **options).fit(X, y)
    with pytest.warns(KnockoffWarning, match="are constant and left out|'year' is constant and left out"):
        found = selector(feature_model, **options).fit(with_constants, y)
    assert found.selection_.feature_names == tuple("abcde")
    np.testing.assert_array_equal(found.q_values_, without.q_values_)
    assert "constant" in found.selection_.notes
    assert (
        found.get_support().sum() == without.get_support().sum() and len(found.get_support()) == with_constants.shape[1]
    )


def test_constant_columns_stay_where_every_column_is_wanted():
    X = np.column_stack([np.ones(50), np.random.default_rng(0).standard_normal((50, 3))])
    source = knockoff_source("gaussian")
    table, notes = read_features(source, X, every_column=True)
    assert len(table.names) == 4 and notes == {}
    with pytest.warns(KnockoffWarning, match="^column 'x0' is constant: its own knockoff, never selected.$"):
        source(table, rng=np.random.default_rng(0))
    with pytest.warns(KnockoffWarning, match="^column 'x0' is constant and left out.$"):
        table, notes = read_features(source, X, groups=[0, 0, 1, 1])
    assert table.names == ("x1", "x2", "x3") and table.feature_of.tolist() == [0, 1, 1]
    refuses("every column of X is constant", read_features, source, np.ones((50, 3)))
