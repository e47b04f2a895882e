"""A selection on disk: selection.json, from which it can be run again, and selection.csv, for people."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from knockoffs.conditional_tests.resolution import Discovery
from knockoffs.errors import InputError
from knockoffs.selection import Selection
from knockoffs.table.columns import describe
from knockoffs.table.table import Table
from knockoffs.table.types import Json
from knockoffs.table.writer import atomic_files, check_output, check_place

FORMAT = 3
FILES = ("selection.json", "selection.csv")
NUMBERS = ("W", "q_value", "Z", "Z_tilde")  # of a feature that was compared with its knockoff
EVIDENCE = ("p_value", "score", "e_value", "frequency")  # of a feature that was tested, or of several draws
COLUMNS = ("name", "selected", "discovery", *NUMBERS, *EVIDENCE)  # of selection.csv, where they are known
ALWAYS = ("knockoffs", "numpy", "scipy", "scikit-learn", "numba", "joblib", "narwhals")
WHERE_USED = {"torch": "torch", "xgboost": "xgboost", "lightgbm": "lightgbm", "pandas": "pandas", "polars": "polars"}


class DataFile(TypedDict, total=False):
    """Record of the data: name, SHA-256, rows and columns of the file, and SHA-256 of other files."""

    file: str
    sha256: str
    n_rows: int
    n_columns: int
    files: dict[str, str]


def data_file(name: str, sha256: str, shape: tuple[int, int], files: dict[str, str]) -> DataFile:
    """Record of the data: name, SHA-256 and shape of a table, and SHA-256 of other files."""
    found: DataFile = {"file": name, "sha256": sha256, "n_rows": shape[0], "n_columns": shape[1]}
    return {**found, "files": files} if files else found


@dataclass(frozen=True)
class SelectionRecord:
    """Everything that a selection depends on, and what it found."""

    parameters: dict[str, Json]  # every option on which the answer depends, also those left at their defaults
    # name, SHA-256, rows and columns of the data file; SHA-256 of other files, of a network or of knockoffs
    data: DataFile
    versions: dict[str, str]  # versions of Python, of this package and of its dependencies
    notes: dict[str, str]  # what was chosen by default
    explanation: str
    threshold: float | None  # infinity if nothing was selected; None with several draws or without knockoffs
    # name, whether it was selected, q-value; Z, Z_tilde and W of knockoffs; p-value, e-value, frequency over draws
    features: list[dict[str, Any]]
    # of tests with resolution="auto": features, p-value, level and score of each discovery, surest first
    discoveries: list[dict[str, Any]] | None = None
    method: str = "knockoffs"  # "knockoffs", "conditional_test" or "ghost"
    verdict: dict[str, Any] | None = None  # whether the knockoffs are distinguishable from the features
    # what is shown first: discoveries with their bars, the verdict in one line, one next step
    first_screen: dict[str, Any] | None = None
    # name and kind of every column, and why it has that kind
    columns: list[dict[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    format: int = FORMAT
    edited: bool = False  # whether the file was changed after it was written; not written itself

    @property
    def W(self) -> NDArray[np.float64]:
        """Feature statistics."""
        return self.numbers("W")

    @property
    def names(self) -> list[str]:
        """Names of all features."""
        return [feature["name"] for feature in self.features]

    @property
    def selected(self) -> list[str]:
        """Names of the selected features."""
        return [feature["name"] for feature in self.features if feature["selected"]]

    def numbers(self, key: str) -> NDArray[np.float64]:
        """One number for each feature: W, q_value, Z or Z_tilde."""
        return np.array([feature.get(key, np.nan) for feature in self.features], dtype=float)


def record_selection(
    selection: Selection,
    table: Table,
    parameters: Mapping[str, Json],
    data: DataFile,
    warnings: Sequence[str] = (),
) -> SelectionRecord:
    """Record of a selection, with the versions that made it."""
    columns, found = selection.feature_columns, selection.discoveries
    return SelectionRecord(
        parameters={**parameters},
        data={**data},
        versions=current_versions(),
        notes=dict(selection.notes),
        explanation=selection.explain(),
        threshold=None if math.isnan(selection.threshold) else float(selection.threshold),
        features=[dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        discoveries=None if found is None else [_as_json(one) for one in found],
        method=selection.method,
        verdict=None if selection.verdict is None else selection.verdict.to_dict(),
        first_screen={name: _writable(value) for name, value in asdict(selection.first_screen).items()},
        columns=[{"name": c.name, "kind": c.kind, "why": describe(c)} for c in table.columns],
        warnings=list(warnings),
    )


def _as_json(found: Discovery) -> dict[str, object]:
    """Discovery as selection.json holds it; of knockoffs it has no p-value."""
    p_value = None if math.isnan(found.p_value) else found.p_value
    return {**asdict(found), "features": list(found.features), "p_value": p_value}


def current_versions() -> dict[str, str]:
    """Versions of Python, of this package and of its dependencies."""
    used = [package for module, package in WHERE_USED.items() if module in sys.modules]
    versions = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in (*ALWAYS, *used):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "unknown"
    return versions


# ---- writing -----------------------------------------------------------------------------------------------------


def check_selection_place(folder: Path, inputs: tuple[Path, ...] = (), *, force: bool = False) -> None:
    """Refuse, before the work, a folder where the selection cannot be written or would replace another file.

    The files of an earlier selection are replaced; other files of these names only with ``force``.
    """
    check_place(folder, make=True)
    if folder.is_dir():
        for name, ours in zip(FILES, (is_selection, is_selection_csv), strict=True):
            check_output(folder / name, inputs, force=force, ours=ours)


def is_selection(path: Path) -> bool:
    """Whether a file is a selection.json that this program wrote."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and {"parameters", "data", "features", "format"} <= content.keys()


