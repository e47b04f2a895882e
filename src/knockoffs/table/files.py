"""Tables and results on disk: csv, csv.gz, tsv and parquet in and out, written whole or not at all."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some
from knockoffs.table.table import PlainFrame

FORMATS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")  # one list, so that every reader gives the same table


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


def read_table_file(path: Path) -> Any:
    """Table of a file as a polars or pandas data frame, or as a `PlainFrame` where neither is installed.

    The numbers of a csv file are read to the last bit by every reader, so the answer does not depend on which is
    installed. Empty cells and NA, N/A, NaN, NULL are missing.
    """
    ending = file_format(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty.")
    if ending != ".parquet":
        _check_header(path, ending)
    reader = _reader(ending)
    try:
        return reader(path)
    except InputError:
        raise
    except Exception as error:  # each library has its own errors for a file that it cannot read
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"{path}: cannot be read as {ending[1:]}: {reason}") from error


def write_table_file(frame: Any, path: Path) -> None:
    """Write a data frame, a `PlainFrame` or a dictionary of columns, whole or not at all."""
    ending = file_format(path)
    write = _parquet_writer(frame) if ending == ".parquet" else _csv_writer(frame, ending)
    with atomic_file(path) as file:
        write(file)


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes its name only when all of it is on the disk.

    Until then it is a temporary file in the same folder, so that a full disk, an error or a kill leaves the old file
    as it was.
    """
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    except OSError as error:
        raise InputError(f"{path.parent}: cannot write here: {error.strerror or error}.") from error
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _new_file_mode(path))
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _new_file_mode(path: Path) -> int:
    """Permissions of the file that is replaced, or those any new file gets (mkstemp makes private ones)."""
    with suppress(OSError):
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


# ---- reading -----------------------------------------------------------------------------------------------------


def _check_header(path: Path, ending: str) -> None:
    """Refuse names that are given twice: the readers rename them in silence."""
    import csv

    with _open_text(path) as file:
        try:
            header = next(csv.reader(file, delimiter=_delimiter(ending)), [])
        except (UnicodeDecodeError, OSError, EOFError, csv.Error) as error:
            raise InputError(f"{path}: cannot be read as {ending[1:]}: {error}") from error
    twice = sorted({name for name in header if header.count(name) > 1}) if len(set(header)) < len(header) else []
    if twice:
        raise InputError(f"{path}: two columns of the same name: {name_some(twice)}. Rename or drop one of each.")


def _open_text(path: Path) -> IO[str]:
    import gzip

    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open("rt", encoding="utf-8-sig", newline="")


def _delimiter(ending: str) -> str:
    return "\t" if ending.startswith(".tsv") else ","


def _reader(ending: str) -> Callable[[Path], Any]:
    polars, pandas, pyarrow = (find_spec(name) is not None for name in ("polars", "pandas", "pyarrow"))
    if ending == ".parquet":
        if polars:
            return _read_parquet_polars
        if pandas and pyarrow:
            return _read_parquet_pandas
        raise InputError("parquet files need polars or pyarrow: pip install 'knockoffs[tables]'.")
    if polars:
        return lambda path: _read_csv_polars(path, _delimiter(ending))
    if pandas:
        return lambda path: _read_csv_pandas(path, _delimiter(ending))
    return lambda path: _read_csv_plain(path, _delimiter(ending))


def _read_parquet_polars(path: Path) -> Any:
    import polars as pl

    return pl.read_parquet(path)


def _read_parquet_pandas(path: Path) -> Any:
    import pandas as pd

    return pd.read_parquet(path)


def _read_csv_polars(path: Path, delimiter: str) -> Any:
    import polars as pl

    # all rows decide what a column holds, not the first hundred
    return pl.read_csv(path, separator=delimiter, infer_schema_length=None, null_values=list(MISSING))


def _read_csv_pandas(path: Path, delimiter: str) -> Any:
    import pandas as pd

    options: dict[str, Any] = {"sep": delimiter, "keep_default_na": False, "na_values": list(MISSING)}
    options |= {"encoding": "utf-8-sig", "index_col": False}
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):  # later versions read floats exactly anyhow
        options["float_precision"] = "round_trip"
    return pd.read_csv(path, low_memory=False, **options)


