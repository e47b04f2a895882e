"""How a selection is made again: the command, or the Python lines."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from knockoffs.options import NOT_RECORDED, options_of


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
    return f"from knockoffs import KnockoffSelector\n\n{selector.__repr__(N_CHAR_MAX=20_000)}.fit(X, y)"
