"""``knockoffs path``: the lambda path of some columns, as a picture or as numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from knockoffs.cli.checks import bad_call, columns_named
from knockoffs.cli.output import say, spoken_warnings
from knockoffs.cli.program import Force, OneFile, command
from knockoffs.errors import InputError, require, unknown_option
from knockoffs.options import Options, importance_options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from knockoffs.importance.paths.lambda_path import LambdaPath
    from knockoffs.table.types import Frame

PICTURES = (".png", ".svg", ".pdf")


@command("path")
def path(
    table: OneFile,
    column: Annotated[list[str], typer.Option(metavar="COLUMN", help="Feature to draw in colour; repeatable.")],
    options: Options,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="File for the picture (png, svg or pdf) or for the numbers (csv).")
    ] = Path("lambda_path.png"),
    fake: Annotated[str, typer.Option(metavar="NAME", help="What a column moves to: swapped or permuted.")] = "swapped",
    lambda_range: Annotated[tuple[float, float], typer.Option(metavar="FROM TO", help="First and last lambda.")] = (
        0.0,
        10.0,
    ),
    points: Annotated[int, typer.Option(metavar="N", help="Number of lambdas.", min=2, max=10_000)] = 41,
    force: Force = False,
) -> None:
    """Draw W along the lambda path of some columns.

    A column moves from its values (lambda = 0) through its fake (1) and beyond.

    \b
    knockoffs path table.csv --target y --column age --column weight --out path.png
    knockoffs path table.csv --target y --column age --out path.csv
    """
    check_path(out, fake, lambda_range, points)
    import numpy as np

    from knockoffs.cli.files import other_paths, read
    from knockoffs.table.writer import check_output

    check_output(out, [table, *other_paths(options)], force=force)
    frame = read(table, options.target, options.weights, *options.drop, *options.covariates)
    columns = list(dict.fromkeys(columns_named(frame, column, "--column")))
    others = [*columns_named(frame, options.drop, "--drop"), *columns_named(frame, options.covariates, "--covariates")]
    for name in columns:
        if name in (options.target, options.weights, *others):
            what = "the target, the weights, a covariate or dropped"
            raise bad_call(f"--column {name!r} is not a feature: it is {what}.")
    with spoken_warnings():
        found, title = follow_path(frame, options, fake=fake, lams=np.linspace(*lambda_range, points))
    write_path(found, columns, out, title=title, fake=fake)
    say(f"wrote {out}")


def check_path(out: Path, fake: str, lambda_range: tuple[float, float], n_lams: int) -> None:
    """Refuse a lambda path that cannot be followed or written."""
    from knockoffs.importance.accuracy_drop import FAKES
    from knockoffs.importance.paths.moves import check_range

    if fake not in FAKES:
        raise bad_call(f"--{unknown_option('fake', fake, FAKES)}")
    try:
        check_range(*lambda_range, n_lams)
    except InputError as error:
        raise bad_call(str(error)) from None
    ending = out.suffix.lower()
    if ending not in (*PICTURES, ".csv"):
        raise bad_call(f"--out {str(out)!r}: the ending gives the format, one of {', '.join(PICTURES)}, .csv.")
    if ending != ".csv":
        require("matplotlib", "pictures", ", or write the numbers, --out FILE.csv")


def follow_path(frame: Frame, options: Options, *, fake: str, lams: NDArray) -> tuple[LambdaPath, str]:
    """W of every feature along lambda, and a title.

    With the same seed the knockoffs, the fits and W at lambda = 1 are those of ``knockoffs select`` with the score
    ``swap``.
    """
    from knockoffs.cli.files import covariates_of, reading, take_apart
    from knockoffs.defaults import choose, task_for
    from knockoffs.draws import follow_lambda
    from knockoffs.features.source import knockoff_source, read_features
    from knockoffs.importance.accuracy_drop import FAKES
    from knockoffs.plots.style import short
    from knockoffs.seeds import as_generator
    from knockoffs.table.table import MIN_ROWS
    from knockoffs.table.target import as_target

    X, y, weights = take_apart(frame, options)
    source = knockoff_source(options.feature_model, options.feature_model_options)
    covariates = covariates_of(frame, options)
    table, _ = read_features(source, X, min_rows=MIN_ROWS, covariates=covariates, **reading(options))
    target = as_target(y, table, task=task_for(options.task, options.estimator), weights=weights)
    scoring = importance_options(options.importance_options, "path")
    choice = choose(
        target,
        estimator=options.estimator,
        importance="swap",
        loss=scoring.loss,
        rows=scoring.rows,
        n_folds=scoring.n_folds,
        grouped=table.grouped,
    )
    say(f"following {len(table.feature_names)} features of {len(target)} rows for {options.target!r}")
    found, draw = follow_lambda(
        table,
        target,
        knockoffs=source,
        statistic=choice.statistic,
        lams=lams,
        fake=FAKES[fake],
        rng=as_generator(options.seed),
        n_jobs=options.jobs,
    )
    how = "" if draw.used is None else f" ({type(draw.used.estimator).__name__}, {draw.used.rows.replace('_', ' ')})"
    return found, f"Lambda path for {short(options.target)}{how}"


def write_path(found: LambdaPath, columns: list[str], out: Path, *, title: str, fake: str) -> None:
    """Write a picture, or the numbers if the file ends in .csv: one row for each feature and lambda."""
    import numpy as np

    from knockoffs.table.files import write_table_file
    from knockoffs.table.writer import atomic_file

    kind = out.suffix.lower()[1:]
    if kind == "csv":
        n_features, n_lams = found.W.shape
        names = np.repeat(np.array(found.feature_names, dtype=object), n_lams)
        write_table_file({"feature": names, "lambda": np.tile(found.lams, n_features), "W": found.W.ravel()}, out)
        return
    import matplotlib
    from matplotlib.figure import Figure

    from knockoffs.plots.paths import plot_paths
    from knockoffs.plots.style import plain

    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)  # the same path is the same file
    with matplotlib.rc_context({"svg.hashsalt": "knockoffs", "svg.fonttype": "none"}):
        figure = Figure(figsize=(8.0, 4.6), layout="constrained")
        axes = plot_paths(found, features=columns, fake=fake, ax=figure.subplots())
        plain([axes.set_title(title, loc="left", fontsize=11)])
        with atomic_file(out) as file:
            figure.savefig(file, format=kind, dpi=160, metadata=undated)
