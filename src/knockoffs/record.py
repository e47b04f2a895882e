"""A selection on disk: selection.json, from which it can be run again, and selection.csv, to be read."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some
from knockoffs.options import NOT_RECORDED, Option, options_of
from knockoffs.selection import Selection
from knockoffs.table.columns import describe
from knockoffs.table.delimited import print_delimited
from knockoffs.table.table import Table
from knockoffs.table.writer import atomic_files, check_output, check_place

FORMAT = 2
FILES = ("selection.json", "selection.csv")
NUMBERS = ("W", "q_value", "Z", "Z_tilde")  # of a feature, where it was compared with its knockoff
EVIDENCE = ("p_value", "e_value", "frequency")  # of a feature, where it was tested, or knockoffs drawn several times
NUMBERS_HELD = {*NUMBERS, *EVIDENCE}
RENAMED = {"evaluation": "rows"}  # parameters of format 1
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
    threshold : float or None
        Infinity if nothing was selected; None where there is none, with several draws or without knockoffs.
    features : list of dict
        Name, whether it was selected, q-value; Z, Z_tilde and W of knockoffs; p-value, e-value, frequency over draws.
    method : str
        "knockoffs", "conditional_test" or "ghost".
    verdict : dict, optional
        Whether the knockoffs could be told from the features.
    columns : list of dict
        Name and kind of every column, and why it was taken for that.
    warnings : list of str
    edited : bool
        Whether the file was changed after it had been written; not written itself.
    """

    parameters: dict[str, Any]
    data: dict[str, Any]
    versions: dict[str, str]
    notes: dict[str, str]
    explanation: str
    threshold: float | None
    features: list[dict[str, Any]]
    method: str = "knockoffs"
    verdict: dict[str, Any] | None = None
    columns: list[dict[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    format: int = FORMAT
    edited: bool = False

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
    parameters: Mapping[str, Any],
    data: Mapping[str, Any],
    warnings: Sequence[str] = (),
) -> SelectionRecord:
    """Record of a selection with the versions it was made with."""
    columns: dict[str, Sequence[Any]] = {
        "name": selection.feature_names,
        "selected": selection.selected.tolist(),
        "q_value": selection.q_values.tolist(),
    }
    if selection.scores is not None:
        columns |= {"W": selection.W.tolist()}
        columns |= {"Z": selection.scores.Z.tolist(), "Z_tilde": selection.scores.Z_tilde.tolist()}
    if selection.p_values is not None:
        columns["p_value"] = selection.p_values.tolist()
    if selection.evidence is not None:
        columns |= {"e_value": selection.evidence.e_values.tolist()}
        columns |= {"frequency": selection.evidence.frequencies.tolist()}
    return SelectionRecord(
        parameters=dict(parameters),
        data=dict(data),
        versions=current_versions(),
        notes=dict(selection.notes),
        explanation=selection.explain(),
        threshold=None if math.isnan(selection.threshold) else float(selection.threshold),
        features=[dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        method=selection.method,
        verdict=None if selection.verdict is None else selection.verdict.to_dict(),
        columns=[{"name": c.name, "kind": c.kind, "why": describe(c)} for c in table.columns],
        warnings=list(warnings),
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


# ---- writing -----------------------------------------------------------------------------------------------------


def check_selection_place(folder: Path, inputs: tuple[Path, ...] = (), *, force: bool = False) -> None:
    """Refuse, before the work, a folder where the selection cannot be written, or where it would cost a file.

    The files of an earlier selection are replaced; others of these names only with ``force``.
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
    """Whether a file begins as a selection.csv does."""
    try:
        with path.open("rb") as file:
            header = file.readline(200).decode("ascii", "replace")
    except OSError:
        return False
    names = header.removesuffix("\n").split(",")
    return header.endswith("\n") and names[:2] == ["name", "selected"] and {"q_value"} <= set(names[2:]) <= NUMBERS_HELD


def write_selection(record: SelectionRecord, folder: Path) -> tuple[Path, Path]:
    """Write selection.json and selection.csv into a folder, both whole or not at all, and never one of two runs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot make this folder: {error.strerror or error}.") from error
    json_path, csv_path = (folder / name for name in FILES)
    content = _writable(asdict(record))
    del content["edited"]
    content["seal"] = _seal(content)
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    ordered = surest_first(record.features)
    keys = [key for key in ("name", "selected", *NUMBERS, *EVIDENCE) if key in ordered[0]]
    columns = {key: [feature[key] for feature in ordered] for key in keys}
    with atomic_files(json_path, csv_path) as (json_file, csv_file):
        json_file.write(text.encode(errors="surrogatepass") + b"\n")
        print_delimited(columns, csv_file, ",")
    return json_path, csv_path


def surest_first(features: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Order features by q-value, and those of the same by p-value or W."""
    return sorted(features, key=lambda f: (f["q_value"], f.get("p_value", 0.0), -f.get("W", 0.0)))


def _seal(content: Mapping[str, Any]) -> str:
    """SHA-256 of a record's content, which tells whether the file was edited afterwards."""
    rest = {name: value for name, value in content.items() if name != "seal"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


# ---- reading -----------------------------------------------------------------------------------------------------


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_text_of_text(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _is_column(value: object) -> bool:
    return isinstance(value, dict) and _is_text_of_text(value) and set(value) == {"name", "kind", "why"}


def _is_level(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _or_null(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


def _holds(option: Option) -> Callable[[Any], bool]:
    """Say what a parameter may hold; whether the name or level is known is asked where it is used."""
    checks: dict[type, Callable[[Any], bool]] = {
        str: _is_text,
        int: _is_count,
        float: _is_level,
        bool: lambda value: isinstance(value, bool),
        list: _is_texts,
        dict: lambda value: isinstance(value, dict),
    }
    check = checks[option.kind]
    return check if option.default is not None and option.name != "feature_model" else _or_null(check)


PARAMETERS = {
    name: _holds(option)
    for name, option in (options_of("select") | options_of("ghost")).items()
    if name not in NOT_RECORDED
}
DATA: dict[str, Callable[[Any], bool]] = {
    "file": _is_text,
    "sha256": _is_text,
    "n_rows": _is_count,
    "n_columns": _is_count,
    "files": _is_text_of_text,
}


def read_selection(path: Path) -> SelectionRecord:
    """Record of a selection.json file, with every field checked for its type."""
    try:
        content = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"), object_pairs_hook=_unique)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as a selection: {error}") from error
    if not isinstance(content, dict) or not {"parameters", "data", "features"} <= content.keys():
        raise InputError(f"{path}: this is not a selection.json written by knockoffs select.")
    if content.get("format") not in (1, FORMAT) or isinstance(content.get("format"), bool | float):
        raise InputError(f"{path}: format {content.get('format')!r}, and this version reads formats 1 and {FORMAT}.")
    content["edited"] = content.get("seal") not in (None, _seal(content))
    content.pop("seal", None)
    if content["format"] == 1 and isinstance(content["parameters"], dict):
        content = _from_format_1(content)
    try:
        _check_content(content)
        if content["threshold"] is not None:
            content["threshold"] = _as_number(content["threshold"], "threshold")
        content["features"] = [_read_feature(feature, j) for j, feature in enumerate(content["features"])]
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return SelectionRecord(**content)


def _from_format_1(content: dict[str, Any]) -> dict[str, Any]:
    """Read a selection of earlier versions: one draw, a mixture where nothing was asked for, no verdict."""
    renamed = {RENAMED.get(name, name): value for name, value in content["parameters"].items()}
    before = {"feature_model": "mixture", "method": "knockoffs", "verdict": False}
    lacking: dict[str, Any] = {"method": "knockoffs", "verdict": None, "columns": [], "warnings": []}
    return {**lacking, **content, "format": FORMAT, "parameters": {**before, **renamed}}


def _check_content(content: dict[str, Any]) -> None:
    known = {field.name for field in fields(SelectionRecord)}
    _demand_known(content.keys(), known, known, "field", "fields", None)
    for name, check, what in (
        ("data", lambda v: isinstance(v, dict), "an object"),
        ("parameters", lambda v: isinstance(v, dict), "an object"),
        ("versions", _is_text_of_text, "texts by name"),
        ("notes", _is_text_of_text, "texts by name"),
        ("explanation", _is_text, "a text"),
        ("features", lambda v: isinstance(v, list) and len(v) > 0, "a list of features"),
        ("method", _is_text, "a text"),
        ("verdict", _or_null(lambda v: isinstance(v, dict)), "an object"),
        ("columns", lambda v: isinstance(v, list) and all(map(_is_column, v)), "a list of columns"),
        ("warnings", _is_texts, "a list of texts"),
    ):
        _demand(check(content.get(name)), name, f"{_brief(content.get(name))}, not {what}")
    wrote = content["versions"].get("knockoffs")
    _demand_known(
        content["parameters"].keys(), PARAMETERS, {"target", "drop", "fdr", "seed"}, "parameter", "parameters", wrote
    )
    _demand_known(content["data"].keys(), DATA, {"file", "sha256"}, "field of data", "fields of data", wrote)
    for table, where in ((PARAMETERS, "parameters"), (DATA, "data")):
        for name, value in content[where].items():
            _demand(table[name](value), f"{where}.{name}", f"{_brief(value)}, which it cannot be")


def _demand_known(names: Any, known: Any, needed: set[str], one: str, many: str, wrote: str | None) -> None:
    unknown, lacking = sorted(set(names) - set(known)), sorted(needed - set(names))
    remedy = f" Use the version that wrote it, {wrote}." if wrote else ""
    if unknown:
        raise InputError(f"has {many} that this version does not know: {name_some(unknown)}.{remedy}")
    if lacking:
        raise InputError(f"lacks the {one if len(lacking) == 1 else many} {name_some(lacking)}.{remedy}")


def _read_feature(feature: Any, j: int) -> dict[str, Any]:
    keys, more = {"name", "selected", "q_value"}, {*NUMBERS, *EVIDENCE}
    where = f"features[{j}]"
    good = isinstance(feature, dict) and keys <= set(feature) <= keys | more
    _demand(good, where, f"not the fields {', '.join(sorted(keys | more))}")
    _demand(_is_text(feature["name"]), f"{where}.name", f"{_brief(feature['name'])}, not a text")
    _demand(isinstance(feature["selected"], bool), f"{where}.selected", f"{_brief(feature['selected'])}, not a boolean")
    return {**feature, **{key: _as_number(feature[key], f"{where}.{key}") for key in feature if key in more}}


def _as_number(value: Any, where: str) -> float:
    """Read a number; infinity is written as a text, and NaN never is."""
    good = isinstance(value, int | float) and not isinstance(value, bool) or value in ("inf", "-inf")
    _demand(good and not (isinstance(value, int) and abs(value) >= 2**1000), where, f"{_brief(value)}, not a number")
    number = float(value)
    _demand(not math.isnan(number), where, "NaN, not a number")
    return number


def _demand(good: bool, where: str, found: str) -> None:
    if not good:
        raise InputError(f"{where} holds {found}. This is not as knockoffs select wrote it.")


def _brief(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object names a field twice")
    return found


# ---- comparing ---------------------------------------------------------------------------------------------------


def differences(old: SelectionRecord, new: SelectionRecord) -> tuple[list[str], list[str]]:
    """Tell what differs between two records: in the answer, and in what it rests on."""
    return _answer_differs(old, new), _grounds_differ(old, new)


def _answer_differs(old: SelectionRecord, new: SelectionRecord) -> list[str]:
    found = []
    if old.method != new.method:
        found.append(f"the method: {_brief(old.method)} then, {_brief(new.method)} now")
    if old.names != new.names:
        found.append("the names of the features")
    else:
        words = {"W": "W", "Z": "Z", "Z_tilde": "Z of the knockoffs", "q_value": "the q-values"}
        words |= {"p_value": "the p-values", "e_value": "the e-values", "frequency": "the frequencies"}
        for key, word in words.items():
            then, now = old.numbers(key), new.numbers(key)
            if not np.array_equal(then, now, equal_nan=True):
                with np.errstate(invalid="ignore"):
                    worst = int(np.argmax(np.where(then == now, 0.0, np.abs(then - now))))
                values = f"{float(then[worst])!r} then, {float(now[worst])!r} now"
                found.append(f"{word}, the most for {old.names[worst]!r}: {values}")
    if old.threshold != new.threshold:
        found.append(f"the threshold: {old.threshold!r} then, {new.threshold!r} now")
    gone, come = sorted(set(old.selected) - set(new.selected)), sorted(set(new.selected) - set(old.selected))
    if gone:
        found.append(f"no longer selected: {', '.join(map(repr, gone))}")
    if come:
        found.append(f"newly selected: {', '.join(map(repr, come))}")
    found += [f"the note on {key}: {change}" for key, change in _changes(old.notes, new.notes)]
    if old.explanation != new.explanation:
        found.append(f"the explanation: {_brief(old.explanation)} then, {_brief(new.explanation)} now")
    if json.dumps(old.verdict, sort_keys=True) != json.dumps(new.verdict, sort_keys=True):  # where 1.0 is not true
        found.append(f"the verdict: {_brief(old.verdict)} then, {_brief(new.verdict)} now")
    return found


def _grounds_differ(old: SelectionRecord, new: SelectionRecord) -> list[str]:
    found = []
    if old.edited:
        found.append("the record itself: it was edited after it had been written")
    if old.data.get("sha256") != new.data.get("sha256"):
        found.append(f"the data: SHA-256 {_start(old.data.get('sha256'))} then, {_start(new.data.get('sha256'))} now")
    for key, word in (("file", "the name of the data file"), ("n_rows", "rows"), ("n_columns", "columns")):
        then, now = old.data.get(key), new.data.get(key)
        if then != now and then is not None:
            found.append(f"{word}: {then} then, {now} now")
    files = _changes(old.data.get("files") or {}, new.data.get("files") or {}, _start)
    found += [f"the file {name}: SHA-256 {change}" for name, change in files]
    if old.columns and old.columns != new.columns:  # earlier versions kept none
        was, now = ({column["name"]: column["why"] for column in record.columns} for record in (old, new))
        changes = _changes(was, now)[:3] or [("kinds", "others then, others now")]
        found += [f"the column {name!r}: {change}" for name, change in changes]
    if old.warnings != new.warnings:
        found.append(f"the warnings: {len(old.warnings)} then, {len(new.warnings)} now")
    found += [f"the version of {package}: {change}" for package, change in _changes(old.versions, new.versions)]
    return sorted(found)


def _changes(
    then: Mapping[str, str], now: Mapping[str, str], show: Callable[[str], str] = str
) -> list[tuple[str, str]]:
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    return [(name, f"{show(then.get(name, 'none'))} then, {show(now.get(name, 'none'))} now") for name in names]


def _start(sha256: object) -> str:
    return f"{str(sha256)[:12]}..."


def _writable(value: object) -> Any:
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
