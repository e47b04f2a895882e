"""Figures 2 and 3 of the paper with the default P^X in place of a mixture of known size.

    PYTHONPATH=src python benchmarks/figures_default.py results --repetitions 100 --minutes 60 --jobs 2

``--figures 2,3,real``: ``3`` is panels a to c, ``real`` panels d to f, on at most 10,000 rows of each real table.

The data are those of ``knockoffs reproduce fig2`` and ``fig3``, by the same streams; the default is not told how many
components there are. What is done of Figure 3 is kept, and a second run goes on from it. One line of
``figures_default.csv`` a figure, score and level. Needs PyTorch for Figure 3.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  (threads are set first)
from numpy.random import Generator  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from knockoffs.draws import score_swapped  # noqa: E402
from knockoffs.errors import InputError  # noqa: E402
from knockoffs.experiments import SEED  # noqa: E402
from knockoffs.experiments import need_for_mixtures as fig2  # noqa: E402
from knockoffs.experiments import power as fig3  # noqa: E402
from knockoffs.experiments.repetitions import Job, Prepared, power_rows, score_jobs, statistics  # noqa: E402
from knockoffs.experiments.runner import Context, Row, csv_content, stamped  # noqa: E402
from knockoffs.features.source import FittedSampler, knockoff_source  # noqa: E402
from knockoffs.importance.scores import Scores  # noqa: E402
from knockoffs.sampling.pair import Pair  # noqa: E402
from knockoffs.sampling.sampler import KnockoffSampler  # noqa: E402
from knockoffs.simulate import (  # noqa: E402
    Simulation,
    simulate_labels,
    simulate_mixture,
    simulate_three_components,
)
from knockoffs.table.table import read_table  # noqa: E402

LEVELS = (0.1, 0.2)
ROUND = 6  # repetitions of every panel before any has more
N_ROWS = 10_000  # of a real table, drawn at random


def fitted(X: NDArray, rng: Generator) -> FittedSampler:
    """Fit the default P^X."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return knockoff_source("auto")(read_table(X), rng=rng)


def one_of_fig2(config: fig2.Config, rng: Generator) -> NDArray:
    """Z and Z_tilde of one table of Figure 2."""
    data_rng, _, stream = rng.spawn(3)
    data = simulate_three_components(config.n, rng=data_rng)
    fit_rng, draw_rng, swap_rng = stream.spawn(3)
    pair = fitted(data.X, fit_rng).sampler.sample(data.X, draw_rng)

    def score(pairs: Sequence[Pair]) -> list[Scores]:
        return [Scores.of(fig2.logistic_coefficients(p.stacked, data.y, config.C)) for p in pairs]

    return score_swapped([pair], score, [swap_rng])[0].stacked


def rows_of_fig2(repetitions: int, end: float, context: Context) -> Iterator[list[Row]]:
    """Rows after every few tables."""
    from joblib import Parallel, delayed

    Z: list[NDArray] = []
    rngs = np.random.default_rng(SEED).spawn(repetitions)
    while len(Z) < repetitions and time.time() < end:
        some = rngs[len(Z) : len(Z) + (context.n_jobs or 1)]
        Z += Parallel(n_jobs=context.n_jobs)(delayed(one_of_fig2)(fig2.CONFIG, rng) for rng in some)
        W = statistics(np.stack(Z))
        truth = np.tile(np.arange(W.shape[1]) < 10, (len(W), 1))
        context.log(f"figure 2: {len(Z)} of {repetitions} repetitions")
        yield power_rows(W, truth, LEVELS, figure="2", score="logistic coefficients")


def prepare(simulate: Callable[..., Simulation], rng: Generator) -> Prepared:
    """One table of Figure 3 with knockoffs by the default P^X."""
    data_rng, fit_rng, draw_rng = rng.spawn(3)
    data = simulate(rng=data_rng)
    drawn = fitted(data.X, fit_rng).sampler.sample(data.X, draw_rng)
    return Prepared(data.X, drawn.X_tilde, data.y, data.non_nulls)


