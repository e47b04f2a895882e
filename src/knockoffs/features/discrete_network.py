"""Discrete Bayesian networks: any acyclic graph with tables, its observed and hidden nodes chosen by the user."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, KnockoffWarning, name_some, unknown_option
from knockoffs.features import takes_labels, takes_only_labels
from knockoffs.features.posterior.variable_elimination import (
    log_evidence_by_elimination,
    sample_by_elimination,
    sample_by_gibbs,
)
from knockoffs.sampling.conjugates.identity import Identity
from knockoffs.sampling.conjugates.joint_table import JointTable
from knockoffs.sampling.factors import Factor, elimination_order, restrict, sum_out
from knockoffs.sampling.inverse_cdf import sample_weights
from knockoffs.sampling.network import BayesianNetwork, Blanket, Node

SUM_TOLERANCE = 1e-8  # rows of a table may miss one by rounding, and no more
MAX_TABLE = 2**20  # entries for one row: 8 MiB
MOST_STATES = 2**14  # of all columns together, in the search for a tree: a table of 1 GiB
KEPT, MOVED = "(hidden, kept)", "(hidden, moved)"  # names of the hidden nodes of the network

_Law = tuple[tuple[int, ...], NDArray]  # scope and table


@takes_labels
@dataclass(frozen=True)
class DiscreteNetwork:
    """P(x) = prod over nodes of P(node | parents), some nodes observed and the others hidden.

    Algorithm 1 asks that observed nodes have no descendants. Any choice of observed nodes is brought into that
    form, exactly: hidden nodes without observed descendants are dropped; the other hidden nodes that touch an observed
    one, H, are drawn from P(H | X); and given H the observed nodes fall into blocks (those linked by an edge, or by a
    common child) that are independent of each other. A block is a leaf below H, its law given H the product of the
    tables it stands in, and it moves by sequential conditional independent pairs (``JointTable``), which for a single
    node is a new draw. A hidden node below an observed one needs nothing more: its table is one of that product.

    Two knockoffs of H are valid. ``"posterior"``: H keeps its value. (Drawing it again from P(H | X) would give
    knockoffs of the very same law, because no observed node has moved by then: (X, H_tilde) has the law of (X, H).)
    ``"copy"``: the hidden nodes that belong to a single observed node move as well, by an exchangeable copy under their
    own law given the other hidden nodes, as Sesia et al. do for Markov chains: (h, x) and (h_tilde, x_tilde) can then
    be exchanged together. The knockoffs depend less on X, so this is the default where its tables are small enough.

    Parameters
    ----------
    parents : mapping of node to its parents
    tables : mapping of node to array
        P(node | parents), shape (*states of the parents, states of the node).
    observe : sequence of str, optional
        The observed nodes, in the order of the columns of X; all of them if left out. X holds the codes 0, 1, ... of
        the states.
    states : mapping of node to the names of its states, optional
    posterior : {"exact", "gibbs"}
        How H is drawn given X: by variable elimination, or approximately by ``n_sweeps`` sweeps of Gibbs sampling.
    n_sweeps : int
    hidden_knockoff : {"auto", "copy", "posterior"}
        See above; "auto" is "copy" unless that needs too large a table.
    max_table : int
        Entries of the largest table that may be needed for one row; a network that needs more is refused.

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
    posterior: str = "exact"
    n_sweeps: int = 200
    hidden_knockoff: str = "auto"
    max_table: int = MAX_TABLE
    order: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        order = _topological_order(self.parents)
        tables = {name: np.asarray(self.tables[name], dtype=float) for name in order if name in self.tables}
        _check_tables(self.parents, tables)
        observe = tuple(order if self.observe is None else self.observe)
        unknown = [name for name in observe if name not in tables]
        if unknown:
            raise unknown_option("observe", unknown[0], order)
        if not observe or len(set(observe)) < len(observe):
            raise InputError("observe must name at least one node, and none twice.")
        if self.posterior not in ("exact", "gibbs"):
            raise unknown_option("posterior", self.posterior, ("exact", "gibbs"))
        if self.n_sweeps < 1:
            raise InputError(f"n_sweeps={self.n_sweeps}: without a sweep the draw does not look at X. Use 1 or more.")
        if self.hidden_knockoff not in ("auto", "copy", "posterior"):
            raise unknown_option("hidden_knockoff", self.hidden_knockoff, ("auto", "copy", "posterior"))
        states = self.states or {name: tuple(map(str, range(tables[name].shape[-1]))) for name in order}
        for name in order:
            if len(states[name]) != tables[name].shape[-1]:
                raise InputError(f"node {name!r} has {len(states[name])} states, its table {tables[name].shape[-1]}.")
        for key, value in (("order", order), ("tables", tables), ("observe", observe), ("states", states)):
            object.__setattr__(self, key, value)

    @property
    def observed(self) -> tuple[str, ...]:
        """The observed nodes, in the order of the columns of X."""
        return tuple(self.observe or ())

    def observing(self, observe: Sequence[str], **options: object) -> DiscreteNetwork:
        """Return the same network with other observed nodes (and other options)."""
        return replace(self, observe=tuple(observe), **options)  # type: ignore[arg-type]

    def as_network(self) -> BayesianNetwork:
        """Hidden nodes above blocks of observed nodes: some hidden ones stay, the others move, and so do the blocks."""
        return self._network

    @cached_property
    def _network(self) -> BayesianNetwork:
        self._check_posterior()
        home = {v: (MOVED if v in self._moved else KEPT) for v in self._hidden}
        nodes = [
            Node(
                "+".join(self.observed[column] for column in block.columns),
                parents=tuple(sorted({home[variable] for variable in block.above})),
                conjugate=JointTable(
                    self._shape(block.place), partial(_factors_given, block.laws, block.place, self._at)
                ),
                columns=block.columns,
            )
            for block in self._blocks
        ]
        if KEPT in home.values():
            nodes.append(Node(KEPT, parents=(), conjugate=Identity()))
        if self._moved:
            place = {variable: i for i, variable in enumerate(self._moved)}
            copy = JointTable(self._shape(place), partial(_factors_given, self._hidden_laws, place, self._at))
            nodes.append(Node(MOVED, parents=(KEPT,) if KEPT in home.values() else (), conjugate=copy))
        return BayesianNetwork(tuple(nodes), sample_hidden=self.sample_hidden if home else None)

    def sample_hidden(self, X: NDArray, rng: Generator) -> dict[str, NDArray]:
        """H ~ P(H | X): the hidden nodes that touch an observed one, those that stay and those that move."""
        factors = self._factors(self._evidence(X), len(X))
        if self.posterior == "gibbs":
            values = sample_by_gibbs(factors, self._hidden_states, len(X), rng, n_sweeps=self.n_sweeps)
        else:
            values = sample_by_elimination(factors, self._hidden_states, len(X), rng)
        kept = [v for v in self._hidden if v not in self._moved]
        parts = {KEPT: kept, MOVED: self._moved}
        return {name: np.stack([values[v] for v in part], axis=1) for name, part in parts.items() if part}

    def log_prob(self, X: NDArray) -> NDArray:
        """Log P(x) of the observed nodes, shape (n,), by variable elimination."""
        self._check_posterior(always=True)
        return log_evidence_by_elimination(self._factors(self._evidence(X), len(X)), self._hidden_states, len(X))

    def sample(self, n: int, rng: Generator) -> NDArray[np.intp]:
        """Draw n rows of the observed nodes, as codes, shape (n, n_observed)."""
        values: dict[str, NDArray] = {}
        for name in self.order:
            table = np.asarray(self.tables[name])
            p = table[tuple(values[parent] for parent in self.parents[name])]
            values[name] = sample_weights(np.broadcast_to(p, (n, table.shape[-1])), rng)
        return np.stack([values[name] for name in self.observed], axis=1)

    def encode(self, table: Mapping[str, ArrayLike]) -> NDArray[np.intp]:
        """Codes of the observed nodes, shape (n, n_observed), from columns of state names."""
        columns = []
        for name in self.observed:
            code = {state: i for i, state in enumerate((self.states or {})[name])}
            labels = [str(label) for label in np.asarray(table[name]).tolist()]
            unseen = [(row, label) for row, label in enumerate(labels) if label not in code]
            if unseen:
                row, label = unseen[0]
                raise InputError(f"row {row}: {label!r} is no state of {name!r} ({', '.join(code)}).")
            columns.append([code[label] for label in labels])
        return np.array(columns, dtype=np.intp).T

    # Inside, nodes are numbered in topological order

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.order)}

    @cached_property
    def _n_states(self) -> dict[int, int]:
        return {i: np.shape(self.tables[name])[-1] for name, i in self._index.items()}

    @cached_property
    def _laws(self) -> list[_Law]:
        """Scopes and tables of the nodes that are observed or have observed descendants."""
        used = {self._index[name] for name in self.observed}
        for name in reversed(self.order):
            if self._index[name] in used:
                used.update(self._index[parent] for parent in self.parents[name])
        return [
            (tuple(self._index[other] for other in (*self.parents[name], name)), np.asarray(self.tables[name]))
            for name in self.order
            if self._index[name] in used
        ]

    @cached_property
    def _hidden_states(self) -> dict[int, int]:
        columns = {self._index[name] for name in self.observed}
        return {scope[-1]: self._n_states[scope[-1]] for scope, _ in self._laws if scope[-1] not in columns}

    @cached_property
    def _blocks(self) -> list[_Block]:
        column_of = {self._index[name]: column for column, name in enumerate(self.observed)}
        block_of = {variable: {variable} for variable in column_of}
        for scope, _ in self._laws:  # the moral graph, restricted to the observed nodes
            together = set().union(*(block_of[variable] for variable in scope if variable in column_of))
            for variable in together:
                block_of[variable] = together
        blocks = []
        for variable in sorted(column_of, key=lambda v: column_of[v]):
            members = block_of[variable]
            if min(members, key=lambda v: column_of[v]) != variable:
                continue
            columns = tuple(sorted(column_of[member] for member in members))
            laws = [law for law in self._laws if members & set(law[0])]
            above = tuple(sorted({v for scope, _ in laws for v in scope} - members))
            place = {self._index[self.observed[column]]: i for i, column in enumerate(columns)}
            blocks.append(_Block(columns, above, tuple(laws), place))
        return blocks

    @cached_property
    def _hidden(self) -> tuple[int, ...]:
        """The hidden variables that touch an observed one."""
        return tuple(sorted({variable for block in self._blocks for variable in block.above}))

    @cached_property
    def _moved(self) -> tuple[int, ...]:
        """The hidden variables that move: those above one block only, and that a single node."""
        if self.hidden_knockoff == "posterior":
            return ()
        blocks = {v: [block for block in self._blocks if v in block.above] for v in self._hidden}
        moved = tuple(v for v in self._hidden if len(blocks[v]) == 1 and len(blocks[v][0].columns) == 1)
        largest = self._largest_of_copy(moved)
        if largest <= self.max_table:
            return moved
        if self.hidden_knockoff == "auto":
            return ()
        raise InputError(
            f"hidden_knockoff='copy' needs a table of {_entries(largest)} entries; the limit is max_table="
            f"{self.max_table:,}. Use hidden_knockoff='posterior', or raise max_table."
        )

    def _largest_of_copy(self, moved: tuple[int, ...]) -> int:
        if not moved:
            return 0
        laws, rest, largest = self._laws_above_hidden
        if largest > self.max_table:
            return largest
        factors = sum_out((restrict(scope, table, {}, 1) for scope, table in laws), rest)
        return elimination_order((f.scope for f in factors), {v: self._n_states[v] for v in moved})[1]

    @cached_property
    def _laws_above_hidden(self) -> tuple[list[_Law], list[int], int]:
        """Tables of the touching hidden variables and their ancestors; how to sum out the others, order and size."""
        used = set(self._hidden)
        for scope, _ in reversed(self._laws):
            if scope[-1] in used:
                used.update(scope)
        laws = [law for law in self._laws if law[0][-1] in used]
        sizes = {variable: self._n_states[variable] for variable in used}
        return laws, *elimination_order((scope for scope, _ in laws), sizes, keep=self._hidden)

    @cached_property
    def _hidden_laws(self) -> tuple[_Law, ...]:
        """P(H) as a product of tables, all else summed out; only those with a variable that moves."""
        laws, rest, _ = self._laws_above_hidden
        factors = sum_out((restrict(scope, table, {}, 1) for scope, table in laws), rest)
        return tuple((f.scope, f.table[0]) for f in factors if set(f.scope) & set(self._moved))

    @cached_property
    def _at(self) -> dict[int, tuple[str, int]]:
        """Node and coordinate that hold each hidden variable."""
        kept = [v for v in self._hidden if v not in self._moved]
        return {v: (KEPT, i) for i, v in enumerate(kept)} | {v: (MOVED, i) for i, v in enumerate(self._moved)}

    def _shape(self, variables: Iterable[int]) -> tuple[int, ...]:
        return tuple(self._n_states[variable] for variable in variables)

    def _evidence(self, X: NDArray) -> dict[int, NDArray]:
        X = np.asarray(X)
        names = self.observed
        if X.ndim != 2 or X.shape[1] != len(names):
            raise InputError(f"X has shape {X.shape}: expected one column for each of {len(names)} observed nodes.")
        evidence = {}
        for column, name in enumerate(names):
            m = self._n_states[self._index[name]]
            bad = np.flatnonzero(~((X[:, column] >= 0) & (X[:, column] < m) & (X[:, column] == np.floor(X[:, column]))))
            if bad.size:
                raise InputError(
                    f"row {bad[0]}: {X[bad[0], column]} is no state of node {name!r}, whose states are coded "
                    f"0, ..., {m - 1}."
                )
            evidence[self._index[name]] = X[:, column].astype(np.intp)
        return evidence

    def _factors(self, evidence: Mapping[int, NDArray], n: int) -> list[Factor]:
        return [restrict(scope, table, evidence, n) for scope, table in self._laws]

    def _check_posterior(self, always: bool = False) -> None:
        for block in self._blocks:
            inside = {variable: self._n_states[variable] for variable in block.place}
            _, largest = elimination_order((scope for scope, _ in block.laws), inside)
            if largest > self.max_table:
                names = [self.observed[column] for column in block.columns]
                raise InputError(
                    f"the observed nodes {name_some(names)} depend on each other given the hidden ones, and an exact "
                    f"conjugate of them needs a table of {_entries(largest)} entries; the limit is max_table="
                    f"{self.max_table:,}. Observe fewer of them, or raise max_table."
                )
        _, largest = elimination_order((scope for scope, _ in self._laws), self._hidden_states)
        if largest > self.max_table and (self.posterior == "exact" or always):
            raise InputError(
                f"drawing the {len(self._hidden_states)} hidden nodes exactly needs a table of {_entries(largest)} "
                f"entries; the limit is max_table={self.max_table:,}. Pass posterior='gibbs' (approximate), observe "
                "more nodes, or raise max_table."
            )
        if self.posterior == "gibbs" and not always and self._hidden:
            zeros = [self.order[scope[-1]] for scope, table in self._laws if (table == 0).any()]
            if zeros:
                warnings.warn(
                    f"the tables of {name_some(zeros)} hold zeros: Gibbs sampling may not reach all possible values of "
                    "the hidden nodes, and the knockoffs are then not valid.",
                    KnockoffWarning,
                    stacklevel=2,
                )


