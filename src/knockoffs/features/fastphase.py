"""The parameter files that fastPHASE writes, as a law of haplotypes or genotypes."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.features.hmm.mosaic import GenotypeModel, HaplotypeModel, Mosaic

MOST_CHARACTERS = 2**30  # of an unpacked file, 50 million numbers: a small .gz cannot fill the memory


def fastphase_features(
    X: NDArray,
    *,
    prefix: str | Path | None = None,
    haplotypes: bool = False,
    start: int = 0,
    rng: Generator,
    n_jobs: int | None = None,
) -> GenotypeModel | HaplotypeModel:
    """P^X with the parameters that fastPHASE has fitted; nothing is fitted to X.

    Parameters
    ----------
    X : array, shape (n, p)
        Counts 0, 1, 2 of genotypes, or alleles 0, 1 of haplotypes.
    prefix : path
        Of the parameter files: see ``read_fastphase``.
    haplotypes : bool
        Whether a row is a haplotype, and not a person's genotypes.
    start : int
        Which of several random starts in the files.
    rng, n_jobs
        Not needed here: nothing is drawn or fitted.
    """
    if prefix is None:
        raise InputError("fastphase needs prefix=..., what the names of the files that fastPHASE wrote begin with.")
    mosaic = read_fastphase(prefix, start=start)
    if X.shape[1] != len(mosaic.r):
        raise InputError(f"{prefix}: the files hold {len(mosaic.r)} sites, and X has {X.shape[1]} columns.")
    family = HaplotypeModel if haplotypes else GenotypeModel
    return family(mosaic)


def read_fastphase(prefix: str | Path, *, start: int = 0) -> Mosaic:
    """Read the parameters that fastPHASE wrote: PREFIX_rhat.txt, _alphahat.txt, _thetahat.txt and _origchars.

    Parameters
    ----------
    prefix : path
        What the file names begin with. Files may end in .gz.
    start : int
        Which of several random starts in the files.

    Returns
    -------
    Mosaic
        With theta the probability of the character 1: fastPHASE gives that of the first character of a site, and
        ``origchars`` says which one that is.
    """
    r = _read_numbers(prefix, "rhat.txt", start)[:, 0]
    alpha, theta = _read_numbers(prefix, "alphahat.txt", start), _read_numbers(prefix, "thetahat.txt", start)
    lines = _read_lines(prefix, "origchars")
    sites = [line.split() for line in lines[1:]]
    short = next((j for j, words in enumerate(sites) if len(words) < 2), None)
    if short is not None:
        got = lines[short + 1]
        raise InputError(f"{prefix}_origchars, site {short}: expected a number and the characters, got {got!r}.")
    characters = [words[1] for words in sites]
    if not len(characters) == len(r) == len(alpha) == len(theta):
        sizes = f"rhat {len(r)}, alphahat {len(alpha)}, thetahat {len(theta)}, origchars {len(characters)}"
        raise InputError(f"the fastPHASE files of {prefix} disagree on the number of sites: {sizes}.")
    unknown = [j for j, pair in enumerate(characters) if pair not in ("10", "01", "1", "0")]
    if unknown:
        j = unknown[0]
        raise InputError(f"{prefix}_origchars, site {j}: {characters[j]!r} is not coded 0 and 1.")
    first_is_one = np.array([pair[0] == "1" for pair in characters])
    single = np.array([len(pair) == 1 for pair in characters])
    theta = np.where(single[:, None], 1.0, theta)  # a site with one character shows nothing else
    return Mosaic(r, alpha, np.where(first_is_one[:, None], theta, 1 - theta))


def fastphase_files(prefix: str | Path) -> list[Path]:
    """Paths of the four parameter files."""
    return [_find(prefix, ending) for ending in ("rhat.txt", "alphahat.txt", "thetahat.txt", "origchars")]


def _find(prefix: str | Path, ending: str) -> Path:
    for path in (Path(f"{prefix}_{ending}"), Path(f"{prefix}_{ending}.gz")):
        if path.exists():
            return path
    raise InputError(f"{prefix}_{ending}: no such file, and none that ends in .gz.")


def _read_lines(prefix: str | Path, ending: str) -> list[str]:
    path = _find(prefix, ending)
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            text = file.read(MOST_CHARACTERS + 1)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text: {error}.") from None
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"{path} has more than {MOST_CHARACTERS:,} characters: too large for a file of parameters.")
    return [line.strip() for line in text.splitlines() if line.strip()]


def _read_numbers(prefix: str | Path, ending: str, start: int) -> NDArray:
    blocks: list[list[str]] = []
    for line in _read_lines(prefix, ending):
        if line.startswith(">"):
            blocks.append([])
        elif blocks:
            blocks[-1].append(line)
    if not 0 <= start < len(blocks):
        raise InputError(f"start={start}: {prefix}_{ending} holds {len(blocks)} starts.")
    rows = [line.split() for line in blocks[start]]
    if not rows:
        raise InputError(f"{prefix}_{ending}: start {start} has no rows.")
    if len({len(row) for row in rows}) > 1:
        raise InputError(f"{prefix}_{ending} has rows of different lengths.")
    try:
        return np.array(rows, dtype=float)
    except ValueError as error:
        raise InputError(f"{prefix}_{ending} holds something that is not a number: {error}.") from None
