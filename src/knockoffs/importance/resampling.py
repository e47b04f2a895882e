"""The rows that a model of y is fitted on and scored on: the same, held out, cross-fitted, or out of bag."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some, unknown_option

ROWS = ("in_sample", "held_out", "cross_fitted", "out_of_bag")


@dataclass(frozen=True)
class Job:
    """One fit: the rows it is fitted on, the rows it is scored on, and its randomness."""

    fit_rows: NDArray[np.intp]
    score_rows: NDArray[np.intp]
    rng: Generator

    @property
    def everything(self) -> bool:
        """Whether a model is scored on the rows it was fitted on, which are all of them."""
        return self.fit_rows is self.score_rows


def check_rows(rows: str) -> None:
    """Refuse a word that names no rows."""
    if rows not in ROWS:
        raise unknown_option("rows", rows, ROWS)


def plan(rows: str, n: int, labels: NDArray | None, n_folds: int, rng: Generator) -> list[Job]:
    """Rows of each fit and of its score."""
    everything = np.arange(n)
    if rows in ("in_sample", "out_of_bag"):
        return [Job(everything, everything, rng)]
    fold_of = draw_folds(n, n_folds, rng, labels=labels)
    return [
        Job(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold), stream)
        for fold, stream in enumerate(rng.spawn(n_scored(rows, n_folds)))
    ]


def n_scored(rows: str, n_folds: int) -> int:
    """How many folds are scored by a model fitted on the others."""
    return {"cross_fitted": n_folds, "held_out": 1}.get(rows, 0)


def draw_folds(n: int, n_folds: int, rng: Generator, *, labels: NDArray | None = None) -> NDArray[np.intp]:
    """Fold of each row, at random, of sizes that differ by at most one; every class is spread evenly.

    >>> np.bincount(draw_folds(10, 3, np.random.default_rng(0)))
    array([4, 3, 3])
    """
    if not 2 <= n_folds <= n:
        raise InputError(f"n_folds={n_folds}: use between 2 and the number of rows, {n}.")
    order = rng.permutation(n)
    if labels is not None:
        classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        if counts.min() < 2:
            raise InputError(
                f"class {name_some(classes[counts < 2].tolist())} of y has a single row, so a fold would leave a model "
                "without it. Leave such classes out or join them, or use the importance option rows='in_sample'."
            )
        # rows of a class one after the other, dealt out in turn: two rows of a class never share all folds
        order = order[np.argsort(codes[order], kind="stable")]
    fold_of = np.empty(n, dtype=np.intp)
    fold_of[order] = np.arange(n) % n_folds
    return fold_of
