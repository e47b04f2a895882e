"""What is seen of a hidden chain: symbols or numbers, one law for every site and state, and their conjugate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.sampling.categorical import sample_weights
from knockoffs.sampling.conjugates.markov_chain import as_probabilities, draw_key, encode_states, over_rows
from knockoffs.sampling.factors import log
from knockoffs.sampling.network import BayesianNetwork, Blanket

BLOCK_BYTES = 1 << 26  # likelihoods held at once where every cell has its own


@dataclass(frozen=True)
class DiscreteEmissions:
    """Symbols: ``table[j, k, m]`` is P(X_j = symbol m | H_j = k), shape (p, K, M)."""

    table: NDArray  # shape (p, K, M)
    # shape (M,): the value of X that each symbol is, any numbers at all, in rising order; 0, ..., M - 1 if left out
    symbols: NDArray | None = None
    # whether negative numbers and 9 are missing cells, as in files of genotypes. A missing cell is else NaN, and a
    # negative number a symbol or an error.
    genotypes: bool = False

    def __post_init__(self) -> None:
        table = np.asarray(self.table, dtype=float)
        if table.ndim != 3:
            raise InputError(f"emissions have shape {table.shape}: expected (p, K, M), a table for every site.")
        object.__setattr__(self, "table", as_probabilities("emissions", table))
        if self.symbols is None:
            return
        symbols = np.asarray(self.symbols, dtype=float)
        if symbols.shape != table.shape[2:] or not (np.diff(symbols) > 0).all() or not np.isfinite(symbols).all():
            raise InputError(f"symbols must be {table.shape[2]} different numbers in rising order.")
        object.__setattr__(self, "symbols", None if np.array_equal(symbols, np.arange(len(symbols))) else symbols)

    @property
    def shape(self) -> tuple[int, int]:
        """(p, K)."""
        return self.table.shape[:2]

    @cached_property
    def _likelihood(self) -> NDArray:
        """Table (p, M + 1, K), the last row for a missing cell."""
        p, K, _ = self.table.shape
        return np.concatenate([self.table.transpose(0, 2, 1), np.ones((p, 1, K))], axis=1)

    @cached_property
    def _cumulated(self) -> NDArray:
        return self.table.cumsum(axis=2)

    def encode(self, X: NDArray) -> NDArray:
        """Symbols as small integers, M where missing."""
        M = self.table.shape[2]
        if self.symbols is None:
            return encode_states(X, M, missing=True, flagged=self.genotypes, name="symbol")
        X = np.asarray(X, dtype=float)
        codes = np.minimum(np.searchsorted(self.symbols, X), M - 1)
        missing = np.isnan(X)
        bad = np.argwhere((self.symbols[codes] != X) & ~missing)
        if len(bad):
            row, site = bad[0]
            raise InputError(
                f"row {row}, site {site}: {X[row, site]:g} is not a known symbol; known are "
                f"{', '.join(f'{symbol:g}' for symbol in self.symbols[:10])}{', ...' if M > 10 else ''}."
            )
        return np.where(missing, M, codes).astype(np.uint8 if M < 256 else np.int32)

    def decode(self, codes: NDArray) -> NDArray:
        """Values of X that the codes of symbols stand for."""
        return codes if self.symbols is None else self.symbols[codes]

    def missing(self, X: NDArray) -> NDArray[np.bool_]:
        """Where X is missing."""
        return self.encode(X) == self.table.shape[2]

    def blocks(self, X: NDArray) -> Iterator[tuple[int, NDArray, NDArray]]:
        """First row, codes and likelihood of the codes, a block at a time: here all rows at once."""
        yield 0, self.encode(X), self._likelihood

    @cached_property
    def _spreads(self) -> NDArray:
        """Largest difference of log likelihoods between two states that can emit a symbol, shape (p, M + 1)."""
        some = self._likelihood.max(axis=2) > 0
        largest = np.where(some, self._likelihood.max(axis=2), 1.0)
        return np.log(largest) - np.log(self._likelihood.min(axis=2, where=self._likelihood > 0, initial=1.0))

    def spread(self, X: NDArray) -> NDArray:
        """Add these up over the sites, shape (n,); a state that cannot emit a symbol is rightly lost."""
        return self._spreads[np.arange(X.shape[1]), self.encode(X)].sum(axis=1)

    def draw(self, H: NDArray, rng: Generator, n_jobs: int = 1) -> NDArray:
        """X given H, shape (n, p)."""
        from knockoffs.features.posterior.forward_backward import draw_symbols

        X, key = np.empty(H.shape, np.uint8 if self.table.shape[2] <= 256 else np.int32), draw_key(rng)

        def work(rows: slice) -> None:
            draw_symbols(H[rows], self._cumulated, key, rows.start, X[rows])

        over_rows(work, len(H), n_jobs)
        return self.decode(X)

    def draw_site(self, j: int, H: NDArray, rng: Generator) -> NDArray:
        """X_j given H_j, shape (n,)."""
        return self.decode(sample_weights(self.table[j, H], rng))

    def log_likelihood(self, X: NDArray) -> NDArray:
        """Log P(X_j | H_j = k) of every cell, shape (p, n, K), 0 where missing."""
        return log(self._likelihood)[np.arange(X.shape[1])[:, None], self.encode(X).T]

    def log_prob(self, X: NDArray, H: NDArray) -> NDArray:
        """Log P(X_j | H_j) of every cell, 0 where missing, shape (n, p)."""
        return log(self._likelihood[np.arange(X.shape[1]), self.encode(X), H])


@dataclass(frozen=True)
class GaussianEmissions:
    """Numbers: X_j given H_j = k is normal with means[j, k] and sds[j, k], shape (p, K) each. NaN is missing."""

    means: NDArray
    sds: NDArray

    def __post_init__(self) -> None:
        means, sds = np.asarray(self.means, dtype=float), np.asarray(self.sds, dtype=float)
        if means.ndim != 2 or means.shape != sds.shape:
            raise InputError(f"means have shape {means.shape} and sds {sds.shape}: expected (p, K) for both.")
        bad = np.argwhere(~((sds > 0) & np.isfinite(sds) & np.isfinite(means)))
        if len(bad):
            j, k = bad[0]
            raise InputError(f"site {j}, state {k}: mean {means[j, k]:g} and sd {sds[j, k]:g} are not of a normal law.")
        object.__setattr__(self, "means", means)
        object.__setattr__(self, "sds", sds)

    @property
    def shape(self) -> tuple[int, int]:
        """(p, K)."""
        return self.means.shape

    def missing(self, X: NDArray) -> NDArray[np.bool_]:
        """Where X is missing."""
        return np.isnan(X)

    def blocks(self, X: NDArray) -> Iterator[tuple[int, NDArray, NDArray]]:
        """First row, codes and likelihood of the codes, a block at a time: every row of it has a code of its own."""
        from knockoffs.sampling.conjugates.markov_chain_kernels import LANES

        if X.dtype.kind != "f":
            raise InputError(
                f"X has dtype {X.dtype}, but its law is Gaussian: knockoffs would be cut to whole numbers. Pass floats."
            )
        infinite = np.argwhere(np.isinf(X))
        if len(infinite):
            raise InputError(f"row {infinite[0][0]}, site {infinite[0][1]}: X is infinite.")
        p, K = self.shape
        size = max(1, BLOCK_BYTES // (p * K * LANES * 8)) * LANES
        for start in range(0, len(X), size):
            rows = X[start : start + size]
            log_likelihood = self.log_likelihood(rows)
            log_likelihood -= log_likelihood.max(axis=2, keepdims=True)  # an outlier must not underflow in every state
            codes = np.tile(np.arange(len(rows), dtype=np.int32)[:, None], (1, p))
            yield start, codes, np.exp(log_likelihood)

    def spread(self, X: NDArray) -> NDArray:
        """Largest difference of log likelihoods between two states, added up over the sites, shape (n,)."""
        total = np.zeros(len(X))
        for j, (means, sds) in enumerate(zip(self.means, self.sds, strict=True)):
            with np.errstate(over="ignore", invalid="ignore"):
                E = -0.5 * ((X[:, j, None] - means) / sds) ** 2 - np.log(sds)
                total += np.nan_to_num(np.ptp(E, axis=1), posinf=1e300)
        return total

    def draw(self, H: NDArray, rng: Generator, n_jobs: int = 1) -> NDArray:
        """X given H, shape (n, p)."""
        sites = np.arange(H.shape[1])
        return self.means[sites, H] + self.sds[sites, H] * rng.standard_normal(H.shape)

    def draw_site(self, j: int, H: NDArray, rng: Generator) -> NDArray:
        """X_j given H_j, shape (n,)."""
        return self.means[j, H] + self.sds[j, H] * rng.standard_normal(len(H))

    def log_likelihood(self, X: NDArray) -> NDArray:
        """Log density of every cell given H_j = k, shape (p, n, K), 0 where missing."""
        z = (X.T[:, :, None] - self.means[:, None, :]) / self.sds[:, None, :]
        return np.nan_to_num(-0.5 * z * z - np.log(self.sds * np.sqrt(2 * np.pi))[:, None, :], nan=0.0)

    def log_prob(self, X: NDArray, H: NDArray) -> NDArray:
        """Log density of every cell given H_j, 0 where missing, shape (n, p)."""
        sites = np.arange(H.shape[1])
        sd = self.sds[sites, H]
        density = -0.5 * ((X - self.means[sites, H]) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
        return np.where(np.isnan(X), 0.0, density)


Emissions = DiscreteEmissions | GaussianEmissions


@dataclass(frozen=True)
class GenotypeEmissions:
    """Genotypes of two hidden chains: X_j is the sum of alleles 1 with probabilities theta[j, a] and theta[j, b].

    A missing cell is NaN, a negative number or 9.
    """

    theta: NDArray

    def encode(self, X: NDArray) -> NDArray:
        """Genotypes as small integers, 3 where missing."""
        return encode_states(X, 3, missing=True, flagged=True, name="genotype")

    def missing(self, X: NDArray) -> NDArray[np.bool_]:
        """Where X is missing."""
        return self.encode(X) == 3

    def draw(self, A: NDArray, B: NDArray, rng: Generator, n_jobs: int = 1) -> NDArray:
        """X given both chains, shape (n, p)."""
        from knockoffs.features.posterior.forward_backward import draw_genotypes

        X, key = np.empty(A.shape, np.uint8), draw_key(rng)

        def work(rows: slice) -> None:
            draw_genotypes(A[rows], B[rows], self.theta, key, rows.start, X[rows])

        over_rows(work, len(A), n_jobs)
        return X

    def log_prob(self, X: NDArray, A: NDArray, B: NDArray) -> NDArray:
        """Log P(X_j | A_j, B_j) of every cell, 0 where missing, shape (n, p)."""
        sites = np.arange(X.shape[1])
        a, b = self.theta[sites, A], self.theta[sites, B]
        table = np.stack([(1 - a) * (1 - b), a * (1 - b) + (1 - a) * b, a * b, np.ones_like(a)], axis=2)
        return log(np.take_along_axis(table, self.encode(X).astype(np.intp)[..., None], axis=2)[..., 0])


@dataclass(frozen=True)
class EmissionConjugate:
    """Q(X_tilde | X, H_tilde) = P(X_tilde | H_tilde): sites are independent given the hidden chain, or chains.

    A missing cell stays missing in the knockoff. The mask is then the same for X_j and X_tilde_j, so masking and
    swapping commute and the masked pair is exchangeable if the full one is, as long as the mask does not depend on X at
    all, neither on values that are missing nor on those that are seen: it would distinguish these from their knockoffs.
    (A filled knockoff beside a missing original would distinguish the two as well.)
    """

    emissions: Emissions | GenotypeEmissions
    n_jobs: int = 1
    chains: tuple[str, ...] = ("H",)  # names of the hidden nodes

    def sample(self, u: NDArray, blanket: Blanket, rng: Generator) -> NDArray:
        """Draw every cell from P(. | H_tilde_j), and set it missing where u is."""
        drawn, missing = self.draw(blanket, rng).astype(u.dtype), self.emissions.missing(u)
        if missing.any():
            drawn[missing] = u[missing]
        return drawn

    def draw(self, blanket: Blanket, rng: Generator) -> NDArray:
        """X given H, shape (n, p)."""
        draw: Callable[..., NDArray] = self.emissions.draw
        return draw(*(blanket[name] for name in self.chains), rng, self.n_jobs)

    def several(self, u: NDArray, blanket: Blanket, m: int, rng: Generator) -> NDArray:
        """Draw m times, shape (m, n, p): where the chain stays, X and they are independent and alike given it."""
        return np.stack([self.sample(u, blanket, rng) for _ in range(m)])

    def log_conditional(self, u: NDArray, blanket: Blanket) -> NDArray:
        """Log P(X | H) of the cells that are not missing."""
        return self.emissions.log_prob(u, *(blanket[name] for name in self.chains)).sum(axis=1)

    def log_kernel(self, u_tilde: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
        """Log P(X_tilde | H_tilde) if u_tilde is missing where u is, else -inf."""
        same = (self.emissions.missing(u_tilde) == self.emissions.missing(u)).all(axis=1)
        return np.where(same, self.log_conditional(u_tilde, blanket), -np.inf)


def fill_missing(network: BayesianNetwork, X: NDArray, rng: Generator) -> NDArray:
    """X with its missing cells drawn given the cells that are seen: the chain given these, then each cell given it.

    Where cells are missing may depend on what is seen of their row: the completed rows then follow the law of X, which
    gaps that stay gaps do not. X itself where nothing is missing, and nothing is drawn then.
    """
    leaf = network.observed[0].conjugate
    assert isinstance(leaf, EmissionConjugate)
    missing = leaf.emissions.missing(X)
    if not missing.any():
        return X
    drawn = leaf.draw(network.draw_hidden(X, rng), rng)
    return np.where(missing, drawn, X).astype(X.dtype, copy=False)
