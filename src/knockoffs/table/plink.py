"""PLINK genotypes, read in blocks, and studies: .bed files of the same people with phenotypes and covariates.

A .bed is checked against its .bim and .fam before anything of it is used; people are matched by FID and IID.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
from numpy.typing import NDArray

from knockoffs.errors import InputError, count, name_some, require, unknown_option
from knockoffs.table.cells import is_number
from knockoffs.table.memory import check_memory

ENDINGS = (".bed", ".bim", ".fam")
MISSING = -127  # bed-reader's missing call in int8; any negative number is missing to the genotype model


@dataclass(frozen=True)
class Genotypes:
    """A .bed file whose .bim and .fam were read and fit it."""

    path: Path
    n: int  # people
    snps: NDArray  # names, shape (p,)
    chromosomes: NDArray
    positions: NDArray  # base pairs
    people: tuple[tuple[str, str], ...]  # family and person, as the .fam has them

    def read(self, rows: slice, columns: slice) -> NDArray[np.int8]:
        """Read counts of allele 1, -127 where missing."""
        with load_bed_reader().open_bed(
            self.path, iid_count=self.n, sid_count=len(self.snps), num_threads=1, skip_format_check=True
        ) as bed:
            return bed.read(index=np.s_[rows, columns], dtype="int8", order="C", num_threads=1)


def read_bed(
    path: str | Path, *, rows: slice = slice(None), columns: slice = slice(None)
) -> tuple[NDArray[np.int8], NDArray]:
    """Genotypes of a .bed file as counts of allele 1, shape (n, p), -127 where missing, and the names of the SNPs."""
    genotypes = open_genotypes(path)
    return genotypes.read(rows, columns), genotypes.snps[columns]


def open_genotypes(path: str | Path) -> Genotypes:
    """Check a .bed file against the .bim and .fam beside it, before anything of it is used."""
    load_bed_reader()
    path = Path(path)
    missing = [ending for ending in ENDINGS if not path.with_suffix(ending).is_file()]
    if path.suffix != ".bed" or missing:
        raise InputError(f"{path}: expected a .bed file with .bim and .fam beside it; missing: {', '.join(missing)}.")
    snps = _read_lines(path.with_suffix(".bim"), "chromosome, name, centimorgans, position, allele 1, allele 2")
    for number, line in enumerate(snps, start=1):
        if not (is_number(line[2]) and line[3].lstrip("-").isdecimal()):
            raise InputError(
                f"{path.with_suffix('.bim')}: line {number} has {line[2]!r} centimorgans and the position {line[3]!r}, "
                "which are numbers in a .bim."
            )
    people = _read_lines(path.with_suffix(".fam"), "family, person, father, mother, sex, phenotype")
    n, p = len(people), len(snps)
    with path.open("rb") as file:
        start = file.read(3)
    if start == b"\x6c\x1b\x00":
        raise InputError(f"{path} goes person by person: bring it in the usual order, SNP by SNP, by plink --make-bed.")
    if start != b"\x6c\x1b\x01":
        raise InputError(
            f"{path} is no .bed file of PLINK: it begins with {start.hex(' ') or 'nothing'}, not 6c 1b 01."
        )
    size, needed = path.stat().st_size, 3 + p * ((n + 3) // 4)
    if size != needed:
        raise InputError(
            f"{path} has {size} bytes, and {n} people (.fam) by {p} SNPs (.bim) take {needed}: it is cut off, or the "
            ".bim and .fam beside it are of another file."
        )
    chromosome, name, _, position = (np.array([line[k] for line in snps]) for k in range(4))
    return Genotypes(path, n, name, chromosome, position.astype(float), tuple((line[0], line[1]) for line in people))


def _read_lines(path: Path, meaning: str) -> list[list[str]]:
    lines = [line.split() for line in _text_lines(path)]
    for number, line in enumerate(lines, start=1):
        if len(line) != 6:
            raise InputError(f"{path}: line {number} has {len(line)} values, and six are needed: {meaning}.")
    return lines


def _text_lines(path: Path) -> list[str]:
    """Lines of a text file, perhaps with .gz, that are not blank."""
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8-sig") as file:
            lines = [line for line in file if line.strip()]
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as text: {error}.") from None
    if not lines:
        raise InputError(f"{path}: the file is empty.")
    return lines


def load_bed_reader() -> ModuleType:
    """Load the package that reads and writes .bed files, or say how it is installed."""
    require("bed_reader", "PLINK files")
    import bed_reader

    return bed_reader


# ---- people with genotypes, a phenotype and covariates ---------------------------------------------------------------
NO_VALUE = ("", "NA", "NaN", "nan", ".", "-9", "-9.0")  # as PLINK writes a missing phenotype

Person = tuple[str, str]
Values = list[str | None]


@dataclass(frozen=True)
class Study:
    """People with genotypes, a phenotype and covariates."""

    table: pl.DataFrame  # shape (n, p + n_covariates): counts of allele 1, null where missing; then the covariates
    y: NDArray  # shape (n,): numbers or labels; known for all
    covariates: tuple[str, ...]
    # shape (p,): of the SNPs
    chromosomes: NDArray
    positions: NDArray
    notes: tuple[str, ...]  # who was left out

    @property
    def snps(self) -> list[str]:
        """Names of the SNPs."""
        return self.table.columns[: len(self.positions)]


def read_study(
    beds: Sequence[str | Path], phenotype: str | Path, target: str, covariates: Sequence[str | Path] = ()
) -> Study:
    """Genotypes, phenotype and covariates of the people who have all of them, in the order of the .fam.

    Parameters
    ----------
    beds : sequence of paths
        .bed files of the same people, one for each chromosome or one for all; a pattern as ``chr*.bed`` stands for all
        files that match.
    phenotype : path
        Text with a header and the columns FID and IID, or IID alone. -9 and NA are missing.
    target : str
        Its column that is explained.
    covariates : sequence of str or paths
        Columns of the phenotype file, or files of the same kind, all of whose columns are covariates; if columns are
        named too, these alone.
    """
    files = [open_genotypes(path) for path in find_beds(beds)]
    people, snps = _same_people(files), np.concatenate([one.snps for one in files])
    _refuse_twice(snps.tolist(), "the SNP", "the .bim", "Give every SNP a name of its own (plink2 --set-all-var-ids)")
    named, columns = _read_columns(phenotype, people, covariates)
    if target not in columns:
        raise unknown_option("target", target, columns)
    for name in named:
        if name not in columns or name == target:
            raise unknown_option("covariates", name, [column for column in columns if column != target])
    known = np.array([columns[target][i] is not None for i in range(len(people))])
    complete = known & np.array([all(columns[name][i] is not None for name in named) for i in range(len(people))])
    notes = []
    for missing, what in ((~known, f"value of {target!r}"), (known & ~complete, "value of a covariate")):
        if missing.any():
            notes.append(f"{count(int(missing.sum()), 'person', 'people')} of {len(people)} left out: no {what}")
    rows = np.flatnonzero(complete)
    if not len(rows):
        raise InputError(f"nobody has {name_some([target, *named])}: NA and -9 are missing.")
    check_memory(len(rows), len(snps), "select chromosome by chromosome, or from fewer SNPs or people.")
    table = _genotypes(files, rows, snps.tolist())
    beside = {name: _values([columns[name][i] for i in rows]) for name in named}
    return Study(
        table.with_columns(pl.Series(name, values) for name, values in beside.items()),
        _values([columns[target][i] for i in rows]),
        tuple(named),
        np.concatenate([one.chromosomes for one in files]),
        np.concatenate([one.positions for one in files]),
        tuple(notes),
    )


def find_beds(beds: Sequence[str | Path]) -> list[Path]:
    """Files by their names or patterns, each once."""
    found: list[Path] = []
    for bed in beds:
        matching = sorted(map(Path, glob(str(bed)))) if any(sign in str(bed) for sign in "*?[") else [Path(bed)]
        if not matching:
            raise InputError(f"{bed}: no file matches.")
        found += [path for path in matching if path not in found]
    return found


def _same_people(files: Sequence[Genotypes]) -> tuple[Person, ...]:
    """People of the first file; others must hold the same, in the same order."""
    people = files[0].people
    for other in files[1:]:
        if other.people != people:
            raise InputError(
                f"{other.path.with_suffix('.fam')} has other people than {files[0].path.with_suffix('.fam')}, or the "
                "same in another order: bring them together with plink --merge-list."
            )
    _refuse_twice([" ".join(person) for person in people], "the person", str(files[0].path.with_suffix(".fam")))
    return people


def _refuse_twice(names: Sequence[str], what: str, where: str, remedy: str = "Leave one of them out") -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{where}: {what} {name!r} is there twice. {remedy}.")
        seen.add(name)


def _read_columns(
    phenotype: str | Path, people: Sequence[Person], covariates: Sequence[str | Path]
) -> tuple[list[str], dict[str, Values]]:
    """Names of the covariates, and every column of every file, a value for each of the people."""
    files = [Path(name) for name in covariates if Path(name).is_file()]
    named = [part.strip() for name in covariates if Path(name) not in files for part in str(name).split(",")]
    columns = read_people(phenotype, people)
    listed: list[str] = []
    for path in files:
        new = read_people(path, people)
        twice = [name for name in new if name in columns]
        if twice:
            raise InputError(f"{path}: the column {twice[0]!r} is in another file too. Rename one of them.")
        columns |= new
        listed += new
    return named or listed, columns


def read_people(path: str | Path, people: Sequence[Person]) -> dict[str, Values]:
    """Columns of a file of people, matched by FID and IID, or by IID if there is no FID; None where missing."""
    path = Path(path)
    lines = _text_lines(path)
    if len(lines) < 2:
        raise InputError(f"{path}: expected a header with FID and IID, and a line for each person.")
    separator = "\t" if "\t" in lines[0] else "," if "," in lines[0] else None
    header, *rows = [[cell.strip() for cell in line.split(separator)] for line in lines]
    header[0] = header[0].removeprefix("#")
    if "IID" not in header:
        raise InputError(
            f"{path}: the header has no IID (it has {name_some(header)}): people are matched by FID and IID."
        )
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise InputError(f"{path}: line {number} has {len(row)} values, and the header {len(header)}.")
    keys = [header.index(name) for name in ("FID", "IID") if name in header]
    ids = [tuple(row[k] for k in keys) for row in rows]
    _refuse_twice([" ".join(key) for key in ids], "the person", str(path))
    wanted = [person[-len(keys) :] for person in people]
    if len(keys) == 1:
        _refuse_twice([key[0] for key in wanted], "IID", "the .fam", f"Add FID to {path.name}")
    line_of = {key: i for i, key in enumerate(ids)}
    places = [line_of.get(key) for key in wanted]
    if all(place is None for place in places):
        raise InputError(
            f"{path}: none of its {len(rows)} people is in the .fam: it has {' '.join(ids[0])!r}, the .fam "
            f"{' '.join(wanted[0])!r}. FID and IID must be the same in both."
        )
    return {
        name: [None if i is None or rows[i][k] in NO_VALUE else rows[i][k] for i in places]
        for k, name in enumerate(header)
        if k not in keys
    }


def _values(texts: Sequence[str | None]) -> NDArray:
    """Numbers, if all are; labels otherwise."""
    try:
        return np.array([float(text or "") for text in texts])
    except ValueError:
        return np.array(texts, dtype=str)


def _genotypes(files: Sequence[Genotypes], rows: NDArray[np.intp], snps: Sequence[str]) -> pl.DataFrame:
    """Read counts of allele 1 of some people; null where missing."""
    X = np.hstack([one.read(slice(None), slice(None))[rows] for one in files])
    called = X >= 0
    columns = [
        pl.Series(name, X[:, j]) if called[:, j].all() else pl.Series(name, np.where(called[:, j], X[:, j], np.nan))
        for j, name in enumerate(snps)
    ]
    return pl.DataFrame(columns).fill_nan(None)


def read_partitions(
    path: str, chromosomes: NDArray, snps: Sequence[str], columns: Sequence[str] | None = None
) -> list[list[str]]:
    """Group of each SNP, at each resolution, by a partition of KnockoffGWAS: a header, SNP first.

    The file is text, perhaps with .gz; {} in its path stands for the chromosome where there is a file for each.
    ``columns`` are the resolutions, as the header has them; all by default.
    """
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys(chromosomes.tolist()) if "{}" in path else [""]:
        file = Path(path.replace("{}", name))
        header, *rows = [line.split() for line in _text_lines(file)]
        columns = header[1:] if columns is None else columns
        for column in columns:
            if column not in header[1:]:
                raise unknown_option(f"groups: resolution of {file.name}", column, header[1:])
        at = [header.index(column) for column in columns]
        groups |= {row[0]: [row[i] for i in at] for row in rows if len(row) == len(header)}
    missing = [snp for snp in snps if snp not in groups]
    if missing:
        raise InputError(f"groups: {path} has no group for {count(len(missing), 'SNP')}, {missing[0]!r} for instance.")
    labels = [[f"chr{name}:{group}" for group in groups[snp]] for name, snp in zip(chromosomes, snps, strict=True)]
    return [list(one) for one in zip(*labels, strict=True)]
