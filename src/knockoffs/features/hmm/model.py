"""Hidden Markov models: one hidden chain H, and X_j given H_j on its own.

Two knockoffs of the hidden chain are valid:

- ``"copy"`` (Sesia, Sabatti and Candes): H_tilde is an exchangeable copy of H under the law of the chain itself, and
  X_tilde is emitted from it. The pairs (H_j, X_j) and (H_tilde_j, X_tilde_j) can then be exchanged in any set of sites.
- ``"posterior"`` (the paper): H_tilde comes from a kernel that is reversible for P(H | X), and X_tilde is emitted from
  it. Every such kernel leaves H_tilde given X with the law P(H | X), and X_tilde depends on X through H_tilde alone:
  all of them, sequential pairs included, give X_tilde the same law given X as H_tilde = H. So H keeps its value.

The first is the default: its knockoffs are less like X, because H_tilde moves away from H, where the second emits
X_tilde from states that X itself has chosen. Measured: mean correlation with X 0.942 against 0.949 on strongly linked
genotypes (``benchmarks/hmm.py --quality``), where the powers do not differ clearly; on simulated genotypes and numbers
power 0.70 against 0.63 and 0.88 against 0.86 at an FDR of 0.2 (``tests/guarantees/test_hmm_fdr.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, unknown_option
from knockoffs.features.family import kept_per_how
from knockoffs.features.hmm.emissions import (
    DiscreteEmissions,
    EmissionConjugate,
    Emissions,
    GaussianEmissions,
    fill_missing,
)
from knockoffs.features.hmm.inference import log_likelihood, sample_states, state_given_others
from knockoffs.sampling.conjugates.grouped_chain import GroupedChain
from knockoffs.sampling.conjugates.identity import Identity
from knockoffs.sampling.conjugates.markov_chain import Chain, MarkovChain
from knockoffs.sampling.inverse_cdf import sample_weights
from knockoffs.sampling.network import BayesianNetwork, Conjugate, Node

if TYPE_CHECKING:
    from hmmlearn.base import BaseHMM

HIDDEN_KNOCKOFFS = ("copy", "posterior")


def say_states(K: int) -> str:
    """How many states, in words."""
    return "one state" if K == 1 else f"{K} states"


@dataclass(frozen=True)
class HiddenMarkov:
    """P^X of a hidden Markov model whose transitions and emissions may differ from site to site.

    Parameters
    ----------
    initial : array, shape (K,)
        P(H_1 = k).
    transitions : array, shape (p - 1, K, K)
        ``transitions[j, l, k]`` = P(the next state is k | the state at site j is l), sites counted from 0.
    emissions : array of shape (p, K, M), DiscreteEmissions or GaussianEmissions
        P(X_j = m | H_j = k), or means and standard deviations of shape (p, K).

    Notes
    -----
    Missing cells (NaN) are skipped in P(H | X), summed out of the density, and stay missing in X_tilde; ``fill`` draws
    them beforehand, as a selection does.

    >>> sticky = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> coins = np.array([[0.8, 0.2], [0.3, 0.7]])
    >>> model = HiddenMarkov(np.array([0.5, 0.5]), np.tile(sticky, (3, 1, 1)), np.tile(coins, (4, 1, 1)))
    >>> [node.name for node in model.as_network().nodes]
    ['H', 'X']
    """

    initial: NDArray
    transitions: NDArray
    emissions: Emissions
    groups_of_neighbours: ClassVar[bool] = True  # as_network(feature_of=)
    fills_missing: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.emissions, DiscreteEmissions | GaussianEmissions):
            object.__setattr__(self, "emissions", DiscreteEmissions(np.asarray(self.emissions)))
        chain = MarkovChain(self.initial, self.transitions)
        p, K = len(chain.transitions) + 1, len(chain.initial)
        if self.emissions.shape != (p, K):
            raise InputError(
                f"emissions are for {self.emissions.shape[0]} sites and {self.emissions.shape[1]} states: "
                f"the chain has {p} and {K}."
            )
        object.__setattr__(self, "initial", chain.initial)
        object.__setattr__(self, "transitions", chain.transitions)

    def say(self, names: Sequence[str] | None = None) -> str:
        """Sentence that says what P^X is."""
        p, K = self.emissions.shape
        kind = "symbols" if isinstance(self.emissions, DiscreteEmissions) else "numbers (Gaussian given the state)"
        return f"P^X is a hidden Markov model of {kind} along {p} columns, in their order, with {say_states(K)}."

    @kept_per_how
    def as_network(
        self, *, hidden_knockoff: str = "copy", feature_of: ArrayLike | None = None, n_jobs: int | None = None
    ) -> BayesianNetwork:
        """H -> X, with H drawn by forward filtering and backward sampling.

        Parameters
        ----------
        hidden_knockoff : {"copy", "posterior"}
            How the hidden chain moves; both are valid, see the head of this file.
        feature_of : array of int, shape (p,), optional
            Groups of neighbouring sites, 0, ..., 0, 1, ..., 1, 2, ...: knockoffs are then exchangeable under swaps of
            whole groups, and lie further from X ("copy"). One site a group if left out.
        n_jobs : int, optional
            Threads that share the rows; the draws do not depend on it.
        """
        jobs = n_jobs or 1
        groups = None if feature_of is None else np.asarray(feature_of)
        chain = move_chain(MarkovChain(self.initial, self.transitions, jobs), hidden_knockoff, groups)
        H = Node("H", parents=(), conjugate=chain)
        X = Node("X", ("H",), EmissionConjugate(self.emissions, jobs), columns=range(self.emissions.shape[0]))
        sample_hidden = partial(self._sample_hidden, n_jobs=jobs)
        return BayesianNetwork((H, X), sample_hidden, groups)  # type: ignore[arg-type]

    def _sample_hidden(self, X: NDArray, rng: Generator, *, n_jobs: int) -> dict[str, NDArray]:
        return {"H": sample_states(self, X, rng, n_jobs)}

    def fill(self, X: NDArray, rng: Generator) -> NDArray:
        """X with its missing cells (NaN) drawn given those that are seen."""
        return fill_missing(self.as_network(), X, rng)

    def log_density(self, X: NDArray) -> NDArray:
        """Log P(X) of every row, shape (n,), exactly; missing cells are summed out."""
        return log_likelihood(self, X)

    def sample(self, n: int, rng: Generator) -> NDArray:
        """Draw n sequences, shape (n, p)."""
        H = np.empty((n, self.emissions.shape[0]), np.int32)
        law = np.broadcast_to(self.initial, (n, len(self.initial)))
        for j in range(H.shape[1]):
            H[:, j] = sample_weights(law, rng)
            law = self.transitions[j][H[:, j]] if j + 1 < H.shape[1] else law
        return self.emissions.draw(H, rng)

    def conditional(self, j: int, X: NDArray, rng: Generator, n_draws: int) -> NDArray:
        """Draws of X_j given the other sites of each row, shape (n_draws, n), exactly."""
        law = state_given_others(self, j, X)
        H = sample_weights(np.tile(law, (n_draws, 1)), rng)
        return self.emissions.draw_site(j, H, rng).reshape(n_draws, len(X))


def move_chain(chain: Chain, hidden_knockoff: str, groups: NDArray | None) -> Conjugate:
    """Conjugate of a hidden chain: its copy, site by site or in groups, or the chain itself."""
    if hidden_knockoff not in HIDDEN_KNOCKOFFS:
        raise unknown_option("hidden_knockoff", hidden_knockoff, HIDDEN_KNOCKOFFS)
    if hidden_knockoff == "posterior":
        return Identity()
    return chain if groups is None else GroupedChain(chain, groups)


def from_hmmlearn(model: BaseHMM, n_sites: int) -> HiddenMarkov:
    """HiddenMarkov of a fitted hmmlearn CategoricalHMM or one-dimensional GaussianHMM, for sequences of n_sites.

    >>> from types import SimpleNamespace
    >>> coin = SimpleNamespace(startprob_=[1.0], transmat_=[[1.0]], emissionprob_=[[0.5, 0.5]])
    >>> from_hmmlearn(coin, 3).emissions.shape
    (3, 1)
    """
    initial, step = np.asarray(model.startprob_), np.asarray(model.transmat_)
    transitions = np.tile(step, (n_sites - 1, 1, 1))
    if hasattr(model, "emissionprob_"):
        table = np.tile(np.asarray(model.emissionprob_), (n_sites, 1, 1))
        return HiddenMarkov(initial, transitions, DiscreteEmissions(table))
    if not hasattr(model, "means_") or np.shape(model.means_)[1] != 1:
        raise InputError(
            f"{type(model).__name__} cannot be used: expected a CategoricalHMM, or a GaussianHMM with one feature."
        )
    sds = np.sqrt(np.asarray(model.covars_).reshape(len(initial)))
    emissions = GaussianEmissions(np.tile(model.means_[:, 0], (n_sites, 1)), np.tile(sds, (n_sites, 1)))
    return HiddenMarkov(initial, transitions, emissions)
