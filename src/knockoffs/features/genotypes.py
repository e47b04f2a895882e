"""Knockoffs of PLINK genotypes: .bed in, .bed out, a block of people and a chromosome at a time."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from joblib import delayed, effective_n_jobs
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, KnockoffWarning, name_some
from knockoffs.features import FeatureModel, Prepared
from knockoffs.features.fastphase import GenotypeModel, read_fastphase
from knockoffs.machine.parallel import parallel_map
from knockoffs.progress import stage, track
from knockoffs.sampling.sampler import sample_knockoffs
from knockoffs.table.auto_groups import runs
from knockoffs.table.groups import as_groups
from knockoffs.table.plink import ENDINGS, Genotypes, load_bed_reader, open_genotypes
from knockoffs.table.writer import check_output, rename_together

PEOPLE_COMPARED = 1000  # frequencies are then known to 0.01; the toy genotypes and their model have r = 0.998
FEWEST_COMPARED, LEAST_CORRELATION = 20, 0.5  # SNPs, and r: 20 unrelated frequencies stay below 0.5 in 98 of 100 cases
SNPS_AT_ONCE = 1024  # while the .bed, which goes SNP by SNP, is put together from blocks of people


def sample_knockoffs_bed(
    bed: str | Path,
    out: str | Path,
    models: FeatureModel | Mapping[str, FeatureModel],
    *,
    rng: Generator,
    groups: object = None,
    rows_at_once: int = 4096,
    force: bool = False,
    n_jobs: int | None = None,
) -> Path:
    """Write knockoffs of a .bed file as another .bed file with the same people and SNPs.

    Every block of people of every chromosome is drawn with a random stream of its own and kept in a temporary folder
    beside the file until all of them are there. Memory holds one block for each job. Missing calls stay missing.

    Parameters
    ----------
    bed : path
        The genotypes, with .bim and .fam beside them.
    out : path
        The .bed to be written; .bim and .fam are copied beside it unchanged.
    models : FeatureModel, or mapping of chromosome to FeatureModel
        P^X of the counts of allele 1, for instance a GenotypeModel; one for all SNPs, or one for each chromosome, by
        its name in the .bim. Chromosomes are taken as independent.
    rng : numpy.random.Generator
    groups : mapping, sequence or array, optional
        SNPs that are swapped together, as ``KnockoffSelector`` takes them: a mapping from SNP to group or from group to
        SNPs, a group for each SNP, or pairs. Stretches of neighbours of one group are drawn as one, which takes models
        that are chains along the SNPs, as GenotypeModel is.
    rows_at_once : int
        People in a block.
    force : bool
        Whether files that are there already may be overwritten.
    n_jobs : int, optional
        Blocks at a time, in threads; the file does not depend on it.

    Returns
    -------
    path of the .bed that was written
    """
    bed, out = Path(bed), Path(out)
    check_bed_output(bed, out, force=force)
    if rows_at_once < 1:
        raise InputError(f"rows_at_once={rows_at_once}: a block needs at least one person.")
    genotypes = open_genotypes(bed)
    pieces = _models(models, chromosome_columns(genotypes.chromosomes), len(genotypes.snps))
    if groups is not None:
        pieces = _grouped(pieces, as_groups(groups, genotypes.snps.tolist()).feature_of)
    parts = _parts(pieces, genotypes.n, rows_at_once)
    streams = rng.spawn(len(parts))
    stage("drawing knockoffs of genotypes")
    jobs = effective_n_jobs(n_jobs)
    threads = {"n_jobs": jobs // len(parts)} if jobs >= 2 * len(parts) else {}  # few blocks: threads share their rows
    place = Path(os.path.realpath(out))
    with TemporaryDirectory(prefix=f".{place.stem[:100]}-", dir=place.parent) as folder:
        tasks = (
            delayed(_draw_block)(genotypes, part, stream, Path(folder), threads)
            for part, stream in zip(parts, streams, strict=True)
        )
        drawn = parallel_map(tasks, n_jobs, threads=True, in_order=False)
        for _ in track(drawn, "knockoffs of genotypes", total=len(parts)):
            pass
        _assemble(genotypes, out, Path(folder), parts)
    return out


def _draw_block(genotypes: Genotypes, part: _Part, stream: Generator, folder: Path, threads: Mapping[str, int]) -> None:
    """Read a block of people, draw its knockoffs, and keep them."""
    X = genotypes.read(slice(part.start, part.stop), part.columns)
    try:
        X_tilde = sample_knockoffs(part.model.as_network(**threads), X, stream)
    except InputError as error:
        where = f"chromosome {part.name}, " if part.name else ""
        raise InputError(f"{where}rows counted from person {part.start}: {error}") from None
    np.save(folder / part.file, X_tilde.astype(np.int8))


def check_bed_output(bed: Path, out: Path, *, force: bool = False) -> None:
    """Refuse, before any work, a .bed, .bim or .fam that must not or cannot be written."""

    def is_copy(path: Path) -> bool:  # a run that was killed may have left the .bim and the .fam
        source = bed.with_suffix(path.suffix)
        return path.suffix != ".bed" and source.is_file() and path.read_bytes() == source.read_bytes()

    if out.suffix != ".bed":
        raise InputError(f"out={str(out)!r}: the name must end in .bed.")
    for ending in ENDINGS:
        inputs = [bed.with_suffix(other) for other in ENDINGS]
        check_output(out.with_suffix(ending), inputs, force=force, ours=is_copy)


def fastphase_models(
    bed: str | Path,
    prefix: str | Path,
    *,
    start: int = 0,
    hidden_knockoff: str = "copy",
    n_jobs: int | None = None,
) -> FeatureModel | dict[str, FeatureModel]:
    """P^X of a .bed file by the parameters that fastPHASE has fitted: one for all SNPs, or one for each chromosome.

    Parameters
    ----------
    prefix : path
        What the names of fastPHASE's files begin with. Where it holds {}, there is a set of files for each chromosome
        of the .bim, whose name takes the place of {}. Character 1 of the files is allele 1 of the .bim.
    start, hidden_knockoff
        See ``fastphase_features``.
    n_jobs : int, optional
        Threads that share the rows.
    """
    genotypes = open_genotypes(bed)

    def model(files: str, columns: slice) -> Prepared:
        mosaic = read_fastphase(files, start=start)
        _warn_of_other_frequencies(genotypes, columns, mosaic.frequencies(), files)
        return Prepared(GenotypeModel(mosaic), {"hidden_knockoff": hidden_knockoff, "n_jobs": n_jobs})

    if "{}" not in str(prefix):
        return model(str(prefix), slice(0, len(genotypes.snps)))
    chromosomes = chromosome_columns(genotypes.chromosomes)
    return {name: model(str(prefix).replace("{}", name), columns) for name, columns in chromosomes.items()}


def _warn_of_other_frequencies(genotypes: Genotypes, columns: slice, expected: NDArray, files: str) -> None:
    """Warn where the model cannot be one of these SNPs: files of another chromosome, or alleles the other way round."""
    X = genotypes.read(slice(0, PEOPLE_COMPARED), columns)
    if X.shape[1] != len(expected):
        return  # an error, soon
    known = X >= 0
    seen = known.sum(axis=0) > 0
    found = np.where(known, X, 0).sum(axis=0)[seen] / (2 * known.sum(axis=0)[seen])
    expected = expected[seen]
    if len(found) < FEWEST_COMPARED or np.ptp(found) == 0 or np.ptp(expected) == 0:
        return
    r = float(np.corrcoef(found, expected)[0, 1])
    if r < LEAST_CORRELATION:
        warnings.warn(
            f"{files}: the frequencies of allele 1 in these files and in {genotypes.path.name} have correlation "
            f"{r:.2f}. The knockoffs are not valid if these are the files of other SNPs, or count the other allele.",
            KnockoffWarning,
            stacklevel=4,
        )


def chromosome_columns(names: NDArray) -> dict[str, slice]:
    """Columns of every chromosome, which must lie together."""
    starts = [0, *(np.flatnonzero(names[1:] != names[:-1]) + 1)]
    stops = [*starts[1:], len(names)]
    found: dict[str, slice] = {}
    for start, stop in zip(starts, stops, strict=True):
        name = str(names[start])
        if name in found:
            raise InputError(f"the SNPs of chromosome {name} do not lie together in the .bim: sort the file first.")
        found[name] = slice(int(start), int(stop))
    return found


def _models(
    models: FeatureModel | Mapping[str, FeatureModel], chromosomes: dict[str, slice], p: int
) -> dict[str, tuple[slice, FeatureModel]]:
    """Columns and model of every piece that is drawn on its own, with the numbers of columns compared."""
    pieces: dict[str, tuple[slice, FeatureModel]]
    if isinstance(models, Mapping):
        missing = [name for name in chromosomes if name not in models]
        if missing:
            raise InputError(f"no model for chromosomes {name_some(missing)}: models has {name_some(models)}.")
        pieces = {name: (columns, models[name]) for name, columns in chromosomes.items()}
    else:
        pieces = {"": (slice(0, p), models)}
    for name, (columns, model) in pieces.items():
        expected, size = model.as_network().n_columns, columns.stop - columns.start
        if expected != size:
            where = f"chromosome {name}" if name else "the .bed"
            raise InputError(f"{where} has {size} SNPs, and its model {expected}.")
    return pieces


def _grouped(
    pieces: Mapping[str, tuple[slice, FeatureModel]], feature_of: NDArray[np.intp]
) -> dict[str, tuple[slice, FeatureModel]]:
    """Models that draw stretches of SNPs of one group as one."""
    found: dict[str, tuple[slice, FeatureModel]] = {}
    for name, (columns, model) in pieces.items():
        law, how = (model.law, model.how) if isinstance(model, Prepared) else (model, {})
        if not getattr(law, "groups_of_neighbours", False):
            raise InputError(
                f"groups: {type(law).__name__} does not draw groups of neighbours. Use a GenotypeModel, or no groups."
            )
        found[name] = (columns, Prepared(law, {**how, "feature_of": runs(feature_of[columns])}))
    return found


@dataclass(frozen=True)
class _Part:
    """A block of people of one piece, which is drawn on its own."""

    file: str  # numbers, because the name of a chromosome may be anything
    name: str
    columns: slice
    model: FeatureModel
    start: int
    stop: int


def _parts(pieces: Mapping[str, tuple[slice, FeatureModel]], n: int, rows_at_once: int) -> list[_Part]:
    return [
        _Part(f"{k}_{start}.npy", name, columns, model, start, min(start + rows_at_once, n))
        for k, (name, (columns, model)) in enumerate(pieces.items())
        for start in range(0, n, rows_at_once)
    ]


def _assemble(genotypes: Genotypes, out: Path, folder: Path, parts: Sequence[_Part]) -> None:
    """Put the blocks of people together SNP by SNP; the .bed appears last, and whole."""
    new = {ending: folder / f"assembled{ending}" for ending in ENDINGS}
    with load_bed_reader().create_bed(new[".bed"], iid_count=genotypes.n, sid_count=len(genotypes.snps)) as target:
        for columns, same in groupby(parts, key=lambda part: part.columns):
            rows = [np.load(folder / part.file, mmap_mode="r") for part in same]
            for j in range(0, columns.stop - columns.start, SNPS_AT_ONCE):
                for column in np.concatenate([block[:, j : j + SNPS_AT_ONCE] for block in rows]).T:
                    target.write(np.ascontiguousarray(column))
    for ending in (".bim", ".fam"):  # bed-reader would write new numbers; names and positions stay as they were
        shutil.copyfile(genotypes.path.with_suffix(ending), new[ending])
    rename_together([(new[e], Path(os.path.realpath(out.with_suffix(e)))) for e in (".bim", ".fam", ".bed")])
