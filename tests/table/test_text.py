"""What a column of text holds, by the rule of all its cells."""

import datetime
from functools import reduce
from itertools import pairwise
from operator import and_

import pandas as pd
import polars as pl
import pytest

from knockoffs.table.text import describe_doubt, read_text, text_of

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


MENDED = {
    "dollars": (["$1,234.50", "-$7", "$12"], [1234.5, -7.0, 12.0]),
    "euros": (["1.234,5 \u20ac", "7,25 \u20ac", "8 \u20ac"], [1234.5, 7.25, 8.0]),
    "less than one": (["\u20ac0,590", "\u20ac1,234", "\u20ac2"], [0.59, 1.234, 2.0]),
    "percent": (["12 %", "-7.5 %", "3 %"], [12.0, -7.5, 3.0]),
    "apostrophes": (["1'234", "5", "6"], [1234.0, 5.0, 6.0]),
}


@pytest.mark.parametrize("name", MENDED)
def test_the_line_that_mends_amounts_works(name):
    cells, numbers = MENDED[name]
    for polars, frame in ((True, pl.DataFrame({"m": cells})), (False, pd.DataFrame({"m": cells}))):
        line = describe_doubt("m", cells, polars=polars)[1].removeprefix("make numbers of them: ")
        made = eval(line, {"pl": pl, "X": frame})
        assert (frame.select(made)["m"] if polars else made).to_list() == numbers


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["-0,590", "0.254"], ("has decimal commas and decimal points, for instance '-0,590' and '0.254'", "points")),
        (["$7,25", "$1,234.50"], ("for instance '$7,25' and '$1,234.50'", "write all of them with points")),
        (["1,234", "5,678"], ("holds '1,234', a decimal comma or a thousand", "write it without a comma")),
    ],
)
def test_no_line_is_given_where_the_mark_is_in_doubt(cells, said):
    found = describe_doubt("m", cells, polars=True)
    assert all(words in sentence for words, sentence in zip(said, found, strict=True))
    assert "str.replace" not in found[1]
