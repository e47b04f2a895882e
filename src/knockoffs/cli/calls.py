"""A call of the command line is checked before any data are read: names, levels, columns, NAME=VALUE pairs."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

import typer

from knockoffs.options import Parameters
from knockoffs.table.types import Frame, Json

PICTURES = (".png", ".svg", ".pdf")
MOST_COMPARED = 20_000  # columns among which the nearest name is looked for


def bad_call(message: str) -> Exception:
    """Error of a call that cannot be understood: the program ends with status 2."""
    return typer.BadParameter(message)


def check_call(parameters: Parameters) -> None:
    """Refuse what is wrong whatever the data are; the data have not been read yet."""
    from knockoffs.errors import InputError
    from knockoffs.filter import check_fdr, check_offset
    from knockoffs.options import options_of

    level = parameters.get("fdr")
    try:
        check_fdr(0.1 if level is None else level)
        check_offset(parameters.get("offset", 1))
    except InputError as error:
        raise bad_call(str(error)) from None
    check_feature_model(parameters.get("feature_model"))
    given: Mapping[str, object] = parameters
    for name, option in options_of("select").items():
        value = given.get(name)
        if option.known is not None and value is not None:
            check_name(option.written[2:], str(value), list(option.known()))
    check_packages(parameters.get("estimator"))


def check_packages(estimator: str | None) -> None:
    """Refuse a model of y whose package is not installed."""
    from knockoffs.errors import require
    from knockoffs.registry import key_of
    from knockoffs.response import ESTIMATORS

    model = None if estimator is None else ESTIMATORS.get(key_of(estimator))
    if model is not None and model.package is not None:
        require(model.package, f"--estimator {estimator}: such models")


def check_path(*, fake: str, lambda_range: tuple[float, float], n_lams: int) -> None:
    """Refuse a lambda path that leads nowhere."""
    from knockoffs.errors import InputError
    from knockoffs.importance.accuracy_drop import FAKES
    from knockoffs.importance.paths.moves import check_range

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


def check_columns(frame: Frame, names: list[str], option: str) -> None:
    """Refuse columns that the table does not have, with the nearest that it has."""
    from knockoffs.errors import name_some
    from knockoffs.table.files import column_names

    columns = [str(name) for name in column_names(frame)]
    known = set(columns)
    for name in names:
        if name not in known:
            near = nearest(name, columns)
            hint = "" if near is None else f" Did you mean {near!r}?"
            raise bad_call(f"{option} {name!r} is not a column of the table.{hint} It has {name_some(columns)}.")


def nearest(name: str, columns: list[str]) -> str | None:
    """Column whose name is nearest, where one is near; capital letters, blanks and signs between words do not count.

    >>> nearest("BLOODPRESSURE", ["age", "blood pressure"])
    'blood pressure'
    """
    from difflib import get_close_matches

    plain: dict[str, str] = {}
    for column in columns[:MOST_COMPARED]:
        plain.setdefault(_letters(column), column)
    near = get_close_matches(_letters(name), list(plain), n=1)
    return plain[near[0]] if near else None


def _letters(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum()) or name


def split_names(frame: Frame, names: list[str], option: str) -> list[str]:
    """Names of columns, also where several were given as one, with commas between them."""
    from knockoffs.table.files import column_names

    known = set(map(str, column_names(frame)))
    listed = []
    for name in names:
        listed += [name] if name in known or "," not in name else [part.strip() for part in name.split(",")]
    check_columns(frame, listed, option)
    return listed


def prepare_jobs(jobs: int | None) -> None:
    """Refuse no jobs at all, and see to it that Ctrl-C will end several without a word of theirs."""
    if jobs == 0:
        raise bad_call("--jobs 0: at least one job is needed; -1 stands for all cores.")
    if jobs not in (None, 1):
        from knockoffs.cli.interrupt import shield_children

        shield_children()


def check_picture(out: Path) -> None:
    """Refuse a file that is neither a picture nor a table."""
    if out.suffix.lower() not in (*PICTURES, ".csv"):
        raise bad_call(f"--out {str(out)!r}: the format is told by the ending, one of {', '.join(PICTURES)}, .csv.")


def parse_pairs(flag: str, pairs: list[str] | None) -> dict[str, Json] | None:
    """Options from NAME=VALUE; a value that is a number, true, false or a list in JSON is read as one.

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
    """Column and kind: names of columns may hold an =, and so may labels in their order, which are a list in JSON."""
    places = [i for i, sign in enumerate(pair) if sign == "="] if pair.endswith("]") else []
    for i in places:
        try:
            if isinstance(json.loads(pair[i + 1 :]), list):
                return pair[:i], "=", pair[i + 1 :]
        except (json.JSONDecodeError, RecursionError):
            continue
    return pair.rpartition("=")
