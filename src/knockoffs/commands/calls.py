"""A call of the command line is checked before any data are read: names, levels, columns, NAME=VALUE pairs."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import typer

PICTURES = (".png", ".svg", ".pdf")


def bad_call(message: str) -> Exception:
    """Error of a call that cannot be understood: the program ends with status 2."""
    return typer.BadParameter(message)


def check_call(parameters: Mapping[str, Any]) -> None:
    """Refuse what is wrong whatever the data are; the data have not been read yet."""
    from knockoffs.errors import InputError
    from knockoffs.filter import RULES, check_fdr, check_offset

    try:
        check_fdr(parameters.get("fdr", 0.1))
        check_offset(parameters.get("offset", 1))
    except InputError as error:
        raise bad_call(str(error)) from None
    check_feature_model(parameters.get("feature_model"))
    check_name("rule", parameters.get("rule"), RULES)
    if parameters.get("estimator"):
        from knockoffs.defaults import BEST
        from knockoffs.response import ESTIMATORS

        check_name("estimator", parameters["estimator"], (BEST, *ESTIMATORS))
    if parameters.get("importance"):
        from knockoffs.importance import SCORES

        check_name("importance", parameters["importance"], SCORES)
    if parameters.get("loss"):
        from knockoffs.importance.losses import LOSSES

        check_name("loss", parameters["loss"], LOSSES)
    if parameters.get("rows"):
        from knockoffs.importance.rows import ROWS

        check_name("rows", parameters["rows"], ROWS)
    if parameters.get("task"):
        from knockoffs.defaults import TASKS

        check_name("task", parameters["task"], TASKS)
    if parameters.get("fake"):
        check_path(**{key: parameters[key] for key in ("fake", "lambda_range", "n_lams")})


def check_path(*, fake: str, lambda_range: tuple[float, float], n_lams: int) -> None:
    """Refuse a lambda path that leads nowhere."""
    from knockoffs.errors import InputError
    from knockoffs.importance.accuracy_drop import FAKES
    from knockoffs.importance.lambda_path import check_range

    check_name("fake", fake, FAKES)
    try:
        check_range(*lambda_range, n_lams)
    except InputError as error:
        raise bad_call(str(error)) from None


def check_feature_model(name: str | None) -> None:
    """Refuse a family that does not exist."""
    from knockoffs.features import FAMILIES

    if name is None or not is_network_file(name):
        check_name("feature-model", name, FAMILIES)


def is_network_file(feature_model: str) -> bool:
    """Whether P^X is named by the file of a Bayesian network."""
    return feature_model.lower().endswith((".bif", ".bif.gz"))


def check_name(option: str, got: str | None, allowed: Collection[str]) -> None:
    """Refuse a name that is not among those allowed, with the nearest that is."""
    from knockoffs.errors import unknown_option

    if got is not None and got.replace("-", "_") not in allowed:
        raise bad_call(f"--{unknown_option(option, got, allowed)}")


def check_columns(frame: Any, names: list[str], option: str) -> None:
    """Refuse columns that the table does not have, with the nearest that it has."""
    from difflib import get_close_matches

    from knockoffs.errors import name_some

    columns = [str(name) for name in frame.columns]
    for name in names:
        if name not in columns:
            near = get_close_matches(name, columns, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise bad_call(f"{option} {name!r} is not a column of the table.{hint} It has {name_some(columns)}.")


def check_picture(out: Path) -> None:
    """Refuse a file that is neither a picture nor a table."""
    if out.suffix.lower() not in (*PICTURES, ".csv"):
        raise bad_call(f"--out {str(out)!r}: the format is told by the ending, one of {', '.join(PICTURES)}, .csv.")


def parse_options(pairs: list[str] | None) -> dict[str, Any] | None:
    """Options from NAME=VALUE; a value that is a number, true, false or a list in JSON is read as one.

    >>> parse_options(["n-components=[1, 2]", "diagonal=mvr"])
    {'n_components': [1, 2], 'diagonal': 'mvr'}
    """
    options = {}
    for pair in pairs or []:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise bad_call(f"--feature-model-option {pair!r}: expected NAME=VALUE.")
        try:
            options[name.replace("-", "_")] = json.loads(text)
        except json.JSONDecodeError:
            options[name.replace("-", "_")] = text
    return options or None
