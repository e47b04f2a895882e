"""Networks as a reader of the paper writes them down: their laws under every swap, exactly, and their draws."""

from itertools import product

import numpy as np
import pytest

from knockoffs.features.hmm import HiddenMarkov
from knockoffs.sampling.categorical import sample_weights
from knockoffs.sampling.conjugates.independent import Independent
from knockoffs.sampling.conjugates.markov_chain import MarkovChain
from knockoffs.sampling.definition import enumerate_knockoffs, worst_swap
from knockoffs.sampling.network import BayesianNetwork, Identity, Node

TOLERANCE = 1e-12


def from_table(law):
    """Draw a column anew from ``law(blanket) -> (n, m)``."""
    return Independent(
        draw=lambda blanket, n, rng: sample_weights(law(blanket), rng)[:, None],
        log_prob=lambda u, blanket: np.log(law(blanket)[np.arange(len(u)), u[:, 0].astype(int)]),
    )


def never(X, rng):
    raise AssertionError("an enumeration draws nothing")


# 1. A hidden chain with two leaves a state.

START, STEP = np.array([0.4, 0.6]), np.array([[0.8, 0.2], [0.3, 0.7]])
FIRST, SECOND = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[0.2, 0.8], [0.6, 0.4]])
LENGTH = 3


def log_of_chain(H):
    return np.log(START[H[:, 0]]) + np.log(STEP[H[:, :-1], H[:, 1:]]).sum(axis=1)


def two_leaves_a_state(chain):
    nodes = [Node("H", (), chain)]
    for t in range(LENGTH):
        for name, table, column in (("A", FIRST, 2 * t), ("B", SECOND, 2 * t + 1)):
            law = from_table(lambda blanket, t=t, table=table: table[blanket["H"][:, t]])
            nodes.append(Node(f"{name}{t}", ("H",), law, columns=[column]))
    return BayesianNetwork(nodes, sample_hidden=never)


def law_of_two_leaves(chain):
    def log_joint(values):
        total = log_of_chain(values["H"])
        for t, state in enumerate(values["H"].T):
            total = total + np.log(FIRST[state, values[f"A{t}"][:, 0]]) + np.log(SECOND[state, values[f"B{t}"][:, 0]])
        return total

    network = two_leaves_a_state(chain)
    leaves = {f"{name}{t}": np.array([[0], [1]]) for name in "AB" for t in range(LENGTH)}
    states = {"H": np.array(list(product([0, 1], repeat=LENGTH)))} | leaves
    X, law = enumerate_knockoffs(network, states, log_joint)
    assert law.sum() == pytest.approx(1, abs=TOLERANCE)
    return X, law


def test_a_hidden_chain_with_two_leaves_a_state():
    X, law = law_of_two_leaves(Identity())
    assert worst_swap(X, law, np.arange(6)) < TOLERANCE


def test_a_copy_of_a_hidden_chain_is_for_one_leaf_a_state():
    # (H_t, A_t, B_t) and its knockoff change places together: the two leaves of a step are one feature, not two.
    X, law = law_of_two_leaves(MarkovChain(START, np.stack([STEP] * (LENGTH - 1))))
    assert worst_swap(X, law, np.repeat(np.arange(3), 2)) < TOLERANCE
    assert worst_swap(X, law, np.arange(6)) > 1e-3


# 2. A hidden chain some of whose leaves are missing in some rows.


def law_with_missing(p_missing, hidden_knockoff):
    """(X, X_tilde) of a hidden Markov model whose site 1 is missing with p_missing[X_0]; a missing cell is coded 2."""
    model = HiddenMarkov(START, np.stack([STEP] * 2), np.stack([FIRST, SECOND, FIRST]))
    cells = np.array(list(product([0, 1], [0, 1, 2], [0, 1])))
    chains = np.array(list(product([0, 1], repeat=3)))
    as_seen = np.where(cells == 2, np.nan, cells)
    kernels = {node.name: node.conjugate for node in model.as_network(hidden_knockoff=hidden_knockoff).nodes}
    p = p_missing[cells[:, 0]]
    seen = np.where(cells[:, 1] == 2, p, 1 - p)
    law = np.zeros((len(cells), len(cells)))
    tables = (FIRST, np.hstack([SECOND, np.ones((2, 1))]), FIRST)
    for H in chains:
        likelihood = np.prod([table[H[t], cells[:, t]] for t, table in enumerate(tables)], axis=0)
        joint = np.exp(log_of_chain(H[None]))[0] * likelihood * seen
        for H_tilde in chains:
            move = np.exp(kernels["H"].log_kernel(H_tilde[None], H[None], {}))[0]
            for a in range(len(cells)):
                u = np.tile(as_seen[a], (len(cells), 1))
                blanket = {"H": np.tile(H_tilde, (len(cells), 1))}
                law[a] += joint[a] * move * np.exp(kernels["X"].log_kernel(as_seen, u, blanket))
    return cells, law


@pytest.mark.parametrize("hidden_knockoff", ["copy", "posterior"])
def test_missing_cells_that_stay_missing(hidden_knockoff):
    cells, law = law_with_missing(np.array([0.3, 0.3]), hidden_knockoff)
    assert law.sum() == pytest.approx(1, abs=TOLERANCE)
    assert worst_swap(cells, law, np.arange(3)) < TOLERANCE


def test_missing_cells_that_tell_of_another_column_are_no_hole_but_a_feature():
    # The gap of site 1 says what X_0 is, and does not say what its knockoff is.
    cells, law = law_with_missing(np.array([0.05, 0.9]), "copy")
    assert worst_swap(cells, law, np.arange(3)) > 0.01