def is_selection_csv(path: Path) -> bool:
    """Whether a file has the header of a selection.csv."""
    try:
        with path.open("rb") as file:
            header = file.readline(200).decode("ascii", "replace")
    except OSError:
        return False
    names = header.removesuffix("\n").split(",")
    return header.endswith("\n") and names[:2] == ["name", "selected"] and {"q_value"} <= set(names) <= {*COLUMNS}


def write_selection(record: SelectionRecord, folder: Path) -> tuple[Path, Path]:
    """Write selection.json and selection.csv into a folder, both or neither, and return their paths."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot make this folder: {error.strerror or error}.") from error
    json_path, csv_path = (folder / name for name in FILES)
    content = {name: _writable(value) for name, value in asdict(record).items() if name != "edited"}
    content["seal"] = seal(content)
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    ordered = surest_first(record.features)
    keys = [key for key in COLUMNS if key in ordered[0]]
    columns = {key: [feature[key] for feature in ordered] for key in keys}
    with atomic_files(json_path, csv_path) as (json_file, csv_file):
        json_file.write(text.encode(errors="surrogatepass") + b"\n")
        from knockoffs.table.files import write_delimited

        write_delimited(columns, csv_file, ",")
    return json_path, csv_path


def surest_first(features: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Features by q-value, and those of the same q-value by p-value or W."""
    return sorted(features, key=lambda f: (f["q_value"], f.get("p_value", 0.0), -f.get("W", 0.0), -f.get("score", 0.0)))


def seal(content: Mapping[str, object]) -> str:
    """SHA-256 of a record's content, which reveals whether the file was edited afterwards."""
    rest = {name: value for name, value in content.items() if name != "seal"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _writable(value: object) -> Json:
    """Value as JSON can hold it: infinity is "inf", which float() reads, and numbers keep every bit."""
    if isinstance(value, dict):
        return {str(key): _writable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [_writable(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def brief(value: object) -> str:
    """Value in at most sixty characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
