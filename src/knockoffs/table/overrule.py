"""Kinds that a user gives to columns: checked against the data, and used in place of those that were recognised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, did_you_mean, name_some, unknown_option
from knockoffs.table.columns import KINDS, SCALE, Column, in_order, recode
from knockoffs.table.moments import MOMENTS
from knockoffs.table.types import Label

MOST_WRONG = 10  # wrong kinds that one error names


def overrule(
    X: NDArray[np.float64], columns: Sequence[Column], kinds: Mapping[str, str | Sequence[Label]], argument: str = "X"
) -> tuple[NDArray[np.float64], tuple[Column, ...]]:
    """X and its columns of the kinds that a user gives: a kind, or the labels of an ordinal column in their order.

    Raises
    ------
    InputError
        For a column that is not there, a word that is no kind, and kinds that contradict the data: all in one error.
    """
    place = {column.name: j for j, column in enumerate(columns)}
    X, changed = X.copy(), list(columns)
    wrong: list[str] = []
    for name, kind in kinds.items():
        if name not in place:
            hint = did_you_mean(name, list(place)) if len(wrong) < MOST_WRONG else ""
            wrong.append(f"kinds names {name!r}, which is no column of {argument}.{hint}")
            continue
        j = place[name]
        order = list(kind) if isinstance(kind, Iterable) and not isinstance(kind, str) else None
        word = str(kind) if order is None else "ordinal"
        if word not in KINDS:
            wrong.append(str(unknown_option(f"kinds[{name!r}]", word, KINDS)))
            continue
        against = _contradiction(X[:, j], columns[j], word) if order is None else _bad_order(columns[j], order)
        if against:
            wrong.append(f"kinds[{name!r}]={kind!r}, but column {name!r} of {argument} {against}")
            continue
        X[:, j], changed[j] = _with_kind(X[:, j], columns[j], word, order)
    if wrong:
        more = [f"And {len(wrong) - MOST_WRONG} more."] if len(wrong) > MOST_WRONG else []
        raise InputError(" ".join([*wrong[:MOST_WRONG], *more]))
    return X, tuple(changed)


def _contradiction(values: NDArray, column: Column, kind: str) -> str:
    """Say what in the data speaks against a kind; empty if nothing does."""
    present = values[~np.isnan(values)]
    if kind in ("continuous", "count") and column.levels is not None:
        return f"holds labels, for instance {column.levels[0]!r}: use 'nominal' or 'ordinal'."
    if kind == "count":
        if column.dtype in MOMENTS:
            return f"holds {column.dtype}s: use 'continuous' or 'ordinal'."
        odd = present[(present < 0) | (present != np.rint(present))]
        if odd.size:
            what = "a negative number" if odd[0] < 0 else "a fraction"
            return f"holds {odd[0]:g}, {what}: use 'continuous' or 'ordinal'."
    n_distinct = len(column.levels) if column.levels is not None else len(np.unique(present))
    if kind == "binary" and n_distinct > 2:
        return f"has {n_distinct} different values: use {'nominal' if column.levels is not None else 'ordinal'!r}."
    if kind == "nominal" and column.levels is None and 2 * n_distinct > max(len(present), 2 * SCALE):
        return f"has {n_distinct} different values in {len(present)} rows, too many for labels: use 'continuous'."
    return ""


def _bad_order(column: Column, order: list[Label]) -> str:
    if column.levels is None:
        return "holds numbers, which have their own order: say 'ordinal'."
    listed = Counter(order)
    absent = [level for level in column.levels if level not in listed]
    if absent:
        return f"also holds {name_some(absent)}: list all of its labels."
    twice = sorted({str(level) for level, times in listed.items() if times > 1})
    return f"has its labels listed twice: {name_some(twice)}." if twice else ""


def _with_kind(values: NDArray, column: Column, kind: str, order: list[Label] | None) -> tuple[NDArray, Column]:
    why = "as kinds says"
    if order is not None and column.levels is not None:
        present = set(column.levels)
        levels = tuple(level for level in order if level in present)
        why = f"as kinds says, in the order {in_order(levels)}"
        return recode(values, column.levels, levels), replace(column, levels=levels, kind=kind, why=why)
    if kind == "ordinal" and column.levels is not None:
        why = f"as kinds says, in the order {in_order(column.levels)}; list the labels for another one"
    if kind == "nominal" and column.levels is None:
        distinct, codes = np.unique(values, return_inverse=True)
        present = distinct[~np.isnan(distinct)]
        whole = column.dtype == "integer"
        levels = tuple((present.astype(np.int64) if whole else present).tolist())
        return np.where(np.isnan(values), np.nan, codes), replace(column, levels=levels, kind=kind, why=why)
    return values, replace(column, kind=kind, why=why)
