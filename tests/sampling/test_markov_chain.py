"""The Markov chain conjugates: the Definition by enumeration, and the compiled draws against it."""

from itertools import product

import numpy as np
import pytest
from tests.refusals import refuses

from knockoffs.errors import InputError
from knockoffs.sampling.conjugates import markov_chain_kernels as kernels
from knockoffs.sampling.conjugates.markov_chain import JumpChain, MarkovChain, draw_key
from knockoffs.sampling.definition import check_definition


def random_chain(rng, T, K, zeros):
    """A chain; with zeros, about half of the steps are impossible."""

    def rows(*shape):
        table = rng.dirichlet(np.ones(K), size=shape)
        if zeros:
            keep = rng.random(table.shape) < 0.5
            keep[..., 0] |= ~keep.any(axis=-1)
            table = np.where(keep, table, 0.0)
        return table / table.sum(axis=-1, keepdims=True)

    return MarkovChain(rows(), rows(T - 1, K))


def random_jump_chain(rng, T, K, zeros):
    alpha = rng.dirichlet(np.ones(K), size=T)
    jump = rng.random(T - 1)
    if zeros:
        alpha[rng.random(alpha.shape) < 0.3] = 0.0
        alpha[:, 0] += 1e-3
        jump[rng.random(T - 1) < 0.3] = 0.0
        jump[rng.random(T - 1) < 0.2] = 1.0
    return JumpChain(alpha / alpha.sum(axis=1, keepdims=True), jump)


def every(T, K):
    return np.array(list(product(range(K), repeat=T)))


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("T", "K"), [(1, 3), (2, 3), (3, 2), (3, 3), (4, 2)])
@pytest.mark.parametrize("make", [random_chain, random_jump_chain])
def test_definition_under_every_swap(make, T, K, zeros):
    rng = np.random.default_rng([T, K, zeros])
    for _ in range(8):
        assert check_definition(make(rng, T, K, zeros), every(T, K), sums_to_one=True) < 1e-12


@pytest.mark.parametrize("make", [random_chain, random_jump_chain])
@pytest.mark.parametrize(("T", "K"), [(1, 2), (7, 2), (5, 3), (30, 11), (3, 300)])
def test_compiled_draws_are_the_written_out_ones(make, T, K):
    """From the same uniform numbers the kernel and the plain formula draw the same states, zeros included."""
    rng = np.random.default_rng([T, K])
    chain = make(rng, T, K, K < 300)
    dense = written_out(chain)
    u = draw_rows(dense, 300, rng)
    seed = rng.bit_generator.state
    u_tilde = chain.sample(u, {}, rng)
    rng.bit_generator.state = seed
    uniforms = row_uniforms(draw_key(rng), *u.shape)
    expected = chain.sample_pairs(u, np.arange(T), uniforms)
    assert (u_tilde == expected).mean() > 0.9999  # a uniform may fall within rounding of a bound
    assert np.isfinite(dense.log_conditional(u_tilde, {})).all()
    assert u_tilde.dtype == u.dtype


def written_out(chain):
    """The same chain with its transition matrices."""
    if isinstance(chain, MarkovChain):
        return chain
    jump = chain.jump[:, None, None]
    return MarkovChain(chain.alpha[0], (1 - jump) * np.eye(chain.alpha.shape[1]) + jump * chain.alpha[1:, None, :])


def row_uniforms(key, n_rows, n_draws):
    """First numbers of every row's stream, shape (n_rows, n_draws): what the kernels consume."""
    state, uniform = np.empty((4, kernels.LANES), np.uint64), np.empty(kernels.LANES)
    parts = []
    for start in range(0, n_rows, kernels.LANES):
        kernels.seed_streams(key, start, state)
        draws = []
        for _ in range(n_draws):
            kernels.draw_uniforms(state, uniform)
            draws.append(uniform.copy())
        parts.append(np.array(draws).T)
    return np.concatenate(parts)[:n_rows]


def draw_rows(chain, n, rng):
    """Rows of a chain, drawn the slow way."""
    T = len(chain.transitions) + 1
    u = np.empty((n, T), dtype=np.int64)
    for i in range(n):
        p = chain.initial
        for j in range(T):
            u[i, j] = rng.choice(len(p), p=p)
            p = chain.transitions[j, u[i, j]] if j + 1 < T else p
    return u


