"""Commands that say which features matter: select, test, ghost, rerun; and check, which looks at the table first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knockoffs.cli.calls import bad_call, check_call, check_feature_model, prepare_jobs
from knockoffs.cli.declare import defaults_of, with_options
from knockoffs.cli.output import put
from knockoffs.cli.program import Force, Jobs, OneFile, OutFolder, TableFile, app
from knockoffs.errors import printable
from knockoffs.options import Parameters


@app.command()
@with_options("select")
def select(table: TableFile, parameters: Parameters, out: OutFolder = None, force: Force = False) -> None:
    """Select the features of a table that matter for its target.

    \b
    knockoffs select table.csv --target y
    knockoffs select table.csv --target y --fdr 0.05 --out results --report report.html
    knockoffs select table.parquet --target y --drop id,date --kind grade=ordinal --groups auto
    knockoffs select table.csv --target y --draws 5 --level post-hoc --jobs -1
    """
    run_select(table, parameters, out, force)


@app.command()
@with_options("test")
def test(table: TableFile, parameters: Parameters, out: OutFolder = None, force: Force = False) -> None:
    """Give every feature a p-value; for tables of few columns too.

    Each is drawn anew given all the others, many times, and compared with the draws.

    \b
    knockoffs test table.csv --target y
    knockoffs test table.csv --target y --fdr 0.05 --out results
    """
    asked: Parameters = {**defaults_of("select"), **parameters, "method": "conditional_test"}
    run_select(table, asked, out, force)


def run_select(table: Path, parameters: Parameters, out: Path | None, force: bool) -> None:
    """Select, save and show."""
    jobs, report, paths = parameters.pop("jobs"), parameters.pop("report"), parameters.pop("report_paths")
    keep = parameters.pop("keep_knockoffs")
    if parameters["knockoffs"] is not None:
        if parameters["feature_model"] != "auto" or parameters["feature_model_options"]:
            raise bad_call("--knockoffs are used as they are: leave out --feature-model and its options.")
        parameters["feature_model"] = None
    check_call(parameters)
    from knockoffs.cli.work import Batches, check_out, check_report, deliver, run_selection

    check_out(out, table, parameters, force)
    place = check_report(report, table, parameters, force, out)
    batches: Batches = {}
    if keep is not None:
        batches["keep_knockoffs"] = keep
    record = run_selection(table, parameters, jobs, out=out, report=place, paths=paths, batches=batches)
    deliver(record, out)


@app.command()
@with_options("ghost")
def ghost(
    z: Annotated[Path, typer.Option(metavar="FILE", help="Table with one row a feature: its name and its z-score.")],
    parameters: Parameters,
    out: OutFolder = None,
    force: Force = False,
) -> None:
    """Select from the z-scores of a study.

    With the correlations of its columns, its rows are not needed.

    \b
    knockoffs ghost --z z.csv --correlation R.npy --n 50000
    knockoffs ghost --z z.csv --scores Z --correlation R.npy --n 50000 --shrink 0.1 --out found
    """
    parameters |= {"target": parameters["scores"], "drop": []}
    check_call(parameters)
    from knockoffs.cli.ghost import run_ghost
    from knockoffs.cli.work import check_out, deliver

    check_out(out, z, parameters, force)
    record = run_ghost(z, parameters)
    deliver(record, out)


@app.command()
@with_options("check")
def check(table: OneFile, parameters: Parameters) -> None:
    """Say what the columns hold; judge knockoffs of them.

    Could they be told from the table? No target is needed. With --knockoffs, of those made elsewhere, in a
    file; with --repair, after what the verdict advises was done.

    \b
    knockoffs check table.csv --drop y
    knockoffs check table.csv --drop y --knockoffs mine.csv
    knockoffs check table.csv --drop y --feature-model gaussian --repair
    """
    check_feature_model(parameters["feature_model"])
    from knockoffs.cli.check import run_check

    prepare_jobs(parameters["jobs"])
    put(run_check(table, parameters))


@app.command()
def rerun(
    selection: Annotated[Path, typer.Argument(metavar="SELECTION", help="selection.json of an earlier run.")],
    table: TableFile,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for the new selection.json and selection.csv.")
    ] = None,
    force: Force = False,
    jobs: Jobs = None,
) -> int:
    """Run a selection again: the same answer, or what differs.

    \b
    knockoffs rerun results/selection.json table.csv
    """
    from knockoffs.cli.work import check_out, deliver, run_selection
    from knockoffs.record.comparing import differences
    from knockoffs.record.reading import read_selection

    old = read_selection(selection)
    check_call(old.parameters)
    check_out(out, table, old.parameters, force, selection)
    if old.method == "ghost":
        from knockoffs.cli.ghost import run_ghost

        new = run_ghost(table, old.parameters)
    else:
        new = run_selection(table, old.parameters, jobs, out=out)
    answer, grounds = differences(old, new)
    deliver(new, out)
    for difference in grounds:
        put(f"Different: {printable(difference)}.")
    if not answer:
        same = "p-values" if new.method == "conditional_test" else "W, threshold"
        put(f"The answer is identical: the same {same} and selection, to the last bit.")
        return 0
    for difference in answer:
        put(f"Different in the answer: {printable(difference)}.")
    return 1
