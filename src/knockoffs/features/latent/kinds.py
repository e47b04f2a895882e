"""What the columns of a table are, and the margin each kind asks for.

The levels of a label lie along the directions of the other columns in which they differ most (optimal scoring). Held-
out rows decide how many directions there are; the target is not looked at. Cuts are quantiles of the standard normal,
and with several classes those of their mixture: otherwise knockoffs would not have the distribution of their columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import ndtr

from knockoffs.errors import ColumnsError, InputError
from knockoffs.features.covariance import N_FOLDS, fold_of, simplest
from knockoffs.features.latent.margins import (
    TIED,
    ColumnMap,
    Constant,
    Rounded,
    Steps,
    count_values,
    fit_affine,
    fit_curve,
    fit_steps,
    read_cells,
)
from knockoffs.features.latent.nominal import Nominal, fit_nominal, mixture_quantiles
from knockoffs.table.columns import check_kinds, recognise_kind

SEEN = 10  # cells of a column that must be observed, or all of them in a table with fewer rows


def kinds_of(X: NDArray, kinds: Sequence[str] | None) -> tuple[str, ...]:
    """Return the kinds given, or inferred where None; a kind that contradicts its column is refused."""
    if kinds is None:
        return tuple(recognise_kind(x)[0] for x in X.T)
    if len(kinds) != X.shape[1]:
        raise InputError(f"kinds has {len(kinds)} words: expected {X.shape[1]}, one for each column.")
    check_kinds(kinds)
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


def fit_both(X: NDArray, kinds: Sequence[str]) -> tuple[tuple[ColumnMap, ...], tuple[ColumnMap, ...]]:
    """Margins of every column with smooth columns by their normal scores, and with them in their own units."""
    pairs = (_fit_margin(x[~np.isnan(x)], kind) for x, kind in zip(X.T, kinds, strict=True))
    scored, in_units = zip(*pairs, strict=True)
    return scored, in_units


def _fit_margin(x: NDArray, kind: str) -> tuple[ColumnMap, ColumnMap]:
    """ColumnMap by normal scores and, of a smooth column, the affine one; the values are sorted once."""
    counted = count_values(x)
    distinct = len(counted[0])
    margin: ColumnMap
    if distinct == 1:
        margin = Constant(float(x[0]))
    elif kind == "nominal" and distinct > 2:
        margin = fit_nominal(x)
    elif kind != "continuous" or TIED * distinct <= len(x):
        margin = fit_steps(x, counted)
        if is_fine(*counted):
            affine = fit_affine(x)
            return margin, Rounded(affine.centre, affine.scale, counted[0])
    else:
        margin = fit_curve(x, counted)
        return margin, margin if len(margin.atoms) else fit_affine(x)
    return margin, margin


def is_fine(values: NDArray, counts: NDArray, *, fewest: int = 15, largest: float = 0.25) -> bool:
    """Whether distinct values are at least ``fewest``, none with more than the share ``largest`` of the cells.

    Such a column may be in its own units.
    """
    return len(values) >= fewest and counts.max() <= largest * counts.sum()


def place_levels(margins: Sequence[ColumnMap], X: NDArray, *, most_rows: int = 10_000) -> tuple[ColumnMap, ...]:
    """Margins in which the levels of every nominal column lie where the other columns place them.

    About ``most_rows`` of the rows that have the label, evenly spaced, place them.
    """
    nominal = [j for j, margin in enumerate(margins) if isinstance(margin, Nominal)]
    placed = list(margins)
    for j in nominal:
        rows = np.flatnonzero(~np.isnan(X[:, j]))
        rows = rows[:: max(1, len(rows) // most_rows)]
        others = [_seen(margin, x) for i, (margin, x) in enumerate(zip(margins, X[rows].T, strict=True)) if i != j]
        Z = np.hstack([np.empty((len(rows), 0)), *others])
        Z = Z[:, Z.std(axis=0) > 0]
        margin = margins[j]
        assert isinstance(margin, Nominal)
        level = margin.place(X[rows, j])
        placed[j] = fit_nominal(X[~np.isnan(X[:, j]), j], positions(Z, level, len(margin.codes)))
    return tuple(placed)


def _seen(margin: ColumnMap, x: NDArray) -> NDArray:
    """Score of a column, shape (n, c): 0/1 for each level of labels. A missing cell is at the mean."""
    if not isinstance(margin, Nominal):
        return read_cells([margin], x[:, None]).start
    shown = (margin.place(x)[:, None] == np.arange(len(margin.codes))).astype(float)
    return np.where(np.isnan(x)[:, None], margin.shares, shown)


def positions(Z: NDArray, level: NDArray[np.intp], n_levels: int, *, determined: float = 0.9) -> NDArray:
    """Where levels lie in as many directions of Z as held-out rows find, shape (n_levels, r), r >= 1.

    The number of directions is the smallest within one standard error of the best, by the log probability of the
    levels of held-out rows given Z, shape (n, D). It is at most log2 of the levels, so that each of them says
    something of every coordinate. Without any direction, the levels lie in the order of their codes. There is no
    second direction where the first explains more than ``determined`` of the variance of the levels' values: the boxes
    of two labels that determine one another would have to agree, and in one direction they do.
    """
    folds = fold_of(len(level))
    most = min(int(np.log2(n_levels)), n_levels - 1, Z.shape[1])
    by_number: list[list[NDArray]] = [[] for _ in range(most + 1)]
    for k in range(N_FOLDS):
        held = folds == k
        probabilities = _log_probabilities(Z[~held], level[~held], Z[held], level[held], n_levels)
        for values, found in zip(by_number, probabilities, strict=False):
            values.append(found)
    r = simplest([np.concatenate(values) for values in by_number])
    if r == 0:
        return np.arange(n_levels, dtype=float)[:, None]
    explained, theta, _, _ = directions(Z, level, n_levels)
    return (theta * np.sqrt(explained))[:, : 1 if explained[0] > determined else r]


def directions(
    Z: NDArray, level: NDArray[np.intp], n_levels: int, *, ridge: float = 0.02, pseudo: float = 0.5
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Directions of Z, shape (n, D), in which levels differ, by falling strength.

    A share ``ridge`` of its variance is added to that of each column of Z, and ``pseudo`` rows to each level, so that
    one without any has a place.
    Returned are the share of the variance of the levels' values that each direction explains, shape (r,); these values,
    with variance 1, shape (n_levels, r); the directions, by which Z has their regression, shape (D, r); and the shares
    of the levels, shape (n_levels,).
    """
    G = (level[:, None] == np.arange(n_levels)).astype(float)
    shares = (G.sum(axis=0) + pseudo) / (len(G) + pseudo * n_levels)
    C = (Z - Z.mean(axis=0)).T @ G / len(Z)
    V = np.cov(Z.T, bias=True).reshape(Z.shape[1], -1)
    B = np.linalg.solve(V + ridge * np.diag(np.diagonal(V)) + 1e-12 * np.eye(len(V)), C)
    between = C.T @ B
    explained, theta = eigh((between + between.T) / 2, np.diag(shares))
    some = np.arange(n_levels)[::-1][: min(n_levels - 1, Z.shape[1])]
    return explained[some].clip(1e-9, 1 - 1e-3), theta[:, some], B @ theta[:, some], shares


