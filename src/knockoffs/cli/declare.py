"""Commands from the list of options: the function gets its parameters as one dictionary, typer sees every flag."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, cast, get_type_hints

import typer

from knockoffs.cli.calls import bad_call, parse_pairs
from knockoffs.options import Option, Parameters, options_of

VALUES = {str: "NAME", int: "N", float: "NUMBER"}  # what a value is called in a help


def with_options(command: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of the list: it is called with ``parameters``, every option by its name."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        hints = get_type_hints(function, include_extras=True)
        own = [p for name, p in signature(function).parameters.items() if name != "parameters"]
        listed = options_of(command)

        def run(**given: Any) -> Any:
            parameters = {name: _value(option, given.pop(name)) for name, option in listed.items()}
            return function(**given, parameters=parameters)

        made = [_parameter(option) for option in listed.values()]
        mine = [p.replace(annotation=hints[p.name], kind=Parameter.KEYWORD_ONLY) for p in own]
        run.__name__, run.__doc__ = function.__name__, function.__doc__
        run.__signature__ = Signature([*mine, *made])  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in (*mine, *made)}
        return run

    return decorate


def defaults_of(command: str) -> Parameters:
    """Parameters of a command where no option is given."""
    return cast(Parameters, {name: _value(option, option.default) for name, option in options_of(command).items()})


def _parameter(option: Option) -> Parameter:
    """Describe an option for typer."""
    needed = option.name == "target"
    kind: Any = {bool: bool, int: int, float: float}.get(option.kind, str)
    if option.kind in (list, dict):
        kind = list[str]
    flags = (f"{option.written}/--no-{option.written[2:]}",) if option.kind is bool else (option.written,)
    metavar = option.metavar or VALUES.get(option.kind)
    info = typer.Option(*flags, help=option.help, min=option.least, metavar=metavar)
    default = Parameter.empty if needed else option.default
    annotated = kind if needed or option.default is not None else kind | None
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotated, info])


def _value(option: Option, value: Any) -> Any:
    """Read what typer read: NAME=VALUE pairs as a dictionary, names that are not known refused."""
    if option.kind is dict:
        return parse_pairs(option.written, value)
    if option.kind is list:
        return list(value or [])
    if option.known is not None and value is not None:
        from knockoffs.errors import unknown_option
        from knockoffs.registry import key_of

        known = list(option.known())
        if key_of(value) not in known:
            raise bad_call(f"--{unknown_option(option.written[2:], value, known)}")
    return value
