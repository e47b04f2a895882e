"""Whatever comes in goes back as it came: dtype, categories, dates, missing cells, names and index."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal
from tests.refusals import refuses

from knockoffs.table.table import read_table

N = 12
NUMBERS = [0.5, 1.25, -3.0, 7.5, 2.0, 9.25, 4.0, 1.5, 0.25, 6.0, -1.0, 3.5]
WHOLE = [3, 1, 2, 2, 1, 3, 5, 4, 2, 1, 1, 2]
WORDS = ["b", "a", "c", "a", "b", "c", "a", "b", "c", "a", "b", "c"]
FLAGS = [True, False, True, True, False, True, False, False, True, True, False, True]
DAYS = [datetime.date(2020, 2, 1) + datetime.timedelta(days=17 * k) for k in range(N)]
MOMENTS = [datetime.datetime(2020, 2, 1, 13, 7, 5, 250) + datetime.timedelta(hours=7 * k) for k in range(N)]
SPANS = [datetime.timedelta(hours=3 * k, microseconds=k) for k in range(N)]
TIMES = [datetime.time(k, 5 * k, k) for k in range(N)]

# missing cells of a column of objects come back as None, which pandas 2 warns of beside NaN
pytestmark = pytest.mark.filterwarnings("ignore:Mismatched null-like values:FutureWarning")


def with_gaps(values, gap=None):
    return [gap if i in (2, 7) else value for i, value in enumerate(values)]


GRADES = pd.CategoricalDtype(["c", "unused", "b", "a"], ordered=True)
PANDAS = {
    "float": pd.Series(NUMBERS),
    "float32": pd.Series(NUMBERS, dtype="float32"),
    "NaN": pd.Series(with_gaps(NUMBERS, np.nan)),
    "int8": pd.Series(WHOLE, dtype="int8"),
    "uint64": pd.Series(WHOLE, dtype="uint64"),
    "Int64": pd.Series(with_gaps(WHOLE), dtype="Int64"),
    "Float64": pd.Series(with_gaps(NUMBERS), dtype="Float64"),
    "bool": pd.Series(FLAGS),
    "boolean": pd.Series(with_gaps(FLAGS), dtype="boolean"),
    "str": pd.Series(with_gaps(WORDS)),
    "string": pd.Series(with_gaps(WORDS), dtype="string"),
    "object": pd.Series(with_gaps(WORDS), dtype=object),
    "object with NaN": pd.Series(with_gaps(WORDS, np.nan), dtype=object),
    "object numbers": pd.Series(with_gaps(WHOLE), dtype=object),
    "object flags": pd.Series(with_gaps(FLAGS), dtype=object),
    "category": pd.Series(with_gaps(WORDS), dtype=pd.CategoricalDtype(["c", "unused", "b", "a"])),
    "ordered": pd.Series(with_gaps(WORDS), dtype=GRADES),
    "category of numbers": pd.Series(WHOLE).astype("category"),
    "cut": pd.cut(pd.Series(NUMBERS), [-5, 0, 3, 10]),
    "datetime": pd.Series(with_gaps(MOMENTS)),
    "datetime[ns]": pd.Series(MOMENTS).astype("datetime64[ns]"),
    "datetime[s]": pd.Series(DAYS).astype("datetime64[s]"),
    "zone": pd.Series(MOMENTS).dt.tz_localize("Europe/Berlin"),
    "timedelta": pd.Series(with_gaps(SPANS)),
    "dates": pd.Series(with_gaps(DAYS), dtype=object),
    "times": pd.Series(with_gaps(TIMES), dtype=object),
    "ISO text": pd.Series([str(day) for day in DAYS]),
    "arrow int": pd.Series(with_gaps(WHOLE), dtype="int32[pyarrow]"),
    "arrow double": pd.Series(with_gaps(NUMBERS), dtype="double[pyarrow]"),
    "arrow bool": pd.Series(with_gaps(FLAGS), dtype="bool[pyarrow]"),
    "arrow string": pd.Series(with_gaps(WORDS), dtype=pd.ArrowDtype(pa.string())),
    "arrow date": pd.Series(with_gaps(DAYS), dtype=pd.ArrowDtype(pa.date32())),
    "arrow timestamp": pd.Series(with_gaps(MOMENTS), dtype=pd.ArrowDtype(pa.timestamp("us"))),
    "arrow duration": pd.Series(with_gaps(SPANS), dtype=pd.ArrowDtype(pa.duration("us"))),
    "arrow decimal": pd.Series(
        with_gaps([Decimal(str(v)) for v in NUMBERS]), dtype=pd.ArrowDtype(pa.decimal128(10, 2))
    ),
    "sparse": pd.Series([0.0, 0, 1, 0, 0, 2.5, 0, 0, 0, 3, 0, 0], dtype="Sparse[float]"),
}
POLARS = {
    "float": pl.Series(NUMBERS),
    "null": pl.Series(with_gaps(NUMBERS)),
    "NaN": pl.Series(with_gaps(NUMBERS, float("nan"))),
    "int": pl.Series(WHOLE, dtype=pl.Int16),
    "int with null": pl.Series(with_gaps(WHOLE), dtype=pl.Int16),
    "uint": pl.Series(WHOLE, dtype=pl.UInt32),
    "bool": pl.Series(with_gaps(FLAGS)),
    "string": pl.Series(with_gaps(WORDS)),
    "categorical": pl.Series(with_gaps(WORDS), dtype=pl.Categorical),
    "enum": pl.Series(with_gaps(WORDS), dtype=pl.Enum(["c", "unused", "b", "a"])),
    "date": pl.Series(with_gaps(DAYS)),
    "datetime": pl.Series(with_gaps(MOMENTS)),
    "datetime[ms]": pl.Series(MOMENTS).cast(pl.Datetime("ms")),
    "zone": pl.Series(MOMENTS).dt.replace_time_zone("Europe/Berlin"),
    "duration": pl.Series(with_gaps(SPANS)),
    "time": pl.Series(with_gaps(TIMES)),
    "decimal": pl.Series(with_gaps([Decimal(str(v)) for v in NUMBERS]), dtype=pl.Decimal(10, 2)),
    "ISO text": pl.Series([str(day) for day in DAYS]),
    "all flags true": pl.Series([True] * N),
}


@pytest.mark.parametrize("name", PANDAS)
def test_a_column_of_pandas_goes_back_as_it_came(name):
    frame = pd.DataFrame({"size": NUMBERS, "column": PANDAS[name].array}, index=[f"row {k}" for k in range(N)])
    table = read_table(frame)
    assert table.X.dtype == np.float64
    np.testing.assert_array_equal(np.isnan(table.X[:, 1]), frame["column"].isna())
    back = table.decode(table.X)
    if name == "sparse":  # a dense column of the same dtype
        assert back["column"].dtype == frame["column"].dtype
    assert_frame_equal(back, frame)


@pytest.mark.parametrize("name", POLARS)
def test_a_column_of_polars_goes_back_as_it_came(name):
    frame = pl.DataFrame({"size": NUMBERS, "column": POLARS[name]})
    table = read_table(frame)
    missing = frame["column"].is_null().to_numpy()
    if frame["column"].dtype.is_float():
        missing |= frame["column"].fill_null(0).is_nan().to_numpy()
    np.testing.assert_array_equal(np.isnan(table.X[:, 1]), missing)
    back = table.decode(table.X)
    assert back.schema == frame.schema
    assert back.equals(frame, null_equal=True)


def test_arrow_tables_go_back():
    frame = pl.DataFrame({k: v for k, v in POLARS.items() if k not in ("enum", "categorical", "time")})
    table = frame.to_arrow()
    back = read_table(table).decode(read_table(table).X)
    assert pl.from_arrow(back).equals(frame)


def test_other_values_stay_in_the_support():
    """Knockoffs of labels are labels, of whole days whole days, of nullable integers nullable integers."""
    frame = pd.DataFrame({"day": pd.to_datetime(DAYS), "n": pd.array(with_gaps(WHOLE), dtype="Int64"), "w": WORDS})
    table = read_table(frame)
    X = np.column_stack([table.X[:, 0] + 0.3, np.full(N, 2.0), np.zeros(N)])
    kept = X.copy()
    back = table.decode(X)
    np.testing.assert_array_equal(X, kept)
    assert_frame_equal(back[["day"]], frame[["day"]])
    assert back["n"].dtype == "Int64" and (back["n"] == 2).all()
    assert (back["w"] == "a").all()
    assert back.dtypes.equals(frame.dtypes)


def test_fewer_rows_lose_the_index_and_keep_the_dtypes():
    frame = pd.DataFrame({"w": pd.Series(WORDS, dtype=GRADES), "n": WHOLE}, index=range(5, 5 + N))
    back = read_table(frame).decode(read_table(frame).X[:3])
    assert back.index.tolist() == [0, 1, 2] and back.dtypes.equals(frame.dtypes)


def test_codes_without_a_label_are_refused():
    table = read_table(pd.DataFrame({"w": WORDS}))
    refuses("'w' holds values that are codes of none of its labels", table.decode, np.full((N, 1), 3.0))
    refuses("codes of none", table.decode, np.full((N, 1), 0.5))


@pytest.mark.parametrize(
    "X",
    [
        np.column_stack([NUMBERS, WHOLE]),
        np.column_stack([WHOLE, WHOLE]),
        np.column_stack([FLAGS, FLAGS[::-1]]),
        np.array([NUMBERS, WORDS], dtype=object).T,
        np.array([with_gaps(NUMBERS), WORDS], dtype=object).T,
        np.array([DAYS, DAYS[::-1]], dtype="datetime64[D]").T,
        np.array([SPANS, SPANS[::-1]], dtype="timedelta64[s]").T,
    ],
    ids=["float", "int", "bool", "object", "missing", "dates", "durations"],
)
def test_an_array_goes_back(X):
    back = read_table(X).decode(read_table(X).X)
    assert back.tolist() == X.tolist()
    assert back.dtype.kind == X.dtype.kind


@pytest.mark.parametrize("values", [NUMBERS, WHOLE])
def test_what_a_mask_covers_is_missing(values):
    X = np.ma.array(np.column_stack([values, values]), mask=False)
    X[3, 1] = np.ma.masked
    table = read_table(X)
    assert np.argwhere(np.isnan(table.X)).tolist() == [[3, 1]] and table.kinds[0] == read_table(X.data).kinds[0]
    table.X[3, 1] = table.X[3, 0]
    assert table.decode(table.X).tolist() == X.data.tolist()


def test_names_in_several_levels_come_back():
    frame = pd.DataFrame(np.c_[NUMBERS, NUMBERS], columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]))
    frame.iloc[0, 0] = 17.5
    table = read_table(frame)
    assert table.names == ("a.x", "a.y")
    assert_frame_equal(table.decode(table.X), frame)
