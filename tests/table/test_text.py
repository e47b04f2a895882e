"""What a column of text holds, by the rule of all its cells."""

import datetime
from functools import reduce
from itertools import pairwise
from operator import and_

import polars as pl
import pytest

from knockoffs.table.text import mend, read_text, text_of

COLUMNS = {
    "whole": (["1", "-2", "+3", " 4 "], "integer", [1, -2, 3, 4]),
    "fractions": (["1.5", ".5", "5.", "1e-3"], "number", [1.5, 0.5, 5.0, 0.001]),
    "words for a missing number": (["1", "?", "-", ".", "n.a.", "None", "NA", ""], "integer", [1, *[None] * 7]),
    "words for a missing label": (["a", "?", "NA", "", "null"], "label", ["a", *[None] * 4]),
    "labels among labels": (["a", "None", "-", "."], "label", ["a", "None", "-", "."]),
    "not a number": (["nan", "1.5"], "number", [None, 1.5]),
    "decimal commas": (["-0,590", "0,254", "3", "?"], "comma", [-0.59, 0.254, 3.0, None]),
    "decimal commas, one of which decides": (["1,234", "5,67"], "comma", [1.234, 5.67]),
    "booleans": (["true", "False", "TRUE", "?"], "boolean", [True, False, True, None]),
    "days": (
        ["2020-01-31", "-", "1969-12-31"],
        "date",
        [datetime.date(2020, 1, 31), None, datetime.date(1969, 12, 31)],
    ),
    "moments": (
        ["2020-01-31T10:00", "2020-01-31 10:00:01.5"],
        "moment",
        [datetime.datetime(2020, 1, 31, 10), datetime.datetime(2020, 1, 31, 10, 0, 1, 500_000)],
    ),
    "moments of zones": (
        ["2020-01-31T10:00:00Z", "2020-01-31T10:00:00+02:00"],
        "moment",
        [datetime.datetime(2020, 1, 31, 10), datetime.datetime(2020, 1, 31, 8)],
    ),
    "no day": (["2020-02-31"], "label", ["2020-02-31"]),
    "dates in another order": (["31.01.2020"], "label", ["31.01.2020"]),
    "nothing": ([None, "", "NA"], "number", [None] * 3),
    "beyond 64 bits": (["9" * 19, "1"], "label", ["9" * 19, "1"]),
    "Python's own numbers": (["1_000", "0x10", "\u0663"], "label", ["1_000", "0x10", "\u0663"]),
    "codes and a word": (["0", "1", "3+"], "label", ["0", "1", "3+"]),
}
DOUBT = {
    "both marks": ["-0,590", "0.254"],
    "thousands or decimals": ["1,234", "5,678"],
    "thousands and decimals": ["1,234.5", "6"],
    "money": ["$1,234.50", "-$7", "$-8.25", "?"],
    "units behind": ["7,25 \u20ac", "8 \u20ac"],
    "percent": ["12 %", "7.5%"],
    "apostrophes": ["1'234", "5"],
}


@pytest.mark.parametrize("name", COLUMNS)
def test_the_kind_is_that_of_all_cells(name):
    cells, kind, values = COLUMNS[name]
    column = pl.Series(cells, dtype=pl.String)
    assert (text_of(column).kind, text_of(column).in_doubt) == (kind, False)
    assert read_text(column, kind).to_list() == values


@pytest.mark.parametrize("name", DOUBT)
def test_amounts_and_marks_that_no_cell_decides_are_in_doubt(name):
    assert text_of(pl.Series(DOUBT[name])).in_doubt


@pytest.mark.parametrize(
    "cells", [*(cells for cells, _, _ in COLUMNS.values()), *DOUBT.values()], ids=[*COLUMNS, *DOUBT]
)
def test_facts_of_blocks_join_to_those_of_the_column(cells):
    whole = text_of(pl.Series(cells, dtype=pl.String))
    joined = reduce(and_, (text_of(pl.Series(cells[a:b], dtype=pl.String)) for a, b in pairwise(range(len(cells) + 1))))
    assert (joined.kind, joined.in_doubt, joined.stand_ins) == (whole.kind, whole.in_doubt, whole.stand_ins)


@pytest.mark.parametrize(
    "cells", [["10.0.0.1", "1"], ["1.2.3", "1.2.4"], ["044 123 45 67"], ["12 kg"], ["2:1"], ["A1"]]
)
def test_other_labels_are_no_amounts(cells):
    assert text_of(pl.Series(cells)).kind == "label" and not text_of(pl.Series(cells)).in_doubt


def test_the_line_that_mends_amounts_works():
    for cells, numbers in ((["$1,234.50", "-$7"], [1234.5, -7.0]), (["1.234,5 \u20ac", "7,25 \u20ac"], [1234.5, 7.25])):
        frame = pl.DataFrame({"m": cells})
        assert frame.select(eval(mend("m", cells, polars=True), {"pl": pl})).to_series().to_list() == numbers
