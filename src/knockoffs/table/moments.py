"""Dates, times of a day and durations: they stand in X as days, and keep the unit that they were measured in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOMENTS = ("date", "time", "duration")  # dtypes of columns that stand as days
WORDS = {"date": "dates, as days since 1970-01-01", "time": "times, as parts of a day", "duration": "durations"}
UNITS = {"day": 1, "hour": 24, "minute": 1440, "second": 86_400, "millisecond": 86_400_000}  # in a day, coarsest first
ROUNDING = 2e-12, 4e-16  # of a day, and of its distance from zero: less than a microsecond, more than floats lose


def unit_of(days: NDArray) -> str:
    """Coarsest unit in which every cell is whole; empty if there is none. Missing cells say nothing.

    >>> unit_of(np.array([0.5, 1.25, np.nan]))
    'hour'
    """
    return next((unit for unit in UNITS if not broken(days, unit).any()), "")


def broken(days: NDArray, unit: str) -> NDArray[np.bool_]:
    """Whether each cell is not a whole number of units; a missing one is."""
    parts = np.abs(days - to_units(days, unit))
    return parts > ROUNDING[0] + ROUNDING[1] * np.abs(days)  # never of NaN


def to_units(days: NDArray, unit: str) -> NDArray:
    """Days rounded to whole units, or as they are if there is no unit.

    >>> to_units(np.array([0.51, 1.24]), "hour") * 24
    array([12., 30.])
    """
    return np.rint(days * UNITS[unit]) / UNITS[unit] if unit else days


def format_duration(days: float, unit: str) -> str:
    """Put a duration in words, in days if there is no unit.

    >>> format_duration(0.5, "hour")
    '12 hours'
    """
    count = f"{days * UNITS[unit or 'day']:.6g}"
    return f"{count} {unit or 'day'}{'' if count == '1' else 's'}"
