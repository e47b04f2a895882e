"""Algorithm 1: knockoffs of the observed leaves of a Bayesian network, in one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.sampling.copies import Copies
from knockoffs.sampling.network import BayesianNetwork
from knockoffs.sampling.pair import Pair


def sample_knockoffs(network: BayesianNetwork, X: NDArray, rng: Generator) -> NDArray:
    """Sample knockoffs of X under a Bayesian network (Algorithm 1).

    The hidden nodes are drawn from P(H | O); then every node, in topological order, moves by its exchangeable
    conjugate given its Markov blanket, in which the nodes visited before already hold their new values.

    Parameters
    ----------
    network : BayesianNetwork
    X : array, shape (n, n_columns)
    rng : numpy.random.Generator

    Returns
    -------
    array, shape (n, n_columns)
        X_tilde, exchangeable with X in every feature if X follows the network (Theorem 3.2).
    """
    X = X if hasattr(X, "dtype") else np.asarray(X)  # a data frame, or lists
    values = network.read(X) | network.draw_hidden(X, rng)  # X_O, and X_H ~ P(H | O)
    for node in network.nodes:  # topological order
        blanket = network.blanket(node, values)  # visited nodes hold X_tilde, the others X
        values[node.name] = node.conjugate.sample(values[node.name], blanket, rng)
    return network.write(values, X.dtype, len(X))


class KnockoffSampler(Protocol):
    """Where knockoffs come from, once P^X is settled: a network, a latent model, knockoffs that were brought along."""

    @property
    def feature_of(self) -> NDArray[np.intp]:
        """Feature of each column: knockoffs are exchangeable under swaps of whole features."""
        ...

    def sample(self, X: NDArray, rng: Generator) -> Pair:
        """Draw knockoffs of the rows of X; missing cells (NaN) come back filled where the sampler can draw them."""
        ...


@dataclass(frozen=True)
class NetworkSampler:
    """Knockoffs by Algorithm 1.

    Parameters
    ----------
    network : BayesianNetwork
    fill : callable, optional
        ``(X, rng) -> X``, which draws the missing cells beforehand, where the law can.
    """

    network: BayesianNetwork
    fill: Callable[[NDArray, Generator], NDArray] | None = None

    @property
    def feature_of(self) -> NDArray[np.intp]:
        """Feature of each column, as the network says."""
        return self.network.feature_of

    def sample(self, X: NDArray, rng: Generator) -> Pair:
        """X, completed where it can be, beside its knockoffs."""
        X = X if self.fill is None else self.fill(X, rng)
        return Pair(X, sample_knockoffs(self.network, X, rng), self.network.feature_of)

    def sample_several(self, X: NDArray, m: int, rng: Generator) -> Copies:
        """X beside m knockoffs of each feature, where the network has them."""
        from knockoffs.sampling.several import sample_several

        X = X if self.fill is None else self.fill(X, rng)
        return Copies((X, *sample_several(self.network, X, m, rng)), self.network.feature_of)
