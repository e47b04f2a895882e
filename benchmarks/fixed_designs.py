"""Fixed designs beside models of the features: FDR and power for features that are not Gaussian, or no sample at all.

    PYTHONPATH=src python -m benchmarks.fixed_designs [--quick]

100 columns, 20 of which matter, y linear with Gaussian noise, level 0.1. "random walks": rows follow one another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.study import run_study
from knockoffs import KnockoffSelector
from knockoffs.filter import false_discovery_proportion, power

DESIGNS = ["AR(1) 0.5", "lognormal", "random walks"]


def features(design: str, n: int, rng: np.random.Generator, d: int = 100) -> NDArray:
    """Rows of X, columns of variance about 1."""
    if design == "random walks":
        X = np.cumsum(rng.standard_normal((n, d)), axis=0)
        return X / X.std(axis=0)
    Z = rng.standard_normal((n, d))
    for j in range(1, d):
        Z[:, j] = 0.5 * Z[:, j - 1] + np.sqrt(0.75) * Z[:, j]
    return Z if design == "AR(1) 0.5" else (np.exp(Z) - np.exp(0.5)) / 2.16


def once(design: str, n: int, feature_model: str, seed: int) -> tuple[float, float]:
    """Share of false discoveries, and power."""
    rng = np.random.default_rng([seed, n])
    X = features(design, n, rng)
    true = np.zeros(100, dtype=bool)
    true[rng.choice(100, 20, replace=False)] = True
    beta = np.where(true, rng.choice([-1.0, 1.0], 100), 0.0) * 4 / np.sqrt(n)
    if design == "random walks":
        beta *= 3
    y = X @ beta + rng.standard_normal(n)
    options = {"method": "knockoffs", "estimator": "lasso", "verdict": False, "random_state": seed}
    found = KnockoffSelector(0.1, feature_model=feature_model, **options).fit(X, y).selection_.selected
    return false_discovery_proportion(found, true), power(found, true)


if __name__ == "__main__":
    run_study(
        "fixed_designs",
        once,
        {"features": DESIGNS, "rows": [300, 150], "feature_model": ["fixed", "gaussian"]},
        __doc__,
    )
