"""Groups of columns that are selected together, and trees of them, as the user gives them."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, did_you_mean, name_some
from knockoffs.table.cells import is_missing


@dataclass(frozen=True)
class Groups:
    """Which group owns each column, and how the groups are called.

    Parameters
    ----------
    feature_of : array of int, shape (n_columns,)
        Groups are numbered 0, 1, 2, ... by their first column.
    names : tuple of str
        One for each group.
    note : str
        How they were found; empty if they were given.
    tree : nested tuple of str, optional
        Tree over the names.
    coarser : tuple of arrays of int, shape (n_columns,)
        Coarser partitions, the finest first: each group lies in one of the next.
    """

    feature_of: NDArray[np.intp]
    names: tuple[str, ...]
    note: str = ""
    tree: Nested | None = None
    coarser: tuple[NDArray[np.intp], ...] = ()

    def __len__(self) -> int:
        """Count the groups."""
        return len(self.names)

    def columns(self, group: int) -> NDArray[np.intp]:
        """Columns of one group."""
        return np.flatnonzero(self.feature_of == group)

    def keep(self, kept: NDArray[np.bool_]) -> Groups:
        """Keep some of the columns; a group of which none stays is gone.

        >>> Groups(np.array([0, 1, 0, 2]), ("a", "b", "c")).keep(np.array([True, False, True, True])).names
        ('a', 'c')
        """
        stay = list(dict.fromkeys(self.feature_of[kept].tolist()))  # in the order of their first columns
        number = {group: place for place, group in enumerate(stay)}
        feature_of = np.array([number[group] for group in self.feature_of[kept].tolist()], dtype=np.intp)
        names = tuple(self.names[group] for group in stay)
        tree = None if self.tree is None else prune(self.tree, names)
        coarser = tuple(part[kept] for part in self.coarser)
        return replace(self, feature_of=feature_of, names=names, tree=tree, coarser=coarser)


def as_groups(groups: object, names: Sequence[str]) -> Groups:
    """Read the groups of a table's columns in any of the forms below; a column that is in none is its own.

    Parameters
    ----------
    groups : mapping, sequence, array or None
        A mapping from column to group or from group to a list of columns; a group for each column, in their order; or
        pairs (column, group), as ``read_groups`` gives them. None: every column alone. Mappings in a mapping, or lists
        in a list, are a tree whose leaves are the columns.
    names : sequence of str
        Names of the table's columns.

    >>> as_groups({"lipids": ["ldl", "hdl"]}, ["age", "ldl", "hdl"]).names
    ('age', 'lipids')
    >>> as_groups(["a", "b", "a"], ["x", "y", "z"]).feature_of
    array([0, 1, 0])
    """
    if isinstance(groups, Groups):
        if len(groups.feature_of) != len(names):
            raise InputError(f"groups has {len(groups.feature_of)} columns: the table has {len(names)}.")
        return groups
    if groups is None:
        return number_groups([None] * len(names), names)
    if is_nested(groups):
        return replace(number_groups([None] * len(names), names), tree=read_nested(groups, names))
    if isinstance(groups, Mapping):
        return number_groups(_label_columns(_pairs_of_mapping(groups), names), names)
    if isinstance(groups, str) or not isinstance(groups, Iterable) or getattr(groups, "ndim", 1) == 0:
        raise InputError(
            f"groups={groups!r}: use a mapping from column to group, a list of groups, one for each column, or 'auto'."
        )
    listed = list(groups)
    if listed and all(isinstance(item, tuple) and len(item) == 2 for item in listed):
        return number_groups(_label_columns(listed, names), names)
    if len(listed) != len(names):
        raise InputError(f"groups has {len(listed)} entries: expected {len(names)}, a group for each column.")
    return number_groups([_plain(label) for label in listed], names)


def read_groups(path: Path) -> list[tuple[str, str]]:
    """Read pairs (column, group) from a csv file with the header ``column,group``."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as csv in UTF-8: {error}.") from None
    if not rows or [cell.strip().lower() for cell in rows[0]] != ["column", "group"]:
        raise InputError(f"{path}: expected a csv file that begins with the line column,group.")
    for line, row in enumerate(rows[1:], start=2):
        if len(row) != 2 or not row[1].strip():
            raise InputError(f"{path}: row {line} has {len(row)} cells or no group: expected a column and its group.")
    return [(row[0], row[1].strip()) for row in rows[1:]]


