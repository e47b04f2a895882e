"""Read discrete Bayesian networks from BIF files (the format of the bnlearn repository)."""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

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


@dataclass(frozen=True)
class Bif:
    """What a BIF file says: for each variable its states, parents and table, shape (*parents' states, own states)."""

    states: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tables: dict[str, NDArray] = field(default_factory=dict)


@dataclass(frozen=True)
class _Token:
    text: str
    line: int


def read_bif(path: str | Path, *, tolerance: float = TOLERANCE) -> Bif:
    """Read a .bif or .bif.gz file.

    Rows that miss one by at most ``tolerance`` (the files print few digits) are divided by their sum; others are
    refused. Nothing of the file is ever executed.

    Parameters
    ----------
    path : str or Path
    tolerance : float

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
    reader = _Reader(list(_tokens(text)), tolerance)
    return reader.read()


def _tokens(text: str) -> Iterator[_Token]:
    line, place = 1, 0
    while place < len(text):
        if text.startswith("/*", place) and text.find("*/", place + 2) < 0:
            raise InputError(f"line {line}: a comment begins that does not end.")
        match = _TOKEN.match(text, place)
        if match is None:
            raise InputError(f"line {line}: {text[place : place + 10]!r} begins a string that does not end.")
        if match.lastgroup != "skip":
            yield _Token(match.group().strip('"') if match.lastgroup == "string" else match.group(), line)
        line += match.group().count("\n")
        place = match.end()


@dataclass
class _Reader:
    tokens: list[_Token]
    tolerance: float
    place: int = 0
    n_entries: int = 0

    def read(self) -> Bif:
        bif = Bif()
        laws = []
        while self.place < len(self.tokens):
            word = self.next("network, variable or probability")
            if word.text == "network":
                while self.next("{").text != "{":
                    pass
                self.skip_to("}")
            elif word.text == "variable":
                self.variable(bif)
            elif word.text == "probability":
                laws.append(self.place)
                self.skip_to("}")
            else:
                raise self.error(word, "network, variable or probability")
        for self.place in laws:  # variables may be declared after their tables
            self.probability(bif)
        missing = [name for name in bif.states if name not in bif.tables]
        if missing:
            raise InputError(f"variable {missing[0]!r} has no probability table.")
        if not bif.states:
            raise InputError("the file declares no variable.")
        return bif

    def variable(self, bif: Bif) -> None:
        name = self.next("a variable's name")
        if name.text in bif.states:
            raise InputError(f"line {name.line}: variable {name.text!r} is declared twice.")
        self.expect("{")
        states: tuple[str, ...] | None = None
        while (word := self.next("type, property or }")).text != "}":
            if word.text != "type":
                self.skip_to(";")
                continue
            self.expect("discrete")
            self.expect("[")
            count = self.next("the number of states")
            self.expect("]")
            self.expect("{")
            states = tuple(self.list_to("}"))
            self.expect(";")
            if str(len(states)) != count.text or len(set(states)) < len(states) or not states:
                raise InputError(
                    f"line {count.line}: variable {name.text!r} announces {count.text} states and lists {len(states)} "
                    f"({len(set(states))} different)."
                )
        if states is None:
            raise InputError(f"line {name.line}: variable {name.text!r} has no type.")
        bif.states[name.text] = states

    def probability(self, bif: Bif) -> None:
        self.expect("(")
        first = self.next("a variable's name")
        child, parents = first.text, []
        mark = self.next("| or )")
        if mark.text == "|":
            parents = self.list_to(")")
        elif mark.text != ")":
            raise self.error(mark, "| or )")
        for name in (child, *parents):
            if name not in bif.states:
                raise InputError(f"line {first.line}: {name!r} is not a declared variable.")
        if child in bif.tables or len({child, *parents}) < 1 + len(parents):
            raise InputError(f"line {first.line}: {child!r} has two tables, or a parent twice.")
        shape = tuple(len(bif.states[name]) for name in (*parents, child))
        if math.prod(shape) > MOST_ENTRIES:
            raise InputError(
                f"line {first.line}: the table of {child!r}, which has {len(parents)} parents, has "
                f"{math.prod(shape):,} entries; the limit is {MOST_ENTRIES:,}. Give it fewer parents or states."
            )
        self.n_entries += math.prod(shape)
        if self.n_entries > MOST_ENTRIES_IN_ALL:
            raise InputError(
                f"line {first.line}: the tables up to that of {child!r} have {self.n_entries:,} entries together; the "
                f"limit is {MOST_ENTRIES_IN_ALL:,}."
            )
        table, default = np.full(shape, np.nan), None
        self.expect("{")
        while (word := self.next("table, default, ( or }")).text != "}":
            if word.text == "table":
                if not np.isnan(table).all():
                    raise self.twice(word, child, "a table after other rows")
                flat = self.numbers(table.size, word.line)
                table[...] = np.moveaxis(flat.reshape(shape[-1], *shape[:-1]), 0, -1)  # the child varies slowest
            elif word.text == "default":
                if default is not None:
                    raise self.twice(word, child, "two default rows")
                default = self.numbers(shape[-1], word.line)
            elif word.text == "(":
                labels = self.list_to(")")
                if len(labels) != len(parents):
                    raise InputError(f"line {word.line}: {len(labels)} states for {len(parents)} parents of {child!r}.")
                place = tuple(
                    self.state(bif, parent, label, word.line) for parent, label in zip(parents, labels, strict=True)
                )
                if not np.isnan(table[place][0]):
                    raise self.twice(word, child, f"two rows given ({', '.join(labels)})")
                table[place] = self.numbers(shape[-1], word.line)
            else:
                self.skip_to(";")
        if default is not None:  # for the rows that are not given, wherever it stands
            table[np.isnan(table).all(axis=-1)] = default
        self.finish(bif, child, parents, table, first.line)

    def finish(self, bif: Bif, child: str, parents: list[str], table: NDArray, line: int) -> None:
        total = table.sum(axis=-1)
        bad = np.argwhere(~(np.abs(total - 1) <= self.tolerance))
        if len(bad):
            place = tuple(bad[0])
            given = ", ".join(f"{name}={bif.states[name][i]}" for name, i in zip(parents, place, strict=True))
            what = "is missing" if np.isnan(total[place]) else f"sums to {total[place]:.6g}"
            raise InputError(
                f"line {line}: the row of {child!r} given ({given}) {what}; rows must sum to one within "
                f"{self.tolerance:g}."
            )
        bif.parents[child] = tuple(parents)
        bif.tables[child] = table / total[..., None]

    def numbers(self, count: int, line: int) -> NDArray:
        words = self.list_to(";")
        try:
            values = np.array([float(word) for word in words])
        except ValueError:
            raise InputError(f"line {line}: expected numbers, got {', '.join(words)[:60]!r}.") from None
        if len(values) != count or not (np.isfinite(values) & (values >= 0)).all():
            raise InputError(f"line {line}: expected {count} probabilities, got {', '.join(words)[:60]!r}.")
        return values

    def state(self, bif: Bif, name: str, label: str, line: int) -> int:
        if label not in bif.states[name]:
            raise InputError(f"line {line}: {label!r} is no state of {name!r} ({', '.join(bif.states[name])}).")
        return bif.states[name].index(label)

    def list_to(self, end: str) -> list[str]:
        """Words up to the mark ``end``, the commas between them optional."""
        words = []
        while (token := self.next(end)).text != end:
            if token.text in "{}()[];|":
                raise self.error(token, f"a list that ends with {end}")
            if token.text != ",":
                words.append(token.text)
        return words

    def skip_to(self, end: str) -> None:
        while self.next(end).text != end:
            pass

    def next(self, wanted: str) -> _Token:
        if self.place >= len(self.tokens):
            line = self.tokens[-1].line if self.tokens else 1
            raise InputError(f"line {line}: the file ends where {wanted} was expected.")
        self.place += 1
        return self.tokens[self.place - 1]

    def expect(self, text: str) -> None:
        token = self.next(text)
        if token.text != text:
            raise self.error(token, text)

    def twice(self, token: _Token, child: str, what: str) -> InputError:
        return InputError(f"line {token.line}: {child!r} has {what}: which of them holds is not said.")

    def error(self, token: _Token, wanted: str) -> InputError:
        return InputError(f"line {token.line}: expected {wanted}, got {token.text[:40]!r}.")
