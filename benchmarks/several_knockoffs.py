"""Several knockoffs of every feature by the option n_knockoffs: the AR 0.9 design with groups, and the smoothed design.

    python benchmarks/several_knockoffs.py OUTFOLDER MINUTES     # OUTFOLDER/several.csv, a row for each table and way
    python benchmarks/several_knockoffs.py OUTFOLDER 30 12       # twelve tables of each at most

The designs are those of ``benchmarks/groups.py``. Power is the share of groups with a signal that are selected, FDP the
share of selected groups without one.
"""

from __future__ import annotations

import csv
import os
import sys
import time
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  (threads are set first)
from joblib import Parallel, delayed  # noqa: E402
from scipy.linalg import toeplitz  # noqa: E402
from scipy.ndimage import gaussian_filter  # noqa: E402

from knockoffs import KnockoffSelector  # noqa: E402
from knockoffs.filter import filter_statistics  # noqa: E402
from knockoffs.table.auto_groups import auto_groups  # noqa: E402


def rows(selector, m, signals, label):
    """Give power and FDP over the groups at three levels, from one W."""
    selection, owners = selector.selection_, selector.selection_.pair.feature_of
    true = np.zeros(len(selection.W), dtype=bool)
    true[owners[signals]] = True
    out = []
    for fdr in (0.05, 0.1, 0.2):
        chosen = filter_statistics(selection.W, fdr, 1, m).selected
        power, fdp = (chosen & true).sum() / true.sum(), (chosen & ~true).sum() / max(1, chosen.sum())
        out.append({**label, "m": m, "fdr": fdr, "power": power, "fdp": fdp, "n_selected": int(chosen.sum())})
    return out


def fit(X, y, m, **options):
    """Fit a selector without a verdict; and CPU seconds."""
    start = time.process_time()
    selector = KnockoffSelector(0.2, n_knockoffs=m, method="knockoffs", verdict=False, n_jobs=1, **options).fit(X, y)
    return selector, round(time.process_time() - start, 2)


def ar(draw):
    """Fit one table of the AR design in every way."""
    n, p = 1000, 200
    rng = np.random.default_rng([1, draw])
    Sigma = toeplitz(0.9 ** np.arange(p))
    X = rng.standard_normal((n, p)) @ np.linalg.cholesky(Sigma).T
    signals = rng.choice(p, 10, replace=False)
    y = X[:, signals] @ rng.choice([-0.25, 0.25], 10) + rng.standard_normal(n)
    cut = auto_groups(np.corrcoef(X, rowvar=False), cut=0.5).feature_of
    found = []
    for groups, how in (("none", None), ("cut 0.5", cut), ("auto", "auto")):
        for law, model in (("known", Sigma), ("auto", "auto")):
            for estimator in ("lasso", None) if law == "known" else (None,):
                for m in (1, 5):
                    selector, seconds = fit(
                        X, y, m, feature_model=model, groups=how, estimator=estimator, random_state=draw
                    )
                    label = {
                        "design": "ar",
                        "draw": draw,
                        "groups": groups,
                        "law": law,
                        "estimator": estimator or "best",
                    }
                    label |= {"n_groups": len(selector.W_), "seconds": seconds}
                    found += rows(selector, m, signals, label)
    return found


def smooth(draw):
    """Fit one table of the smoothed design in every way."""
    rng = np.random.default_rng([3, draw])
    X = gaussian_filter(5 * rng.standard_normal((50, 50, 100)), 1.25).reshape(500, 500)
    signals = rng.choice(500, 50, replace=False)
    signal = X[:, signals].sum(axis=1)
    y = signal + rng.standard_normal(500) * signal.std() / np.sqrt(10)
    found = []
    for law in ("auto", "gaussian"):
        for m in (1, 2, 3, 5):
            selector, seconds = fit(X, y, m, feature_model=law, groups="auto", random_state=draw)
            label = {"design": "smooth", "draw": draw, "groups": "auto", "law": law, "estimator": "best"}
            label |= {"n_groups": len(selector.W_), "seconds": seconds}
            found += rows(selector, m, signals, label)
    return found


def work(design, draw, stop):
    """Fit one table, if there is time left."""
    if time.time() > stop:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {"ar": ar, "smooth": smooth}[design](draw)


def main():
    """Go through the tables until the time is over."""
    folder, minutes = Path(sys.argv[1]), float(sys.argv[2])
    draws = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    folder.mkdir(parents=True, exist_ok=True)
    stop = time.time() + 60 * minutes
    jobs = [(design, draw) for draw in range(draws) for design in ("smooth", "ar")]
    n_jobs = len(os.sched_getaffinity(0))
    with (folder / "several.csv").open("w", newline="") as file:
        writer = None
        done = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(delayed(work)(*job, stop) for job in jobs)
        for found in done:
            for row in found:
                if writer is None:
                    writer = csv.DictWriter(file, list(row))
                    writer.writeheader()
                writer.writerow(row)
            file.flush()


if __name__ == "__main__":
    main()
