"""A report on disk: whole or not at all, and never over a file that is not a report."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from knockoffs.errors import InputError
from knockoffs.report.facts import Facts
from knockoffs.report.page import MARK, page
from knockoffs.table.writer import atomic_file, check_output

if TYPE_CHECKING:
    from knockoffs.report.display import Shown


def check_report_place(path: str | os.PathLike[str], inputs: Iterable[Path] = (), *, force: bool = False) -> Path:
    """Refuse, before the work, a file where the report cannot be written; an earlier report is replaced."""
    place = Path(path)
    if place.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{place}: a report is a page, so its name ends in .html.")
    check_output(place, inputs, force=force, ours=is_report)
    return place


def is_report(path: Path) -> bool:
    """Whether a file is a report that this program wrote."""
    try:
        with path.open("rb") as file:
            return MARK.encode() in file.read(200)
    except OSError:
        return False


def write_report(facts: Facts, path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write the page of some facts."""
    place = check_report_place(path, force=force)
    content = page(facts).encode("utf-8", "backslashreplace")
    with atomic_file(place) as file:
        file.write(content)
    return place


def facts_of(selector: Shown) -> Facts:
    """Facts of a fitted selector."""
    from knockoffs.record import current_versions

    target = selector.target_
    return Facts(selector.selection_, selector.table_, target, target.name, versions=current_versions())
