"""Which score, loss, rows and model of y find most: every combination on the same repetitions.

Not in the paper. Every model is fitted once a repetition (and once a fold), and all of its scores are read off that
fit: two fakes, two reductions of the path, four losses. The table also holds the model with the smallest log-loss on
held-out rows: of lasso and boosting, which is what is used by default, and of all four. P^X is known, so that the
level is held and powers can be compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.defaults import BEST_OF
from knockoffs.experiments.repetitions import power_rows, statistics
from knockoffs.experiments.runner import Arrays, Context, Table
from knockoffs.experiments.score_fits import CHOICE, score_setting
from knockoffs.experiments.score_settings import CONFIG, MODELS, QUICK, Config, Setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CONFIG", "QUICK", "plot", "run", "write_page"]

PACKAGES = ("torch",)
TARGETS = (0.1, 0.2)
COLOURS = {"lasso": "#4c72b0", "neural": "#dd8452", "forest": "#55a868", "boosting": "#c44e52"}
DEFAULT_NAME = "best of two"
DEFAULT_SCORE = {
    "lasso": "lasso/in_sample/coefficients/-",
    "neural": "neural/in_sample/swap/log_loss",
    "forest": "forest/cross_fitted/swap_integral/log_loss",
    "boosting": "boosting/cross_fitted/swap_integral/log_loss",
}


def run(config: Config, rng: Generator, context: Context) -> Table:
    """Power and FDR of every combination in every setting."""
    table: Table = []
    streams = rng.spawn(1 + max(setting.place for setting in config.settings))
    for setting in config.settings:
        rngs = streams[setting.place].spawn(config.repetitions)
        scores = score_setting(setting, rngs, config, context)
        table += rows_of(setting, scores)
    return table


def plot(table: Table) -> Figure:
    """Power at q = 0.1 of the best scores, the default, the paper's and lasso coefficients, in each setting."""
    import matplotlib.pyplot as plt

    keys = ("model", "evaluation", "score", "loss")
    always = {"neural/in_sample/swap_integral/accuracy", DEFAULT_SCORE["lasso"], f"{DEFAULT_NAME}/-/-/-"}
    rows = [row for row in table if row["target_fdr"] == TARGETS[0]]
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    figure, axes = plt.subplots(len(settings), 1, figsize=(9, 2.2 * len(settings)), layout="constrained", squeeze=False)
    for axis, setting in zip(axes[:, 0], settings, strict=True):
        ranked = sorted((row for row in rows if row["setting"] == setting), key=lambda row: row["power"])
        shown = [r for i, r in enumerate(ranked) if i >= len(ranked) - 7 or "/".join(str(r[k]) for k in keys) in always]
        names = [" / ".join(str(row[key]) for key in keys).replace(" / -", "") for row in shown]
        colours = [COLOURS.get(row["model"], "#8c8c8c") for row in shown]
        axis.barh(names, [row["power"] for row in shown], xerr=[row["power_se"] for row in shown], color=colours)
        axis.set_title(setting, loc="left", fontsize=9)
        axis.set_xlim(0, 1)
        axis.tick_params(labelsize=7)
    axes[-1, 0].set_xlabel("power at target FDR 0.1")
    return figure


def rows_of(setting: Setting, scores: Arrays) -> Table:
    """Power and FDR of each combination, and of the ways to join models."""
    truth = scores["non_nulls"]
    W = {name: statistics(Z) for name, Z in scores.items() if Z.ndim == 2 and name != "non_nulls"}
    rows: Table = []
    for name, statistic in (W | joined(W, scores)).items():
        model, evaluation, score, loss = name.split("/")
        what = {"setting": setting.name, "model": model, "evaluation": evaluation, "score": score, "loss": loss}
        rows += power_rows(statistic, truth, TARGETS, **what)
    return rows


def joined(W: dict[str, NDArray], scores: Arrays) -> dict[str, NDArray]:
    """W of the model that predicts best, by its default score: of two as the default does it, and of all four."""
    losses = {
        DEFAULT_NAME: {model: f"{CHOICE}/{model}" for model in BEST_OF},
        "best of four": {model: f"{model}/cross_fitted/held_loss/log_loss" for model in MODELS},
    }
    found = {}
    for name, keys in losses.items():
        if all(key in scores for key in keys.values()):
            best = np.argmin([scores[key] for key in keys.values()], axis=0)
            each = np.stack([W[DEFAULT_SCORE[model]] for model in keys])
            found[f"{name}/-/-/-"] = each[best, np.arange(each.shape[1])]
    return found


def write_page(table: Table, page: Path, level: float = TARGETS[0]) -> None:
    """Write the table of powers and FDRs at one level as Markdown: a row for each combination, a column a setting."""
    settings = list(dict.fromkeys(row["setting"] for row in table))
    keys = ("model", "evaluation", "score", "loss")
    rows = [row for row in table if row["target_fdr"] == level]
    cells = {(tuple(row[key] for key in keys), row["setting"]): row for row in rows}
    combinations = list(dict.fromkeys(tuple(row[key] for key in keys) for row in rows))

    def cell(combination: tuple, setting: str) -> str:
        row = cells.get((combination, setting))
        if row is None:
            return ""
        best = max(other["power"] for other in rows if other["setting"] == setting)
        power = f"**{row['power']:.2f}**" if row["power"] >= best - row["power_se"] else f"{row['power']:.2f}"
        return f"{power} ({row['fdr']:.2f})"

    def mean(combination: tuple) -> float:
        return float(np.mean([cells[combination, s]["power"] for s in settings if (combination, s) in cells]))

    lines = [
        "# Power of every score, loss, evaluation and model",
        "",
        f"Power, and in brackets the empirical FDR, at target FDR {level:g} over {rows[0]['repetitions']} repetitions;",
        "in bold what is within one standard error of the setting's best. P^X is known. A lasso is refitted on folds",
        "with the penalty that all rows chose; a forest has 100 trees. Integrals are exact for trees, trapezoids on 21",
        "points for others. An empty cell was not run. `knockoffs reproduce scores` makes the table again.",
        "",
        f"| {' | '.join(keys)} | {' | '.join(settings)} |",
        f"|{'---|' * (len(keys) + len(settings))}",
        *(
            f"| {' | '.join(combination)} | {' | '.join(cell(combination, setting) for setting in settings)} |"
            for combination in sorted(
                combinations, key=lambda c: (MODELS.index(c[0]) if c[0] in MODELS else -1, -mean(c))
            )
        ),
    ]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
