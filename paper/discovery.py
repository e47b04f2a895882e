"""Appendix D: features selected on real labels at q = 0.3, beside the lists of the paper."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs import knockoff_filter, q_values, sample_knockoffs
from knockoffs.features.gaussian_mixture import MixtureFeatures
from paper.data import BANK
from paper.fig3 import TITLES, fit_real
from paper.figures import NON_NULL, letter, new_figure, values
from paper.repetitions import Job, Prepared, Training, score_jobs, statistics
from paper.runner import Context, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# what the paper lists; its 14 phenotypes of the UK Biobank have no counterpart in NHANES
PAPER: dict[str, tuple[str, ...]] = {
    "bank": tuple(BANK),
    "bankruptcy": ("Attr6", "Attr12", "Attr24", "Attr35"),
    "nhanes": (),
}


@dataclass(frozen=True)
class Config:
    """Settings; the paper gives the level, the network and that AIC chooses the components.

    Parameters
    ----------
    names : tuple of str
    n_rows : int, optional
        Rows drawn at random from each data set; None takes all.
    n_components : dict
        Numbers of components AIC chooses among, for each data set.
    target_fdr : float
    draws : int
        Draws of knockoffs (and networks). The first one is the selection; the others show how far it depends on chance.
    training : Training
    """

    names: tuple[str, ...] = ("bank", "bankruptcy", "nhanes")
    n_rows: int | None = None
    n_components: dict[str, tuple[int, ...]] = field(
        default_factory=lambda: {
            "bank": (5, 10, 15, 20, 25),
            "bankruptcy": (5, 10, 15, 20, 25),
            "nhanes": (1, 3, 5, 7, 9, 12),
        }
    )
    target_fdr: float = 0.3
    draws: int = 50
    training: Training = Training(n_classes=2, hidden=(100, 100, 100, 100), batch_size=256, epochs=20)


CONFIG = Config()
QUICK = Config(
    n_rows=3000,
    n_components={"bank": (5, 10), "bankruptcy": (3, 6), "nhanes": (1, 3)},
    draws=5,
)


def prepare(X: NDArray, y: NDArray, model: MixtureFeatures, rng: Generator) -> Prepared:
    """Draw knockoffs; the truth is not known."""
    return Prepared(X, sample_knockoffs(model.as_network(), X, rng), y, np.zeros(X.shape[1], dtype=bool))


def run(config: Config, rng: Generator, context: Context) -> Table:
    """Rows: every feature with W, q-value and selection of the first draw, and how often it is selected."""
    jobs, known = {}, {}
    _, real_rng = rng.spawn(2)  # as in Figure 3, so that the mixtures fitted there are found again
    for name, stream in zip(config.names, real_rng.spawn(len(config.names)), strict=True):
        _, feature_rng, draw_rng = stream.spawn(3)
        fitted = fit_real(name, config.n_rows, config.n_components[name], feature_rng, context)
        if fitted is None:
            continue
        data, X, y, model = fitted
        job = Job(f"{name}-discovery", partial(prepare, X, y, model), draw_rng.spawn(config.draws), config.training)
        jobs[name] = job
        known[name] = (data, len(y), float(max(y.mean(), 1 - y.mean())), model.n_components)
    results = score_jobs(list(jobs.values()), context)
    table: Table = []
    for name, job in jobs.items():
        data, n, majority, n_components = known[name]
        W = statistics(results[job.name]["swap_integral"])
        selected = np.stack([knockoff_filter(w, config.target_fdr) for w in W])
        q = q_values(W[0])
        for j, feature in enumerate(data.names):
            table.append(
                {
                    "data": name,
                    "feature": feature,
                    "meaning": data.meanings.get(feature, ""),
                    "W": W[0, j],
                    "q_value": q[j],
                    "selected": bool(selected[0, j]),
                    "selected_share": float(selected[:, j].mean()),
                    "in_paper": feature in PAPER[name],
                    "target_fdr": config.target_fdr,
                    "draws": len(W),
                    "rows": n,
                    "n_components": n_components,
                    "accuracy": float(results[job.name]["accuracy"].mean()),
                    "majority": majority,
                }
            )
    return table


def plot(table: Table) -> Figure:
    """Draw how often each feature is selected, the paper's in red, at most twenty a data set."""
    figure = new_figure(11, 4.5)
    names = values(table, "data")
    for place, name in enumerate(names):
        rows = [row for row in table if row["data"] == name]
        rows = sorted(rows, key=lambda row: (-row["selected_share"], -row["W"]))[:20][::-1]
        axes = figure.add_subplot(1, len(names), place + 1)
        axes.barh(
            range(len(rows)),
            [row["selected_share"] for row in rows],
            color=[NON_NULL if row["in_paper"] else "0.6" for row in rows],
        )
        marks = ["* " if row["selected"] else "" for row in rows]
        axes.set_yticks(
            range(len(rows)), [m + str(row["feature"]) for m, row in zip(marks, rows, strict=True)], fontsize=7
        )
        axes.set(xlim=(0, 1), xlabel=f"share of {rows[0]['draws']} draws that select it")
        letter(axes, "abc"[place], TITLES[name])
    figure.suptitle("red: listed in the paper; *: selected by the first draw", fontsize=9)
    return figure