def _read_csv_plain(path: Path, delimiter: str) -> PlainFrame:
    import csv

    with _open_text(path) as file:
        rows = csv.reader(file, delimiter=delimiter)
        header = next(rows)
        body = []
        for row in rows:
            if len(row) != len(header) and row:
                raise InputError(
                    f"{path}: line {rows.line_num} has {len(row)} values and the header has {len(header)} names."
                )
            if row:
                body.append(row)
    cells = np.array(body, dtype=object).reshape(len(body), len(header))
    return PlainFrame({name: _parse_column(cells[:, j]) for j, name in enumerate(header)})


def _parse_column(cells: NDArray) -> NDArray:
    """Integers, floats, booleans or strings, whichever holds every cell; missing cells are NaN or None."""
    present = [cell for cell in cells.tolist() if cell not in MISSING]
    if present and all(cell in ("true", "false") for cell in present):
        values: list[Any] = [None if cell in MISSING else cell == "true" for cell in cells]
        return np.array(values, dtype=object if None in values else bool)
    for kind in (int, float):
        try:
            parsed = [float("nan") if cell in MISSING else kind(cell) for cell in cells]
        except ValueError:
            continue
        return np.array(parsed, dtype=float if len(present) < len(cells) else kind)
    return np.array([None if cell in MISSING else cell for cell in cells], dtype=object)


# ---- taking frames apart, whatever library they come from ---------------------------------------------------------


def drop_columns(frame: Any, names: list[str]) -> Any:
    """Frame without some of its columns."""
    if isinstance(frame, PlainFrame):
        return PlainFrame({name: values for name, values in frame.data.items() if name not in names})
    import narwhals as nw

    return nw.to_native(nw.from_native(frame, eager_only=True).drop(names))


def take_column(frame: Any, name: str) -> NDArray:
    """Values of one column."""
    if isinstance(frame, PlainFrame):
        return frame.data[name]
    import narwhals as nw

    return nw.from_native(frame, eager_only=True)[name].to_numpy()


def _columns_of(frame: Any) -> dict[str, list[Any]]:
    if isinstance(frame, PlainFrame):
        frame = frame.data
    if isinstance(frame, dict):
        return {name: values.tolist() if hasattr(values, "tolist") else list(values) for name, values in frame.items()}
    import narwhals as nw

    return {str(s.name): s.to_list() for s in nw.from_native(frame, eager_only=True).iter_columns()}


# ---- writing -----------------------------------------------------------------------------------------------------


def _csv_writer(frame: Any, ending: str) -> Callable[[IO[bytes]], None]:
    def write(file: IO[bytes]) -> None:
        import gzip

        # mtime=0: the same table gives the same bytes
        raw: Any = gzip.GzipFile("", "wb", mtime=0, fileobj=file) if ending.endswith(".gz") else file
        if hasattr(frame, "write_csv"):  # polars: exact floats, many times faster than the loop
            frame.write_csv(raw, separator=_delimiter(ending))
        else:
            _write_rows(_columns_of(frame), raw, _delimiter(ending))
        if raw is not file:
            raw.close()

    return write


def _write_rows(columns: dict[str, list[Any]], raw: Any, delimiter: str) -> None:
    import csv
    import io

    text = io.TextIOWrapper(raw, encoding="utf-8", newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*map(_cells, columns.values()), strict=True))
    text.flush()
    text.detach()


def _cells(values: list[Any]) -> Iterator[Any]:
    """Cells that read back as they were: repr of a float is exact, and booleans are written in lower case."""
    return (str(v).lower() if isinstance(v, bool) else repr(v) if isinstance(v, float) else v for v in values)


def _parquet_writer(frame: Any) -> Callable[[IO[bytes]], None]:
    if isinstance(frame, PlainFrame | dict) or not hasattr(frame, "columns"):
        raise InputError("parquet files need polars or pyarrow: pip install 'knockoffs[tables]'.")
    if hasattr(frame, "write_parquet"):
        return frame.write_parquet
    return lambda file: frame.to_parquet(file, index=False)
