"""Hostile numbers, shapes, names and types: each ends in an answer, or in one of our own errors with what to do."""

import datetime
import enum
import fractions
import uuid
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from knockoffs import (
    KnockoffSelector,
    fit_gaussian,
    gaussian_features,
    knockoff_filter,
    q_values,
    read_table,
    swap,
)
from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.filter.e_values import e_bh, knockoff_e_values
from knockoffs.table.target import as_target

N = 60
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 5))
Y = X[:, 0] + X[:, 1] + 0.3 * RNG.standard_normal(N)
OPTIONS = {"fdr": 0.3, "estimator": "lasso", "verdict": False, "method": "knockoffs", "random_state": 0}
FLAT = np.tile(X[:, :1], (1, 5))
HALF = np.arange(N) % 2 == 0
ONE_DAY = datetime.timedelta(days=1)


def with_column(values):
    return pd.DataFrame(X, columns=[*"abcde"]).assign(m=values)


def with_series(values, **options):
    return pl.DataFrame(X, schema=[*"abcde"]).with_columns(pl.Series("m", values, **options))


def fit(table=X, y=Y, weights=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", KnockoffWarning)
        extra = {} if weights is None else {"sample_weight": weights}
        return KnockoffSelector(**{**OPTIONS, **options}).fit(table, y, **extra)


# ---- refused, each with the words that tell what and what to do -----------------------------------------------------

TABLES = {
    "no rows": (X[:0], "at least 5 are needed"),
    "one row": (X[:1], "at least 5 are needed"),
    "two rows": (X[:2], "at least 5 are needed"),
    "no columns": (X[:, :0], "a minimum of 1 is required"),
    "one column": (X[:, :1], "with 1 feature "),
    "one dimension": (X[:, 0], "Reshape your data"),
    "three dimensions": (X[:, :, None], "Reshape your data"),
    "a number": (5, "X is int: pass an array or a data frame"),
    "a word": ("abc", "X is str: pass an array or a data frame"),
    "nothing": (None, "pass an array or a data frame"),
    "a dict": ({"a": [1, 2]}, "X is dict: pass an array or a data frame"),
    "a generator": ((row for row in X), "expected 2D array"),
    "ragged rows": ([[1, 2], [3]] * 30, "row 0 has 2 values, row 1 has 1"),
    "infinity": (np.where(X > 2, np.inf, X), "holds infinity in row"),
    "huge": (X / np.abs(X).max() * 1.7e308, "holds numbers as large as .*divide it by a power of ten"),
    "denormal": (X * 1e-310, "varies by less than 1e-300: multiply it by a power of ten"),
    "whole numbers that floats merge": (2**60 + RNG.integers(0, 50, (N, 5)), "beyond 2.53.*subtract the smallest"),
    "merged in pandas": (with_column(2**60 + np.arange(N)), "beyond 2.53"),
    "merged, nullable": (with_column(pd.array([2**60 + i for i in range(N)], dtype="Int64")), "beyond 2.53"),
    "merged in polars": (with_series([2**60 + i for i in range(N)]), "beyond 2.53"),
    "merged, with a gap": (with_series([None, *(2**60 + i for i in range(N - 1))]), "beyond 2.53"),
    "beyond any float": (np.array([[10**400 + i * j for j in range(5)] for i in range(N)], dtype=object), "infinity"),
    "complex": (X + 1j, "pass real and imaginary parts"),
    "a complex column": (with_column(X[:, 0] + 1j), "pass real and imaginary parts"),
    "sparse": (scipy.sparse.csr_array(X), r"pass X.toarray\(\)"),
    "structured": (np.zeros(N, dtype=[("a", float), ("b", int)]), "pass a data frame"),
    "void": (np.zeros((N, 3), dtype="V4"), "neither numbers nor labels"),
    "a lazy frame": (pl.DataFrame(X).lazy(), r"pass X.collect\(\)"),
    "lists in cells": (with_series([[1]] * N), "neither numbers nor labels"),
    "structs in cells": (with_series([{"a": 1}] * N), "neither numbers nor labels"),
    "arrays in cells": (with_column([np.arange(3)] * N), "must be a string .* or a number"),
    "sets in cells": (with_column([frozenset([i % 3]) for i in range(N)]), "must be a string .* or a number"),
    "uuids": (with_column([uuid.UUID(int=i) for i in range(N)]), "must be a string .* or a number"),
    "enums": (with_column([enum.Enum("E", "A B")["AB"[i % 2]] for i in range(N)]), "must be a string .* or a number"),
    "functions": (with_column([len] * N), "must be a string .* or a number"),
    "numbers and words": (with_column([1, "a", 2.5, None, True] * 12), "make missing cells empty"),
    "numbers and their text": (with_column([1, "2"] * 30), "make all of them strings, or numbers"),
    "numbers as text": (X.astype(str), "turn them into numbers"),
    "a label a row": (with_column([f"l{i}" for i in range(N)]), "drop it, or make categories"),
    "all missing": (np.full((N, 5), np.nan), "is missing in all 60 rows: drop it"),
    "one column missing": (with_series([None] * N), "is missing in all 60 rows: drop it"),
    "one cell observed": (np.c_[X, np.r_[1.0, np.full(N - 1, np.nan)]], "too few for a model of it"),
    "categories all missing": (with_column(pd.Categorical([None] * N, categories=["a"])), "missing in all 60 rows"),
    "constant": (np.ones((N, 5)), "every column of X is constant"),
    "one name twice": (pd.DataFrame(X, columns=[*"aabcd"]), "two columns of the same name: 'a'"),
    "names of several types": (pd.DataFrame(X, columns=["a", 1, 2.5, None, ("x",)]), "make all of them strings"),
    "1 and '1'": (pd.DataFrame(X, columns=[1, "1", 2, 3, 4]), "make all of them strings"),
    "no name twice": (pd.DataFrame(X, columns=[np.nan, np.nan, 1, 2, 3]), "two columns of the same name"),
}
TARGETS = {
    "constant": (np.ones(N), "a target that does not vary"),
    "all missing": (np.full(N, np.nan), "y is missing in all 60 rows"),
    "all None": ([None] * N, "y is missing in all 60 rows"),
    "two rows known": (np.r_[1.0, 2.0, np.full(N - 2, np.nan)], "y is known in 2 of 60 rows: 5 are needed"),
    "infinity": (np.r_[np.inf, Y[1:]], "infinity in 1 rows, the first is row 0: drop these rows"),
    "huge": (Y / np.abs(Y).max() * 1.7e308, "divide all of them by a power of ten"),
    "whole numbers that floats merge": (2**62 + np.arange(N), "beyond 2.53.*subtract the smallest"),
    "complex": (Y + 1j, "Complex data not supported"),
    "bytes": (np.where(HALF, b"a", b"b"), "y holds bytes, .*decode them"),
    "dates": (np.arange(N).astype("M8[D]"), "turn them into numbers or classes"),
    "dates of a zone": (pd.Series(pd.date_range("2020", periods=N, tz="UTC")), "turn them into numbers or classes"),
    "durations": (pd.Series(pd.to_timedelta(np.arange(N), unit="s")), "turn them into numbers or classes"),
    "durations of Python": ([ONE_DAY * i for i in range(N)], "turn them into numbers or classes"),
    "sparse": (scipy.sparse.csr_array(Y[:, None]), "pass an array"),
    "a lazy frame": (pl.DataFrame({"y": Y}).lazy(), r"pass y.collect\(\)"),
    "two columns": (np.c_[Y, Y], "y should be a 1d array"),
    "a number": (3.0, "y should be a 1d array"),
    "a word": ("abc", "y should be a 1d array"),
    "a dict": ({"a": 1}, "y should be a 1d array"),
    "nothing": (None, "requires y to be passed"),
    "too short": (Y[:-1], "they must have one row for each"),
    "a label a row": ([f"l{i}" for i in range(N)], "too many for classes"),
    "numbers and words": ([1, "a"] * 30, "all others one kind"),
    "a column of X": (X[:, 0], "the target is among the features"),
}
WEIGHTS = {
    "zero": (np.zeros(N), "zero in every row"),
    "one row": (np.r_[1.0, np.zeros(N - 1)], "weighs more than zero in 1 of 60 rows: 5 are needed"),
    "negative": (-np.ones(N), "not negative"),
    "missing": (np.full(N, np.nan), "finite"),
    "infinite": (np.full(N, np.inf), "finite"),
    "huge": (np.full(N, 1e308), "divide all weights by it"),
    "denormal": (np.full(N, 1e-320), "divide all weights by it"),
    "too short": (np.ones(N - 1), "one weight for each of 60 rows"),
    "two columns": (np.ones((N, 2)), "one weight for each of 60 rows"),
    "words": (["a"] * N, "weights are numbers"),
}
ARGUMENTS = {
    "fdr word": ({"fdr": "a"}, "use a level between 0 and 1"),
    "fdr nan": ({"fdr": np.nan}, "not between 0 and 1"),
    "fdr array": ({"fdr": np.array([0.1, 0.2])}, "use a level between 0 and 1"),
    "fdr tiny": ({"fdr": 1e-300}, r"at least 1e\+300 selections"),
    "seed": ({"random_state": 1.5}, "use None, an int, a Generator"),
    "seed negative": ({"random_state": -1}, "a seed is a non-negative int"),
    "jobs none": ({"n_jobs": 0}, "whole number that is not 0"),
    "jobs word": ({"n_jobs": "a"}, "whole number that is not 0"),
    "jobs fraction": ({"n_jobs": 1.5}, "whole number that is not 0"),
    "draws": ({"n_draws": "3"}, "a whole number of at least 1"),
    "folds": ({"importance_options": {"n_folds": 1}}, "a whole number of at least 2"),
    "rows": ({"importance_options": {"rows": 3}}, "expected one of 'in_sample'"),
    "task": ({"task": 3}, "expected one of 'binary'"),
    "method": ({"method": 3}, "expected one of 'auto'"),
    "kinds": ({"kinds": ["ordinal"]}, "expected a mapping"),
    "kinds of no column": ({"kinds": {"x0 ": "count"}}, "no column of X. Did you mean 'x"),
    "groups": ({"groups": 3}, "use a mapping from column to group"),
    "groups short": ({"groups": [0, 0]}, "expected 5, a group for each column"),
    "drop": ({"drop": 3}, "expected names of columns"),
    "drop unknown": ({"drop": ["x0 "]}, "Did you mean 'x"),
    "options": ({"feature_model_options": 3}, "expected a mapping"),
    "verdict": ({"verdict": "yes"}, "expected True or False"),
    "representatives": ({"feature_model_options": {"representatives": "yes"}}, "expected True or False"),
    "model": ({"estimator": 3}, "lacks fit and predict"),
    "score": ({"importance": 3}, "pass the name of a score or a function"),
    "rule": ({"importance_options": {"rule": 3}}, "rule='3' is not known"),
    "feature model": ({"feature_model": 3}, "pass a name, a fitted P"),
    "covariance": ({"feature_model": np.full((5, 5), np.nan)}, "every entry must be finite"),
    "covariance not symmetric": ({"feature_model": np.triu(np.ones((5, 5)))}, "not symmetric"),
    "knockoffs short": ({"knockoffs": X[:3]}, "they must be the same"),
    "knockoffs missing": ({"knockoffs": np.full_like(X, np.nan)}, "contains NaN"),
}


@pytest.mark.parametrize(("table", "words"), TABLES.values(), ids=TABLES)
def test_tables_that_are_refused(table, words):
    with pytest.raises(InputError, match=words):
        fit(table)


@pytest.mark.parametrize(("y", "words"), TARGETS.values(), ids=TARGETS)
def test_targets_that_are_refused(y, words):
    with pytest.raises(InputError, match=words):
        fit(y=y)


@pytest.mark.parametrize(("weights", "words"), WEIGHTS.values(), ids=WEIGHTS)
def test_weights_that_are_refused(weights, words):
    with pytest.raises(InputError, match=words):
        fit(weights=weights)


@pytest.mark.parametrize(("options", "words"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_that_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        fit(**options)


# ---- taken --------------------------------------------------------------------------------------------------------

DATES = pd.date_range("2020", periods=N)
TAKEN = {
    "large": X * 1e290,
    "small": X * 1e-290,
    "far from zero": X + 1e15,
    "of all scales": X * np.array([1e-200, 1, 1e200, 1, 1]),
    "whole numbers beyond 2^53": RNG.integers(2**60, 2**62, (N, 5)),
    "beyond 2^63": np.uint64(2**63) + RNG.integers(0, 2**60, (N, 5)).astype(np.uint64),
    "beyond 64 bits": np.array([[int(10**30 * v) for v in row] for row in X.tolist()], dtype=object),
    "of 128 bits": with_series([10**20 + i * i for i in range(N)], dtype=pl.Int128),
    "objects": X.astype(object),
    "objects with gaps": np.where(X > 2, None, X),
    "half precision": X.astype(np.float16),
    "long doubles": X.astype(np.longdouble),
    "the other byte order": X.astype(">f8"),
    "read only": np.broadcast_to(X, X.shape),
    "strided": np.repeat(X, 2, axis=1)[:, ::2],
    "masked": np.ma.masked_greater(X, 2),
    "a list of tuples": [tuple(row) for row in X.tolist()],
    "booleans": X > 0,
    "bytes": with_column(np.where(HALF, b"a", b"b")),
    "decimals": with_column([Decimal(str(v)) for v in X[:, 0]]),
    "fractions": with_column([fractions.Fraction(int(v * 100), 7) for v in X[:, 0]]),
    "a zone": with_column(DATES.tz_localize("Europe/Zurich")),
    "not a time": with_column(pd.Series(DATES).where(HALF)),
    "durations": with_column(7 * (DATES - DATES[0])),
    "periods": with_column(pd.period_range("2020", periods=N, freq="M")),
    "intervals": with_column(pd.cut(X[:, 0], 4)),
    "times": with_column([datetime.time(i % 24, i) for i in range(N)]),
    "days": with_column([datetime.date(2020, 1, 1) + i * ONE_DAY for i in range(N)]),
    "far days": with_column([datetime.date(1 + 150 * i, 1, 1) for i in range(N)]),
    "nullable whole numbers": with_column(pd.array([1, None, 3] * 20, dtype="Int64")),
    "nullable booleans": with_column(pd.array([True, None, False] * 20, dtype="boolean")),
    "nullable text": with_column(pd.array(["a", None, "b"] * 20, dtype="string")),
    "Arrow": with_column([*"abc"] * 20).convert_dtypes(dtype_backend="pyarrow"),
    "Arrow's table": with_series([*"abc"] * 20).to_arrow(),
    "sparse column": with_column(pd.arrays.SparseArray(np.where(X[:, 0] > 0, 0, X[:, 0]))),
    "categories": with_column(pd.Categorical(["a", None, "b"] * 20)),
    "categories that are numbers": with_column(pd.Categorical([1.5, np.nan, 2.5] * 20)),
    "categories of two types": with_column(pd.Categorical([1, "1"] * 30)),
    "categories nobody has": with_column(pd.Categorical(["a", "b"] * 30, categories=[*"abcdef"])),
    "polars' categories": with_series([*"abc"] * 20, dtype=pl.Categorical),
    "polars' enum": with_series([*"abc"] * 20, dtype=pl.Enum([*"abcd"])),
    "polars' binary": with_series([b"a", b"b"] * 30),
    "polars' duration": with_series([i * i * ONE_DAY for i in range(N)]),
    "polars' time": with_series([datetime.time(i % 24, i) for i in range(N)]),
    "long labels": with_column(["x" * 10**6, "y" * 10**6] * 30),
    "odd labels": with_column(pd.Series(["\U0001f600", "\ud83d", "\x00"] * 20, dtype=object)),
    "labels and blanks": with_column(["a", " a", "a "] * 20),
    "names that are numbers": pd.DataFrame(X),
    "names of two levels": pd.DataFrame(X, columns=pd.MultiIndex.from_tuples([("a", i) for i in range(5)])),
    "names that are dates": pd.DataFrame(X, columns=DATES[:5]),
    "odd names": pd.DataFrame(X, columns=["", "a\nb", "\x00", "\u202e", "e\u0301"]),
    "long names": pd.DataFrame(X, columns=[letter * 100_000 for letter in "abcde"]),
    "rows of one index": pd.DataFrame(X, index=[0] * N),
}


@pytest.mark.parametrize("table", TAKEN.values(), ids=TAKEN)
def test_tables_that_are_taken(table):
    """Read, and given back in their format with the same values."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", KnockoffWarning)
        read = read_table(table, min_rows=5)
        as_target(Y, read)
        again = read_table(read.decode(read.X), min_rows=5)
    assert read.X.shape[0] == N and not np.isinf(read.X).any()
    assert again.names == read.names
    np.testing.assert_allclose(again.X, read.X, rtol=1e-6)


FITTED = ("large", "small", "far from zero", "beyond 2^63", "a zone", "Arrow", "categories", "odd labels", "odd names")


@pytest.mark.parametrize("name", FITTED)
def test_answers(name):
    selector = fit(TAKEN[name])
    assert np.isfinite(selector.W_).all()


@pytest.mark.parametrize(
    "table",
    [np.c_[X, X[:, 0]], np.c_[X, np.exp(X[:, 0])], np.c_[X, np.ones(N)], np.c_[X, X.sum(axis=1)]],
    ids=["twin", "monotone", "one", "sum"],
)
def test_columns_that_say_the_same_are_told(table):
    with pytest.warns(KnockoffWarning, match="'x5'"):
        KnockoffSelector(**OPTIONS).fit(table, Y)


def test_equal_columns_are_one():
    with (
        pytest.warns(KnockoffWarning, match="'x1' of 'x0'; .*'x4' of 'x0'"),
        pytest.raises(InputError, match="with 1 feature "),
    ):
        KnockoffSelector(**OPTIONS).fit(FLAT, Y)


@pytest.mark.parametrize("y", [1e290 * Y, 1e-290 * Y, 10**20 * np.round(Y, 3).astype(object), Y.astype(str) > "0"])
def test_targets_that_are_taken(y):
    assert np.isfinite(fit(y=y).W_).all()


DOORS = {
    "W of words": (lambda: knockoff_filter(["a"], 0.1), "W holds what is no number"),
    "W complex": (lambda: q_values([1j]), "W holds what is no number"),
    "W of objects": (lambda: knockoff_e_values([object()], 0.1), "W holds what is no number"),
    "W nan": (lambda: knockoff_filter([np.nan, 1], 0.1), "W is NaN for 1 features"),
    "W in two dimensions": (lambda: q_values([[1, 2]]), "one statistic for each feature"),
    "e of words": (lambda: e_bh(["a"], 0.1), "e holds what is no number"),
    "e negative": (lambda: e_bh([-1.0, 2.0], 0.1), "is not a number >= 0"),
    "Gaussian of one dimension": (lambda: fit_gaussian(X[:, 0]), "a row for each sample and a column"),
    "Gaussian of words": (lambda: fit_gaussian(X.astype(str)), "a covariance is of numbers"),
    "Gaussian of nothing": (lambda: fit_gaussian(None), "a row for each sample and a column"),
    "Gaussian of nan": (lambda: fit_gaussian(X * np.nan), "fill them or drop the rows"),
    "covariance singular": (lambda: gaussian_features(np.zeros(3), np.ones((3, 3))), "positive definite|determine"),
    "swap by numbers": (lambda: swap(X[:, :2], X[:, :2], [0, 1]), "expected True or False for each of 2 features"),
    "swap of too many": (lambda: swap(X, X, [True]), "expected True or False for each of 5 features"),
    "swap of other rows": (lambda: swap(X, X[:3], [True] * 5), "they must be the same"),
}


@pytest.mark.parametrize(("call", "words"), DOORS.values(), ids=DOORS)
def test_other_doors(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_names_that_nobody_has_are_looked_for_in_no_time():
    """Quadratic once: each of many unknown names was compared with each of many columns, and all were listed."""
    import time

    names = [f"column {j}" for j in range(50_000)]
    table = pd.DataFrame(np.random.default_rng(0).standard_normal((6, 50_000)), columns=names)
    start = time.process_time()
    with pytest.raises(InputError, match="And 49990 more") as error:
        read_table(table, kinds={f"{name}?": "count" for name in names})
    assert len(str(error.value)) < 3000
    from knockoffs.table.drop import without_columns

    assert without_columns(table, names[:25_000]).shape == (6, 25_000)
    with pytest.raises(InputError, match="and 49970 more") as error:
        without_columns(table, ["nonsense"])
    assert len(str(error.value)) < 3000
    assert time.process_time() - start < 20  # minutes before
