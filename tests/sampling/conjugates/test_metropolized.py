"""Laws known up to a constant: exact laws of small spins, candidates that are alike, chains with heavy tails."""

from itertools import product

import numpy as np
import pytest
from tests.refusals import refuses

from knockoffs.errors import InputError
from knockoffs.sampling.conjugates.metropolized import Metropolized
from knockoffs.sampling.definition import worst_swap

RING = [(0, 1), (1, 2), (2, 0)]
J = np.random.default_rng(5).normal(size=(3, 3))
SPINS = [(-1, 0, 1)] * 3
EVERY = np.array(list(product(*SPINS)), dtype=float)


def energy(u, blanket):
    """A ring of three spins with values -1, 0, 1, its field moved by a parent."""
    field = 0.3 * blanket["K"] if "K" in blanket else 0.0
    return sum(J[a, b] * u[:, a] * u[:, b] for a, b in RING) + field * u.sum(axis=1) - 0.2 * (u**2).sum(axis=1)


def law_of(u, K=0):
    weights = np.exp(energy(u, {"K": np.full(len(u), K)}))
    return weights / weights.sum()


def test_the_law_is_that_of_the_density():
    spins = Metropolized(energy, RING, states=SPINS)
    for K in (0, 2):
        found = np.exp(spins.log_conditional(EVERY, {"K": np.full(len(EVERY), K)}))
        np.testing.assert_allclose(found, law_of(EVERY, K), atol=1e-14)


def test_parts_and_the_whole_are_the_same_law():
    def part(a, b):
        return lambda v, blanket: J[a, b] * v[:, 0] * v[:, 1] - 0.2 * v[:, 0] ** 2

    parts = Metropolized([part(a, b) for a, b in RING], RING, states=SPINS)
    np.testing.assert_allclose(np.exp(parts.log_conditional(EVERY, {})), law_of(EVERY), atol=1e-14)


def test_triples_interact_if_the_graph_says_so():
    def log_density(u, blanket):
        return 0.7 * u.prod(axis=1) + 0.1 * u[:, 0]

    weights = np.exp(log_density(EVERY, {}))
    whole = Metropolized(log_density, [(0, 1, 2)], states=SPINS)
    np.testing.assert_allclose(np.exp(whole.log_conditional(EVERY, {})), weights / weights.sum(), atol=1e-14)
    missed = Metropolized(log_density, RING, states=SPINS)
    assert np.abs(np.exp(missed.log_conditional(EVERY, {})) - weights / weights.sum()).max() > 0.01


def test_candidates_that_are_drawn_leave_the_law_exchangeable():
    """What continuous coordinates do, by enumeration: one candidate for each, any state with the same chance.

    P(x, x_tilde) = sum over candidates v of P(x) prod 1/3 Q(x_tilde | x, v).
    """
    spins = Metropolized(energy, RING)
    law = np.zeros((len(EVERY), len(EVERY)))
    place = {tuple(row): i for i, row in enumerate(EVERY.tolist())}
    codes = np.array(list(product((0, 1), repeat=3)))
    for i, (x, chance) in enumerate(zip(EVERY, law_of(EVERY), strict=True)):
        for v in EVERY:
            candidates = np.broadcast_to(np.stack([x, v], axis=1), (8, 3, 2))
            kernel = np.exp(spins.among(candidates).log_kernel(codes, np.zeros((8, 3), dtype=int), {}))
            assert kernel.sum() == pytest.approx(1, abs=1e-12)
            for code, q in zip(codes, kernel, strict=True):
                law[i, place[tuple(np.where(code == 1, v, x).tolist())]] += chance / 27 * q
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert worst_swap(EVERY, law, np.arange(3)) < 1e-14
    assert np.trace(law) < 0.5  # and something moves


