"""Figure 1: LASSO against Swap Integral, the integrals against Swap and Permutation, and a lambda path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs import swap
from paper.figures import NON_NULL, NULL, draw_curves, letter, new_figure, values
from paper.repetitions import LAMS, Prepare, Training, mixture_job, power_rows, score_jobs, statistics
from paper.runner import Context, Table
from paper.simulate import level_set_labels, polynomial_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANEL_B = ("swap_integral", "swap", "permutation_integral", "permutation")


@dataclass(frozen=True)
class Setting:
    """One setting of the search: what differs from panel b.

    Parameters
    ----------
    labels : {"level sets", "argmax"}
    n, n_components, n_classes, epochs : int
    spread : float
    """

    labels: str = "level sets"
    n: int = 3000
    n_components: int = 10
    n_classes: int = 10
    epochs: int = 40
    spread: float = 3.0

    def __str__(self) -> str:
        return (
            f"{self.labels}, n = {self.n}, {self.n_components} components with spread {self.spread:g}, "
            f"{self.n_classes} classes, {self.epochs} epochs"
        )


# the paper finds Permutation Integral better than Permutation; panel b does not, so it is looked for elsewhere
SEARCH = (
    Setting(epochs=5),
    Setting(n=10_000),
    Setting(spread=1.0),
    Setting(n_components=1),
    Setting("argmax"),
    Setting("argmax", n=10_000),
    Setting("argmax", epochs=200),
    Setting("argmax", spread=1.0),
    Setting("argmax", n_components=1),
    Setting("argmax", n_classes=2),
    Setting("argmax", n_classes=2, n_components=1),
)


@dataclass(frozen=True)
class Config:
    """Settings; the paper gives ten components, ten classes by level sets of a cubic, and three layers.

    Parameters
    ----------
    n, d, n_non_nulls, n_components : int
    spread : float
        Standard deviation of the means; the components have variances between 1 and 2.
    repetitions : int
    training : Training
    search : tuple of Setting
        Other settings in which the integrals are compared with Swap and Permutation.
    search_repetitions : int
    """

    n: int = 3000
    d: int = 30
    n_non_nulls: int = 15
    n_components: int = 10
    spread: float = 3.0
    repetitions: int = 100
    training: Training = Training(n_classes=10, permutation_path=True)
    search: tuple[Setting, ...] = SEARCH
    search_repetitions: int = 40


CONFIG = Config()
QUICK = Config(repetitions=10, search=())


def lasso_repetition(prepare: Prepare, rng: Generator) -> tuple[NDArray, NDArray]:
    """W of a cross-validated LASSO of the level, shape (d,), and the non-nulls; columns are randomly swapped."""
    from sklearn.linear_model import LassoCV

    prepare_rng, swap_rng = rng.spawn(2)
    data = prepare(prepare_rng)
    S = swap_rng.random(data.X.shape[1]) < 0.5
    XX = np.hstack(swap(data.X, data.X_tilde, S))
    XX = (XX - XX.mean(axis=0)) / XX.std(axis=0)
    Z = np.abs(LassoCV(cv=5, precompute=True, max_iter=20_000).fit(XX, data.y).coef_)
    return np.where(S, -1, 1) * statistics(Z[None])[0], data.non_nulls


def search_rows(config: Config, rng: Generator, context: Context) -> Table:
    """Rows: power of the four accuracy drops in other settings."""
    jobs = [
        mixture_job(
            f"search-{number}",
            n=setting.n,
            d=config.d,
            n_components=setting.n_components,
            n_non_nulls=config.n_non_nulls,
            spread=setting.spread,
            labels=level_set_labels if setting.labels == "level sets" else polynomial_labels,
            training=replace(config.training, n_classes=setting.n_classes, epochs=setting.epochs),
            rngs=stream.spawn(config.search_repetitions),
        )
        for number, (setting, stream) in enumerate(zip(config.search, rng.spawn(len(config.search)), strict=True))
    ]
    results = score_jobs(jobs, context) if jobs else {}
    table: Table = []
    for setting, job in zip(config.search, jobs, strict=True):
        arrays = results[job.name]
        columns: dict[str, Any] = {
            "panel": "search",
            "setting": str(setting),
            "accuracy": float(arrays["accuracy"].mean()),
        }
        for score in PANEL_B:
            table += power_rows(statistics(arrays[score]), arrays["non_nulls"], score=score, **columns)
    return table


def run(config: Config, rng: Generator, context: Context) -> Table:
    """Rows: power at each target for panels a and b, and W along the path for panel c."""
    network_rng, lasso_rng, search_rng = rng.spawn(3)
    job = mixture_job(
        "level-sets",
        n=config.n,
        d=config.d,
        n_components=config.n_components,
        n_non_nulls=config.n_non_nulls,
        spread=config.spread,
        labels=level_set_labels,
        training=config.training,
        rngs=network_rng.spawn(config.repetitions),
    )
    lasso = context.repeat(lasso_repetition, [(job.prepare, r) for r in lasso_rng.spawn(config.repetitions)])
    arrays = score_jobs([job], context)[job.name]
    W, truth = (np.stack(parts) for parts in zip(*lasso, strict=True))
    table = power_rows(W, truth, panel="a", score="lasso")
    integral = statistics(arrays["swap_integral"])
    table += power_rows(integral, arrays["non_nulls"], panel="a", score="swap_integral")
    for score in PANEL_B:
        table += power_rows(statistics(arrays[score]), arrays["non_nulls"], panel="b", score=score)
    table += search_rows(config, search_rng, context)
    path = statistics(arrays["swap_path"])[0]  # (d, lams) of the first repetition
    table += [
        {"panel": "c", "feature": j, "non_null": bool(arrays["non_nulls"][0, j]), "lam": lam, "W": path[j, i]}
        for j in range(config.d)
        for i, lam in enumerate(LAMS)
    ]
    return table


def plot(table: Table) -> Figure:
    """Draw power of LASSO and Swap Integral, power of four accuracy drops, and a lambda path."""
    from matplotlib.lines import Line2D

    figure = new_figure(11, 3.6)
    for place, (panel, title, scores) in enumerate(
        [("a", "LASSO and Swap Integral", ("swap_integral", "lasso")), ("b", "Path integrals", PANEL_B)]
    ):
        axes = figure.add_subplot(1, 3, place + 1)
        draw_curves(axes, [row for row in table if row["panel"] == panel], scores, y="power", label="Power")
        axes.set_ylim(-0.03, 1.03)
        axes.legend(fontsize=8)
        letter(axes, panel, title)
    axes = figure.add_subplot(1, 3, 3)
    rows = [row for row in table if row["panel"] == "c"]
    for j in values(rows, "feature"):
        path = [row for row in rows if row["feature"] == j]
        chosen = bool(path[0]["non_null"])
        axes.plot(
            [row["lam"] for row in path],
            [row["W"] for row in path],
            color=NON_NULL if chosen else NULL,
            linewidth=1,
            zorder=2 + chosen,
        )
    axes.axvline(1, color="0.3", linestyle=":", linewidth=1)
    axes.set(xlabel="$\\lambda$", ylabel="W (drop in accuracy)")
    lines = [Line2D([], [], color=NON_NULL), Line2D([], [], color=NULL)]
    axes.legend(lines, ["non-null", "null"], fontsize=8)
    letter(axes, "c", "Lambda path of Swap")
    return figure
