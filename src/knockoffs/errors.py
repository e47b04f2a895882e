"""The one error for input that cannot be used, and the warning for input that was changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib.util import find_spec

EXTRAS = {  # package that may be missing -> the extra of this package that brings it
    "matplotlib": "plots",
    "torch": "neural",
    "bed_reader": "genetics",
    "hmmlearn": "hmm",
    "tomotopy": "topics",
    "lightgbm": "boosting",
    "xgboost": "boosting",
    "pandas": "tables",
    "polars": "tables",
    "pyarrow": "tables",
}


class InputError(ValueError):
    """Input that the procedure cannot use: says what was got and what to do."""


class KnockoffWarning(UserWarning):
    """Something validity or power rests on was changed, or looks wrong."""


def unknown_option(argument: str, got: object, allowed: Iterable[str]) -> InputError:
    """Error for an option that does not exist, with the nearest one that does.

    >>> print(unknown_option("importance", "swop", ["swap", "permutation"]))
    importance='swop' is not known. Did you mean 'swap'? Known: 'swap', 'permutation'.
    """
    names = list(allowed)
    near = get_close_matches(str(got), names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return InputError(f"{argument}={got!r} is not known.{hint} Known: {', '.join(map(repr, names))}.")


def check_extra(package: str, what: str, instead: str = "") -> None:
    """Refuse, before any work, what a missing package is needed for, with the one command that installs it.

    >>> check_extra("tomotopy_of_nobody", "topics")
    Traceback (most recent call last):
    knockoffs.errors.InputError: topics need tomotopy_of_nobody, which is not installed: pip install tomotopy_of_nobody.
    """
    if find_spec(package) is None:
        raise InputError(f"{what} need {package}, which is not installed: {installs(package)}{instead}.")


def installs(package: str) -> str:
    """Command that installs a package: the extra that brings it, where there is one.

    >>> installs("torch")
    "pip install 'knockoffs[neural]'"
    """
    return f"pip install 'knockoffs[{EXTRAS[package]}]'" if package in EXTRAS else f"pip install {package}"


def name_some(names: Iterable[object], most: int = 5) -> str:
    """Write a few names of a long list.

    >>> name_some("abcdefg", most=3)
    "'a', 'b', 'c' and 4 more"
    """
    listed = [repr(str(name)) for name in names]
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def name_columns(names: Sequence[str]) -> str:
    """Write a column, or several with their number.

    >>> name_columns(["age"]), name_columns(["age", "sex"])
    ("column 'age'", "2 columns ('age', 'sex')")
    """
    return f"column {names[0]!r}" if len(names) == 1 else f"{len(names)} columns ({name_some(names)})"


class ColumnsError(InputError):
    """An error about some columns, known by number until ``named`` gives them their names."""

    def __init__(self, columns: Iterable[int], before: str, after: str) -> None:
        self.columns, self.before, self.after = tuple(int(column) for column in columns), before, after
        super().__init__(f"{before} {name_some(self.columns)} {after}")

    def named(self, names: Sequence[str]) -> InputError:
        """Return the same error with the columns' names."""
        return InputError(f"{self.before} {name_some(names[column] for column in self.columns)} {self.after}")


def printable(text: str) -> str:
    r"""Text whose control characters are written as escapes, so that a name cannot break a line.

    >>> printable("a\nb")
    'a\\nb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
