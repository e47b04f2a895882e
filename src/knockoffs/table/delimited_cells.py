"""Cells of delimited text: the kind of value that holds all of a column, and labels that no spreadsheet runs.

A column is one of integers, floats, booleans or labels, whichever holds all of its cells that are not missing. A label
that a spreadsheet would run as a formula, or that would be read back as something else, is written with an apostrophe
before it, which the reader takes away again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

MISSING = frozenset(["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null"])
NO_LABEL = MISSING | {"?"}  # among labels a dash may be one
NO_NUMBER = NO_LABEL | {"-", "--", ".", "n.a.", "None", "none"}  # among numbers, dates and amounts
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # starts of what a spreadsheet runs, and what it skips before
INTEGER = re.compile(r"[+-]?[0-9]+")
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf(?:inity)?", re.IGNORECASE)
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,?[0-9]+(?:[eE][+-]?[0-9]+)?")
EXACT_DIGITS = 15  # of an integer that a float holds exactly
BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
KINDS = ("integer", "float", "comma", "boolean", "label")  # each is tried where the one before does not hold all cells


def may_join(before: str, now: str) -> bool:
    """Whether cells that were read as one kind are the same values of another."""
    return before == "integer" and now in ("float", "comma")


def join_parts(parts: Sequence[NDArray], kind: str) -> NDArray:
    """Column of a kind from the values of its blocks."""
    if not parts:
        return np.empty(0)
    whole = parts[0] if len(parts) == 1 else np.concatenate([as_kind(part, kind) for part in parts])
    return as_kind(whole, kind)


def as_kind(values: NDArray, kind: str) -> NDArray:
    """Values of a block without a cell are missing ones of the column's kind."""
    if kind in ("integer", "float", "comma") and values.dtype == object:  # a block without a cell
        return np.full(len(values), np.nan)
    if kind in ("boolean", "label") and values.dtype.kind == "f":
        return np.full(len(values), None, dtype=object)
    return values


def parse(cells: Sequence[str], kind: str, commas: bool) -> tuple[str, NDArray]:
    """Values of some cells of a column, as the kind or the first of the later kinds that holds all of them."""
    for later in KINDS[KINDS.index(kind) :]:
        if later == "comma" and not commas:
            continue
        values = _PARSERS[later](cells)
        if values is not None:
            return later, values
    raise AssertionError("every cell is a label")


def _parse_integers(cells: Sequence[str]) -> NDArray | None:
    joined = "".join(cells)
    if not (joined.isdigit() and joined.isascii() and "" not in cells):
        cells = [cell.strip() for cell in cells]
        if not all(cell in NO_NUMBER or INTEGER.fullmatch(cell) for cell in cells):
            return None
    if NO_NUMBER.isdisjoint(cells):
        try:
            return np.array(list(map(int, cells)), dtype=np.int64)
        except (OverflowError, ValueError):  # beyond 64 bits, or thousands of digits
            return None
    if _merge(cells):
        return None
    return np.array([np.nan if cell in NO_NUMBER else float(cell) for cell in cells])


def _merge(cells: Sequence[str]) -> bool:
    """Whether different whole numbers are equal as floats: they are labels then, most of the time identifiers."""
    long = {cell.strip() for cell in cells if len(cell) > EXACT_DIGITS and INTEGER.fullmatch(cell.strip())}
    return len({cell.lstrip("+").lstrip("0") for cell in long}) > len(set(map(float, long)))


def _parse_floats(cells: Sequence[str]) -> NDArray | None:
    if _merge(cells):
        return None
    joined = "".join(cells)
    try:
        if joined.isascii() and "_" not in joined and "n" not in joined.lower():
            return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        pass
    stripped = [cell.strip() for cell in cells]
    if not all(cell in NO_NUMBER or NUMBER.fullmatch(cell) for cell in stripped):
        return None
    return np.array([np.nan if cell in NO_NUMBER else float(cell) for cell in stripped])


def _parse_commas(cells: Sequence[str]) -> NDArray | None:
    stripped = [cell.strip() for cell in cells]
    if not all(cell in NO_NUMBER or DECIMAL_COMMA.fullmatch(cell) for cell in stripped):
        return None
    return np.array([np.nan if cell in NO_NUMBER else float(cell.replace(",", ".")) for cell in stripped])


def _parse_booleans(cells: Sequence[str]) -> NDArray | None:
    stripped = [cell.strip() for cell in cells]
    if not all(cell in NO_LABEL or cell in BOOLEANS for cell in stripped):
        return None
    values = [BOOLEANS.get(cell) for cell in stripped]
    return np.array(values, dtype=object if None in values else bool)


def _parse_labels(cells: Sequence[str]) -> NDArray:
    values = np.empty(len(cells), dtype=object)
    values[:] = [None if cell.strip() in NO_LABEL else read_back(cell) for cell in cells]
    return values


def stand_ins(cells: Sequence[str], values: NDArray) -> set[str]:
    """Texts that were taken as missing because of what the other cells of their column hold."""
    if values.dtype.kind not in "fO":
        return set()
    gone = np.isnan(values) if values.dtype.kind == "f" else np.array([value is None for value in values])
    return {cells[int(i)].strip() for i in np.flatnonzero(gone)} - MISSING if gone.any() else set()


_PARSERS: dict[str, Callable[[Sequence[str]], NDArray | None]] = {
    "integer": _parse_integers,
    "float": _parse_floats,
    "comma": _parse_commas,
    "boolean": _parse_booleans,
    "label": _parse_labels,
}


# ---- the apostrophe ----------------------------------------------------------------------------------------------


def _is_escaped(rest: str) -> bool:
    return rest.startswith((*FORMULA, "'")) or rest.strip() in NO_LABEL


def read_back(cell: str) -> str:
    """Label of a cell, without the apostrophe that guards it."""
    return cell[1:] if cell.startswith("'") and _is_escaped(cell[1:]) else cell


def _guarded(label: str) -> str:
    return f"'{label}" if _is_escaped(label) and not NUMBER.fullmatch(label) else label


def written_name(name: str) -> str:
    """Name of a column as it is written; an index may have none."""
    return name if name == "" else _guarded(name)


def written(value: object) -> str:
    """Cell that reads back as the value: repr of a float is exact, and what is missing is empty."""
    if isinstance(value, float):
        return repr(float(value)) if value == value else ""
    if isinstance(value, str):
        return _guarded(value)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    return str(value)
