"""``knockoffs sample``: knockoffs of a table or of genotypes, in a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from knockoffs.cli.checks import bad_call
from knockoffs.cli.output import say, spoken_warnings
from knockoffs.cli.program import Force, command
from knockoffs.options import Options


@command("sample")
def sample(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="csv, csv.gz, tsv or parquet, with a header; or PLINK's .bed.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="File for the knockoffs; its ending gives the format.")],
    options: Options,
    fastphase: Annotated[
        str | None,
        typer.Option(
            metavar="PREFIX",
            help="Prefix of fastPHASE's files, for genotypes; {} stands for the name of a chromosome.",
        ),
    ] = None,
    rows_at_once: Annotated[
        int, typer.Option(metavar="N", help="People per block of a .bed; a block must fit into memory.", min=1)
    ] = 4096,
    force: Force = False,
) -> None:
    """Draw knockoffs of a table, in the table's format.

    \b
    knockoffs sample table.csv --drop y --out knockoffs.csv
    knockoffs sample chr21.bed --fastphase hmm_chr21 --out knockoffs_chr21.bed
    """
    genotypes, family = table.suffix.lower() == ".bed", options.feature_model
    if family == "auto" and (genotypes or fastphase is not None):
        family = "fastphase"
    extra = options.feature_model_options or {}
    if fastphase is not None:
        if family != "fastphase":
            raise bad_call(f"--fastphase is for --feature-model fastphase, not {family}.")
        extra = {**extra, "prefix": fastphase}
    if genotypes and family != "fastphase":
        raise bad_call(f"--feature-model {family}: genotypes of a .bed file need fastphase.")
    if family == "fastphase" and "prefix" not in extra:
        raise bad_call("--fastphase PREFIX is needed: the prefix of the files that fastPHASE wrote.")
    options = replace(options, feature_model=family, feature_model_options=extra or None)
    if not genotypes:
        sample_table(table, out, options, force=force)
        return
    if options.drop:
        raise bad_call("--drop is for tables: leave SNPs out of a .bed file with PLINK.")
    if options.groups == "auto":
        raise bad_call("--groups auto is for tables: for a .bed file, name a csv file with the header column,group.")
    sample_genotypes(table, out, options, rows_at_once=rows_at_once, force=force)


def sample_table(table: Path, out: Path, options: Options, *, force: bool) -> None:
    """Write knockoffs of a table, in the table's format; and the completed table, if cells are missing."""
    from knockoffs.cli.files import check_features, other_paths, read_features_of
    from knockoffs.features.source import knockoff_source
    from knockoffs.machine.parallel import worthwhile_threads
    from knockoffs.seeds import as_generator
    from knockoffs.table.files import file_format, write_table_file
    from knockoffs.table.writer import check_output

    if out.is_dir():
        ending = file_format(table)
        out = out / f"{table.name[: -len(ending)]}.knockoffs{ending}"
    ending = file_format(out)
    inputs = [table, *other_paths(options)]
    check_output(out, inputs, force=force)
    _, X = read_features_of(table, options)
    source = knockoff_source(options.feature_model, options.feature_model_options)
    if options.dependent == "auto":  # knockoffs of all columns are wanted
        options = replace(options, dependent="refuse")
    checked = check_features(source, X, options, table.name, min_rows=2, every_column=True)
    completed = out.with_name(f"{out.name[: -len(ending)]}.completed{ending}")
    if checked.missing:
        check_output(completed, inputs, force=force)
    fit_stream, draw_stream = as_generator(options.seed).spawn(2)
    say(f"fitting {options.feature_model} to {checked.X.shape[0]} rows of {checked.X.shape[1]} columns")
    with spoken_warnings(), worthwhile_threads(checked.X.size):
        settled = source(checked, rng=fit_stream, n_jobs=options.jobs)
        say("drawing knockoffs")
        pair = settled.sampler.sample(checked.X, draw_stream)
    write_table_file(checked.decode(pair.X_tilde), out)
    say(f"wrote {out}: {pair.X.shape[0]} rows, {pair.X.shape[1]} columns")
    if checked.missing:  # knockoffs are distinguishable from features with gaps, or with cells filled in another way
        write_table_file(checked.decode(pair.X), completed)
        say(f"wrote {completed}: the table with its missing cells drawn. Use the knockoffs with this table.")


def sample_genotypes(bed: Path, out: Path, options: Options, *, rows_at_once: int, force: bool) -> None:
    """Write knockoffs of a .bed file as another .bed file, by fastPHASE's model of the genotypes."""
    from knockoffs.cli.files import groups_of
    from knockoffs.features.genotypes import check_bed_output, fastphase_models, sample_knockoffs_bed
    from knockoffs.registry import check_options
    from knockoffs.seeds import as_generator

    if out.is_dir():
        out = out / f"{bed.stem}.knockoffs.bed"
    check_bed_output(bed, out, force=force)
    known = ("prefix", "start", "hidden_knockoff")
    bound = check_options(options.feature_model_options, known, "feature_model_options")
    groups = groups_of(options)
    with spoken_warnings():
        models = fastphase_models(bed, **bound)
    say(f"drawing knockoffs of {bed}")
    written = sample_knockoffs_bed(
        bed,
        out,
        models,
        rng=as_generator(options.seed),
        groups=groups,
        rows_at_once=rows_at_once,
        n_jobs=options.jobs,
        force=force,
    )
    say(f"wrote {written}, with .bim and .fam beside it")
