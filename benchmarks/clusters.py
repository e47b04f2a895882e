"""Rows that belong together: clusters declared, and ignored.

``python -m benchmarks.clusters [--quick]`` writes results/clusters.csv: FDR and power with standard errors.
Half of the features are constant within clusters, or none; y has an effect of its own for each cluster.
"""

from __future__ import annotations

import numpy as np

from benchmarks.study import run_study
from knockoffs import KnockoffSelector

WAYS = {"ignored": None, "n_draws=1": 1, "n_draws=5": 5}


def simulate(n_clusters: int, size: int, n_constant: int, d: int, n_true: int, rng: np.random.Generator):
    """X, y, the cluster of each row and the features that matter; the first features are constant within clusters."""
    cluster = np.repeat(np.arange(n_clusters), size)
    X = rng.normal(size=(n_clusters * size, d))
    X[:, :n_constant] = rng.normal(size=(n_clusters, n_constant))[cluster]
    true = rng.choice(d, n_true, replace=False)
    y = 0.3 * X[:, true].sum(axis=1) + rng.normal(size=n_clusters)[cluster] + 0.5 * rng.normal(size=len(X))
    return X, y, cluster, set(true.tolist())


def once(method: str, size: int, constant: str, way: str, seed: int, q: float = 0.1) -> tuple[float, float]:
    """Share of false discoveries, and power."""
    d, n_true = (15, 3) if method == "conditional_test" else (40, 12)
    X, y, cluster, true = simulate(
        200, size, d // 2 if constant == "half" else 0, d, n_true, np.random.default_rng(seed)
    )
    given = {} if WAYS[way] is None else {"clusters": cluster, "n_draws": WAYS[way]}
    options = {"feature_model": "gaussian", "estimator": "lasso", "resolution": "columns", "verdict": False}
    selector = KnockoffSelector(q, method=method, random_state=seed, **options, **given).fit(X, y)
    found = set(np.flatnonzero(selector.selection_.selected).tolist())
    return len(found - true) / max(len(found), 1), len(found & true) / n_true


if __name__ == "__main__":
    settings = {
        "method": ["knockoffs", "conditional_test"],
        "rows per cluster": [2, 5, 20],
        "constant": ["half", "none"],
        "clusters": list(WAYS),
    }
    run_study("clusters", once, settings, __doc__)
