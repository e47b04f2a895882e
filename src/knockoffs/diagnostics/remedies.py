"""Remedies: what can be done about a verdict that is not good, and the rate of false calls that each reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

import numpy as np

from knockoffs.diagnostics.near_duplicates import Twin
from knockoffs.diagnostics.trial import Trial, percent
from knockoffs.table.table import Table
from knockoffs.table.types import Json

Change = Mapping[str, str | list[str] | dict[str, object]]  # of arguments of the selector


@dataclass(frozen=True)
class Remedy:
    """One thing that was tried."""

    change: Change  # arguments of the selector that were changed
    trial: Trial  # the trial with it
    why: str = ""  # what speaks for it

    @property
    def python(self) -> str:
        """Arguments of the selector.

        >>> Remedy({"drop": ["a b"]}, Trial("knockoffs", 0.1, 60, 0.1, 0.05, 0.2)).python
        "drop=['a b']"
        """
        return ", ".join(f"{name}={value!r}" for name, value in self.change.items())

    @property
    def flags(self) -> str:
        """Options of the command line.

        >>> change = {"drop": ["a b"], "kinds": {"c": "nominal"}}
        >>> Remedy(change, Trial("knockoffs", 0.1, 60, 0.1, 0.05, 0.2)).flags
        "--drop 'a b' --kind c=nominal"
        """
        found = []
        for name, value in self.change.items():
            flag = "--kind" if name == "kinds" else f"--{name.replace('_', '-')}"
            values = [f"{k}={v}" for k, v in value.items()] if isinstance(value, Mapping) else value
            found += [f"{flag} {quote(str(one))}" for one in ([values] if isinstance(values, str) else values)]
        return " ".join(found)

    def to_dict(self) -> dict[str, Json]:
        """Values for json."""
        found: dict[str, Json] = {"python": self.python, "flags": self.flags, "why": self.why}
        return found | {"word": self.trial.word} | self.trial.to_dict()


def as_table(remedies: Sequence[Remedy], trial: Trial) -> list[str]:
    """Lines of a table: what was tried, its word, rate and interval, and what to type."""
    rows = [("as it is", trial.brief, "")]
    rows += [(one.python, one.trial.brief, f"{one.flags}  {one.why}") for one in remedies]
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    title = f"Tried, with the rate of wrong picks in trials ({percent(trial.level)} allowed):"
    return [title, *(f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in rows)]


def possible_remedies(
    trial: Trial, twins: Sequence[Twin], table: Table, options: Mapping[str, object], *, most: int = 3, codes: int = 20
) -> list[Change]:
    """List the changes that apply to a table, in the order in which to try them: family, kind, groups, a column out.

    ``options`` are the arguments of the selector. Whole numbers of at most ``codes`` values may be codes of labels.
    """
    if options["knockoffs"] is not None:
        return []  # P^X is not ours to change
    found: list[Change] = []
    plain = all(kind == "continuous" for kind in table.kinds) and not np.isnan(table.X).any()
    families = ("auto", "mixture") if plain else ("auto",)
    found += [{"feature_model": name} for name in families if name != options["feature_model"]]
    called = [one.name for one in trial.worst if one.name in table.names]
    for name in called:
        j = table.names.index(name)
        if table.kinds[j] in ("ordinal", "count") and 2 < len(np.unique(table.X[:, j])) <= codes:
            kinds = options["kinds"] if isinstance(options["kinds"], Mapping) else {}
            found.append({"kinds": {**kinds, name: "nominal"}})
            break
    if options["groups"] is None and twins:
        found.append({"groups": "auto"})
    if called and len(table.names) > 2:
        drop = [options["drop"]] if isinstance(options["drop"], str) else list(options["drop"] or ())  # type: ignore[call-overload]
        found.append({"drop": [*drop, called[0]]})
    return found[:most]
