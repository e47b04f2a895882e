"""Commands around a selection: sample and path, the paper's figures, the page in the browser, the demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knockoffs.cli.calls import (
    bad_call,
    check_call,
    check_feature_model,
    check_path,
    check_picture,
    prepare_jobs,
    split_names,
)
from knockoffs.cli.declare import with_options
from knockoffs.cli.output import put, say, spoken_warnings
from knockoffs.cli.program import Force, Jobs, OneFile, OutFolder, app
from knockoffs.errors import name_some
from knockoffs.options import Parameters
from knockoffs.progress import stage


@app.command()
@with_options("sample")
def sample(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="csv, csv.gz, tsv or parquet, with a header; or PLINK's .bed.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="File for the knockoffs; its ending gives the format.")],
    parameters: Parameters,
    fastphase: Annotated[
        str | None,
        typer.Option(
            metavar="PREFIX",
            help="Genotypes: what the names of fastPHASE's files begin with; {} stands for each chromosome's name.",
        ),
    ] = None,
    rows_at_once: Annotated[
        int, typer.Option(metavar="N", help="Of a .bed: people in a block, which memory holds.", min=1)
    ] = 4096,
    fresh: Annotated[bool, typer.Option("--fresh", help="Of a .bed: do not go on with a stopped run.")] = False,
    force: Force = False,
) -> None:
    """Draw knockoffs of a table, in the format that came in.

    \b
    knockoffs sample table.csv --drop y --out knockoffs.csv
    knockoffs sample chr21.bed --fastphase hmm_chr21 --out knockoffs_chr21.bed
    """
    genotypes, family = table.suffix.lower() == ".bed", parameters["feature_model"]
    if family == "auto" and (genotypes or fastphase is not None):
        family = "fastphase"
    check_feature_model(family)
    options = parameters["feature_model_options"]
    if fastphase is not None:
        if family != "fastphase":
            raise bad_call(f"--fastphase is for --feature-model fastphase, not {family}.")
        options = {**(options or {}), "prefix": fastphase}
    if genotypes and family != "fastphase":
        raise bad_call(f"--feature-model {family}: genotypes of a .bed file take fastphase.")
    if family == "fastphase" and "prefix" not in (options or {}):
        raise bad_call("--fastphase PREFIX is needed: what the names of the files that fastPHASE wrote begin with.")
    from knockoffs.cli.work import sample_genotypes, sample_table

    parameters |= {"feature_model": family, "feature_model_options": options}
    if not genotypes:
        sample_table(table, out, parameters, force=force)
        return
    if parameters["drop"]:
        raise bad_call("--drop is for tables: leave SNPs out of a .bed file with PLINK.")
    sample_genotypes(table, out, parameters, rows_at_once=rows_at_once, fresh=fresh, force=force)


@app.command()
@with_options("path")
def path(
    table: OneFile,
    column: Annotated[
        list[str], typer.Option(metavar="COLUMN", help="Feature to draw in colour; may be given several times.")
    ],
    parameters: Parameters,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="File for the picture, png, svg or pdf; or csv, for the numbers.")
    ] = Path("lambda_path.png"),
    fake: Annotated[str, typer.Option(metavar="NAME", help="What a column moves to: swapped or permuted.")] = "swapped",
    lambda_range: Annotated[
        tuple[float, float], typer.Option(metavar="FROM TO", help="Where lambda starts and ends.")
    ] = (0.0, 10.0),
    points: Annotated[int, typer.Option(metavar="N", help="Lambdas in the range.", min=2)] = 41,
    force: Force = False,
) -> None:
    """Draw the lambda path of some columns.

    W, as the columns move from their values (0) through their fakes (1) and beyond.

    \b
    knockoffs path table.csv --target y --column age --column weight --out path.png
    knockoffs path table.csv --target y --column age --out path.csv
    """
    jobs = parameters.pop("jobs")
    check_call(parameters)
    check_path(fake=fake, lambda_range=lambda_range, n_lams=points)
    check_picture(out)
    prepare_jobs(jobs)
    import numpy as np

    from knockoffs.cli.path import check_plotting, follow_path, write_path
    from knockoffs.cli.work import other_paths, read
    from knockoffs.table.writer import check_output

    if out.suffix.lower() != ".csv":
        check_plotting()
    check_output(out, [table, *other_paths(parameters)], force=force)
    frame = read(table, parameters)
    column = split_names(frame, column, "--column")
    target, weights, drop = parameters["target"], parameters["weights"], parameters["drop"]
    unused = [name for name in column if name in (target, weights, *split_names(frame, drop, "--drop"))]
    if unused:
        raise bad_call(f"--column {unused[0]!r} is not among the features: it is the target, the weights or dropped.")
    with spoken_warnings():
        found, notes = follow_path(frame, parameters, jobs, fake=fake, lams=np.linspace(*lambda_range, points))
    model, rows = notes.pop("model"), notes["rows"]
    write_path(found, list(dict.fromkeys(column)), out, target=target, model=model, rows=rows, fake=fake)
    say(f"wrote {out}")


@app.command()
def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Figure or table of the paper, or all of them: all.")
    ] = None,
    list_names: Annotated[bool, typer.Option("--list", help="List the names, and do nothing.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Minutes on two cores instead of the full size.")] = False,
    device: Annotated[str, typer.Option(metavar="NAME", help="For neural networks: auto, cpu or cuda.")] = "auto",
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for tables, figures, records and finished work.")
    ] = Path("results"),
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of everything random.", min=0)] = 2019,
    jobs: Annotated[int, typer.Option(metavar="N", help="Jobs at a time; -1 is all cores.")] = -1,
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of the real data sets (else KNOCKOFFS_DATA).")
    ] = None,
    archive: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Zip file for all tables, figures and records.")
    ] = None,
    force: Force = False,
) -> None:
    """Reproduce the paper's figures and tables.

    \b
    knockoffs reproduce --list
    knockoffs reproduce fig2 --quick
    knockoffs reproduce all --jobs -1 --data folder --archive results.zip
    """
    from knockoffs.errors import unknown_option
    from knockoffs.experiments import EXPERIMENTS, STUDIES, describe, run_experiment

    if list_names:
        for key in (*EXPERIMENTS, *STUDIES):
            put(f"{key:<14} {describe(key)}")
        put(f"{'all':<14} {', '.join(EXPERIMENTS)}")
        return
    if name is None:
        raise bad_call("name a figure or table, or all; --list lists them.")
    if name not in (known := (*EXPERIMENTS, *STUDIES, "all")):
        raise bad_call(str(unknown_option("NAME", name, known)))
    if data is not None and not data.is_dir():
        raise bad_call(f"--data {str(data)!r}: there is no such folder.")
    prepare_jobs(jobs)
    from knockoffs.table.writer import check_output, check_place

    check_place(out, make=True)
    if archive is not None and archive.parent.resolve() != out.resolve():  # else its folder may have to be made
        check_place(archive.parent)
    if archive is not None and archive.exists():
        check_output(archive, force=force)
    for written in run_experiment(
        name,
        quick=quick,
        device=device,
        out=out,
        seed=seed,
        n_jobs=jobs,
        data_folder=data,
        archive=archive,
        force=force,
    ):
        say(f"wrote {written}")


@app.command("app")
def open_page(
    port: Annotated[
        int, typer.Option(metavar="N", help="Port of this machine; 0 takes a free one.", min=0, max=65535)
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    max_size: Annotated[
        float, typer.Option(metavar="MB", help="Largest table that is taken, in MB.", min=0.001)
    ] = 200.0,
    parallel_map: Annotated[
        int | None, typer.Option(metavar="N", help="Selections at a time; half of the cores.", min=1)
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder in which the files of every selection are kept; else nothing is."),
    ] = None,
) -> None:
    """Open a page in the browser.

    Drop a table, look at its columns, run, read the report. It runs on this machine alone. Ctrl-C ends it, and nothing
    is left on disk.

    \b
    knockoffs app
    knockoffs app --no-browser --port 8000 --keep answers
    """
    from knockoffs.app.serve import check_extra, serve

    check_extra()
    from knockoffs.cli.page import select_for_page
    from knockoffs.table.writer import check_place

    if keep is not None:
        check_place(keep, make=True)
    stage("")  # to wait for the user is no work
    serve(
        select_for_page,
        port=port,
        most_bytes=int(max_size * 1e6),
        parallel_map=parallel_map,
        keep=keep,
        browser=browser,
        say=say,
    )


@app.command()
def demo(
    fdr: Annotated[float, typer.Option(metavar="NUMBER", help="False discovery rate to hold.")] = 0.1,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of everything random.", min=0)] = 0,
    out: OutFolder = None,
    force: Force = False,
    jobs: Jobs = None,
) -> None:
    """Select what matters for the course of diabetes.

    All ten columns of the diabetes data that scikit-learn brings along, with every option at its default.

    \b
    knockoffs demo
    knockoffs demo --out results
    """
    import hashlib

    import numpy as np

    from knockoffs.app.examples import diabetes
    from knockoffs.cli.work import deliver, run_on_frame
    from knockoffs.record import DataFile, check_selection_place

    parameters: Parameters = {"target": "progression", "drop": [], "fdr": fdr, "seed": seed}
    check_call(parameters)
    prepare_jobs(jobs)
    if out is not None:
        check_selection_place(out, force=force)
    frame = diabetes()
    features = np.ascontiguousarray(frame.drop("progression").to_numpy())
    origin: DataFile = {"file": "diabetes, scikit-learn", "sha256": hashlib.sha256(features.tobytes()).hexdigest()}
    record = run_on_frame(frame, parameters, origin, jobs)
    deliver(record, out)
    chosen = [str(feature["name"]) for feature in record.features if feature["selected"]]
    put(f"\n{about_lipids(chosen)} Your own table: knockoffs select TABLE --target COLUMN")


def about_lipids(chosen: list[str]) -> str:
    """Tell which columns of the diabetes data cannot matter given the others, and whether one was selected even so.

    >>> about_lipids(["bmi", "ldl"]).split(". ")[-1]
    'Here ldl is one of the false discoveries that a level allows: another --seed draws anew.'
    """
    told = (
        "The target is the progression of diabetes one year on. LDL was computed from cholesterol, HDL and "
        "triglycerides, so given three of these four columns the last is known, and none can matter given the others."
    )
    false = [name for name in chosen if name in ("cholesterol", "ldl", "hdl", "log triglycerides")]
    if not false:
        return f"{told} P^X has found that; a linear regression is sure of the triglycerides."
    are = f"{false[0]} is one" if len(false) == 1 else f"{name_some(false)} are some"
    return f"{told} Here {are} of the false discoveries that a level allows: another --seed draws anew."
