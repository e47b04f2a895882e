"""Genotypes of a VCF file, plain or packed by gzip: read line by line, and written as a .bed with its .bim and .fam.

Of each line the calls (GT) are taken, and nothing else. A VCF goes SNP by SNP, as a .bed does: memory holds one line.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.table.plink import ENDINGS, MISSING
from knockoffs.table.writer import atomic_files, check_output

FIRST = ("#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO")
LONGEST = 2**27  # bytes of a line: 50,000 people with 2,600 bytes each; a small .gz cannot fill the memory
ALLELES = {b"0": 0, b"1": 1, b".": MISSING}
CALL = re.compile(rb"([01.])([/|])([01.])")
NAMED = re.compile(r"[^\s,]+")  # what a .bim can hold
BED = np.array([0b11, 0b10, 0b00, 0b01], np.uint8)  # of 0, 1, 2 copies of allele 1 and of a missing call


@dataclass(frozen=True)
class Site:
    """One line: where it is, and the two alleles of every person.

    Parameters
    ----------
    chromosome, name, reference, alternative : str
        The name is chromosome:position:reference:alternative where the file has none.
    position : int
    alleles : array of int8, shape (n, 2)
        1 for the alternative allele, -127 where missing.
    phased : bool
        Whether every call of two known alleles is phased (0|1).
    """

    chromosome: str
    position: int
    name: str
    reference: str
    alternative: str
    alleles: NDArray[np.int8]
    phased: bool

    @property
    def counts(self) -> NDArray[np.int8]:
        """Copies of the alternative allele, shape (n,), -127 where one of the two is missing."""
        return np.where((self.alleles < 0).any(axis=1), np.int8(MISSING), self.alleles.sum(axis=1, dtype=np.int8))


def read_vcf(
    path: str | Path, *, haplotypes: bool = False, biallelic: bool = False
) -> tuple[NDArray[np.int8], NDArray]:
    """Genotypes of a VCF file as counts of the alternative allele, shape (n, p), -127 where missing; names of the SNPs.

    Parameters
    ----------
    path : path of a .vcf, plain or packed by gzip (bgzip)
    haplotypes : bool
        Whether alleles are given, shape (2 n, p), rows 2i and 2i + 1 of person i; every call must be phased.
    biallelic : bool
        Whether lines with several alternative alleles are left out; else they are an error.
    """
    rows, names = [], []
    with open_vcf(path) as (_, sites):
        for site in sites(biallelic):
            if haplotypes and not site.phased:
                raise InputError(f"{path}: {site.name} has calls that are not phased (0/1): haplotypes need 0|1.")
            rows.append(site.alleles.reshape(-1) if haplotypes else site.counts)
            names.append(site.name)
    if not rows:
        raise InputError(f"{path}: the file holds no SNP.")
    return np.stack(rows, axis=1), np.array(names)


def vcf_to_bed(vcf: str | Path, bed: str | Path, *, biallelic: bool = False, force: bool = False) -> tuple[int, int]:
    """Write the genotypes of a VCF file as a .bed, with .bim and .fam: whole, or not at all.

    Allele 1, which is counted, is the alternative one. Everything but positions, alleles and calls is left behind.

    Parameters
    ----------
    vcf : path
    bed : path
        Its name ends in .bed.
    biallelic : bool
        Whether lines with several alternative alleles are left out; else they are an error.
    force : bool
        Whether files that are there already may be overwritten.

    Returns
    -------
    people, SNPs : int
        How many were written.
    """
    vcf, bed = Path(vcf), Path(bed)
    if bed.suffix != ".bed":
        raise InputError(f"{bed}: the name must end in .bed.")
    places = [bed.with_suffix(ending) for ending in ENDINGS]
    for place in places:
        check_output(place, [vcf], force=force)
    p = 0
    with open_vcf(vcf) as (people, sites), atomic_files(*places) as (calls, snps, fam):
        calls.write(b"\x6c\x1b\x01")
        for site in sites(biallelic):
            p += 1
            calls.write(pack(site.counts))
            words = (site.chromosome, site.name, "0", str(site.position), site.alternative, site.reference)
            snps.write(("\t".join(words) + "\n").encode())
        if not p:
            raise InputError(f"{vcf}: the file holds no SNP.")
        fam.write("".join(f"{person} {person} 0 0 0 -9\n" for person in people).encode())
    return len(people), p


def pack(counts: NDArray[np.int8]) -> bytes:
    """Bytes of one SNP in a .bed: four people a byte, the first in the lowest bits.

    >>> pack(np.array([0, 1, 2, -127, 0], np.int8)).hex()
    '4b03'
    """
    codes = np.zeros(-(-len(counts) // 4) * 4, np.uint8)
    codes[: len(counts)] = BED[np.where(counts < 0, 3, counts)]
    four = codes.reshape(-1, 4)
    return (four[:, 0] | four[:, 1] << 2 | four[:, 2] << 4 | four[:, 3] << 6).astype(np.uint8).tobytes()


# ---- reading -----------------------------------------------------------------------------------------------------


@contextmanager
def open_vcf(path: str | Path) -> Iterator[tuple[list[str], Sites]]:
    """Open a VCF file: its people, and a function that gives its sites one by one."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            lines = numbered_lines(path, file)  # type: ignore[arg-type]
            yield (people := _people(path, lines)), Sites(path, lines, len(people))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: cannot be unpacked: {error}. It is cut off, or no gzip file.") from None


