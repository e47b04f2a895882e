"""How many components, classes or states: AIC (the paper's choice), BIC or held-out likelihood."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np
from joblib import delayed
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import unknown_option
from knockoffs.machine.parallel import parallel_map
from knockoffs.progress import track

CRITERIA = ("aic", "bic", "held_out")
HELD_OUT = 0.2  # share of the rows that the held-out likelihood is measured on


class Judged(Protocol):
    """A fitted model of some order, as scikit-learn's mixtures are."""

    def aic(self, X: NDArray, /) -> float:
        """Akaike's criterion."""
        ...

    def bic(self, X: NDArray, /) -> float:
        """Schwarz's criterion."""
        ...

    def score(self, X: NDArray, /) -> float:
        """Mean log-likelihood of the rows."""
        ...


Ordered = TypeVar("Ordered", bound=Judged)


def choose_order(
    X: NDArray,
    candidates: Sequence[int],
    fit: Callable[[NDArray, int, Generator], Ordered],
    *,
    criterion: str,
    rng: Generator,
    n_jobs: int | None = None,
) -> tuple[Ordered, dict[int, float]]:
    """Fit every candidate and keep the one with the smallest criterion.

    Parameters
    ----------
    X : array, shape (n, d)
    candidates : sequence of int
    fit : callable
        ``(X, order, rng) -> model`` with methods ``aic``, ``bic`` and ``score`` (mean log-likelihood) of X.
    criterion : {"aic", "bic", "held_out"}
    rng : numpy.random.Generator
        Every candidate gets a child of its own, so the answer does not depend on n_jobs.

    Returns
    -------
    model, values : the fitted model, and the criterion of each candidate
    """
    if criterion not in CRITERIA:
        raise unknown_option("criterion", criterion, CRITERIA)
    streams = rng.spawn(len(candidates) + 1)
    if len(candidates) == 1:
        model = fit(X, candidates[0], streams[0])
        return model, {}
    held_out = streams[-1].permutation(len(X)) < HELD_OUT * len(X)
    rows = ~held_out if criterion == "held_out" else slice(None)

    def value(model: Ordered) -> float:
        if criterion == "held_out":
            return -2 * held_out.sum() * float(model.score(X[held_out]))
        return float(getattr(model, criterion)(X))

    tasks = (delayed(fit)(X[rows], k, stream) for k, stream in zip(candidates, streams, strict=False))
    work = parallel_map(tasks, n_jobs, threads=True)
    models = list(track(work, "fitting P^X", total=len(candidates)))
    values = [value(model) for model in models]
    best = int(np.argmin(values))
    model = fit(X, candidates[best], streams[best]) if criterion == "held_out" else models[best]
    return model, dict(zip(candidates, values, strict=True))
