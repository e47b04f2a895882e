"""Haplotypes and genotypes as mosaics of K ancestral haplotypes: the model of fastPHASE, and its parameter files.

A haplotype is a hidden Markov model whose chain stays in its ancestor or jumps to a new one: site j is entered with
P(k | l) = exp(-r_j) [k = l] + (1 - exp(-r_j)) alpha_j(k), and carries allele 1 with probability theta_jk. That is the
identity plus a matrix of rank one, so a site costs O(K). A genotype is the sum of two such haplotypes: two hidden
chains, A -> X <- B, drawn together given X in O(K^2) a site and knocked off one by one in O(K).
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, unknown_option
from knockoffs.features.hidden_markov import HIDDEN_KNOCKOFFS, check_sites, refuse_impossible
from knockoffs.features.hidden_markov_emissions import DiscreteEmissions, EmissionConjugate, keep_missing
from knockoffs.sampling.conjugates.identity import Identity
from knockoffs.sampling.conjugates.markov_chain import JumpChain, draw_key, encode_states, over_rows
from knockoffs.sampling.network import BayesianNetwork, Blanket, Conjugate, Node

ROUNDING = 1e-4  # fastPHASE writes six digits, so the K numbers of a row of alpha add up to one only about


@dataclass(frozen=True)
class Mosaic:
    """Parameters that haplotypes and genotypes share.

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
        off = np.flatnonzero(~(np.abs(alpha.sum(axis=1) - 1) <= ROUNDING))
        if off.size:
            raise InputError(f"alpha[{off[0]}] adds up to {alpha[off[0]].sum():g}, not to 1.")
        chain = JumpChain(alpha / alpha.sum(axis=1, keepdims=True), -np.expm1(-r[1:]))
        for name, value in (("r", r), ("alpha", chain.alpha), ("theta", np.ascontiguousarray(theta))):
            object.__setattr__(self, name, value)

    @cached_property
    def chain(self) -> JumpChain:
        """The law of one hidden chain."""
        return JumpChain(self.alpha, -np.expm1(-self.r[1:]))

    def frequencies(self) -> NDArray:
        """P(allele 1) at every site, shape (p,)."""
        law = self.alpha.copy()  # of the hidden state: it stays, or jumps
        for j, jump in enumerate(self.chain.jump, start=1):
            law[j] = (1 - jump) * law[j - 1] + jump * self.alpha[j]
        return (law * self.theta).sum(axis=1)


@dataclass(frozen=True)
class HaplotypeModel:
    """P^X of haplotypes, X_j = 0 or 1: H -> X with a chain that stays or jumps.

    Parameters
    ----------
    mosaic : Mosaic
    hidden_knockoff : {"chain", "posterior"}
        As in HiddenMarkov.
    n_jobs : int
        Threads that share the rows; the draws do not depend on it.
    """

    mosaic: Mosaic
    hidden_knockoff: str = "chain"
    n_jobs: int = 1

    def __post_init__(self) -> None:
        if self.hidden_knockoff not in HIDDEN_KNOCKOFFS:
            raise unknown_option("hidden_knockoff", self.hidden_knockoff, HIDDEN_KNOCKOFFS)

    def as_network(self) -> BayesianNetwork:
        """Return H -> X."""
        return self._network

    @cached_property
    def _network(self) -> BayesianNetwork:
        theta = self.mosaic.theta
        emissions = DiscreteEmissions(np.stack([1 - theta, theta], axis=2), nine_is_missing=True)
        H = Node("H", (), _moves(self.mosaic, self.hidden_knockoff, self.n_jobs))
        X = Node("X", ("H",), EmissionConjugate(emissions, self.n_jobs), columns=range(len(theta)))
        return BayesianNetwork((H, X), sample_hidden=self._sample_hidden)

    def _sample_hidden(self, X: NDArray, rng: Generator) -> dict[str, NDArray]:
        from knockoffs.features.posterior import forward_backward

        chain, theta = self.mosaic.chain, self.mosaic.theta
        X = check_sites(X, len(theta))
        codes = encode_states(X, 2, missing=True, nine=True, name="allele")
        likelihood = np.stack([1 - theta, theta, np.ones_like(theta)], axis=1)
        H, key = np.empty(X.shape, np.uint8 if theta.shape[1] <= 256 else np.int32), draw_key(rng)
        segment = forward_backward.segment_length(*theta.shape)

        def work(rows: slice) -> None:
            law = (chain.alpha, chain.jump, likelihood)
            place = forward_backward.sample_jump_states(codes[rows], *law, key, rows.start, segment, H[rows])
            refuse_impossible(place, rows.start, X)

        over_rows(work, len(X), self.n_jobs)
        return {"H": H}


