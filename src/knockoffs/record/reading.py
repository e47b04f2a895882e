"""Reading of a selection.json: every field is checked for its type, earlier formats are upgraded, edits are noticed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection
from dataclasses import fields
from pathlib import Path
from typing import Any

from knockoffs.errors import InputError, name_some
from knockoffs.options import ImportanceOptions, Option, listed, options_of
from knockoffs.record import EVIDENCE, FORMAT, NUMBERS, SelectionRecord, brief, seal
from knockoffs.table.types import Json

Content = dict[str, Any]  # of a JSON object


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_seed(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


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


def _or_null(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or check(value)


def _holds(option: Option) -> Callable[[object], bool]:
    """Check of the type of a parameter; whether a name or level is known is checked when it is used."""
    checks: dict[type, Callable[[object], bool]] = {
        str: _is_text,
        int: _is_count,
        float: _is_level,
        bool: lambda value: isinstance(value, bool),
        list: _is_texts,
        dict: lambda value: isinstance(value, dict),
    }
    check = _is_seed if option.name == "seed" else checks[option.kind]
    return check if option.default is not None else _or_null(check)


PARAMETERS = {
    name: _holds(option) for name, option in (options_of("select") | options_of("ghost")).items() if option.recorded
}
DATA: dict[str, Callable[[object], bool]] = {
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
    if content["format"] == FORMAT or not isinstance(parameters, dict):
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
    good = isinstance(feature, dict) and keys <= set(feature) <= keys | more
    _demand(good, where, f"not the fields {', '.join(sorted(keys | more))}")
    assert isinstance(feature, dict)
    _demand(_is_text(feature["name"]), f"{where}.name", f"{brief(feature['name'])}, not a text")
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
