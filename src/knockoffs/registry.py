"""Names of parts and where they live: a part is imported when it is asked for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from knockoffs.errors import unknown_option


def load(registry: Mapping[str, str], argument: str, name: str) -> Any:
    """Import the part that a registry ("name" -> "module:attribute") has under a name.

    >>> load({"difference": "knockoffs.filter:difference"}, "rule", "difference").__name__
    'difference'
    """
    key = name.replace("-", "_")
    if key not in registry:
        raise unknown_option(argument, name, registry)
    module, attribute = registry[key].split(":")
    return getattr(import_module(module), attribute)


def accepted_options(function: Callable[..., Any]) -> set[str]:
    """Names of the options that a function takes; those bound already do not count."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return set()
    return {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}


def check_options(function: Callable[..., Any], options: Mapping[str, Any] | None, argument: str) -> dict[str, Any]:
    """Options for a function, each of them known to it."""
    allowed = sorted(accepted_options(function) - {"X", "y", "rng", "n_jobs", "model", "X_tilde", "sample_weight"})
    for name in options or {}:
        if name not in allowed:
            raise unknown_option(argument, name, allowed)
    return dict(options or {})
