"""PLINK genotypes: a .bed with its .bim and .fam, checked before anything of it is used, and read in blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, require

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
    """Genotypes of a .bed file as counts of allele 1, shape (n, p), -127 where missing, and the names of the SNPs.

    Parameters
    ----------
    path : path of the .bed file, with .bim and .fam beside it
    rows, columns : slice
        The people and the SNPs that are read; the others are not.
    """
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
        if not (_is_number(line[2]) and _is_number(line[3])):
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
    lines = []
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                values = line.split()
                if not values:
                    continue
                if len(values) != 6:
                    raise InputError(f"{path}: line {number} has {len(values)} values, and six are needed: {meaning}.")
                lines.append(values)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: line {len(lines) + 1} or later is no text: {error}.") from None
    if not lines:
        raise InputError(f"{path}: the file is empty.")
    return lines


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def load_bed_reader() -> ModuleType:
    """Load the package that reads and writes .bed files, or say how it is installed."""
    require("bed_reader", "PLINK files")
    import bed_reader

    return bed_reader
