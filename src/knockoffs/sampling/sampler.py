"""Algorithm 1: knockoffs of the observed leaves of a Bayesian network, in one pass."""

from __future__ import annotations

from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.sampling.network import BayesianNetwork


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
    values = network.read(X) | network.draw_hidden(X, rng)  # X_O, and X_H ~ P(H | O)
    for node in network.nodes:  # topological order
        blanket = network.blanket(node, values)  # visited nodes hold X_tilde, the others X
        values[node.name] = node.conjugate.sample(values[node.name], blanket, rng)
    return network.write(values, X.dtype)
