"""What the values of a column are: continuous, count, ordinal, binary or nominal, as recognised or as a user says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, did_you_mean, name_some, unknown_option
from knockoffs.table.moments import MOMENTS, WORDS, format_duration, unit_of
from knockoffs.table.types import Label

KINDS = ("continuous", "count", "ordinal", "binary", "nominal")
CODED = ("boolean", "string", "category")  # dtypes of columns that hold labels, not numbers
SCALE, MOST_STEPS, ROWS_A_VALUE = 20, 100, 5  # thresholds of ``recognise_kind``, which says what they decide
FIRST_ROWS = 500  # in which most continuous columns are recognised


def check_kinds(kinds: Iterable[str]) -> None:
    """Refuse words that are no kinds."""
    for kind in kinds:
        if kind not in KINDS:
            raise unknown_option("kinds", kind, KINDS)


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    # "number", "integer", "boolean", "string", "category", "date", "time" or "duration": what came in. Numbers, dates
    # and durations (as days) stand in X as they are, others as codes of their levels
    dtype: str = "number"
    levels: tuple[Label, ...] | None = None  # of labels: level k has the code k in X
    kind: str = "continuous"  # "continuous", "count", "ordinal", "binary" or "nominal": what the values are
    why: str = ""  # how the kind was recognised
    n_missing: int = 0  # cells without a value, NaN in X
    # of a column of text that stands for numbers, booleans or dates: its kind, as ``knockoffs.table.text`` names it
    text: str = ""
    origin: float = 0.0  # of numbers far from zero: what is subtracted before a model of y sees them
    ordered: bool = False  # whether the levels came in an order that means something
    words: frozenset[str] = frozenset()  # of text: those that were taken as missing cells


def describe(column: Column) -> str:
    """One sentence that says what a column was taken for, why, and how many of its cells are missing.

    >>> describe(Column("grade", "integer", None, "ordinal", "5 different whole numbers, 1 to 5", 3))
    "'grade' is ordinal: 5 different whole numbers, 1 to 5; 3 cells are missing."
    """
    cells = "1 cell is" if column.n_missing == 1 else f"{column.n_missing} cells are"
    missing = f"; {cells} missing" if column.n_missing else ""
    why = column.why.replace("{name}", repr(column.name))
    return f"{column.name!r} is {column.kind}{': ' if why else ''}{why}{missing}."


# ---- recognising -------------------------------------------------------------------------------------------------


def recognise_kind(
    values: NDArray[np.float64],
    dtype: str = "number",
    levels: Sequence[Label] | None = None,
    ordered: bool = False,
    *,
    scale: int = SCALE,
    most_steps: int = MOST_STEPS,
    rows_a_value: int = ROWS_A_VALUE,
) -> tuple[str, str]:
    """Kind of a column and the reason for it.

    Two values of anything are binary. Labels are nominal, or ordinal if they came in an order. Numbers that repeat are
    ordinal if they are few; whole numbers from 0 up that repeat are counts if they have a long tail, or more values
    than a scale has; all others are continuous. The most frequent value does not count as a repetition, so that a
    column of many zeros and a continuous rest is continuous. Codes written as whole numbers (3 = widowed) look like
    grades: they are ordinal, unless ``kinds=`` says otherwise.

    ``values`` are numbers or codes of the levels, NaN where a cell is missing; ``ordered`` says whether the levels came
    in an order that means something.

    Parameters
    ----------
    scale : int
        Whole numbers with at most so many values, and no long tail, are a scale: ordinal.
    most_steps : int
        Numbers with more values than this are not ordinal, however often they repeat.
    rows_a_value : int
        Numbers repeat if each value has so many rows on average; two are enough on a scale.

    >>> recognise_kind(np.array([1.0, 2.0, 2.0, 1.0]))
    ('binary', 'two values, 1 and 2')
    >>> recognise_kind(np.tile([1.0, 2.0, 3.0], 10))[0]
    'ordinal'
    >>> recognise_kind(np.array([1.5, 2.25, 3.125]))[0]
    'continuous'
    """
    if levels is not None:
        kind, why = _kind_of_labels(dtype, levels, ordered)
        return kind, why + _said_once(values, levels)
    present = values[~np.isnan(values)]
    return _kind_of_numbers(*_distinct(present), dtype, scale, most_steps, rows_a_value)


def _distinct(values: NDArray) -> tuple[NDArray, NDArray]:
    """Distinct values in ascending order and the rows of each; small whole numbers are counted, not sorted."""
    if values.size and values.min() >= 0 and values.max() <= 10 * values.size:
        codes = values.astype(np.intp)
        if (codes == values).all():
            counts = np.bincount(codes)
            distinct = np.flatnonzero(counts)
            return distinct.astype(float), counts[distinct]
    return np.unique(values, return_counts=True)


def _kind_of_labels(dtype: str, levels: Sequence[Label], ordered: bool) -> tuple[str, str]:
    m = len(levels)
    word = {"boolean": "boolean", "string": "text", "category": "categories"}.get(dtype, "values")
    if dtype == "boolean":
        return "binary", "boolean" if m == 2 else f"boolean, always {levels[0]!r}" if m else "boolean"
    if m == 2:
        return "binary", f"{word} with two values, {name_some(levels)}"
    if ordered:
        return "ordinal", f"{m} categories in the order {in_order(levels)}"
    return "nominal", f"{word} with {m} different value{'' if m == 1 else 's'}"


def _said_once(values: NDArray, levels: Sequence[Label]) -> str:
    """Name the labels that only one row has; their law is learned from that row."""
    if len(levels) < 2:
        return ""
    counts = np.bincount(values[~np.isnan(values)].astype(np.intp), minlength=len(levels))
    once = [level for level, count in zip(levels, counts, strict=True) if count == 1]
    return f", {name_some(once)} in one row only" if once and len(once) < len(levels) else ""


def in_order(levels: Sequence[Label], most: int = 5) -> str:
    """Labels in their order, with the middle ones left out where there are many."""
    shown = [str(level) for level in levels]
    return " < ".join(shown if len(shown) <= most else [*shown[: most - 1], "...", shown[-1]])


def _kind_of_numbers(
    distinct: NDArray, counts: NDArray, dtype: str, scale: int, most_steps: int, rows_a_value: int
) -> tuple[str, str]:
    m, n = len(distinct), int(counts.sum())
    unit = WORDS.get(dtype, "numbers")
    if m == 0:
        return "continuous", "no values"
    low, high = f"{distinct[0]:g}", f"{distinct[-1]:g}"
    if dtype == "duration":
        low, high = (format_duration(end, unit_of(distinct)) for end in (distinct[0], distinct[-1]))
    if m == 1:
        return "ordinal", f"one value only, {low}"
    whole = bool((distinct == np.rint(distinct)).all())
    if m == 2 and (whole or n > m):
        return "binary", f"two values, {low} and {high}"
    rest = n - int(counts.max())
    rows = 2 if whole and m <= scale else rows_a_value
    few = whole and m <= scale and distinct[-1] - distinct[0] <= 2 * scale and n >= rows_a_value * m
    repeats = rest >= rows * (m - 1) or few  # few: nearly all zeros, and the rest small whole numbers
    if not repeats:
        hardly = ", most of them different" if whole else ""
        return "continuous", f"{'whole ' if whole and dtype not in MOMENTS else ''}{unit} from {low} to {high}{hardly}"
    if whole and dtype not in MOMENTS and distinct[0] >= 0 and (m > scale or looks_like_counts(distinct, counts)):
        return "count", f"whole numbers from {low} to {high}"
    if m <= most_steps:
        whole = whole and dtype not in MOMENTS
        codes = "; if they are codes, say kinds={{name}: 'nominal'}" if whole and m <= scale else ""
        return "ordinal", f"{m} different {'whole ' if whole else ''}{unit}, {low} to {high}{codes}"
    return "continuous", f"{unit} from {low} to {high}"


def looks_like_counts(distinct: NDArray, counts: NDArray) -> bool:
    """Whether whole numbers look like counts: from 0 up, one peak, a rare last value, a variance like the mean or more.

    Shares that fall from 0 on to a rare last value are counts; balanced classes have no rare last value, and a bell
    on 1 to 5 has less variance than a count of its mean.

    ``distinct`` values are in ascending order, ``counts`` the rows of each.

    >>> looks_like_counts(np.arange(5), np.array([137, 270, 271, 180, 20]))
    False
    >>> looks_like_counts(np.arange(7), np.array([135, 271, 270, 180, 90, 36, 12]))
    True
    >>> looks_like_counts(np.arange(3), np.array([50, 50, 50]))
    False
    """
    m, n = len(distinct), counts.sum()
    if m < 3 or distinct[0] < 0 or (distinct != np.rint(distinct)).any():
        return False
    mean = float(distinct @ counts) / n
    deviation = distinct - mean
    variance = float(deviation**2 @ counts) / n
    if distinct[0] > max(0.0, mean / 2) or variance < 0.7 * mean:
        return False
    if variance > 2 * mean:  # counts that vary so much have a long right tail
        skew = float(deviation**3 @ counts) / n / variance**1.5
        if distinct[0] > 1 or skew < variance**0.5 / mean / 2:
            return False
    if m > SCALE:
        return True
    if counts[-1] > counts.max() / (8 if m == 3 else 5) or (m <= 5 and distinct[-1] - distinct[0] >= m):
        return False  # the last value is common, or few values have a gap among them
    return one_peak(counts) or (m > 5 and distinct[0] == 0 and one_peak(counts[1:]))  # the zeros may be too many


def one_peak(counts: NDArray) -> bool:
    """Whether frequencies rise to one peak and fall again, but for the noise of two standard errors."""
    peak = int(np.argmax(counts))
    step = np.diff(counts.astype(float))
    noise = 2 * np.sqrt(counts[1:] + counts[:-1])
    rising = np.arange(len(step)) < peak
    return bool((np.where(rising, -step, step) <= noise).all())


def recognise_kinds(X: NDArray[np.float64], columns: Sequence[Column]) -> tuple[Column, ...]:
    """Columns of X, shape (n, n_columns), with their kinds and missing cells."""
    plain, n_missing, origin = _plainly_continuous(X), np.isnan(X).sum(axis=0), origins(X)
    result = []
    for j, column in enumerate(columns):
        if plain[j] and column.levels is None and column.dtype in ("number", "date", "time"):
            kind, why = "continuous", WORDS.get(column.dtype, "numbers with decimals")
        else:
            kind, why = recognise_kind(X[:, j], column.dtype, column.levels, column.ordered)
        why += ", written as text" if column.text else ""
        result.append(replace(column, kind=kind, why=why, n_missing=int(n_missing[j]), origin=float(origin[j])))
    return tuple(result)


def ends(X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smallest and largest value of each column, NaN where it has none."""
    return np.fmin.reduce(X, axis=0, initial=np.nan), np.fmax.reduce(X, axis=0, initial=np.nan)


