"""Rows in the order of time: AR(1) columns and random walks, with the order declared, ignored, and differences.

``python -m benchmarks.ordered_rows [--quick]`` writes results/ordered_rows.csv. All columns, and the noise of y, are
AR(1) with the same coefficient; 1 is a random walk.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from benchmarks.study import run_study
from knockoffs import KnockoffSelector
from knockoffs.errors import InputError

STUDIES = {"knockoffs": (40, 12), "conditional_test": (15, 3)}  # features, those that matter
COEFFICIENTS = [0.5, 0.9, 1.0]
WAYS = ["ignored", "order", "order, n_draws=5", "differences, order"]


def walk(coefficient: float, n: int, d: int, rng: np.random.Generator) -> NDArray:
    """Independent AR(1) columns of variance 1, or random walks."""
    noise = rng.normal(size=(n, d))
    noise[1:] *= np.sqrt(1 - coefficient**2) if coefficient < 1 else 1.0
    return lfilter([1.0], [1.0, -coefficient], noise, axis=0)


def once(method: str, coefficient: float, way: str, seed: int, n: int = 1000, q: float = 0.1) -> tuple[float, float]:
    """Share of false discoveries, and power."""
    rng = np.random.default_rng(seed)
    d, n_true = STUDIES[method]
    X, true = walk(coefficient, n, d, rng), rng.choice(d, n_true, replace=False)
    y = 0.5 * X[:, true] @ rng.choice([-1, 1], n_true) + walk(coefficient, n, 1, rng)[:, 0]
    if way.startswith("differences"):
        X, y = np.diff(X, axis=0), np.diff(y)
    given = {} if way == "ignored" else {"order": np.arange(len(y)), "n_draws": 5 if way.endswith("5") else 1}
    options = {"feature_model": "gaussian", "estimator": "lasso", "resolution": "columns", "verdict": False}
    try:
        fitted = KnockoffSelector(q, method=method, random_state=seed, **options, **given).fit(X, y)
    except InputError as error:
        assert str(error).startswith("order: rows depend on one another"), error
        return np.nan, np.nan
    found, right = set(np.flatnonzero(fitted.selection_.selected).tolist()), set(true.tolist())
    return len(found - right) / max(len(found), 1), len(found & right) / n_true


if __name__ == "__main__":
    run_study("ordered_rows", once, {"method": list(STUDIES), "coefficient": COEFFICIENTS, "rows": WAYS}, __doc__)