@dataclass(frozen=True)
class _Block:
    """Observed nodes that depend on each other given H."""

    columns: tuple[int, ...]
    above: tuple[int, ...]  # hidden variables in its Markov blanket
    laws: tuple[_Law, ...]
    place: Mapping[int, int]  # coordinate of each variable of the block


def _factors_given(
    laws: Sequence[_Law],
    place: Mapping[int, int],
    at: Mapping[int, tuple[str, int]],
    blanket: Blanket,
    n: int,
) -> list[Factor]:
    """Tables over the coordinates in ``place``, at the blanket's values of the hidden variables that are not."""
    others = {v for scope, _ in laws for v in scope if v not in place}
    values = {v: blanket[at[v][0]][:, at[v][1]] for v in others}
    factors = (restrict(scope, table, values, n) for scope, table in laws)
    return [Factor(tuple(place[v] for v in factor.scope), factor.table, factor.group) for factor in factors]


def read_network(path: str | Path, *, observe: Sequence[str] | None = None, **options: object) -> DiscreteNetwork:
    """Discrete network of a .bif or .bif.gz file, all nodes observed unless ``observe`` names some."""
    from knockoffs.features.bif import read_bif

    bif = read_bif(path)
    return DiscreteNetwork(bif.parents, bif.tables, observe, bif.states, **options)  # type: ignore[arg-type]


