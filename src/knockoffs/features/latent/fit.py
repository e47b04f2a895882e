"""Fit the latent model to a table: margins, one class, the number of classes, several classes, D."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dpotrf

from knockoffs.errors import InputError, KnockoffWarning, name_some
from knockoffs.features.columns import Fixed
from knockoffs.features.em import search_mixture
from knockoffs.features.em_steps import Mixture
from knockoffs.features.gaussian import compact, gaussian_law
from knockoffs.features.gaussian_mixture import MixtureFeatures
from knockoffs.features.latent.cells import FREE, Cells
from knockoffs.features.latent.chain import classes, draw_latent
from knockoffs.features.latent.cuts import Cuts, cuts_of
from knockoffs.features.latent.kinds import check_cells, check_kinds, fit_both
from knockoffs.features.latent.likeness import seems_worse
from knockoffs.features.latent.margins import Margin, read_cells
from knockoffs.features.latent.model import LatentFeatures
from knockoffs.features.latent.offsets import Offsets, offsets_of
from knockoffs.features.latent.order import with_orders
from knockoffs.features.latent.pooling import Shrinkage, choose_shrinkage, shrink_mixture
from knockoffs.features.latent.stochastic_em import (
    ALIKE,
    FLOOR,
    NEAR,
    Fit,
    Frame,
    fit_classes,
    fit_one_class,
    frame_of,
    pool_classes,
    scatter,
)
from knockoffs.features.latent.transform import MOST_CLASSES, candidates_for, choose_transform, further_candidates
from knockoffs.features.neighbour_precision import Links, choose_links
from knockoffs.features.shrinkage import FEW, PLENTY
from knockoffs.features.thresholding import Sparse, choose_sparse
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL
from knockoffs.sampling.diagonal.representatives import ViaRepresentatives
from knockoffs.sampling.swap import check_features

N_AGAIN = 20  # sweeps after which a chain with a new beginning must have found the classes,
FOUND_AGAIN = 0.05  # up to this total variation, beside that of chance
MOSTLY = 0.5  # share of cells that are intervals, above which classes were found in what one class had drawn
MOST_ROWS = 10_000  # of stochastic EM, or 40 for each coordinate: the error of a correlation is then 0.01


def fit_latent(
    X: NDArray,
    *,
    rng: Generator,
    n_jobs: int | None = None,
    kinds: Sequence[str] | None = None,
    feature_of: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    n_classes: int | Iterable[int] | None = None,
    diagonal: str | ViaRepresentatives = DEFAULT_DIAGONAL,
    criterion: str = "held_out",
) -> LatentFeatures:
    """Fit the latent model X_j = g_j(L_j), L a mixture of Gaussians, by stochastic EM.

    Parameters
    ----------
    X : array, shape (n, d)
        Numbers, and codes of labels; NaN where a cell is missing. A row without any observed cell is allowed: its
        cells are drawn from the model, and it says nothing about it.
    rng : numpy.random.Generator
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    kinds : sequence of str, optional
        "continuous", "count", "ordinal", "binary" or "nominal" for each column; inferred if left out.
    feature_of : array-like of int, shape (d,), optional
        Feature of each column.
    names : sequence of str, optional
        Names of the columns, for warnings.
    n_classes : int or iterable of int, optional
        A number, or the numbers to choose among; 1 to 10 if left out, as far as there are rows for them.
    diagonal : str or ViaRepresentatives
        Which matrix D: see ``DIAGONALS``; or through representatives of groups.
    criterion : {"aic", "bic", "held_out"}
        What chooses the number of classes, by the completed L of the model with one class. Held-out rows judge the
        classes as they will be used, with their correlations shrunk; the other two do not know of that.

    Notes
    -----
    At most ``MOST_ROWS`` rows, or 40 for each coordinate if that is more, drawn at random, take part in the search for
    classes and, where L is not known in every cell, in stochastic EM. Margins are learned from all rows, and so are the
    moments of the classes where L is known. Where it is not, classes must prove themselves: a draw from the cells
    finds them again, and, where most cells are intervals, knockoffs with them are as like their columns as those
    without.
    """
    X = np.asarray(X, dtype=float)
    check_cells(X)
    owners = check_features(feature_of, X.shape[1])
    words = check_kinds(X, kinds)
    called = [str(name) for name in names] if names is not None else [str(j) for j in range(X.shape[1])]
    transform_stream, row_stream, search_stream, em_stream, again_stream = rng.spawn(5)
    scored, in_units = fit_both(X, words)
    affine, held_out = choose_transform(X, in_units, rng=transform_stream, n_jobs=n_jobs)
    margins, orders = with_orders(in_units if affine else scored, X, rng=rng.spawn(1)[0])
    frame = frame_of(margins)
    D = len(frame.unit)
    if not D:
        raise InputError("every column of X is constant: there is nothing to select from.")
    cells = _some_rows(read_cells(margins, X), D, row_stream)
    shrunk = _shrinkage(cells, np.ones((len(cells.start), 1)))
    tried, coarse = _candidates(n_classes, len(cells.start), D), (cells.status > FREE).mean() > MOSTLY
    sparse, factors = None, None
    if cells.all_points and tried == [1] and shrunk.common > 0:
        sparse, factors = _of_few_rows(cells.start, shrunk.common, rng)
    fit = fit_one_class(cells, frame, a=shrunk.common, factors=factors, rng=em_stream, n_jobs=n_jobs)
    inner = compact(owners[frame.layout.column_of])

    def model_of(fit: Fit, margins: Sequence[Margin]) -> LatentFeatures:
        laws = tuple(gaussian_law(m, S, diagonal, inner) for m, S in zip(fit.means, fit.covariances, strict=True))
        counted = criterion if values else ""
        mixture = MixtureFeatures(fit.weights, laws, Fixed.none(), inner, values, counted, float(len(X)))
        return LatentFeatures(tuple(margins), mixture, owners, words, values)

    values: dict[int, float] = {}
    model, left_out = None, ""
    if tried != [1]:
        seen = fit.L[_sample(len(fit.L), D, row_stream)]
        found, values = search_mixture(
            seen, tried, criterion=criterion, settle=shrink_mixture, rng=search_stream, n_jobs=n_jobs
        )
        further = further_candidates(len(seen), D) if n_classes is None and not coarse else []
        if found.n_components == MOST_CLASSES and len(further) > 1:
            found, more = search_mixture(
                seen, further, criterion=criterion, settle=shrink_mixture, rng=search_stream, n_jobs=n_jobs
            )
            values |= more
        if found.n_components > 1:
            several = _several(cells, frame, fit, found, margins, em_stream, n_jobs)
            if several is None:
                left_out = "a draw from the cells does not find them again"
            else:
                model = model_of(several.fit, several.in_margins(margins, frame.layout.column_of))
                if coarse and 1 in tried:
                    one = model_of(fit, margins)
                    if seems_worse(model, one, X, rng=again_stream, n_jobs=n_jobs):
                        model, left_out = one, "knockoffs with them are less like their columns than without"
                if not left_out:
                    fit, shrunk = several.fit, several.shrunk
    model = model or model_of(fit, margins)
    _warn_few(shrunk, sparse, len(cells.start), D)
    _warn_near(fit, cells, frame, called)
    notes = _notes(affine, held_out, sparse or shrunk)
    if orders:
        notes += (f"the labels of {name_some(called[j] for j in orders)} in an order that the other columns give them",)
    if left_out:
        notes += (f"{found.n_components} classes were tried and left out: {left_out}",)
    return replace(model, notes=notes)


def _some_rows(cells: Cells, D: int, rng: Generator) -> Cells:
    """Rows for stochastic EM: all, unless they are many and L has to be drawn."""
    return cells if cells.all_points else cells.rows(_sample(len(cells.start), D, rng))


def _sample(n: int, D: int, rng: Generator) -> slice | NDArray[np.intp]:
    """Rows that are enough to find classes: all, unless they are many."""
    most = max(MOST_ROWS, 40 * D)
    return slice(None) if n <= most else np.sort(rng.choice(n, most, replace=False))


def _candidates(n_classes: int | Iterable[int] | None, n: int, D: int) -> list[int]:
    if n_classes is None:
        return candidates_for(n, D)
    listed = list(n_classes) if isinstance(n_classes, Iterable) else [n_classes]
    for k in listed:
        if not isinstance(k, int | np.integer) or not 1 <= k <= n:
            raise InputError(f"n_classes={k!r}: expected whole numbers between 1 and the number of rows, {n}.")
    if not listed:
        raise InputError("n_classes is empty: give a number or a range, for instance range(1, 11).")
    return sorted({int(k) for k in listed})


def _shrinkage(cells: Cells, shares: NDArray) -> Shrinkage:
    """Shrinkage by the scores of the cells.

    A completed L would repeat the covariance it was drawn with, and ask for too little. Scores do not: a correlation
    r of L is v r among scores, v the product of their standard deviations, and its error is that much smaller too.
    Rows are never plenty where cells are intervals: of a 0/1 column that is 1 in a few rows, only those tell.
    """
    points = cells.all_points
    return choose_shrinkage(cells.start, shares, plenty=PLENTY if points else np.inf, by_chance=not points)


def _of_few_rows(L: NDArray, intensity: float, rng: Generator) -> tuple[Sparse | Links | None, NDArray | None]:
    """Say what becomes of correlations where held-out rows are clearly likelier than with all of them shrunk alike.

    And factors of them, shape (D, D), that make it so; nothing where all are shrunk.
    """
    Z = L - L.mean(axis=0)
    Z /= Z.std(axis=0)
    n, D = Z.shape
    sparse = choose_sparse(Z, intensity, rng=rng.spawn(1)[0])
    factors = None if sparse is None else sparse.factors(Z.T @ Z / n)
    if n >= FEW * D:
        return sparse, factors
    alike = np.where(np.eye(D, dtype=bool), 1.0, 1 - intensity)
    others = [alike] if factors is None else [alike, factors]
    return choose_links(Z, others, rng=rng.spawn(1)[0]) or (sparse, factors)


class Several(NamedTuple):
    """Several classes, how far their correlations were shrunk, and the cuts and offsets of the margins with them."""

    fit: Fit
    shrunk: Shrinkage
    cuts: Cuts
    offsets: Offsets

    def in_margins(self, margins: Sequence[Margin], column_of: NDArray[np.intp]) -> tuple[Margin, ...]:
        """Margins by which the classes together have the shares that the columns have."""
        return self.offsets.in_margins(self.cuts.in_margins(margins, column_of), column_of)


def _several(
    cells: Cells,
    frame: Frame,
    one: Fit,
    found: Mixture,
    margins: Sequence[Margin],
    rng: Generator,
    n_jobs: int | None,
) -> Several | None:
    """Several classes that a draw from the cells finds again; half of them where it does not, and none in the end.

    A class is a matter of all coordinates, and where most of them are known by intervals alone, a chain that moves one
    at a time cannot leave the class it is in. What stochastic EM then calls classes are accidents of where its chain
    began, and knockoffs drawn from another beginning are not exchangeable.
    """
    cuts, offsets = cuts_of(margins, frame.layout.column_of), offsets_of(margins, frame.layout)
    while found.n_components > 1:
        shares = found.posterior(one.L)
        shrunk = _shrinkage(cells, shares)
        fit = _fit_several(cells, frame, one, shares, shrunk, rng, n_jobs)
        moved = cuts.under(fit.weights, fit.means, fit.covariances)  # once: with cuts that move EM predicts worse
        lifted = offsets.under(fit.weights, fit.means, fit.covariances)
        again = frame._replace(layout=lifted.in_layout(frame.layout))
        if cells.all_points or _found_again(lifted.move(cuts.move(cells, moved)), again, fit, rng, n_jobs):
            return Several(fit, shrunk, moved, lifted)
        found = search_mixture(one.L, [found.n_components // 2], criterion="aic", rng=rng, n_jobs=n_jobs)[0]
    return None


def _found_again(cells: Cells, frame: Frame, fit: Fit, rng: Generator, n_jobs: int | None) -> bool:
    """Whether classes drawn from the cells, by a chain with a new beginning, have the weights that were fitted."""
    law = classes(fit.weights, fit.means, fit.covariances)
    K, _ = draw_latent(cells, frame.layout, law, rng=rng, n_sweeps=N_AGAIN, n_jobs=n_jobs)
    shares = np.bincount(K, minlength=len(fit.weights)) / len(K)
    return bool(np.abs(shares - fit.weights).sum() / 2 <= FOUND_AGAIN + np.sqrt(len(shares) / len(K)))


def _fit_several(
    cells: Cells, frame: Frame, one: Fit, shares: NDArray, shrunk: Shrinkage, rng: Generator, n_jobs: int | None
) -> Fit:
    """Moments of the rows where L is known, stochastic EM from them where it is not."""
    rows = shares.sum(axis=0)
    means = shares.T @ one.L / rows[:, None]
    centred = (one.L - mean for mean in means)  # one class at a time
    raw = np.stack([(c * share[:, None]).T @ c / share.sum() for c, share in zip(centred, shares.T, strict=True)])
    covariances = pool_classes(rows, raw, cells, frame, shrunk)
    start = Fit(rows / rows.sum(), means, covariances, one.K, one.L)
    if cells.all_points:
        return start
    start = start._replace(K=one.K.copy(), L=one.L.copy())  # they are moved
    return fit_classes(cells, frame, start, shrunk=shrunk, rng=rng, n_jobs=n_jobs)


def _warn_few(shrunk: Shrinkage, sparse: Sparse | Links | None, n: int, D: int) -> None:
    if n < FEW * D:
        how = f"shrunk by {shrunk.common:.2g}"
        if isinstance(sparse, Links):
            how = "taken to go through few links"
        elif sparse is not None:
            how = f"taken for none up to {sparse.threshold:.2g}"
        warnings.warn(
            f"the latent model rests on {n} rows for {D} coordinates: its correlations were {how}. P^X, and with it "
            "the FDR, is less sure; more rows make it surer.",
            KnockoffWarning,
            stacklevel=3,
        )


def _warn_near(fit: Fit, cells: Cells, frame: Frame, names: Sequence[str]) -> None:
    """Warn of columns that (nearly) determine one another: their latent correlations were held below one."""
    sd = np.maximum(cells.start.std(axis=0), 1e-12)
    alike = np.abs(scatter(cells.start, cells.start.mean(axis=0)))
    alike = np.where(frame.within, 0.0, alike / len(cells.start) / np.outer(sd, sd))
    near = set(frame.layout.column_of[(alike > ALIKE).any(axis=0)].tolist())
    for S in fit.covariances:
        sd = np.sqrt(np.diagonal(S))
        R = S / np.outer(sd, sd)
        if dpotrf(R - NEAR * np.eye(len(R)), lower=1)[1] == 0:  # no eigenvalue is that small
            continue
        values, vectors = np.linalg.eigh(R)
        for value, vector in zip(values, vectors.T, strict=True):
            if value > NEAR:
                break
            near |= set(frame.layout.column_of[np.abs(vector) > 0.1].tolist())
    if near:
        warnings.warn(
            f"columns {name_some(names[j] for j in sorted(near))} nearly determine one another. Their latent "
            f"correlations are held below one, by a ridge of {FLOOR:g}, where they would reach it. None of them can "
            "matter much given the others: keep one of them, or make them one feature; dependent='drop' leaves out "
            "exact combinations.",
            KnockoffWarning,
            stacklevel=3,
        )


def _notes(affine: bool, held_out: dict[str, float], shrunk: Shrinkage | Sparse | Links) -> tuple[str, ...]:
    notes = []
    if held_out:
        chosen = "in their own units" if affine else "by their normal scores"
        gain = abs(held_out["affine"] - held_out["normal scores"])
        notes.append(f"smooth columns {chosen} (held-out rows gain {gain:.2g} in log density by it)")
    if str(shrunk):
        notes.append(str(shrunk))
    return tuple(notes)
