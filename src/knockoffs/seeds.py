"""Whatever stands for randomness becomes a Generator; the only place where seeds become one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from knockoffs.errors import InputError


def as_generator(random_state: object) -> np.random.Generator:
    """Make a Generator of whatever stands for randomness.

    A Generator is used as it is, so that it moves on; an int or a SeedSequence gives the same numbers every time.

    >>> as_generator(3).integers(100) == as_generator(np.random.SeedSequence(3)).integers(100)
    np.True_
    """
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, bool | np.bool_):
        raise InputError(f"random_state={random_state} is not a seed: use an int, or None for fresh entropy.")
    if isinstance(random_state, int | np.integer):
        if random_state < 0:
            raise InputError(f"random_state={random_state} is negative: a seed is a non-negative int.")
        return np.random.default_rng(int(random_state))
    if isinstance(random_state, np.random.SeedSequence):
        # a fresh copy: spawning from the one passed in would change the next answer
        seed, key, size = random_state.entropy, random_state.spawn_key, random_state.pool_size
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key, pool_size=size))
    if isinstance(random_state, np.random.Generator):
        can_spawn = isinstance(random_state.bit_generator.seed_seq, np.random.bit_generator.ISpawnableSeedSequence)
        return random_state if can_spawn else np.random.default_rng(random_state.integers(2**32, size=4))
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    raise InputError(
        f"random_state={random_state!r} ({type(random_state).__name__}): "
        "use None, an int, a Generator, a SeedSequence or a RandomState."
    )


def stream_at(rng: np.random.Generator, index: int) -> np.random.Generator:
    """Stream number ``index`` of a generator, whichever were made before: what ``rng.spawn`` gives at that place first.

    >>> one = np.random.default_rng(0)
    >>> stream_at(one, 2).integers(100) == np.random.default_rng(0).spawn(3)[2].integers(100)
    np.True_
    """
    parent: Any = rng.bit_generator.seed_seq
    return np.random.default_rng(seeds_of(parent, [index]))


def seeds_of(seed: np.random.SeedSequence, columns: Iterable[int]) -> np.random.SeedSequence:
    """Seeds of a group of columns: they do not depend on what else is drawn."""
    key = (*seed.spawn_key, *(int(column) for column in columns))
    return np.random.SeedSequence(seed.entropy, spawn_key=key, pool_size=seed.pool_size)
