"""Covariates that drive y and the features: declared, tested as features, and left out of the table.

``python -m benchmarks.covariates [--quick]`` writes results/covariates.csv: FDR among the features and power.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from benchmarks.study import run_study
from knockoffs import KnockoffSelector

COVARIATES = ["age", "sex", "site"]
WAYS = {"declared": {"covariates": COVARIATES}, "tested": {}, "left out": {"drop": COVARIATES}}
STUDIES = {"knockoffs": (500, 40, 12), "conditional_test": (300, 15, 2)}  # rows, features, those that matter


def simulate(n: int, d: int, n_true: int, rng: np.random.Generator, *, effect: float = 0.25, drives: float = 0.5):
    """Frame of covariates and features that depend on them, y, and the names of the features that matter."""
    C = rng.normal(size=(n, 3))
    X = drives * C @ rng.normal(size=(3, d)) + rng.normal(size=(n, d))
    true = rng.choice(d, n_true, replace=False)
    y = X[:, true] @ (effect * rng.choice([-1, 1], n_true)) + 1.5 * C @ [1, -1, 1] + rng.normal(size=n)
    names = [f"x{j}" for j in range(d)]
    return pl.DataFrame(np.hstack([C, X]), schema=[*COVARIATES, *names]), y, {names[j] for j in true}


def once(method: str, way: str, seed: int, q: float = 0.1) -> tuple[float, float]:
    """Share of false discoveries among the features that are found, and power."""
    table, y, true = simulate(*STUDIES[method], np.random.default_rng(seed))
    selector = KnockoffSelector(
        q, feature_model="gaussian", estimator="lasso", method=method, verdict=False, random_state=seed, **WAYS[way]
    )
    found = set(selector.fit(table, y).selection_.selected_names) - set(COVARIATES)
    return len(found - true) / max(len(found), 1), len(found & true) / len(true)


if __name__ == "__main__":
    run_study("covariates", once, {"method": list(STUDIES), "covariates": list(WAYS)}, __doc__)
