"""Chains swapped in groups: the Definition under every group swap, draws against the kernel, and what groups gain."""

from itertools import product

import numpy as np
import pytest
from tests.refusals import refuses

from knockoffs.errors import InputError
from knockoffs.sampling.conjugates.markov_chain import GroupedChain, JumpChain, MarkovChain
from knockoffs.sampling.definition import check_definition

GROUPS = [[0, 1, 2, 3], [0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 1, 2], [0, 0, 0, 1]]


def random_chains(rng, T, K):
    """A chain and one that stays or jumps, both with impossible steps."""
    steps = rng.dirichlet(np.ones(K), size=(T - 1, K))
    steps[0, 0] = np.eye(K)[0]
    jump = rng.random(T - 1)
    jump[1] = 0.0
    return MarkovChain(rng.dirichlet(np.ones(K)), steps), JumpChain(rng.dirichlet(np.ones(K), size=T), jump)


@pytest.mark.parametrize("groups", GROUPS, ids=str)
def test_definition_under_every_group_swap(groups):
    u = np.array(list(product(range(2), repeat=4)))
    for seed in range(3):
        for chain in random_chains(np.random.default_rng(seed), 4, 2):
            grouped = GroupedChain(chain, np.array(groups))
            assert check_definition(grouped, u, feature_of=groups, sums_to_one=True) < 1e-9


def test_groups_of_one_step_are_the_chain_and_one_group_is_a_fresh_draw():
    u = np.array(list(product(range(3), repeat=3)))
    left, right = np.repeat(u, 27, axis=0), np.tile(u, (27, 1))
    for chain in random_chains(np.random.default_rng(0), 3, 3):
        possible = np.isfinite(chain.log_conditional(left, {}))
        for groups, expected in ((np.arange(3), chain.log_kernel(right, left, {})), (np.zeros(3, int), None)):
            found = GroupedChain(chain, groups).log_kernel(right, left, {})
            expected = chain.log_conditional(right, {}) if expected is None else expected
            np.testing.assert_allclose(np.exp(found[possible]), np.exp(expected[possible]), atol=1e-12)


def test_draws_follow_the_kernel():
    """Shares of u_tilde, 100,000 draws of each chain: 5 standard errors (false alarm 2e-5); shows 0.008."""
    rng, n = np.random.default_rng(2), 100_000
    every = np.array(list(product(range(2), repeat=4)))
    for chain in random_chains(rng, 4, 2):
        grouped = GroupedChain(chain, np.array([0, 0, 1, 1]))
        u = np.array([[1, 1, 1, 0]])
        p = np.exp(grouped.log_kernel(every, np.repeat(u, 16, axis=0), {}))
        assert p.sum() == pytest.approx(1.0)
        drawn = grouped.sample(np.repeat(u, n, axis=0), {}, rng) @ [8, 4, 2, 1]
        share = np.bincount(drawn, minlength=16) / n
        assert (np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / n) + 1e-12).all()


def test_groups_of_a_sticky_chain_agree_less_with_their_knockoffs():
    rng = np.random.default_rng(3)
    T = 200
    chain = JumpChain(np.full((T, 4), 0.25), np.full(T - 1, 0.05))
    u = np.empty((200, T), dtype=int)
    u[:, 0] = rng.integers(4, size=200)
    for j in range(1, T):
        u[:, j] = np.where(rng.random(200) < 0.05, rng.integers(4, size=200), u[:, j - 1])
    one = (chain.sample(u, {}, rng) == u).mean()
    ten = (GroupedChain(chain, np.arange(T) // 10).sample(u, {}, rng) == u).mean()
    assert ten < one - 0.1  # 40,000 cells of 200 rows: 0.1 is more than ten standard errors


def test_groups_that_are_no_runs_are_refused():
    chain = random_chains(np.random.default_rng(4), 4, 2)[0]
    refuses("feature_of goes from group 1 at site 1 back to group 0", GroupedChain, chain, np.array([0, 1, 0, 1]))
    refuses(r"expected \(4,\), a feature for each column", GroupedChain, chain, np.array([0, 1, 1]))


@pytest.mark.parametrize("row", [[1, 1, 1, 1], [0, 2, 2, 2], [0, 0, 0, 2]], ids=["start", "in a group", "at the end"])
def test_rows_that_the_chain_cannot_take_are_refused(row):
    """Inside a group the old values are not looked at: only a look at the whole row can tell."""
    stays = MarkovChain(np.array([0.5, 0.0, 0.5]), np.tile(np.eye(3), (3, 1, 1)))
    jumps = JumpChain(np.tile([0.5, 0.0, 0.5], (4, 1)), np.zeros(3))
    for chain in (stays, jumps):
        with pytest.raises(InputError, match="row 1 has probability zero under the chain"):
            GroupedChain(chain, np.array([0, 0, 1, 1])).sample(np.array([[0] * 4, row]), {}, np.random.default_rng(0))
