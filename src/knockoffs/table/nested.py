"""A tree of columns, as the user gives it: groups of groups of columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from knockoffs.errors import InputError, did_you_mean

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