def number_groups(labels: Sequence[object], names: Sequence[str]) -> Groups:
    """Make groups from a label for each column, None for a column of its own."""
    alone = {name for name, label in zip(names, labels, strict=True) if label is None}
    clash = sorted(alone & {label for label in labels if isinstance(label, str)})
    if clash:
        raise InputError(
            f"groups: {clash[0]!r} is the name of a group and of a column that is in none. Rename the group, or put "
            "the column into it."
        )
    keys = [("column", name) if label is None else ("group", label) for name, label in zip(names, labels, strict=True)]
    number = {key: g for g, key in enumerate(dict.fromkeys(keys))}
    feature_of = np.array([number[key] for key in keys], dtype=np.intp)
    members: list[list[str]] = [[] for _ in number]
    for g, name in zip(feature_of, names, strict=True):
        members[g].append(str(name))
    called = tuple(  # a number says little, so the columns are named with it
        str(label) if kind == "column" or isinstance(label, str) else f"{label}: {name_group(columns)}"
        for (kind, label), columns in zip(number, members, strict=True)
    )
    return Groups(feature_of, called)


def name_group(columns: Sequence[str], most: int = 2) -> str:
    """Name of a group that was given none.

    >>> name_group(["a"]), name_group(["a", "b"]), name_group(["a", "b", "c"]), name_group(list("abcde"))
    ('a', 'a and b', 'a, b and c', 'a, b and 3 more')
    """
    if len(columns) == 1:
        return str(columns[0])
    if len(columns) <= most + 1:
        return ", ".join(columns[:-1]) + f" and {columns[-1]}"
    return ", ".join(columns[:most]) + f" and {len(columns) - most} more"


def _plain(label: object) -> object:
    """Label as a string or an int; None and NaN are none."""
    if is_missing(label):
        return None
    if isinstance(label, Real) and not isinstance(label, bool) and float(label).is_integer():
        return int(float(label))
    return str(label)


def _pairs_of_mapping(groups: Mapping[object, object]) -> list[tuple[object, object]]:
    """(column, group) of a mapping in either direction."""
    lists = [isinstance(value, Iterable) and not isinstance(value, str) for value in groups.values()]
    if not any(lists):
        return list(groups.items())
    if not all(lists):
        odd = next(key for key, is_list in zip(groups, lists, strict=True) if not is_list)
        raise InputError(
            f"groups: {odd!r} maps to {groups[odd]!r}, others to lists. Map every group to a list of columns, or every "
            "column to its group."
        )
    found = ((columns, group) for group, columns in groups.items() if isinstance(columns, Iterable))  # all of them
    return [(column, group) for columns, group in found for column in columns]


def _label_columns(pairs: Iterable[tuple[object, object]], names: Sequence[str]) -> list[object]:
    """Label of each column, None where it is in no pair."""
    place = {str(name): j for j, name in enumerate(names)}
    labels: list[object] = [None] * len(names)
    unknown = []
    for column, group in pairs:
        j = place.get(str(column))
        if j is None:
            unknown.append(str(column))
            continue
        label = _plain(group)
        if labels[j] is not None and label is not None and labels[j] != label:
            raise InputError(
                f"groups: column {str(column)!r} is in two groups, {str(labels[j])!r} and {str(label)!r}. Put it into "
                "one, or make one group of both."
            )
        labels[j] = label if label is not None else labels[j]
    if unknown:
        hint = did_you_mean(unknown[0], list(place))
        raise InputError(
            f"groups: the table has no {'column' if len(unknown) == 1 else 'columns'} {name_some(unknown)}.{hint}"
        )
    return labels