def rows_of_fig3(repetitions: int, end: float, context: Context) -> Iterator[list[Row]]:
    """Rows after every round of panels a to c."""
    config = fig3.CONFIG.synthetic
    streams = np.random.default_rng(SEED).spawn(2)[0].spawn(len(config.n_components))
    rngs = [stream.spawn(config.repetitions) for stream in streams]
    for done in range(ROUND, repetitions + ROUND, ROUND):
        rows: list[Row] = []
        for panel, count, own in zip("abc", config.n_components, rngs, strict=True):
            if time.time() > end:
                return
            simulate = partial(
                simulate_mixture,
                config.n,
                config.d,
                n_components=count,
                n_non_nulls=config.n_non_nulls,
                n_classes=10,
                spread=config.spread,
            )
            job = Job(
                f"auto-{count}", partial(prepare, simulate), own[: min(done, repetitions)], config.training, ROUND
            )
            rows += rows_of_panel(panel, job, context)
        yield rows


def rows_of_panel(panel: str, job: Job, context: Context) -> list[Row]:
    """Rows of one panel, a line for each score and level."""
    found = score_jobs([job], context)[job.name]
    truth = found["non_nulls"]
    each = (
        power_rows(statistics(found[score]), truth, LEVELS, figure=f"3{panel}", score=score) for score in fig3.SCORES
    )
    return [row for rows in each for row in rows]


def prepare_real(X: NDArray, sampler: KnockoffSampler, n_non_nulls: int, rng: Generator) -> Prepared:
    """Labels drawn on a real table, with knockoffs by the default P^X."""
    label_rng, draw_rng = rng.spawn(2)
    data = simulate_labels(X, n_classes=10, n_non_nulls=n_non_nulls, rng=label_rng)
    return Prepared(X, sampler.sample(X, draw_rng).X_tilde, data.y, data.non_nulls)


def rows_of_real(repetitions: int, end: float, context: Context) -> Iterator[list[Row]]:
    """Rows after every round of panels d to f, as far as the data are there; P^X is fitted once a table."""
    config, made = fig3.CONFIG.real, []
    streams = np.random.default_rng(SEED).spawn(2)[1].spawn(len(config.names))
    for panel, name, stream in zip("def", config.names, streams, strict=True):
        label_rng, feature_rng = stream.spawn(2)
        row_rng, fit_rng = feature_rng.spawn(2)
        try:
            data, rows = fig3.load_rows(name, N_ROWS, row_rng, context)
        except InputError as error:
            context.log(f"{name} is left out: {error}")
            continue
        X = fig3.standardised(data.X[rows])
        law = fitted(X, fit_rng)
        context.log(f"{name}: {' '.join(map(str, law.notes.values()))}")
        call = partial(prepare_real, X, law.sampler, config.n_non_nulls[name])
        made.append((panel, f"auto-{name}", call, label_rng.spawn(config.repetitions)))
    for done in range(ROUND, repetitions + ROUND, ROUND):
        found: list[Row] = []
        for panel, name, call, rngs in made:
            if time.time() > end:
                return
            found += rows_of_panel(
                panel, Job(name, call, rngs[: min(done, repetitions)], config.training, ROUND), context
            )
        yield found


FIGURES = {"2": rows_of_fig2, "3": rows_of_fig3, "real": rows_of_real}


def main() -> None:
    """Read the command line, and write the csv after every round."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--figures", default="2,3", help="of 2, 3 and real")
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=60.0, help="for each figure")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    done = list[Row]()
    context = Context("auto", given.jobs, given.out / "figures_default_chunks", None, stamped())
    for figure in given.figures.split(","):
        end, rows = time.time() + 60 * given.minutes, []
        for rows in FIGURES[figure](given.repetitions, end, context):
            (given.out / "figures_default.csv").write_bytes(csv_content([*done, *rows]))
        done += rows


if __name__ == "__main__":
    main()
