"""Labels that have an order among the other columns: bands written as text, grades, months of a season.

A label as the argmax of utilities can be anything that is not too one-dimensional: utilities are pooled independent, so
that the two ends of a scale cannot be as far apart as they are. Where levels lie in a row, they are steps of one
coordinate, in an order that the other columns tell and the alphabet does not. Held-out rows decide for each column. The
target is not looked at, and the column stays nominal for whoever models y by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import eigh

from knockoffs.features.latent.chain import lay_out
from knockoffs.features.latent.margins import Margin, Ordered, fit_affine, fit_steps, read_cells
from knockoffs.features.latent.model import LatentFeatures, latent_features
from knockoffs.features.latent.nominal import Nominal
from knockoffs.features.latent.stochastic_em import fit_one_class, frame_of
from knockoffs.progress import track

MOST_ROWS = 6_000  # a third each to find the directions, to fit both, and to compare them
FEWEST_ROWS = 150
N_DIRECTIONS = 3  # of the other columns in which the levels differ most, at most
CLEARLY = 2.0  # standard errors by which held-out rows must be likelier in an order
SOME = 1e-6  # share of the variance of the levels' values that a direction must explain
N_DRAWS = 256  # of importance sampling for a density of utilities
RIDGE = 0.02  # share of its variance that is added to each other column


class Order(NamedTuple):
    """The levels of a nominal column in a row, and how much likelier held-out rows are by it: mean, standard error."""

    codes: NDArray
    gain: float
    error: float

    @property
    def clear(self) -> bool:
        """Whether it is taken."""
        return self.gain > CLEARLY * self.error


def with_orders(
    margins: Sequence[Margin], X: NDArray, *, rng: Generator
) -> tuple[tuple[Margin, ...], dict[int, Order]]:
    """Margins with steps for the nominal columns that have an order, and the orders of these.

    Parameters
    ----------
    margins : sequence of Margin
    X : array, shape (n, d)
        NaN where a cell is missing.
    rng : numpy.random.Generator
    """
    found = list(margins)
    orders: dict[int, Order] = {}
    columns = [j for j, margin in enumerate(margins) if isinstance(margin, Nominal)]
    row_stream, *streams = rng.spawn(1 + len(columns))
    for j, stream in track(list(zip(columns, streams, strict=True)), "orders of labels"):
        rows = np.flatnonzero(~np.isnan(X[:, j]))
        rows = row_stream.permutation(rows)[:MOST_ROWS]
        order = find_order(margins, X[rows], j, rng=stream) if len(rows) >= FEWEST_ROWS else None
        if order is not None and order.clear:
            orders[j] = order
            found[j] = in_order(X[:, j], order.codes)
    return tuple(found), orders


def in_order(x: NDArray, codes: NDArray) -> Ordered:
    """Set steps at the codes given, cut where the standard normal has their cumulated shares."""
    place = Ordered(codes, np.empty(0)).place(x[~np.isnan(x)])
    return Ordered(codes, fit_steps(place.astype(float)).cuts)


def find_order(margins: Sequence[Margin], X: NDArray, j: int, *, rng: Generator) -> Order | None:
    """Order of the levels of column j, of which every cell is seen; None where the other columns say nothing of it.

    The first third of the rows tells in which directions of the other columns the levels differ most; the order is
    theirs along the first of them.
    """
    margin = margins[j]
    assert isinstance(margin, Nominal)
    scores = read_cells(margins, X).start
    Z = scores[:, lay_out(margins).column_of != j]
    Z = Z[:, Z.std(axis=0) > 0]
    level = margin.place(X[:, j])
    part = np.arange(len(X)) % 3
    if not Z.shape[1] or any(len(np.unique(level[part == p])) < len(margin.codes) for p in range(3)):
        return None
    directions, values = _directions(Z[part == 0], level[part == 0], len(margin.codes))
    if not directions.shape[1]:
        return None
    S = Z @ directions
    codes = margin.codes[np.argsort(values, kind="stable")]
    table = np.column_stack([X[:, j], S])
    fit, held = table[part == 1], table[part == 2]
    around = [fit_affine(s) for s in fit[:, 1:].T]
    one, other = rng.spawn(2)
    steps = _model([in_order(X[:, j], codes), *around], fit, one).log_density(held)
    gain = steps - _model([margin, *around], fit, other).log_density(held, n_draws=N_DRAWS)
    return Order(codes, float(gain.mean()), float(gain.std() / np.sqrt(len(gain))))


def _directions(Z: NDArray, level: NDArray[np.intp], n_levels: int) -> tuple[NDArray, NDArray]:
    """Directions of Z, shape (n, D), in which levels differ most, shape (D, r), and their values along the first.

    Optimal scoring: values of the levels whose regression on Z explains the largest share of their variance.
    """
    Z = Z - Z.mean(axis=0)
    G = (level[:, None] == np.arange(n_levels)).astype(float)
    shares = G.mean(axis=0)
    G = G - shares
    C = Z.T @ G / len(Z)
    V = Z.T @ Z / len(Z)
    B = np.linalg.solve(V + RIDGE * np.diag(np.diagonal(V)), C)
    between = C.T @ B
    explained, theta = eigh((between + between.T) / 2, np.diag(shares))
    some = np.flatnonzero(explained > SOME)[::-1][:N_DIRECTIONS]
    return B @ theta[:, some], theta[:, -1]


def _model(margins: Sequence[Margin], X: NDArray, rng: Generator) -> LatentFeatures:
    """One class fitted to a small table."""
    fit = fit_one_class(read_cells(margins, X), frame_of(margins), a=0.0, rng=rng)
    return latent_features(margins, fit.weights, fit.means, fit.covariances, diagonal="equicorrelated")
