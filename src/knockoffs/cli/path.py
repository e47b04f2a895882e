"""The lambda path of some columns of a table, followed as a selection would follow it, and drawn to a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knockoffs.cli.output import say
from knockoffs.cli.work import reading, take_apart
from knockoffs.defaults import choose, task_for
from knockoffs.errors import printable, require
from knockoffs.features.source import knockoff_source, read_features
from knockoffs.importance.accuracy_drop import FAKES
from knockoffs.importance.paths.lambda_path import LambdaPath
from knockoffs.options import Parameters
from knockoffs.procedure import follow_lambda
from knockoffs.seeds import as_generator
from knockoffs.table.files import write_table_file
from knockoffs.table.table import MIN_ROWS
from knockoffs.table.target import as_target
from knockoffs.table.types import Frame
from knockoffs.table.writer import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LETTERS = 28  # of a name in the legend
MOST_TIMES = 4.0  # the largest W of the named columns: how far the axis follows the others
RISE_OF = {  # the y axis; a loss without a line here goes by its name
    "accuracy": "drop in accuracy",
    "log_loss": "rise of the log-loss (nats)",
    "brier": "rise of the Brier score",
    "squared_error": "rise of the squared error (units of {target}, squared)",
    "absolute_error": "rise of the absolute error (units of {target})",
}
AT_ONE = {"swapped": "swapped with its knockoff", "permuted": "permuted"}


def follow_path(
    frame: Frame, parameters: Parameters, jobs: int | None, *, fake: str, lams: NDArray
) -> tuple[LambdaPath, dict[str, str]]:
    """Follow W along lambda for every feature of a frame; also notes on what was chosen by default.

    With the same seed the knockoffs, the fits and so W at lambda = 1 are those of ``knockoffs select`` with the score
    ``swap``.
    """
    X, y, weights = take_apart(frame, parameters)
    source = knockoff_source(parameters["feature_model"], parameters["feature_model_options"])
    table, _ = read_features(source, X, min_rows=MIN_ROWS, **reading(parameters))
    task = task_for(parameters["task"], parameters["estimator"])
    target = as_target(y, table, task=task, weights=weights)
    choice = choose(
        target,
        estimator=parameters["estimator"],
        importance="swap",
        loss=parameters["loss"],
        rows=parameters["rows"],
        n_folds=parameters["n_folds"],
        grouped=table.grouped,
    )
    say(f"following {len(table.names)} features of {len(target)} rows for {parameters['target']!r}")
    path, draw = follow_lambda(
        table,
        target,
        knockoffs=source,
        statistic=choice.statistic,
        lams=lams,
        fake=FAKES[fake],
        rng=as_generator(parameters["seed"]),
        n_jobs=jobs,
    )
    notes = {**choice.notes, **draw.notes}
    if draw.used is not None:
        notes |= {"model": type(draw.used.estimator).__name__, "rows": draw.used.rows}
    return path, notes


def check_plotting() -> None:
    """Refuse to start the work for a picture that cannot be drawn."""
    require("matplotlib", "pictures", ", or write the numbers, --out FILE.csv")


def write_path(path: LambdaPath, columns: Sequence[str], out: Path, **words: str) -> None:
    """Write a picture, or the numbers where the file ends in .csv: one row for each feature and lambda."""
    if out.suffix.lower() == ".csv":
        n_features, n_lams = path.W.shape
        rows = {
            "feature": np.repeat(np.array(path.feature_names, dtype=object), n_lams),
            "lambda": np.tile(path.lams, n_features),
            "W": path.W.ravel(),
        }
        return write_table_file(rows, out)
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "knockoffs", "svg.fonttype": "none"}):
        figure = draw_path(path, columns, **words)
        kind = out.suffix.lower()[1:]
        dates = {"svg": "Date", "pdf": "CreationDate"}  # left out: the same path is the same file
        undated = {dates[kind]: None} if kind in dates else None
        with atomic_file(out) as file:
            figure.savefig(file, format=kind, dpi=160, metadata=undated)


def draw_path(path: LambdaPath, columns: Sequence[str], *, target: str, model: str, rows: str, fake: str) -> Figure:
    """Figure of W along lambda: the named columns in colour, the others thin and grey."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.6), layout="constrained")
    axes = figure.subplots()
    place = {name: j for j, name in enumerate(path.feature_names)}
    others = [j for name, j in place.items() if name not in columns]
    low, high = limits(path.W[[place[name] for name in columns]], path.W[others])
    outside = sum(bool(((path.W[j] < low) | (path.W[j] > high)).any()) for j in others)
    handles, words = [], []
    for name, colour in zip(columns, _colours(len(columns)), strict=True):
        handles += axes.plot(path.lams, path.W[place[name]], color=colour, linewidth=2.2, zorder=3)
        words.append(_short(name))
    for j in others:
        (line,) = axes.plot(path.lams, path.W[j], color="#b0b0b0", linewidth=0.8, zorder=1)
        if j == others[-1]:
            handles.append(line)
            leave = f"\n({outside} beyond the axis)" if outside else ""
            words.append(f"{len(others)} other feature{'' if len(others) == 1 else 's'}{leave}")
    axes.axhline(0.0, color="black", linewidth=0.8, zorder=2)
    if path.lams[0] < 1.0 < path.lams[-1]:
        axes.axvline(1.0, color="black", linewidth=0.8, linestyle=":", zorder=2)
    rise = RISE_OF.get(path.loss, f"rise of {path.loss.replace('_', ' ')}").format(target=_short(target))
    texts = [
        axes.set_xlabel(f"lambda (0: the column as it is, 1: {AT_ONE.get(fake, fake)})"),
        axes.set_ylabel(f"W: {rise},\nfeature minus knockoff"),
        axes.set_title(
            f"Lambda path for {_short(target)} ({model}, {rows.replace('_', ' ')})", loc="left", fontsize=11
        ),
    ]
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0)
    axes.set_ylim(low, high)
    legend = figure.legend(handles, ["-"] * len(words), loc="outside right upper", frameon=False)
    # set afterwards: a label that starts with _ would be left out, and names are not formulas
    for text, word in zip(legend.get_texts(), words, strict=True):
        text.set_text(word)
    for text in (*texts, *legend.get_texts()):
        text.set_parse_math(False)
    return figure


def limits(W: NDArray, others: NDArray) -> tuple[float, float]:
    """Range of the y axis: all paths, unless the others would press the named ones flat; then they are cut off."""
    named, most = float(np.abs(W).max()), float(np.abs(others).max(initial=0.0))
    cut = MOST_TIMES * named if 0 < MOST_TIMES * named < most else np.inf
    low = max(min(float(W.min()), float(others.min(initial=0.0))), -cut)
    high = min(max(float(W.max()), float(others.max(initial=0.0))), cut)
    room = 0.05 * (high - low) or 1.0
    return low - room, high + room


def _colours(n: int) -> list[tuple[float, float, float, float]]:
    from matplotlib import colormaps

    ten = colormaps["tab10"]
    nine = [ten(j) for j in range(10) if j != 7]  # without its grey
    return [nine[j % len(nine)] for j in range(n)]


def _short(name: str) -> str:
    shown = printable(name)
    return shown if len(shown) <= MOST_LETTERS else f"{shown[: MOST_LETTERS - 3]}..."
