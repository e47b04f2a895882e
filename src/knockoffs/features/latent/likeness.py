"""Which of two fits gives knockoffs that are more like their columns: the verdict's checks, before there is a verdict.

Held-out rows say which P^X is nearer to the true one, all in all. Knockoffs under several classes are further from
their columns than under one, so that a fit may be nearer in this sense, and its knockoffs easier to tell from the
columns. The target is not looked at.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.diagnostics.margins import check_margins
from knockoffs.diagnostics.moments import check_moments
from knockoffs.diagnostics.scores import link_scores, pooled_ranks
from knockoffs.features.latent.model import LatentFeatures

MOST_ROWS = 2_000
CLEARLY = 1e-6  # p-value of knockoffs that are clearly not exchangeable
MUCH = 1.6  # times as far from exchangeable as they are must the simpler one be for classes to be kept all the same


def seems_worse(
    model: LatentFeatures, simple: LatentFeatures, X: NDArray, *, rng: Generator, n_jobs: int | None = None
) -> bool:
    """Whether the knockoffs of a model are clearly not exchangeable, and those of a simpler one not much less so."""
    row_stream, *streams = rng.spawn(5)
    rows = np.sort(row_stream.choice(len(X), min(len(X), MOST_ROWS), replace=False))
    p, t = against(model, X[rows], streams[0], streams[1], n_jobs)
    return p < CLEARLY and MUCH * t > against(simple, X[rows], streams[2], streams[3], n_jobs)[1]


def against(
    model: LatentFeatures, X: NDArray, draw_rng: Generator, check_rng: Generator, n_jobs: int | None = None
) -> tuple[float, float]:
    """P-value and statistic against the distributions of the columns and the links between them, the surer one."""
    pair = model.as_sampler(n_jobs=n_jobs).sample(X, draw_rng)
    names = [str(j) for j in range(pair.n_columns)]
    ranked = pooled_ranks(pair)
    links = link_scores(pair, model.kinds, ranked)
    checks = check_margins(pair, names, model.kinds, ranked), check_moments(pair, links, names, check_rng)
    surest = min(checks, key=lambda check: check.p_value)
    return surest.p_value, surest.statistic
