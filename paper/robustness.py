"""Appendix B: Gaussian mixtures fitted to mixtures of t distributions; FDR against the number of components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs import knockoff_filter
from paper.fig2 import importance_of
from paper.figures import new_figure, values
from paper.mixtures import simulate_three_components
from paper.runner import Context, Table, fdr_and_power

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Config:
    """Settings; the paper gives the level, and "different degrees of freedom".

    Parameters
    ----------
    n : int
    degrees_of_freedom : tuple of float
        Of the three t components of the design of section 5.1; infinity is the Gaussian one.
    n_components : tuple of int
        Gaussian components that are fitted.
    repetitions : int
    target_fdr : float
    C : float
        As in Figure 2.
    """

    n: int = 3000
    degrees_of_freedom: tuple[float, ...] = (3.0, 5.0, 10.0)
    n_components: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 16, 20)
    repetitions: int = 100
    target_fdr: float = 0.2
    C: float = 0.01


CONFIG = Config()
QUICK = Config(degrees_of_freedom=(3.0, 10.0), n_components=(1, 2, 3, 6, 12), repetitions=12)


def repeat(config: Config, df: float, rng: Generator) -> NDArray:
    """One repetition: Z and Z_tilde for each number of components, shape (components, 60)."""
    data_rng, *fit_rngs = rng.spawn(1 + len(config.n_components))
    data = simulate_three_components(config.n, rng=data_rng, degrees_of_freedom=df)
    return np.stack(
        [
            importance_of(data.X, data.y, k, config.C, r, n_starts=2)
            for k, r in zip(config.n_components, fit_rngs, strict=True)
        ]
    )


def run(config: Config, rng: Generator, context: Context) -> Table:
    """Rows: empirical FDR and power for each number of degrees of freedom and of fitted components."""
    table: Table = []
    for df, stream in zip(config.degrees_of_freedom, rng.spawn(len(config.degrees_of_freedom)), strict=True):
        context.log(f"{df:g} degrees of freedom")
        Z = np.stack(context.repeat(repeat, [(config, df, r) for r in stream.spawn(config.repetitions)]))
        d = Z.shape[2] // 2
        truth = [np.arange(d) < 10] * len(Z)
        for m, count in enumerate(config.n_components):
            selected = [knockoff_filter(z[:d] - z[d:], config.target_fdr) for z in Z[:, m]]
            row = {"degrees_of_freedom": df, "n_components": count, "target_fdr": config.target_fdr}
            table.append(row | fdr_and_power(selected, truth))
    return table


def plot(table: Table) -> Figure:
    """Draw empirical FDR against the number of fitted components, a line for each number of degrees of freedom."""
    figure = new_figure(5.5, 4)
    axes = figure.add_subplot()
    looks = zip(("#D55E00", "#E69F00", "#0072B2", "#009E73", "#CC79A7"), "osD^v", strict=True)
    for df, (colour, marker) in zip(values(table, "degrees_of_freedom"), looks, strict=False):
        rows = [row for row in table if row["degrees_of_freedom"] == df]
        axes.errorbar(
            [row["n_components"] for row in rows],
            [row["fdr"] for row in rows],
            yerr=[row["fdr_se"] for row in rows],
            color=colour,
            marker=marker,
            markersize=4,
            linewidth=1.5,
            label=f"DOF {df:g}" if np.isfinite(df) else "Gaussian",
        )
    axes.axhline(table[0]["target_fdr"], color="0.4", linestyle="--", linewidth=1, label="target FDR")
    axes.set(xlabel="Number of Gaussian components fitted", ylabel="Empirical FDR", ylim=(0, None))
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.legend(fontsize=8)
    return figure
