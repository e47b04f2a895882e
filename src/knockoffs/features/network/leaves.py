"""The knockoffs of a discrete network: any choice of observed nodes as leaves below hidden ones.

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
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some, unknown_option
from knockoffs.features.network.model import MAX_TABLE, DiscreteNetwork, Law, write_entries
from knockoffs.features.posterior.variable_elimination import sample_by_elimination
from knockoffs.sampling.conjugates.joint_table import JointTable
from knockoffs.sampling.factors import Factor, elimination_order, restrict, sum_out
from knockoffs.sampling.network import BayesianNetwork, Blanket, Identity, Node

KEPT_NODE, MOVED_NODE = "(hidden, kept)", "(hidden, moved)"  # names of the hidden nodes of the network
HIDDEN_KNOCKOFFS = ("auto", "copy", "posterior")


@dataclass(frozen=True)
class Leaves:
    """A discrete network in the form that Algorithm 1 asks for."""

    law: DiscreteNetwork
    hidden_knockoff: str = "auto"
    max_table: int = MAX_TABLE

    def __post_init__(self) -> None:
        if self.hidden_knockoff not in HIDDEN_KNOCKOFFS:
            raise unknown_option("hidden_knockoff", self.hidden_knockoff, HIDDEN_KNOCKOFFS)

    def as_network(self) -> BayesianNetwork:
        """Hidden nodes above blocks of observed ones."""
        self._check()
        home = {v: (MOVED_NODE if v in self._moved else KEPT_NODE) for v in self._hidden}
        nodes = [
            Node(
                "+".join(self.law.observed[column] for column in block.columns),
                parents=tuple(sorted({home[variable] for variable in block.above})),
                conjugate=JointTable(
                    self._shape(block.place), partial(_factors_given, block.laws, block.place, self._at), self.max_table
                ),
                columns=block.columns,
            )
            for block in self._blocks
        ]
        if KEPT_NODE in home.values():
            nodes.append(Node(KEPT_NODE, parents=(), conjugate=Identity()))
        if self._moved:
            place = {variable: i for i, variable in enumerate(self._moved)}
            factors = partial(_factors_given, self._hidden_laws, place, self._at)
            copy = JointTable(self._shape(place), factors, self.max_table)
            nodes.append(Node(MOVED_NODE, parents=(KEPT_NODE,) if KEPT_NODE in home.values() else (), conjugate=copy))
        return BayesianNetwork(tuple(nodes), sample_hidden=self.sample_hidden if home else None)

    def sample_hidden(self, X: NDArray, rng: Generator) -> dict[str, NDArray]:
        """H ~ P(H | X): the hidden nodes that touch an observed one, those that stay and those that move."""
        factors = self.law.factors(self.law.evidence(X), len(X))
        values = sample_by_elimination(factors, self.law.hidden_states, len(X), rng)
        kept = [v for v in self._hidden if v not in self._moved]
        parts = {KEPT_NODE: kept, MOVED_NODE: self._moved}
        return {name: np.stack([values[v] for v in part], axis=1) for name, part in parts.items() if part}

    @cached_property
    def _blocks(self) -> list[_ObservedBlock]:
        column_of = {self.law.index[name]: column for column, name in enumerate(self.law.observed)}
        block_of = {variable: {variable} for variable in column_of}
        for scope, _ in self.law.laws:  # the moral graph, restricted to the observed nodes
            together = set().union(*(block_of[variable] for variable in scope if variable in column_of))
            for variable in together:
                block_of[variable] = together
        blocks = []
        for variable in sorted(column_of, key=lambda v: column_of[v]):
            members = block_of[variable]
            if min(members, key=lambda v: column_of[v]) != variable:
                continue
            columns = tuple(sorted(column_of[member] for member in members))
            laws = [law for law in self.law.laws if members & set(law[0])]
            above = tuple(sorted({v for scope, _ in laws for v in scope} - members))
            place = {self.law.index[self.law.observed[column]]: i for i, column in enumerate(columns)}
            blocks.append(_ObservedBlock(columns, above, tuple(laws), place))
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
            f"hidden_knockoff='copy' needs a table of {write_entries(largest)} entries; the limit is max_table="
            f"{self.max_table:,}. Use hidden_knockoff='posterior', or raise max_table."
        )

    def _largest_of_copy(self, moved: tuple[int, ...]) -> int:
        if not moved:
            return 0
        laws, rest, largest = self._laws_above_hidden
        if largest > self.max_table:
            return largest
        factors = sum_out((restrict(scope, table, {}, 1) for scope, table in laws), rest)
        return elimination_order((f.scope for f in factors), {v: self.law.n_states[v] for v in moved})[1]

    @cached_property
    def _laws_above_hidden(self) -> tuple[list[Law], list[int], int]:
        """Tables of the touching hidden variables and their ancestors; how to sum out the others, order and size."""
        used = set(self._hidden)
        for scope, _ in reversed(self.law.laws):
            if scope[-1] in used:
                used.update(scope)
        laws = [law for law in self.law.laws if law[0][-1] in used]
        sizes = {variable: self.law.n_states[variable] for variable in used}
        return laws, *elimination_order((scope for scope, _ in laws), sizes, keep=self._hidden)

    @cached_property
    def _hidden_laws(self) -> tuple[Law, ...]:
        """P(H) as a product of tables, all else summed out; only those with a variable that moves."""
        laws, rest, _ = self._laws_above_hidden
        factors = sum_out((restrict(scope, table, {}, 1) for scope, table in laws), rest)
        return tuple((f.scope, f.table[0]) for f in factors if set(f.scope) & set(self._moved))

    @cached_property
    def _at(self) -> dict[int, tuple[str, int]]:
        """Node and coordinate that hold each hidden variable."""
        kept = [v for v in self._hidden if v not in self._moved]
        return {v: (KEPT_NODE, i) for i, v in enumerate(kept)} | {v: (MOVED_NODE, i) for i, v in enumerate(self._moved)}

    def _shape(self, variables: Iterable[int]) -> tuple[int, ...]:
        return tuple(self.law.n_states[variable] for variable in variables)

    def _check(self) -> None:
        for block in self._blocks:
            inside = {variable: self.law.n_states[variable] for variable in block.place}
            _, largest = elimination_order((scope for scope, _ in block.laws), inside)
            if largest > self.max_table:
                names = [self.law.observed[column] for column in block.columns]
                raise InputError(
                    f"the observed nodes {name_some(names)} depend on each other given the hidden ones, and an exact "
                    f"conjugate of them needs a table of {write_entries(largest)} entries; the limit is max_table="
                    f"{self.max_table:,}. Observe fewer of them, or raise max_table."
                )
        self.law.check_elimination(self.max_table)


@dataclass(frozen=True)
class _ObservedBlock:
    """Observed nodes that depend on each other given H."""

    columns: tuple[int, ...]
    above: tuple[int, ...]  # hidden variables in its Markov blanket
    laws: tuple[Law, ...]
    place: Mapping[int, int]  # coordinate of each variable of the block


def _factors_given(
    laws: Sequence[Law],
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
