"""``python -m paper``: every figure of the paper, its table, and the page about them (``make paper``)."""

from __future__ import annotations

import argparse
from pathlib import Path

from paper import FIGURES, SEED
from paper.page import write_page
from paper.runner import Context, run_figure

RESULTS = Path(__file__).parent / "results"


def main(arguments: list[str] | None = None) -> None:
    """Make the figures that are named, all of them by default, and the page."""
    parser = argparse.ArgumentParser(prog="python -m paper", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"figures, all by default: {', '.join(FIGURES)}")
    parser.add_argument("--quick", action="store_true", help="smallest settings: minutes on two cores")
    parser.add_argument("--out", type=Path, help="folder of the results: paper/results, or build/paper with --quick")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--device", default="auto", help="of the networks: auto, cpu or cuda")
    parser.add_argument("--jobs", type=int, default=-1, help="repetitions at a time; -1 is all cores")
    parser.add_argument("--data", help="folder of the real data sets (else KNOCKOFFS_DATA); see paper/data.py")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(FIGURES):
        parser.error(f"no such figure: {', '.join(sorted(unknown))}")
    out = options.out or (Path("build/paper") if options.quick else RESULTS)
    context = Context(options.device, options.jobs, Path("build/paper/kept"), options.data, verbose=1)
    for name in options.names or FIGURES:
        run_figure(name, context, out, quick=options.quick, seed=options.seed)
    page = RESULTS.parent / "README.md" if out == RESULTS else out / "README.md"
    write_page(out, page)
    print(page)


if __name__ == "__main__":
    main()
