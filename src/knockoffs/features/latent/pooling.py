"""Correlations of several classes, each drawn towards what all classes have in common as far as held-out rows ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knockoffs.features.em_steps import Mixture
from knockoffs.features.shrinkage import PLENTY, held_out_intensity

SMALLEST = 1e-3  # standard deviation in a class, for rows in units of it
RIDGE = 1e-6  # of the common correlations, which are inverted


class Shrinkage(NamedTuple):
    """How far correlations are shrunk: 0 not at all, 1 all the way.

    Parameters
    ----------
    common : float
        The correlations that the classes have in common, towards none.
    own : tuple of float
        Those of each class, towards the common ones.
    """

    common: float
    own: tuple[float, ...]

    def __str__(self) -> str:
        said = [f"correlations shrunk by {self.common:.2g}"] if self.common > 0 else []
        if max(self.own) > 0:
            most = ", ".join(f"{a:.2g}" for a in self.own)
            said.append(f"those of the classes drawn towards the common ones by {most}")
        return ", ".join(said)


def choose_shrinkage(Z: NDArray, shares: NDArray, *, plenty: float = PLENTY) -> Shrinkage:
    """Shrinkage for which rows of each class have the largest likelihood given the other rows.

    A class of few rows cannot tell its correlations, but they are rarely far from those within the other classes: what
    it is drawn to is their average. Towards no correlation at all, knockoffs would lose the links between columns.

    Parameters
    ----------
    Z : array, shape (n, D)
    shares : array, shape (n, l)
        Share of each class in each row.
    plenty : float
        Rows a coordinate, from which on correlations are kept as they are.
    """
    (n, D), l = Z.shape, shares.shape[1]  # noqa: E741
    if D == 1 or (l == 1 and n >= plenty * D):
        return Shrinkage(0.0, (0.0,) * l)
    common, whole, average = 0.0, np.zeros((n, D) if n < plenty * D else 0), np.zeros((D, D))
    for share in shares.T:  # one class at a time: each has a copy of the rows
        z = _in_units(Z, share)
        if l > 1:
            average += (share[:, None] * z).T @ z
        if whole.size:
            z *= np.sqrt(share)[:, None]
            whole += z
    if whole.size:
        common = held_out_intensity(whole, np.ones(n))
    del whole, z
    if l == 1:
        return Shrinkage(common, (0.0,))
    rows, average = shares.sum(axis=0), average / n
    target = (1 - common) * average + (common + RIDGE) * np.eye(D)
    whiten = np.linalg.inv(np.linalg.cholesky(target)).T  # rows are draws, so the factor multiplies from the right
    own = [
        held_out_intensity(_in_units(Z, share) @ whiten, share) if total < plenty * D else 0.0
        for share, total in zip(shares.T, rows, strict=True)
    ]
    return Shrinkage(common, tuple(own))


def _in_units(Z: NDArray, share: NDArray) -> NDArray:
    """Rows in units of the deviations in a class."""
    z = Z - share @ Z / share.sum()
    z /= np.maximum(np.sqrt(share @ z**2 / share.sum()), SMALLEST)
    return z


def pool(weights: NDArray, covariances: NDArray, common: NDArray | float, own: Sequence[NDArray | float]) -> NDArray:
    """Covariances with their correlations drawn towards the average ones, variances kept, shape (l, D, D).

    Parameters
    ----------
    weights : array, shape (l,)
    covariances : array, shape (l, D, D)
    common : float or array, shape (D, D)
        What is left of the average correlations.
    own : sequence of float or of arrays, shape (D, D)
        What is left of the difference of each class to them.
    """
    sd = np.sqrt(np.maximum(np.einsum("kii->ki", covariances), 1e-12))
    correlations = covariances / (sd[:, :, None] * sd[:, None, :])
    average = np.einsum("k,kij->ij", weights / weights.sum(), correlations)
    target = np.where(np.eye(len(average), dtype=bool), average, common * average)
    pooled = np.stack([target + left * (R - target) for R, left in zip(correlations, own, strict=True)])
    return pooled * (sd[:, :, None] * sd[:, None, :])


def shrink_mixture(Z: NDArray, mixture: Mixture) -> Mixture:
    """Mixture with the moments of complete rows, its correlations shrunk as far as held-out rows ask for it."""
    shares = mixture.posterior(Z) if mixture.n_components > 1 else np.ones((len(Z), 1))
    rows = shares.sum(axis=0)
    found = choose_shrinkage(Z, shares)
    means = shares.T @ Z / rows[:, None]
    covariances = np.stack(
        [
            (centred * share[:, None]).T @ centred / share.sum()
            for centred, share in ((Z - mean, share) for mean, share in zip(means, shares.T, strict=True))
        ]
    )
    # a single class has nothing of its own beside what is common
    left = [1 - a for a in found.own] if mixture.n_components > 1 else [0.0]
    S = pool(rows, covariances, 1 - found.common, left)
    floor = RIDGE * np.einsum("kii->ki", S)[:, :, None] * np.eye(Z.shape[1])
    return Mixture(rows / rows.sum(), means, S + floor)
