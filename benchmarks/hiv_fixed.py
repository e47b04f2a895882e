"""HIV drug resistance with a fixed design: right and all selected positions at level 0.05, as Spector and Fithian do.

    PYTHONPATH=src:. python -m benchmarks.hiv_fixed DATA [--draws 5]

Mutations that others determine are dropped. Mean over draws of the knockoffs; the 16 drugs of the published table hold
three NNRTI, which are not among the data.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from benchmarks.data import DRUGS, TSM_POSITIONS, load_hiv, positions_of
from knockoffs import KnockoffSelector


def counts(drug: str, group: str, folder: Path, diagonal: str, seed: int) -> tuple[int, int]:
    """Positions that were selected and are treatment-selected, and all that were selected."""
    X, y = load_hiv(drug, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector = KnockoffSelector(
            0.05,
            feature_model="fixed",
            feature_model_options={"diagonal": diagonal},
            dependent="drop",
            random_state=seed,
        ).fit(X, y)
    at = np.unique(positions_of(X)[selector.get_support()])
    return int(np.isin(at, TSM_POSITIONS[group]).sum()), len(at)


def main() -> None:
    """Print right / all by class and diagonal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=5)
    options = parser.parse_args()
    for diagonal in ("maximum_entropy", "mvr"):
        for group, drugs in DRUGS.items():
            found = np.array(
                [
                    np.sum([counts(drug, group, options.folder, diagonal, seed) for drug in drugs], axis=0)
                    for seed in range(options.draws)
                ]
            )
            (right, every), spread = found.mean(axis=0), found.std(axis=0)
            print(
                f"{diagonal:16s} {group:5s} {right:.1f} / {every:.1f} (sd over draws {spread[0]:.1f}, {spread[1]:.1f})"
            )


if __name__ == "__main__":
    main()
