"""Durations are said to be durations, in the unit that they came in, and their knockoffs are whole in it too."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from knockoffs.table.columns import describe
from knockoffs.table.moments import UNITS, broken, unit_of
from knockoffs.table.table import read_table

N = 60
STEPS = np.arange(N) ** 2  # all different, in whole units


def spans(unit):
    return [datetime.timedelta(days=1) * int(s) / UNITS[unit] for s in STEPS]


FORMATS = {
    "pandas": lambda unit: pd.DataFrame({"x": spans(unit)}),
    "pandas, Arrow": lambda unit: pd.DataFrame({"x": spans(unit)}).convert_dtypes(dtype_backend="pyarrow"),
    "pandas, objects": lambda unit: pd.DataFrame({"x": pd.Series(spans(unit), dtype=object)}),
    "polars": lambda unit: pl.DataFrame({"x": spans(unit)}),
    "Arrow": lambda unit: pl.DataFrame({"x": spans(unit)}).to_arrow(),
    "array": lambda unit: np.array(spans(unit), dtype="timedelta64[us]")[:, None],
    "rows": lambda unit: [[span] for span in spans(unit)],
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("format", FORMATS)
def test_durations_are_said_and_keep_their_unit(format, unit):
    frame = FORMATS[format](unit)
    table = read_table(frame)
    assert table.columns[0].dtype == "duration"
    assert f"is continuous: durations from 0 {unit}s to 3481 {unit}s" in describe(table.columns[0])
    np.testing.assert_allclose(table.X[:, 0] * UNITS[unit], STEPS, rtol=1e-12, atol=1e-6)
    knockoffs = table.decode(table.X + 0.3 / UNITS[unit])  # no whole number of units
    assert type(knockoffs) is (np.ndarray if format == "rows" else type(frame))
    again = read_table(knockoffs)
    assert again.columns[0].dtype == "duration" and unit_of(again.X[:, 0]) == unit
    np.testing.assert_allclose(again.X, table.X, atol=1e-9)


def test_few_durations_are_steps_and_gaps_say_nothing():
    table = read_table(pd.DataFrame({"x": pd.to_timedelta([15, 30, 60, None] * 15, unit="min"), "y": [1.5, 2.5] * 30}))
    assert describe(table.columns[0]) == (
        "'x' is ordinal: 3 different durations, 15 minutes to 60 minutes; 15 cells are missing."
    )
    assert unit_of(table.X[:, 0]) == "minute"
    one = read_table(pd.DataFrame({"x": pd.to_timedelta([1, 2] * 15, unit="D")}))
    assert describe(one.columns[0]) == "'x' is binary: two values, 1 day and 2 days."


def test_dates_and_times_keep_their_unit_too():
    stamps = pd.date_range("2021-03-01 10:00", periods=N, freq="7min")
    table = read_table(pd.DataFrame({"x": stamps, "t": [datetime.time(i % 24, i) for i in range(N)]}))
    assert [column.dtype for column in table.columns] == ["date", "time"]
    assert describe(table.columns[1]).startswith("'t' is continuous: times, as parts of a day")
    frame = table.decode(table.X + 0.0002)
    assert (frame["x"].dt.second == 0).all() and (frame["x"].dt.microsecond == 0).all()
    assert all(t.second == 0 for t in frame["t"])
    odd = stamps + pd.to_timedelta(np.arange(N) * 17, unit="us")  # whole in no unit that is known
    table = read_table(pd.DataFrame({"x": odd}))
    assert unit_of(table.X[:, 0]) == ""
    assert abs((table.decode(table.X)["x"] - odd).dt.total_seconds()).max() < 1e-5


def test_the_kind_of_a_duration_cannot_be_a_count():
    frame = pd.DataFrame({"x": pd.to_timedelta(STEPS, unit="D")})
    with pytest.raises(ValueError, match="column 'x' of X holds durations: use 'continuous' or 'ordinal'"):
        read_table(frame, kinds={"x": "count"})


def test_a_missing_cell_is_whole():
    assert not broken(np.array([np.nan, 1.0]), "day").any() and broken(np.array([np.nan, 1.5]), "day").tolist() == [
        0,
        1,
    ]
