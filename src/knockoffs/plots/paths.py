"""W along lambda for a selection: its knockoffs, its seed, its model of y; drawn for the surest features by name."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.defaults import choose
from knockoffs.errors import InputError, unknown_option
from knockoffs.features.given import FixedKnockoffs
from knockoffs.importance.accuracy_drop import FAKES
from knockoffs.importance.paths.lambda_path import LambdaPath
from knockoffs.importance.paths.moves import N_LAMS, check_lams
from knockoffs.options import importance_options
from knockoffs.plots.style import LINES, QUIET, finish, legend_below, new_axes, short
from knockoffs.registry import find
from knockoffs.selection import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from knockoffs.report.display import Shown

MOST_NAMED = len(LINES)
MOST_OTHERS = 200
AT_ONE = {"swapped": "swapped with its knockoff", "permuted": "permuted"}


def follow_selector(selector: Shown, lams: ArrayLike | None = None, fake: str = "swapped") -> LambdaPath:
    """W of every feature along lambda, for the knockoffs of a fitted selector's (first) draw.

    The model of y is fitted again from the same random numbers, so that W at lambda = 1 is that of the selection where
    it was made by the score Swap.
    """
    from knockoffs.draws import follow_lambda

    selection = selector.selection_
    if selection.p_values is not None:
        raise InputError("features were tested without knockoffs: there is no lambda path; use method='knockoffs'.")
    if selection.environments is not None:
        raise InputError("lambda paths are not supported with environments.")
    if selection.rows is not None:
        raise InputError("lambda paths are not supported with clusters or order.")
    along = check_lams(np.linspace(0.0, 10.0, N_LAMS) if lams is None else lams)
    scoring = importance_options(selector.importance_options)
    choice = choose(
        selector.target_,
        estimator=selector.estimator,
        importance="swap",
        loss=scoring.loss,
        rows=scoring.rows,
        n_folds=scoring.n_folds,
        n_fits=scoring.n_fits,
        grouped=selector.table_.grouped,
    )
    pair = selection.pair
    return follow_lambda(
        FixedKnockoffs(pair.X_tilde, pair.feature_of),
        replace(selector.table_, X=pair.X),  # with missing cells filled
        selector.target_,
        choice.statistic,
        lams=along,
        fake=find(FAKES, "fake", fake),
        rng=deepcopy(selector.generator_),
        n_jobs=selector.n_jobs,
    )


def plot_paths(
    path: LambdaPath,
    selection: Selection | None = None,
    *,
    features: Sequence[str] | None = None,
    fake: str = "swapped",
    ax: Axes | Figure | None = None,
) -> Axes:
    """Draw W along lambda: at most eight ``features`` by name, or the surest of a selection; the others thin and grey.

    ``fake`` is what the columns move to.
    """
    named = _named(path, selection, features)
    ax = new_axes(ax, 6.8, 4.6)
    size = np.abs(path.W).max(axis=1)
    others = [j for j in np.argsort(-size, kind="stable").tolist() if j not in named]
    for j in others[:MOST_OTHERS]:
        ax.plot(path.lams, path.W[j], color=QUIET, linewidth=0.6, alpha=0.5, zorder=1)
    for j, (colour, dash) in zip(named, LINES, strict=False):
        ax.plot(path.lams, path.W[j], color=colour, linestyle=dash, linewidth=1.9, zorder=3, label=str(j))
    width = linear_width(path.W[named, -1])
    if width is not None:
        ax.set_yscale("asinh", linear_width=width)
    ax.axhline(0.0, color=QUIET, linewidth=0.8, zorder=2)
    if path.lams[0] < 1.0 < path.lams[-1]:
        ax.axvline(1.0, color=QUIET, linewidth=1.0, linestyle=":", zorder=2)
    ax.set_xlim(path.lams[0], path.lams[-1])
    if others:
        ax.plot([], [], color=QUIET, linewidth=0.6, label=f"{len(others)} others")
    ax.set_xlabel(f"lambda (0: the column, 1: {AT_ONE.get(fake, fake)})")
    beyond = "" if width is None else f"\nlogarithmic beyond {width:.2g}"
    ax.set_ylabel(f"W ({path.loss.replace('_', ' ')}), feature minus knockoff{beyond}")
    legend_below(ax, [short(path.feature_names[j], 22) for j in named], columns=2)
    return finish(ax, "Importance beyond the knockoff, along lambda")


def linear_width(ends: NDArray, towers: float = 20.0) -> float | None:
    """Where one line towers over the middle one, what is drawn in proportion; beyond it the axis is logarithmic.

    >>> linear_width(np.array([100.0, 2.0, 1.0])), linear_width(np.array([3.0, 2.0, 1.0]))
    (2.0, None)
    """
    size = np.abs(ends[ends != 0])
    return float(np.median(size)) if len(size) and size.max() > towers * np.median(size) else None


def _named(path: LambdaPath, selection: Selection | None, features: Sequence[str] | None) -> list[int]:
    place = {name: j for j, name in enumerate(path.feature_names)}
    if features is not None:
        for name in features:
            if name not in place:
                raise unknown_option("features", name, place)
        return [place[name] for name in features][:MOST_NAMED]
    if selection is not None and selection.selected.any():
        return [place[name] for name in selection.selected_names[:MOST_NAMED]]
    return np.argsort(-path.W.mean(axis=1), kind="stable")[: min(MOST_NAMED, len(path.W))].tolist()
