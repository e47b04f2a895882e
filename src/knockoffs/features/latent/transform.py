"""Are smooth columns left as they are or taken by their normal scores? Held-out rows decide, for the whole table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.features.em import search_mixture
from knockoffs.features.em_steps import mixture_of
from knockoffs.features.latent.kinds import fit_margins
from knockoffs.features.latent.margins import Affine, Margin, read_cells
from knockoffs.features.latent.pooling import shrink_mixture

TRIAL_ROWS = 2000  # rows of the comparison, or 30 for each column; a quarter of them are held out
TRIAL_COLUMNS = 100  # at most, drawn at random: what the two choices differ by is a mean over columns
HELD_OUT = 4
MOST_CLASSES = 10  # that are looked for at first; where these are the best, further ones
FURTHER = (12, 14, 17, 20, 24, 28, 34, 40)


def candidates_for(n: int, D: int) -> list[int]:
    """Numbers of classes that n rows allow: a class needs rows of its own, at least twice its dimension."""
    return list(range(1, max(1, min(MOST_CLASSES, n // (2 * (D + 1)))) + 1))


def further_candidates(n: int, D: int) -> list[int]:
    """Numbers of classes to go on with where the most of ``candidates_for`` is the best of them: it, and larger ones.

    >>> further_candidates(2000, 30), further_candidates(500, 30)
    ([10, 12, 14, 17, 20, 24, 28], [10])
    """
    return [MOST_CLASSES, *(k for k in FURTHER if k <= n // (2 * (D + 1)))]


def choose_transform(
    X: NDArray, in_units: Sequence[Margin], *, rng: Generator, n_jobs: int | None = None
) -> tuple[bool, dict[str, float]]:
    """Whether smooth continuous columns stay affine in L, and the mean held-out log density of both choices.

    A mixture of Gaussians is one in the columns' own units, and is none after normal scores; skewed columns are the
    other way round. Both are fitted to the smooth columns alone, with their own number of classes, and compared by
    the density in the units of X. A missing cell holds a value drawn from its column, the same in both.

    Parameters
    ----------
    X : array, shape (n, d)
    in_units : sequence of Margin
        Margins of the columns, affine where they are smooth.
    rng : numpy.random.Generator
    n_jobs : int, optional
    """
    smooth = np.array([j for j, margin in enumerate(in_units) if isinstance(margin, Affine)], dtype=np.intp)
    if not smooth.size:
        return False, {}
    sample_stream, fill_stream, *streams = rng.spawn(4)
    if len(smooth) > TRIAL_COLUMNS:
        smooth = np.sort(sample_stream.choice(smooth, TRIAL_COLUMNS, replace=False))
    size = min(len(X), max(TRIAL_ROWS, 30 * len(smooth)))
    Z = X[np.ix_(sample_stream.choice(len(X), size, replace=False), smooth)]
    for x in Z.T:
        missing = np.isnan(x)
        x[missing] = fill_stream.choice(x[~missing], missing.sum()) if not missing.all() else 0.0
    held = np.arange(size) % HELD_OUT == 0
    kept = ["continuous"] * len(smooth)
    values = {}
    for name, affine, stream in (("affine", True, streams[0]), ("normal scores", False, streams[1])):
        margins = fit_margins(Z[~held], kept, affine=affine)
        if any(margin.n_coordinates == 0 for margin in margins):
            return False, {}
        values[name] = float(np.mean(_log_density(margins, Z[~held], Z[held], stream, n_jobs)))
    return values["affine"] >= values["normal scores"], values


def _log_density(
    margins: Sequence[Margin], train: NDArray, held: NDArray, rng: Generator, n_jobs: int | None
) -> NDArray:
    """Log density of held rows under the mixture fitted to the points of the others."""
    L = read_cells(margins, train).start
    tried, found = candidates_for(*L.shape), mixture_of(L, np.ones((len(L), 1)))
    if len(tried) > 1:
        found, _ = search_mixture(L, tried, criterion="held_out", settle=shrink_mixture, rng=rng, n_jobs=n_jobs)
    mixture = shrink_mixture(L, found)
    slopes = sum((margin.log_slope(held[:, j]) for j, margin in enumerate(margins)), np.zeros(len(held)))
    return mixture.log_density(read_cells(margins, held).start) + slopes
