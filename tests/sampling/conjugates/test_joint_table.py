from itertools import product

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.sampling.conjugates.joint_table import JointTable
from knockoffs.sampling.conjugates.markov_chain import MarkovChain
from knockoffs.sampling.definition import enumerate_knockoffs, worst_swap
from knockoffs.sampling.factors import Factor, restrict
from knockoffs.sampling.network import BayesianNetwork, Node


def one_table(table):
    """The conjugate of one joint table, shape (*states), and the network with nothing but it."""

    def factors(blanket, n):
        return [Factor(tuple(range(table.ndim)), table[None], np.zeros(n, dtype=int))]

    return BayesianNetwork((Node("X", (), JointTable(table.shape, factors), columns=range(table.ndim)),))


def chain(first, steps):
    """A Markov chain, as a product of tables."""
    n_states = (len(first), *(step.shape[1] for step in steps))

    def factors(blanket, n):
        laws = [restrict((0,), first, {}, n)]
        return laws + [restrict((t, t + 1), step, {}, n) for t, step in enumerate(steps)]

    return BayesianNetwork((Node("X", (), JointTable(n_states, factors), columns=range(len(n_states))),))


def random_table(rng, shape, zeros):
    table = rng.dirichlet(np.ones(np.prod(shape))).reshape(shape)
    table = np.where(rng.random(shape) < zeros, 0.0, table)
    table.flat[0] += table.sum() == 0
    return table / table.sum()


def law_of(network, table):
    states = np.array(list(product(*map(range, table.shape))))

    def log_joint(values):
        with np.errstate(divide="ignore"):
            return np.log(table[tuple(values["X"].T)])

    return enumerate_knockoffs(network, {"X": states}, log_joint)


@pytest.mark.parametrize("zeros", [0.0, 0.4])
@pytest.mark.parametrize("shape", [(2,), (3, 2), (2, 2, 2), (2, 3, 2), (2, 2, 2, 2)])
def test_one_joint_table_is_exact(shape, zeros):
    rng = np.random.default_rng(0)
    for _ in range(5):
        table = random_table(rng, shape, zeros)
        network = one_table(table)
        X, law = law_of(network, table)
        assert law.sum() == pytest.approx(1, abs=1e-12)
        assert law.sum(axis=1) == pytest.approx(table.ravel(), abs=1e-12)
        assert worst_swap(X, law, network.feature_of) < 1e-12


@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_a_chain_is_exact_and_is_that_of_its_joint_table(zeros):
    rng = np.random.default_rng(1)
    first = rng.dirichlet(np.ones(2))
    steps = [rng.dirichlet(np.ones(2), size=2) for _ in range(3)]
    steps = [np.where(rng.random(step.shape) < zeros, 0, step) for step in steps]
    steps = [(step + (step.sum(axis=1, keepdims=True) == 0)) for step in steps]
    steps = [step / step.sum(axis=1, keepdims=True) for step in steps]
    table = np.einsum("a,ab,bc,cd->abcd", first, *steps)
    X, law = law_of(chain(first, steps), table)
    assert worst_swap(X, law, np.arange(4)) < 1e-12
    assert np.abs(law - law_of(one_table(table), table)[1]).max() < 1e-12  # the same order of coordinates
    markov = BayesianNetwork((Node("X", (), MarkovChain(first, np.array(steps)), columns=range(4)),))
    assert np.abs(law - law_of(markov, table)[1]).max() < 1e-12  # and written down by others


def test_log_conditional_is_the_table():
    rng = np.random.default_rng(2)
    table = random_table(rng, (3, 2, 2), 0.2)
    states = np.array(list(product(range(3), range(2), range(2))))
    conjugate = one_table(7.0 * table).nodes[0].conjugate
    with np.errstate(divide="ignore"):
        assert conjugate.log_conditional(states, {}) == pytest.approx(np.log(table).ravel())


def test_draws_follow_the_kernel():
    # 5 standard errors on 12 cells: false alarm about 7e-6; a shift of 1.5 % of a cell shows.
    rng = np.random.default_rng(3)
    conjugate = one_table(random_table(rng, (3, 2, 2), 0.0)).nodes[0].conjugate
    u, n = np.array([[2, 0, 1]]), 200_000
    states = np.array(list(product(range(3), range(2), range(2))))
    drawn = conjugate.sample(np.repeat(u, n, axis=0).astype(float), {}, rng)
    assert drawn.dtype == float
    share = np.bincount((drawn @ [4, 2, 1]).astype(int), minlength=12) / n
    exact = np.exp(conjugate.log_kernel(states, np.repeat(u, 12, axis=0), {}))
    assert exact.sum() == pytest.approx(1)
    assert (np.abs(share - exact) < 5 * np.sqrt(exact / n)).all()


def test_impossible_rows_are_named():
    conjugate = one_table(np.array([[0.5, 0.0], [0.0, 0.5]])).nodes[0].conjugate
    with pytest.raises(InputError, match="rows '1' are impossible"):
        # the second row cannot occur; its first coordinate moves to agree with the second one, which then cannot
        conjugate.sample(np.array([[0, 0], [0, 1]]), {}, np.random.default_rng(0))


def test_a_table_that_does_not_fit_into_memory_is_refused_before_it_is_made():
    """40 coordinates of 2 states joined by one factor each to the first: 2^40 entries, if all are tied together."""

    def factors(blanket, n):
        pairs = [(i, j) for i in range(40) for j in range(i)]
        return [Factor(pair, np.full((1, 2, 2), 0.25), np.zeros(n, dtype=int)) for pair in pairs]

    conjugate = JointTable((2,) * 40, factors)
    with pytest.raises(
        InputError, match=r"40 coordinates .* needs 1,099,511,627,776 entries .* limit is max_table=4,194"
    ):
        conjugate.sample(np.zeros((3, 40)), {}, np.random.default_rng(0))
    small = JointTable((2, 2), lambda blanket, n: [Factor((0, 1), np.full((1, 2, 2), 0.25), np.zeros(n, int))], 3)
    with pytest.raises(InputError, match=r"states needs 4 entries for one row \(0 MiB\); the limit is max_table=3"):
        small.log_kernel(np.zeros((1, 2)), np.zeros((1, 2)), {})
