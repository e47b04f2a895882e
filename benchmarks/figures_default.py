"""Figures 2 and 3 of the paper with the default P^X in place of a mixture of known size.

    PYTHONPATH=src python -m benchmarks.figures_default --repetitions 100 --jobs 2

The data are those of ``paper/fig2.py`` and ``paper/fig3.py``, with the same streams; real tables have at most 10,000
rows. The default does not know how many components there are. Writes ``benchmarks/results/figures_default.csv``, one
line for each figure, score and level, and ``benchmarks/figures_default.md``; finished repetitions are kept.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from paper.data import LOADERS
from paper.mixtures import Simulation, simulate_three_components
from paper.page_sections import LABELS, at_level, markdown_table, plus_minus
from paper.repetitions import Job, Prepared, power_rows, score_jobs, statistics
from paper.runner import Context, Table, read_table, write_table
from paper.simulate import polynomial_labels, simulate_labels, simulate_mixture

from knockoffs import swap
from knockoffs.features.source import knockoff_source
from knockoffs.sampling.sampler import KnockoffSampler
from knockoffs.table.table import read_table as read_features
from paper import SEED, fig2, fig3

HERE = Path(__file__).parent
LEVELS = (0.1, 0.2)
N_ROWS = 10_000  # of a real table, drawn at random
REAL_PANELS = ("3d", "3e", "3f")


def fitted(X: NDArray, rng: Generator) -> KnockoffSampler:
    """Sampler of the default P^X."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return knockoff_source("auto")(read_features(X), rng=rng).sampler


def one_of_fig2(config: fig2.Config, rng: Generator) -> NDArray:
    """W of one table of Figure 2."""
    data_rng, _, stream = rng.spawn(3)
    data = simulate_three_components(config.n, rng=data_rng)
    fit_rng, draw_rng, swap_rng = stream.spawn(3)
    X_tilde = fitted(data.X, fit_rng).sample(data.X, draw_rng).X_tilde
    S = swap_rng.random(data.X.shape[1]) < 0.5
    Z = fig2.logistic_coefficients(np.hstack(swap(data.X, X_tilde, S)), data.y, config.C)
    return np.where(S, -1, 1) * statistics(Z[None])[0]


def rows_of_fig2(repetitions: int, context: Context) -> Table:
    """Rows of Figure 2."""
    rngs = np.random.default_rng(SEED).spawn(repetitions)
    W = np.stack(context.repeat(one_of_fig2, [(fig2.CONFIG, rng) for rng in rngs]))
    truth = np.tile(np.arange(W.shape[1]) < 10, (len(W), 1))
    return power_rows(W, truth, LEVELS, figure="2", score="logistic coefficients")


def prepare(simulate: Callable[..., Simulation], rng: Generator) -> Prepared:
    """One table of Figure 3 with knockoffs by the default P^X."""
    data_rng, fit_rng, draw_rng = rng.spawn(3)
    data = simulate(rng=data_rng)
    drawn = fitted(data.X, fit_rng).sample(data.X, draw_rng)
    return Prepared(data.X, drawn.X_tilde, data.y, data.non_nulls)


def prepare_real(X: NDArray, sampler: KnockoffSampler, n_non_nulls: int, rng: Generator) -> Prepared:
    """Labels drawn on a real table, with knockoffs by the default P^X, which is fitted once a table."""
    label_rng, draw_rng = rng.spawn(2)
    data = simulate_labels(X, n_classes=10, n_non_nulls=n_non_nulls, labels=polynomial_labels, rng=label_rng)
    return Prepared(X, sampler.sample(X, draw_rng).X_tilde, data.y, data.non_nulls)


