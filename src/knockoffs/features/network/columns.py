"""The columns of a table and the nodes of a network: matched by name, and their values by the labels of the states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from knockoffs.errors import InputError, name_some
from knockoffs.features.network.model import DiscreteNetwork

if TYPE_CHECKING:
    from knockoffs.table.table import Table


def observe_columns(network: DiscreteNetwork, names: Sequence[str], *, named: bool = True) -> DiscreteNetwork:
    """Network with the columns of a table as its observed nodes.

    Columns without names of their own (``named=False``: a plain array) are the observed nodes by their places.
    """
    unknown = [name for name in names if name not in network.parents]
    if not unknown:
        return network if tuple(names) == network.observed else network.observing(names)
    if not named:
        return network
    what = "no column" if len(unknown) == len(names) else f"not the columns {name_some(unknown)}"
    raise InputError(
        f"columns {name_some(unknown)} of X are no nodes of the network, which has {name_some(network.parents)} and "
        f"knows {what} of X: rename or drop these columns."
    )


def code_by_state(table: Table, network: DiscreteNetwork) -> Table:
    """Table whose columns of numbers are codes of the states that have these numbers as names.

    A column of labels has its codes from the table. A column of numbers is matched by label too: the number 1 is the
    state called "1" (or "1.0"), whatever its place. Where the states have other names, the numbers of a named table
    are refused, because nothing says which state is which; those of a plain array are the codes themselves.
    """
    X, columns = table.X.copy(), list(table.columns)
    nodes = table.names if table.named else network.observed
    for j, (column, name) in enumerate(zip(columns, nodes, strict=False)):
        if column.levels is not None or name not in (network.states or {}):
            continue
        states = list((network.states or {})[name])
        numbers = [_number(state) for state in states]
        known = np.array([np.nan if number is None else number for number in numbers])
        if np.isnan(known).any():
            if table.named:
                raise InputError(
                    f"column {column.name!r} of X holds numbers (for instance {X[0, j]:g}), and the states of its node "
                    f"are called {name_some(states)}: write the labels, so that no state is taken for another."
                )
            continue
        order = np.argsort(known)
        place = np.minimum(np.searchsorted(known[order], X[:, j]), len(known) - 1)
        codes = order[place]
        bad = np.flatnonzero(known[codes] != X[:, j])
        if bad.size:
            raise InputError(f"row {bad[0]}: {X[bad[0], j]:g} is no state of {name!r} ({', '.join(map(str, states))}).")
        whole = column.dtype == "integer" or all(number == int(number) for number in known)
        levels = tuple(int(number) if whole else float(number) for number in known)
        X[:, j], columns[j] = codes, replace(column, levels=levels)
    return replace(table, X=X, columns=tuple(columns))


def _number(state: object) -> float | None:
    try:
        number = float(str(state))
    except ValueError:
        return None
    return number if np.isfinite(number) else None
