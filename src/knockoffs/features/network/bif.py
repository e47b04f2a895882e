"""Read discrete Bayesian networks from BIF files (the format of the bnlearn repository)."""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError

MOST_CHARACTERS = 2**26  # of an unpacked file: a small .gz cannot fill the memory
MOST_ENTRIES = 2**20  # of one table, checked before it is made: 19 parents with two states; a law takes no larger one
MOST_ENTRIES_IN_ALL = 2**24  # of all tables of a file together: 128 MiB
TOLERANCE = 1e-3  # by which a printed row may miss one; the repository's files miss it by 1e-7

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)|(?P<string>"[^"\n]*")|(?P<mark>[{}()\[\];,|])|(?P<word>[^\s{}()\[\];,|"]+)""",
    re.DOTALL,
)


class Bif(NamedTuple):
    """What a BIF file says: for each variable its states, parents and table, shape (*parents' states, own states)."""

    states: dict[str, tuple[str, ...]]
    parents: dict[str, tuple[str, ...]]
    tables: dict[str, NDArray]


def read_bif(path: str | Path, *, tolerance: float = TOLERANCE) -> Bif:
    """Read a .bif or .bif.gz file.

    Rows that miss one by at most ``tolerance`` (the files print few digits) are divided by their sum; others are
    refused. Nothing of the file is ever executed.

    Raises
    ------
    InputError
        With the line, for anything that is not a discrete network.
    """
    opened = gzip.open if str(path).endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8", errors="replace") as file:
            text = file.read(MOST_CHARACTERS + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"{path} has more than {MOST_CHARACTERS:,} characters: too large for a BIF file.")
    try:
        return parse_bif(text, tolerance=tolerance)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def parse_bif(text: str, *, tolerance: float = TOLERANCE) -> Bif:
    """Read the text of a BIF file; see ``read_bif``.

    >>> bif = parse_bif('variable A { type discrete [ 2 ] { yes, no }; } probability ( A ) { table 0.3, 0.7; }')
    >>> bif.states["A"], bif.tables["A"]
    (('yes', 'no'), array([0.3, 0.7]))
    """
    return _Reader(list(_tokens(text)), tolerance).read()


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Words and marks, each with its line."""
    line, place = 1, 0
    while place < len(text):
        if text.startswith("/*", place) and text.find("*/", place + 2) < 0:
            raise InputError(f"line {line}: a comment begins that does not end.")
        match = _TOKEN.match(text, place)
        if match is None:
            raise InputError(f"line {line}: {text[place : place + 10]!r} begins a string that does not end.")
        if match.lastgroup != "skip":
            yield match.group().strip('"') if match.lastgroup == "string" else match.group(), line
        line += match.group().count("\n")
        place = match.end()


class _Reader:
    """Walk along the tokens; ``line`` is that of the last one."""

    def __init__(self, tokens: list[tuple[str, int]], tolerance: float) -> None:
        self.tokens, self.tolerance, self.place, self.line = tokens, tolerance, 0, 1
        self.bif, self.n_entries = Bif({}, {}, {}), 0

    def read(self) -> Bif:
        laws = []
        while self.place < len(self.tokens):
            word = self.next("network, variable or probability")
            if word == "network":
                self.skip_to("{")
                self.skip_to("}")
            elif word == "variable":
                self.variable()
            elif word == "probability":
                laws.append(self.place)
                self.skip_to("}")
            else:
                raise self.expected("network, variable or probability", word)
        for self.place in laws:  # variables may be declared after their tables
            self.probability()
        missing = [name for name in self.bif.states if name not in self.bif.tables]
        if missing:
            raise InputError(f"variable {missing[0]!r} has no probability table.")
        if not self.bif.states:
            raise InputError("the file declares no variable.")
        return self.bif

    def variable(self) -> None:
        name, states = self.next("a variable's name"), None
        if name in self.bif.states:
            raise self.error(f"variable {name!r} is declared twice.")
        self.expect("{")
        while (word := self.next("type, property or }")) != "}":
            if word != "type":
                self.skip_to(";")
                continue
            self.expect("discrete", "[")
            count = self.next("the number of states")
            self.expect("]", "{")
            states = tuple(self.list_to("}"))
            self.expect(";")
            different = len(set(states))
            if str(different) != count or different < len(states):
                lists = f"lists {len(states)} ({different} different)"
                raise self.error(f"variable {name!r} announces {count} states and {lists}.")
        if states is None:
            raise self.error(f"variable {name!r} has no type.")
        self.bif.states[name] = states

    def probability(self) -> None:
        self.expect("(")
        child, parents = self.next("a variable's name"), list[str]()
        if (mark := self.next("| or )")) == "|":
            parents = self.list_to(")")
        elif mark != ")":
            raise self.expected("| or )", mark)
        states, tables, line = self.bif.states, self.bif.tables, self.line
        for name in (child, *parents):
            if name not in states:
                raise self.error(f"{name!r} is not a declared variable.")
        if child in tables or len({child, *parents}) < 1 + len(parents):
            raise self.error(f"{child!r} has two tables, or a parent twice.")
        shape = tuple(len(states[name]) for name in (*parents, child))
        size = math.prod(shape)
        if size > MOST_ENTRIES:
            what = f"the table of {child!r}, which has {len(parents)} parents, has {size:,} entries"
            raise self.error(f"{what}; the limit is {MOST_ENTRIES:,}. Give it fewer parents or states.")
        self.n_entries += size
        if self.n_entries > MOST_ENTRIES_IN_ALL:
            what = f"the tables up to that of {child!r} have {self.n_entries:,} entries together"
            raise self.error(f"{what}; the limit is {MOST_ENTRIES_IN_ALL:,}.")
        table = self.rows(child, parents, np.full(shape, np.nan))
        total = table.sum(axis=-1)
        bad = np.argwhere(~(np.abs(total - 1) <= self.tolerance))
        if len(bad):
            place = tuple(bad[0])
            given = ", ".join(f"{name}={states[name][i]}" for name, i in zip(parents, place, strict=True))
            what = "is missing" if np.isnan(total[place]) else f"sums to {total[place]:.6g}"
            rule = f"rows must sum to one within {self.tolerance:g}"
            raise InputError(f"line {line}: the row of {child!r} given ({given}) {what}; {rule}.")
        self.bif.parents[child], tables[child] = tuple(parents), table / total[..., None]

    def rows(self, child: str, parents: list[str], table: NDArray) -> NDArray:
        """Fill the rows of a table, NaN where they are not given."""
        default = None
        self.expect("{")
        while (word := self.next("table, default, ( or }")) != "}":
            if word == "table":
                if not np.isnan(table).all():
                    raise self.twice(child, "a table after other rows")
                flat = self.numbers(table.size)
                table[...] = np.moveaxis(flat.reshape(table.shape[-1], *table.shape[:-1]), 0, -1)  # child is slowest
            elif word == "default":
                if default is not None:
                    raise self.twice(child, "two default rows")
                default = self.numbers(table.shape[-1])
            elif word == "(":
                labels = self.list_to(")")
                if len(labels) != len(parents):
                    raise self.error(f"{len(labels)} states for {len(parents)} parents of {child!r}.")
                place = tuple(map(self.state, parents, labels))
                if not np.isnan(table[place][0]):
                    raise self.twice(child, f"two rows given ({', '.join(labels)})")
                table[place] = self.numbers(table.shape[-1])
            else:
                self.skip_to(";")
        if default is not None:  # for the rows that are not given, wherever it stands
            table[np.isnan(table).all(axis=-1)] = default
        return table

    def numbers(self, count: int) -> NDArray:
        words = self.list_to(";")
        got = f"got {', '.join(words)[:60]!r}."
        try:
            values = np.array([float(word) for word in words])
        except ValueError:
            raise self.error(f"expected numbers, {got}") from None
        if len(values) != count or not (np.isfinite(values) & (values >= 0)).all():
            raise self.error(f"expected {count} probabilities, {got}")
        return values

    def state(self, name: str, label: str) -> int:
        if label not in self.bif.states[name]:
            raise self.error(f"{label!r} is no state of {name!r} ({', '.join(self.bif.states[name])}).")
        return self.bif.states[name].index(label)

    def list_to(self, end: str) -> list[str]:
        """Words up to the mark ``end``, the commas between them optional."""
        words = []
        while (word := self.next(end)) != end:
            if word in "{}()[];|":
                raise self.expected(f"a list that ends with {end}", word)
            if word != ",":
                words.append(word)
        return words

    def skip_to(self, end: str) -> None:
        while self.next(end) != end:
            pass

    def next(self, wanted: str) -> str:
        if self.place >= len(self.tokens):
            raise self.error(f"the file ends where {wanted} was expected.")
        word, self.line = self.tokens[self.place]
        self.place += 1
        return word

    def expect(self, *words: str) -> None:
        for wanted in words:
            if (word := self.next(wanted)) != wanted:
                raise self.expected(wanted, word)

    def error(self, text: str) -> InputError:
        return InputError(f"line {self.line}: {text}")

    def expected(self, wanted: str, word: str) -> InputError:
        return self.error(f"expected {wanted}, got {word[:40]!r}.")

    def twice(self, child: str, what: str) -> InputError:
        return self.error(f"{child!r} has {what}: which of them holds is not said.")