@dataclass(frozen=True)
class Sites:
    """The sites of an open file, which can be gone through once."""

    path: Path
    lines: Iterator[tuple[int, bytes]]
    n: int

    def __call__(self, biallelic: bool) -> Iterator[Site]:
        """Give the sites in their order; a chromosome and the names are checked as a .bim needs them."""
        seen: set[str] = set()
        for number, line in self.lines:
            if not line.strip():
                continue
            where = f"{self.path}: line {number}"
            site = read_site(line, self.n, where, biallelic)
            if site is None:
                continue
            if site.name in seen:
                raise InputError(f"{where}: a SNP called {site.name!r} was there before. Give them names of their own.")
            seen.add(site.name)
            yield site


def numbered_lines(path: Path, file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Lines without their ends, counted from 1; one that does not end is refused before it fills the memory."""
    number = 0
    while line := file.readline(LONGEST):
        number += 1
        if len(line) == LONGEST:
            raise InputError(f"{path}: line {number} has more than {LONGEST:,} bytes: this is no VCF.")
        yield number, line.rstrip(b"\r\n")


def _people(path: Path, lines: Iterator[tuple[int, bytes]]) -> list[str]:
    """Read the head of a file: the names of the people, after lines that begin with ##."""
    for number, line in lines:
        if line.startswith(b"BCF\x02"):
            raise InputError(f"{path}: this is a BCF file. Write it as VCF first: bcftools view -Oz.")
        if number == 1 and not line.startswith(b"##fileformat=VCF"):
            start = line[:20].decode("ascii", "replace")
            raise InputError(f"{path}: no VCF file: it begins with {start!r}, not with ##fileformat=VCF.")
        if line.startswith(b"##"):
            continue
        try:
            words = line.decode("utf-8").split("\t")
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: line {number} is no text: {error}.") from None
        if tuple(words[:8]) != FIRST or words[8:9] != ["FORMAT"]:
            raise InputError(f"{path}: line {number} must be #CHROM, POS, ID, ..., FORMAT and the people, with tabs.")
        people = words[9:]
        bad = [person for person in people if not re.fullmatch(r"\S+", person)]
        if not people or bad or len(set(people)) < len(people):
            what = "no people" if not people else "a person without a name, with a space in it, or twice"
            raise InputError(f"{path}: line {number} names {what}.")
        return people
    raise InputError(f"{path}: the file ends before the line #CHROM.")


def read_site(line: bytes, n: int, where: str, biallelic: bool = False) -> Site | None:
    """Read one line; None if it has several alternative alleles and these are left out."""
    fixed = line.split(b"\t", 9)
    if len(fixed) < 10:
        raise InputError(f"{where} has {len(fixed)} cells with tabs between: expected nine and one for each person.")
    try:
        chromosome, position, name, reference, alternative = (cell.decode("utf-8") for cell in fixed[:5])
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is no text: {error}.") from None
    if "," in alternative:
        if biallelic:
            return None
        raise InputError(
            f"{where} has several alternative alleles, {alternative!r}: split them (bcftools norm -m-), or leave such "
            "lines out (biallelic=True, --biallelic)."
        )
    if not re.fullmatch(r"[0-9]{1,10}", position):
        raise InputError(f"{where} has the position {position!r}, which is no whole number.")
    if not all(map(NAMED.fullmatch, (chromosome, name, reference, alternative))):
        raise InputError(f"{where} has an empty chromosome, name or allele, or one with a space in it.")
    called = f"{chromosome}:{position}:{reference}:{alternative}" if name == "." else name
    keys = fixed[8].split(b":")
    if b"GT" not in keys:
        raise InputError(f"{where} has no calls: its FORMAT is {fixed[8].decode('ascii', 'replace')!r}, without GT.")
    alleles, phased = read_calls(fixed[9], n, keys.index(b"GT"), where)
    return Site(chromosome, int(position), called, reference, alternative, alleles, phased)


def read_calls(cells: bytes, n: int, place: int, where: str) -> tuple[NDArray[np.int8], bool]:
    r"""Alleles of n people, shape (n, 2), and whether all calls are phased.

    >>> read_calls(b"0|1\t./.\t1|1", 3, 0, "line 4")
    (array([[   0,    1],
           [-127, -127],
           [   1,    1]], dtype=int8), True)
    """
    raw = np.frombuffer(cells + b"\t", np.uint8)
    if len(raw) == 4 * n and (raw[3::4] == ord("\t")).all():  # every cell is a call of three characters
        grid = raw.reshape(n, 4)
        values, signs = grid[:, [0, 2]], grid[:, 1]
        known = (values == ord("0")) | (values == ord("1")) | (values == ord("."))
        split = (signs == ord("/")) | (signs == ord("|"))
        if known.all() and split.all():
            alleles = np.where(values == ord("."), MISSING, values.astype(np.int16) - ord("0")).astype(np.int8)
            return alleles, bool(((signs == ord("|")) | (alleles < 0).any(axis=1)).all())
    found = cells.split(b"\t")
    if len(found) != n:
        raise InputError(f"{where} has calls of {len(found)} people, and the head names {n}.")
    alleles, phased = np.empty((n, 2), np.int8), True
    for i, cell in enumerate(found):
        parts = cell.split(b":", place + 1)
        call = parts[place] if place < len(parts) else b"."
        if call == b".":
            alleles[i] = MISSING
            continue
        read = CALL.fullmatch(call)
        if read is None:
            text = call[:20].decode("ascii", "replace")
            raise InputError(
                f"{where}, person {i + 1}: the call {text!r} is not of two alleles 0 or 1 (0/1, 0|1, ./.). Haploid "
                "calls, of X or Y, are not of this model."
            )
        alleles[i] = ALLELES[read[1]], ALLELES[read[3]]
        phased &= read[2] == b"|" or bool((alleles[i] < 0).any())
    return alleles, phased
