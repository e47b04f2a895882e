"""Theorem 3.2, exactly: the law of (X, X_tilde) of small discrete networks under every swap."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest

from knockoffs.sampling.conjugates.independent import Independent
from knockoffs.sampling.definition import enumerate_knockoffs, worst_swap
from knockoffs.sampling.network import BayesianNetwork, Identity, Node

TOLERANCE = 1e-12


def column(values):
    return np.asarray(values).reshape(len(values), -1)[:, 0].astype(int)


@dataclass(frozen=True)
class Redraw:
    """P(h | blanket) of one discrete node by the product of the tables it stands in."""

    node: str
    n_states: int
    model: "RandomModel"
    smoothing: float = 0.0

    def log_probs(self, blanket, n):
        weights = np.ones((n, self.n_states))
        for state in range(self.n_states):
            values = {name: column(value) for name, value in blanket.items()}
            values[self.node] = np.full(n, state)
            for child, (parents, table) in self.model.tables.items():
                if child == self.node or self.node in parents:
                    weights[:, state] *= table[tuple(values[name] for name in (*parents, child))]
        total = weights.sum(axis=1, keepdims=True)
        probs = np.where(total > 0, weights / np.where(total > 0, total, 1), 0)
        probs = (1 - self.smoothing) * probs + self.smoothing / self.n_states
        with np.errstate(divide="ignore"):
            return np.log(probs)

    def conjugate(self):
        def draw(blanket, n, rng):
            cdf = np.exp(self.log_probs(blanket, n)).cumsum(axis=1)
            u = (rng.random(n)[:, None] > cdf).sum(axis=1)
            return u if self.node in self.model.hidden else u[:, None]

        def log_prob(u, blanket):
            return self.log_probs(blanket, len(u))[np.arange(len(u)), column(u)]

        return Independent(draw, log_prob)


@dataclass(frozen=True)
class RandomModel:
    """Tables P(node | parents) of a random DAG whose leaves are observed (all nodes of it, if it has no edges)."""

    tables: dict
    n_states: dict
    hidden: frozenset

    def log_joint(self, values):
        total = np.zeros(len(next(iter(values.values()))))
        with np.errstate(divide="ignore"):
            for child, (parents, table) in self.tables.items():
                total = total + np.log(table[tuple(column(values[name]) for name in (*parents, child))])
        return total

    def network(self, redrawn, smoothing=0.0, kind=BayesianNetwork):
        observed = [name for name in self.tables if name not in self.hidden]
        nodes = []
        for name, (parents, _) in self.tables.items():
            conjugate = Redraw(name, self.n_states[name], self, smoothing * (name not in self.hidden)).conjugate()
            if name in self.hidden and name not in redrawn:
                conjugate = Identity()
            columns = None if name in self.hidden else [observed.index(name)]
            nodes.append(Node(name, parents, conjugate, columns))
        return kind(tuple(nodes), sample_hidden=lambda X, rng: {} if not self.hidden else 1 / 0)

    def states(self):
        return {
            name: np.arange(m) if name in self.hidden else np.arange(m)[:, None] for name, m in self.n_states.items()
        }


def random_model(n_nodes, edges, rng, zeros=0.0, most_states=2):
    names = [f"v{i}" for i in range(n_nodes)]
    n_states = {name: int(rng.integers(2, most_states + 1)) for name in names}
    tables = {}
    for i, name in enumerate(names):
        parents = tuple(names[a] for a, b in edges if b == i)
        table = rng.dirichlet(np.ones(n_states[name]), size=[n_states[p] for p in parents])
        table = np.where(rng.random(table.shape) < zeros, 0.0, table)
        table[..., 0] += table.sum(axis=-1) == 0
        tables[name] = (parents, table / table.sum(axis=-1, keepdims=True))
    hidden = frozenset(names[a] for a, _ in edges)
    return RandomModel(tables, n_states, hidden)


def all_dags(n_nodes):
    pairs = list(combinations(range(n_nodes), 2))
    for mask in range(2 ** len(pairs)):
        yield [pair for bit, pair in enumerate(pairs) if mask >> bit & 1]


def test_every_dag_with_up_to_four_nodes():
    rng = np.random.default_rng(1)
    n_models = 0
    for n_nodes in (1, 2, 3, 4):
        for edges in all_dags(n_nodes):
            for zeros in (0.0, 0.3, 0.0, 0.3):
                model = random_model(n_nodes, edges, rng, zeros, most_states=3 if n_nodes < 4 else 2)
                redrawn = {name for name in model.hidden if rng.random() < 0.5}
                network = model.network(redrawn)
                X, law = enumerate_knockoffs(network, model.states(), model.log_joint)
                assert law.sum() == pytest.approx(1, abs=TOLERANCE)
                assert worst_swap(X, law, network.feature_of) < TOLERANCE
                n_models += 1
    assert n_models == 300


SHAPES = {
    "chain": [(0, 1), (1, 2), (2, 3), (0, 4)],
    "tree": [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)],
    "v-structures": [(0, 3), (1, 3), (1, 4), (2, 4), (0, 5), (2, 5)],
    "hidden Markov": [(0, 1), (1, 2), (0, 3), (1, 4), (2, 5)],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_larger_shapes(shape, zeros):
    rng = np.random.default_rng(2)
    edges = SHAPES[shape]
    model = random_model(1 + max(b for _, b in edges), edges, rng, zeros)
    network = model.network(model.hidden)
    X, law = enumerate_knockoffs(network, model.states(), model.log_joint)
    assert worst_swap(X, law, network.feature_of) < TOLERANCE


@dataclass(frozen=True)
class StaleNetwork(BayesianNetwork):
    """Hidden nodes see the old values of nodes visited before."""

    def blanket(self, node, values):
        if node.name == self.nodes[0].name:
            object.__setattr__(self, "_old", dict(values))
        old = {name: value[: len(values[name])] for name, value in self._old.items()}
        return super().blanket(node, values if node.observed else old)


def test_old_values_in_the_blanket_are_seen():
    # Were the observed nodes stale as well, nothing would be wrong: that is the law of hidden nodes that stay.
    rng = np.random.default_rng(6)
    model = random_model(4, [(0, 1), (0, 2), (1, 3)], rng)
    network = model.network(model.hidden, kind=StaleNetwork)
    X, law = enumerate_knockoffs(network, model.states(), model.log_joint)
    assert worst_swap(X, law, network.feature_of) > 1e-6
