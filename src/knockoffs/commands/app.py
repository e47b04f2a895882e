"""The command line: one function a command, one command a job.

Only typer is imported at the top, so that ``knockoffs --help`` answers at once; each command imports what it needs.
A new command is a function here with ``@app.command()``; a call is checked in ``calls``, the work is done in
``work`` and ``path``, and ``output`` shows it. Errors leave as one sentence on standard error: status 1 for
data that cannot be used (`InputError`), 2 for a call that cannot be understood (`bad_call`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from knockoffs.commands.calls import bad_call, check_call, check_feature_model, check_picture, prepare_jobs, split_names
from knockoffs.commands.declare import with_options
from knockoffs.commands.interrupt import interrupt_once
from knockoffs.commands.output import UnprintedError, prepare_streams, put, say, show, spoken_warnings
from knockoffs.errors import printable
from knockoffs.progress import showing, stage

STOPPED = 130  # status of a program that was ended by Ctrl-C

app = typer.Typer(
    name="knockoffs",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

TableFile = Annotated[
    Path, typer.Argument(metavar="TABLE", help="csv, csv.gz, tsv or parquet, with a header; or a folder of parquet.")
]
Jobs = Annotated[int | None, typer.Option(help="Jobs at a time; the answer does not depend on it.")]
OutFolder = Annotated[Path | None, typer.Option(help="Folder for selection.json and selection.csv.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that are there already.")]
Parameters = dict[str, Any]


def main(arguments: list[str] | None = None) -> None:
    """Run the program and end it with status 0, 1 for bad data or 2 for a bad call."""
    prepare_streams()
    from knockoffs.errors import EXTRAS, InputError, installs

    click_exception = typer.BadParameter.__mro__[2]  # typer brings its own copy of click, or uses the real one
    try:
        with interrupt_once(), showing():
            status = app(args=arguments, standalone_mode=False)
        if status == STOPPED:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
    except InputError as error:
        fail(str(error), 1)
    except click_exception as error:  # type: ignore[misc]
        fail(error.format_message(), 2)
    except (typer.Abort, KeyboardInterrupt):
        fail("stopped; files that were not finished are not there, older ones are as they were.", STOPPED)
    except UnprintedError as error:
        if str(error):  # else the reader of our output has gone, and wants no more of it
            fail(f"standard output: {error}. What was to be saved is saved.", 1)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:
        fail(f"{error.filename or 'reading or writing'}: {error.strerror or error}.", 1)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        fail(f"this needs {error.name}, which is not installed: {installs(error.name)}.", 1)
    except MemoryError:
        fail("this does not fit into memory: use fewer rows or columns.", 1)
    sys.exit(status if isinstance(status, int) else 0)


def fail(message: str, status: int) -> None:
    """Write one sentence to standard error and end the program."""
    say(f"knockoffs: {message}")
    sys.exit(status)


def say_lines(text: str) -> None:
    """Write lines to standard error."""
    for line in text.splitlines():
        say(line)


def print_version(asked: bool) -> None:
    """Print the version and end, where it was asked for."""
    if asked:
        from knockoffs import __version__

        put(f"knockoffs {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def every_command(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    """Select the features that matter given all the others, with the false discovery rate held at a level.

    \b
    What do you want?
      See how it works                knockoffs demo
      All of it in the browser        knockoffs app
      What does my table hold?        knockoffs check table.csv --drop y
      Which features matter for y?    knockoffs select table.csv --target y --report report.html
      A p-value for every feature     knockoffs test table.csv --target y
      I have z-scores, and no rows    knockoffs ghost --z z.csv --correlation R.npy --n 50000
      The same answer again           knockoffs rerun results/selection.json table.csv
      Knockoffs, to use elsewhere     knockoffs sample table.csv --drop y --out knockoffs.csv
      Genotypes of a VCF as a .bed    knockoffs convert chr21.vcf.gz --out chr21.bed
      What a feature does to W        knockoffs path table.csv --target y --column age
      The figures of the paper        knockoffs reproduce fig2 --quick
    \b
    knockoffs COMMAND --help says more of each.
    """
    if context.invoked_subcommand is None:
        say_lines(context.get_help())
        raise typer.Exit(2)


# ---- commands ----------------------------------------------------------------------------------------------------


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
@with_options("select")
def test(table: TableFile, parameters: Parameters, out: OutFolder = None, force: Force = False) -> None:
    """Give every feature a p-value; for tables of few columns too.

    Each is drawn anew given all the others, many times, and compared with the draws.

    \b
    knockoffs test table.csv --target y
    knockoffs test table.csv --target y --fdr 0.05 --out results
    """
    if parameters["method"] == "knockoffs":
        raise bad_call("--method knockoffs: knockoffs give no p-values; use knockoffs select.")
    run_select(table, {**parameters, "method": "conditional_test"}, out, force)


def run_select(table: Path, parameters: Parameters, out: Path | None, force: bool) -> None:
    """Select, save and show."""
    jobs, report, paths = (parameters.pop(name) for name in ("jobs", "report", "report_paths"))
    if parameters["knockoffs"] is not None:
        if parameters["feature_model"] != "auto" or parameters["feature_model_options"]:
            raise bad_call("--knockoffs are used as they are: leave out --feature-model and its options.")
        parameters["feature_model"] = None
    check_call(parameters)
    from knockoffs.commands.work import check_out, check_report, run_selection, save

    check_out(out, table, parameters, force)
    place = check_report(report, table, parameters, force, out)
    record = run_selection(table, parameters, jobs, out=out, report=place, paths=paths)
    save(record, out)
    show(record)


@app.command()
@with_options("ghost")
def ghost(
    z: Annotated[Path, typer.Option(metavar="FILE", help="Table with one row a feature: its name and its z-score.")],
    parameters: Parameters,
    out: OutFolder = None,
    force: Force = False,
) -> None:
    """Select features from the z-scores of a study and the correlations of its columns, without its rows.

    \b
    knockoffs ghost --z z.csv --correlation R.npy --n 50000
    knockoffs ghost --z z.csv --scores Z --correlation R.npy --n 50000 --shrink 0.1 --out found
    """
    parameters |= {"target": parameters["scores"], "drop": []}
    check_call(parameters)
    from knockoffs.commands.ghost import run_ghost
    from knockoffs.commands.work import check_out, save

    check_out(out, z, parameters, force)
    record = run_ghost(z, parameters)
    save(record, out)
    show(record)


@app.command()
@with_options("check")
def check(table: TableFile, parameters: Parameters) -> None:
    """Say what the columns hold, and whether knockoffs can be told.

    Could knockoffs of the table be told from it? No target is needed. With --knockoffs, of knockoffs that were made
    elsewhere; with --repair, after what the verdict advises was done.

    \b
    knockoffs check table.csv --drop y
    knockoffs check table.csv --drop y --knockoffs mine.csv
    knockoffs check table.csv --drop y --feature-model gaussian --repair
    """
    check_feature_model(parameters["feature_model"])
    from knockoffs.commands.check import run_check

    prepare_jobs(parameters["jobs"])
    put(run_check(table, parameters))


@app.command()
def rerun(
    selection: Annotated[Path, typer.Argument(metavar="SELECTION", help="selection.json of an earlier run.")],
    table: TableFile,
    out: Annotated[Path | None, typer.Option(help="Folder for the new selection.json and selection.csv.")] = None,
    force: Force = False,
    jobs: Jobs = None,
) -> int:
    """Run a selection again: the same answer, or what differs.

    \b
    knockoffs rerun results/selection.json table.csv
    """
    from knockoffs.commands.work import check_out, run_selection, save
    from knockoffs.record import differences, read_selection

    old = read_selection(selection)
    check_call(old.parameters)
    check_out(out, table, old.parameters, force, selection)
    if old.method == "ghost":
        from knockoffs.commands.ghost import run_ghost

        new = run_ghost(table, old.parameters)
    else:
        new = run_selection(table, old.parameters, jobs, out=out)
    answer, grounds = differences(old, new)
    save(new, out)
    show(new)
    for difference in grounds:
        put(f"Different: {printable(difference)}.")
    if not answer:
        put("The answer is identical: the same W, threshold and selection, to the last bit.")
        return 0
    for difference in answer:
        put(f"Different in the answer: {printable(difference)}.")
    return 1


@app.command()
@with_options("sample")
def sample(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="csv, csv.gz, tsv or parquet, with a header; or PLINK's .bed.")
    ],
    out: Annotated[Path, typer.Option(help="File for the knockoffs; its ending gives the format.")],
    parameters: Parameters,
    fastphase: Annotated[
        str | None,
        typer.Option(
            metavar="PREFIX",
            help="Genotypes: what the names of fastPHASE's files begin with; {} stands for each chromosome's name.",
        ),
    ] = None,
    rows_at_once: Annotated[int, typer.Option(help="Of a .bed: people in a block, which memory holds.", min=1)] = 4096,
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
    from knockoffs.commands.work import sample_genotypes, sample_table

    parameters |= {"feature_model": family, "feature_model_options": options}
    if not genotypes:
        sample_table(table, out, parameters, force=force)
        return
    if parameters["drop"]:
        raise bad_call("--drop is for tables: leave SNPs out of a .bed file with PLINK.")
    sample_genotypes(table, out, parameters, rows_at_once=rows_at_once, fresh=fresh, force=force)


@app.command()
def convert(
    vcf: Annotated[Path, typer.Argument(metavar="VCF", help="Genotypes: .vcf, plain or packed by gzip.")],
    out: Annotated[Path, typer.Option(help="The .bed to be written, with .bim and .fam beside it.")],
    biallelic: Annotated[
        bool, typer.Option("--biallelic", help="Leave out lines with several alternative alleles.")
    ] = False,
    force: Force = False,
) -> None:
    """Write the genotypes of a VCF file as PLINK's .bed.

    \b
    knockoffs convert chr21.vcf.gz --out chr21.bed
    """
    from knockoffs.table.vcf import vcf_to_bed

    stage("reading the calls")
    people, snps = vcf_to_bed(vcf, out, biallelic=biallelic, force=force)
    say(f"wrote {out}, with .bim and .fam beside it: {people} people, {snps} SNPs")


@app.command()
@with_options("path")
def path(
    table: TableFile,
    column: Annotated[list[str], typer.Option(help="Feature to draw in colour; may be given several times.")],
    parameters: Parameters,
    out: Annotated[Path, typer.Option(help="File for the picture, png, svg or pdf; or csv, for the numbers.")] = Path(
        "lambda_path.png"
    ),
    fake: Annotated[str, typer.Option(help="What a column moves to: swapped or permuted.")] = "swapped",
    lambda_range: Annotated[tuple[float, float], typer.Option(help="Where lambda starts and ends.")] = (0.0, 10.0),
    points: Annotated[int, typer.Option(help="Lambdas in the range.", min=2)] = 41,
    force: Force = False,
) -> None:
    """Draw the lambda path of some columns.

    W, as the columns move from their values (0) through their fakes (1) and beyond.

    \b
    knockoffs path table.csv --target y --column age --column weight --out path.png
    knockoffs path table.csv --target y --column age --out path.csv
    """
    jobs = parameters.pop("jobs")
    parameters |= {"fake": fake, "lambda_range": lambda_range, "n_lams": points}
    check_call(parameters)
    check_picture(out)
    prepare_jobs(jobs)
    from knockoffs.commands.path import check_plotting, follow_path, write_path
    from knockoffs.commands.work import other_paths, read
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
        found, notes = follow_path(frame, parameters, jobs)
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
    device: Annotated[str, typer.Option(help="For neural networks: auto, cpu or cuda.")] = "auto",
    out: Annotated[Path, typer.Option(help="Folder for tables, figures, records and finished work.")] = Path("results"),
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0)] = 2019,
    jobs: Annotated[int, typer.Option(help="Jobs at a time; -1 is all cores.")] = -1,
    data: Annotated[Path | None, typer.Option(help="Folder of the real data sets (else KNOCKOFFS_DATA).")] = None,
    archive: Annotated[Path | None, typer.Option(help="Zip file for all tables, figures and records.")] = None,
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
    port: Annotated[int, typer.Option(help="Port of this machine; 0 takes a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    max_size: Annotated[float, typer.Option(help="Largest table that is taken, in MB.", min=0.001)] = 200.0,
    at_once: Annotated[int | None, typer.Option(help="Selections at a time; half of the cores.", min=1)] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Folder in which the files of every selection are kept; else nothing is.")
    ] = None,
) -> None:
    """Open a page in the browser: drop a table, look at its columns, run, read the report.

    It runs on this machine alone. Ctrl-C ends it, and nothing is left on disk.

    \b
    knockoffs app
    knockoffs app --no-browser --port 8000 --keep answers
    """
    from knockoffs.app.serve import check_extra, serve

    check_extra()
    from knockoffs.commands.page import select_for_page
    from knockoffs.table.writer import check_place

    if keep is not None:
        check_place(keep, make=True)
    stage("")  # to wait for the user is no work
    serve(
        select_for_page,
        port=port,
        most_bytes=int(max_size * 1e6),
        at_once=at_once,
        keep=keep,
        browser=browser,
        say=say,
    )


@app.command()
def demo(
    fdr: Annotated[float, typer.Option(help="False discovery rate to hold.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0)] = 0,
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
    from knockoffs.commands.work import run_on_frame, save
    from knockoffs.record import check_selection_place

    parameters = {"target": "progression", "drop": [], "fdr": fdr, "seed": seed}
    check_call(parameters)
    prepare_jobs(jobs)
    if out is not None:
        check_selection_place(out, force=force)
    frame = diabetes()
    features = np.column_stack([frame.data[name] for name in frame.columns if name != "progression"])
    origin = {"file": "diabetes, scikit-learn", "sha256": hashlib.sha256(features.tobytes()).hexdigest()}
    record = run_on_frame(frame, parameters, origin, jobs)
    save(record, out)
    show(record)
    put(
        "\nThe target is the progression of diabetes one year on. Why no cholesterol? LDL was computed from "
        "cholesterol, HDL and triglycerides, so given three of these four columns the last is known, and none can "
        "matter given the others. P^X has found that; a linear regression is sure of the triglycerides. "
        "Your own table: knockoffs select TABLE --target COLUMN"
    )


if __name__ == "__main__":
    main()