def _log_probabilities(
    Z: NDArray, level: NDArray[np.intp], Z_held: NDArray, held: NDArray[np.intp], n_levels: int
) -> list[NDArray]:
    """Log probability of the held rows' levels given Z_held, by 0, 1, 2, ... directions of the other rows.

    Along a direction that explains e, a level with value t has mean e t and variance e (1 - e). One row in a hundred
    may be of any level, whatever Z says.
    """
    if not Z.shape[1]:
        return [np.zeros(len(held))]
    explained, theta, B, shares = directions(Z, level, n_levels)
    score = np.tile(np.log(shares), (len(held), 1))
    rows, found = np.arange(len(held)), []
    for e, t, b in [(None, None, None), *zip(explained, theta.T, B.T, strict=True)]:
        if e is not None:
            score -= ((Z_held - Z.mean(axis=0)) @ b[:, None] - e * t) ** 2 / (2 * e * (1 - e))
        p = np.exp(score - score.max(axis=1, keepdims=True))
        found.append(np.log(0.99 * p[rows, held] / p.sum(axis=1) + 0.01 * shares[held]))
    return found


def cut_again(
    margins: Sequence[ColumnMap], column_of: NDArray[np.intp], weights: NDArray, means: NDArray, covariances: NDArray
) -> tuple[ColumnMap, ...]:
    """Margins whose values have the same shares under a mixture as they had under the standard normal.

    ``column_of`` is the column of each coordinate.
    """
    deviations = np.sqrt(np.einsum("kii->ki", covariances))
    moved = list(margins)
    for j, margin in enumerate(margins):
        own = column_of == j
        if isinstance(margin, Steps):
            inner = mixture_quantiles(ndtr(margin.cuts[1:-1]), weights, means[:, own][:, 0], deviations[:, own][:, 0])
            moved[j] = replace(margin, cuts=np.concatenate([[-np.inf], inner, [np.inf]]))
        elif isinstance(margin, Nominal):
            moved[j] = margin.under(weights, means[:, own], deviations[:, own])
    return tuple(moved)
