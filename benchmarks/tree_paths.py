"""Time Swap and Swap Integral of tree ensembles, all 200 columns, ours against knockpy's, in one run.

Run from the root of the repository::

    PYTHONPATH=src python benchmarks/tree_paths.py                 # ours only
    PYTHONPATH=src python benchmarks/tree_paths.py --peer .benchmarks/knockpy/bin/python

The peer's environment is made by ``benchmarks/setup_peers.sh``. Everything is CPU time of one thread, the best of a
few, on the same data (n = 2000, d = 100); fitting and compilation are excluded. Ours is the exact integral to
lambda = 10; knockpy's is its own, a grid of ten points to lambda = 5. Before it is timed, ours is checked against plain
prediction at random lambdas; the exit status is 1 if it differs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
for variable in THREADS:
    os.environ[variable] = "1"

import numpy as np  # noqa: E402 - after the number of threads is set

PEER = """
import json, sys, time
import numpy as np
from knockpy.knockoff_stats import RandomForestStatistic
from sklearn.ensemble import RandomForestClassifier

data, n_trees = np.load(sys.argv[1]), int(sys.argv[2])
features = np.concatenate([data["X"], data["X_tilde"]], axis=1)
statistic = RandomForestStatistic()
statistic.inds = statistic.rev_inds = np.arange(features.shape[1])
statistic.model = RandomForestClassifier(n_trees, random_state=0).fit(features, data["y"])
seconds, zeros = {}, {}
for name in ("swap_feature_importances", "swap_path_feature_importances"):
    start = time.process_time()
    Z = getattr(statistic, name)(features, data["y"])
    seconds[name] = time.process_time() - start
    zeros[name] = float(np.mean(Z[: len(Z) // 2] == Z[len(Z) // 2 :]))
print(json.dumps([seconds, zeros]))
"""


def data(n: int = 2000, d: int = 100) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X, X_tilde = rng.normal(size=(2, n, d))
    return X, X_tilde, (X[:, :10].sum(axis=1) + rng.normal(size=n) > 0).astype(int)


def cpu(work: Callable[[], Any], repeats: int = 5) -> float:
    """CPU seconds of the fastest of some runs, after one that compiles."""
    work()
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def models(n_trees: int) -> dict[str, Any]:
    from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, HistGradientBoostingClassifier
    from sklearn.ensemble import RandomForestClassifier as Forest

    found = {
        f"forest of {n_trees}": Forest(n_trees, random_state=0),
        "forest of 10": Forest(10, random_state=0),
        f"extra trees, {n_trees}": ExtraTreesClassifier(n_trees, random_state=0),
        "gradient boosting, 100": GradientBoostingClassifier(random_state=0),
        "histogram boosting, 100": HistGradientBoostingClassifier(random_state=0),
    }
    try:
        from lightgbm import LGBMClassifier
        from xgboost import XGBClassifier
    except ImportError:
        return found
    return found | {"xgboost, 100": XGBClassifier(n_jobs=1), "lightgbm, 100": LGBMClassifier(n_jobs=1, verbose=-1)}


def differs(model: Any, XX: np.ndarray, XX_fake: np.ndarray, y: np.ndarray) -> float:
    """Largest difference to plain prediction, over ten features and some rows, at random lambdas."""
    from knockoffs.importance.paths.follow import BlackBoxPath, path_losses

    rows, columns = slice(0, 100), np.arange(0, 200, 20)
    still = np.ones(200, dtype=bool)
    still[columns] = False
    fake = np.where(still, XX, XX_fake)
    path = path_losses(model, XX[rows], fake[rows], y[rows], "log_loss")
    lams = np.random.default_rng(1).uniform(0, 10, size=4)
    return float(np.abs(path.at(lams) - BlackBoxPath(model, path.moves, path.loss).at(lams)).max())


def ours(n_trees: int) -> bool:
    from knockoffs.importance.paths.follow import path_losses

    X, X_tilde, y = data()
    XX, XX_fake = np.hstack([X, X_tilde]), np.hstack([X_tilde, X])
    right = True
    print(
        "| model | Swap, accuracy | Swap, log-loss | Swap Integral, accuracy | Swap Integral, log-loss | one predict |"
    )
    print("|---|---|---|---|---|---|")
    for name, model in models(n_trees).items():
        model.fit(XX, y)
        gap = differs(model, XX, XX_fake, y)
        right &= gap < (1e-5 if "xgboost" in name else 1e-10)
        times = [
            cpu(lambda model=model, loss=loss: path_losses(model, XX, XX_fake, y, loss).at(np.ones(1)))
            for loss in ("accuracy", "log_loss")
        ]
        times += [
            cpu(lambda model=model, loss=loss: path_losses(model, XX, XX_fake, y, loss).integral(0.0, 10.0, 21))
            for loss in ("accuracy", "log_loss")
        ]
        times.append(cpu(lambda model=model: model.predict(XX)))
        print(
            f"| {name} | " + " | ".join(f"{seconds:.3f}" for seconds in times) + f" | differs by {gap:.0e}", flush=True
        )
    return right


def peer(python: str, n_trees: int) -> None:
    X, X_tilde, y = data()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "data.npz"
        np.savez(table, X=X, X_tilde=X_tilde, y=y)
        for trees in (10, n_trees):
            done = subprocess.run(
                [python, "-W", "ignore", "-c", PEER, str(table), str(trees)],
                capture_output=True,
                text=True,
                env=os.environ | {"PYTHONPATH": ""},
                check=False,
            )
            if done.returncode:
                print(f"knockpy failed: {done.stderr.strip().splitlines()[-1]}")
                return
            seconds, zeros = json.loads(done.stdout.strip().splitlines()[-1])
            swap, path = seconds.values()
            share = next(iter(zeros.values()))
            print(f"knockpy, forest of {trees}: Swap {swap:.1f} s (W = 0 for {share:.0%}), Swap Integral {path:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description="Time Swap and Swap Integral of tree ensembles.")
    parser.add_argument("--peer", help="Python of an environment with knockpy")
    parser.add_argument("--trees", type=int, default=100)
    options = parser.parse_args()
    right = ours(options.trees)
    if options.peer:
        peer(options.peer, options.trees)
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
