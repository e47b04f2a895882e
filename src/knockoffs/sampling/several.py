"""Several knockoffs of a row at once, any of which can change places with X, feature by feature.

Of a Gaussian row: any two of X, X_1, ..., X_m have covariance S - D. Of a network whose hidden nodes stay where they
were drawn: every leaf moves m times given them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cholesky

from knockoffs.errors import InputError
from knockoffs.sampling.conjugates.gaussian import GaussianLaw
from knockoffs.sampling.conjugates.identity import Identity
from knockoffs.sampling.copies import Copies
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL, solve_diagonal
from knockoffs.sampling.network import BayesianNetwork


@dataclass(frozen=True)
class SeveralGaussian:
    """N(mean, S) with the matrix D of m knockoffs, (m + 1) / m S - D positive definite.

    Given X, copy l is X - (X - mean) S^-1 D + e_l. The noises have covariance C + D each and C between two, with
    C = D - D S^-1 D, which need not be positive: e_l = e + u_l - mean(u), with u_l ~ N(0, D) and e ~ N(0, C + D / m).

    Parameters
    ----------
    mean : array, shape (d,)
    covariance : array, shape (d, d)
    D : array, shape (d, d)
        Block-diagonal over the features.
    m : int
    """

    mean: NDArray
    covariance: NDArray
    D: NDArray
    m: int

    @cached_property
    def slope(self) -> NDArray:
        """S^-1 D."""
        return np.linalg.solve(self.covariance, self.D)

    @cached_property
    def shared_factor(self) -> NDArray:
        """F with F F^T = C + D / m = F_D ((1 + 1 / m) I - F_D^T S^-1 F_D) F_D^T."""
        G = np.linalg.solve(cholesky(self.covariance, lower=True), self.own_factor)
        return self.own_factor @ cholesky((1 + 1 / self.m) * np.eye(len(G)) - G.T @ G, lower=True)

    @cached_property
    def own_factor(self) -> NDArray:
        """F with F F^T = D."""
        return cholesky(self.D, lower=True)

    def sample(self, X: NDArray, rng: Generator) -> NDArray:
        """Draw m knockoffs of every row, shape (m, n, d)."""
        centre = X - (X - self.mean) @ self.slope + rng.standard_normal(X.shape) @ self.shared_factor.T
        own = rng.standard_normal((self.m, *X.shape)) @ self.own_factor.T
        own -= own.mean(axis=0)
        own += centre
        return own


def several_of(law: GaussianLaw, m: int) -> SeveralGaussian:
    """Law of m knockoffs of a Gaussian whose D for one knockoff is known: (m + 1) / (2 m) of it.

    Feasible is D <= (m + 1) / m S, the condition for one knockoff with (m + 1) / (2 m) S in place of S; and every
    choice of D is in proportion to S.

    >>> law = GaussianLaw(np.zeros(2), np.eye(2), np.eye(2))
    >>> several_of(law, 5).D
    array([[0.6, 0. ],
           [0. , 0.6]])
    """
    return SeveralGaussian(law.mean, law.covariance, (m + 1) / (2 * m) * law.D, m)


def several_gaussian(
    mean: ArrayLike,
    covariance: ArrayLike,
    m: int,
    *,
    feature_of: ArrayLike | None = None,
    diagonal: str = DEFAULT_DIAGONAL,
) -> SeveralGaussian:
    """Law of m knockoffs of N(mean, S), with D as ``solve_diagonal`` finds it for (m + 1) / (2 m) S in place of S.

    Parameters
    ----------
    mean, covariance : array-like, shape (d,) and (d, d)
    m : int
        Knockoffs of every feature; the more, the nearer they are to it.
    feature_of : array-like of int, shape (d,), optional
        Groups of columns.
    diagonal : str
        Which matrix D.
    """
    if isinstance(m, bool) or not isinstance(m, int | np.integer) or m < 1:
        raise InputError(f"m={m!r}: expected a whole number of knockoffs, at least 1.")
    S = np.asarray(covariance, dtype=float)
    owners = None if feature_of is None else np.asarray(feature_of)
    D = solve_diagonal((m + 1) / (2 * m) * S, diagonal, owners)
    return SeveralGaussian(np.asarray(mean, dtype=float), S, D, int(m))


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


def draw_copies(sampler: object, X: NDArray, m: int, rng: Generator) -> Copies:
    """X beside m knockoffs of it, if the sampler can draw several."""
    if not hasattr(sampler, "sample_several"):
        raise InputError(
            f"n_knockoffs={m}: these knockoffs come one for each feature, and no more can be drawn. Use n_knockoffs=1."
        )
    return sampler.sample_several(X, m, rng)
