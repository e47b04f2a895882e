"""One draw, many draws at a fixed level, many draws and a level chosen after looking: power, FDR, variance.

    PYTHONPATH=src python benchmarks/derandomized.py draw --folder results --jobs 16   # long; can be restarted
    PYTHONPATH=src python benchmarks/derandomized.py table --folder results               # csv and a table, seconds
    PYTHONPATH=src python benchmarks/derandomized.py draw table --folder quick --quick    # minutes on one core

``draw`` leaves one file of W a data set, shape (draws, p), and skips the data sets that are there; every data set has a
seed of its own, so that the files do not depend on the order or the number of jobs. ``table`` reads them. The settings
are those of the derandomized knockoffs (Ren and Barber, 2024): X is AR(1) with correlation 0.5, P^X is known, every
(p / k)-th coefficient is N(amplitude, 1) / sqrt(n); and those of the level chosen after looking (Fischer and Sechidis).
The variance of a selection is the sum over the features of the variance of 1{selected} given the data, from
groups of draws that share none.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from dataclasses import dataclass
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  (threads are set first)
from joblib import Parallel, delayed  # noqa: E402
from scipy.linalg import toeplitz  # noqa: E402

from knockoffs.features.gaussian import gaussian_features  # noqa: E402
from knockoffs.features.given import GivenModel  # noqa: E402
from knockoffs.filter import false_discovery_proportion, knockoff_filter, power  # noqa: E402
from knockoffs.filter.bounds import pfer  # noqa: E402
from knockoffs.filter.e_values import combine_draws  # noqa: E402
from knockoffs.importance.coefficients import coefficient_magnitude  # noqa: E402
from knockoffs.importance.statistic import ModelScore  # noqa: E402
from knockoffs.procedure import select_features  # noqa: E402
from knockoffs.response.linear import LassoPathCV, LogisticPathCV  # noqa: E402
from knockoffs.table.target import as_target  # noqa: E402


@dataclass(frozen=True)
class Setting:
    """One row of settings; M draws make a selection, and every data set has ``groups`` times as many."""

    name: str
    n: int
    p: int
    k: int
    amplitudes: tuple[float, ...]
    fdr: float = 0.1
    M: int = 50
    groups: int = 2
    n_data: int = 100
    logistic: bool = False


FULL = [
    Setting("linear", 1000, 800, 80, (4, 5, 6, 8)),
    Setting("logistic", 1000, 600, 50, (10, 15, 20, 30), logistic=True),
    Setting("wide", 800, 1000, 100, (5, 6, 7, 8)),
    *[Setting(f"few_{k}", 250, 50, k, (2, 4, 6, 8, 10), fdr=0.2, M=10) for k in (1, 3, 5, 10, 15)],
    *[Setting(f"sparse_{k}", 1000, 800, k, (4, 6, 8), M=100, groups=1) for k in (20, 40)],
]
QUICK = [
    Setting("linear", 500, 200, 20, (4, 6), M=10, n_data=60),
    Setting("few_5", 250, 50, 5, (4, 8), fdr=0.2, M=10, n_data=60),
]


def draw(setting: Setting, amplitude: float, data: int, folder: Path, diagonal: str) -> str:
    """W of every draw of one data set, written to its file."""
    path = folder / f"{setting.name}_amp{amplitude:g}_{data:03d}.npz"
    if path.exists():
        return f"{path.name} is there"
    start = time.process_time()
    seed = np.random.SeedSequence([setting.n, setting.p, setting.k, round(100 * amplitude), data])
    rng = np.random.default_rng(seed)
    n, p = setting.n, setting.p
    covariance = toeplitz(0.5 ** np.arange(p))
    beta = np.zeros(p)
    beta[np.arange(setting.k) * (p // setting.k)] = rng.normal(amplitude, 1.0, size=setting.k) / np.sqrt(n)
    X = rng.normal(size=(n, p)) @ np.linalg.cholesky(covariance).T
    signal = X @ beta
    y = (rng.random(n) < 1 / (1 + np.exp(-signal))).astype(int) if setting.logistic else signal + rng.normal(size=n)
    model = gaussian_features(np.zeros(p), covariance, diagonal=diagonal)
    source = GivenModel(model)
    table = source.read(X)
    target = as_target(y, table, task="classification" if setting.logistic else "regression")
    W = []
    for stream in rng.spawn(setting.M * setting.groups):
        lasso = (LogisticPathCV if setting.logistic else LassoPathCV)(random_state=int(stream.integers(2**31)))
        statistic = ModelScore(lasso, coefficient_magnitude)
        W.append(select_features(table, target, knockoffs=source, statistic=statistic, rng=stream).W)
    part = path.with_suffix(".part.npz")
    np.savez_compressed(part, W=np.array(W), non_nulls=beta != 0)
    part.replace(path)  # a file is there whole or not at all
    return f"{path.name} {time.process_time() - start:.0f} s"


def rules(setting: Setting) -> dict[str, object]:
    """Return a function of the draws of one group, (M, p), for each rule: selection and stated level."""
    q = setting.fdr

    def combined(**how: object):
        def select(W):
            found = combine_draws(W, q, **how)
            return found.selected, found.stated

        return select

    return {
        "single": lambda W: (knockoff_filter(W[0], q), q),
        "single_post_hoc": lambda W: combined(how="post_hoc")(W[:1]),
        "fixed": combined(how="fixed"),
        "fixed_ren_barber": combined(how="fixed", stop="unreachable"),
        "fixed_plain": combined(how="fixed", stop="level"),
        "post_hoc": combined(how="post_hoc"),
        "five_fixed": lambda W: combined(how="fixed")(W[:5]),
        "five_post_hoc": lambda W: combined(how="post_hoc")(W[:5]),
        # of Ren, Wei and Candes: v negatives in every draw, features in half of the draws or more
        "pfer_1": lambda W: (np.mean([pfer(w, 1) for w in W], axis=0) >= 0.5, q),
        "pfer_2": lambda W: (np.mean([pfer(w, 2) for w in W], axis=0) >= 0.5, q),
    }


def summarise(setting: Setting, amplitude: float, folder: Path) -> list[dict[str, object]]:
    """One row a rule: means over the data sets, with their standard errors."""
    files = sorted(folder.glob(f"{setting.name}_amp{amplitude:g}_[0-9][0-9][0-9].npz"))
    rows = []
    for name, select in rules(setting).items():
        values = []
        for path in files:
            stored = np.load(path)
            non_nulls = stored["non_nulls"]
            # one draw at a time has as many repetitions as there are draws, at no cost: twenty are enough
            groups = stored["W"][:20, None] if name in ("single", "single_post_hoc") else _groups(stored["W"], setting)
            found = [select(W) for W in groups]
            chosen = np.array([selected for selected, _ in found])
            fdp = [false_discovery_proportion(selected, non_nulls) for selected in chosen]
            stated = [level for _, level in found]
            values.append(
                {
                    "power": np.mean([power(selected, non_nulls) for selected in chosen]),
                    "fdp": np.mean(fdp),
                    "fdp_over_level": np.mean(
                        [0.0 if f == 0 else f / level for f, level in zip(fdp, stated, strict=True)]
                    ),
                    "empty": np.mean(~chosen.any(axis=1)),
                    "stated": np.nanmean(stated) if np.isfinite(stated).any() else np.nan,
                    "variance": chosen.var(axis=0, ddof=1).sum() if len(chosen) > 1 else np.nan,
                }
            )
        if not values:
            continue
        row: dict[str, object] = {
            "setting": setting.name,
            "amplitude": amplitude,
            "rule": name,
            "data_sets": len(values),
        }
        for key in values[0]:
            column = np.array([value[key] for value in values])
            column = column[np.isfinite(column)]
            row[key] = round(float(column.mean()), 4) if column.size else ""
            if key in ("power", "fdp", "fdp_over_level"):
                row[f"{key}_se"] = round(float(column.std(ddof=1) / np.sqrt(len(column))), 4) if len(column) > 1 else ""
        rows.append(row)
    return rows


def _groups(W: np.ndarray, setting: Setting) -> np.ndarray:
    return W.reshape(-1, setting.M, W.shape[1])


def main() -> None:
    """Draw, then write and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", choices=("draw", "table"))
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="*", help="names of settings")
    parser.add_argument("--data-sets", type=int, help="at most so many of each setting")
    parser.add_argument("--diagonal", default="sdp", help="the paper uses the SDP")
    options = parser.parse_args()
    settings = [s for s in (QUICK if options.quick else FULL) if not options.only or s.name in options.only]
    options.folder.mkdir(parents=True, exist_ok=True)
    cases = [(s, amplitude) for s in settings for amplitude in s.amplitudes]
    if "draw" in options.what:
        work = [
            delayed(draw)(setting, amplitude, data, options.folder, options.diagonal)
            for data in range(options.data_sets or max(s.n_data for s in settings))  # all settings fill up together
            for setting, amplitude in cases
            if data < setting.n_data
        ]
        for done in Parallel(n_jobs=options.jobs, return_as="generator_unordered")(work):
            print(done, flush=True)
    if "table" in options.what:
        rows = [row for setting, amplitude in cases for row in summarise(setting, amplitude, options.folder)]
        if not rows:
            raise SystemExit(f"no draws in {options.folder}: run `draw` first.")
        with open(options.folder / "derandomized.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        for row in rows:
            print("  ".join(f"{value!s:>8}" for value in row.values()))


if __name__ == "__main__":
    main()
