"""Remedies: what can be done about a verdict that is not good, each tried before it is advised."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote

import numpy as np

from knockoffs.conditional_tests.distil import choose_response
from knockoffs.diagnostics.near_duplicates import Twin
from knockoffs.diagnostics.verdict import Trial, Verdict
from knockoffs.errors import InputError
from knockoffs.table.columns import design
from knockoffs.table.table import Table
from knockoffs.table.types import Json
from knockoffs.trials.verdict import FEWEST_ROWS, silently

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


def try_remedies(
    found: Verdict, table: Table, options: Mapping[str, object], judge: Callable[[Change], Verdict | None]
) -> Verdict:
    """Verdict with the remedies that apply, each with the rate of false calls it reached; as it is where it is good.

    Parameters
    ----------
    options : mapping
        Arguments of the selector.
    judge : callable
        Verdict of the selector with some arguments changed; an InputError leaves the remedy out.
    """
    if found.trial is None or found.word == "good" or found.rows_cost:
        return found
    tried = []
    for change in possible_remedies(found.trial, found.twins, table, options):
        try:
            with silently():
                other = judge(change)
        except InputError:
            continue
        if other is not None and other.trial is not None:
            dropped = change.get("drop")
            why = _determined(table, dropped[-1]) if isinstance(dropped, list) else ""
            tried.append(Remedy(change, other.trial, why))
    return replace(found, remedies=tuple(tried))


def _determined(table: Table, name: str, *, enough: float = 0.9) -> str:
    """Words on how well the other columns predict held-out cells of a column, where they nearly determine it."""
    j = table.names.index(name)
    known = np.isfinite(table.X).all(axis=1)
    if table.kinds[j] == "nominal" or known.sum() < FEWEST_ROWS:
        return ""
    encode = design([column for i, column in enumerate(table.columns) if i != j])
    x, rest = table.X[known, j], encode(np.delete(table.X[known], j, axis=1))
    left = x - choose_response(rest, x, "number").held_out(rest)[:, 0]
    share = 1 - (left**2).mean() / max(x.var(), np.finfo(float).tiny)
    return f"(determined by the others: R2 = {share:.3f} on held-out rows)" if share >= enough else ""
