"""HIV drug resistance: one draw, e-values of several draws and the level chosen after looking, by class and level.

    PYTHONPATH=src python -m benchmarks.hiv_draws results --data-folder DATA --draws 20

A Gaussian P^X and the lasso, as many draws a drug as asked for, in disjoint groups of five. Right and all selected
mutations by distinct positions, added up over the drugs of a class: means over the groups. ``rows.jsonl`` has W's
selections drug by drug, and a drug that is there is not drawn again.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  (threads are set first)

from benchmarks.data import DRUGS, TSM_POSITIONS, class_of, load_hiv, positions_of  # noqa: E402
from knockoffs.features.source import knockoff_source  # noqa: E402
from knockoffs.filter.e_values import combine_draws  # noqa: E402
from knockoffs.importance.coefficients import coefficient_magnitude  # noqa: E402
from knockoffs.importance.statistic import ModelScore  # noqa: E402
from knockoffs.procedure import select_features  # noqa: E402
from knockoffs.response.linear import LassoPathCV  # noqa: E402

RULES = {"one draw": (1, "fixed"), "one draw, post-hoc": (1, "post_hoc")}
RULES |= {"5 draws, fixed": (5, "fixed"), "5 draws, post-hoc": (5, "post_hoc")}


def drug_rows(drug: str, n_draws: int, folder: Path) -> list[dict[str, object]]:
    """Right, all, empty and stated level of every rule and level, means over the groups of draws."""
    X, y = load_hiv(drug, folder)
    source = knockoff_source("gaussian")
    rng = np.random.default_rng([len(y), n_draws])
    W = []
    warnings.filterwarnings("ignore", "the Gaussian rests on")  # said of every drug: few rows for so many columns
    for stream in rng.spawn(n_draws):
        statistic = ModelScore(LassoPathCV(random_state=int(stream.integers(2**31))), coefficient_magnitude)
        W.append(select_features(X.to_numpy(float), y, knockoffs=source, statistic=statistic, rng=stream).W)
    at = positions_of(X)
    on = np.isin(at, TSM_POSITIONS[class_of(drug)])
    rows = []
    for name, (size, how) in RULES.items():
        for fdr in (0.05, 0.1):
            found = [combine_draws(W[i : i + size], fdr, how=how) for i in range(0, n_draws - size + 1, size)]
            right = [len(np.unique(at[one.selected & on])) for one in found]
            every = [len(np.unique(at[one.selected])) for one in found]
            stated = [one.stated for one in found if np.isfinite(one.stated)]
            row = {"drug": drug, "class": class_of(drug), "rule": name, "fdr": fdr, "draws": n_draws}
            row |= {"right": float(np.mean(right)), "all": float(np.mean(every))}
            row |= {"empty": float(np.mean(np.equal(every, 0))), "stated": float(np.mean(stated)) if stated else None}
            rows.append(row)
    return rows


def main() -> None:
    """Draw what is not there yet, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data-folder", type=Path)
    parser.add_argument("--draws", type=int, default=50)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / "rows.jsonl"
    there = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for drug in (drug for drugs in DRUGS.values() for drug in drugs):
        if drug in {row["drug"] for row in there}:
            continue
        rows = drug_rows(drug, options.draws, options.data_folder)
        there += rows
        with open(path, "a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        print(drug, flush=True)
    for group in DRUGS:
        for fdr in (0.05, 0.1):
            for rule in RULES:
                here = [r for r in there if (r["class"], r["fdr"], r["rule"]) == (group, fdr, rule)]
                sums = {key: sum(r[key] for r in here) for key in ("right", "all", "empty")}
                stated = [r["stated"] for r in here if r["stated"] is not None]
                counts = f"{sums['right']:6.1f} of {sums['all']:6.1f}, {sums['empty']:.2f} of {len(here)} empty"
                print(f"{group:5s} {fdr:4.2f} {rule:19s} {counts}, stated {min(stated):.3f} to {max(stated):.3f}")


if __name__ == "__main__":
    main()
