"""Are smooth columns left as they are or taken by their normal scores? Held-out rows decide, for the whole table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.features.em import Mixture, one_component, search_mixture
from knockoffs.features.latent.kinds import fit_both
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
    the density in the units of X. Where a single class is enough in their own units, and one of normal scores is not
    as likely, no further ones of these are looked for: classes of normal scores cannot make a Gaussian likelier. A
    missing cell holds a value drawn from its column, the same in both.

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
    out = np.arange(size) % HELD_OUT == 0
    train, held = Z[~out], Z[out]
    scored, in_own = fit_both(train, ["continuous"] * len(smooth))
    if any(margin.n_coordinates == 0 for margin in (*scored, *in_own)):
        return False, {}
    L, S = read_cells(in_own, train).start, read_cells(scored, train).start
    found = _classes(L, streams[0], n_jobs)
    values = {"affine": _log_density(in_own, L, found, held)}
    values["normal scores"] = _log_density(scored, S, one_component(S), held)
    if found.n_components > 1 or values["affine"] < values["normal scores"]:  # else one Gaussian is the best of them
        values["normal scores"] = _log_density(scored, S, _classes(S, streams[1], n_jobs), held)
    return values["affine"] >= values["normal scores"], values


def _classes(L: NDArray, rng: Generator, n_jobs: int | None) -> Mixture:
    """Mixture of as many classes as the rows ask for."""
    tried = candidates_for(*L.shape)
    if len(tried) == 1:
        return one_component(L)
    return search_mixture(L, tried, criterion="held_out", settle=shrink_mixture, rng=rng, n_jobs=n_jobs)[0]


def _log_density(margins: Sequence[Margin], L: NDArray, mixture: Mixture, held: NDArray) -> float:
    """Mean log density of held rows of X under the mixture that was fitted to the points L of the others."""
    slopes = sum((margin.log_slope(held[:, j]) for j, margin in enumerate(margins)), np.zeros(len(held)))
    return float(np.mean(shrink_mixture(L, mixture).log_density(read_cells(margins, held).start) + slopes))
