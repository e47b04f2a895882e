"""Hostile targets and weights: each is taken, or refused before the work in words that say what to do."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from tests.refusals import refuses

from knockoffs import read_table
from knockoffs.errors import KnockoffWarning
from knockoffs.table.target import as_target

N = 60
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 5))
Y = X[:, 0] + X[:, 1] + 0.3 * RNG.standard_normal(N)
TABLE = read_table(X)
HALF = np.arange(N) % 2 == 0
ONE_DAY = datetime.timedelta(days=1)

TARGETS = {
    "constant": (np.ones(N), "a target that does not vary"),
    "all missing": (np.full(N, np.nan), "y is missing in all 60 rows"),
    "all None": ([None] * N, "y is missing in all 60 rows"),
    "two rows known": (np.r_[1.0, 2.0, np.full(N - 2, np.nan)], "y is known in 2 of 60 rows: 5 are needed"),
    "infinity": (np.r_[np.inf, Y[1:]], "infinity in 1 rows, the first is row 0: drop these rows"),
    "huge": (Y / np.abs(Y).max() * 1.7e308, "divide all of them by a power of ten"),
    "whole numbers that floats merge": (2**62 + np.arange(N), "beyond 2.53.*subtract the smallest"),
    "complex": (Y + 1j, "Complex data not supported"),
    "dates": (np.arange(N).astype("M8[D]"), "turn them into numbers or classes"),
    "dates of a zone": (pd.Series(pd.date_range("2020", periods=N, tz="UTC")), "turn them into numbers or classes"),
    "durations": (pd.Series(pd.to_timedelta(np.arange(N), unit="s")), "turn them into numbers or classes"),
    "durations of Python": ([ONE_DAY * i for i in range(N)], "turn them into numbers or classes"),
    "sparse": (scipy.sparse.csr_array(Y[:, None]), "pass an array"),
    "a lazy frame": (pl.DataFrame({"y": Y}).lazy(), r"pass y.collect\(\)"),
    "two columns": (np.c_[Y, Y], "y should be a 1d array"),
    "a number": (3.0, "y should be a 1d array"),
    "a word": ("abc", "y is the text 'abc'"),
    "a dict": ({"a": 1}, "y should be a 1d array"),
    "too short": (Y[:-1], "they must have one row for each"),
    "a label a row": ([f"l{i}" for i in range(N)], "too many for classes"),
    "a column of X": (X[:, 0], "the target is among the features"),
    "lists of different lengths": (
        [[1], [1, 2]] * 30,
        "y has rows of different lengths: row 0 has 1 values, row 1 has 2",
    ),
    "objects": ([object() for _ in range(N)], "y holds <object.*in row 0"),
    "a generator": ((v for v in Y), "y should be a 1d array"),
    "no values": ([], "y has 0 values and X has 60 rows"),
    "complex objects": ([complex(v) for v in Y], "y is complex"),
    "one category of two": (pd.Series(pd.Categorical(["a"] * N, categories=["a", "b"])), "a target that does not vary"),
    "one value where it is known": (np.where(HALF, 1.0, np.nan), "in all 30 rows .one class only."),
    "nothing": (None, "requires y to be passed"),
    "bytes": (np.where(HALF, b"a", b"b"), r"y holds b'a' .*decode them"),
    "numbers and words": ([1, "a"] * 30, "make all of them strings, or numbers"),
    "intervals": (pd.Series(pd.cut(Y, 4)).astype("interval"), "y holds Interval.*in row 0.*make categories of them"),
    "periods": (pd.Series(pd.period_range("2020", periods=N)), "y holds Period.*make dates of them"),
    "lists of polars": (pl.Series([[i] for i in range(N)]), "y has dtype List.*neither numbers nor labels"),
    "a stray word": ([*Y[:-1].round(3).astype(str), "error"], "y has 60 different labels in 60 rows"),
    "amounts": ([f"{v:.2f} %" for v in Y], r"y holds amounts as text.*: y.str.replace\('.*astype\(float\)"),
    "dates as text": (
        [str(datetime.date(2020, 1, 1) + i * ONE_DAY) for i in range(N)],
        "turn them into numbers or classes",
    ),
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
WEIGHTS = {name: (weights, Y, words) for name, (weights, words) in WEIGHTS.items()} | {
    "complex": (np.ones(N) + 1j, Y, "sample_weight is complex"),
    "none where the second class is": (
        HALF * 1.0,
        np.where(HALF, "a", "b"),
        "one value 'a' in all rows that weigh more",
    ),
    "nothing": ([None] * N, Y, "sample_weight is nan in row 0"),
}


@pytest.mark.parametrize(("y", "words"), TARGETS.values(), ids=TARGETS)
def test_targets_that_are_refused(y, words):
    refuses(words, as_target, y, TABLE, min_rows=5)


@pytest.mark.parametrize(("weights", "y", "words"), WEIGHTS.values(), ids=WEIGHTS)
def test_weights_that_are_refused(weights, y, words):
    refuses(words, as_target, y, TABLE, weights=weights, min_rows=5)


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (1e290 * Y, "number"),
        (1e-290 * Y, "number"),
        (10**20 * np.round(Y, 3).astype(object), "number"),
        (Y.astype(str), "number"),
        (Y > 0, "binary"),
        (pd.Series(pd.Categorical(["x", 1, 2.5] * 20)), "classes"),
    ],
    ids=["large", "small", "beyond 64 bits", "text", "truth", "categories of several types"],
)
def test_targets_that_are_taken(y, kind):
    assert as_target(y, TABLE).kind == kind


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (pl.Series([None] * N), "'time' is 0 or missing in every row"),
        ([[1], [1, 2]] * 30, "y has rows of different lengths"),
        (np.c_[Y, Y, Y, Y], "y should be a 1d array"),
        (np.array(3.0), "y should be a 1d array"),
    ],
    ids=["nothing", "lists", "four columns", "a number"],
)
def test_what_is_no_survival_time_is_refused(y, words):
    refuses(words, as_target, y, TABLE, task="survival")


IN_OTHER_WORDS = {
    "other units": (X, 2 * X[:, 2] + 1, "x2"),
    "the other way round": (X, -X[:, 2], "x2"),
    "another scale": (X, np.exp(X[:, 2]), "x2"),
    "other labels": (np.c_[X, HALF], np.where(HALF, "yes", "no"), "x5"),
    "codes of classes": (np.c_[X, np.arange(N) % 3], np.array([*"cab"] * 20), "x5"),
    "where it is known": (X, np.where(HALF, np.exp(X[:, 1]), np.nan), "x1"),
}


@pytest.mark.parametrize(("table", "y", "name"), IN_OTHER_WORDS.values(), ids=IN_OTHER_WORDS)
def test_the_target_in_other_words_is_named(table, y, name):
    with pytest.warns(KnockoffWarning, match=f"^y and '{name}' determine each other in all .* rows.*Drop it then"):
        as_target(y, read_table(table))


@pytest.mark.parametrize(
    ("table", "y"),
    [
        (X, Y),
        (X, X.sum(axis=1)),
        (X, X[:, 2] > 0),
        (np.c_[X, np.arange(N) % 3], np.arange(N) % 3 == 0),
        (np.c_[X, HALF][:8], np.where(HALF, "a", "b")[:8]),
    ],
    ids=["noise", "a sum", "a class of a number", "a coarser class", "few rows"],
)
def test_other_targets_are_not(table, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_target(y, read_table(table))
