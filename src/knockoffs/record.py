"""A selection on disk: selection.json, from which it can be run again, and selection.csv, to be read.

Names of features are written to the csv file as they are. A spreadsheet may take a name that starts with =, +, - or @
for a formula: import such a file as text.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some
from knockoffs.selection import Selection
from knockoffs.table.files import atomic_file, write_table_file

FORMAT = 1
PARAMETERS = frozenset(
    "target drop weights seed fdr feature_model feature_model_options knockoffs estimator importance loss rows "
    "n_folds n_fits task offset rule".split()
)
ALWAYS = ("knockoffs", "numpy", "scipy", "scikit-learn", "numba", "joblib", "narwhals")
WHERE_USED = {"torch": "torch", "xgboost": "xgboost", "lightgbm": "lightgbm", "pandas": "pandas", "polars": "polars"}


@dataclass(frozen=True)
class SelectionRecord:
    """Everything that a selection rests on, and what it found.

    Parameters
    ----------
    parameters : dict
        Every option of the call, also those left at their defaults.
    data : dict
        Name, SHA-256, rows and columns of the data file; SHA-256 of other files, of a network or of knockoffs.
    versions : dict
        Of Python, of this package and of what it computes with.
    notes : dict
        What was chosen where nothing was asked for.
    explanation : str
    threshold : float
        Infinity if nothing was selected.
    features : list of dict
        Name, Z, Z_tilde, W, q-value, and whether it was selected, in the order of the columns.
    """

    parameters: dict[str, Any]
    data: dict[str, Any]
    versions: dict[str, str]
    notes: dict[str, str]
    explanation: str
    threshold: float
    features: list[dict[str, Any]]
    format: int = FORMAT

    @property
    def W(self) -> NDArray[np.float64]:
        """Feature statistics."""
        return np.array([feature["W"] for feature in self.features], dtype=float)

    @property
    def names(self) -> list[str]:
        """Names of all features."""
        return [feature["name"] for feature in self.features]

    @property
    def selected(self) -> list[str]:
        """Names of the selected features."""
        return [feature["name"] for feature in self.features if feature["selected"]]


def record_selection(selection: Selection, parameters: Mapping[str, Any], data: Mapping[str, Any]) -> SelectionRecord:
    """Record of a selection with the versions it was made with."""
    columns = (
        selection.feature_names,
        selection.selected.tolist(),
        selection.W.tolist(),
        selection.q_values.tolist(),
        selection.scores.Z.tolist(),
        selection.scores.Z_tilde.tolist(),
    )
    keys = ("name", "selected", "W", "q_value", "Z", "Z_tilde")
    return SelectionRecord(
        parameters=dict(parameters),
        data=dict(data),
        versions=current_versions(),
        notes=dict(selection.notes),
        explanation=selection.explain(),
        threshold=float(selection.threshold),
        features=[dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)],
    )


def current_versions() -> dict[str, str]:
    """Versions of Python, of this package, and of the libraries that it computes with."""
    used = [package for module, package in WHERE_USED.items() if module in sys.modules]
    versions = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in (*ALWAYS, *used):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "unknown"
    return versions


def write_selection(record: SelectionRecord, folder: Path) -> tuple[Path, Path]:
    """Write selection.json and selection.csv into a folder, each of them whole or not at all."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot make this folder: {error.strerror or error}.") from error
    json_path, csv_path = folder / "selection.json", folder / "selection.csv"
    text = json.dumps(_writable(asdict(record)), indent=2, ensure_ascii=False, allow_nan=False)
    with atomic_file(json_path) as file:
        file.write(text.encode() + b"\n")
    by_W = sorted(record.features, key=lambda feature: -feature["W"])
    columns = {key: [feature[key] for feature in by_W] for key in by_W[0]}
    write_table_file(columns, csv_path)
    return json_path, csv_path


def read_selection(path: Path) -> SelectionRecord:
    """Record of a selection.json file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a selection: {error}") from error
    if not isinstance(content, dict) or not {"parameters", "data", "features"} <= content.keys():
        raise InputError(f"{path}: this is not a selection.json written by knockoffs select.")
    if content.get("format") != FORMAT:
        raise InputError(f"{path}: format {content.get('format')!r}, and this version reads format {FORMAT}.")
    unknown = sorted(content["parameters"].keys() - PARAMETERS)
    lacking = sorted({"target", "drop", "fdr", "seed"} - content["parameters"].keys())
    if unknown or lacking:
        what = (
            f"has parameters that this version does not know: {name_some(unknown)}"
            if unknown
            else (f"lacks the parameters {name_some(lacking)}")
        )
        raise InputError(
            f"{path}: {what}. Use the version that wrote it, {content.get('versions', {}).get('knockoffs')}."
        )
    content["threshold"] = float(content["threshold"])
    for feature in content["features"]:
        for key in ("W", "q_value", "Z", "Z_tilde"):
            feature[key] = float(feature[key])
    try:
        return SelectionRecord(**content)
    except TypeError as error:
        raise InputError(f"{path}: this is not a selection.json written by knockoffs select: {error}") from error


def differences(old: SelectionRecord, new: SelectionRecord) -> tuple[list[str], list[str]]:
    """Tell what differs between two records: in the answer, and in what it rests on."""
    answer, grounds = [], []
    if old.data.get("sha256") != new.data.get("sha256"):
        grounds.append(f"the data: SHA-256 {_start(old.data.get('sha256'))} then, {_start(new.data.get('sha256'))} now")
    files_then, files_now = old.data.get("files") or {}, new.data.get("files") or {}
    for name in files_then.keys() | files_now.keys():
        if files_then.get(name) != files_now.get(name):
            grounds.append(
                f"the file {name}: SHA-256 {_start(files_then.get(name))} then, {_start(files_now.get(name))} now"
            )
    for package in old.versions.keys() | new.versions.keys():
        then, now = old.versions.get(package), new.versions.get(package)
        if then != now and then is not None and now is not None:
            grounds.append(f"the version of {package}: {then} then, {now} now")
    if old.names != new.names:
        answer.append("the names of the features")
    elif not np.array_equal(old.W, new.W):
        worst = int(np.argmax(np.where(old.W == new.W, 0, np.abs(old.W - new.W))))
        answer.append(f"W, the most for {old.names[worst]!r}: {old.W[worst]!r} then, {new.W[worst]!r} now")
    if old.threshold != new.threshold:
        answer.append(f"the threshold: {old.threshold!r} then, {new.threshold!r} now")
    gone, come = sorted(set(old.selected) - set(new.selected)), sorted(set(new.selected) - set(old.selected))
    if gone:
        answer.append(f"no longer selected: {', '.join(map(repr, gone))}")
    if come:
        answer.append(f"newly selected: {', '.join(map(repr, come))}")
    return answer, sorted(grounds)


def _start(sha256: Any) -> str:
    return f"{str(sha256)[:12]}..."


def _writable(value: Any) -> Any:
    """JSON has no infinity and no numpy: "inf" reads back by float(), and numbers are written to the last bit."""
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
