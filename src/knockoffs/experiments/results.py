"""The files of a finished experiment: written together, and over nothing that is not an experiment's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from knockoffs.experiments.runner import record_content
from knockoffs.table.writer import atomic_files, check_output, check_place

ENDINGS = (".json", ".csv", ".png", ".svg", ".md")  # record, table, figure, page


def check_results(folder: Path, key: str, *, force: bool = False) -> None:
    """Refuse, before the work, a folder where the results of an experiment cannot be written or would cost a file.

    Files of an earlier run are replaced, as long as they are as it wrote them; others only with ``force``.
    """
    check_place(folder, make=True)
    written = _written(folder, key)

    def ours(path: Path) -> bool:
        if written is None or path.suffix == ".json":
            return written is not None
        # the records of older versions do not say what was written beside them
        return written.get(path.name, "") == _hash(path.read_bytes()) if written else True

    for ending in ENDINGS:
        if (path := folder / f"{key}{ending}").exists():
            check_output(path, force=force, ours=ours)


def write_results(folder: Path, key: str, record: Mapping[str, object], contents: Mapping[str, bytes]) -> None:
    """Write the record, and the contents by their endings, all of one run whenever the program is killed."""
    names = {f"{key}{ending}": content for ending, content in contents.items()}
    first = record_content({**record, "files": {name: _hash(content) for name, content in names.items()}})
    with atomic_files(folder / f"{key}.json", *(folder / name for name in names)) as files:
        for file, content in zip(files, (first, *names.values()), strict=True):
            file.write(content)


def _written(folder: Path, key: str) -> dict[str, str] | None:
    """SHA-256 of each file that the record of an earlier run says it wrote; None where there is no such record."""
    try:
        record = json.loads((folder / f"{key}.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.get("experiment") != key or "settings" not in record:
        return None
    files = record.get("files", {})
    return files if isinstance(files, dict) else None


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
