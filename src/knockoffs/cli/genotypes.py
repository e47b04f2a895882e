"""``knockoffs select`` of .bed files: genotypes with a phenotype, a table of discoveries and a Manhattan picture."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from knockoffs.cli.checks import bad_call
from knockoffs.cli.output import say, spoken_warnings
from knockoffs.options import Options
from knockoffs.progress import stage

if TYPE_CHECKING:
    from knockoffs.features import FeatureModel
    from knockoffs.record import SelectionRecord
    from knockoffs.selection import Selection
    from knockoffs.table.groups import Groups
    from knockoffs.table.plink import Study

FIT = ("n_ancestors", "max_iter", "tol", "pseudocount")  # of the model of genotypes
PICTURE, DISCOVERIES = "manhattan.svg", "discoveries.csv"


def is_bed(table: Path) -> bool:
    """Whether a table is a .bed file of PLINK, or a pattern of several."""
    return table.suffix.lower() == ".bed"


def run_genotypes(beds: Sequence[Path], options: Options, out: Path | None = None) -> SelectionRecord:
    """Record of a selection from .bed files; the picture and the discoveries are written into ``out``."""
    from knockoffs.cli.select import record_fitted
    from knockoffs.record import data_file
    from knockoffs.selector import KnockoffSelector
    from knockoffs.table.files import file_hash
    from knockoffs.table.plink import find_beds, read_study

    if options.phenotype is None:
        raise bad_call("a .bed file needs --phenotype FILE: a text file with FID, IID and the target.")
    for flag, given in (("--drop", options.drop), ("--weights", options.weights), ("--clusters", options.clusters)):
        if given:
            raise bad_call(f"{flag} is for tables: leave it out for a .bed file.")
    files = find_beds(beds)
    say(f"reading {', '.join(path.name for path in files)}")
    stage("reading genotypes")
    study = read_study(files, options.phenotype, options.target, options.covariates)
    for note in study.notes:
        say(note)
    with spoken_warnings() as said:
        model = genotype_model(study, options)
        arguments = options.selector_arguments()
        arguments |= {"feature_model": model, "feature_model_options": None, "covariates": study.covariates}
        arguments["groups"] = genotype_groups(study, options)
        selector = KnockoffSelector(**arguments)
        say(f"selecting from {len(study.snps)} SNPs of {len(study.y)} people for {options.target!r}")
        selector.fit(study.table, study.y)
    digest = hashlib.sha256("".join(map(file_hash, files)).encode()).hexdigest()
    inputs = [Path(name) for name in (options.phenotype, *options.covariates, options.groups) if name]
    others = {path.name: file_hash(path) for path in inputs if path.is_file()}
    data = data_file(", ".join(path.name for path in files), digest, study.table.shape, others)
    record = record_fitted(selector, replace(options, stream="never"), data, said, out)
    if out is not None:
        write_discoveries(selector.selection_, study, selector.table_.groups, out)
    return record


def genotype_groups(study: Study, options: Options) -> object:
    """Return groups of SNPs: "auto", a csv file, or FILE:RESOLUTION of a partition, or FILE:all of it."""
    from knockoffs.cli.files import groups_of
    from knockoffs.table.plink import read_partitions

    path, _, resolution = (options.groups or "").rpartition(":")
    if not path or Path(str(options.groups)).is_file():
        return groups_of(options)
    asked = None if resolution == "all" else [resolution]
    partitions = read_partitions(path, study.chromosomes, study.snps, asked)
    if asked is None:
        return nested_groups(partitions, study.table.columns)
    return dict(zip(study.snps, partitions[0], strict=True))


def nested_groups(partitions: Sequence[Sequence[str]], names: Sequence[str]) -> Groups:
    """Single columns with coarser partitions of the first of them, the finest first; the other columns are covariates.

    >>> nested_groups([["a", "a", "a"], ["a", "b", "b"], ["a", "b", "c"]], ["s1", "s2", "s3", "age"]).coarser
    (array([0, 1, 1, 2]), array([0, 0, 0, 1]))
    """
    from knockoffs.table.groups import Groups

    coarser = []
    for labels in sorted(partitions, key=lambda labels: -len(set(labels))):
        number = {label: g for g, label in enumerate(dict.fromkeys(labels))}
        if len(number) < len(labels):
            alone = range(len(number), len(number) + len(names) - len(labels))
            coarser.append(np.array([*(number[label] for label in labels), *alone], dtype=np.intp))
    return Groups(np.arange(len(names)), tuple(names), coarser=tuple(coarser))


def genotype_model(study: Study, options: Options) -> FeatureModel:
    """P^X of the SNPs: fastPHASE's parameters, or its model or a hidden Markov model fitted to each chromosome."""
    from knockoffs.features.fastphase import read_fastphase
    from knockoffs.features.genotypes import chromosome_columns
    from knockoffs.features.hmm.fit import fit_hidden_markov
    from knockoffs.features.hmm.model import join_chains
    from knockoffs.features.hmm.mosaic import GenotypeModel, join_mosaics
    from knockoffs.features.hmm.mosaic_fit import fit_genotypes
    from knockoffs.registry import check_options
    from knockoffs.seeds import as_generator

    given = options.feature_model_options or {}
    chromosomes = chromosome_columns(study.chromosomes)
    family = "fastphase" if options.feature_model == "auto" and "prefix" in given else options.feature_model
    if family == "fastphase":
        bound = check_options(given, ("prefix", "start"), "feature_model_options")
        prefix, start = str(bound.get("prefix", "")), int(bound.get("start", 0))
        if not prefix:
            raise bad_call(
                "--feature-model fastphase needs --feature-model-option prefix=PREFIX, with {} for chromosomes."
            )
        if "{}" not in prefix:
            return GenotypeModel(read_fastphase(prefix, start=start))
        return GenotypeModel(join_mosaics([read_fastphase(prefix.replace("{}", c), start=start) for c in chromosomes]))
    if family not in ("auto", "genotypes", "hmm"):
        raise bad_call(
            f"--feature-model {family}: for a .bed file use fastphase; genotypes (default), which is its model fitted "
            "here; or hmm."
        )
    X = study.table[study.snps].to_numpy().astype(float)
    parts: list[Any] = []
    for name, columns in chromosomes.items():
        say(f"fitting a model of genotypes to chromosome {name}")
        shared: dict[str, Any] = {"rng": as_generator(options.seed), "n_jobs": options.jobs}
        if family == "hmm":
            how = {"n_states": 6, "n_starts": 1, "max_iter": 50, **check_options(given, None, "feature_model_options")}
            parts.append(fit_hidden_markov(X[:, columns], emissions="discrete", **shared, **how))
        else:
            parts.append(fit_genotypes(X[:, columns], **shared, **check_options(given, FIT, "feature_model_options")))
    if family == "hmm":
        return join_chains(parts)
    return GenotypeModel(join_mosaics([part.mosaic for part in parts]))


