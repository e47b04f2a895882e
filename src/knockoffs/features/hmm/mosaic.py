"""Haplotypes and genotypes as mosaics of K ancestral haplotypes: the model of fastPHASE.

A haplotype is a hidden Markov model whose chain stays in its ancestor or jumps to a new one: site j is entered with
P(k | l) = exp(-r_j) [k = l] + (1 - exp(-r_j)) alpha_j(k), and carries allele 1 with probability theta_jk. That is the
identity plus a matrix of rank one, so a site costs O(K). A genotype is the sum of two such haplotypes: two hidden
chains, A -> X <- B, drawn together given X in O(K^2) a site and knocked off one by one in O(K).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, name_some
from knockoffs.features import kept_per_how
from knockoffs.features.hmm.emissions import DiscreteEmissions, EmissionConjugate, GenotypeEmissions, fill_missing
from knockoffs.features.hmm.model import check_sites, move_chain, refuse_impossible, with_states
from knockoffs.sampling.categorical import sample_weights
from knockoffs.sampling.conjugates.markov_chain import JumpChain, draw_key, encode_states, over_rows
from knockoffs.sampling.network import BayesianNetwork, Conjugate, Node

NEVER_STAYS = 50.0  # rate of jumps between chromosomes: exp(-50) = 2e-22
ALPHA_ROUNDING = 1e-4  # fastPHASE writes six digits, so the K numbers of a row of alpha add up to one only about


@dataclass(frozen=True)
class Mosaic:
    """Parameters shared by the models of haplotypes and genotypes.

    Parameters
    ----------
    r : array, shape (p,)
        Rate of jumps before each site; the first is not used.
    alpha : array, shape (p, K)
        Where a jump into site j lands; row 0 is the law of the first state.
    theta : array, shape (p, K)
        P(allele 1 at site j | ancestor k).
    """

    r: NDArray
    alpha: NDArray
    theta: NDArray

    def __post_init__(self) -> None:
        r, alpha, theta = (np.asarray(value, dtype=float) for value in (self.r, self.alpha, self.theta))
        if alpha.ndim != 2 or theta.shape != alpha.shape or r.shape != (len(alpha),):
            raise InputError(
                f"r has shape {r.shape}, alpha {alpha.shape} and theta {theta.shape}: expected (p,), (p, K) and (p, K)."
            )
        bad = np.flatnonzero(~(r[1:] >= 0))
        if bad.size:
            raise InputError(f"r[{bad[0] + 1}] = {r[bad[0] + 1]:g}: a rate of jumps cannot be negative.")
        outside = np.argwhere(~((theta >= 0) & (theta <= 1)))
        if len(outside):
            j, k = outside[0]
            raise InputError(f"theta[{j}, {k}] = {theta[j, k]:g} is not a probability.")
        if (alpha < 0).any():
            j, k = np.argwhere(alpha < 0)[0]
            raise InputError(f"alpha[{j}, {k}] = {alpha[j, k]:g} is not a probability.")
        off = np.flatnonzero(~(np.abs(alpha.sum(axis=1) - 1) <= ALPHA_ROUNDING))
        if off.size:
            raise InputError(f"alpha[{off[0]}] adds up to {alpha[off[0]].sum():g}, not to 1.")
        chain = JumpChain(alpha / alpha.sum(axis=1, keepdims=True), -np.expm1(-r[1:]))
        for name, value in (("r", r), ("alpha", chain.alpha), ("theta", np.ascontiguousarray(theta))):
            object.__setattr__(self, name, value)

    @cached_property
    def chain(self) -> JumpChain:
        """The law of one hidden chain."""
        return JumpChain(self.alpha, -np.expm1(-self.r[1:]))

    def sample_chain(self, n: int, rng: Generator) -> NDArray[np.intp]:
        """Draw n hidden chains, shape (n, p)."""
        H = np.stack([sample_weights(np.broadcast_to(law, (n, len(law))), rng) for law in self.alpha], axis=1)
        for j, jump in enumerate(self.chain.jump, start=1):  # what was drawn stands where it jumps
            H[:, j] = np.where(rng.random(n) < jump, H[:, j], H[:, j - 1])
        return H

    def frequencies(self) -> NDArray:
        """P(allele 1) at every site, shape (p,)."""
        law = self.alpha.copy()  # of the hidden state: it stays, or jumps
        for j, jump in enumerate(self.chain.jump, start=1):
            law[j] = (1 - jump) * law[j - 1] + jump * self.alpha[j]
        return (law * self.theta).sum(axis=1)


def join_mosaics(parts: Sequence[Mosaic]) -> Mosaic:
    """Mosaic of all sites of the parts; ancestors that a part does not have are never jumped to.

    >>> one = Mosaic(np.ones(3), np.full((3, 2), 0.5), np.full((3, 2), 0.3))
    >>> join_mosaics([one, one]).r.tolist()
    [1.0, 1.0, 1.0, 50.0, 1.0, 1.0]
    """
    K = max(part.alpha.shape[1] for part in parts)
    r = np.concatenate([np.concatenate([[NEVER_STAYS], part.r[1:]]) for part in parts])
    r[0] = parts[0].r[0]
    alpha = np.vstack([with_states(part.alpha, K, 0.0) for part in parts])
    return Mosaic(r, alpha, np.vstack([with_states(part.theta, K, 0.5) for part in parts]))


@dataclass(frozen=True)
class MosaicFeatures(ABC):
    """P^X of haplotypes or genotypes: one or two hidden chains that stay or jump, and X below them."""

    mosaic: Mosaic  # of one haplotype
    groups_of_neighbours: ClassVar[bool] = True  # as_network(feature_of=)
    fills_missing: ClassVar[bool] = True
    chains: ClassVar[tuple[str, ...]]  # names of the hidden nodes
    value: ClassVar[str]  # what a cell holds

    @abstractmethod
    def emission(self, j: int) -> NDArray:
        """P(X_j = x | hidden states), shape (number of values, K) or (number of values, K, K)."""

    @abstractmethod
    def conjugate(self, n_jobs: int) -> Conjugate:
        """Conjugate of X given the hidden chains."""

    @abstractmethod
    def draw_states(self, codes: NDArray, key: NDArray, first: int, states: tuple[NDArray, ...]) -> int:
        """Draw the hidden chains given X; -1, or the place of an impossible observation."""

    def say(self, names: Sequence[str] | None = None) -> str:
        """Sentence that says what P^X is."""
        p, K = self.mosaic.theta.shape
        what = f"hidden Markov model of {'haplotypes' if len(self.chains) == 1 else 'genotypes'}"
        return f"P^X is fastPHASE's {what} at {p} sites, in their order, with {K} ancestors."

    @kept_per_how
    def as_network(
        self, *, hidden_knockoff: str = "copy", feature_of: ArrayLike | None = None, n_jobs: int | None = None
    ) -> BayesianNetwork:
        """H -> X of haplotypes, or A -> X <- B of genotypes; with the options of HiddenMarkov."""
        jobs = n_jobs or 1
        groups = None if feature_of is None else np.asarray(feature_of)
        chain = move_chain(replace(self.mosaic.chain, n_jobs=jobs), hidden_knockoff, groups)
        X = Node("X", self.chains, self.conjugate(jobs), columns=range(len(self.mosaic.theta)))
        nodes = (*(Node(name, (), chain) for name in self.chains), X)
        return BayesianNetwork(nodes, partial(self._sample_hidden, n_jobs=jobs), groups)  # type: ignore[arg-type]

    def fill(self, X: NDArray, rng: Generator) -> NDArray:
        """X with its missing cells (NaN, negative numbers, 9) drawn given those that are seen."""
        return fill_missing(self.as_network(), X, rng)

    def log_density(self, X: NDArray) -> NDArray:
        """Log P(X) of every row, shape (n,), exactly; missing cells are summed out."""
        return log_evidence(self.mosaic.chain, self._likelihood(X), n_chains=len(self.chains))

    def state_given_others(self, j: int, X: NDArray) -> NDArray:
        """P(hidden states at site j | X at all other sites), shape (n, K) or (n, K, K)."""
        return state_given_others(self.mosaic.chain, self._likelihood(X), j, n_chains=len(self.chains))

    def _codes(self, X: NDArray) -> NDArray:
        sites = check_sites(X, len(self.mosaic.theta))
        return encode_states(sites, len(self.emission(0)), missing=True, flagged=True, name=self.value)

    def _likelihood(self, X: NDArray) -> Likelihood:
        """P(X_j | hidden states) of every row, site by site; 1 where X_j is missing."""
        codes = self._codes(X)

        def likelihood(j: int) -> NDArray:
            table = self.emission(j)
            return np.concatenate([table, np.ones_like(table[:1])])[codes[:, j]]

        return likelihood

    def _sample_hidden(self, X: NDArray, rng: Generator, *, n_jobs: int = 1) -> dict[str, NDArray]:
        codes, key = self._codes(X), draw_key(rng)
        dtype = np.uint8 if self.mosaic.theta.shape[1] <= 256 else np.int32
        states = {name: np.empty(codes.shape, dtype) for name in self.chains}

        def work(rows: slice) -> None:
            place = self.draw_states(codes[rows], key, rows.start, tuple(H[rows] for H in states.values()))
            refuse_impossible(place, np.asarray(X), np.arange(rows.start, rows.stop))

        over_rows(work, len(codes), n_jobs)
        return states


@dataclass(frozen=True)
class HaplotypeModel(MosaicFeatures):
    """P^X of haplotypes, X_j = 0 or 1: H -> X with a chain that stays or jumps."""

    chains: ClassVar[tuple[str, ...]] = ("H",)
    value: ClassVar[str] = "allele"

    def emission(self, j: int) -> NDArray:
        """P(allele | ancestor), shape (2, K)."""
        return np.stack([1 - self.mosaic.theta[j], self.mosaic.theta[j]])

    def conjugate(self, n_jobs: int) -> Conjugate:
        """Alleles given the ancestors."""
        theta = self.mosaic.theta
        return EmissionConjugate(DiscreteEmissions(np.stack([1 - theta, theta], axis=2), genotypes=True), n_jobs)

    def draw_states(self, codes: NDArray, key: NDArray, first: int, states: tuple[NDArray, ...]) -> int:
        """Draw the chain given the alleles."""
        from knockoffs.features.posterior import forward_backward

        chain, theta = self.mosaic.chain, self.mosaic.theta
        likelihood = np.stack([1 - theta, theta, np.ones_like(theta)], axis=1)
        segment = forward_backward.segment_length(len(theta), theta.shape[1], forward_backward.FEW_BYTES)
        law = (chain.alpha, chain.jump, likelihood)
        return forward_backward.sample_states(codes, *law, key, first, segment, *states)

    def sample(self, n: int, rng: Generator) -> NDArray:
        """Draw n haplotypes, shape (n, p)."""
        H = self.mosaic.sample_chain(n, rng)
        theta = self.mosaic.theta[np.arange(H.shape[1]), H]
        return (rng.random(H.shape) < theta).astype(np.int8)

    def conditional(self, j: int, X: NDArray, rng: Generator, n_draws: int) -> NDArray:
        """Draws of X_j given the other sites of each row, shape (n_draws, n), exactly."""
        one = self.state_given_others(j, X) @ self.mosaic.theta[j]
        return (rng.random((n_draws, len(X))) < one).astype(np.int8)


@dataclass(frozen=True)
class GenotypeModel(MosaicFeatures):
    """P^X of unphased genotypes, X_j = 0, 1 or 2: the sum of two haplotypes, A -> X <- B.

    A pair of ancestors without an order has K (K + 1) / 2 values. Here the two chains keep an order: they are
    independent, so each is knocked off on its own, and (A_j, B_j, X_j) and their copies can be exchanged in any set of
    sites, which is all that validity asks for.
    """

    chains: ClassVar[tuple[str, ...]] = ("A", "B")
    value: ClassVar[str] = "genotype"

    def emission(self, j: int) -> NDArray:
        """P(genotype | two ancestors), shape (3, K, K)."""
        return genotype_law(self.mosaic.theta[j])

    def conjugate(self, n_jobs: int) -> Conjugate:
        """Genotypes given the ancestors."""
        return EmissionConjugate(GenotypeEmissions(self.mosaic.theta), n_jobs, self.chains)

    def draw_states(self, codes: NDArray, key: NDArray, first: int, states: tuple[NDArray, ...]) -> int:
        """Draw both chains given the genotypes."""
        from knockoffs.features.posterior import forward_backward, pair_of_chains

        chain, theta = self.mosaic.chain, self.mosaic.theta
        K = theta.shape[1]
        segment = forward_backward.segment_length(len(theta), K * (K + 3) // 2, forward_backward.FEW_BYTES)
        law = (chain.alpha, chain.jump, theta)
        return pair_of_chains.sample_pair_states(codes, *law, key, first, segment, *states)

    def sample(self, n: int, rng: Generator) -> NDArray:
        """Draw n people's genotypes, shape (n, p)."""
        one = HaplotypeModel(self.mosaic)
        return one.sample(n, rng) + one.sample(n, rng)

    def conditional(self, j: int, X: NDArray, rng: Generator, n_draws: int) -> NDArray:
        """Draws of X_j given the other sites of each row, shape (n_draws, n), exactly."""
        weights = np.einsum("nab,gab->ng", self.state_given_others(j, X), self.emission(j))
        return sample_weights(np.tile(weights, (n_draws, 1)), rng).reshape(n_draws, len(X)).astype(np.int8)