def rows_of_fig3(repetitions: int, context: Context) -> Table:
    """Rows of panels a to f of Figure 3, as far as the data are there."""
    config, real = fig3.CONFIG.synthetic, fig3.CONFIG.real
    synthetic_rng, real_rng = np.random.default_rng(SEED).spawn(2)
    jobs = {}
    streams = synthetic_rng.spawn(len(config.n_components))
    for panel, count, stream in zip("abc", config.n_components, streams, strict=True):
        sizes = {"n_components": count, "n_non_nulls": config.n_non_nulls, "n_classes": 10, "spread": config.spread}
        simulate = partial(simulate_mixture, config.n, config.d, **sizes, labels=polynomial_labels)
        rngs = stream.spawn(config.repetitions)[:repetitions]
        jobs[panel] = Job(f"auto-{count}", partial(prepare, simulate), rngs, config.training)
    for panel, name, stream in zip("def", real.names, real_rng.spawn(len(real.names)), strict=True):
        label_rng, feature_rng = stream.spawn(2)
        row_rng, fit_rng = feature_rng.spawn(2)
        try:
            X = LOADERS[name](context.data_folder).X
        except FileNotFoundError as error:
            context.log(f"{name} is left out: {error}")
            continue
        rows = np.sort(row_rng.choice(len(X), size=min(N_ROWS, len(X)), replace=False))
        X = fig3.standardised(X[rows])
        call = partial(prepare_real, X, fitted(X, fit_rng), real.n_non_nulls[name])
        rngs = label_rng.spawn(real.repetitions)[:repetitions]
        jobs[panel] = Job(f"auto-{name}", call, rngs, real.training)
    found = score_jobs(list(jobs.values()), context)
    return [
        row
        for panel, job in jobs.items()
        for score in fig3.SCORES
        for row in power_rows(
            statistics(found[job.name][score]), found[job.name]["non_nulls"], LEVELS, figure=f"3{panel}", score=score
        )
    ]


# The page


def write_page(table: Table, page: Path) -> None:
    """Write FDR and power on the data of both figures as Markdown."""
    rows = [row | {"figure": str(row["figure"])} for row in table]
    lines = [
        "# Figures 2 and 3 of the paper with the default P^X",
        "",
        "The data are those of [the paper, reproduced](../paper/README.md). The default P^X does not know that there",
        "is a mixture. FDR and, after the slash, power at two targets.",
        "`python -m benchmarks.figures_default` makes this page again.",
    ]
    panels = {"Figure 2": ("2",), "Figure 3, panels a to c": ("3a", "3b", "3c"), "Figure 3, panels d to f": REAL_PANELS}
    for title, figures in panels.items():
        mine = [row for row in rows if row["figure"] in figures]
        lines += section(title, mine) if mine else []
    lines += [
        "In panels d to f the features are real and stay, so this is the FDR over labels and knockoffs alone. The",
        "default is no better a law of these columns than the mixtures of the paper, and a worse one for Bank: five of",
        "its ten numbers are those of a month, and four of these determine one another exactly, which ten classes do",
        "not hold. Given these ten columns, the selector uses conditional tests, whose level is held",
        "([real tables](real_tables.md)). In (e) and (f) missing cells were replaced by medians before P^X was fitted;",
        "it would have drawn them.",
    ]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def section(title: str, rows: Table) -> list[str]:
    """A table with a line for each score and two columns for each panel."""
    figures, scores = (list(dict.fromkeys(row[key] for row in rows)) for key in ("figure", "score"))
    held = sum(row["fdr"] <= row["target_fdr"] + 2 * row["fdr_se"] for row in rows)
    counts = [row["repetitions"] for row in rows]
    fewest = f"{min(counts)} to " if min(counts) < max(counts) else ""

    def cells(score: str) -> list[str]:
        found = [at_level(rows, level, figure=name, score=score) for name in figures for level in (0.2, 0.1)]
        return [f"{plus_minus(row, 'fdr')} / {row['power']:.2f}" for row in found]

    header = ["score", *(f"({name[1:]}) {q:g}" if name[1:] else f"{q:g}" for name in figures for q in (0.2, 0.1))]
    return [
        "",
        f"## {title}",
        "",
        f"{fewest}{max(counts)} repetitions. The FDR is at most its target plus two standard errors in",
        f"{held} of {len(rows)} cells:",
        "",
        *markdown_table(header, [[LABELS.get(score, score), *cells(score)] for score in scores]),
    ]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page", action="store_true", help="write the page from the stored table and do nothing else")
    given = parser.parse_args()
    path = HERE / "results" / "figures_default.csv"
    if not given.page:
        context = Context("auto", given.jobs, Path("build/paper/kept"), verbose=1)
        write_table(path, [*rows_of_fig2(given.repetitions, context), *rows_of_fig3(given.repetitions, context)])
    write_page(read_table(path), HERE / "figures_default.md")


if __name__ == "__main__":
    main()