def origins(X: NDArray[np.float64], far: float = 1e5) -> NDArray[np.float64]:
    """Middle of each column of X that lies ``far`` times its range or more from zero; 0 for the others.

    Sums of squares of such a column lose the digits that tell its rows apart, so models of y see X less its origin.

    >>> origins(np.array([[1.0, 1e12], [2.0, 1e12 + 4]])).tolist()
    [0.0, 1000000000002.0]
    """
    low, high = ends(X)
    with np.errstate(over="ignore", invalid="ignore"):
        half = high / 2 - low / 2
        return np.where((half > 0) & (np.fmin(np.abs(low), np.abs(high)) >= 2 * far * half), low + half, 0.0)


def few_digits(X: NDArray[np.float64], digits: int = 4) -> NDArray[np.bool_]:
    """Whether each column of X is rounded: its range is less than 10^digits steps of floating-point numbers.

    Whole numbers up to 2^53 are exact.

    >>> few_digits(np.array([[0.1, 1e15 + 0.1, 1e15], [0.7, 1e15 + 0.7, 1e15 + 3]])).tolist()
    [False, True, False]
    """
    found = origins(X) != 0
    for j in np.flatnonzero(found):
        values = X[~np.isnan(X[:, j]), j]
        step = np.spacing(np.abs(values).max())
        found[j] = np.ptp(values) < step * 10**digits and (step > 1 or bool((values != np.rint(values)).any()))
    return found


