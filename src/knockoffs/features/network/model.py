"""Discrete Bayesian networks: any acyclic graph with tables, its observed and hidden nodes chosen by the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, name_some, unknown_option
from knockoffs.features import kept_per_how
from knockoffs.features.posterior.variable_elimination import log_evidence_by_elimination
from knockoffs.sampling.categorical import check_probabilities, sample_categorical, sample_weights
from knockoffs.sampling.factors import Factor, elimination_order, restrict
from knockoffs.sampling.network import BayesianNetwork, topological_order

if TYPE_CHECKING:
    from knockoffs.table.table import Table

MAX_TABLE = 2**20  # entries for one row: 8 MiB

Law = tuple[tuple[int, ...], NDArray]  # scope and table


@dataclass(frozen=True, repr=False)
class DiscreteNetwork:
    """P(x) = prod over nodes of P(node | parents), some nodes observed and the others hidden.

    Parameters
    ----------
    parents : mapping of node to its parents
    tables : mapping of node to array
        P(node | parents), shape (*states of the parents, states of the node).
    observe : sequence of str, optional
        The observed nodes, in the order of the columns of X; all of them if left out. X holds the codes 0, 1, ... of
        the states, in the order of ``states``.
    states : mapping of node to the names of its states, optional

    Examples
    --------
    >>> from knockoffs.sampling.sampler import sample_knockoffs
    >>> rain = DiscreteNetwork(
    ...     parents={"rain": (), "wet": ("rain",), "slippery": ("wet",)},
    ...     tables={"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.2, 0.8]], "slippery": [[0.95, 0.05], [0.3, 0.7]]},
    ...     observe=["wet", "slippery"],
    ... )
    >>> rng = np.random.default_rng(0)
    >>> sample_knockoffs(rain.as_network(), rain.sample(4, rng), rng).shape
    (4, 2)
    """

    parents: Mapping[str, Sequence[str]]
    tables: Mapping[str, ArrayLike]
    observe: Sequence[str] | None = None
    states: Mapping[str, Sequence[str]] | None = None
    order: tuple[str, ...] = field(init=False)

    def __repr__(self) -> str:  # without the tables, which may have millions of entries
        return f"DiscreteNetwork({len(self.order)} nodes, {len(self.observed)} observed)"

    def __post_init__(self) -> None:
        parents = {name: _as_parents(name, above) for name, above in self.parents.items()}
        order = topological_order(parents)
        object.__setattr__(self, "parents", parents)
        stray = [name for name in self.tables if name not in parents]
        if stray:
            raise InputError(f"tables has {stray[0]!r}, which is no node: parents names all of them, roots with ().")
        tables = {name: _as_numbers(name, self.tables[name]) for name in order if name in self.tables}
        _check_tables(self.parents, tables)
        observe = tuple(order if self.observe is None else self.observe)
        unknown = [name for name in observe if name not in tables]
        if unknown:
            raise unknown_option("observe", unknown[0], order)
        if not observe or len(set(observe)) < len(observe):
            raise InputError("observe must name at least one node, and none twice.")
        states = self.states or {name: tuple(map(str, range(tables[name].shape[-1]))) for name in order}
        for name in order:
            if name not in states:
                raise InputError(f"states has no names for node {name!r}: name those of all nodes, or of none.")
            if len(set(map(str, states[name]))) < len(states[name]):
                raise InputError(f"node {name!r} has two states of one name: {', '.join(map(str, states[name]))}.")
            if len(states[name]) != tables[name].shape[-1]:
                raise InputError(f"node {name!r} has {len(states[name])} states, its table {tables[name].shape[-1]}.")
        for key, value in (("order", order), ("tables", tables), ("observe", observe), ("states", states)):
            object.__setattr__(self, key, value)

    @property
    def observed(self) -> tuple[str, ...]:
        """The observed nodes, in the order of the columns of X."""
        return tuple(self.observe or ())

    def observing(self, observe: Sequence[str]) -> DiscreteNetwork:
        """Return the same network with other observed nodes."""
        return replace(self, observe=tuple(observe))

    def say(self, names: Sequence[str] | None = None) -> str:
        """Sentence that says what P^X is."""
        links = sum(len(self.parents[name]) for name in self.order)
        hidden = len(self.order) - len(self.observed)
        nodes = f"{len(self.order)} discrete nodes, {hidden} of them hidden"
        return f"P^X is a Bayesian network of {nodes}, and {links} arrows."

    @kept_per_how
    def as_network(
        self,
        *,
        hidden_knockoff: str = "auto",
        max_table: int = MAX_TABLE,
        n_jobs: int | None = None,
    ) -> BayesianNetwork:
        """Hidden nodes above blocks of observed nodes: some hidden ones stay, the others move, and so do the blocks.

        Parameters
        ----------
        hidden_knockoff : {"auto", "copy", "posterior"}
            How the hidden nodes move, see leaves.py; "auto" is "copy" unless that needs too large a table.
        max_table : int
            Entries of the largest table that may be needed for one row; a network that needs more is refused.
        n_jobs : int, optional
            Not needed here.
        """
        from knockoffs.features.network.leaves import Leaves

        return Leaves(self, hidden_knockoff, max_table).as_network()

    def log_density(self, X: NDArray, *, max_table: int = MAX_TABLE) -> NDArray:
        """Log P(x) of the observed nodes, shape (n,), exactly, by variable elimination."""
        self.check_elimination(max_table)
        factors = self.factors(self.evidence(X), len(X))
        return log_evidence_by_elimination(factors, self.hidden_states, len(X))

    def conditional(self, j: int, X: NDArray, rng: Generator, n_draws: int) -> NDArray:
        """Draws of X_j given the other columns of each row, shape (n_draws, n), exactly."""
        X = np.array(X)
        log_weights = np.empty((len(X), self.n_states[self.index[self.observed[j]]]))
        for state in range(log_weights.shape[1]):
            X[:, j] = state
            log_weights[:, state] = self.log_density(X)
        drawn = sample_categorical(np.tile(log_weights, (n_draws, 1)), rng)
        return drawn.reshape(n_draws, len(X))

    def sample(self, n: int, rng: Generator) -> NDArray[np.intp]:
        """Draw n rows of the observed nodes, as codes, shape (n, n_observed)."""
        values: dict[str, NDArray] = {}
        for name in self.order:
            table = np.asarray(self.tables[name])
            p = table[tuple(values[parent] for parent in self.parents[name])]
            values[name] = sample_weights(np.broadcast_to(p, (n, table.shape[-1])), rng)
        return np.stack([values[name] for name in self.observed], axis=1)

    # Inside, nodes are numbered in topological order

    @cached_property
    def index(self) -> dict[str, int]:
        """Number of each node, in topological order."""
        return {name: i for i, name in enumerate(self.order)}

    @cached_property
    def n_states(self) -> dict[int, int]:
        """Number of states of each variable."""
        return {i: np.shape(self.tables[name])[-1] for name, i in self.index.items()}

    @cached_property
    def laws(self) -> list[Law]:
        """Scopes and tables of the nodes that are observed or have observed descendants."""
        used = {self.index[name] for name in self.observed}
        for name in reversed(self.order):
            if self.index[name] in used:
                used.update(self.index[parent] for parent in self.parents[name])
        return [
            (tuple(self.index[other] for other in (*self.parents[name], name)), np.asarray(self.tables[name]))
            for name in self.order
            if self.index[name] in used
        ]

    @cached_property
    def hidden_states(self) -> dict[int, int]:
        """Numbers of states of the hidden variables that have observed descendants."""
        columns = {self.index[name] for name in self.observed}
        return {scope[-1]: self.n_states[scope[-1]] for scope, _ in self.laws if scope[-1] not in columns}

    def evidence(self, X: NDArray) -> dict[int, NDArray]:
        """Codes of the observed variables, checked, shape (n,) each."""
        X = np.asarray(X)
        names = self.observed
        if X.dtype.kind not in "biufO":
            raise InputError(f"X has dtype {X.dtype}: expected codes 0, 1, ... of the states.")
        if X.ndim != 2 or X.shape[1] != len(names):
            raise InputError(f"X has shape {X.shape}: expected one column for each of {len(names)} observed nodes.")
        evidence = {}
        for column, name in enumerate(names):
            m = self.n_states[self.index[name]]
            bad = np.flatnonzero(~((X[:, column] >= 0) & (X[:, column] < m) & (X[:, column] == np.floor(X[:, column]))))
            if bad.size:
                raise InputError(
                    f"row {bad[0]}: {X[bad[0], column]} is no state of node {name!r}, whose states are coded "
                    f"0, ..., {m - 1}."
                )
            evidence[self.index[name]] = X[:, column].astype(np.intp)
        return evidence

    def factors(self, evidence: Mapping[int, NDArray], n: int) -> list[Factor]:
        """Tables at the evidence of n rows."""
        return [restrict(scope, table, evidence, n) for scope, table in self.laws]

    def check_elimination(self, max_table: int) -> None:
        """Refuse a sum over the hidden nodes that needs too large a table."""
        _, largest = elimination_order((scope for scope, _ in self.laws), self.hidden_states)
        if largest > max_table:
            raise InputError(
                f"drawing the {len(self.hidden_states)} hidden nodes exactly needs a table of {write_entries(largest)} "
                f"entries; the limit is max_table={max_table:,}. Observe more nodes, or raise max_table."
            )


def read_network(path: str | Path, *, observe: Sequence[str] | None = None) -> DiscreteNetwork:
    """Discrete network of a .bif or .bif.gz file, all nodes observed unless ``observe`` names some."""
    from knockoffs.features.network.bif import read_bif

    bif = read_bif(path)
    return DiscreteNetwork(bif.parents, bif.tables, observe, bif.states)


def _as_parents(name: str, above: Sequence[str]) -> tuple[str, ...]:
    """Parents of a node; one may come by its name alone."""
    if above is None:
        raise InputError(f"node {name!r} has parents None: a node without parents has ().")
    return (above,) if isinstance(above, str) else tuple(above)


def _as_numbers(name: str, table: ArrayLike) -> NDArray:
    try:
        return np.asarray(table, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"the table of {name!r} is no array of numbers: {error}.") from None


def _check_tables(parents: Mapping[str, Sequence[str]], tables: Mapping[str, NDArray]) -> None:
    for name in parents:
        if name not in tables:
            raise InputError(f"node {name!r} has no table.")
    for name, above in parents.items():
        table = tables[name]
        expected = tuple(tables[parent].shape[-1] if tables[parent].ndim else 0 for parent in above)
        if table.ndim != len(above) + 1 or table.shape[:-1] != expected or not table.size:
            wanted = ", ".join([*map(str, expected), "states"])
            raise InputError(f"the table of {name!r} has shape {table.shape}: expected ({wanted}) for parents {above}.")
        check_probabilities(f"the table of {name!r}", table)


def write_entries(count: int) -> str:
    """Write a number of entries that may be astronomical."""
    return f"{count:,}" if count < 10**12 else f"{count:.1e}"


# The columns of a table and the nodes: matched by name, and their values by the labels of the states


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
