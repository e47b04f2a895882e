"""Tables on disk: csv, csv.gz, tsv and parquet in and out, as frames of polars."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some, warn
from knockoffs.table.cells import is_missing
from knockoffs.table.column_checks import without_index
from knockoffs.table.csv_blocks import CsvLayout, find_layout, text_blocks
from knockoffs.table.frames import open_frame
from knockoffs.table.text import MISSING, Text, read_text, text_of
from knockoffs.table.types import Frame
from knockoffs.table.writer import atomic_file

FORMATS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
FORMULA = r"^(?s:[=+\-@\t\r\n'].*)$"  # what a spreadsheet would run, and the apostrophe that guards it
NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def file_format(path: Path) -> str:
    """Return the ending of a file's name, which is its format.

    >>> file_format(Path("genes.CSV.gz"))
    '.csv.gz'
    """
    name = path.name.lower()
    for ending in sorted(FORMATS, key=len, reverse=True):
        if name.endswith(ending):
            return ending
    raise InputError(f"{path.name}: the ending says the format, one of {', '.join(FORMATS)}.")


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---- reading -----------------------------------------------------------------------------------------------------


def read_table_file(path: Path, *, asked: Collection[str] = ()) -> pl.DataFrame:
    """Table of a file, without an index that other programs write beside it, unless it is ``asked`` for by name."""
    if path.is_dir():
        raise InputError(f"{path}: this is a folder, which only select and test read: name one file.")
    ending = file_format(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file." if not path.exists() else f"{path}: this is no file.")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty.")
    return check_names(
        _read_parquet(path) if ending == ".parquet" else pl.concat(open_text(path).blocks()), path, asked
    )


def check_names(frame: pl.DataFrame, path: Path, asked: Collection[str]) -> pl.DataFrame:
    """Frame without an index; a column without a name that holds values is refused."""
    frame = without_index(frame, str(path), asked)
    if "" in frame.columns and "" not in asked:
        place = frame.columns.index("") + 1
        raise InputError(f"{path}: column {place} has no name. Name it in the header, or drop it.")
    return frame


@dataclass(frozen=True)
class TextFile:
    """A csv or tsv file that was read through once: its columns are of the kinds that all of its rows have."""

    layout: CsvLayout
    kinds: Mapping[str, str]  # of each column, as ``knockoffs.table.text`` names them
    n_rows: int

    def blocks(self, names: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """Frames of all rows in their order, with some of the columns or all."""
        with unpacking(self.layout.path):
            for block in text_blocks(self.layout, names):
                yield pl.DataFrame({name: read_text(block[name], self.kinds[name]) for name in block.columns})


def open_text(path: Path) -> TextFile:
    """Text file with the kinds of its columns, which take a look at all of its rows."""
    n_rows = 0
    with unpacking(path):
        layout = find_layout(path, separator_of(path))
        texts = dict.fromkeys(layout.names, Text())
        for block in text_blocks(layout):
            n_rows += len(block)
            texts = {name: text & text_of(block[name]) for name, text in texts.items()}
    if not n_rows:
        raise InputError(f"{path}: the file has a header and no rows.")
    _warn_of_text(path, texts)
    return TextFile(layout, {name: text.kind for name, text in texts.items()}, n_rows)


def separator_of(path: Path) -> str:
    """Separator that a file's ending stands for."""
    return "\t" if file_format(path).startswith(".tsv") else ","


def _warn_of_text(path: Path, texts: Mapping[str, Text]) -> None:
    """Warn of words that are taken as missing cells and of decimal commas."""
    odd = {name: tuple(sorted(text.stand_ins - MISSING)) for name, text in texts.items()}
    said = [
        f"{name_some(words)} taken as missing in {name_some(name for name, own in odd.items() if own == words)}"
        for words in sorted(set(odd.values()) - {()})
    ]
    commas = [name for name, text in texts.items() if text.kind == "comma"]
    said += [f"read with decimal commas in {name_some(commas)}"] if commas else []
    for sentence in said:
        warn(f"{path}: {sentence}.")


