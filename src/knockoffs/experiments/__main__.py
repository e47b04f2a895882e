"""``python -m knockoffs.experiments NAME``: ``knockoffs reproduce NAME`` where typer is not installed."""

from __future__ import annotations

import argparse

from knockoffs.experiments import EXPERIMENTS, SEED, STUDIES, run_experiment


def main(arguments: list[str] | None = None) -> None:
    """Run the experiments that are named."""
    parser = argparse.ArgumentParser(prog="python -m knockoffs.experiments", description=__doc__)
    names = ", ".join((*EXPERIMENTS, *STUDIES))
    parser.add_argument("names", nargs="+", metavar="NAME", help=f"one or more of {names}, or all")
    parser.add_argument("--quick", action="store_true", help="minutes on two cores")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--out", default="results", help="folder for tables, figures, records and finished work")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--n-jobs", type=int, default=-1, help="jobs at a time; -1 is all cores")
    parser.add_argument("--data", help="folder of the real data sets (else KNOCKOFFS_DATA)")
    parser.add_argument("--archive", help="zip file for all tables, figures and records")
    parser.add_argument("--force", action="store_true", help="overwrite files that no earlier run wrote")
    options = parser.parse_args(arguments)
    for name in options.names:
        run_experiment(
            name,
            quick=options.quick,
            device=options.device,
            out=options.out,
            seed=options.seed,
            n_jobs=options.n_jobs,
            data_folder=options.data,
            archive=options.archive,
            force=options.force,
        )


if __name__ == "__main__":
    main()