@dataclass(frozen=True)
class GenotypeModel:
    """P^X of unphased genotypes, X_j = 0, 1 or 2: the sum of two haplotypes, A -> X <- B.

    A pair of ancestors without an order has K (K + 1) / 2 values. Here the two chains keep an order: they are
    independent, so each is knocked off on its own, and (A_j, B_j, X_j) and their copies can be exchanged in any set of
    sites, which is all that validity asks for.

    Parameters
    ----------
    mosaic : Mosaic
        Of one haplotype.
    hidden_knockoff : {"chain", "posterior"}
        As in HiddenMarkov.
    n_jobs : int
        Threads that share the rows; the draws do not depend on it.
    """

    mosaic: Mosaic
    hidden_knockoff: str = "chain"
    n_jobs: int = 1

    def __post_init__(self) -> None:
        if self.hidden_knockoff not in HIDDEN_KNOCKOFFS:
            raise unknown_option("hidden_knockoff", self.hidden_knockoff, HIDDEN_KNOCKOFFS)

    def as_network(self) -> BayesianNetwork:
        """Return A -> X <- B."""
        return self._network

    @cached_property
    def _network(self) -> BayesianNetwork:
        chain = _moves(self.mosaic, self.hidden_knockoff, self.n_jobs)
        theta = self.mosaic.theta
        X = Node("X", ("A", "B"), GenotypeConjugate(theta, self.n_jobs), columns=range(len(theta)))
        return BayesianNetwork((Node("A", (), chain), Node("B", (), chain), X), sample_hidden=self._sample_hidden)

    def _sample_hidden(self, X: NDArray, rng: Generator) -> dict[str, NDArray]:
        from knockoffs.features.posterior import forward_backward

        chain, theta = self.mosaic.chain, self.mosaic.theta
        X = check_sites(X, len(theta))
        codes = encode_states(X, 3, missing=True, nine=True, name="genotype")
        K = theta.shape[1]
        A, key = np.empty(X.shape, np.uint8 if K <= 256 else np.int32), draw_key(rng)
        B = np.empty_like(A)
        segment = forward_backward.segment_length(len(theta), K * (K + 3) // 2)

        def work(rows: slice) -> None:
            law = (chain.alpha, chain.jump, theta)
            place = forward_backward.sample_pair_states(codes[rows], *law, key, rows.start, segment, A[rows], B[rows])
            refuse_impossible(place, rows.start, X)

        over_rows(work, len(X), self.n_jobs)
        return {"A": A, "B": B}


@dataclass(frozen=True)
class GenotypeConjugate:
    """Q(X_tilde | X, A_tilde, B_tilde) = P(X_tilde | A_tilde, B_tilde), a sum of two Bernoullis at every site.

    Missing cells stay missing, for the reason given at EmissionConjugate.
    """

    theta: NDArray
    n_jobs: int = 1

    def sample(self, u: NDArray, blanket: Blanket, rng: Generator) -> NDArray:
        """Draw every genotype from P(. | A_tilde_j, B_tilde_j)."""
        from knockoffs.features.posterior import forward_backward

        A, B, key = blanket["A"], blanket["B"], draw_key(rng)
        drawn = np.empty(A.shape, np.uint8)

        def work(rows: slice) -> None:
            forward_backward.draw_genotypes(A[rows], B[rows], self.theta, key, rows.start, drawn[rows])

        over_rows(work, len(A), self.n_jobs)
        return keep_missing(
            u, drawn.astype(u.dtype), encode_states(u, 3, missing=True, nine=True, name="genotype") == 3
        )

    def log_conditional(self, u: NDArray, blanket: Blanket) -> NDArray:
        """Log P(X | A, B) of the cells that are not missing."""
        sites = np.arange(u.shape[1])
        a, b = self.theta[sites, blanket["A"]], self.theta[sites, blanket["B"]]
        table = np.stack([(1 - a) * (1 - b), a * (1 - b) + (1 - a) * b, a * b, np.ones_like(a)], axis=2)
        codes = encode_states(u, 3, missing=True, nine=True, name="genotype").astype(np.intp)
        with np.errstate(divide="ignore"):
            return np.log(np.take_along_axis(table, codes[..., None], axis=2)[..., 0]).sum(axis=1)

    def log_kernel(self, u_tilde: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
        """Log P(X_tilde | A_tilde, B_tilde) if u_tilde is missing where u is, else -inf."""
        codes = [encode_states(value, 3, missing=True, nine=True, name="genotype") for value in (u_tilde, u)]
        same = ((codes[0] == 3) == (codes[1] == 3)).all(axis=1)
        return np.where(same, self.log_conditional(u_tilde, blanket), -np.inf)


def fastphase_features(
    X: NDArray,
    *,
    prefix: str | Path | None = None,
    haplotypes: bool = False,
    start: int = 0,
    hidden_knockoff: str = "chain",
    rng: Generator,
    n_jobs: int | None = None,
) -> GenotypeModel | HaplotypeModel:
    """P^X with the parameters that fastPHASE has fitted; nothing is fitted to X.

    Parameters
    ----------
    X : array, shape (n, p)
        Counts 0, 1, 2 of genotypes, or alleles 0, 1 of haplotypes.
    prefix : path
        Of the parameter files: see ``read_fastphase``.
    haplotypes : bool
        Whether a row is a haplotype, and not a person's genotypes.
    start : int
        Which of several random starts in the files.
    hidden_knockoff : {"chain", "posterior"}
        As in HiddenMarkov.
    n_jobs : int, optional
        Threads that share the rows.
    """
    if prefix is None:
        raise InputError("fastphase needs prefix=..., what the names of the files that fastPHASE wrote begin with.")
    mosaic = read_fastphase(prefix, start=start)
    if X.shape[1] != len(mosaic.r):
        raise InputError(f"{prefix}: the files hold {len(mosaic.r)} sites, and X has {X.shape[1]} columns.")
    family = HaplotypeModel if haplotypes else GenotypeModel
    return family(mosaic, hidden_knockoff, n_jobs or 1)


def _moves(mosaic: Mosaic, hidden_knockoff: str, n_jobs: int) -> Conjugate:
    if hidden_knockoff == "posterior":
        return Identity()
    return JumpChain(mosaic.chain.alpha, mosaic.chain.jump, n_jobs)


def read_fastphase(prefix: str | Path, *, start: int = 0) -> Mosaic:
    """Read the parameters that fastPHASE wrote: PREFIX_rhat.txt, _alphahat.txt, _thetahat.txt and _origchars.

    Parameters
    ----------
    prefix : path
        What the file names begin with. Files may end in .gz.
    start : int
        Which of several random starts in the files.

    Returns
    -------
    Mosaic
        With theta the probability of the character 1: fastPHASE gives that of the first character of a site, and
        ``origchars`` says which one that is.
    """
    r = _read_numbers(prefix, "rhat.txt", start)[:, 0]
    alpha, theta = _read_numbers(prefix, "alphahat.txt", start), _read_numbers(prefix, "thetahat.txt", start)
    lines = _read_lines(prefix, "origchars")
    characters = [line.split()[1] for line in lines[1:]]
    if not len(characters) == len(r) == len(alpha) == len(theta):
        sizes = f"rhat {len(r)}, alphahat {len(alpha)}, thetahat {len(theta)}, origchars {len(characters)}"
        raise InputError(f"the fastPHASE files of {prefix} disagree on the number of sites: {sizes}.")
    unknown = [j for j, pair in enumerate(characters) if pair not in ("10", "01", "1", "0")]
    if unknown:
        j = unknown[0]
        raise InputError(f"{prefix}_origchars, site {j}: {characters[j]!r} is not coded 0 and 1.")
    first_is_one = np.array([pair[0] == "1" for pair in characters])
    single = np.array([len(pair) == 1 for pair in characters])
    theta = np.where(single[:, None], 1.0, theta)  # a site with one character shows nothing else
    return Mosaic(r, alpha, np.where(first_is_one[:, None], theta, 1 - theta))


def fastphase_files(prefix: str | Path) -> list[Path]:
    """Paths of the four parameter files."""
    return [_find(prefix, ending) for ending in ("rhat.txt", "alphahat.txt", "thetahat.txt", "origchars")]


def _find(prefix: str | Path, ending: str) -> Path:
    for path in (Path(f"{prefix}_{ending}"), Path(f"{prefix}_{ending}.gz")):
        if path.exists():
            return path
    raise InputError(f"{prefix}_{ending}: no such file, and none that ends in .gz.")


def _read_lines(prefix: str | Path, ending: str) -> list[str]:
    path = _find(prefix, ending)
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else path.open()
    with opened as file:
        return [line.strip() for line in file if line.strip()]


def _read_numbers(prefix: str | Path, ending: str, start: int) -> NDArray:
    blocks: list[list[str]] = []
    for line in _read_lines(prefix, ending):
        if line.startswith(">"):
            blocks.append([])
        elif blocks:
            blocks[-1].append(line)
    if not 0 <= start < len(blocks):
        raise InputError(f"start={start}: {prefix}_{ending} holds {len(blocks)} starts.")
    rows = [line.split() for line in blocks[start]]
    if len({len(row) for row in rows}) > 1:
        raise InputError(f"{prefix}_{ending} has rows of different lengths.")
    try:
        return np.array(rows, dtype=float)
    except ValueError as error:
        raise InputError(f"{prefix}_{ending} holds something that is not a number: {error}.") from None
