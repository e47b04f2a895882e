"""Survival times: FDR and power, the naive treatments beside them; CPU seconds beside lifelines, scikit-survival.

``python -m benchmarks.survival [--quick]`` writes results/survival.csv; ``--seconds`` prints CPU seconds of fits.

The hazard is exponential and linear in the features that matter. "by features": six other features change when rows are
censored and nothing else, so that the event and the observed time depend on them. "months": times are rounded up, so
that most are tied. "entry": rows are seen from a later time on.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.study import run_study
from knockoffs import KnockoffSelector

STUDIES = {"knockoffs": (500, 40, 12), "conditional_test": (400, 15, 3)}  # rows, features, those that matter
DESIGNS = ["independent", "by features", "months", "entry"]
LATER = DESIGNS[2:]  # without naive treatments
WAYS = ["survival", "event, time a feature", "event, time dropped", "time as a number"]


def simulate(n: int, d: int, n_true: int, design: str, rng: np.random.Generator) -> tuple[Any, ...]:
    """X, time, event, time of entry, and the features that matter."""
    n_all = 4 * n if design == "entry" else n
    common = 0.5 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    X = rng.normal(size=(n_all, d)) @ np.linalg.cholesky(common).T
    true = rng.choice(d, n_true, replace=False)
    others = np.setdiff1d(np.arange(d), true)[:6]
    signal = X[:, true] * rng.choice([-1, 1], n_true)
    died = rng.exponential(np.exp(-0.4 * signal.sum(axis=1)))
    left = rng.exponential(1.5, n_all) * (np.exp(X[:, others].sum(axis=1)) if design == "by features" else 1.0)
    entry = rng.uniform(0, 0.5, n_all) if design == "entry" else np.zeros(n_all)
    seen = np.flatnonzero(np.minimum(died, left) > entry)[:n]
    time, event = np.minimum(died, left)[seen], (died <= left)[seen].astype(int)
    return X[seen], np.ceil(6 * time) if design == "months" else time, event, entry[seen], set(true.tolist())


def once(method: str, design: str, way: str, seed: int, q: float = 0.1) -> tuple[float, float]:
    """Share of false discoveries, and power."""
    X, time, event, entry, true = simulate(*STUDIES[method], design, np.random.default_rng(seed))
    y: Any = (time, event, entry) if design == "entry" else (time, event)
    if way != "survival":
        X, y = np.column_stack([X, time]) if way == "event, time a feature" else X, event
    if way == "time as a number":
        y = time
    options = {"feature_model": "gaussian", "resolution": "columns", "verdict": False, "method": method}
    fitted = KnockoffSelector(q, random_state=seed, **options).fit(X, y)
    found = set(np.flatnonzero(fitted.selection_.selected[: STUDIES[method][1]]).tolist())  # the time is not counted
    return len(found - true) / max(len(found), 1), len(found & true) / len(true)


def seconds() -> None:
    """Print CPU seconds of a path of 100 penalties with five folds, beside those packages that are installed."""
    from knockoffs.response.cox import CoxPathCV

    CoxPathCV().fit(np.eye(20), np.arange(1.0, 21))  # compiles
    print("| rows | columns | knockoffs | scikit-survival, path | lifelines, no penalty |\n|---|---|---|---|---|")
    for n, d in ((500, 50), (1000, 200), (3000, 300)):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, d))
        y = rng.exponential(np.exp(-0.4 * X[:, :10].sum(axis=1))) * rng.choice([-1, 1, 1], n)
        times = [_cpu(lambda X=X, y=y: CoxPathCV(random_state=0).fit(X, y)), _coxnet(X, y), _lifelines(X, y)]
        print(f"| {n} | {d} | " + " | ".join("-" if t is None else f"{t:.2f}" for t in times) + " |", flush=True)


def _cpu(work: Any) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _coxnet(X: NDArray, y: NDArray) -> float | None:
    try:
        from sksurv.linear_model import CoxnetSurvivalAnalysis
    except ImportError:
        return None
    target = np.array(list(zip(y > 0, np.abs(y), strict=True)), dtype=[("event", bool), ("time", float)])
    fold = np.arange(len(y)) % 5

    def walk() -> None:
        rows = [fold != k for k in range(5)]
        path = CoxnetSurvivalAnalysis(l1_ratio=1.0, n_alphas=100, alpha_min_ratio=1e-3).fit(X, target)
        for kept in rows:
            CoxnetSurvivalAnalysis(l1_ratio=1.0, alphas=path.alphas_).fit(X[kept], target[kept])

    return _cpu(walk)


def _lifelines(X: NDArray, y: NDArray) -> float | None:
    try:
        from lifelines import CoxPHFitter
    except ImportError:
        return None
    import pandas as pd

    frame = pd.DataFrame(X).assign(time=np.abs(y), event=y > 0)
    return _cpu(lambda: CoxPHFitter().fit(frame, "time", "event"))


if __name__ == "__main__":
    if "--seconds" in sys.argv:
        seconds()
    else:
        settings = {"method": list(STUDIES), "censoring": DESIGNS, "target": WAYS}
        run_study(
            "survival", once, settings, __doc__, leave_out=lambda _, design, way: design in LATER and way != WAYS[0]
        )
