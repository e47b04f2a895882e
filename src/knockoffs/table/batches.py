"""Work in blocks: a finished block is kept, whole, in a marked folder, and a stopped run goes on with the others.

The folder holds a journal, which marks it as ours and says what must be the same for a run to go on, and one file for
each finished block. A folder without that mark is never touched, and of a marked one only our own files are removed.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from knockoffs.errors import InputError, name_some
from knockoffs.table.types import Json
from knockoffs.table.writer import atomic_file, clear_leftovers

T = TypeVar("T")
JOURNAL = "knockoffs-journal.json"  # its name is the mark, which a damaged one still bears
UNREADABLE = (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Blocks:
    """Files of finished blocks.

    Parameters
    ----------
    folder : Path
    suffix : str
        Ending of their names.
    """

    folder: Path
    suffix: str

    def path(self, key: str) -> Path:
        """File of a block."""
        return self.folder / f"{key}{self.suffix}"

    def find(self, key: str, read: Callable[[Path], T]) -> T | None:
        """Read a finished block; None if it is not there, or damaged, so that it is made again."""
        path = self.path(key)
        if not path.is_file():
            return None
        try:
            return read(path)
        except UNREADABLE:
            return None

    def keep(self, key: str, write: Callable[[IO[bytes]], object]) -> None:
        """Store a finished block, whole or not at all."""
        with atomic_file(self.path(key)) as file:
            write(file)

    def remove(self, *patterns: str) -> None:
        """Remove our files, by patterns of their names, then the journal and, if nothing is left, the folder."""
        clear_leftovers(self.folder)
        for path in (path for pattern in patterns for path in self.folder.glob(pattern)):
            path.unlink()
        (self.folder / JOURNAL).unlink(missing_ok=True)  # last: until then it can be gone on with
        with suppress(OSError):  # someone put a file of theirs there
            os.rmdir(self.folder)


def open_blocks(
    folder: Path, fingerprint: Mapping[str, Json], *, suffix: str, resume: bool, ours: Sequence[str] = ()
) -> Blocks:
    """Folder for the blocks of a run, made and marked, or found with those of a stopped run.

    Parameters
    ----------
    folder : Path
    fingerprint : mapping
        What must be the same for a stopped run to go on, by names that a user understands; values as in JSON.
    suffix : str
        Ending of the blocks' names.
    resume : bool
        False removes the blocks of an earlier run.
    ours : sequence of str
        Patterns of the names of the files that a run puts there, which are removed where it does not go on.

    Raises
    ------
    InputError
        If the folder is not ours, its journal is damaged, or it is from a run with another fingerprint.
    """
    blocks, journal = Blocks(folder, suffix), folder / JOURNAL
    check_ours(folder)
    if folder.is_dir() and not resume:
        blocks.remove(*ours)
    if journal.exists():
        before = _read_journal(journal)
        differs = [name for name in fingerprint if before.get(name) != json.loads(json.dumps(fingerprint[name]))]
        if differs:
            raise InputError(
                f"{folder} is from another run, with other {name_some(differs)}. "
                "Repeat that run's arguments to go on with it, or start afresh: resume=False, or --fresh."
            )
        return blocks
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_file(journal) as file:
        file.write(json.dumps(dict(fingerprint)).encode())
    return blocks


def read_mark(folder: Path) -> dict[str, Any]:
    """Read what the journal of a work folder says; nothing where there is none that can be read."""
    try:
        return _read_journal(folder / JOURNAL)
    except InputError:
        return {}


def add_mark(folder: Path, name: str, value: Json) -> None:
    """Write something more into the journal of a work folder, whole or not at all."""
    content = {**_read_journal(folder / JOURNAL), name: value}
    with atomic_file(folder / JOURNAL) as file:
        file.write(json.dumps(content).encode())


def check_ours(folder: Path) -> None:
    """Refuse a folder that is there and that no run of ours has marked."""
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise InputError(f"{folder}: this is a file, and the work needs a folder of this name. Move it away.")
    clear_leftovers(folder / JOURNAL)
    if not (folder / JOURNAL).exists() and any(folder.iterdir()):
        raise InputError(
            f"{folder} is there already and is not the work folder of a run of knockoffs: nothing in it is touched. "
            "Move it away, or write elsewhere."
        )


def _read_journal(journal: Path) -> dict[str, Any]:
    try:
        content = json.loads(journal.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{journal} is damaged ({error}), so it is unknown whether its blocks belong to this run. "
            "Start afresh: resume=False, or --fresh."
        ) from None
    return content if isinstance(content, dict) else {}
