"""Sums over the first batches in a file, from which a stopped run goes on."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from knockoffs.streaming.tower import Part, RowSum, Tower

Reader = Callable[[Mapping[str, NDArray]], RowSum]


def write_state(file: IO[bytes], *, tower: Tower[Part]) -> None:
    """Write a tower; its content is told by its hash, so that a file that was cut or changed is seen."""
    arrays: dict[str, NDArray] = {"done": np.array(tower.done), "levels": np.array(len(tower.sums))}
    for level, part in enumerate(tower.sums):
        if part is None:
            continue
        arrays[f"{level}/unknown"] = part.n_unknown
        for k, (total, moved) in enumerate(zip(part.totals, part.moved, strict=True)):
            arrays[f"{level}/{k}/moved"] = moved
            stored = {} if total is None else total.arrays()
            arrays |= {f"{level}/{k}/{name}": one for name, one in stored.items()}
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    file.write(hashlib.sha256(content.getvalue()).digest() + content.getvalue())


def read_state(path: Path, *, readers: Sequence[Reader | None]) -> Tower[Part]:
    """Undo ``write_state``, to the last bit.

    Parameters
    ----------
    path : Path
    readers : sequence
        Of each total, what undoes its ``arrays``; None where batches have none.

    Raises
    ------
    ValueError
        If the file is damaged.
    """
    content = path.read_bytes()
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        raise ValueError("damaged")
    with np.load(io.BytesIO(content[32:]), allow_pickle=False) as stored:

        def part_at(level: int) -> Part | None:
            if f"{level}/unknown" not in stored.files:
                return None
            totals: list[RowSum | None] = []
            moved = []
            for k, read in enumerate(readers):
                start = f"{level}/{k}/"
                own = {name.removeprefix(start): stored[name] for name in stored.files if name.startswith(start)}
                moved.append(own.pop("moved"))
                totals.append(read(own) if own and read is not None else None)
            return Part(tuple(totals), tuple(moved), stored[f"{level}/unknown"])

        return Tower(int(stored["done"]), tuple(map(part_at, range(int(stored["levels"])))))
