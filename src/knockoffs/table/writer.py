"""The one writer of files: whole or not at all, several together, and never over what is not ours to lose.

A file is written beside its place, and renamed when all of it is on the disk. A kill leaves at most such a temporary
file, which a later writer of the same file clears away.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

from knockoffs.errors import InputError

ABANDONED = 3600.0  # seconds without a change, after which a temporary file is a killed run's
LONGEST = 120  # bytes of a name that are kept in the name of its temporary file; a name may have 255 in all


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes its name only when all of it is on the disk.

    Until then it is a temporary file in the same folder, so that a full disk, an error or a kill leaves the old file
    as it was. Through a link the file that it leads to is written.
    """
    with atomic_files(path) as (file,):
        yield file


@contextmanager
def atomic_files(*paths: Path) -> Iterator[tuple[IO[bytes], ...]]:
    """Open files that take their names together, when all of all of them is on the disk.

    Two renames cannot be one. So the old files but the first are removed before, and the first is renamed first:
    whenever a kill comes, no old file stands beside a new one, and the first is there, old or new.
    """
    places = [Path(os.path.realpath(path)) for path in paths]
    temporaries: list[Path] = []
    files: list[IO[bytes]] = []
    try:
        for place in places:
            file, name = _open_temporary(place)
            files.append(file)
            temporaries.append(name)
        with _naming(paths[0], files):
            yield tuple(files)
            for file in files:
                file.close()
            rename_together(list(zip(temporaries, places, strict=True)))
    finally:
        for file in files:
            with suppress(OSError):
                file.close()
        for name in temporaries:
            with suppress(OSError):
                name.unlink()


def rename_together(pairs: Sequence[tuple[Path, Path]]) -> None:
    """Give finished files, each (temporary, place), their names, the first of them first; see `atomic_files`.

    Of several files the folder is locked meanwhile, so that what two programs write is never mixed.
    """
    for temporary, place in pairs:
        clear_leftovers(place)
        _sync(temporary, os.O_RDWR)
        with suppress(OSError):
            os.chmod(temporary, _new_file_mode(place))
    with _locked(pairs[0][1].parent) if len(pairs) > 1 else nullcontext():
        for _, place in pairs[1:]:
            place.unlink(missing_ok=True)
        for temporary, place in pairs:
            os.replace(temporary, place)
    for folder in {place.parent for _, place in pairs}:
        with suppress(OSError):  # not every system can
            _sync(folder, os.O_RDONLY)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, for which others wait; nothing is locked where the system has no such locks."""
    handle = None
    with suppress(ImportError, OSError):
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def clear_leftovers(path: Path) -> None:
    """Remove the temporary files of runs that were killed while they wrote this file."""
    for other in path.parent.glob(f".{glob.escape(_short(path.name))}.*.knockoffs"):
        with suppress(OSError):
            if time.time() - other.stat().st_mtime > ABANDONED:
                other.unlink()


# ---- before the work ---------------------------------------------------------------------------------------------


def check_output(
    path: Path,
    inputs: Iterable[Path] = (),
    *,
    force: bool = False,
    ours: Callable[[Path], bool] = lambda path: False,
) -> None:
    """Refuse, before any work, a file that must not or cannot be written.

    None of the ``inputs`` is ever written over, whichever way it is named. A file that is there is overwritten with
    ``force``, or if it is ``ours``, written by an earlier run.
    """
    for source in inputs:
        if is_same_file(path, source):
            raise InputError(f"{path} is what is read ({source}): it would be lost. Name another file to write.")
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file.")
    if path.exists():
        if not path.is_file():
            raise InputError(f"{path} is not a plain file: name another.")
        if not force and not ours(path):
            raise InputError(f"{path} is there already: name another file, or overwrite it with --force.")
        if not os.access(path, os.W_OK):
            raise InputError(f"{path} is write-protected: name another file.")
    check_place(Path(os.path.realpath(path)).parent)


def check_place(folder: Path, *, make: bool = False) -> None:
    """Refuse, before any work, a folder in which nothing can be written; ``make`` if it may still have to be made."""
    place = folder
    while make and not os.path.lexists(place) and place != place.parent:
        place = place.parent
    if not place.is_dir():
        what = "there is no such folder. Make it first" if not os.path.lexists(place) else f"{place} is no folder"
        raise InputError(f"{folder}: {what}.")
    try:
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        raise InputError(f"{place}: cannot write here: {error.strerror or error}.") from error


def is_same_file(one: Path, other: Path) -> bool:
    """Whether two names are those of one file, also through links, or in other letters where these do not count."""
    with suppress(OSError, ValueError):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


# ---- temporary files ---------------------------------------------------------------------------------------------


def _open_temporary(place: Path) -> tuple[IO[bytes], Path]:
    try:
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{_short(place.name)}.", suffix=".knockoffs")
    except OSError as error:
        raise InputError(f"{place.parent}: cannot write here: {error.strerror or error}.") from error
    return os.fdopen(handle, "wb"), Path(name)


def _short(name: str) -> str:
    raw = name.encode(errors="surrogateescape")
    return name if len(raw) <= LONGEST else hashlib.sha256(raw).hexdigest()[:16]


def _new_file_mode(path: Path) -> int:
    """Permissions of the file that is replaced, or those any new file gets (mkstemp makes private ones)."""
    with suppress(OSError):
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync(path: Path, flags: int) -> None:
    """Wait until a file, or a folder, is on the disk."""
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _naming(path: Path, files: Sequence[IO[bytes]], probe: int = 2**20) -> Iterator[None]:
    """Give an error of the disk the name of the file, which those of open files lack; polars hides it in its own.

    Some of these do not say that it is one. Then ``probe`` bytes are tried: on a full disk they fail too.
    """
    try:
        yield
    except Exception as error:
        hidden = re.search(r"\(os error ([0-9]+)\)", str(error))
        if isinstance(error, OSError) and error.errno is not None:
            error.filename = error.filename or str(path)
        elif hidden:
            raise OSError(int(hidden[1]), os.strerror(int(hidden[1])), str(path)) from error
        elif type(error).__module__.startswith("polars"):
            try:
                for file in files:
                    file.write(bytes(probe))
                    file.flush()
            except OSError as full:
                raise OSError(full.errno, full.strerror, str(path)) from error
        raise
