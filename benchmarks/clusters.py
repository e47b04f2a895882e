"""Rows that belong together: clusters declared, and ignored.

``python -m benchmarks.clusters`` prints the table of docs/repeated_rows.md: FDR and power with standard errors. Half
of the features are constant within clusters; y has an effect of its own for each cluster.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from knockoffs import KnockoffSelector

WAYS = {"ignored": None, "n_draws=1": 1, "n_draws=5": 5}


def simulate(n_clusters: int, size: int, d: int, n_true: int, rng: np.random.Generator, effect: float = 0.3):
    """X, y, the cluster of each row and the features that matter; the first half of the features is constant."""
    cluster = np.repeat(np.arange(n_clusters), size)
    X = rng.normal(size=(n_clusters * size, d))
    X[:, : d // 2] = rng.normal(size=(n_clusters, d // 2))[cluster]
    true = rng.choice(d, n_true, replace=False)
    y = effect * X[:, true].sum(axis=1) + rng.normal(size=n_clusters)[cluster] + 0.5 * rng.normal(size=len(X))
    return X, y, cluster, set(true.tolist())


def once(method: str, n_draws: int | None, size: int, seed: int, q: float = 0.1) -> tuple[float, float]:
    """Share of false discoveries, and power."""
    d, n_true = (15, 3) if method == "conditional_test" else (40, 12)
    X, y, cluster, true = simulate(200, size, d, n_true, np.random.default_rng(seed))
    given = {} if n_draws is None else {"clusters": cluster, "n_draws": n_draws}
    options = {"feature_model": "gaussian", "estimator": "lasso", "resolution": "columns", "verdict": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector = KnockoffSelector(q, method=method, random_state=seed, **options, **given).fit(X, y)
    found = set(np.flatnonzero(selector.selection_.selected).tolist())
    return len(found - true) / max(len(found), 1), len(found & true) / n_true


def measured(method: str, way: str, size: int, repetitions: int = 40) -> tuple[NDArray, NDArray]:
    """Means over repetitions, and their standard errors."""
    found = np.array([once(method, WAYS[way], size, seed) for seed in range(repetitions)])
    return found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(repetitions)


def main() -> None:
    """Print the table."""
    print("| method | rows per cluster | clusters | FDR | power |\n|---|---|---|---|---|")
    for method in ("knockoffs", "conditional_test"):
        for size in (2, 10):
            for way in WAYS:
                (fdr, power), (fdr_error, power_error) = measured(method, way, size)
                said = f"{fdr:.3f} ± {fdr_error:.3f} | {power:.2f} ± {power_error:.2f}"
                print(f"| {method} | {size} | {way} | {said} |", flush=True)


if __name__ == "__main__":
    main()
