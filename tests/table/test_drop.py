"""Columns are left out before the table is read, in the format that it came in; the others keep their names."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from knockoffs.errors import InputError
from knockoffs.table.table import names_of, read_table, without_columns

ROWS = [[f"id {i}", i * 7 % 12 + 0.5, 2.5 * i**2, i % 3] for i in range(12)]  # the first column cannot be a feature
COLUMNS = {name: np.array([row[j] for row in ROWS], dtype=float if j else object) for j, name in enumerate("abcd")}
NAMED = {
    "pandas": pd.DataFrame(COLUMNS),
    "polars": pl.DataFrame({name: values.tolist() for name, values in COLUMNS.items()}),
}


@pytest.mark.parametrize("format", NAMED)
def test_frames_stay_frames(format):
    X = NAMED[format]
    assert names_of(X) == list("abcd")
    rest = without_columns(X, ["a", "c"])
    assert type(rest) is type(X) and list(rest.columns) == ["b", "d"]
    assert read_table(rest).names == ("b", "d")
    assert without_columns(X, None) is X and without_columns(X, []) is X
    with pytest.raises(InputError, match="drop='e' is not known"):
        without_columns(X, ["e"])


@pytest.mark.parametrize("X", [ROWS, np.array(ROWS, dtype=object)], ids=["rows", "array"])
def test_columns_of_an_array_keep_their_names(X):
    assert names_of(X) == ["x0", "x1", "x2", "x3"]
    table = read_table(without_columns(X, ["x0", "x2"]), kinds={"x3": "nominal"})
    assert table.names == ("x1", "x3") and not table.named and table.kinds[1] == "nominal"
    np.testing.assert_array_equal(table.X[:, 0], COLUMNS["b"])
    assert table.decode(table.X).shape == (12, 2)


def test_a_mask_stays_and_a_table_that_was_read_loses_columns_too():
    masked = np.ma.array(np.arange(24.0).reshape(8, 3) ** 2, mask=False)
    masked.mask[2, 1] = True
    table = read_table(without_columns(masked, "x0"))
    assert np.isnan(table.X[2, 0]) and isinstance(table.decode(table.X), np.ma.MaskedArray)
    assert without_columns(read_table(masked), ["x1"]).names == ("x0", "x2")
