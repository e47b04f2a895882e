"""Node and BayesianNetwork: a directed acyclic graph whose leaves are the columns of X; and what a conjugate is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.sampling.pair import check_features

Blanket = Mapping[str, NDArray]


class Conjugate(Protocol):
    """An exchangeable conjugate Q(u_tilde | u, v) of P(u | v) (Definition 3.1).

    ``u`` holds one draw a row: shape (n, k) for an observed node, (n,) or (n, k) for a hidden one. It is not to be
    changed in place: of an observed node it is X itself. ``v`` is the Markov blanket, and nothing else is handed over.
    ``log_conditional`` and ``log_kernel`` return shape (n,); they exist so that the Definition can be checked exactly:
    their sum is unchanged when u and u_tilde change places, for a hidden node as a whole, for an observed node in every
    feature.
    """

    def sample(self, u: NDArray, blanket: Blanket, rng: Generator) -> NDArray:
        """Draw u_tilde from Q(. | u, v), one for each row."""
        ...

    def log_conditional(self, u: NDArray, blanket: Blanket) -> NDArray:
        """Log P(u | v)."""
        ...

    def log_kernel(self, u_tilde: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
        """Log Q(u_tilde | u, v)."""
        ...


SampleHidden = Callable[[NDArray, Generator], Mapping[str, NDArray]]


@dataclass(frozen=True)
class Node:
    """One variable of the network, possibly multi-dimensional.

    Parameters
    ----------
    name : str
    parents : tuple of str
    conjugate : Conjugate
        How the node moves given its Markov blanket.
    columns : sequence of int, optional
        Columns of X that an observed node owns; None for a hidden node.
    """

    name: str
    parents: tuple[str, ...]
    conjugate: Conjugate
    columns: Sequence[int] | None = None

    def __post_init__(self) -> None:
        """One parent may come by its name alone, and columns in any collection."""
        if self.parents is None:
            raise InputError(f"node {self.name!r} has parents=None: a node without parents has ().")
        parents = (self.parents,) if isinstance(self.parents, str) else tuple(self.parents)
        object.__setattr__(self, "parents", parents)
        if isinstance(self.columns, int | np.integer):
            raise InputError(
                f"node {self.name!r} has columns={self.columns}: list them, for instance [{self.columns}]."
            )
        if self.columns is not None and not isinstance(self.columns, range):
            object.__setattr__(self, "columns", tuple(_as_place(self.name, column) for column in self.columns))

    @property
    def observed(self) -> bool:
        """Whether the node is read from X."""
        return self.columns is not None


def _as_place(name: str, column: object) -> int:
    """Place of a column: True and 0.5 would be taken for places 1 and 0."""
    if isinstance(column, bool | np.bool_) or not isinstance(column, int | np.integer):
        raise InputError(
            f"node {name!r} has the column {column!r}: give the places of its columns in X, for instance [0, 1]."
        )
    return int(column)


@dataclass(frozen=True)
class BayesianNetwork:
    """Nodes in topological order, and a sampler of the hidden ones given the observed ones.

    Parameters
    ----------
    nodes : sequence of Node
        In any order; they are kept in a topological one.
    sample_hidden : callable, optional
        ``(X, rng) -> {name: values}``, a draw from P(H | O) for every row. Needed when a node is hidden.
    feature_of : array of int, shape (n_columns,), optional
        The feature that owns each column. One column a feature if left out.

    Raises
    ------
    InputError
        For a cycle, an unknown parent, an observed node with descendants, a column claimed twice or by nobody, a
        missing conjugate, a feature spread over two nodes, or hidden nodes without a sampler.
    """

    nodes: tuple[Node, ...]
    sample_hidden: SampleHidden | None = None
    feature_of: NDArray[np.intp] = None  # type: ignore[assignment]
    n_columns: int = field(init=False)
    blanket_of: dict[str, tuple[str, ...]] = field(init=False, repr=False)
    checked: InitVar[bool] = field(default=False, kw_only=True)  # whether ``feature_of`` was checked with a law

    def __post_init__(self, checked: bool) -> None:
        if isinstance(self.nodes, Node):
            raise InputError(f"nodes is the one node {self.nodes.name!r}: give a list of nodes.")
        nodes = _in_order(tuple(self.nodes))
        for node in nodes:
            _check_conjugate(node)
        _check_leaves(nodes)
        n_columns = _count_columns(nodes)
        if self.sample_hidden is None and any(not node.observed for node in nodes):
            names = ", ".join(repr(node.name) for node in nodes if not node.observed)
            raise InputError(f"nodes {names} are hidden, but sample_hidden is missing: pass a sampler of P(H | O).")
        if self.sample_hidden is not None and not callable(self.sample_hidden):
            raise InputError(f"sample_hidden={self.sample_hidden!r} cannot be called: expected (X, rng) -> values.")
        feature_of = self.feature_of if checked else check_features(self.feature_of, n_columns)
        _check_features_stay_in_one_node(nodes, feature_of)
        for name, value in (("nodes", nodes), ("n_columns", n_columns), ("feature_of", feature_of)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "blanket_of", {node.name: _markov_blanket(node, nodes) for node in nodes})

    def as_network(self) -> BayesianNetwork:
        """Return the network itself: a P^X that was written down."""
        return self

    @property
    def hidden(self) -> tuple[Node, ...]:
        """The nodes that are not in X."""
        return tuple(node for node in self.nodes if not node.observed)

    @property
    def observed(self) -> tuple[Node, ...]:
        """The nodes that own columns of X."""
        return tuple(node for node in self.nodes if node.observed)

    def read(self, X: NDArray) -> dict[str, NDArray]:
        """X_O: the values of the observed nodes, shape (n, k) each."""
        if X.ndim != 2 or X.shape[1] != self.n_columns:
            raise InputError(f"X has shape {X.shape}: the network has {self.n_columns} columns.")
        return {node.name: X[:, _as_slice(node.columns)] for node in self.observed}

    def draw_hidden(self, X: NDArray, rng: Generator) -> dict[str, NDArray]:
        """X_H drawn from P(H | O), checked to hold every hidden node with one value a row."""
        if self.sample_hidden is None:
            return {}
        drawn = self.sample_hidden(X, rng)
        if not isinstance(drawn, Mapping):
            raise InputError(f"sample_hidden returned {type(drawn).__name__}: expected {{name of a node: its values}}.")
        values = dict(drawn)
        for node in self.hidden:
            if node.name not in values:
                raise InputError(f"sample_hidden returned no value for the hidden node {node.name!r}.")
            if np.ndim(values[node.name]) == 0:
                raise InputError(
                    f"sample_hidden returned {values[node.name]!r} for node {node.name!r}: expected {len(X)} values, "
                    "one for each row."
                )
            if len(values[node.name]) != len(X):
                raise InputError(
                    f"sample_hidden returned {len(values[node.name])} values for node {node.name!r}, expected {len(X)}."
                )
        return {node.name: values[node.name] for node in self.hidden}

    def blanket(self, node: Node, values: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Values of the node's parents, children and children's other parents."""
        return {name: values[name] for name in self.blanket_of[node.name]}

    def write(self, values: Mapping[str, NDArray], dtype: np.dtype, n: int | None = None) -> NDArray:
        """Observed nodes, each checked to have n rows and its columns, as one array of shape (n, n_columns)."""
        first = self.observed[0]
        n = len(values[first.name]) if n is None else n
        for node in self.observed:
            if np.shape(values[node.name]) != (n, len(node.columns or ())):
                raise InputError(
                    f"the conjugate of node {node.name!r} drew values of shape {np.shape(values[node.name])}: expected "
                    f"({n}, {len(node.columns or ())}), one row for each row of X and one column for each of its own."
                )
        if list(first.columns or ()) == list(range(self.n_columns)):
            return _cast(first, values[first.name], dtype)  # one node is the whole table: nothing to copy
        X = np.empty((n, self.n_columns), dtype=dtype)
        for node in self.observed:
            X[:, _as_slice(node.columns)] = _cast(node, values[node.name], dtype)
        return X


