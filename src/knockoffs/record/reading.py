"""Reading of a selection.json: every field is checked for its type, earlier formats are upgraded, edits are noticed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from knockoffs.errors import InputError, name_some
from knockoffs.options import ImportanceOptions, Option, listed
from knockoffs.record import COLUMNS, EVIDENCE, FORMAT, NUMBERS, SelectionRecord, brief, seal
from knockoffs.table.types import Json

Content = dict[str, Any]  # of a JSON object


def _is(kind: type, value: object) -> bool:
    """Whether a JSON value is of a kind: a list holds texts, and whole numbers are not negative."""
    if kind is list:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    if kind is int:
        return isinstance(value, int) and value >= 0
    return isinstance(value, int | float if kind is float else kind)


def _holds(option: Option, value: object) -> bool:
    """Whether a parameter may hold a value; whether a name or level is known is checked when it is used."""
    return _is(option.kind, value) or (value is None and option.default is None)


def _are_texts(value: object) -> bool:
    """Whether a JSON object holds texts."""
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _are_columns(value: object) -> bool:
    return isinstance(value, list) and all(_are_texts(item) and set(item) == {"name", "kind", "why"} for item in value)


def _are_discoveries(value: object) -> bool:
    """Whether a JSON value lists discoveries, with their features and numbers."""
    return value is None or (
        isinstance(value, list)
        and all(isinstance(item, dict) and set(item) == {"features", "p_value", "level", "score"} for item in value)
        and all(_is(list, item["features"]) and item["features"] for item in value)
        and all(_is(float, item[key]) for item in value for key in ("level", "score"))
        and all(item["p_value"] is None or _is(float, item["p_value"]) for item in value)
    )


PARAMETERS: dict[str, Callable[[object], bool]] = {
    option.name: partial(_holds, option)
    for option in listed()
    if option.recorded and {"select", "ghost"} & set(option.faces)
}
DATA: dict[str, Callable[[object], bool]] = {
    "file": partial(_is, str),
    "sha256": partial(_is, str),
    "n_rows": partial(_is, int),
    "n_columns": partial(_is, int),
    "files": _are_texts,
}
FIELDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "data": (partial(_is, dict), "an object"),
    "parameters": (partial(_is, dict), "an object"),
    "versions": (_are_texts, "texts by name"),
    "notes": (_are_texts, "texts by name"),
    "explanation": (partial(_is, str), "a text"),
    "features": (lambda value: isinstance(value, list) and len(value) > 0, "a list of features"),
    "discoveries": (_are_discoveries, "a list of discoveries"),
    "method": (partial(_is, str), "a text"),
    "verdict": (lambda value: value is None or isinstance(value, dict), "an object"),
    "first_screen": (lambda value: value is None or isinstance(value, dict), "an object"),
    "columns": (_are_columns, "a list of columns"),
    "warnings": (partial(_is, list), "a list of texts"),
}


def read_selection(path: Path) -> SelectionRecord:
    """Record of a selection.json file, with every field checked for its type."""
    try:
        content = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"), object_pairs_hook=_unique)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot be read as a selection, the selection.json of an earlier run: {error}"
        ) from error
    if not isinstance(content, dict) or not {"parameters", "data", "features"} <= content.keys():
        raise InputError(f"{path}: this is not a selection.json written by knockoffs select.")
    if type(content.get("format")) is not int or not 1 <= content["format"] <= FORMAT:
        raise InputError(f"{path}: format {content.get('format')!r}, and this version reads formats 1 to {FORMAT}.")
    content["edited"] = content.get("seal") not in (None, seal(content))
    content.pop("seal", None)
    try:
        content = _upgrade(content)
        _check_content(content)
        if content["threshold"] is not None:
            content["threshold"] = _as_number(content["threshold"], "threshold")
        content["features"] = [_read_feature(feature, j) for j, feature in enumerate(content["features"])]
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return SelectionRecord(**content)


def _upgrade(content: Content) -> Content:
    """Content of an earlier format as this one has it.

    Format 1 has one draw, a mixture by default, and no verdict. Format 2 has options of the importance score and of the
    feature model as parameters of their own.
    """
    parameters = content["parameters"]
    if not isinstance(parameters, dict):
        return content
    parameters = {"resolution": "columns", **parameters}  # tests were of single features alone
    content = {"discoveries": None, "first_screen": None, **content, "parameters": parameters}
    if content["format"] == FORMAT:
        return content
    if content["format"] == 1:
        parameters = {"feature_model": "mixture", "method": "knockoffs", "verdict": False, **parameters}
        parameters |= {"rows": parameters.pop("evaluation")} if "evaluation" in parameters else {}
        content = {"method": "knockoffs", "verdict": None, "columns": [], "warnings": [], **content}
    parameters = {"stream": "never", **parameters}
    if parameters.pop("repair", False):
        raise InputError(f"it was made with repair, which this version does not have.{_remedy(content)}")
    defaults = {option.name: option.default for option in listed(ImportanceOptions)}
    scoring = {name: parameters.pop(name, default) for name, default in defaults.items()}
    scoring = {name: value for name, value in scoring.items() if value != defaults[name]}
    if scoring:
        parameters["importance_options"] = scoring
    if parameters.pop("representatives", False):
        options = parameters.get("feature_model_options") or {}
        parameters["feature_model_options"] = {**options, "representatives": True} if isinstance(options, dict) else 0
    if parameters.get("feature_model", "auto") is None:  # knockoffs were given
        parameters["feature_model"] = "auto"
    return {**content, "format": FORMAT, "parameters": parameters}


def _remedy(content: Content) -> str:
    """Advice on a record that this version cannot use."""
    versions = content.get("versions")
    wrote = versions.get("knockoffs") if isinstance(versions, dict) else None
    return f" Use the version that wrote it, {wrote}." if wrote else ""


def _check_content(content: Content) -> None:
    known = {field.name for field in fields(SelectionRecord)}
    _demand_known(content.keys(), known, known, "field", "fields", "")
    for name, (check, what) in FIELDS.items():
        _demand(check(content.get(name)), name, f"{brief(content.get(name))}, not {what}")
    remedy, needed = _remedy(content), {"target", "drop", "fdr", "seed"}
    _demand_known(content["parameters"].keys(), PARAMETERS, needed, "parameter", "parameters", remedy)
    _demand_known(content["data"].keys(), DATA, {"file", "sha256"}, "field of data", "fields of data", remedy)
    for table, where in ((PARAMETERS, "parameters"), (DATA, "data")):
        for name, value in content[where].items():
            _demand(table[name](value), f"{where}.{name}", f"{brief(value)}, which it cannot be")


def _demand_known(
    names: Collection[str], known: Collection[str], needed: set[str], one: str, many: str, remedy: str
) -> None:
    unknown, lacking = sorted(set(names) - set(known)), sorted(needed - set(names))
    if unknown:
        raise InputError(f"has {many} that this version does not know: {name_some(unknown)}.{remedy}")
    if lacking:
        raise InputError(f"lacks the {one if len(lacking) == 1 else many} {name_some(lacking)}.{remedy}")


def _read_feature(feature: object, j: int) -> Content:
    keys, more = {"name", "selected", "q_value"}, {*NUMBERS, *EVIDENCE}
    where = f"features[{j}]"
    good = isinstance(feature, dict) and keys <= set(feature) <= {*COLUMNS}
    _demand(good, where, f"not the fields {', '.join(sorted(COLUMNS))}")
    assert isinstance(feature, dict)
    _demand(isinstance(feature["name"], str), f"{where}.name", f"{brief(feature['name'])}, not a text")
    found = feature.get("discovery", "")
    _demand(isinstance(found, str), f"{where}.discovery", f"{brief(found)}, not a text")
    _demand(isinstance(feature["selected"], bool), f"{where}.selected", f"{brief(feature['selected'])}, not a boolean")
    return {**feature, **{key: _as_number(feature[key], f"{where}.{key}") for key in feature if key in more}}


def _as_number(value: object, where: str) -> float:
    """Read a number; infinity is written as a text, and NaN never is."""
    good = isinstance(value, int | float) and not isinstance(value, bool) or value in ("inf", "-inf")
    _demand(good and not (isinstance(value, int) and abs(value) >= 2**1000), where, f"{brief(value)}, not a number")
    number = float(str(value))
    _demand(not math.isnan(number), where, "NaN, not a number")
    return number


def _demand(good: bool, where: str, found: str) -> None:
    if not good:
        raise InputError(f"{where} holds {found}. This is not as knockoffs select wrote it.")


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object names a field twice")
    return found
