"""Rows in the order of time: a draw uses rows that are far enough apart, and random walks are refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter
from tests.refusals import refuses

from knockoffs import KnockoffSelector
from knockoffs.errors import InputError
from knockoffs.procedure import Data
from knockoffs.streaming.stream import fit_streamed
from knockoffs.table.dependent_rows import _autocorrelations, gap_of, places_in_blocks, take_order
from knockoffs.table.table import read_table
from knockoffs.table.target import as_target


def walk(coefficient, n, d, seed):
    noise = np.random.default_rng(seed).normal(size=(n, d))
    return lfilter([1.0], [1.0, -coefficient], noise, axis=0)


def frame(coefficient=0.5, n=600, d=6, seed=0):
    X = pd.DataFrame(walk(coefficient, n, d, seed), columns=[f"f{j}" for j in range(d)])
    y = X["f0"] + X["f1"] + walk(coefficient, n, 1, seed + 100)[:, 0]
    return X.assign(date=pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d")), y.to_numpy()


def gap(X, y, **options):
    table = read_table(X)
    return gap_of(table, as_target(y, table), np.arange(len(X)), **options)


# ---- distances ---------------------------------------------------------------------------------------------------


def test_autocorrelations_are_those_of_the_definition():
    X = walk(0.7, 50, 3, 0)
    Z = X - X.mean(axis=0)
    expected = [[Z[: 50 - k, j] @ Z[k:, j] / (Z[:, j] @ Z[:, j]) for j in range(3)] for k in range(50)]
    np.testing.assert_allclose(_autocorrelations(X), expected, atol=1e-13)
    assert not _autocorrelations(np.ones((9, 1))).any()


@pytest.mark.parametrize(("coefficient", "low", "high"), [(0.0, 1, 1), (0.5, 2, 4), (0.9, 8, 33)])
def test_the_distance_grows_with_the_dependence(coefficient, low, high):
    """The excess is 10 % at log(.05) / log(coefficient^2) rows: 2 and 14. The seeds are fixed."""
    for seed in range(5):
        X, y = walk(coefficient, 1000, 6, seed), walk(coefficient, 1000, 1, 50 + seed)[:, 0]
        assert low <= gap(X, y) <= high


def test_only_what_columns_and_y_have_in_common_counts():
    rng = np.random.default_rng(0)
    slow = walk(0.95, 1000, 4, 0)
    assert gap(slow, rng.normal(size=1000)) == 1  # y is independent from row to row
    assert gap(rng.normal(size=(1000, 4)), slow[:, 0]) == 1


def test_noise_that_a_signal_hides_is_seen():
    rng = np.random.default_rng(0)
    X = np.column_stack([10 * rng.normal(size=1000), walk(0.8, 1000, 1, 1)])
    y = X[:, 0] + walk(0.8, 1000, 1, 2)[:, 0]  # nearly white, but its residuals are not
    assert gap(X, y) >= 4


@pytest.mark.parametrize("kind", ["random walk", "trend", "season"])
def test_rows_that_depend_on_all_others_are_refused(kind):
    rng, t = np.random.default_rng(0), np.arange(600)
    common = {"random walk": walk(1.0, 600, 4, 0), "trend": t[:, None] / 60 + rng.normal(size=(600, 4))}
    common["season"] = 2 * np.sin(2 * np.pi * t / 12)[:, None] + rng.normal(size=(600, 4))
    X = common[kind]
    y = walk(1.0, 600, 1, 9)[:, 0] if kind == "random walk" else X[:, 0] + rng.normal(size=600)
    refuses("order: rows depend on one another over more than 20 rows", gap, X, y)
    if kind != "season":
        assert gap(np.diff(X, axis=0), np.diff(y)) <= 4


def test_few_rows_are_refused():
    """29 rows of a trend: no autocorrelation of so few can be told from noise."""
    table = read_table(np.arange(29.0)[:, None] + np.random.default_rng(0).normal(size=(29, 2)))
    with pytest.raises(InputError, match="order: there are 29 rows with a target, and at least 30 are needed"):
        gap_of(table, as_target(np.arange(29.0), table), np.arange(29))


@pytest.mark.parametrize("target", ["classes", "survival"])
def test_classes_and_survival_times_have_an_order_too(target):
    X, y = walk(0.8, 900, 3, 0), walk(0.8, 900, 1, 1)[:, 0]
    y = np.digitize(y, [-1, 1]) if target == "classes" else (np.exp(y), np.random.default_rng(0).random(900) < 0.7)
    assert gap(X, y) >= 3


def test_labels_and_missing_cells_have_an_order():
    rng = np.random.default_rng(0)
    Z = walk(0.8, 900, 3, 0)
    X = pd.DataFrame({"a": Z[:, 0], "b": np.where(Z[:, 1] > 0, "high", "low"), "c": Z[:, 2]})
    X.loc[rng.random(900) < 0.2, ["a", "b"]] = None
    y = walk(0.8, 900, 1, 1)[:, 0]
    y[:50] = np.nan
    assert 3 <= gap(X, y) <= 30


# ---- rows of a draw ----------------------------------------------------------------------------------------------


def test_rows_of_a_draw_are_equally_far_apart_in_time():
    rng = np.random.default_rng(0)
    time = rng.permutation(100)
    order, _ = take_order(time, np.zeros((100, 1)))
    np.testing.assert_array_equal(time[order], np.arange(100))
    X = np.column_stack([time, rng.normal(size=100)]).astype(float)
    table = read_table(X)
    data = Data(table, as_target(rng.normal(size=100), table), clusters=places_in_blocks(order, 7), spaced=True)
    starts = set()
    for seed in range(60):
        rows = data.one_row_each(np.random.default_rng(seed)).rows
        times = np.sort(time[rows])
        assert (np.diff(times) == 7).all() and times[0] < 7 and times[-1] >= 93
        starts.add(int(times[0]))
    assert starts == set(range(7))  # a start is missed with probability below 7 (6/7)^60 = 7e-4; the seeds are fixed


@pytest.mark.parametrize(
    "order", ["date", "array", pd.date_range("2020-01-01", periods=600), [f"{k:04d}" for k in range(600)]]
)
def test_an_order_is_a_column_or_times(order):
    table, y = frame()
    given = np.arange(600) if isinstance(order, str) and order == "array" else order
    rows, rest = take_order(given, table)
    np.testing.assert_array_equal(rows, np.arange(600))
    assert ("date" in rest) is not (isinstance(order, str) and order == "date")


@pytest.mark.parametrize(("method", "n_draws"), [("conditional_test", 1), ("conditional_test", 3), ("knockoffs", 3)])
def test_a_selection(method, n_draws):
    table, y = frame()
    knockoffs = method == "knockoffs"
    options = {"feature_model": "gaussian", "verdict": knockoffs, "fdr": 0.5 if knockoffs else 0.1}
    fitted = KnockoffSelector(order="date", method=method, n_draws=n_draws, **options).fit(table, y)
    selection = fitted.selection_
    assert {"f0", "f1"} <= set(selection.selected_names) or method == "knockoffs"
    assert "date" not in selection.feature_names and len(set(np.diff(selection.rows))) == 1
    said = selection.notes["order"]
    assert said.startswith(f"{n_draws} times one row in ") and said.endswith("from a start drawn at random")
    assert ("merged" in selection.notes) is (method != "knockoffs" and n_draws > 1)
    assert len(fitted.knockoffs_) == len(fitted.target_) == len(selection.rows)


def test_command_line_and_rerun(select_and_rerun):
    table, y = frame()
    options = ["--target", "y", "--order", "date", "--feature-model", "gaussian", "--no-verdict"]
    record, _ = select_and_rerun(table.assign(y=y), *options)
    assert record["parameters"]["order"] == "date" and len(record["features"]) == 6


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "dat"}, "order='dat' is not known. Did you mean 'date'?"),
        ({"order": [1, 2, 3]}, "order has 3 labels and X has 600 rows"),
        ({"order": [1.0] * 599 + [np.nan]}, "order: row 599 has no label"),
        ({"order": ["a"] * 599 + [1]}, "order holds values of several types"),
        ({"order": "date", "clusters": "f0"}, "clusters and order: rows belong together or follow one another"),
        ({"order": "date", "knockoffs": np.zeros((600, 6))}, "order: given knockoffs are of all rows"),
    ],
)
def test_refused(options, message):
    refuses(message, KnockoffSelector(**options).fit, *frame())


def test_batches_are_refused(tmp_path):
    table, y = frame()
    table.assign(y=y).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="order is not supported in batches"):
        fit_streamed(KnockoffSelector(order="date"), tmp_path / "t.parquet", "y")