def test_a_coordinate_and_its_candidates_are_alike():
    """Their differences have one covariance, scale^2 (I + 11') / 2: that of numbers around a common centre.

    Within 5 standard errors, 1 / sqrt(100,000) or less in units of scale^2: one false failure in 100,000.
    """
    u = np.random.default_rng(0).standard_normal((100_000, 2))
    scale = np.array([0.5, 3.0])
    drawn = Metropolized(energy, RING[:1], scale=scale, n_candidates=3).candidates(u, np.random.default_rng(1))
    np.testing.assert_array_equal(drawn[..., 0], u)
    for j in range(2):
        apart = (drawn[:, j, 1:] - u[:, j, None]) / scale[j]
        np.testing.assert_allclose(np.cov(apart.T), (np.eye(3) + 1) / 2, atol=5 * np.sqrt(2 / 100_000))


NU, RHO = 5.0, 0.6


def log_t(z):
    return -(NU + 1) / 2 * np.log1p(z**2 / NU)


def t_chain(n, p, rng):
    X = rng.standard_t(NU, size=(n, p))
    for j in range(1, p):
        X[:, j] = RHO * X[:, j - 1] + np.sqrt(1 - RHO**2) * X[:, j]
    return X


def step(v, blanket):
    return log_t((v[:, 1] - RHO * v[:, 0]) / np.sqrt(1 - RHO**2))


def test_a_chain_with_heavy_tails_is_exchangeable():
    """Means of bounded functions before and after swaps of one coordinate: 24 differences within 5 standard errors.

    One false failure in 70,000; 40,000 rows see a change of .02.
    """
    rng, p = np.random.default_rng(3), 4
    X = t_chain(40_000, p, rng)
    parts = [lambda v, b: log_t(v[:, 0]) + step(v, b), step, step]
    X_tilde = Metropolized(parts, [(0, 1), (1, 2), (2, 3)], scale=2.0, n_candidates=4).sample(X, {}, rng)
    assert (X != X_tilde).mean() > 0.5
    features = (np.tanh, lambda x: np.minimum(np.abs(x), 3.0))
    for j in range(p):
        A, B = X.copy(), X_tilde.copy()
        A[:, j], B[:, j] = X_tilde[:, j], X[:, j]
        for f in features:
            before, after = f(X), f(A)
            near, far = max(j - 1, 0), min(j + 1, p - 1)
            both = f(X_tilde), f(B)
            for change in (
                before[:, j] - after[:, j],
                before[:, near] * before[:, far] * before[:, j] - after[:, near] * after[:, far] * after[:, j],
                before[:, far] * both[0][:, j] * (far != j) - after[:, far] * both[1][:, j] * (far != j),
            ):
                assert abs(change.mean()) <= 5 * change.std() / 200 + 1e-12


def test_what_cannot_be_is_refused():
    refuses("every coordinate 0, 1, ... must be in a clique", Metropolized, energy, [(0, 2)])
    refuses("a clique names a coordinate twice", Metropolized, energy, [(0, 0)])
    refuses("log_density has 1 functions, and graph 3 cliques", Metropolized, [energy], RING)
    refuses("expected more than 0", Metropolized, energy, RING, scale=0.0)
    refuses("Pass states=", Metropolized(energy, RING).log_kernel, EVERY, EVERY, {})
    with pytest.raises(InputError, match="row 0: 7.0 is no state of coordinate 1"):
        Metropolized(energy, RING, states=SPINS).sample(np.array([[0.0, 7.0, 1.0]]), {}, np.random.default_rng(0))
    with pytest.raises(InputError, match=r"log_density is NaN at the coordinates \(0, 1\)"):
        bad = Metropolized([lambda v, b: np.log(v[:, 0]) * 0 / 0] * 3, RING)
        with np.errstate(all="ignore"):
            bad.sample(EVERY, {}, np.random.default_rng(0))
    refuses("u has shape", Metropolized(energy, RING).sample, EVERY[:, :2], {}, np.random.default_rng(0))
