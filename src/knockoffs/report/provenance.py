"""How a selection is repeated: the command, or the Python lines."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

from sklearn.base import BaseEstimator

from knockoffs.options import options_of

Plain = str | int | float | list | tuple | dict | None  # what Python writes as it can be read


def command_words(parameters: Mapping[str, object], file: str) -> list[str]:
    """Words of the command line that repeats a selection; options at their defaults are left out.

    >>> command_words({"target": "y", "fdr": 0.2, "drop": []}, "my table.csv")
    ['knockoffs', 'select', 'my table.csv', '--target', 'y', '--fdr', '0.2']
    """
    words = ["knockoffs", "select", file]
    for name, option in options_of("select").items():
        value = parameters.get(name)
        if not option.recorded or value is None or value == option.default or value in ([], {}):
            continue
        if option.kind is bool:
            words.append(option.written if value else f"--no-{option.written[2:]}")
        elif isinstance(value, Mapping):
            for key, item in value.items():
                words += [option.written, f"{key}={item if isinstance(item, str) else json.dumps(item)}"]
        elif isinstance(value, list):
            for item in value:
                words += [option.written, str(item)]
        else:
            words += [option.written, f"{value:.15g}" if isinstance(value, float) else str(value)]
    return words


def command_of(parameters: Mapping[str, object], file: str) -> str:
    """Command line that repeats a selection, as a shell reads it.

    >>> command_of({"target": "y", "fdr": 0.2, "seed": 3, "drop": ["id"]}, "my table.csv")
    "knockoffs select 'my table.csv' --target y --drop id --fdr 0.2 --seed 3"
    """
    return " ".join(map(shell_word, command_words(parameters, file)))


def shell_word(word: str) -> str:
    r"""Word of a command line; characters that cannot be seen are escaped, so that the line is safe to copy.

    >>> print(shell_word("my table.csv"), shell_word("a\nb'"))
    'my table.csv' $'a\x0ab\''
    """
    if word.isprintable():
        return shlex.quote(word)
    shown = (
        f"\\{c}"
        if c in "\\'"
        else c
        if c.isprintable()
        else "".join(f"\\x{b:02x}" for b in c.encode("utf-8", "surrogatepass"))
        for c in word
    )
    return f"$'{''.join(shown)}'"


def python_of(selector: BaseEstimator) -> str:
    """Python lines that repeat a selection, with every parameter that is not at its default."""
    kind = type(selector)
    subclass = kind.__module__ != "knockoffs.selector"  # whose defaults are its own
    defaults = {} if subclass else kind().get_params(deep=False)
    words, named = [], []
    for name, value in selector.get_params(deep=False).items():
        default = defaults.get(name, ...)
        if isinstance(value, Plain) and isinstance(default, Plain) and value == default:
            continue
        if isinstance(value, Plain) or isinstance(value, BaseEstimator):
            words.append(f"{name}={value!r}")
        else:
            words.append(f"{name}={name}")
            named.append(f"# {name} is what was given: {type(value).__name__}")
    if not isinstance(getattr(selector, "random_state", None), int):
        named.append("# without an integer as random_state the knockoffs differ from run to run")
    package = kind.__module__ if subclass else "knockoffs"
    called = kind.__name__
    return "\n".join([f"from {package} import {called}", "", *named, f"{called}({', '.join(words)}).fit(X, y)"])
