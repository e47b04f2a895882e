r"""Delimited text: the one reader and the one writer of csv and tsv files, the same whatever libraries are installed.

Every cell is a text until its whole column is known; what it holds then is told in ``delimited_cells``.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, KnockoffWarning, name_some
from knockoffs.table.delimited_cells import (
    MISSING,
    as_kind,
    join_parts,
    may_join,
    parse,
    read_back,
    stand_ins,
    written,
    written_name,
)

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
PACKED = {
    b"\x1f\x8b": "compressed by gzip: call it .csv.gz",
    b"PK\x03\x04": "a zip archive or a spreadsheet: unpack or export it",
    b"BZh91AY&SY": "compressed by bzip2: unpack it",
    b"\xfd7zXZ\x00": "compressed by xz: unpack it",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: unpack it",
    b"PAR1\x15": "parquet: call it .parquet",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet: export it as csv",
}
CELLS_AT_ONCE = 200_000  # texts take ten times the memory of numbers, so few are held at a time
RECORDS_TRIED = 50  # lines that must agree in their number of cells for a separator to be recognised


def read_delimited(path: Path, expected: str) -> dict[str, NDArray]:
    """Columns of a csv or tsv file (perhaps compressed by gzip) by their names.

    Parameters
    ----------
    path : Path
    expected : str
        The separator that the file's ending stands for; another one is recognised, and said in a warning.

    Returns
    -------
    dict of arrays, shape (n,)
        Of int64, float (NaN where missing), bool, or object: texts, and None where missing.
    """
    layout = _look(path, expected)
    columns = None
    while columns is None:  # again only where a column turns out to hold labels after some thousand numbers
        columns = _read_columns(layout)
    if len(columns[0]) == 0:
        raise InputError(f"{path}: the file has a header and no rows.")
    _say_layout(layout, expected)
    return dict(zip(layout.names, columns, strict=True))


@dataclass
class Layout:
    """What is known of a file of delimited text.

    Attributes
    ----------
    path : Path
    encoding, separator : str
    skip : int
        Lines before the header.
    names : list of str
    kinds : list of str
        What each column holds, as far as it has been read.
    blank : list of bool
        Columns that hold nothing, as far as they have been read.
    n_rows : int
        Of those that have been read.
    stand_ins : dict
        By column, texts such as a question mark that were taken as missing.
    """

    path: Path
    encoding: str
    separator: str
    skip: int
    names: list[str]
    kinds: list[str]
    blank: list[bool]
    n_rows: int = 0
    stand_ins: dict[str, set[str]] = field(default_factory=dict)

    def records(self) -> Generator[tuple[int, list[str]]]:
        """Line and cells of every record after the header, each as wide as this."""
        records = _records(self.path, self.encoding, self.separator, self.skip)
        next(records)
        width = len(self.names)
        for line, cells in records:
            if len(cells) != width:
                remedy = "Mend the line; a cell that holds the separator needs quotes."
                if width == 1:
                    remedy = "Delete what stands before the header, if the first line is a title or a comment."
                raise InputError(
                    f"{self.path}: line {line} has {len(cells)} values and the header has {width} names. {remedy}"
                )
            yield line, cells

    @property
    def parallel_map(self) -> int:
        """Records whose texts are held at a time."""
        return max(CELLS_AT_ONCE // len(self.names), 1)


def lay_out(path: Path, expected: str) -> Layout:
    """Read a file once, and keep nothing but its layout: the kinds of its columns are those of all its rows."""
    layout = _look(path, expected)
    while _read_columns(layout, keep=False) is None:
        pass
    if layout.n_rows == 0:
        raise InputError(f"{path}: the file has a header and no rows.")
    _say_layout(layout, expected)
    return layout


def read_runs(layout: Layout, names: Sequence[str], start: int, sizes: Iterable[int]) -> Generator[dict[str, NDArray]]:
    """Columns of runs of rows from ``start`` on, of these sizes, as ``read_delimited`` would give them.

    Parameters
    ----------
    layout : Layout
        As ``lay_out`` gives it.
    names : sequence of str
        Columns that are read.
    start : int
    sizes : iterable of int
    """
    places = [layout.names.index(name) for name in names]
    with closing(layout.records()) as records:
        for _ in islice(records, start):
            pass
        for size in sizes:
            parts: list[list[NDArray]] = [[] for _ in places]
            while size and (block := list(islice(records, min(size, layout.parallel_map)))):
                size -= len(block)
                for part, values in zip(parts, parse_cells(layout, places, block), strict=True):
                    part.append(values)
            kinds = (layout.kinds[j] for j in places)
            yield {name: join_parts(*one) for name, one in zip(names, zip(parts, kinds, strict=True), strict=True)}


def parse_cells(layout: Layout, places: Sequence[int], block: Sequence[tuple[int, list[str]]]) -> Iterator[NDArray]:
    """Values of some columns of some records, by the kinds of a layout."""
    for j in places:
        cells = [cells[j] for _, cells in block]
        yield as_kind(parse(cells, layout.kinds[j], layout.separator != ",")[1], layout.kinds[j])


def _look(path: Path, expected: str) -> Layout:
    """Find encoding, separator and names of a file; its cells are not read."""
    encoding = _encoding(path)
    separator, skip = _separator(path, encoding, expected)
    with closing(_records(path, encoding, separator, skip)) as records:
        header = next(records, None)
    if header is None:
        raise InputError(f"{path}: the file is empty.")
    names = _names(path, header[1])
    return Layout(path, encoding, separator, skip, names, ["integer"] * len(names), [True] * len(names))


def _say_layout(layout: Layout, expected: str) -> None:
    path = layout.path
    if layout.encoding == "utf-16":
        tell(f"{path}: read as UTF-16, by the mark at its start.")
    if layout.separator != expected:
        found = SEPARATORS.get(layout.separator, repr(layout.separator))
        tell(f"{path}: read with {found} between the cells, not {SEPARATORS[expected]}.")
    for texts in sorted({tuple(sorted(odd)) for odd in layout.stand_ins.values()}):
        columns = [name for name, odd in layout.stand_ins.items() if tuple(sorted(odd)) == texts]
        tell(f"{path}: {name_some(texts)} taken as missing in {name_some(columns)}.")
    commas = [name for name, kind in zip(layout.names, layout.kinds, strict=True) if kind == "comma"]
    if commas:
        tell(f"{path}: read with decimal commas in {name_some(commas)}.")


def print_delimited(columns: Mapping[str, Iterable[object]], file: IO[bytes], separator: str) -> None:
    """Write columns with a header; `read_delimited` reads the same values back, and a spreadsheet runs none of them."""
    text = io.TextIOWrapper(file, encoding="utf-8", errors="surrogatepass", newline="")
    alone = len(columns) == 1  # where an empty cell would be a blank line

    def cells(values: Iterable[object]) -> Iterator[str]:
        return (_quoted(written(value), separator, alone) for value in values)

    text.write(separator.join(_quoted(written_name(str(name)), separator, alone) for name in columns) + "\n")
    for row in zip(*map(cells, columns.values()), strict=True):
        text.write(separator.join(row) + "\n")
    text.flush()
    text.detach()


def _quoted(cell: str, separator: str, alone: bool) -> str:
    if separator in cell or '"' in cell or "\n" in cell or "\r" in cell or (alone and not cell):
        return '"' + cell.replace('"', '""') + '"'
    return cell


# ---- what the file is --------------------------------------------------------------------------------------------


def _open(path: Path) -> IO[bytes]:
    import gzip

    return gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb")  # type: ignore[return-value]


def _encoding(path: Path) -> str:
    with _open(path) as file:
        start = file.read(10)
    for mark, what in PACKED.items():
        if start.startswith(mark):
            raise InputError(f"{path}: this is no text, but {what}.")
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    return "utf-8-sig"


def _lines(path: Path, encoding: str) -> Generator[str]:
    """Lines of the text, each checked; a byte that is no text is refused with its line."""
    number = 1
    try:
        with _open(path) as raw, io.TextIOWrapper(raw, encoding=encoding, newline="") as text:
            for line in text:
                if "\0" in line:
                    raise InputError(
                        f"{path}: line {number} holds a NUL byte: this is no text file, or one in UTF-16 without a "
                        "mark. Save it as csv in UTF-8."
                    )
                number += 1
                yield line
    except UnicodeDecodeError:
        raise _not_text(path, encoding) from None


def _not_text(path: Path, encoding: str) -> InputError:
    with _open(path) as raw:
        for number, line in enumerate(raw, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                if encoding != "utf-16":
                    byte = line[error.start]
                    return InputError(
                        f"{path}: line {number} is not UTF-8: it holds the byte 0x{byte:02x}, which is "
                        f"{bytes([byte]).decode('latin-1')!r} in Latin-1. Save the file as UTF-8, for instance by "
                        f"iconv -f latin1 -t utf-8."
                    )
    return InputError(f"{path}: the file begins as UTF-16 and is not. Save it as csv in UTF-8.")


def _records(path: Path, encoding: str, separator: str, skip: int = 0) -> Generator[tuple[int, list[str]]]:
    """Line and cells of every record that is not blank; the header comes first."""
    lines = _lines(path, encoding)
    reader = csv.reader(islice(lines, skip, None), delimiter=separator, strict=True)
    width = 0
    try:
        for cells in reader:
            if not cells or width != 1 and len(cells) == 1 and not cells[0].strip():
                continue
            width = width or len(cells)
            yield reader.line_num + skip, cells
    except csv.Error as error:
        raise InputError(
            f"{path}: line {reader.line_num + skip} cannot be read as csv ({error}): a quote that opens a cell must "
            'close it, and a quote inside one is written twice, "".'
        ) from None


def _separator(path: Path, encoding: str, expected: str) -> tuple[str, int]:
    """Find the separator by which the first records have one number of cells, and lines to skip before them."""
    with closing(_lines(path, encoding)) as lines:
        first = next(lines, "")
    if re.fullmatch(r"sep=[,;\t|]\s*", first):  # as spreadsheets write it
        return first[4], 1
    # the comma last: one may well stand in every line of a file with semicolons, in numbers and in names
    for separator in sorted(SEPARATORS, key=lambda character: (character == ",", character != expected)):
        try:
            with closing(_records(path, encoding, separator)) as records:
                widths = {len(cells) for _, cells in islice(records, RECORDS_TRIED)}
        except InputError:
            continue
        if len(widths) == 1 and widths != {1}:
            return separator, 0
    return expected, 0


def _names(path: Path, header: list[str]) -> list[str]:
    names = [read_back(name) for name in header]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if "" in twice:
        places = [j + 1 for j, name in enumerate(names) if name == ""]
        raise InputError(f"{path}: columns {name_some(places)} have no name. Name them in the header, or drop them.")
    if twice:
        raise InputError(f"{path}: two columns of the same name: {name_some(twice)}. Rename or drop one of each.")
    return names


# ---- what the cells are ------------------------------------------------------------------------------------------


def _read_columns(layout: Layout, *, keep: bool = True) -> list[NDArray] | None:
    """Columns by their kinds; None where a kind had to be changed after cells of another had been read."""
    parts: list[list[NDArray]] = [[] for _ in layout.names]
    layout.blank, layout.n_rows = [True] * len(parts), 0  # columns without a cell so far may become anything
    layout.stand_ins = {}
    kinds, blank, changed = layout.kinds, layout.blank, False
    with closing(layout.records()) as records:
        while block := list(islice(records, layout.parallel_map)):
            layout.n_rows += len(block)
            for j, column in enumerate(zip(*(cells for _, cells in block), strict=True)):
                kind, values = parse(column, kinds[j], layout.separator != ",")
                changed |= kind != kinds[j] and not blank[j] and not may_join(kinds[j], kind)
                kinds[j] = kind
                if odd := stand_ins(column, values):
                    layout.stand_ins.setdefault(layout.names[j], set()).update(odd)
                blank[j] = blank[j] and all(cell.strip() in MISSING for cell in column)
                if keep:
                    parts[j].append(values)
    if changed:
        return None
    return [join_parts(part, kind) for part, kind in zip(parts, kinds, strict=True)]


def tell(message: str) -> None:
    """Warn of something about a file that was recognised or left out."""
    warnings.warn(message, KnockoffWarning, stacklevel=4)


def index_column(columns: Iterable[str], values_of: Callable[[str], NDArray]) -> tuple[str, str] | None:
    """Name of the column of row numbers or names that other programs write before the table, where there is one.

    It has no name, or that which pandas gives it when it is read and written again, and counts the rows from 0 or 1 or
    holds a text of its own for each of them. Second comes what it does: it numbers or names the rows.
    """
    for name in columns:
        if name == "__index_level_0__":
            return name, "numbers" if np.asarray(values_of(name)).dtype.kind in "iuf" else "names"
        if name == "" or re.fullmatch(r"Unnamed: ?[0-9]+(\.[0-9]+)*", name):
            values = np.asarray(values_of(name))
            n = len(values)
            if values.dtype.kind in "iu" and any(np.array_equal(values, np.arange(k, n + k)) for k in (0, 1)):
                return name, "numbers"
            texts = {value for value in values.tolist() if isinstance(value, str) and value}
            if n > 1 and len(texts) == n:
                return name, "names"
    return None
