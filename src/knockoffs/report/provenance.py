"""How a selection is made again: the command, or the Python lines."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from sklearn.base import BaseEstimator

from knockoffs.options import NOT_RECORDED, options_of

Plain = str | int | float | list | tuple | dict | None  # what Python writes as it can be read


def command_of(parameters: Mapping[str, Any], file: str, method: str | None = None) -> str:
    """Command line that makes a selection again; options left at their defaults are not written.

    >>> command_of({"target": "y", "fdr": 0.2, "seed": 3, "drop": ["id"]}, "my table.csv")
    "knockoffs select 'my table.csv' --target y --drop id --fdr 0.2 --seed 3"
    """
    words = ["knockoffs", "select", file]
    for name, option in options_of("select").items():
        value = parameters.get(name)
        if name in NOT_RECORDED or value is None or value == option.default or value in ([], {}):
            continue
        if option.kind is bool:
            words.append(option.written if value else f"--no-{option.written[2:]}")
        elif option.kind is dict:
            for key, item in value.items():
                words += [option.written, f"{key}={item if isinstance(item, str) else json.dumps(item)}"]
        elif option.kind is list:
            for item in value:
                words += [option.written, str(item)]
        else:
            words += [option.written, f"{value:.15g}" if isinstance(value, float) else str(value)]
    return " ".join(shlex.quote(word) for word in words)


def python_of(selector: Any) -> str:
    """Python lines that make a selection again, with every parameter that is not at its default."""
    defaults = type(selector)().get_params(deep=False)
    words, named = [], []
    for name, value in selector.get_params(deep=False).items():
        if isinstance(value, Plain) and isinstance(defaults[name], Plain) and value == defaults[name]:
            continue
        if isinstance(value, Plain) or isinstance(value, BaseEstimator):
            words.append(f"{name}={value!r}")
        else:
            words.append(f"{name}={name}")
            named.append(f"# {name} is what was given: {type(value).__name__}")
    if not isinstance(selector.random_state, int):
        named.append("# without a whole number as random_state the knockoffs are drawn anew")
    return "\n".join(
        ["from knockoffs import KnockoffSelector", "", *named, f"KnockoffSelector({', '.join(words)}).fit(X, y)"]
    )
