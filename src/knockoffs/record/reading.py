"""Reading of a selection.json: every field is checked for its type, earlier formats are upgraded, edits are noticed."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from knockoffs.errors import InputError, name_some
from knockoffs.options import ImportanceOptions, Option, listed
from knockoffs.record import EVIDENCE, FORMAT, NUMBERS, SelectionRecord, brief, seal
from knockoffs.table.types import Json

Content = dict[str, Any]  # of a JSON object
Shape: TypeAlias = "type | None | list[Shape] | dict | tuple[Shape, ...]"  # see ``fits``


def fits(value: object, shape: Shape) -> bool:
    """Whether a JSON value has a shape.

    A shape is a type (whole numbers are not negative), None, a list [shape of each item], an object by its names, or by
    {str: shape} of any names, or a tuple of alternatives.

    >>> fits({"a": ["b"]}, {str: [str]}), fits(1.5, (None, int))
    (True, False)
    """
    if isinstance(shape, tuple):
        return any(fits(value, one) for one in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(item, shape[0]) for item in value)
    if isinstance(shape, dict):
        if not isinstance(value, dict) or (str not in shape and value.keys() != shape.keys()):
            return False
        return all(fits(item, shape.get(name, shape.get(str))) for name, item in value.items())
    if shape is None or shape is bool or isinstance(value, bool):
        return value is None if shape is None else isinstance(value, bool) and shape is bool
    if shape is int:
        return isinstance(value, int) and value >= 0
    if shape is float:
        return isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**1000)
    return isinstance(value, shape)


def _shape_of(option: Option) -> Shape:
    """Shape of a parameter; whether a name or level is known is checked when it is used."""
    kind: Shape = [str] if option.kind is list else option.kind
    return (kind, None) if option.default is None else kind


PARAMETERS: dict[str, Shape] = {
    option.name: _shape_of(option) for option in listed() if option.recorded and {"select", "ghost"} & set(option.faces)
}
DATA: dict[str, Shape] = {"file": str, "sha256": str, "n_rows": int, "n_columns": int, "files": {str: str}}
NUMBER = (float, str)  # infinity is written as a text
FIELDS: dict[str, Shape] = {
    "format": int,
    "edited": bool,
    "threshold": (None, *NUMBER),
    "data": dict,
    "parameters": dict,
    "versions": {str: str},
    "notes": {str: str},
    "explanation": str,
    "features": list,
    "discoveries": (None, [{"features": [str], "p_value": (None, float), "level": float, "score": float}]),
    "method": str,
    "verdict": (None, dict),
    "first_screen": (None, dict),
    "columns": [{"name": str, "kind": str, "why": str}],
    "warnings": [str],
}
FEATURE: dict[str, Shape] = {
    "name": str,
    "selected": bool,
    "discovery": str,
    **dict.fromkeys(NUMBERS + EVIDENCE, NUMBER),
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
        _check(content, FIELDS, FIELDS, "the record")
        remedy = _remedy(content)
        _check(content["parameters"], PARAMETERS, {"target", "drop", "fdr", "seed"}, "parameters", remedy)
        _check(content["data"], DATA, {"file", "sha256"}, "data", remedy)
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
    for gone in ("repair", "representatives"):
        if parameters.pop(gone, False):
            raise InputError(f"it was made with {gone}, which this version does not have.{_remedy(content)}")
    defaults = {option.name: option.default for option in listed(ImportanceOptions)}
    scoring = {name: parameters.pop(name, default) for name, default in defaults.items()}
    scoring = {name: value for name, value in scoring.items() if value != defaults[name]}
    if scoring:
        parameters["importance_options"] = scoring
    if parameters.get("feature_model", "auto") is None:  # knockoffs were given
        parameters["feature_model"] = "auto"
    return {**content, "format": FORMAT, "parameters": parameters}


def _remedy(content: Content) -> str:
    """Advice on a record that this version cannot use."""
    versions = content.get("versions")
    wrote = versions.get("knockoffs") if isinstance(versions, dict) else None
    return f" Use the version that wrote it, {wrote}." if wrote else ""


def _check(
    content: Content, shapes: Mapping[str, Shape], needed: Collection[str], where: str, remedy: str = ""
) -> None:
    """Refuse fields of ``where`` that are unknown, lacking or of another type."""
    unknown, lacking = sorted(content.keys() - shapes.keys()), sorted(set(needed) - content.keys())
    if unknown:
        raise InputError(f"{where}: {name_some(unknown)} not known to this version.{remedy}")
    if lacking:
        raise InputError(f"{where}: {name_some(lacking)} not there.{remedy}")
    for name, value in content.items():
        if not fits(value, shapes[name]):
            raise _not_ours(f"{where}.{name}", value)


def _read_feature(feature: object, j: int) -> Content:
    where = f"features[{j}]"
    if not isinstance(feature, dict):
        raise _not_ours(where, feature)
    _check(feature, FEATURE, {"name", "selected", "q_value"}, where)
    return {
        key: _as_number(value, f"{where}.{key}") if FEATURE[key] == NUMBER else value for key, value in feature.items()
    }


def _as_number(value: float | str, where: str) -> float:
    """Read a number; infinity is written as a text, and NaN never is."""
    if value not in ("inf", "-inf") and (isinstance(value, str) or value != value):
        raise _not_ours(where, value)
    return float(value)


def _not_ours(where: str, value: object) -> InputError:
    return InputError(f"{where} holds {brief(value)}, which it cannot. This is not as knockoffs select wrote it.")


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object names a field twice")
    return found