# ---- a tree of columns -----------------------------------------------------------------------------------------------
Nested: TypeAlias = "str | tuple[Nested, ...]"  # a column, or a group of columns and groups


def is_nested(groups: object) -> bool:
    """Whether groups hold groups: a list with lists in it, or a mapping with mappings, or lists of lists, in it.

    >>> is_nested([["a", "b"], "c"]), is_nested({"g": ["a", "b"]}), is_nested({"g": {"h": ["a", "b"]}})
    (True, False, True)
    """
    if isinstance(groups, Mapping):
        return any(isinstance(part, Mapping) or is_nested(part) for part in groups.values())
    return isinstance(groups, list) and any(isinstance(part, list | Mapping) for part in groups)


def read_nested(groups: object, names: Sequence[str]) -> Nested:
    """Tree of all columns; those that ``groups`` does not name stand beside its topmost groups.

    >>> read_nested({"blood": {"lipids": ["ldl", "hdl"], "sugar": ["glu"]}}, ["age", "ldl", "hdl", "glu"])
    ('age', (('ldl', 'hdl'), 'glu'))
    """
    tree = _read(groups, (), set())
    listed = list(columns_of(tree))
    for column in listed:
        if column not in names:
            raise InputError(f"groups: the table has no column {column!r}.{did_you_mean(column, list(names))}")
        if listed.count(column) > 1:
            raise InputError(f"groups: column {column!r} is in two places of the tree. Name it once.")
    others = tuple(name for name in names if name not in listed)
    return (*others, tree) if others else tree


def columns_of(tree: Nested) -> Iterator[str]:
    """Yield the columns of a tree from left to right."""
    if isinstance(tree, str):
        yield tree
    else:
        for part in tree:
            yield from columns_of(part)


def cuts(tree: Nested) -> list[list[tuple[str, ...]]]:
    """Partitions of the columns at each depth of a tree, the finest first, but for the columns and the whole.

    >>> cuts(((("a", "b"), "c"), "d"))
    [[('a', 'b'), ('c',), ('d',)], [('a', 'b', 'c'), ('d',)]]
    """
    found, parts = [], [tree]
    while any(not isinstance(part, str) for part in parts):
        found.append([tuple(columns_of(part)) for part in parts])
        parts = [below for part in parts for below in ((part,) if isinstance(part, str) else part)]
    return found[:0:-1]


def prune(tree: Nested, kept: Collection[str]) -> Nested:
    """Tree of those columns that are kept; a group with one part is that part, one with none is ().

    >>> prune((("a", "b"), "c"), {"a", "c"})
    ('a', 'c')
    """
    if isinstance(tree, str):
        return tree if tree in kept else ()
    parts = tuple(part for part in (prune(part, kept) for part in tree) if part)
    return parts[0] if len(parts) == 1 else parts


def _read(groups: object, inside: tuple[int, ...], named: set[str]) -> Nested:
    """Tree of what the user gave, within the groups that ``inside`` holds by their id; ``named`` are groups' names."""
    if not isinstance(groups, Mapping | list | tuple | set | frozenset):
        return str(groups)
    if id(groups) in inside:
        raise InputError("groups: a group contains itself. Use lists, or mappings, of columns and smaller groups.")
    members: Any = groups
    if isinstance(groups, Mapping):
        for name in map(str, groups):
            if name in named:
                raise InputError(f"groups: two groups are named {name!r}. Name each once.")
            named.add(name)
        members = groups.values()
    parts = tuple(_read(part, (*inside, id(groups)), named) for part in members)
    if not parts:
        raise InputError("groups: a group of the tree is empty. Leave it out.")
    return parts[0] if len(parts) == 1 else parts