def _plainly_continuous(X: NDArray) -> NDArray[np.bool_]:
    """Columns of numbers with decimals that do not repeat, seen on the first rows; others may be continuous too."""
    head = np.sort(X[:FIRST_ROWS], axis=0)  # NaN goes last
    if len(head) < 3:
        return np.zeros(X.shape[1], dtype=bool)
    with np.errstate(invalid="ignore"):
        n_distinct = 1 + (np.diff(head, axis=0) > 0).sum(axis=0)
        decimals = (head != np.rint(head)).mean(axis=0) > 0.5
    all_differ = (n_distinct == len(head)) & (len(head) == len(X))
    return decimals & ((n_distinct > MOST_STEPS) | all_differ)


def own_values(column: Column, values: NDArray) -> NDArray:
    """Values of one column in its own type: labels for codes, integers where all are whole, days for dates.

    NaN, where a cell is missing, is None among labels.
    """
    if column.levels is None:
        whole = column.dtype == "integer" and np.array_equal(np.rint(values), values)
        return values.astype(np.int64) if whole and (np.abs(values) < 2.0**63).all() else values
    missing = np.isnan(values)
    codes = np.where(missing, 0, values).astype(np.intp)
    present = values[~missing]
    if present.size and (
        (present != codes[~missing]).any() or present.min() < 0 or present.max() >= len(column.levels)
    ):
        raise InputError(f"column {column.name!r} holds values that are codes of none of its labels.")
    levels = np.empty(len(column.levels) + 1, dtype=object)
    levels[:-1] = column.levels
    if missing.any():
        return levels[np.where(missing, len(column.levels), codes)]
    dtypes = {"boolean": bool, "integer": np.int64, **dict.fromkeys(("number", *MOMENTS), float)}
    return levels[:-1].astype(dtypes.get(column.dtype, object))[codes]