def test_streams_are_uniform_and_apart():
    """Mean, variance and neighbours' correlation of the streams, 5 standard errors each (false alarm 2e-6)."""
    U = row_uniforms(draw_key(np.random.default_rng(3)), 1000, 500)
    assert U.min() >= 0 and U.max() < 1
    N = U.size
    assert abs(U.mean() - 0.5) < 5 * np.sqrt(1 / 12 / N)
    assert abs(U.var() - 1 / 12) < 5 * np.sqrt(1 / 180 / N)
    assert abs(np.mean((U[1:] - 0.5) * (U[:-1] - 0.5))) < 5 / 12 / np.sqrt(N)
    assert abs(np.mean((U[:, 1:] - 0.5) * (U[:, :-1] - 0.5))) < 5 / 12 / np.sqrt(N)


@pytest.mark.parametrize("make", [random_chain, random_jump_chain])
def test_threads_and_blocks_do_not_change_the_draw(make):
    chain = make(np.random.default_rng(4), 6, 3, False)
    u = draw_rows(written_out(chain), 333, np.random.default_rng(5))
    draws = [
        type(chain)(*[getattr(chain, name) for name in chain.__dataclass_fields__][:2], n_jobs=n_jobs).sample(
            u, {}, np.random.default_rng(6)
        )
        for n_jobs in (1, 2, 5)
    ]
    assert (draws[0] == draws[1]).all() and (draws[0] == draws[2]).all()
    assert (chain.sample(u[:70], {}, np.random.default_rng(6)) == draws[0][:70]).all()
    assert (chain.sample(u, {}, np.random.default_rng(7)) != draws[0]).any()


def test_a_long_chain_survives():
    """10,000 steps with transition probabilities down to 1e-12: products of 30 of them are no floats."""
    rng = np.random.default_rng(8)
    T, K = 10_000, 3
    sticky = np.full((K, K), 1e-12) + (1 - K * 1e-12) * np.eye(K)
    mixing = rng.dirichlet(np.ones(K), size=K)
    transitions = np.where(rng.random((T - 1, 1, 1)) < 0.5, sticky, mixing)
    chain = MarkovChain(np.full(K, 1 / K), transitions)
    u = np.empty((64, T), dtype=np.int8)
    u[:, 0] = rng.integers(K, size=64)
    for j in range(1, T):
        u[:, j] = (rng.random((64, 1)) > transitions[j - 1][u[:, j - 1]].cumsum(axis=1)[:, :-1]).sum(axis=1)
    u_tilde = chain.sample(u, {}, rng)
    assert u_tilde.dtype == np.int8
    assert np.isfinite(chain.log_kernel(u_tilde[:2], u[:2], {})).all()
    assert (u_tilde != u)[:, -1000:].mean() > 0.05  # it still moves at the far end, as far as sticky steps allow
    jumps = JumpChain(np.full((T, K), 1 / K), np.full(T - 1, 0.01))
    assert set(np.unique(jumps.sample(u[:, :T], {}, rng))) <= {0, 1, 2}


def test_errors_name_the_place():
    P = np.array([[[0.5, 0.5], [0.0, 1.0]]])
    with pytest.raises(InputError, match=r"transitions\[0, 1\] adds up to 0.9"):
        MarkovChain(np.array([1.0, 0.0]), np.array([[[0.5, 0.5], [0.0, 0.9]]]))
    refuses("initial has a negative probability, -0.5", MarkovChain, np.array([1.5, -0.5]), P)
    refuses("initial adds up to nan", MarkovChain, np.array([np.nan, 1.0]), P)
    refuses(r"expected \(K,\) and \(T - 1, K, K\)", MarkovChain, np.array([1.0, 0.0, 0.0]), P)
    chain = MarkovChain(np.array([0.5, 0.5]), P)
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="row 1 has probability zero under the chain, first at step 1"):
        chain.sample(np.array([[0, 0], [1, 0]]), {}, rng)
    with pytest.raises(InputError, match="row 1, site 0: 2 is not a known state; known are 0, ..., 1"):
        chain.sample(np.array([[0, 0], [2, 0]]), {}, rng)
    refuses("row 0, site 1: 0.5 is not a known state", chain.sample, np.array([[0, 0.5]]), {}, rng)
    refuses("row 0, site 1: nan is not a known state", chain.sample, np.array([[0, np.nan]]), {}, rng)
    refuses("the chain has 2 steps", chain.sample, np.zeros((3, 5)), {}, rng)
    refuses(r"jump\[0\] = 1.5 is not a probability", JumpChain, np.full((2, 2), 0.5), np.array([1.5]))
    jumps = JumpChain(np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([0.0]))
    refuses("row 0 has probability zero under the chain, first at step 1", jumps.sample, np.array([[0, 1]]), {}, rng)
