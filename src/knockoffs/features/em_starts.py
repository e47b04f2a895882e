"""Where EM starts: a component split in two, two components merged, or the clusters of k-means."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.features.em_steps import Mixture, em_steps, mixture_of

TRIAL_STEPS = 5  # steps of EM that a split is tried with, on the rows of its component alone
LLOYD_STEPS = 20
CHANCE = 1e-3  # that components which are normal do not seem so
LEAST_TWO = 0.25  # skewness^2 + excess kurtosis^2 / 4 of two clusters that lie apart: at least 1 if they are points


def clusters_start(Z: NDArray, n_components: int, rng: Generator) -> Mixture:
    """Moments of the clusters of k-means: seeds far from one another (k-means++), then steps of Lloyd."""
    from sklearn.cluster import kmeans_plusplus

    centres, _ = kmeans_plusplus(Z, n_components, random_state=int(rng.integers(2**31)))
    before = np.full(len(Z), -1)
    for _ in range(LLOYD_STEPS):
        nearest = (Z @ centres.T - 0.5 * (centres**2).sum(axis=1)).argmax(axis=1)
        if np.array_equal(nearest, before):  # all further steps would be this one
            break
        members = np.eye(n_components, dtype=Z.dtype)[nearest]
        counts = members.sum(axis=0)[:, None]
        centres = np.where(counts > 0, members.T @ Z / np.maximum(counts, 1), centres)
        before = nearest
    return mixture_of(Z, members)


def split_start(Z: NDArray, mixture: Mixture, least: float) -> Mixture | None:
    """Split one component in two: the split that gains most on the rows of its component.

    A component is cut in half in four ways, each followed by a few steps of EM with two components.

    Parameters
    ----------
    Z : array, shape (n, d)
    mixture : Mixture
    least : float
        Rows that each half needs.

    Returns
    -------
    Mixture or None
        With one component more; None if every component has too few rows to split.
    """
    owner = mixture.log_joint(Z).argmax(axis=1)
    best, best_gain = None, -np.inf
    for k in range(mixture.n_components):
        rows = Z[owner == k]
        if len(rows) < 2 * least:
            continue
        whole = mixture_of(rows, np.ones((len(rows), 1)))
        before = whole.log_density(rows).sum()
        for half in _halves(rows, whole):
            pair, values = em_steps(rows, mixture_of(rows, np.column_stack([half, ~half])), TRIAL_STEPS)
            if values[-1] - before > best_gain and pair.weights.min() * len(rows) >= least / 2:
                best, best_gain = _replace(mixture, [k], pair), values[-1] - before
    return best


def _halves(rows: NDArray, whole: Mixture) -> list[NDArray]:
    """Four ways to cut the rows of one Gaussian in half, as masks.

    With z the whitened rows, the extreme eigenvectors of E[|z|^2 z z^T] are the directions of least and largest
    kurtosis: between two clusters of like size, and towards a small one, whatever the covariance hides. The radius
    |z| separates a wide component from a narrow one inside it, the first principal axis what lies far apart.
    """
    inverse, _ = whole.whiteners[0]
    centred = rows - whole.means[0].astype(rows.dtype)
    z = centred @ inverse.T.astype(rows.dtype)
    squares = np.einsum("ij,ij->i", z, z)
    weighted = z * np.sqrt(squares)[:, None]
    kurtosis = np.linalg.eigh((weighted.T @ weighted).astype(float))[1]
    principal = np.linalg.eigh(whole.covariances[0])[1][:, -1]
    least, most, principal = (v.astype(rows.dtype) for v in (kurtosis[:, 0], kurtosis[:, -1], principal))
    with np.errstate(invalid="ignore"):  # some kernels of BLAS read beyond the end of a float32 row, and flag it
        scores = (z @ least, z @ most, squares, centred @ principal)
    masks = [values > np.median(values) for values in scores]
    return [mask for mask in masks if 0 < mask.sum() < len(mask)]


def _replace(mixture: Mixture, old: list[int], new: Mixture) -> Mixture:
    """Put new components, with the weight of the old ones, in their place."""
    kept = np.delete(np.arange(mixture.n_components), old)
    return Mixture(
        np.concatenate([mixture.weights[kept], mixture.weights[old].sum() * new.weights]),
        np.concatenate([mixture.means[kept], new.means]),
        np.concatenate([mixture.covariances[kept], new.covariances]),
    )