@takes_only_labels
def fit_discrete_network(
    X: ArrayLike,
    *,
    rng: Generator,
    n_jobs: int | None = None,
    parents: Mapping[str, Sequence[str]] | None = None,
    names: Sequence[str] | None = None,
    pseudo_count: float = 1.0,
    max_table: int = MAX_TABLE,
) -> DiscreteNetwork:
    """Fit the tables of a network of observed columns.

    Parameters
    ----------
    X : array, shape (n, n_columns)
        Codes 0, 1, ... of the states.
    rng, n_jobs
        Not needed here: the fit has no random part.
    parents : mapping of column name to names of its parents, optional
        The graph. Left out, it is the tree of largest likelihood (Chow and Liu), whose conjugate costs O(K^2) a column.
    names : sequence of str, optional
        Names of the columns, "0", "1", ... if left out.
    pseudo_count : float
        Every row of a table borrows this many rows with the law of the whole column.
    max_table : int
        See ``DiscreteNetwork``.

    Returns
    -------
    DiscreteNetwork
        With all columns observed. A network with hidden nodes is written down, or fitted as ``fit_naive_bayes``.
    """
    X = np.asarray(X)
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(f"X has shape {X.shape}: expected (n, n_columns).")
    if not (np.issubdtype(X.dtype, np.number) or X.dtype == bool) or not ((X >= 0) & (X == np.floor(X))).all():
        raise InputError("X must hold the codes 0, 1, ... of the states of each column.")
    if pseudo_count < 0:
        raise InputError(f"pseudo_count={pseudo_count:g} must not be negative.")
    codes = X.astype(np.intp)
    labels = tuple(map(str, range(X.shape[1]) if names is None else names))
    if len(labels) != X.shape[1] or len(set(labels)) < len(labels):
        raise InputError(f"names must name each of the {X.shape[1]} columns, and none twice.")
    graph = _chow_liu(codes, labels) if parents is None else {name: tuple(parents.get(name, ())) for name in labels}
    for name in graph:
        for parent in graph[name]:
            if parent not in labels:
                raise unknown_option(f"parents[{name!r}]", parent, labels)
    column = {name: codes[:, j] for j, name in enumerate(labels)}
    size = {name: int(values.max()) + 1 for name, values in column.items()}
    tables: dict[str, ArrayLike] = {}
    for name in labels:
        shape = [size[other] for other in (*graph[name], name)]
        if math.prod(shape) > max_table:
            raise InputError(
                f"the table of {name!r} has {_entries(math.prod(shape))} entries, more than {max_table:,}."
            )
        flat = np.ravel_multi_index([column[other] for other in (*graph[name], name)], shape)
        counts = np.bincount(flat, minlength=math.prod(shape)).reshape(shape)
        overall = np.bincount(column[name], minlength=size[name]) / len(X)
        borrowed = np.where(counts.sum(axis=-1, keepdims=True) + pseudo_count > 0, pseudo_count, 1.0) * overall
        tables[name] = (counts + borrowed) / (counts + borrowed).sum(axis=-1, keepdims=True)
    return DiscreteNetwork(graph, tables, labels, max_table=max_table)