def genotype_law(theta: NDArray) -> NDArray:
    """P(g | a, b) of the sum of two alleles, shape (3, K, K), from P(allele 1 | a)."""
    a, b = theta[:, None], theta[None, :]
    return np.stack([(1 - a) * (1 - b), a * (1 - b) + (1 - a) * b, a * b])


Likelihood = Callable[[int], NDArray]  # site -> P(x_j | hidden states), shape (n, K) or (n, K, K)


def log_evidence(chain: JumpChain, likelihood: Likelihood, *, n_chains: int = 1) -> NDArray:
    """Log P(X) of every row, shape (n,)."""
    law, total = _observe(_start(chain, n_chains), likelihood(0))
    for j in range(1, len(chain.alpha)):
        law, log_scale = _observe(_step(chain, j - 1, law), likelihood(j))
        total = total + log_scale
    return total


def state_given_others(chain: JumpChain, likelihood: Likelihood, j: int, *, n_chains: int = 1) -> NDArray:
    """P(hidden states at site j | X at all other sites), shape (n, K) or (n, K, K)."""
    before = _start(chain, n_chains)
    for i in range(j):
        before = _step(chain, i, _observe(before, likelihood(i))[0])
    after: NDArray = np.ones_like(before)
    for i in range(len(chain.alpha) - 1, j, -1):
        after = _backward(chain, i, _observe(after, likelihood(i))[0])
    law, log_total = _observe(before, after)
    bad = np.flatnonzero(np.isneginf(log_total))
    if bad.size:
        raise InputError(f"rows {name_some(bad)} are impossible under the model, whatever their site {j} holds.")
    return np.broadcast_to(law, likelihood(j).shape)


def _start(chain: JumpChain, n_chains: int) -> NDArray:
    alpha = chain.alpha[0]
    return alpha[None] if n_chains == 1 else (alpha[:, None] * alpha)[None]


def _step(chain: JumpChain, j: int, law: NDArray) -> NDArray:
    """Law at site j + 1 from that at site j."""
    for axis in range(1, law.ndim):
        law = chain.forward(j, law, axis)
    return law


def _backward(chain: JumpChain, j: int, message: NDArray) -> NDArray:
    """E[message at site j | state at the site before]."""
    jump, alpha = chain.jump[j - 1], chain.alpha[j]
    for axis in range(1, message.ndim):
        landed = alpha.reshape([-1 if i == axis else 1 for i in range(message.ndim)])
        message = (1 - jump) * message + jump * (landed * message).sum(axis=axis, keepdims=True)
    return message


def _observe(law: NDArray, likelihood: NDArray) -> tuple[NDArray, NDArray]:
    """Product of the two with sum one in each row, and the log of what it was divided by."""
    law = law * likelihood
    total = law.sum(axis=tuple(range(1, law.ndim)), keepdims=True)
    with np.errstate(divide="ignore"):
        return law / np.where(total > 0, total, 1.0), np.log(total).reshape(len(total))
