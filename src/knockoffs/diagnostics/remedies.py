"""Remedies: what can be done about a verdict, by name, so that it can be done for the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from knockoffs.diagnostics.near_duplicates import Twin
from knockoffs.diagnostics.sign_tests import Check
from knockoffs.errors import name_some
from knockoffs.sampling.pair import Pair
from knockoffs.table.types import Json

FEW_CODES = 20  # values of a column of whole numbers up to which they may be codes of labels
TWIN_CORRELATION = 0.8  # |correlation| from which a column is put into a group with a twin


@dataclass(frozen=True)
class Remedy:
    """One thing to do.

    Parameters
    ----------
    action : {"other_kind", "transformation", "more_classes", "fewer_columns", "group", "drop_column", "thin_rows"}
    columns : tuple of str
        The columns it is about; for a group, its members; empty where it is about all of them.
    sentence : str
    """

    action: str
    columns: tuple[str, ...]
    sentence: str

    def to_dict(self) -> dict[str, Json]:
        """Values for json."""
        return asdict(self) | {"columns": list(self.columns)}


def find_remedies(
    failing: Sequence[Check],
    twins: Sequence[Twin],
    pair: Pair,
    names: Sequence[str],
    kinds: Sequence[str],
) -> tuple[Remedy, ...]:
    """List what to do about the checks that failed, in the order in which to try it; groups are for twins."""
    failed = {check.name: check for check in failing}
    columns_of = {name: check.columns for name, check in failed.items()}
    kind_of, place_of = dict(zip(names, kinds, strict=True)), {name: j for j, name in enumerate(names)}
    found = []
    if strange := columns_of.get("support", ()):
        found.append(
            Remedy("other_kind", strange, f"give {name_some(strange)} another kind (binary, count, ordinal, nominal).")
        )
    codes = tuple(
        name
        for name in columns_of.get("pairs", ())
        if kind_of[name] in ("ordinal", "count") and name not in strange and few_codes(pair.X[:, place_of[name]])
    )
    if codes:
        which = f"if the numbers of {name_some(codes)} are codes of labels, give the kind nominal."
        found.append(Remedy("other_kind", codes, which))
    numbers = [name for name in columns_of.get("margins", ()) if kind_of[name] == "continuous" and name not in strange]
    if numbers:
        what = f"transform {name_some(numbers)} (to normal scores, or by a logarithm)"
        found.append(
            Remedy(
                "transformation", tuple(numbers), f"{what}, or use a family that fits each column's own distribution."
            )
        )
    if failed.keys() & {"margins", "pairs", "classifier"}:
        found.append(Remedy("more_classes", (), "fit P^X with more classes (components), or another family."))
    others = {*strange, *columns_of.get("margins", ())}  # these have a remedy of their own
    linked = tuple(name for name in columns_of.get("pairs", ()) if name not in others)[:5]
    if linked and len(linked) < len(set(names)) / 2:
        found.append(Remedy("fewer_columns", linked, f"if nothing else helps, leave out {name_some(linked)}."))
    found += group_twins(twins, pair, names) if twins else []
    if failed.keys() & {"repeated rows", "order of rows", "neighbouring rows"}:
        found.append(Remedy("thin_rows", (), "keep one row of those that belong together."))
    return tuple(found)


def few_codes(x: NDArray) -> bool:
    """Whether a column holds three whole numbers or a few more, which may be codes of labels."""
    values = np.unique(x[np.isfinite(x)])
    return 2 < len(values) <= FEW_CODES and bool((values == np.rint(values)).all())


def group_twins(twins: Sequence[Twin], pair: Pair, names: Sequence[str]) -> list[Remedy]:
    """Group twins with the columns they resemble, groups that overlap joined; one on its own is left out instead."""
    place = {name: j for j, name in enumerate(names)}
    X = np.nan_to_num(pair.X - np.nanmean(pair.X, axis=0))
    X = X / np.maximum(np.sqrt((X**2).sum(axis=0)), np.finfo(float).tiny)
    groups: list[set[str]] = []
    for twin in twins:
        r = np.abs(X.T @ X[:, [place[name] for name in twin.columns]]).max(axis=1)
        members = set(twin.columns) | {
            name for name, likeness in zip(names, r, strict=True) if likeness >= TWIN_CORRELATION
        }
        touched = [group for group in groups if group & members]
        groups = [group for group in groups if not group & members] + [members.union(*touched)]
    found: list[Remedy] = []
    alone: list[str] = []
    for group in groups:
        columns = tuple(name for name in names if name in group)
        if len(columns) > 1:
            found.append(Remedy("group", columns, f"make {name_some(columns)} one group: each hides the others."))
        else:
            alone += columns
    if alone:
        it = "it" if len(alone) == 1 else "each of them"
        found.append(Remedy("drop_column", tuple(alone), f"leave out {name_some(alone)}: the others determine {it}."))
    return found
