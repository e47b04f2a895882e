"""Networks as a reader of the paper writes them down: their laws under every swap, exactly, and their draws."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import norm

from knockoffs.features.hmm import HiddenMarkov
from knockoffs.sampling.categorical import sample_weights
from knockoffs.sampling.conjugates.gaussian import Gaussian, GaussianLaw
from knockoffs.sampling.conjugates.independent import Independent
from knockoffs.sampling.conjugates.markov_chain import MarkovChain
from knockoffs.sampling.definition import enumerate_knockoffs, worst_swap
from knockoffs.sampling.diagonal import solve_diagonal
from knockoffs.sampling.network import BayesianNetwork, Identity, Node
from knockoffs.sampling.pair import swap
from knockoffs.sampling.sampler import sample_knockoffs

TOLERANCE = 1e-12


def from_table(law):
    """Draw a column anew from ``law(blanket) -> (n, m)``."""
    return Independent(
        draw=lambda blanket, n, rng: sample_weights(law(blanket), rng)[:, None],
        log_prob=lambda u, blanket: np.log(law(blanket)[np.arange(len(u)), u[:, 0].astype(int)]),
    )


def never(X, rng):
    raise AssertionError("an enumeration draws nothing")


def check_draws(network, X, rng):
    """Moments of [X, X_tilde] before and after a swap, each within 5 standard errors (false alarm 1e-6 times pairs)."""
    X = X.astype(float)
    X_tilde = sample_knockoffs(network, X, rng)
    scale = X.std(axis=0)
    for j in range(X.shape[1]):
        S = np.arange(X.shape[1]) == j
        before, after = (np.hstack(pair) / np.tile(scale, 2) for pair in ((X, X_tilde), swap(X, X_tilde, S)))
        for a, b in combinations(range(before.shape[1]), 2):
            for power in (1, 2):
                gap = before[:, a] ** power * before[:, b] - after[:, a] ** power * after[:, b]
                if gap.any():
                    assert abs(gap.mean()) < 5 * gap.std() / np.sqrt(len(gap)), (j, a, b, power)


# 1. A tree of labels and numbers: K -> D, K -> G (two numbers), K -> M -> V. M moves as an exchangeable copy.

WEIGHTS, MEANS = np.array([0.3, 0.7]), np.array([-1.0, 0.8])
LABELS = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])
SPREAD, NOISE = 0.7, 0.5
COVARIANCES = np.array([[[1.0, 0.6], [0.6, 2.0]], [[0.5, -0.3], [-0.3, 0.4]]])


class Copy:
    """M_tilde = mean_K + rho (M - mean_K) + noise: reversible for P(M | K), with one feature below M."""

    def __init__(self, rho):
        self.rho = rho

    def sample(self, u, blanket, rng):
        mean = MEANS[blanket["K"]]
        return mean + self.rho * (u - mean) + SPREAD * np.sqrt(1 - self.rho**2) * rng.standard_normal(len(u))

    def log_conditional(self, u, blanket):
        return norm.logpdf(u, MEANS[blanket["K"]], SPREAD)

    def log_kernel(self, u_tilde, u, blanket):
        mean = MEANS[blanket["K"]]
        return norm.logpdf(u_tilde, mean + self.rho * (u - mean), SPREAD * np.sqrt(1 - self.rho**2))


def tree_of_labels_and_numbers(given):
    laws = [
        GaussianLaw(np.array([mean, -mean]), S, solve_diagonal(S, "maximum_entropy"))
        for mean, S in zip(MEANS, COVARIANCES, strict=True)
    ]
    value = Independent(
        draw=lambda blanket, n, rng: (blanket["M"] + NOISE * rng.standard_normal(n))[:, None],
        log_prob=lambda u, blanket: norm.logpdf(u[:, 0], blanket["M"], NOISE),
    )

    def sample_hidden(X, rng):  # V given K is normal, so K can be drawn first and M given K and V
        logs = np.log(WEIGHTS) + np.log(LABELS[:, X[:, 1].astype(int)]).T
        for k, law in enumerate(laws):
            logs[:, k] += law.log_density(X[:, [0, 3]])
            logs[:, k] += norm.logpdf(X[:, 2], MEANS[k], np.hypot(SPREAD, NOISE))
        K = sample_weights(np.exp(logs - logs.max(axis=1, keepdims=True)), rng)
        gain = SPREAD**2 / (SPREAD**2 + NOISE**2)
        M = MEANS[K] + gain * (X[:, 2] - MEANS[K]) + SPREAD * np.sqrt(1 - gain) * rng.standard_normal(len(X))
        return {"K": K, "M": M}

    nodes = [
        Node("V", ("M",), value, columns=[2]),
        Node("G", ("K",), Gaussian(laws, "K"), columns=[0, 3]),  # columns that do not stand together
        Node("D", ("K",), from_table(lambda blanket: LABELS[blanket["K"]]), columns=[1]),
        Node("M", ("K",), given),
        Node("K", (), Identity()),
    ]
    return BayesianNetwork(nodes, sample_hidden)


def density_of_pairs(network, X, X_tilde):
    """P(x, x_tilde) of the tree: M and M_tilde by quadrature, K by its sum, along the loop of Algorithm 1."""
    points, weights = np.polynomial.legendre.leggauss(70)
    points, log_weights = 6 * points, np.log(6 * weights)
    m, m_tilde = (grid.ravel() for grid in np.meshgrid(points, points))
    measure = np.add.outer(log_weights, log_weights).ravel()
    nodes = {node.name: node for node in network.nodes}
    out = np.zeros(len(X))
    for i, (x, x_tilde) in enumerate(zip(X, X_tilde, strict=True)):
        for k in (0, 1):
            hidden = {"K": np.full(len(m), k), "M": m}
            moved = hidden | {"M": m_tilde}
            log_p = measure + np.log(WEIGHTS[k]) + nodes["M"].conjugate.log_kernel(m_tilde, m, hidden)
            log_p = log_p + nodes["M"].conjugate.log_conditional(m, hidden)
            for name in ("V", "G", "D"):
                columns = list(nodes[name].columns)
                u, u_tilde = (np.tile(row[columns], (len(m), 1)) for row in (x, x_tilde))
                log_p += nodes[name].conjugate.log_conditional(u, hidden)
                log_p += nodes[name].conjugate.log_kernel(u_tilde, u, moved)
            out[i] += np.exp(log_p).sum()
    return out


def rows_of_the_tree(n, rng):
    K = sample_weights(np.tile(WEIGHTS, (n, 1)), rng)
    M = MEANS[K] + SPREAD * rng.standard_normal(n)
    L = np.linalg.cholesky(COVARIANCES)[K]
    G = MEANS[K, None] * [1, -1] + np.einsum("nij,nj->ni", L, rng.standard_normal((n, 2)))
    return np.stack([G[:, 0], sample_weights(LABELS[K], rng), M + NOISE * rng.standard_normal(n), G[:, 1]], axis=1)


def test_a_tree_of_labels_and_numbers():
    rng = np.random.default_rng(0)
    network = tree_of_labels_and_numbers(Copy(0.4))
    X = rows_of_the_tree(3, rng)
    X_tilde = sample_knockoffs(network, X, rng)
    before = density_of_pairs(network, X, X_tilde)
    for S in product([False, True], repeat=4):
        assert density_of_pairs(network, *swap(X, X_tilde, S)) == pytest.approx(before, rel=1e-9)
    check_draws(network, rows_of_the_tree(200_000, rng), rng)


# 2. A hidden chain with two leaves a state.

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


# 3. A hidden chain some of whose leaves are missing in some rows.


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