def _chow_liu(codes: NDArray, labels: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Parents of the tree that maximises the sum of mutual informations (Prim's algorithm, from the first column)."""
    information = _mutual_information(codes)
    parents: dict[str, tuple[str, ...]] = {labels[0]: ()}
    best, link, left = information[0].copy(), np.zeros(len(labels), dtype=int), set(range(1, len(labels)))
    while left:
        current = max(left, key=lambda j: best[j])
        left.remove(current)
        parents[labels[current]] = (labels[link[current]],)
        better = information[current] > best
        best[better], link[better] = information[current][better], current
    return parents


def _mutual_information(codes: NDArray) -> NDArray:
    """Mutual information of every two columns, shape (n_columns, n_columns), from one table of all pairs of states."""
    n_states = codes.max(axis=0) + 1
    starts = np.concatenate([[0], np.cumsum(n_states)])
    if starts[-1] > MOST_STATES:
        raise InputError(
            f"the columns have {starts[-1]:,} states together (column {n_states.argmax()} has {n_states.max():,}), "
            f"too many to search for a tree (the limit is {MOST_STATES:,}): pass parents, or join rare states."
        )
    pairs = np.zeros((starts[-1], starts[-1]), dtype=np.float32)  # counts below 2^24 are exact
    for first in range(0, len(codes), 4096):
        block = codes[first : first + 4096] + starts[:-1]
        one_hot = np.zeros((len(block), starts[-1]), dtype=np.float32)
        np.put_along_axis(one_hot, block, 1.0, axis=1)
        pairs += one_hot.T @ one_hot
    p = np.diag(pairs).astype(float) / len(codes)
    out = np.empty((codes.shape[1], codes.shape[1]))
    for j in range(codes.shape[1]):
        rows = slice(starts[j], starts[j + 1])
        joint = pairs[rows].astype(float) / len(codes)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(joint > 0, joint * np.log(joint / (p[rows, None] * p)), 0.0)
        out[j] = np.add.reduceat(terms.sum(axis=0), starts[:-1])
    return out


def _topological_order(parents: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    for name, above in parents.items():
        for parent in above:
            if parent not in parents:
                raise InputError(f"node {name!r} has the parent {parent!r}, which is not a node.")
        if len(set(above)) < len(above):
            raise InputError(f"node {name!r} has a parent twice.")
    try:
        return tuple(TopologicalSorter(parents).static_order())
    except CycleError as error:
        path = " -> ".join(repr(name) for name in error.args[1])
        raise InputError(f"the network has a cycle: {path}. A Bayesian network must be acyclic.") from None


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
        total = table.sum(axis=-1)
        bad = np.argwhere(~(np.abs(total - 1) <= SUM_TOLERANCE) | (table < 0).any(axis=-1))
        if len(bad):
            place = tuple(int(i) for i in bad[0])
            raise InputError(
                f"row {place} of the table of {name!r} is no probability: it sums to {total[place]:.6g}, smallest "
                f"entry {table[place].min():.3g}."
            )


def _entries(count: int) -> str:
    return f"{count:,}" if count < 10**12 else f"{count:.1e}"
