"""Definition 3.1 for every registered conjugate: a new one is tested by its line in CONJUGATES and an example."""

from itertools import product

import numpy as np
import pytest

from knockoffs.registry import load
from knockoffs.sampling.conjugates import CONJUGATES
from knockoffs.sampling.conjugates.gaussian import GaussianLaw
from knockoffs.sampling.conjugates.markov_chain import JumpChain, MarkovChain
from knockoffs.sampling.definition import check_definition
from knockoffs.sampling.factors import Factor

EXAMPLES = {}


def example(function):
    """``rng, kind -> arguments of check_definition``."""
    EXAMPLES[function.__name__] = function
    return function


def every(*sizes):
    return np.array(list(product(*map(range, sizes))))


def random_steps(rng, T, K):
    return rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K), size=(T - 1, K))


@example
def identity(rng, kind):
    return dict(conjugate=kind(), u=every(2, 3))


@example
def independent(rng, kind):
    p = rng.random((2, 3))  # of three coordinates, for two values of the parent

    def log_prob(u, blanket):
        chance = p[blanket["K"]]
        return np.log(np.where(u == 1, chance, 1 - chance)).sum(axis=1)

    conjugate = kind(lambda blanket, n, rng: 1 / 0, log_prob)
    return dict(conjugate=conjugate, u=every(2, 2, 2), blanket={"K": np.array([1])}, sums_to_one=True)


@example
def gaussian(rng, kind):
    A = rng.standard_normal((3, 6))
    S = A @ A.T
    laws = [GaussianLaw(rng.standard_normal(3), S, f * np.linalg.eigvalsh(S)[0] * np.eye(3)) for f in (0.9, 1.7)]
    u, u_tilde = rng.standard_normal((2, 40, 3))
    return dict(conjugate=kind(laws, "K"), u=u, u_tilde=u_tilde, blanket={"K": rng.integers(2, size=40)})


@example
def joint_table(rng, kind):
    table = rng.dirichlet(np.ones(12)).reshape(2, 3, 2)
    table[0, 1] = 0.0
    conjugate = kind(table.shape, lambda blanket, n: [Factor((0, 1, 2), table[None] / table.sum(), np.zeros(n, int))])
    return dict(conjugate=conjugate, u=every(2, 3, 2), sums_to_one=True)


@example
def markov_chain(rng, kind):
    return dict(conjugate=kind(*random_steps(rng, 4, 2)), u=every(2, 2, 2, 2), sums_to_one=True)


@example
def jump_chain(rng, kind):
    return dict(
        conjugate=kind(rng.dirichlet(np.ones(3), size=3), np.array([0.0, 0.4])), u=every(3, 3, 3), sums_to_one=True
    )


@example
def metropolized(rng, kind):
    """A ring of three spins and a grade, whose field hangs on a parent; the whole density is given."""
    J, field = rng.normal(size=(4, 4)), rng.normal(size=(2, 4))
    ring = [(0, 1), (1, 2), (2, 3), (3, 0)]

    def log_density(u, blanket):
        return sum(J[a, b] * u[:, a] * u[:, b] for a, b in ring) + (field[blanket["K"]] * u).sum(axis=1)

    states = [(-1, 1), (-1, 1), (0, 0.5, 2), (-1, 1)]
    u = np.array(list(product(*states)))
    conjugate = kind(log_density, ring, states=states)
    return dict(conjugate=conjugate, u=u, blanket={"K": np.array([1])}, sums_to_one=True)


@example
def grouped_chain(rng, kind):
    """Whole groups are swapped: of one, two and one steps; a chain of steps, or one that stays or jumps."""
    chain = MarkovChain(*random_steps(rng, 4, 2))
    if rng.random() < 0.5:
        chain = JumpChain(rng.dirichlet(np.ones(2), size=4), rng.random(3))
    groups = np.array([0, 1, 1, 2])
    return dict(conjugate=kind(chain, groups), u=every(2, 2, 2, 2), feature_of=groups, sums_to_one=True)


def test_every_conjugate_has_an_example():
    assert set(EXAMPLES) == set(CONJUGATES)


@pytest.mark.parametrize("name", CONJUGATES)
def test_definition(name):
    """As an observed node under every swap; as a hidden node it follows from the swap of all."""
    kind = load(CONJUGATES, "conjugate", name)
    for seed in range(3):
        arguments = EXAMPLES[name](np.random.default_rng(seed), kind)
        assert check_definition(**arguments) < 1e-9
        assert check_definition(**(arguments | {"observed": False})) < 1e-9


@pytest.mark.parametrize("name", CONJUGATES)
def test_every_conjugate_has_the_three_methods(name):
    kind = load(CONJUGATES, "conjugate", name)
    assert all(callable(getattr(kind, method)) for method in ("sample", "log_conditional", "log_kernel"))