def recode(values: NDArray[np.float64], levels: Sequence[Label], known: Sequence[Label]) -> NDArray[np.float64]:
    """Codes of labels as those of known labels with the same text; NaN where there is no such label, or no value.

    >>> recode(np.array([0.0, 1.0, np.nan]), ("b", "c"), ("a", "b")).tolist()
    [1.0, nan, nan]
    """
    place = {str(level): float(k) for k, level in enumerate(known)}
    codes = np.array([*(place.get(str(level), np.nan) for level in levels), np.nan])
    return codes[np.where(np.isnan(values), len(levels), values).astype(np.intp)]


# ---- kinds that a user gives ---------------------------------------------------------------------------------------
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


# ---- for a model of y --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Design:
    """How columns become numbers for a model of y: nominal ones a block of indicators, all others less their origin."""

    blocks: tuple[int, ...]  # of each column of the table: number of indicators, 0 for a column that stays as it is
    # shape (n_design_columns,): feature that owns each column of the result: a swap exchanges whole features
    feature_of: NDArray[np.intp]
    origin: NDArray[np.float64]  # shape (n_columns,): subtracted from the columns of the table

    def __call__(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Columns for a model of y, shape (n, n_design_columns), of an array like the table's X without NaN.

        The same function of X and of X_tilde, column by column, so that swaps commute with it.
        """
        X = X - self.origin if self.origin.any() else X
        if not any(self.blocks):
            return X
        parts = [X[:, [j]] if not m else (X[:, [j]] == np.arange(m)).astype(float) for j, m in enumerate(self.blocks)]
        return np.hstack(parts)


def design(columns: Sequence[Column], feature_of: NDArray[np.intp] | None = None) -> Design:
    """Design of a table's columns for a model of y; each column is a feature by default.

    >>> colour = Column("colour", "string", ("blue", "green", "red"), "nominal")
    >>> made = design([Column("size"), colour])
    >>> made.feature_of
    array([0, 1, 1, 1])
    >>> made(np.array([[0.5, 2.0]]))
    array([[0.5, 0. , 0. , 1. ]])
    """
    owners = np.arange(len(columns)) if feature_of is None else np.asarray(feature_of, dtype=np.intp)
    blocks = tuple(
        len(column.levels) if column.kind == "nominal" and column.levels and len(column.levels) > 2 else 0
        for column in columns
    )
    origin = np.array([column.origin for column in columns])
    return Design(blocks, np.repeat(owners, [max(m, 1) for m in blocks]), origin)
