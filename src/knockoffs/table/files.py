"""Tables on disk: csv, csv.gz, tsv and parquet in and out, the same whatever libraries are installed."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Collection
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.table.delimited import index_column, print_delimited, read_delimited, tell
from knockoffs.table.table import PlainFrame
from knockoffs.table.types import Frame
from knockoffs.table.writer import atomic_file

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from narwhals.typing import IntoDataFrame, IntoDataFrameT

FORMATS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
NO_PARQUET = "parquet files need polars or pyarrow: pip install 'knockoffs[tables]'."


def file_format(path: Path) -> str:
    """Which of the known formats a file's name ends in.

    >>> file_format(Path("genes.CSV.gz"))
    '.csv.gz'
    """
    name = path.name.lower()
    for ending in sorted(FORMATS, key=len, reverse=True):
        if name.endswith(ending):
            return ending
    raise InputError(f"{path.name}: the format is told by the ending, one of {', '.join(FORMATS)}.")


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---- reading -----------------------------------------------------------------------------------------------------


def read_table_file(path: Path, *, asked: Collection[str] = ()) -> Frame:
    """Table of a file: csv and tsv as a `PlainFrame`, parquet as a frame of polars or, without it, of pyarrow.

    The column of row numbers that other programs write along is left out, and a warning says so.

    Parameters
    ----------
    path : Path
    asked : collection of str
        Names of columns that the caller speaks of: these are never left out.
    """
    if path.is_dir():
        raise InputError(f"{path}: this is a folder, of which select and test alone read the files: name one file.")
    ending = file_format(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file." if not path.exists() else f"{path}: this is no file.")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty.")
    if ending == ".parquet":
        frame: Frame = _read_parquet(path)
    else:
        try:
            frame = PlainFrame(read_delimited(path, _delimiter(ending)))
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path}: cannot be read as {ending[1:]}: {error}.") from error
    return _without_index(frame, path, asked)


def _delimiter(ending: str) -> str:
    return "\t" if ending.startswith(".tsv") else ","


def check_parquet(ending: str) -> None:
    """Refuse parquet, before any work, where no library can read and write it."""
    if ending == ".parquet" and not any(find_spec(name) is not None for name in ("polars", "pyarrow")):
        raise InputError(NO_PARQUET)


def _read_parquet(path: Path) -> IntoDataFrame:
    check_parquet(".parquet")
    polars, pyarrow = (find_spec(name) is not None for name in ("polars", "pyarrow"))
    try:
        frame = _read_by_pyarrow(path) if pyarrow else _read_by_polars(path)
        if polars and pyarrow:
            import polars as pl

            frame = pl.from_arrow(frame)
    except BaseException as error:  # each library has its own errors for a file that it cannot read
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # which polars raises
            raise
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"{path}: cannot be read as parquet: {reason}") from error
    if len(frame) == 0:
        raise InputError(f"{path}: the file has no rows.")
    return plain_numbers(frame)


def _read_by_pyarrow(path: Path) -> pa.Table:
    """Read by the library that refuses damaged files; polars ends the whole process on some."""
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(path).read()  # read_table would take the names of folders for columns
    table.validate(full=True)
    for field in table.schema:  # what is no text here would be a panic there
        for text in (field.name.encode(), *(part for pair in (field.metadata or {}).items() for part in pair)):
            text.decode()
    return table.replace_schema_metadata(None)


def _read_by_polars(path: Path) -> pl.DataFrame:
    import polars as pl

    return pl.read_parquet(path, hive_partitioning=False)


def plain_numbers(frame: IntoDataFrameT) -> IntoDataFrameT:
    """Frame whose decimals, and whole numbers beyond 64 bits with a sign, are floats, as they are in a csv file."""
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    changed = []
    for column in table.iter_columns():
        dtype = type(column.dtype).__name__
        large = dtype in ("UInt64", "Int128", "UInt128") and column.drop_nulls().len() > 0
        if dtype == "Decimal":
            changed.append(column.cast(nw.Float64()))
        elif large and not -(2**63) <= column.min() <= column.max() < 2**63:
            floats = np.asarray(column.to_numpy(), dtype=float)
            changed.append(nw.new_series(column.name, floats, backend=nw.get_native_namespace(table)))
        elif large:
            changed.append(column.cast(nw.Int64()))
    return nw.to_native(table.with_columns(*changed)) if changed else frame


def _without_index(frame: Frame, path: Path, asked: Collection[str]) -> Frame:
    names = [str(name) for name in column_names(frame)]
    index = index_column((name for name in names if name not in asked), lambda name: take_column(frame, name))
    if index is not None and len(names) > 1:
        column, does = index
        tell(f"{path}: the column {column!r} {does} the rows: left out, because it is no feature.")
        frame, names = drop_columns(frame, [column]), [name for name in names if name != column]
    if "" in names and "" not in asked:
        if not _is_empty(take_column(frame, "")):
            raise InputError(f"{path}: column {names.index('') + 1} has no name. Name it in the header, or drop it.")
        tell(f"{path}: a column without a name and without a value is left out.")
        frame = drop_columns(frame, [""])
    return frame


def _is_empty(values: NDArray) -> bool:
    return all(value is None or value != value for value in values.tolist())


# ---- taking frames apart, whatever library they come from ---------------------------------------------------------


def column_names(frame: Frame) -> list[str]:
    """Names of the columns of a frame; those of pyarrow call something else columns."""
    names = getattr(frame, "column_names", None)
    return list(frame.columns if names is None else names)


def drop_columns(frame: Frame, names: Collection[str]) -> Frame:
    """Frame without some of its columns."""
    if isinstance(frame, PlainFrame):
        dropped = set(names)
        return PlainFrame({name: values for name, values in frame.data.items() if name not in dropped})
    import narwhals as nw

    return nw.to_native(nw.from_native(frame, eager_only=True).drop(list(names)))


def take_column(frame: Frame, name: str) -> NDArray:
    """Values of one column of numbers or labels."""
    if isinstance(frame, PlainFrame):
        return frame.data[name]
    import narwhals as nw

    column = nw.from_native(frame, eager_only=True)[name]
    dtype = column.dtype
    if not (dtype.is_numeric() or type(dtype).__name__ in ("Boolean", "String", "Categorical", "Enum", "Object")):
        raise InputError(
            f"column {name!r} holds {dtype}, which is neither numbers nor labels: turn it into one of them "
            "(for dates, for instance days since a date), or name another column."
        )
    return column.to_numpy()


def _columns_of(frame: Frame | dict[str, NDArray]) -> dict[str, list[object]]:
    if isinstance(frame, PlainFrame):
        frame = frame.data
    if isinstance(frame, dict):
        return {name: values.tolist() if hasattr(values, "tolist") else list(values) for name, values in frame.items()}
    import narwhals as nw

    return {str(s.name): s.to_list() for s in nw.from_native(frame, eager_only=True).iter_columns()}


# ---- writing -----------------------------------------------------------------------------------------------------


def write_table_file(frame: Frame | dict[str, NDArray], path: Path) -> None:
    """Write a data frame, a `PlainFrame` or a dictionary of columns, whole or not at all."""
    ending = file_format(path)
    write = _parquet_writer(frame) if ending == ".parquet" else _csv_writer(frame, ending)
    with atomic_file(path) as file:
        write(file)


def _csv_writer(frame: Frame | dict[str, NDArray], ending: str) -> Callable[[IO[bytes]], None]:
    def write(file: IO[bytes]) -> None:
        import gzip

        if not ending.endswith(".gz"):
            return print_delimited(_columns_of(frame), file, _delimiter(ending))
        with gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed:  # mtime=0: the same table, the same bytes
            print_delimited(_columns_of(frame), packed, _delimiter(ending))  # type: ignore[arg-type]

    return write


def _parquet_writer(frame: Frame | dict[str, NDArray]) -> Callable[[IO[bytes]], None]:
    check_parquet(".parquet")
    if isinstance(frame, PlainFrame):
        frame = frame.data
    if isinstance(frame, dict):
        frame = _frame_of(frame)
    if hasattr(frame, "write_parquet"):
        return frame.write_parquet
    if hasattr(frame, "to_parquet"):
        return lambda file: frame.to_parquet(file, index=False)

    def write(file: IO[bytes]) -> None:
        import pyarrow.parquet

        pyarrow.parquet.write_table(frame, file)

    return write


def _frame_of(columns: dict[str, NDArray]) -> IntoDataFrame:
    lists = {name: values.tolist() if isinstance(values, np.ndarray) else values for name, values in columns.items()}
    if find_spec("polars") is not None:
        import polars as pl

        return pl.DataFrame(lists)
    import pyarrow

    return pyarrow.table(lists)
