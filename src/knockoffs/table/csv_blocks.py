"""Records of a csv or tsv file as frames of text, a block at a time; a file that is no table is refused with its line.

Polars splits the cells where there are no quotes and the separators add up; Python's reader takes all other blocks,
and names the line that is no record.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

import polars as pl

from knockoffs.errors import InputError, name_some, warn

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
BLOCK = 2**23  # characters
PACKED = {
    b"\x1f\x8b": "compressed by gzip: call it .csv.gz",
    b"PK\x03\x04": "a zip archive or a spreadsheet: unpack or export it",
    b"BZh91AY&SY": "compressed by bzip2: unpack it",
    b"\xfd7zXZ\x00": "compressed by xz: unpack it",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: unpack it",
    b"PAR1\x15": "parquet: call it .parquet",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet: export it as csv",
}
GUARDED = r"^'([=+\-@\t\r\n'].*)$"  # a label that a spreadsheet would run is written with an apostrophe before it


@dataclass(frozen=True)
class CsvLayout:
    """How a file of delimited text is written."""

    path: Path
    separator: str
    names: tuple[str, ...]  # of the columns
    utf16: bool = False  # otherwise the text is UTF-8
    start: int = 1  # lines before the first record, the header among them


def find_layout(path: Path, expected: str) -> CsvLayout:
    """Layout of a file, by its first block; a separator other than ``expected`` is recognised with a warning."""
    with _open(path) as file:
        head = file.read(16)
    packed = next((what for mark, what in PACKED.items() if head.startswith(mark)), None)
    if packed is not None:
        raise InputError(f"{path}: this is no text, but {packed}.")
    utf16 = head[:2] in (b"\xff\xfe", b"\xfe\xff")
    lines = io.StringIO(next(_blocks(path, utf16, BLOCK), (0, ""))[1], newline="\n")
    hint = re.fullmatch(r"sep=([,;\t|])\s*", lines.readline())  # as spreadsheets write it
    body = lines.tell() if hint else 0
    separator = hint[1] if hint else _separator(lines, expected)
    lines.seek(body)
    reader = csv.reader(lines, delimiter=separator)
    try:
        header = next((record for record in reader if any(cell.strip() for cell in record) or len(record) > 1), None)
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num} cannot be read as csv: {error}.") from None
    if header is None:
        raise InputError(f"{path}: the file is empty.")
    if utf16:
        warn(f"{path}: read as UTF-16, by the mark at its start.")
    if separator != expected:
        warn(f"{path}: read with {SEPARATORS[separator]} between the cells, not {SEPARATORS[expected]}.")
    return CsvLayout(path, separator, _names(path, header), utf16, reader.line_num + bool(hint))


def _separator(lines: io.StringIO, expected: str, tried: int = 50) -> str:
    """Separator by which the first records have one number of cells."""
    # the comma last: one may well stand in every line of a file with semicolons, in numbers and in names
    for separator in sorted(SEPARATORS, key=lambda character: (character == ",", character != expected)):
        lines.seek(0)
        try:
            records = list(islice(csv.reader(lines, delimiter=separator, strict=True), tried))
        except csv.Error:
            continue
        widths = {len(record) for record in records if record and (len(record) > 1 or record[0].strip())}
        if len(widths) == 1 and widths != {1}:
            return separator
    return expected


def _names(path: Path, header: Sequence[str]) -> tuple[str, ...]:
    names = tuple(re.sub(GUARDED, r"\1", name, flags=re.DOTALL) for name in header)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if "" in twice:
        places = [j + 1 for j, name in enumerate(names) if name == ""]
        raise InputError(f"{path}: columns {name_some(places)} have no name. Name them in the header, or drop them.")
    if twice:
        raise InputError(f"{path}: two columns of the same name: {name_some(twice)}. Rename or drop one of each.")
    return names


# ---- blocks ------------------------------------------------------------------------------------------------------


def text_blocks(layout: CsvLayout, names: Sequence[str] | None = None, *, size: int = BLOCK) -> Iterator[pl.DataFrame]:
    """Frames of text of all records after the header, with some of the columns or all; ``size`` characters at a time.

    A record that is shorter or longer than the header, quotes that are not closed and bytes that are no text are
    refused with their line.
    """
    for line, block in _blocks(layout.path, layout.utf16, size):
        if line < layout.start:
            line, block = layout.start, "".join(block.split("\n", layout.start - line)[layout.start - line :])
        if block:
            frame = _parsed(layout, block, line)
            yield frame if names is None else frame.select(names)


def _parsed(layout: CsvLayout, block: str, line: int) -> pl.DataFrame:
    width, ends = len(layout.names), block.count("\n") + (not block.endswith("\n"))
    frame = None
    if '"' not in block and width > 1 and block.count(layout.separator) == (width - 1) * ends:
        with suppress(pl.exceptions.PolarsError):  # of a record that is too long, beside one that is too short
            frame = pl.read_csv(block.encode(), has_header=False, separator=layout.separator, infer_schema=False)
    if frame is None or frame.width != width:
        frame = pl.DataFrame(_records(layout, block, line), dict.fromkeys(layout.names, pl.String), orient="row")
    frame.columns = list(layout.names)
    return frame.with_columns(pl.all().str.replace("(?s)" + GUARDED, "$1")) if "'" in block else frame


def _records(layout: CsvLayout, block: str, line: int) -> list[list[str]]:
    """Return the records of a block, without blank lines; one that does not have the width of the header is refused."""
    found, width, start = [], len(layout.names), 0
    reader = csv.reader(io.StringIO(block, newline="\n"), delimiter=layout.separator, strict=True)
    try:
        for record in reader:
            start = reader.line_num
            if len(record) == width:
                found.append(record)
            elif len(record) > 1 or (record and record[0].strip()):
                break
        else:
            return found
    except csv.Error as error:
        raise InputError(
            f"{layout.path}: line {line + start + 1} cannot be read as csv ({error}): a quote that opens a cell must "
            'close it, and a quote inside of it is written twice, "".'
        ) from None
    remedy = "Mend the line; a cell that holds the separator needs quotes."
    if width == 1:
        remedy = "Delete what stands before the header, if the first line is a title or a comment."
    raise InputError(
        f"{layout.path}: line {line + start} has {len(record)} values and the header has {width} names. {remedy}"
    )


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb")  # type: ignore[return-value]


def _blocks(path: Path, utf16: bool, size: int) -> Iterator[tuple[int, str]]:
    """Yield runs of whole records, each with the number of lines before it; a line ends in a newline alone."""
    encoding, errors = ("utf-16", "strict") if utf16 else ("utf-8-sig", "surrogateescape")
    line = 0
    with _open(path) as file:
        text = io.TextIOWrapper(file, encoding, errors)
        try:
            while block := text.read(size) + text.readline():
                parts, inside = [block], block.count('"') % 2
                while inside and (more := text.readline()):  # a cell may hold the end of a line
                    parts.append(more)
                    inside ^= more.count('"') % 2
                block = "".join(parts)
                _check_text(path, block, line)
                yield line, block
                line += block.count("\n")
        except UnicodeDecodeError:
            raise InputError(f"{path}: the file begins as UTF-16 and is not. Save it as csv in UTF-8.") from None


def _check_text(path: Path, block: str, line: int) -> None:
    if "\0" in block:
        raise InputError(
            f"{path}: line {line + 1 + block.count(chr(10), 0, block.index(chr(0)))} holds a NUL byte: this is no text "
            "file, or one in UTF-16 without a mark. Save it as csv in UTF-8."
        )
    try:
        block.encode()
    except UnicodeEncodeError as error:
        byte = ord(block[error.start]) % 256
        raise InputError(
            f"{path}: line {line + 1 + block.count(chr(10), 0, error.start)} is not UTF-8: it holds the byte "
            f"0x{byte:02x}, which is {chr(byte)!r} in Latin-1. Save the file as UTF-8, for instance by iconv -f latin1 "
            "-t utf-8."
        ) from None
