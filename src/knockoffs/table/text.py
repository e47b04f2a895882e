"""What a column of text holds: numbers, booleans, ISO dates or labels, and which of its words mean a missing cell.

The rule is the same for the cells of a csv file and for a text column of a data frame. It is a rule of whole columns:
a column is of a kind if every cell that is not missing fits it, so facts of blocks of rows can be joined.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import polars as pl

MISSING = frozenset(["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null"])
NO_LABEL = MISSING | {"?"}  # missing among labels, where a dash or the word None may be a label
NO_NUMBER = NO_LABEL | {"-", "--", ".", "n.a.", "None", "none"}  # missing among numbers and dates
BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}

_CURRENCY = r"(?:[$€£¥₹]|USD|EUR|GBP|CHF|JPY)"
PATTERNS = {
    "comma": r"^[+-]?[0-9]*,?[0-9]+(?:[eE][+-]?[0-9]+)?$",
    # commas may be marks between thousands
    "thousands": r"^[+-]?(?:[0-9]+|[1-9][0-9]{0,2}(?:,[0-9]{3})+)(?:\.[0-9]+)?$",
    "amount": rf"^[+-]?(?:{_CURRENCY}\s?)?[+-]?(?:[0-9]{{1,3}}(?:[,.'\s\x{{a0}}\x{{202f}}][0-9]{{3}})+|[0-9]+)"
    rf"(?:[.,][0-9]+)?\s?(?:%|‰|{_CURRENCY})?$",
    "date": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "moment": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})?$",
}
THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+")
KINDS = ("integer", "number", "comma", "boolean", "date", "moment")  # the first that fits all cells is the column's


@dataclass(frozen=True)
class Text:
    """Facts about the cells of a text column; those of two blocks of rows are joined by ``&``."""

    fits: frozenset[str] = frozenset([*KINDS, *PATTERNS])  # kinds and patterns of every cell, missing ones aside
    words: frozenset[str] = frozenset()  # for a missing number, other than an empty cell
    blank: bool = True  # whether every cell is missing

    def __and__(self, other: Text) -> Text:
        return Text(self.fits & other.fits, self.words | other.words, self.blank and other.blank)

    @property
    def kind(self) -> str:
        """Kind of the column: one of ``KINDS``, or "label"."""
        if self.blank:
            return "number"
        kind = next((kind for kind in KINDS if kind in self.fits), "label")
        return "label" if kind == "comma" and "thousands" in self.fits else kind

    @property
    def in_doubt(self) -> bool:
        """Whether the cells are amounts, or numbers whose decimal mark the column does not decide."""
        return self.kind == "label" and "amount" in self.fits

    @property
    def stand_ins(self) -> frozenset[str]:
        """Words in the column that mean a missing cell, because of what the others hold."""
        return self.words & (NO_LABEL if self.kind in ("label", "boolean") else NO_NUMBER)


def text_of(cells: pl.Series) -> Text:
    """Facts about some cells of a text column.

    >>> text_of(pl.Series(["1", "?", "2.5"])).kind, text_of(pl.Series(["a", "None"])).kind
    ('number', 'label')
    >>> text_of(pl.Series(["-0,590", "0,254"])).kind, text_of(pl.Series(["-0,590", "0.254"])).in_doubt
    ('comma', True)
    """
    n_missing = cells.null_count()
    if n_missing == len(cells):
        return Text()
    if cells.cast(pl.Int64, strict=False).null_count() == n_missing:  # the usual cases, without a look at words
        return Text(frozenset(["integer", "number", "comma", "thousands", "amount"]), blank=False)
    floats = cells.cast(pl.Float64, strict=False)
    if floats.null_count() == n_missing and not floats.is_nan().any() and not _too_long(cells):
        return Text(frozenset(["number", "thousands", "amount"]), blank=False)
    stripped = cells.str.strip_chars().unique().drop_nulls()
    words = frozenset(stripped.filter(stripped.is_in(list(NO_NUMBER))))
    numbers = stripped.filter(~stripped.is_in(list(NO_NUMBER)))
    labels = stripped.filter(~stripped.is_in(list(NO_LABEL)))
    fits = {kind for kind in KINDS if _fits(labels if kind == "boolean" else numbers, kind)}
    fits |= {name for name in ("thousands", "amount") if _match(numbers, name) and not _too_long(numbers)}
    return Text(frozenset(fits), words - {""}, blank=not len(labels))


def _fits(cells: pl.Series, kind: str) -> bool:
    if kind == "boolean":
        return bool(cells.is_in(list(BOOLEANS)).all())
    if kind in PATTERNS and not _match(cells, kind):
        return False
    return bool(read_text(cells, kind).is_not_null().all()) and not (kind in ("number", "comma") and _too_long(cells))


def _match(cells: pl.Series, name: str) -> bool:
    return bool(cells.drop_nulls().str.contains(PATTERNS[name]).all())


def _too_long(cells: pl.Series) -> bool:
    """Whether there are whole numbers beyond 64 bits, most of the time identifiers: a float would round them."""
    whole = cells.filter(cells.str.contains(r"^\s*[+-]?[0-9]{19,}\s*$"))
    return whole.cast(pl.Int64, strict=False).null_count() > 0


def read_text(cells: pl.Series, kind: str) -> pl.Series:
    """Values of the cells of a text column of a kind, as ``Text.kind`` names it; null where one is missing or unfit.

    >>> read_text(pl.Series(["1,5", "-"]), "comma").to_list(), read_text(pl.Series([" a", "?"]), "label").to_list()
    ([1.5, None], [' a', None])
    """
    stripped = cells.str.strip_chars()
    if kind == "label":
        return cells.set(stripped.is_in(list(NO_LABEL)), None)
    if kind == "boolean":
        return stripped.replace_strict(BOOLEANS, default=None, return_dtype=pl.Boolean)
    if kind == "date":
        return stripped.str.to_date("%Y-%m-%d", strict=False)
    if kind == "moment":
        return _moments(stripped)
    if kind == "integer":
        return stripped.cast(pl.Int64, strict=False)
    if kind == "comma":
        stripped = stripped.str.replace(",", ".", literal=True)
    return stripped.cast(pl.Float64, strict=False).fill_nan(None)


def _moments(cells: pl.Series) -> pl.Series:
    """Dates with a time, in UTC where they name a zone."""
    cells = cells.str.replace(" ", "T", literal=True)
    zoned = cells.str.to_datetime("%+", time_unit="us", time_zone="UTC", strict=False).dt.replace_time_zone(None)
    found = [
        cells.str.to_datetime(form, time_unit="us", strict=False) for form in ("%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%.f")
    ]
    return reduce(lambda first, then: first.fill_null(then) if first.null_count() else first, [*found, zoned])


def describe_doubt(name: str, cells: Sequence[str], *, polars: bool) -> tuple[str, str]:
    """Return what is wrong with a text column in doubt, and the line of polars or pandas that mends it if cells agree.

    >>> describe_doubt("price", ["$1,234.50", "$7"], polars=False)[1]
    "make numbers of them: X['price'].str.replace('[^0-9.-]', '', regex=True).astype(float)"
    >>> describe_doubt("price", ["7,25 €", "8 €"], polars=True)[1]
    "make numbers of them: pl.col('price').str.replace_all('[^0-9,-]', '').str.replace(',', '.').cast(float)"
    >>> describe_doubt("dose", ["-0,590", "0.254"], polars=True)[0]
    "has decimal commas and decimal points, for instance '-0,590' and '0.254'"
    >>> describe_doubt("price", ["0.5", "1,234.5"], polars=True)[0]
    "holds amounts as text, for instance '1,234.5'"
    """
    marks = {cell: re.sub("[^0-9.,]", "", cell) for cell in cells}
    points = [cell for cell, mark in marks.items() if "." in mark.rpartition(",")[2]]  # decimal ones, and so commas
    commas = [c for c, mark in marks.items() if "," in mark and c not in points and not THOUSANDS.fullmatch(mark)]
    if commas and points:
        what = f"has decimal commas and decimal points, for instance {commas[0]!r} and {points[0]!r}"
        return what, "write all of them with points"
    if all(cell.strip("+-") == mark for cell, mark in marks.items()) and not points:
        example = next(cell for cell in cells if "," in cell)
        return f"holds {example!r}, a decimal comma or a thousand", "write it without a comma, as 1.234 or as 1234"
    kept, then = ("[^0-9,-]", ".str.replace(',', '.')") if commas else ("[^0-9.-]", "")
    line = f"X[{name!r}].str.replace('{kept}', '', regex=True){then}.astype(float)"
    if polars:
        line = f"pl.col({name!r}).str.replace_all('{kept}', ''){then}.cast(float)"
    example = next((cell for cell in cells if re.search("[^-+0-9.]", cell.strip())), cells[0])  # no plain number
    return f"holds amounts as text, for instance {example!r}", f"make numbers of them: {line}"
