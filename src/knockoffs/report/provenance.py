"""How a selection is made again: the command, or the Python lines."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

from sklearn.base import BaseEstimator

from knockoffs.options import Options, options_of

Plain = str | int | float | list | tuple | dict | None  # what Python writes as it can be read


def command_of(parameters: Mapping[str, object], file: str, method: str | None = None) -> str:
    """Command line that makes a selection again; options left at their defaults are not written.

    >>> command_of({"target": "y", "fdr": 0.2, "seed": 3, "drop": ["id"]}, "my table.csv")
    "knockoffs select 'my table.csv' --target y --drop id --fdr 0.2 --seed 3"
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
    return " ".join(shell_word(word) for word in words)


def shell_word(word: str) -> str:
    r"""Word of a command line; what cannot be seen is written as escapes, so that a copy of the line is safe.

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


def python_of_file(parameters: Mapping[str, object], file: str) -> str:
    """Python lines that make the selection of a command again, from the file that it read.

    >>> print(python_of_file({"target": "y", "fdr": 0.2, "seed": 3, "drop": ["id"]}, "my table.csv"))
    from pathlib import Path
    <BLANKLINE>
    from knockoffs import KnockoffSelector
    from knockoffs.table.files import drop_columns, read_table_file, take_column
    <BLANKLINE>
    table = read_table_file(Path('my table.csv'))
    X, y = drop_columns(table, ['y', 'id']), take_column(table, 'y')
    selector = KnockoffSelector(fdr=0.2, random_state=3).fit(X, y)
    print(selector.explain())
    """
    options = Options.of(parameters)
    defaults, words = Options().selector_arguments(), []
    for name, value in options.selector_arguments().items():
        if name == "groups" and value not in (None, "auto"):
            words.append(f"groups=read_groups(Path({value!r}))")
        elif name == "random_state" or (value != defaults[name] and name != "n_jobs"):
            words.append(f"{name}={value!r}")
    target, weights = options.target, options.weights
    unused = [target, *([] if weights is None else [weights]), *options.drop]
    weighed = "" if weights is None else f", sample_weight=take_column(table, {weights!r})"
    grouped = any(word.startswith("groups=read_groups") for word in words)
    return "\n".join(
        [
            "from pathlib import Path",
            "",
            "from knockoffs import KnockoffSelector",
            "from knockoffs.table.files import drop_columns, read_table_file, take_column",
            *(["from knockoffs.table.groups import read_groups"] if grouped else []),
            "",
            f"table = read_table_file(Path({file!r}))",
            f"X, y = drop_columns(table, {unused!r}), take_column(table, {target!r})",
            f"selector = KnockoffSelector({', '.join(words)}).fit(X, y{weighed})",
            "print(selector.explain())",
        ]
    )


def python_of(selector: BaseEstimator) -> str:
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
    if not isinstance(selector.get_params(deep=False)["random_state"], int):
        named.append("# without a whole number as random_state the knockoffs are drawn anew")
    return "\n".join(
        ["from knockoffs import KnockoffSelector", "", *named, f"KnockoffSelector({', '.join(words)}).fit(X, y)"]
    )
