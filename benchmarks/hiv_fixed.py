"""HIV drug resistance with a fixed design: right and all selected positions, as Spector and Fithian count them.

    PYTHONPATH=src:. python -m benchmarks.hiv_fixed DATA [--draws 5] [--level 0.05]

Mutations that others determine are dropped. Means over draws of the knockoffs, and in how many draws a drug has an
answer; the 16 drugs of the published table hold three NNRTI, which are not among the data.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from benchmarks.data import DRUGS, TSM_POSITIONS, load_hiv, positions_of
from knockoffs import KnockoffSelector


def counts(drug: str, group: str, folder: Path, diagonal: str, seed: int, level: float) -> tuple[int, int]:
    """Positions that were selected and are treatment-selected, and all that were selected."""
    X, y = load_hiv(drug, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector = KnockoffSelector(
            level,
            feature_model="fixed",
            estimator="lasso",
            verdict=False,
            feature_model_options={"diagonal": diagonal},
            dependent="drop",
            random_state=seed,
        ).fit(X, y)
    at = np.unique(positions_of(X)[selector.get_support()])
    return int(np.isin(at, TSM_POSITIONS[group]).sum()), len(at)


def main() -> None:
    """Print right / all by class, drug and diagonal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--level", type=float, default=0.05)
    parser.add_argument("--diagonals", nargs="*", default=("maximum_entropy", "mvr"))
    options = parser.parse_args()
    for diagonal in options.diagonals:
        for group, drugs in DRUGS.items():
            found = np.array(
                [
                    [counts(drug, group, options.folder, diagonal, seed, options.level) for drug in drugs]
                    for seed in range(options.draws)
                ]
            )
            for drug, (right, every), answers in zip(
                drugs, found.mean(axis=0), (found[..., 1] > 0).sum(axis=0), strict=True
            ):
                print(f"{diagonal} {drug}: {right:.1f} / {every:.1f}; an answer in {answers} of {options.draws} draws")
            (right, every), spread = found.sum(axis=1).mean(axis=0), found.sum(axis=1).std(axis=0)
            print(f"{diagonal} {group}: {right:.1f} / {every:.1f} (sd over draws {spread[0]:.1f}, {spread[1]:.1f})")


if __name__ == "__main__":
    main()
