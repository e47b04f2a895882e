"""Text that stands for numbers: dates in the usual formats, percentages, money, thousands in groups; read and written.

A format is a word that a reader knows: ``DD.MM.YYYY hh:mm`` of a date, ``$#,##0.00`` of an amount. Plain numbers as
text have none: who keeps digits as text may mean labels by them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from knockoffs.table.types import Label

DAY = 86_400_000_000  # microseconds
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # of the years 1 and 9999
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
FIRST_OF_CENTURY = 69  # years of two digits from here on are of 1900
# part of a format -> what stands for it; the longest first
PARTS = {
    "YYYY": r"(?P<year>\d{4})",
    "Month": r"(?P<name>[A-Za-z]{3,9})",
    "Mon": r"(?P<name>[A-Za-z]{3})",
    "YY": r"(?P<short>\d{2})",
    "MM": r"(?P<month>\d{1,2})",
    "DD": r"(?P<day>\d{1,2})",
    "hh": r"(?P<hour>\d{1,2})",
    "mm": r"(?P<minute>\d{2})",
    "ss.s": r"(?P<second>\d{2}\.\d{1,9})",
    "ss": r"(?P<second>\d{2})",
    "AM": r"(?P<half>[AaPp][Mm])",
    "zone": r"(?P<zone>[+-]\d{2}:?\d{2})",
    "#": r"(?P<quarter>[1-4])",
}
DAYS = (
    *("YYYY-MM-DD", "YYYY/MM/DD", "YYYY.MM.DD", "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY", "DD-MM-YYYY", "MM-DD-YYYY"),
    *("DD/MM/YY", "MM/DD/YY", "DD Mon YYYY", "DD-Mon-YYYY", "DD-Mon-YY", "YYYY-Mon-DD", "Mon DD, YYYY", "Mon DD YYYY"),
    *("DD Month YYYY", "Month DD, YYYY", "Month DD YYYY"),
)
TIMES = ("hh:mm", "hh:mm:ss", "hh:mm:ss.s", "hh:mm AM", "hh:mm:ss AM")
ZONES = ("hh:mm:ssZ", "hh:mm:ss.sZ", "hh:mm:sszone", "hh:mm:ss.szone")
MOMENTS = tuple(f"{day}{mark}{time}" for day in DAYS for mark in (" ", "T") for time in (*TIMES, *ZONES))
OTHERS = ("hh:mm", "hh:mm:ss", "YYYY-MM", "MM/YYYY", "Mon YYYY", "Month YYYY", "Mon-YYYY", "YYYY Mon", "YYYY Month")
QUARTERS = ("YYYYQ#", "YYYY-Q#", "YYYY Q#", "Q# YYYY")
DATES = (*DAYS, *OTHERS, *QUARTERS, *MOMENTS)

MONEY = r"[$€£¥₹]|(?:USD|EUR|GBP|CHF|JPY)\s?"
UNIT = r"\s?(?:%|‰|[$€£¥₹]|USD|EUR|GBP|CHF|JPY)"
# between thousands, and before decimals
MARKS = ((",", "."), ("'", "."), (" ", "."), (" ", ","), ("\u00a0", ","), ("\u202f", ","), (".", ","))
PLAIN = re.compile(r"[+-]?\d+(?:\.\d*)?")
AMOUNT = {
    (group, mark): re.compile(
        rf"(?P<minus>[+-]?)(?P<before>(?:{MONEY})?)(?P<minus_after>-?)"
        rf"(?P<whole>\d{{1,3}}(?:{re.escape(group)}\d{{3}})+|\d+)(?:{re.escape(mark)}(?P<decimals>\d+))?(?P<after>(?:{UNIT})?)"
    )
    for group, mark in MARKS
}
FORMAT_OF_AMOUNT = re.compile(r"(?P<before>.*?)(?:#(?P<group>.)##)?0(?:(?P<mark>[.,])(?P<decimals>0+))?(?P<after>\D*)")


def formats_of(levels: Sequence[Label]) -> list[str]:
    """List the formats that hold all of some texts; they are several where days and months cannot be told apart.

    >>> formats_of(["31.01.2012", "1.12.2011"]), formats_of(["12 %", "7.5 %"]), formats_of(["a", "b"])
    (['DD.MM.YYYY'], ['0.0 %'], [])
    >>> formats_of(["01/02/2012", "03/04/2011"]), formats_of(["$1,200", "$7"]), formats_of(["12", "7"])
    (['DD/MM/YYYY', 'MM/DD/YYYY'], ['$#,##0'], [])
    """
    texts = [level for level in levels if isinstance(level, str)]
    if not texts or len(texts) < len(levels):
        return []
    fitting = [word for word in DATES if _pattern(word).fullmatch(texts[0])]
    dates = [word for word in fitting if read_dates(texts, word) is not None]
    if dates:
        return dates
    amount = _format_of_amounts(texts)
    return [] if amount is None else [amount]


def is_date(word: str) -> bool:
    """Whether a format is one of dates or times, not of amounts."""
    return word in DATES


def read_text(levels: Sequence[str], word: str) -> NDArray[np.float64]:
    """Numbers, or days since 1970-01-01, of texts of a format; NaN where a text is not of it."""
    found = read_dates(levels, word) if is_date(word) else _read_amounts(levels, word)
    if found is not None:
        return found
    one_by_one = [read_dates([level], word) if is_date(word) else _read_amounts([level], word) for level in levels]
    return np.array([np.nan if value is None else value[0] for value in one_by_one])


def write_text(values: NDArray, word: str) -> list[str | None]:
    """Texts of a format for numbers or days; None for NaN.

    >>> write_text(np.array([15370.0, np.nan]), "DD.MM.YYYY"), write_text(np.array([-1234.5]), "$#,##0.00")
    (['31.01.2012', None], ['-$1,234.50'])
    """
    write = _date_writer(word) if is_date(word) else _amount_writer(word)
    return [None if value != value else write(value) for value in values.tolist()]


# ---- dates -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=len(DATES))
def _pattern(word: str) -> re.Pattern[str]:
    parts = re.split(f"({'|'.join(map(re.escape, PARTS))})", word)
    return re.compile("".join(PARTS.get(part, re.escape(part)) for part in parts))


def read_dates(levels: Sequence[str], word: str) -> NDArray[np.float64] | None:
    """Days since 1970-01-01 of texts of a format, shape (n_levels,); None if one is not of it, or no day there is."""
    pattern = _pattern(word)
    found = []
    for level in levels:
        match = pattern.fullmatch(level)
        if match is None:
            return None
        found.append(match.groupdict())
    columns = {name: [groups[name] for groups in found] for name in found[0]}
    year, month, day = _calendar(columns, len(levels))
    if ((month < 1) | (month > 12) | (day < 1) | (day > 31)).any():
        return None
    months = (year - 1970).astype("M8[Y]").astype("M8[M]") + (month - 1)
    days = months.astype("M8[D]") + (day - 1)
    if (days.astype("M8[M]") != months).any():  # the 31st of a short month
        return None
    clock = _clock(columns, len(levels))
    return None if clock is None else days.astype(np.int64) + clock


def _calendar(columns: dict[str, list[str]], n: int) -> tuple[NDArray, NDArray, NDArray]:
    """Year, month and day of each text; a month that does not exist is 0."""
    if "short" in columns:
        short = np.array(columns["short"], dtype=int)
        year = short + np.where(short < FIRST_OF_CENTURY, 2000, 1900)
    else:
        year = np.array(columns.get("year", [1970] * n), dtype=int)
    if "name" in columns:
        month = np.array([_month(name) for name in columns["name"]])
    elif "quarter" in columns:
        month = 3 * np.array(columns["quarter"], dtype=int) - 2
    else:
        month = np.array(columns.get("month", [1] * n), dtype=int)
    return year, month, np.array(columns.get("day", [1] * n), dtype=int)


def _month(name: str) -> int:
    return next((k for k, m in enumerate(MONTHS, start=1) if name.title() in (m, m[:3])), 0)


def _clock(columns: dict[str, list[str]], n: int) -> NDArray[np.float64] | None:
    """Part of the day of each text, as days; None if one is no time of a clock."""
    if "hour" not in columns:
        return np.zeros(n)
    hour, minute = np.array(columns["hour"], dtype=int), np.array(columns["minute"], dtype=int)
    second = np.array(columns.get("second", [0] * n), dtype=float)
    if "half" in columns:
        if ((hour < 1) | (hour > 12)).any():
            return None
        hour = hour % 12 + np.where([half.lower() == "pm" for half in columns["half"]], 12, 0)
    if ((hour > 23) | (minute > 59) | (second >= 61)).any():
        return None
    offset = [int(z[0] + "1") * (int(z[1:3]) * 60 + int(z[-2:])) for z in columns.get("zone", [])] or [0] * n
    return (3600 * hour + 60 * (minute - np.array(offset)) + second) / 86400


def _date_writer(word: str) -> Callable[[float], str]:
    parts = re.split(f"({'|'.join(map(re.escape, PARTS))})", word)

    def write(value: float) -> str:
        moment = np.datetime64(round(min(max(value, FIRST_DAY), LAST_DAY) * DAY), "us").item()
        hour = (moment.hour + 11) % 12 + 1 if "AM" in parts else moment.hour
        text = {
            "YYYY": f"{moment.year:04d}",
            "YY": f"{moment.year % 100:02d}",
            "Month": MONTHS[moment.month - 1],
            "Mon": MONTHS[moment.month - 1][:3],
            "MM": f"{moment.month:02d}",
            "DD": f"{moment.day:02d}",
            "hh": f"{hour:02d}",
            "mm": f"{moment.minute:02d}",
            "ss": f"{moment.second:02d}",
            "ss.s": f"{moment.second:02d}.{moment.microsecond:06d}",
            "AM": "AM" if moment.hour < 12 else "PM",
            "zone": "+00:00",
            "#": f"{(moment.month + 2) // 3}",
        }
        return "".join(text.get(part, part) for part in parts)

    return write


# ---- amounts -----------------------------------------------------------------------------------------------------


def _format_of_amounts(levels: Sequence[str]) -> str | None:
    """Format of texts that share one unit, or some of which have thousands in groups; None if there is none."""
    if all(PLAIN.fullmatch(level) for level in levels):  # 1.234 is no thousand
        return None
    for group, mark in MARKS:
        found = [AMOUNT[group, mark].fullmatch(level) for level in levels]
        if None in found:
            continue
        matches = [match for match in found if match is not None]
        units = {(match["before"], match["after"]) for match in matches}
        grouped = any(group in match["whole"] for match in matches)
        if len(units) > 1 or (units == {("", "")} and not grouped):
            continue
        decimals = max(len(match["decimals"] or "") for match in matches)
        (before, after) = units.pop()
        return f"{before}{f'#{group}##' if grouped else ''}0{mark + '0' * decimals if decimals else ''}{after}"
    return None


def _read_amounts(levels: Sequence[str], word: str) -> NDArray[np.float64] | None:
    form = _amount_form(word)
    mark = form["mark"] or ("," if form["group"] == "." else ".")
    group = form["group"] or {".": ",", ",": "."}[mark]
    pattern = AMOUNT.get((group, mark)) or AMOUNT[group, ","]
    values = []
    for level in levels:
        match = pattern.fullmatch(level)
        if match is None or (match["before"], match["after"]) != (form["before"], form["after"]):
            return None
        size = float(f"{match['whole'].replace(group, '')}.{match['decimals'] or '0'}")
        values.append(-size if "-" in match["minus"] + match["minus_after"] else size)
    return np.array(values)


def _amount_writer(word: str) -> Callable[[float], str]:
    form = _amount_form(word)

    def write(value: float) -> str:
        text = f"{abs(value):,.{len(form['decimals'] or '')}f}"
        text = text.replace(",", "\0").replace(".", form["mark"] or ".").replace("\0", form["group"] or "")
        minus = "-" if value < 0 and re.search("[1-9]", text) else ""
        return f"{minus}{form['before']}{text}{form['after']}"

    return write


@lru_cache(maxsize=256)
def _amount_form(word: str) -> re.Match[str]:
    form = FORMAT_OF_AMOUNT.fullmatch(word)
    if form is None:
        raise ValueError(f"{word!r} is no format of amounts")
    return form
