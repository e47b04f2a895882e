"""Remedies: what can be done about a verdict, by name, so that it can be done for the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from knockoffs.errors import name_some
from knockoffs.sampling.pair import Pair
from knockoffs.validity.distance import Twin
from knockoffs.validity.signs import Check

ALIKE = 0.8  # |correlation| from which a column is put into a group with a twin


@dataclass(frozen=True)
class Remedy:
    """One thing to do.

    Parameters
    ----------
    action : {"other_kind", "transformation", "more_classes", "drop_column", "group", "thin_rows"}
    columns : tuple of str
        The columns it is about; for a group, its members; empty where it is about all of them.
    sentence : str
    """

    action: str
    columns: tuple[str, ...]
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Values for json."""
        return asdict(self) | {"columns": list(self.columns)}


def find_remedies(
    checks: Sequence[Check],
    twins: Sequence[Twin],
    pair: Pair,
    names: Sequence[str],
    kinds: Sequence[str],
    n_checks: int,
    level: float,
) -> tuple[Remedy, ...]:
    """What to do about the checks that failed, in the order in which to try it; then groups for twins."""
    failed = {check.name: check for check in checks if check.p_value * n_checks < level}
    found = []
    kind_of = dict(zip(names, kinds, strict=True))
    if "support" in failed:
        columns = failed["support"].columns
        found.append(
            Remedy("other_kind", columns, f"give {name_some(columns)} another kind (binary, count, ordinal, nominal).")
        )
    if "margins" in failed:
        continuous = tuple(
            name
            for name in failed["margins"].columns
            if kind_of[name] == "continuous" and name not in getattr(failed.get("support"), "columns", ())
        )
        if continuous:
            found.append(
                Remedy(
                    "transformation",
                    continuous,
                    f"transform {name_some(continuous)} (to normal scores, or by a logarithm), or use a family that fits "
                    "each column's own distribution.",
                )
            )
    if failed.keys() & {"margins", "pairs", "classifier"}:
        found.append(Remedy("more_classes", (), "fit P^X with more classes (components), or another family."))
    if "pairs" in failed and failed["pairs"].columns:
        columns = failed["pairs"].columns
        found.append(Remedy("drop_column", columns, f"if nothing else helps, leave out or group {name_some(columns)}."))
    found += [group_of(twin, pair, names) for twin in twins[:5]]
    if failed.keys() & {"repeated rows", "order of rows", "neighbouring rows"}:
        found.append(Remedy("thin_rows", (), "keep one row of those that belong together."))
    seen: dict[tuple[str, frozenset[str]], Remedy] = {}
    for remedy in found:
        seen.setdefault((remedy.action, frozenset(remedy.columns)), remedy)
    return tuple(seen.values())


def group_of(twin: Twin, pair: Pair, names: Sequence[str]) -> Remedy:
    """The twin with the columns it resembles; on its own it is left out instead."""
    place = {name: j for j, name in enumerate(names)}
    X = np.nan_to_num(pair.X - np.nanmean(pair.X, axis=0))
    size = np.sqrt((X**2).sum(axis=0))
    alike = set(twin.columns)
    for name in twin.columns:
        j = place[name]
        r = np.abs(X.T @ X[:, j]) / np.where(size * size[j] > 0, size * size[j], np.inf)
        alike |= {names[k] for k in np.flatnonzero(r >= ALIKE)}
    members = tuple(name for name in names if name in alike)
    if len(members) > len(twin.columns):
        return Remedy("group", members, f"make {name_some(members)} one group: given the others none can be found.")
    return Remedy(
        "drop_column",
        members,
        f"leave out {name_some(members)}: the other columns determine it nearly, and nothing finds it.",
    )
