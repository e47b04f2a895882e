"""Several sites: discoveries that hold in all of three, or in two, beside a selection from all rows together.

    PYTHONPATH=src python -m benchmarks.environments [--quick]

60 Gaussian features, 300 rows a site: 15 matter in every site, 10 in the first two, 10 in the first alone. A discovery
is false if the feature matters in fewer sites than asked for; "pooled" is judged as if all were asked for. Level 0.1.
"""

from __future__ import annotations

import numpy as np

from benchmarks.study import run_study
from knockoffs import KnockoffSelector
from knockoffs.filter import false_discovery_proportion, power


def once(sites: str, signal: float, seed: int, size: int = 300, d: int = 60) -> tuple[float, float]:
    """Share of false discoveries, and power."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((3 * size, d))
    X[:, 1:] = 0.4 * X[:, :-1] + np.sqrt(0.84) * X[:, 1:]
    in_sites = rng.permutation(np.repeat([3, 2, 1, 0], [15, 10, 10, d - 35]))
    site = np.repeat(np.arange(3), size)
    effect = np.where(in_sites > site[:, None], signal, 0.0)
    y = (X * effect).sum(axis=1) + rng.standard_normal(3 * size)
    asked = 2 if sites == "at least 2" else 3
    given = {} if sites == "pooled" else {"environments": site, "min_environments": asked}
    options = {"feature_model": "gaussian", "estimator": "lasso", "method": "knockoffs", "verdict": False}
    found = KnockoffSelector(0.1, random_state=seed, **options, **given).fit(X, y).selection_.selected
    return false_discovery_proportion(found, in_sites >= asked), power(found, in_sites >= asked)


if __name__ == "__main__":
    run_study("environments", once, {"sites": ["all 3", "at least 2", "pooled"], "signal": [0.25, 0.5]}, __doc__)
