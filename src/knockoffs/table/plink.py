"""Knockoffs of PLINK genotypes: .bed in, .bed out, a block of people and a chromosome at a time, resumable."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, KnockoffWarning, name_some
from knockoffs.progress import track

if TYPE_CHECKING:
    from knockoffs.features import FeatureModel

MISSING = -127  # bed-reader's missing call in int8; any negative number is missing to the genotype model
PEOPLE_COMPARED = 1000  # frequencies are then known to 0.01; the toy genotypes and their model have r = 0.998
FEWEST_COMPARED, LEAST_CORRELATION = 20, 0.5  # SNPs, and r: 20 unrelated frequencies stay below 0.5 in 98 of 100 cases
SNPS_AT_ONCE = 1024  # while the .bed, which goes SNP by SNP, is put together from blocks of people


def read_bed(
    path: str | Path, *, rows: slice = slice(None), columns: slice = slice(None)
) -> tuple[NDArray[np.int8], NDArray]:
    """Genotypes of a .bed file as counts of allele 1, shape (n, p), -127 where missing, and the names of the SNPs.

    Parameters
    ----------
    path : path of the .bed file, with .bim and .fam beside it
    rows, columns : slice
        The people and the SNPs that are read; the others are not.
    """
    with _open(path) as bed:
        return bed.read(index=np.s_[rows, columns], dtype="int8", order="C", num_threads=1), bed.sid[columns]


def sample_knockoffs_bed(
    bed: str | Path,
    out: str | Path,
    models: FeatureModel | Mapping[str, FeatureModel],
    *,
    rng: Generator,
    rows_at_once: int = 4096,
    resume: bool = True,
    force: bool = False,
) -> Path:
    """Write knockoffs of a .bed file as another .bed file with the same people and SNPs.

    Every block of people of every chromosome is drawn with a random stream of its own and written, whole or not at
    all, into the folder OUT.parts. A run that was stopped goes on with the blocks that are not there yet, and ends
    with the same file as a run that was not. Memory holds one block. Missing calls stay missing.

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
        To go on with a stopped run, pass one in the same state.
    rows_at_once : int
        People in a block.
    resume : bool
        False throws the blocks of an earlier run away.
    force : bool
        Whether files that are there already may be overwritten.

    Returns
    -------
    path of the .bed that was written
    """
    bed, out = Path(bed), Path(out)
    if out.suffix != ".bed":
        raise InputError(f"out={str(out)!r}: the name must end in .bed.")
    check_bed_output(bed, out, force=force)
    if rows_at_once < 1:
        raise InputError(f"rows_at_once={rows_at_once}: a block needs at least one person.")
    with _open(bed) as file:
        n, p = file.shape
        chromosomes = _chromosomes(file.chromosome)
    chosen = _models(models, chromosomes, p)
    parts = [(name, start, min(start + rows_at_once, n)) for name in chosen for start in range(0, n, rows_at_once)]
    streams = rng.spawn(len(parts))
    folder = out.with_suffix(".parts")
    _open_journal(folder, _fingerprint(bed, chosen, streams, rows_at_once), resume)

    from knockoffs.sampling.sampler import sample_knockoffs

    for (name, start, stop), stream in track(
        list(zip(parts, streams, strict=True)), "knockoffs of genotypes", total=len(parts)
    ):
        path = _part_path(folder, name, start)
        if path.exists():
            continue
        columns, model = chosen[name]
        X, _ = read_bed(bed, rows=slice(start, stop), columns=columns)
        try:
            X_tilde = sample_knockoffs(model.as_network(), X, stream)
        except InputError as error:
            where = f"chromosome {name}, " if name else ""
            raise InputError(f"{where}rows counted from person {start}: {error}") from None
        _save(path, X_tilde.astype(np.int8))
    _assemble(bed, out, folder, chosen, range(0, n, rows_at_once))
    shutil.rmtree(folder)
    return out


def check_bed_output(bed: Path, out: Path, *, force: bool = False) -> None:
    """Refuse, before any work, a .bed, .bim or .fam that must not or cannot be written."""
    from knockoffs.table.writer import check_output

    endings = (".bed", ".bim", ".fam")
    inputs = [bed.with_suffix(ending) for ending in endings]
    for ending in endings:
        source = bed.with_suffix(ending)  # a stopped run may have left a copy of it

        def ours(path: Path, source: Path = source) -> bool:
            return source.suffix != ".bed" and path.read_bytes() == source.read_bytes()

        check_output(out.with_suffix(ending), inputs, force=force, ours=ours)


def fastphase_models(
    bed: str | Path,
    prefix: str | Path,
    *,
    start: int = 0,
    hidden_knockoff: str = "chain",
    n_jobs: int | None = None,
) -> FeatureModel | dict[str, FeatureModel]:
    """P^X of a .bed file by the parameters that fastPHASE has fitted: one for all SNPs, or one for each chromosome.

    Parameters
    ----------
    bed : path
    prefix : path
        What the names of fastPHASE's files begin with. Where it holds {}, there is a set of files for each chromosome
        of the .bim, whose name takes the place of {}. Character 1 of the files is allele 1 of the .bim.
    start, hidden_knockoff
        See ``fastphase_features``.
    n_jobs : int, optional
        Threads that share the rows.
    """
    from knockoffs.features.fastphase import GenotypeModel, read_fastphase

    def model(files: str, columns: slice) -> GenotypeModel:
        mosaic = read_fastphase(files, start=start)
        _warn_of_other_frequencies(bed, columns, mosaic.frequencies(), files)
        return GenotypeModel(mosaic, hidden_knockoff, n_jobs or 1)

    with _open(bed) as file:
        whole, names = slice(0, file.shape[1]), file.chromosome
    if "{}" not in str(prefix):
        return model(str(prefix), whole)
    return {name: model(str(prefix).replace("{}", name), columns) for name, columns in _chromosomes(names).items()}


def _warn_of_other_frequencies(bed: str | Path, columns: slice, expected: NDArray, files: str) -> None:
    """Warn where the model cannot be one of these SNPs: files of another chromosome, or alleles the other way round."""
    X, _ = read_bed(bed, rows=slice(0, PEOPLE_COMPARED), columns=columns)
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
            f"{files}: the frequencies of allele 1 in these files and in {Path(bed).name} have correlation {r:.2f}. "
            "The knockoffs are not valid if these are the files of other SNPs, or count the other allele.",
            KnockoffWarning,
            stacklevel=4,
        )


def _open(path: str | Path) -> Any:
    try:
        from bed_reader import open_bed
    except ImportError:
        raise InputError("PLINK files need the package bed-reader: pip install 'knockoffs[genetics]'.") from None
    path = Path(path)
    missing = [ending for ending in (".bed", ".bim", ".fam") if not path.with_suffix(ending).is_file()]
    if path.suffix != ".bed" or missing:
        raise InputError(f"{path}: expected a .bed file with .bim and .fam beside it; missing: {', '.join(missing)}.")
    return open_bed(path, num_threads=1)


def _chromosomes(names: NDArray) -> dict[str, slice]:
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


def _fingerprint(bed: Path, chosen: Mapping[str, Any], streams: Sequence[Generator], rows_at_once: int) -> dict:
    """Write down what must be the same for a stopped run to go on."""
    state = json.dumps(streams[0].bit_generator.state, default=str) if streams else ""
    digest = hashlib.sha256()
    for name, (_, model) in chosen.items():
        digest.update(name.encode())
        _digest(model, digest)
    return {
        "rows_at_once": rows_at_once,
        "random": hashlib.sha256(state.encode()).hexdigest(),
        "models": digest.hexdigest(),
        "genotypes": [bed.stat().st_size, bed.stat().st_mtime_ns],
    }


def _digest(value: Any, digest: Any) -> None:
    if is_dataclass(value):
        for field in fields(value):
            if field.name != "n_jobs":  # threads do not change the draw
                _digest(getattr(value, field.name), digest)
    elif isinstance(value, np.ndarray):
        digest.update(np.ascontiguousarray(value).tobytes())
    else:
        digest.update(repr(value).encode())


def _open_journal(folder: Path, fingerprint: dict, resume: bool) -> None:
    journal = folder / "journal.json"
    if folder.exists() and not resume:
        shutil.rmtree(folder)
    if journal.exists():
        before = json.loads(journal.read_text())
        differs = [name for name in fingerprint if before.get(name) != fingerprint[name]]
        if differs:
            raise InputError(
                f"{folder} is from another run, with other {name_some(differs)}. "
                "Repeat that run's arguments to go on with it, or start afresh: resume=False, or --fresh."
            )
        return
    folder.mkdir(parents=True, exist_ok=True)
    temporary = journal.with_suffix(".tmp")
    temporary.write_text(json.dumps(fingerprint))
    os.replace(temporary, journal)


def _part_path(folder: Path, name: str, start: int) -> Path:
    return folder / f"{name or 'all'}_{start}.npy"


def _save(path: Path, values: NDArray) -> None:
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        np.save(file, values)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _assemble(bed: Path, out: Path, folder: Path, chosen: Mapping[str, Any], starts: Sequence[int]) -> None:
    """Put the blocks of people together SNP by SNP; the .bed appears last, and whole."""
    from bed_reader import create_bed

    with _open(bed) as file:
        n, p = file.shape
    temporary = out.with_name(f".{out.stem}.partial.bed")
    with create_bed(temporary, iid_count=n, sid_count=p) as target:
        for name, (columns, _) in chosen.items():
            blocks = [np.load(_part_path(folder, name, start), mmap_mode="r") for start in starts]
            for j in range(0, columns.stop - columns.start, SNPS_AT_ONCE):
                for column in np.concatenate([block[:, j : j + SNPS_AT_ONCE] for block in blocks]).T:
                    target.write(np.ascontiguousarray(column))
    for ending in (".bim", ".fam"):  # bed-reader would write numbers anew; names and positions stay as they were
        temporary.with_suffix(ending).unlink()
        shutil.copyfile(bed.with_suffix(ending), out.with_suffix(ending))
    os.replace(temporary, out)
