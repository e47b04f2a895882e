"""Columns that others determine exactly are dropped by one argument, whatever the family and the method."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import make_classification

from knockoffs import KnockoffSelector
from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.features.columns import dependent_in_covariance
from knockoffs.features.dependent import drop_dependent
from knockoffs.features.source import knockoff_source, read_features
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
    with pytest.warns(KnockoffWarning, match="dropped as exact combinations of other columns"):
        found = selector(feature_model, dependent="drop", **options).fit(X, y)
    left = set(found.selection_.feature_names)
    assert len(left) == 18 and {f"gene {j}" for j in free} <= left
    assert np.linalg.matrix_rank(X[sorted(left)]) == 18
    assert list(found.knockoffs_.columns) == list(found.selection_.feature_names)
    assert len(found.get_support()) == 20 and set(found.get_feature_names_out()) <= left
    assert found.selection_.notes["dependent"].startswith("dropped as exact combinations")


def test_by_default_auto_takes_them_and_the_gaussian_names_a_smallest_set():
    X, y, _ = made_classes()
    with pytest.warns(KnockoffWarning, match="nearly determine one another.*dependent='drop'"):
        selector("auto", feature_model_options={"n_classes": 1}).fit(X, y)
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
    assert table.names == ("age", "label", "other", "same label", "one")
    assert list(table.native.columns) == list(table.names) and "'months' of 'age'" in notes["dependent"]
    np.testing.assert_array_equal(table.X[:, 0], age)


@pytest.mark.parametrize(
    "make", [lambda X: X, pd.DataFrame, pl.DataFrame, np.ma.masked_invalid], ids=["array", "pandas", "polars", "masked"]
)
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
    with pytest.raises(InputError, match=r"drop them \(drop=\['e', 'f'\]\) from X and from the covariance"):
        selector(Sigma).fit(frame, noise)
    with pytest.raises(InputError, match="not positive definite"):
        no_covariance = np.eye(6)
        no_covariance[0, 1] = no_covariance[1, 0] = 2.0
        selector(np.outer(sd, sd) * no_covariance).fit(frame, noise)
