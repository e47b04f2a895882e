"""Algorithm 1: knockoffs of the observed leaves of a Bayesian network, in one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.sampling.network import BayesianNetwork, Identity
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


def sample_several(network: BayesianNetwork, X: NDArray, m: int, rng: Generator) -> NDArray:
    """Draw m knockoffs of the rows of X under a network, shape (m, n, n_columns).

    The hidden nodes are drawn from P(H | O) and stay. Given them the leaves are independent, and each moves m times by
    its conjugate's ``several``: X and the m copies can change places feature by feature given H, and so without it.

    Raises
    ------
    InputError
        If a hidden node moves, or a leaf's conjugate has no ``several``: then one knockoff is all there is.
    """
    for node in network.nodes:
        able = isinstance(node.conjugate, Identity) if not node.observed else hasattr(node.conjugate, "several")
        if not able:
            raise InputError(
                f"n_knockoffs={m}: several knockoffs of a feature are not known for this P^X, whose node {node.name!r} "
                f"moves by {type(node.conjugate).__name__}. Use n_knockoffs=1, or another feature model; a chain "
                "can be kept where it is by feature_model_options={'hidden_knockoff': 'posterior'}."
            )
    values = network.read(X) | network.draw_hidden(X, rng)
    moved: list[dict[str, NDArray]] = [{} for _ in range(m)]
    for node in network.observed:
        copies = node.conjugate.several(values[node.name], network.blanket(node, values), m, rng)  # type: ignore[attr-defined]
        for one, copy in zip(moved, copies, strict=True):
            one[node.name] = copy
    return np.stack([network.write(one, X.dtype) for one in moved])


def draw_copies(network: BayesianNetwork, X: NDArray, rng: Generator, m: int) -> NDArray | list[NDArray]:
    """One knockoff of the rows of X by Algorithm 1, or m of them."""
    return sample_several(network, X, m, rng) if m > 1 else [sample_knockoffs(network, X, rng)]


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
    """Knockoffs by Algorithm 1."""

    network: BayesianNetwork
    # ``(X, rng) -> X``, which draws the missing cells beforehand, where the law can
    fill: Callable[[NDArray, Generator], NDArray] | None = None
    draws_several: ClassVar[bool] = True

    @property
    def feature_of(self) -> NDArray[np.intp]:
        """Feature of each column, as the network says."""
        return self.network.feature_of

    def sample(self, X: NDArray, rng: Generator, m: int = 1) -> Pair:
        """X, completed where it can be, beside m knockoffs of each feature."""
        X = X if self.fill is None else self.fill(X, rng)
        return Pair.of([X, *draw_copies(self.network, X, rng, m)], self.network.feature_of)


def draw_pair(sampler: KnockoffSampler, X: NDArray, rng: Generator, m: int = 1) -> Pair:
    """X beside m knockoffs of each feature; several only from a sampler that says so by ``draws_several``."""
    if m == 1:
        return sampler.sample(X, rng)
    if not getattr(sampler, "draws_several", False):
        raise InputError(
            f"n_knockoffs={m}: these knockoffs come one for each feature, and no more can be drawn. Use n_knockoffs=1."
        )
    return sampler.sample(X, rng, m)  # type: ignore[call-arg]
