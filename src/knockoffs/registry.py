"""Names of parts and where they live: a part is imported when it is asked for, and says beforehand what it needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from numbers import Integral
from typing import Any, TypeVar

from knockoffs.errors import InputError, unknown_option

Part = TypeVar("Part")
# options of any family, and the most of each: without a sweep a draw would not look at X, and sweeps do not hear Ctrl-C
COUNTS = {"n_sweeps": 10_000, "n_starts": 10_000, "max_iter": 1_000_000}


def key_of(name: object) -> str:
    """Name as registries have it: dashes are underscores, so that the command line's words are Python's.

    >>> key_of("swap-integral")
    'swap_integral'
    """
    return str(name).replace("-", "_")


def find(registry: Mapping[str, Part], argument: str, name: str) -> Part:
    """Part that a registry has under a name; a name it does not have is an error that names the nearest.

    >>> find({"swap": 1}, "importance", "swap")
    1
    """
    if not isinstance(name, str) or key_of(name) not in registry:
        raise unknown_option(argument, name, registry)
    return registry[key_of(name)]


def imported(place: str | Callable[..., Any]) -> Callable[..., Any]:
    """Import what stands at "module:attribute"; what is no string is there already.

    >>> imported("knockoffs.filter:difference").__name__
    'difference'
    """
    if not isinstance(place, str):
        return place
    module, attribute = place.split(":")
    return getattr(import_module(module), attribute)


def load(registry: Mapping[str, str], argument: str, name: str) -> Any:
    """Import the part that a registry ("name" -> "module:attribute") has under a name.

    >>> load({"difference": "knockoffs.filter:difference"}, "rule", "difference").__name__
    'difference'
    """
    return imported(find(registry, argument, name))


def check_options(options: Mapping[str, object] | None, known: Collection[str] | None, argument: str) -> dict[str, Any]:
    """Options as a dictionary, each of them among those known; None knows all."""
    found = {key_of(name): value for name, value in (options or {}).items()}
    for name in found:
        if known is not None and name not in known:
            raise unknown_option(argument, name, sorted(known))
        value = found[name]
        if name not in COUNTS or value is None:
            continue
        if type(value) is bool or not isinstance(value, Integral) or value < 1:
            raise InputError(f"{argument}: {name}={value!r}: expected a whole number of at least 1.")
        if int(value) > COUNTS[name]:
            raise InputError(f"{argument}: {name}={value!r}: expected a whole number of at most {COUNTS[name]}.")
    return found
