"""The error for input that cannot be used, the warning for input that was changed, and words for both."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.util import find_spec

# package that is imported -> its name, and the extra of this package that installs it
EXTRAS = {
    "torch": ("PyTorch", "neural"),
    "matplotlib": ("matplotlib", "plots"),
    "pandas": ("pandas", "tables"),
    "pyarrow": ("pyarrow", "tables"),
    "bed_reader": ("bed-reader", "genetics"),
    "hmmlearn": ("hmmlearn", "hmm"),
    "lightgbm": ("LightGBM", "boosting"),
    "xgboost": ("XGBoost", "boosting"),
    "dask": ("dask", "dask"),
    "distributed": ("dask.distributed", "dask"),
    "streamlit": ("Streamlit", "app"),
}
MOST_KNOWN = 30  # names that are listed
MOST_COMPARED = 20_000  # among which the nearest is looked for, which takes a second
MOST_LETTERS = 200  # of a name that nobody can have meant


class InputError(ValueError):
    """Input that cannot be used; the message says what is wrong and what to do."""


class MissingPackageError(InputError, ImportError):
    """A package that is not installed; the message names the extra that installs it."""


class KnockoffWarning(UserWarning):
    """Something that affects validity or power was changed, or looks wrong."""


def warn(message: str) -> None:
    """Warn of something in the data; the warning points at the line outside of this package that led to it."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "knockoffs":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, KnockoffWarning, stacklevel=level)


@contextmanager
def interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt for Ctrl-C in compiled code, where Python makes a SystemError of it."""
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while isinstance(cause, SystemError):
            cause = cause.__cause__ or cause.__context__
        if not isinstance(cause, KeyboardInterrupt):
            raise
        raise KeyboardInterrupt from error


def require(package: str, what: str, instead: str = "") -> None:
    """Refuse, before any work, ``what`` (in the plural) needs a package, a key of ``EXTRAS``, that is not installed.

    The sentence ends with what can be done ``instead``.
    """
    try:
        there = find_spec(package) is not None
    except ValueError:  # what was put in its place has no place of its own
        there = True
    if not there:
        name, extra = EXTRAS[package]
        raise MissingPackageError(f"{what} need {name}: pip install 'knockoffs[{extra}]'{instead}.")


def unknown_option(argument: str, got: object, allowed: Iterable[str]) -> InputError:
    """Error for an option that does not exist, with the nearest one that does.

    >>> print(unknown_option("importance", "swop", ["swap", "permutation"]))
    importance='swop' is not known. Did you mean 'swap'? Known: 'swap', 'permutation'.
    """
    names = list(allowed)
    known = name_some(names, most=MOST_KNOWN)
    return InputError(f"{argument}={got!r} is not known.{did_you_mean(got, names)} Known: {known}.")


def did_you_mean(got: object, names: Sequence[str]) -> str:
    """Question for the nearest of some names, or nothing; case, blanks and punctuation do not count.

    >>> did_you_mean("agee", ["age", "sex"]), did_you_mean("BLOODPRESSURE", ["age", "blood pressure"])
    (" Did you mean 'age'?", " Did you mean 'blood pressure'?")
    """
    plain: dict[str, str] = {}
    for name in names[:MOST_COMPARED]:
        plain.setdefault(_letters(str(name)), name)
    near = get_close_matches(_letters(str(got)[:MOST_LETTERS]), list(plain), n=1)
    return f" Did you mean {plain[near[0]]!r}?" if near else ""


def _letters(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum()) or name


def installs(package: str) -> str:
    """Command that installs a package: the extra that brings it, where there is one.

    >>> installs("torch")
    "pip install 'knockoffs[neural]'"
    """
    return f"pip install 'knockoffs[{EXTRAS[package][1]}]'" if package in EXTRAS else f"pip install {package}"


def name_some(names: Iterable[object], most: int = 5) -> str:
    """Write a few names of a long list.

    >>> name_some("abcdefg", most=3)
    "'a', 'b', 'c' and 4 more"
    """
    listed = [repr(str(name)) for name in names]
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def plural(n: int, one: str, many: str | None = None) -> str:
    """Singular or plural of some words, by a number.

    >>> plural(1, "feature"), plural(3, "feature"), plural(0, "is", "are")
    ('feature', 'features', 'are')
    """
    return one if n == 1 else many or f"{one}s"


def count(n: int, one: str, many: str | None = None) -> str:
    """Count with its noun.

    >>> count(1, "feature"), count(2500, "feature"), count(1, "row is", "rows are")
    ('1 feature', '2,500 features', '1 row is')
    """
    return f"{n:,} {plural(n, one, many)}"


def name_columns(names: Sequence[str]) -> str:
    """Write a column, or several with their number.

    >>> name_columns(["age"]), name_columns(["age", "sex"])
    ("column 'age'", "2 columns ('age', 'sex')")
    """
    return f"column {names[0]!r}" if len(names) == 1 else f"{len(names)} columns ({name_some(names)})"


class ColumnsError(InputError):
    """An error about some columns, known by number until ``named`` gives them their names.

    >>> print(ColumnsError([3], "columns", "are constant: drop them."))
    column '3' is constant: drop it.
    """

    def __init__(self, columns: Iterable[int], before: str, after: str) -> None:
        self.columns = tuple(int(column) for column in columns)
        self.before, self.after = before, after
        if before == "columns" and len(self.columns) == 1:
            verb, _, rest = after.partition(" ")
            self.before = "column"
            self.after = f"{ {'are': 'is', 'have': 'has'}.get(verb, verb) } {rest.replace(' drop them', ' drop it')}"
        super().__init__(f"{self.before} {name_some(self.columns)} {self.after}")

    def named(self, names: Sequence[str]) -> InputError:
        """Return the same error with the columns' names."""
        return InputError(f"{self.before} {name_some(names[column] for column in self.columns)} {self.after}")


def printable(text: str) -> str:
    r"""Text whose control characters are written as escapes, so that a name cannot break a line.

    >>> printable("a\nb")
    'a\\nb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