@contextmanager
def unpacking(path: Path) -> Iterator[None]:
    """Errors of the disk and of gzip as errors that name the file."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read as {file_format(path)[1:]}: {error}.") from error


def _read_parquet(path: Path) -> pl.DataFrame:
    with parquet_errors(path):
        frame = _decode_parquet(path)
    if len(frame) == 0:
        raise InputError(f"{path}: the file has no rows.")
    return frame


def _decode_parquet(path: Path) -> pl.DataFrame:
    """Frame of a parquet file, by pyarrow where it is installed: some damaged files end the process of polars."""
    if find_spec("pyarrow") is None:
        return pl.read_parquet(path, glob=False, hive_partitioning=False)
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        table = file.read()
    table.validate(full=True)  # else text that is no UTF-8 reaches polars, which believes it
    return pl.DataFrame(pl.from_arrow(table))


@contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """Errors and panics of polars as one error that names the file."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, InputError) or not isinstance(error, Exception | pl.exceptions.PanicException):
            raise
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"{path}: cannot be read as parquet: {reason}") from error


def parquet_shape(path: Path) -> tuple[int, int]:
    """Rows and columns of a parquet file; its cells are not read."""
    with parquet_errors(path):
        scan = pl.scan_parquet(path, glob=False, hive_partitioning=False)
        return int(scan.select(pl.len()).collect().item()), len(scan.collect_schema())


# ---- writing -----------------------------------------------------------------------------------------------------


def write_table_file(frame: Frame | Mapping[str, Sequence[object] | NDArray], path: Path) -> None:
    """Write a data frame or a dictionary of columns, whole or not at all."""
    ending, table = file_format(path), _as_polars(frame)
    with atomic_file(path) as file:
        if ending == ".parquet":
            table.write_parquet(file)
        elif ending.endswith(".gz"):
            with gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed:  # mtime=0: the same table, the same bytes
                write_delimited(table, packed, separator_of(path))  # type: ignore[arg-type]
        else:
            write_delimited(table, file, separator_of(path))


def _as_polars(frame: Frame | Mapping[str, Sequence[object] | NDArray]) -> pl.DataFrame:
    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, Mapping):
        columns = {
            name: values.tolist() if isinstance(values, np.ndarray) else values for name, values in frame.items()
        }
    else:
        columns = {series.name: series.to_list() for series in open_frame(frame).iter_columns()}
    cleaned = {name: [_clean(cell) for cell in cells] for name, cells in columns.items()}
    return pl.DataFrame({name: pl.Series(cells, strict=False) for name, cells in cleaned.items()})


def _clean(cell: object) -> object:
    """Cell without what a file cannot hold: None where it is missing, a question mark for half a character."""
    if isinstance(cell, str):
        return cell if cell.isascii() else cell.encode(errors="replace").decode()
    return None if is_missing(cell) else cell


def write_delimited(frame: Frame | Mapping[str, Sequence[object] | NDArray], file: IO[bytes], separator: str) -> None:
    """Write a frame as delimited text with a header.

    A label that a spreadsheet would run as a formula is written with an apostrophe before it; the reader takes it away.
    """
    table = _as_polars(frame)
    texts = [name for name, dtype in table.schema.items() if dtype in (pl.String, pl.Categorical, pl.Enum)]
    guarded = table.with_columns(_guarded(table[name].cast(pl.String)) for name in texts)
    guarded.columns = _guarded(pl.Series("", table.columns, dtype=pl.String)).to_list()
    guarded.write_csv(file, separator=separator)


def _guarded(text: pl.Series) -> pl.Series:
    runs = text.str.contains(FORMULA) & ~text.str.contains(NUMBER)
    return ("'" + text).zip_with(runs.fill_null(False), text).rename(text.name)
