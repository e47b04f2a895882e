"""Names of parts and where they live: a part is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
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
