"""Covariates that drive y and the features: declared, tested as features, and left out of the table.

``python -m benchmarks.covariates`` prints the table of docs/covariates.md: FDR among the features and power, with
standard errors.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from knockoffs import KnockoffSelector

COVARIATES = ["age", "sex", "site"]
WAYS = {"declared": {"covariates": COVARIATES}, "tested": {}, "left out": {"drop": COVARIATES}}
STUDIES = {"knockoffs": (500, 40, 12), "conditional_test": (300, 15, 2)}  # rows, features, those that matter


def simulate(n: int, d: int, n_true: int, rng: np.random.Generator, *, effect: float = 0.25, drives: float = 0.5):
    """Frame of covariates and features that depend on them, y, and the names of the features that matter."""
    import pandas as pd

    C = rng.normal(size=(n, 3))
    X = drives * C @ rng.normal(size=(3, d)) + rng.normal(size=(n, d))
    true = rng.choice(d, n_true, replace=False)
    y = X[:, true] @ (effect * rng.choice([-1, 1], n_true)) + 1.5 * C @ [1, -1, 1] + rng.normal(size=n)
    names = [f"x{j}" for j in range(d)]
    return pd.DataFrame(np.hstack([C, X]), columns=[*COVARIATES, *names]), y, {names[j] for j in true}


def once(method: str, way: str, seed: int, q: float = 0.1) -> tuple[float, float]:
    """Share of false discoveries among the features that are found, and power."""
    table, y, true = simulate(*STUDIES[method], np.random.default_rng(seed))
    selector = KnockoffSelector(
        q, feature_model="gaussian", estimator="lasso", method=method, verdict=False, random_state=seed, **WAYS[way]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = set(selector.fit(table, y).selection_.selected_names) - set(COVARIATES)
    return len(found - true) / max(len(found), 1), len(found & true) / len(true)


def measured(method: str, way: str, repetitions: int = 40) -> tuple[NDArray, NDArray]:
    """Means over repetitions, and their standard errors."""
    found = np.array([once(method, way, seed) for seed in range(repetitions)])
    return found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(repetitions)


def main() -> None:
    """Print the table."""
    print("| method | covariates | FDR among the features | power |\n|---|---|---|---|")
    for method in STUDIES:
        for way in WAYS:
            (fdr, power), (fdr_error, power_error) = measured(method, way)
            print(f"| {method} | {way} | {fdr:.3f} ± {fdr_error:.3f} | {power:.2f} ± {power_error:.2f} |", flush=True)


if __name__ == "__main__":
    main()
