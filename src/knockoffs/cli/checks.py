"""Checks of a call before any data are read: names, levels, columns, NAME=VALUE pairs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from knockoffs.options import Options, importance_options, options_of, refuse_value

if TYPE_CHECKING:
    from polars import DataFrame

    from knockoffs.table.types import Json


def bad_call(message: str) -> Exception:
    """Error of a call that cannot be understood; the program ends with status 2."""
    return typer.BadParameter(message)


def prepare_call(options: Options, face: str) -> None:
    """Refuse what is wrong whatever the data are, and keep Ctrl-C away from parallel jobs."""
    from knockoffs.errors import InputError, require
    from knockoffs.filter import check_fdr, check_offset
    from knockoffs.registry import key_of
    from knockoffs.response import ESTIMATORS

    if "target" in options_of(face) and face != "check":  # which may do without
        _check_target(options)
    try:
        for option in options_of(face).values():
            refuse_value(option, getattr(options, option.name), option.written)
        importance_options(options.importance_options, face, "--importance-option")
        check_fdr(0.1 if options.fdr is None else options.fdr)
        check_offset(options.offset)
    except InputError as error:
        raise bad_call(str(error)) from None
    model = ESTIMATORS.get(key_of(options.estimator or ""))
    if model is not None and model.package is not None:
        require(model.package, f"--estimator {options.estimator}: such models")
    if options.jobs not in (None, 1):
        from knockoffs.cli.interrupt import shield_children

        shield_children()


def _check_target(options: Options) -> None:
    """Refuse a call without a target, or with half of a survival time."""
    if not options.target_columns:
        raise bad_call("Missing option '--target'. For a survival time use --time and --event.")
    if options.target and len(options.target_columns) > 1:
        raise bad_call("--target and --time, --event or --entry: a survival time is the target. Leave out --target.")
    if not options.target and None in (options.time, options.event):
        lacking = "--time" if options.time is None else "--event"
        raise bad_call(f"Missing option '{lacking}': a survival time needs --time and --event.")


def check_columns(frame: DataFrame, names: list[str], flag: str) -> None:
    """Refuse columns that the table does not have, and name the nearest that it has."""
    from knockoffs.errors import did_you_mean, name_some
    from knockoffs.table.cells import is_number

    columns = frame.columns
    known = set(columns)
    for name in names:
        if name not in known:
            hint = did_you_mean(name, columns)
            if sum(map(is_number, columns)) > len(columns) / 2:
                hint = " Its first line holds numbers: put a line with the names of the columns before it."
            raise bad_call(f"{flag} {name!r} is not a column of the table.{hint} It has {name_some(columns)}.")


def split_names(known: list[str], names: tuple[str, ...] | list[str]) -> list[str]:
    """Names of columns, also if several were given as one, separated by commas.

    >>> split_names(["a", "b", "c,d"], ["a, b", "c,d"])
    ['a', 'b', 'c,d']
    """
    found = []
    for name in names:
        found += [name] if name in known or "," not in name else [part.strip() for part in name.split(",")]
    return found


def parse_pairs(flag: str, pairs: list[str] | None) -> dict[str, Json] | None:
    """Options from NAME=VALUE pairs; a value that is a number, true, false or a list in JSON is read as such.

    >>> parse_pairs("--feature-model-option", ["n-components=[1, 2]", "diagonal=mvr"])
    {'n-components': [1, 2], 'diagonal': 'mvr'}
    >>> parse_pairs("--kind", ['a=b=count', 'grade=["<=5", ">5"]'])
    {'a=b': 'count', 'grade': ['<=5', '>5']}
    """
    options: dict[str, Json] = {}
    for pair in pairs or []:
        name, equals, text = _split_kind(pair) if flag == "--kind" else pair.partition("=")
        if not equals or not name:
            raise bad_call(f"{flag} {pair!r}: expected NAME=VALUE.")
        try:
            options[name] = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            options[name] = text
    return options or None


def _split_kind(pair: str) -> tuple[str, str, str]:
    """Column and kind; both a column's name and the labels of a JSON list may contain =."""
    places = [i for i, sign in enumerate(pair) if sign == "="] if pair.endswith("]") else []
    for i in places:
        try:
            if isinstance(json.loads(pair[i + 1 :]), list):
                return pair[:i], "=", pair[i + 1 :]
        except (json.JSONDecodeError, RecursionError):
            continue
    return pair.rpartition("=")
