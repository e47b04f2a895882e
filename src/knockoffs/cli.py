"""The command line: one function a command, one command a job.

Only typer is imported at the top, so that ``knockoffs --help`` answers at once; each command imports what it needs.
A new command is a function here with ``@app.command()``. Errors leave as one sentence on standard error: status 1
for data that cannot be used (`InputError`), 2 for a call that cannot be understood (`bad_call`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from knockoffs.selection_file import SelectionRecord

app = typer.Typer(
    name="knockoffs",
    help="Select the features that matter given all the others, with the false discovery rate held at a level.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

TableFile = Annotated[Path, typer.Argument(metavar="TABLE", help="csv, csv.gz, tsv or parquet, with a header.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random; the same seed gives the same answer.", min=0)]
Jobs = Annotated[int | None, typer.Option(help="Jobs at a time; the answer does not depend on it.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be given several times.")]
FeatureModelName = Annotated[
    str, typer.Option(help="P^X, the model of the features: gaussian, mixture, naive-bayes, hmm, lda, network.")
]
FeatureModelOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Option of the feature model, for instance diagonal=mvr; repeatable."),
]


def bad_call(message: str) -> Exception:
    """Error of a call that cannot be understood: the program ends with status 2."""
    return typer.BadParameter(message)


def main(arguments: list[str] | None = None) -> None:
    """Run the program and end it with status 0, 1 for bad data or 2 for a bad call."""
    from knockoffs.errors import InputError

    click_exception = typer.BadParameter.__mro__[2]  # typer brings its own copy of click, or uses the real one
    try:
        status = app(args=arguments, standalone_mode=False)
    except InputError as error:
        fail(str(error), 1)
    except click_exception as error:  # type: ignore[misc]
        if type(error).__name__ == "NoArgsIsHelpError":  # no command was named
            print(error.format_message(), file=sys.stderr)
            sys.exit(2)
        fail(error.format_message(), 2)
    except (typer.Abort, KeyboardInterrupt):
        fail("stopped; files that were not finished are not there, older ones are as they were.", 130)
    except BrokenPipeError:  # the reader of our output has gone
        sys.stdout = None
        sys.exit(1)
    except OSError as error:
        fail(f"{error.filename or 'writing'}: {error.strerror or error}.", 1)
    except MemoryError:
        fail("this does not fit into memory: use fewer rows or columns.", 1)
    sys.exit(status if isinstance(status, int) else 0)


def fail(message: str, status: int) -> None:
    """Write one sentence to standard error and end the program."""
    print(f"knockoffs: {printable(message)}", file=sys.stderr)
    sys.exit(status)


# ---- commands ----------------------------------------------------------------------------------------------------


@app.command()
def select(
    table: TableFile,
    target: Annotated[str, typer.Option(help="Column to be explained.")],
    fdr: Annotated[float, typer.Option(help="False discovery rate to hold.")] = 0.1,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for selection.json and selection.csv.")] = None,
    feature_model: FeatureModelName = "mixture",
    feature_model_option: FeatureModelOption = None,
    estimator: Annotated[
        str | None, typer.Option(help="Model of the target: lasso, logistic, forest, boosting, neural.")
    ] = None,
    importance: Annotated[
        str | None, typer.Option(help="Importance score: coefficients, swap, permutation, ...")
    ] = None,
    loss: Annotated[str | None, typer.Option(help="Loss of the score: log-loss, accuracy, squared-error, ...")] = None,
    evaluation: Annotated[str | None, typer.Option(help="Rows that are scored: in-sample, cross-fitted, ...")] = None,
    task: Annotated[
        str | None, typer.Option(help="regression or classification, where the target does not tell.")
    ] = None,
    rule: Annotated[str, typer.Option(help="W from Z: difference or signed-maximum.")] = "difference",
    offset: Annotated[int, typer.Option(help="1 (knockoff+) or 0.")] = 1,
    folds: Annotated[int, typer.Option(help="Folds of a cross-fitted evaluation.")] = 5,
    fits: Annotated[int, typer.Option(help="Fits whose scores are averaged.")] = 1,
    drop: Drop = None,
    jobs: Jobs = None,
) -> None:
    """Select the features of a table that matter for its target."""
    parameters = {
        "target": target,
        "drop": list(drop or []),
        "fdr": fdr,
        "seed": seed,
        "feature_model": feature_model,
        "feature_model_options": parse_options(feature_model_option),
        "estimator": estimator,
        "importance": importance,
        "loss": loss,
        "evaluation": evaluation,
        "task": task,
        "rule": rule,
        "offset": offset,
        "n_folds": folds,
        "n_fits": fits,
    }
    check_call(parameters)
    record = run_selection(table, parameters, jobs)
    show(record)
    save(record, out)


@app.command()
def rerun(
    selection: Annotated[Path, typer.Argument(metavar="SELECTION", help="selection.json of an earlier run.")],
    table: TableFile,
    out: Annotated[Path | None, typer.Option(help="Folder for the new selection.json and selection.csv.")] = None,
    jobs: Jobs = None,
) -> int:
    """Run a selection again: the same answer, or what differs."""
    from knockoffs.selection_file import differences, read_selection

    old = read_selection(selection)
    check_call(old.parameters)
    new = run_selection(table, old.parameters, jobs)
    answer, grounds = differences(old, new)
    show(new)
    save(new, out)
    for difference in grounds:
        print(f"Different: {printable(difference)}.")
    if not answer:
        print("The answer is identical: the same W, threshold and selection, to the last bit.")
        return 0
    for difference in answer:
        print(f"Different in the answer: {printable(difference)}.")
    return 1


@app.command()
def sample(
    table: TableFile,
    out: Annotated[Path, typer.Option(help="File for the knockoffs; its ending gives the format.")],
    feature_model: FeatureModelName = "mixture",
    feature_model_option: FeatureModelOption = None,
    seed: Seed = 0,
    drop: Drop = None,
    jobs: Jobs = None,
) -> None:
    """Draw knockoffs of a table, and write them in the format that came in."""
    options = parse_options(feature_model_option)
    check_feature_model(feature_model)
    from knockoffs.choices import feature_model_for, load_feature_model, read_features
    from knockoffs.choices import fit_feature_model as fit
    from knockoffs.estimator import as_generator
    from knockoffs.files import file_format, write_table_file
    from knockoffs.sampling.sampler import sample_knockoffs

    if out.is_dir():
        ending = file_format(table)
        out = out / f"{table.name[: -len(ending)]}.knockoffs{ending}"
    file_format(out)
    frame = read(table, drop)
    family = load_feature_model(feature_model)
    checked = read_features(frame, family, argument=table.name, min_rows=2)
    fit_stream, draw_stream = as_generator(seed).spawn(2)
    say(f"fitting {feature_model} to {checked.X.shape[0]} rows of {checked.X.shape[1]} columns")
    model = fit(feature_model_for(family, checked, options), checked, rng=fit_stream, n_jobs=jobs)
    say("drawing knockoffs")
    X_tilde = sample_knockoffs(model.as_network(), checked.X, draw_stream)
    write_table_file(checked.decode(X_tilde), out)
    say(f"wrote {out}: {X_tilde.shape[0]} rows, {X_tilde.shape[1]} columns")


@app.command()
def demo(
    fdr: Annotated[float, typer.Option(help="False discovery rate to hold.")] = 0.2,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for selection.json and selection.csv.")] = None,
    jobs: Jobs = None,
) -> None:
    """Select the features that tell malignant from benign tumours (scikit-learn's breast cancer data)."""
    import hashlib

    import numpy as np
    from sklearn.datasets import load_breast_cancer

    from knockoffs.table import PlainFrame

    data = load_breast_cancer()
    columns = {str(name): values for name, values in zip(data.feature_names, data.data.T, strict=True)}
    columns["diagnosis"] = np.asarray(data.target_names, dtype=object)[data.target]
    parameters = {"target": "diagnosis", "drop": [], "fdr": fdr, "seed": seed}
    check_call(parameters)
    origin = {"file": "breast cancer, scikit-learn", "sha256": hashlib.sha256(data.data.tobytes()).hexdigest()}
    record = run_on_frame(PlainFrame(columns), parameters, origin, jobs)
    show(record)
    save(record, out)


# New commands (path, reproduce) go here: a function with @app.command(), what it needs imported inside.


# ---- the work behind them ------------------------------------------------------------------------------------------


def run_selection(table: Path, parameters: dict[str, Any], jobs: int | None) -> SelectionRecord:
    """Read a file, select, and record what was found."""
    from knockoffs.files import file_hash

    frame = read(table, [])
    data = {"file": table.name, "sha256": file_hash(table)}
    return run_on_frame(frame, parameters, data, jobs)


def run_on_frame(frame: Any, parameters: dict[str, Any], data: dict[str, Any], jobs: int | None) -> SelectionRecord:
    """Select from a frame, and record what was found."""
    from knockoffs.errors import KnockoffWarning
    from knockoffs.estimator import KnockoffSelector
    from knockoffs.files import drop_columns, take_column
    from knockoffs.selection_file import record_selection

    target, dropped = parameters["target"], parameters["drop"]
    check_columns(frame, [target], "--target")
    check_columns(frame, dropped, "--drop")
    y = take_column(frame, target)
    X = drop_columns(frame, [target, *dropped])
    options = {key: value for key, value in parameters.items() if key not in ("target", "drop", "seed")}
    selector = KnockoffSelector(**options, random_state=parameters["seed"], n_jobs=jobs)
    say(f"selecting from {len(X.columns)} features of {len(y)} rows for {target!r}")
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", KnockoffWarning)
        selector.fit(X, y)
    for warning in caught:
        if issubclass(warning.category, KnockoffWarning):
            say(f"warning: {warning.message}")
    shape = {"n_rows": len(y), "n_columns": len(frame.columns)}
    return record_selection(selector.selection_, parameters, data | shape)


def read(table: Path, drop: list[str] | None) -> Any:
    """Read a file, and leave out columns."""
    from knockoffs.files import drop_columns, read_table_file

    say(f"reading {table}")
    frame = read_table_file(table)
    check_columns(frame, list(drop or []), "--drop")
    return drop_columns(frame, list(drop or [])) if drop else frame


def save(record: SelectionRecord, out: Path | None) -> None:
    """Write the record where a folder was named."""
    if out is None:
        return
    from knockoffs.selection_file import write_selection

    json_path, csv_path = write_selection(record, out)
    say(f"wrote {json_path} and {csv_path}")


# ---- checking the call -----------------------------------------------------------------------------------------------


def check_call(parameters: dict[str, Any]) -> None:
    """Refuse what is wrong whatever the data are; the data have not been read yet."""
    from knockoffs.errors import InputError
    from knockoffs.filter import RULES, check_fdr, check_offset

    try:
        check_fdr(parameters["fdr"])
        check_offset(parameters.get("offset", 1))
    except InputError as error:
        raise bad_call(str(error)) from None
    check_feature_model(parameters.get("feature_model"))
    check_name("rule", parameters.get("rule"), RULES)
    if parameters.get("estimator"):
        from knockoffs.response import ESTIMATORS

        check_name("estimator", parameters["estimator"], ESTIMATORS)
    if parameters.get("importance"):
        from knockoffs.importance import SCORES

        check_name("importance", parameters["importance"], SCORES)
    if parameters.get("loss"):
        from knockoffs.importance.losses import LOSSES

        check_name("loss", parameters["loss"], LOSSES)
    if parameters.get("task"):
        from knockoffs.choices import TASKS

        check_name("task", parameters["task"], TASKS)


def check_feature_model(name: str | None) -> None:
    """Refuse a family that does not exist."""
    from knockoffs.features import FAMILIES

    if name is None or not name.lower().endswith((".bif", ".bif.gz")):
        check_name("feature-model", name, FAMILIES)


def check_name(option: str, got: str | None, allowed: Any) -> None:
    """Refuse a name that is not among those allowed, with the nearest that is."""
    from knockoffs.errors import unknown_option

    if got is not None and got.replace("-", "_") not in allowed:
        raise bad_call(f"--{unknown_option(option, got, allowed)}")


def check_columns(frame: Any, names: list[str], option: str) -> None:
    """Refuse columns that the table does not have, with the nearest that it has."""
    from difflib import get_close_matches

    from knockoffs.errors import name_some

    columns = [str(name) for name in frame.columns]
    for name in names:
        if name not in columns:
            near = get_close_matches(name, columns, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise bad_call(f"{option} {name!r} is not a column of the table.{hint} It has {name_some(columns)}.")


def parse_options(pairs: list[str] | None) -> dict[str, Any] | None:
    """Options from NAME=VALUE; a value that is a number, true, false or a list in JSON is read as one."""
    import json

    options = {}
    for pair in pairs or []:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise bad_call(f"--feature-model-option {pair!r}: expected NAME=VALUE.")
        try:
            options[name.replace("-", "_")] = json.loads(text)
        except json.JSONDecodeError:
            options[name.replace("-", "_")] = text
    return options or None


# ---- what is shown -------------------------------------------------------------------------------------------------


def say(message: str) -> None:
    """Write a line about the progress to standard error; bars are drawn by the loops themselves, on a terminal."""
    print(printable(message), file=sys.stderr, flush=True)


def printable(text: str) -> str:
    r"""Text whose control characters are written as escapes, so that a name cannot break a line.

    >>> printable("a\nb")
    'a\\nb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def show(record: SelectionRecord) -> None:
    """Print the selected features as a table, and the sentence that says what it means."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    console = Console(width=None if terminal else 10_000, highlight=False)
    by_W = sorted(record.features, key=lambda feature: -feature["W"])
    selected = [feature for feature in by_W if feature["selected"]]
    # where nothing was selected, the nearest ones, and that they were not
    shown = selected or [feature for feature in by_W[:10] if feature["W"] > 0]
    if shown:
        grid = Table(box=None, pad_edge=False, header_style="bold")
        grid.add_column("feature" if selected else "feature (not selected)", overflow="fold")
        for heading in ("W", "q-value"):
            grid.add_column(heading, justify="right", no_wrap=True)
        for feature in shown:
            # Text, not a string: brackets in a name are not markup
            grid.add_row(Text(printable(feature["name"])), f"{feature['W']:.4g}", f"{feature['q_value']:.3g}")
        console.print(grid)
        console.print()
    console.print(f"threshold {record.threshold:.4g}, {len(selected)} of {len(record.features)} features selected")
    for note in record.notes.values():
        console.print(Text(f"- {printable(note)}"))
    console.print()
    console.print(Text(record.explanation))


if __name__ == "__main__":
    main()
