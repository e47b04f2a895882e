"""What the columns of a table are, and the margin each kind asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import ColumnsError, InputError, unknown_option
from knockoffs.features.latent.margins import TIED, Constant, Margin, count_values, fit_affine, fit_curve, fit_steps
from knockoffs.features.latent.nominal import fit_nominal
from knockoffs.table.columns import KINDS, recognise_kind

SEEN = 10  # cells of a column that must be observed, or all of them in a table with fewer rows


def check_kinds(X: NDArray, kinds: Sequence[str] | None) -> tuple[str, ...]:
    """Return the kinds given, or inferred where None; a kind that contradicts its column is refused."""
    if kinds is None:
        return tuple(recognise_kind(x)[0] for x in X.T)
    if len(kinds) != X.shape[1]:
        raise InputError(f"kinds has {len(kinds)} words: expected {X.shape[1]}, one for each column.")
    for kind in kinds:
        if kind not in KINDS:
            raise unknown_option("kinds", kind, KINDS)
    for j, kind in enumerate(kinds):
        if kind not in ("binary", "count"):
            continue
        values = np.unique(X[~np.isnan(X[:, j]), j])
        if kind == "binary" and len(values) > 2:
            raise ColumnsError([j], f"kind 'binary' was given, but {len(values)} distinct values are in column",
                               ". Use 'ordinal' or 'nominal'.")  # fmt: skip
        if kind == "count" and len(values) and (values[0] < 0 or (values != np.round(values)).any()):
            raise ColumnsError([j], "kind 'count' was given, but negative or fractional values are in column",
                               ". Use 'continuous' or 'ordinal'.")  # fmt: skip
    return tuple(kinds)


def check_cells(X: NDArray) -> None:
    """Refuse what cannot be modelled: too few rows, infinite cells, columns of which too little is observed."""
    if X.ndim != 2 or not X.shape[1]:
        raise InputError(f"X has shape {X.shape}: expected rows and columns.")
    if len(X) < 3:
        raise InputError(f"X has {len(X)} rows: a covariance needs at least 3.")
    infinite = np.flatnonzero(np.isinf(X).any(axis=0))
    if infinite.size:
        raise ColumnsError(infinite, "columns", "have infinite values: replace them, or make them missing.")
    seen = (~np.isnan(X)).sum(axis=0)
    if (seen == 0).any():
        raise ColumnsError(np.flatnonzero(seen == 0), "columns", "have no observed cell at all: drop them.")
    few = np.flatnonzero(seen < min(SEEN, len(X)))
    if few.size:
        raise ColumnsError(
            few, "columns", f"have fewer than {SEEN} observed cells, too few to learn a distribution from: drop them."
        )


def fit_both(X: NDArray, kinds: Sequence[str]) -> tuple[tuple[Margin, ...], tuple[Margin, ...]]:
    """Margins of every column with smooth columns by their normal scores, and with them in their own units."""
    scored, in_units = zip(*_both(X, kinds), strict=True)
    return scored, in_units


def _both(X: NDArray, kinds: Sequence[str]) -> Iterator[tuple[Margin, Margin]]:
    return (_fit_margin(x[~np.isnan(x)], kind) for x, kind in zip(X.T, kinds, strict=True))


def _fit_margin(x: NDArray, kind: str) -> tuple[Margin, Margin]:
    """Margin by normal scores and, of a smooth column, the affine one; the values are sorted once."""
    counted = count_values(x)
    distinct = len(counted[0])
    margin: Margin
    if distinct == 1:
        margin = Constant(float(x[0]))
    elif kind == "nominal" and distinct > 2:
        margin = fit_nominal(x)
    elif kind != "continuous" or TIED * distinct <= len(x):
        margin = fit_steps(x, counted)
    else:
        margin = fit_curve(x, counted)
        return margin, margin if len(margin.atoms) else fit_affine(x)
    return margin, margin
