"""Compiled loops that do not need a disk: where numba cannot keep them, each process compiles them again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def njit(**options: object) -> Callable[[Function], Function]:
    """Compile a function as ``numba.njit`` does; ``cache=True`` means that it is kept if it can be.

    In a read-only installation without a writable home there is no place for it, and numba fails at import. A disk
    that is full, and a file that was damaged there, are met later, and mean only that it is compiled again.
    """

    def compile_function(function: Function) -> Function:
        try:
            made = numba.njit(**options)(function)
        except RuntimeError:  # "no locator available"
            return numba.njit(**{**options, "cache": False})(function)
        _forgive(getattr(made, "_cache", None))
        return made

    return compile_function


def _forgive(cache: object) -> None:
    """Let a cache of numba's fail without a word: a disk by an OSError, a damaged pickle in any way."""
    if not hasattr(cache, "load_overload") or not hasattr(cache, "save_overload"):
        return
    load: Callable[..., object] = cache.load_overload
    save: Callable[..., object] = cache.save_overload

    def load_overload(*arguments: object) -> object:
        with suppress(Exception):
            return load(*arguments)
        return None

    def save_overload(*arguments: object) -> None:
        with suppress(Exception):
            save(*arguments)

    cache.load_overload, cache.save_overload = load_overload, save_overload