def _cast(node: Node, values: NDArray, dtype: np.dtype) -> NDArray:
    """Values in the type of X, which must hold them: whole numbers cut or wrapped would not be knockoffs."""
    values = np.asarray(values)
    if dtype.kind not in "iub" or values.dtype == dtype:
        return values.astype(dtype, copy=False)
    with np.errstate(invalid="ignore"):
        cast = values.astype(dtype)
    if (cast != values).any():
        lost = values[cast != values][0]
        raise InputError(
            f"X has dtype {dtype}, which cannot hold {lost:g}, drawn for node {node.name!r}: pass X as floats, or as "
            "wider integers for a discrete law."
        )
    return cast


def _as_slice(columns: Sequence[int] | None) -> slice | list[int]:
    """Columns as a slice where they are contiguous, so that reading them copies nothing."""
    listed = list(columns or ())
    if listed == list(range(listed[0], listed[0] + len(listed))):
        return slice(listed[0], listed[0] + len(listed))
    return listed


def _in_order(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    by_name = {node.name: node for node in nodes}
    if len(by_name) < len(nodes):
        twice = next(node.name for node in nodes if sum(other.name == node.name for other in nodes) > 1)
        raise InputError(f"two nodes are called {twice!r}: give every node its own name.")
    return tuple(by_name[name] for name in topological_order({node.name: node.parents for node in nodes}))


def topological_order(parents: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Names of nodes, each after its parents; parents that are no nodes, or named twice, and cycles are refused."""
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


def _check_conjugate(node: Node) -> None:
    if isinstance(node.conjugate, type):
        raise InputError(
            f"the conjugate of node {node.name!r} is the class {node.conjugate.__name__}: make one, "
            f"{node.conjugate.__name__}(...)."
        )
    needed = ("sample", "log_conditional", "log_kernel")
    missing = [method for method in needed if not callable(getattr(node.conjugate, method, None))]
    if node.conjugate is None or len(missing) == len(needed):
        raise InputError(f"node {node.name!r} has no conjugate. Identity() is always valid, if without power.")
    if missing:
        raise InputError(f"the conjugate of node {node.name!r} lacks {', '.join(missing)}.")


def _check_leaves(nodes: tuple[Node, ...]) -> None:
    for node in nodes:
        children = [other.name for other in nodes if node.name in other.parents]
        if node.observed and children:
            raise InputError(
                f"the observed node {node.name!r} has the child {children[0]!r}: Algorithm 1 holds for observed nodes "
                "without descendants. Merge the two into one multi-dimensional node, or hide one of them."
            )


def _count_columns(nodes: tuple[Node, ...]) -> int:
    owner: dict[int, str] = {}
    for node in nodes:
        if node.observed and not len(node.columns or ()):
            raise InputError(f"the observed node {node.name!r} owns no column: columns=None makes a node hidden.")
        for column in node.columns or ():
            if column in owner:
                raise InputError(f"column {column} is claimed by node {owner[column]!r} and by node {node.name!r}.")
            owner[int(column)] = node.name
    if not owner:
        raise InputError("no node is observed: give at least one node its columns of X.")
    unclaimed = sorted(set(range(max(owner) + 1)) - set(owner))
    if unclaimed or min(owner) < 0:
        raise InputError(
            f"columns {unclaimed or min(owner)} belong to no node: columns are numbered from 0 without a gap."
        )
    return len(owner)


def _check_features_stay_in_one_node(nodes: tuple[Node, ...], feature_of: NDArray[np.intp]) -> None:
    home: dict[int, str] = {}
    for node in nodes:
        for feature in {int(feature_of[column]) for column in node.columns or ()}:
            if feature in home:
                raise InputError(
                    f"feature {feature} has columns in node {home[feature]!r} and in node {node.name!r}: "
                    "a feature's columns must belong to one node."
                )
            home[feature] = node.name


def _markov_blanket(node: Node, nodes: tuple[Node, ...]) -> tuple[str, ...]:
    children = [other for other in nodes if node.name in other.parents]
    names = set(node.parents) | {child.name for child in children} | {p for child in children for p in child.parents}
    return tuple(other.name for other in nodes if other.name in names - {node.name})


@dataclass(frozen=True)
class Identity:
    """Q(u_tilde | u, v) = [u_tilde = u]: always valid, and without power for an observed node.

    For a hidden node nothing is lost: drawn from P(H | O), it is already a fresh draw given X.
    """

    def sample(self, u: NDArray, blanket: Blanket, rng: Generator) -> NDArray:
        """Return u."""
        return u

    def several(self, u: NDArray, blanket: Blanket, m: int, rng: Generator) -> NDArray:
        """Return u, m times."""
        return np.stack([u] * m)

    def log_conditional(self, u: NDArray, blanket: Blanket) -> NDArray:
        """Zero: phi(u, u_tilde) lives on the diagonal, where any P(u | v) is symmetric."""
        return np.zeros(len(u))

    def log_kernel(self, u_tilde: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
        """0 where u_tilde = u in every coordinate, else -inf."""
        same = np.asarray(u_tilde == u).reshape(len(u), -1).all(axis=1)
        return np.where(same, 0.0, -np.inf)
