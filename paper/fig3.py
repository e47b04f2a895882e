"""Figure 3: power of five importance scores, on mixtures of 5, 10 and 20 Gaussians and on three real data sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs import sample_knockoffs
from knockoffs.features.gaussian_mixture import MixtureFeatures
from paper.data import LOADERS, DataSet
from paper.figures import draw_curves, letter, new_figure
from paper.repetitions import (
    FIVE,
    TARGETS,
    Job,
    Prepared,
    Training,
    fit_by_aic,
    mixture_job,
    power_rows,
    score_jobs,
    statistics,
)
from paper.runner import Arrays, Context, Table
from paper.simulate import polynomial_labels, simulate_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCORES = (*FIVE, "swap_log_loss")
TITLES = {"bank": "Bank Marketing", "bankruptcy": "Polish Bankruptcy", "nhanes": "NHANES (for UK Biobank)"}


@dataclass(frozen=True)
class Synthetic:
    """Settings of panels a to c; the paper gives the numbers of components and of repetitions.

    Parameters
    ----------
    n, d, n_non_nulls : int
    n_components : tuple of int
    spread : float
        Standard deviation of the means; the components have variances between 1 and 2.
    repetitions : int
    training : Training
    """

    n: int = 6000
    d: int = 30
    n_non_nulls: int = 15
    n_components: tuple[int, ...] = (5, 10, 20)
    spread: float = 6.0
    repetitions: int = 100
    training: Training = Training(n_classes=10)


@dataclass(frozen=True)
class RealData:
    """Settings of panels d to f.

    Parameters
    ----------
    names : tuple of str
    n_rows : int, optional
        Rows drawn at random from each data set; None takes all.
    n_non_nulls : dict
        For each data set.
    n_components : dict
        Numbers of components AIC chooses among, for each data set.
    repetitions : int
    training : Training
    """

    names: tuple[str, ...] = ("bank", "bankruptcy", "nhanes")
    n_rows: int | None = None
    n_non_nulls: dict[str, int] = field(default_factory=lambda: {"bank": 6, "bankruptcy": 20, "nhanes": 20})
    n_components: dict[str, tuple[int, ...]] = field(
        default_factory=lambda: {
            "bank": (5, 10, 15, 20, 25),
            "bankruptcy": (5, 10, 15, 20, 25),
            "nhanes": (1, 3, 5, 7, 9, 12),
        }
    )
    repetitions: int = 100
    training: Training = Training(n_classes=10, batch_size=256, epochs=30)


@dataclass(frozen=True)
class Config:
    """Settings of the six panels."""

    synthetic: Synthetic = Synthetic()
    real: RealData = field(default_factory=RealData)


CONFIG = Config()
QUICK = Config(
    Synthetic(n=3000, repetitions=10),
    RealData(
        n_rows=3000,
        n_components={"bank": (5, 10), "bankruptcy": (3, 6), "nhanes": (1, 3)},
        repetitions=5,
        training=Training(n_classes=10, epochs=20),
    ),
)


def synthetic_scores(config: Synthetic, rng: Generator, context: Context) -> dict[int, Arrays]:
    """Scores of all repetitions, for each number of components; Figure 3 and the FDR figure share them."""
    streams = rng.spawn(len(config.n_components))
    jobs = {
        count: mixture_job(
            f"mixture-{count}",
            n=config.n,
            d=config.d,
            n_components=count,
            n_non_nulls=config.n_non_nulls,
            spread=config.spread,
            labels=polynomial_labels,
            training=config.training,
            rngs=stream.spawn(config.repetitions),
        )
        for count, stream in zip(config.n_components, streams, strict=True)
    }
    results = score_jobs(list(jobs.values()), context)
    return {count: results[job.name] for count, job in jobs.items()}


def prepare_real(X: NDArray, model: MixtureFeatures, n_classes: int, n_non_nulls: int, rng: Generator) -> Prepared:
    """Draw labels and knockoffs of given features."""
    label_rng, draw_rng = rng.spawn(2)
    data = simulate_labels(X, n_classes=n_classes, n_non_nulls=n_non_nulls, rng=label_rng, labels=polynomial_labels)
    return Prepared(X, sample_knockoffs(model.as_network(), X, draw_rng), data.y, data.non_nulls)


def fit_real(
    name: str, n_rows: int | None, n_components: tuple[int, ...], rng: Generator, context: Context
) -> tuple[DataSet, NDArray, NDArray, MixtureFeatures] | None:
    """Return a data set, X (standardised) and y of the rows used, and the mixture fitted to X; None if it is absent."""
    row_rng, fit_rng = rng.spawn(2)
    try:
        data = LOADERS[name](context.data_folder)
    except FileNotFoundError as error:
        context.log(f"{name} is left out: {error}")
        return None
    rows = np.arange(len(data.y))
    if n_rows is not None and n_rows < len(rows):
        rows = np.sort(row_rng.choice(rows, size=n_rows, replace=False))
    X = standardised(data.X[rows])
    return data, X, data.y[rows], fit_by_aic(X, n_components, fit_rng, context)


def standardised(X: NDArray) -> NDArray:
    """Centre and scale columns; one that is constant stays at zero."""
    scale = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)


def real_scores(config: RealData, rng: Generator, context: Context) -> dict[str, tuple[Arrays, int]]:
    """Scores of all repetitions for each data set that is there, and the number of components."""
    jobs, components = {}, {}
    for name, stream in zip(config.names, rng.spawn(len(config.names)), strict=True):
        label_rng, feature_rng = stream.spawn(2)
        fitted = fit_real(name, config.n_rows, config.n_components[name], feature_rng, context)
        if fitted is None:
            continue
        _, X, _, model = fitted
        prepare = partial(prepare_real, X, model, config.training.n_classes, config.n_non_nulls[name])
        jobs[name] = Job(f"{name}-labels", prepare, label_rng.spawn(config.repetitions), config.training)
        components[name] = model.n_components
    results = score_jobs(list(jobs.values()), context)
    return {name: (results[job.name], components[name]) for name, job in jobs.items()}


def run(config: Config, rng: Generator, context: Context) -> Table:
    """Rows: power and empirical FDR at each target, for each panel and score."""
    synthetic_rng, real_rng = rng.spawn(2)
    table: Table = []
    mixtures = synthetic_scores(config.synthetic, synthetic_rng, context)
    for panel, (count, arrays) in zip("abc", mixtures.items(), strict=False):
        table += _rows(arrays, {"panel": panel, "setting": f"{count} components", "n_components": count})
    panels = dict(zip(config.real.names, "def", strict=False))
    for name, (arrays, n_components) in real_scores(config.real, real_rng, context).items():
        table += _rows(arrays, {"panel": panels[name], "setting": TITLES[name], "n_components": n_components})
    return table


def _rows(arrays: Arrays, columns: dict[str, str | int]) -> Table:
    accuracy = float(arrays["accuracy"].mean())
    return [
        row
        for score in SCORES
        for row in power_rows(
            statistics(arrays[score]), arrays["non_nulls"], TARGETS, score=score, **columns, accuracy=accuracy
        )
    ]


def plot(table: Table) -> Figure:
    """Six panels: power against target FDR."""
    figure = new_figure(10, 6)
    legend = None
    for place, panel in enumerate("abcdef"):
        rows = [row for row in table if row["panel"] == panel]
        axes = figure.add_subplot(2, 3, place + 1)
        if not rows:
            axes.set_axis_off()
            continue
        draw_curves(axes, rows, FIVE, y="power", label="Power")
        axes.set_ylim(-0.03, 1.03)
        letter(axes, panel, rows[0]["setting"])
        legend = axes
    if legend is not None:
        figure.legend(
            *legend.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=9, frameon=False
        )
    return figure