def write_discoveries(selection: Selection, study: Study, groups: Groups | None, out: Path) -> None:
    """Write the discoveries with their places, and the picture."""
    from matplotlib.figure import Figure

    from knockoffs.plots.manhattan import plot_manhattan
    from knockoffs.table.files import write_delimited
    from knockoffs.table.groups import name_group
    from knockoffs.table.writer import atomic_files

    feature_of = np.arange(len(study.snps)) if groups is None else groups.feature_of[: len(study.snps)]
    value = "W" if selection.p_values is None else "p_value"
    values = selection.W if selection.p_values is None else selection.p_values
    chosen = [int(g) for g in selection.surest_first if selection.selected[g]]
    listed = [(selection.feature_names[g], np.flatnonzero(feature_of == g), values[g]) for g in chosen]
    if selection.discoveries is not None:
        value, place = "e_value", {snp: j for j, snp in enumerate(study.snps)}
        listed = [
            (name_group(one.features), np.array([place[snp] for snp in one.features]), one.score)
            for one in selection.discoveries
        ]
    columns = {
        "discovery": [name for name, _, _ in listed],
        "chromosome": [study.chromosomes[own[0]] for _, own, _ in listed],
        "first": [int(study.positions[own].min()) for _, own, _ in listed],
        "last": [int(study.positions[own].max()) for _, own, _ in listed],
        "n_snps": [len(own) for _, own, _ in listed],
        "snps": [" ".join(study.snps[j] for j in own) for _, own, _ in listed],
        value: [float(number) for _, _, number in listed],
        "q_value": [float(selection.q_values[feature_of[own[0]]]) for _, own, _ in listed],
    }
    figure = Figure(layout="constrained")
    plot_manhattan(selection, study.chromosomes, study.positions, feature_of, ax=figure)
    out.mkdir(parents=True, exist_ok=True)
    with atomic_files(out / DISCOVERIES, out / PICTURE) as (table, picture):
        write_delimited(columns, table, ",")
        figure.savefig(picture, format="svg")
    say(f"wrote {out / DISCOVERIES} and {out / PICTURE}")
