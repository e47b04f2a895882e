"""The fitted latent model: X_j = g_j(L_j), L given the class K Gaussian."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from knockoffs.errors import ColumnsError, InputError
from knockoffs.features.covariance import Estimate
from knockoffs.features.gaussian import compact, gaussian_law
from knockoffs.features.gaussian_mixture import MixtureFeatures, gaussian_mixture_features
from knockoffs.features.latent.chain import Classes, classes, draw_latent, log_density_of, run_chain
from knockoffs.features.latent.margins import (
    FREE,
    POINT,
    ColumnMap,
    Coordinates,
    LatentCells,
    Steps,
    lay_out,
    read_cells,
    write_values,
)
from knockoffs.features.latent.nominal import Nominal
from knockoffs.features.latent.resampling import LatentResampler
from knockoffs.features.latent.search import Shrinkage
from knockoffs.features.latent.stochastic_em import separate
from knockoffs.sampling.conjugates.gaussian import Gaussian
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL
from knockoffs.sampling.pair import Pair, check_features
from knockoffs.sampling.sampler import draw_copies
from knockoffs.table.columns import KINDS

N_SWEEPS = (20, 60)  # fewest and most sweeps of a draw, where a cell is an interval; without one, the first is exact
MIXING = 6.0  # sweeps over the share of a coarse coordinate's variance that the others leave: see ``n_sweeps``
COARSE = 0.2  # share of the rows that a step holds in a column whose coordinate is forgotten slowly
N_DRAWS = 64  # of importance sampling for a density
THIN = 5  # sweeps between two draws of a conditional


@dataclass(frozen=True)
class LatentFeatures:
    """P^X of X_j = g_j(L_j), where L given K = k is N(mean_k, S_k)."""

    margins: tuple[ColumnMap, ...]  # g_j of each column
    mixture: MixtureFeatures  # law of (K, L) over the latent coordinates, with the matrices D of its knockoffs
    feature_of: NDArray[np.intp]  # shape (n_columns,)
    kinds: tuple[str, ...]  # "continuous", "count", "ordinal", "binary" or "nominal", for each column
    # criterion for each number of classes tried; empty for given parameters
    criterion: dict[int, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what was decided in the fit

    fills_missing: ClassVar[bool] = True  # cells that are NaN are drawn, given the others of their row

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        return len(self.margins)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.mixture.n_components

    @cached_property
    def layout(self) -> Coordinates:
        """Coordinates of each column."""
        return lay_out(self.margins)

    @cached_property
    def law(self) -> Classes:
        """The mixture as the compiled loops read it."""
        laws = self.mixture.laws
        return classes(self.mixture.weights, np.stack([g.mean for g in laws]), np.stack([g.covariance for g in laws]))

    def read(self, X: NDArray) -> LatentCells:
        """Say what the cells of X, shape (n, n_columns), NaN where missing, tell of L."""
        X = np.asarray(X, dtype=float)
        if X.ndim != 2 or X.shape[1] != self.n_columns:
            raise InputError(f"X has shape {X.shape}: the latent model has {self.n_columns} columns.")
        if np.isinf(X).any():
            raise ColumnsError(np.flatnonzero(np.isinf(X).any(axis=0)), "columns", "have infinite values.")
        return read_cells(self.margins, X)

    def write(self, L: NDArray) -> NDArray:
        """X = g(L), shape (n, n_columns)."""
        return write_values(self.margins, L)

    @cached_property
    def n_sweeps(self) -> int:
        """Sweeps of a draw by default: MIXING over the smallest share of variance that the others leave a coordinate.

        Only coordinates of coarse columns count (0/1, short scales, labels): a narrow interval holds L where it is.
        """
        coarse = np.array([_is_coarse(self.margins[j]) for j in self.layout.column_of], dtype=bool)
        laws = zip(self.law.precisions, self.mixture.laws, strict=True)
        left = np.stack([1 / (np.diagonal(P) * np.diagonal(law.covariance)) for P, law in laws])
        return int(np.clip(np.ceil(MIXING / np.min(left[:, coarse], initial=1.0)), *N_SWEEPS))

    def draw_hidden(
        self, X: NDArray, rng: Generator, *, n_sweeps: int | None = None, n_jobs: int | None = None
    ) -> tuple[NDArray[np.intp], NDArray]:
        """(K, L) given the observed cells; exact where no cell is an interval, else the end of n_sweeps sweeps."""
        cells = self.read(X)
        sweeps = n_sweeps or (self.n_sweeps if (cells.status > FREE).any() else 1)
        return draw_latent(cells, self.law, rng=rng, n_sweeps=sweeps, n_jobs=n_jobs)

    def as_sampler(self, *, n_sweeps: int | None = None, n_jobs: int | None = None) -> LatentSampler:
        """Knockoffs by Algorithm 1 with the hidden node (K, L)."""
        return LatentSampler(self, n_sweeps, n_jobs)

    def sample(self, n: int, rng: Generator) -> NDArray:
        """Draw n rows of X."""
        K = rng.choice(self.n_classes, size=n, p=self.mixture.weights)
        L = rng.standard_normal((n, len(self.layout.column_of)))
        for k, law in enumerate(self.mixture.laws):
            L[K == k] = law.mean + L[K == k] @ law.factor.T  # rows are draws, so the factor multiplies from the right
        return self.write(L)

    def log_density(self, X: NDArray, *, n_draws: int = N_DRAWS) -> NDArray:
        """Log P^X of each row: a density in points, a probability in steps and labels, missing cells integrated out.

        Exact where every cell is a point or the only other one is a step. Otherwise an estimate by importance sampling
        with fixed random numbers: the same rows have the same value, and its error falls as n_draws grows.
        """
        X = np.asarray(X, dtype=float)
        cells = self.read(X)
        jacobian = sum((margin.log_slope(X[:, j]) for j, margin in enumerate(self.margins)), np.zeros(len(X)))
        if cells.all_points:
            return np.logaddexp.reduce(self.mixture.log_joint(cells.start), axis=1) + jacobian
        return log_density_of(cells, self.law, n_draws=n_draws) + jacobian

    def conditional(
        self,
        j: int,
        X: NDArray,
        rng: Generator,
        n_draws: int,
        *,
        n_sweeps: int | None = None,
        n_jobs: int | None = None,
    ) -> NDArray:
        """Draws of X_j given the other observed columns, shape (n_draws, n)."""
        hidden = np.array(X, dtype=float)
        hidden[:, j] = np.nan
        cells = self.read(hidden)
        own = self.layout.column_of == j
        exact = not (cells.status > FREE).any()
        sweeps = 1 if exact else n_sweeps or self.n_sweeps
        K, L = draw_latent(cells, self.law, rng=rng, n_sweeps=sweeps, n_jobs=n_jobs)
        out = np.empty((n_draws, len(L)))
        for draw in range(n_draws):
            run_chain(L, K, cells, self.law, rng=rng, n_sweeps=1 if exact else THIN, n_jobs=n_jobs)
            out[draw] = self.margins[j].write(L[:, own])
        return out

    def resampler(self, X: NDArray, rng: Generator, *, n_jobs: int | None = None) -> LatentResampler:
        """Draws of columns for conditional tests, given L of the others: no draw needs a chain."""
        hidden, states = rng.spawn(2)
        L = self.draw_hidden(X, hidden, n_jobs=n_jobs)[1]
        return LatentResampler(self, X, L, states.bit_generator.seed_seq)  # type: ignore[arg-type]

    def coordinates(self, X: NDArray) -> NDArray:
        """L of the rows in which it is known, by whose moments one class is told; of several classes no rows."""
        cells = self.read(X)
        known = (cells.status == POINT).all(axis=1) & (self.n_classes == 1)
        return cells.start[known]

    def regroup(self, feature_of: NDArray[np.intp], diagonal: str) -> LatentFeatures:
        """Return the same law with D for knockoffs of other features, shape (n_columns,)."""
        inner = compact(feature_of[self.layout.column_of])
        return replace(self, mixture=self.mixture.regroup(inner, diagonal), feature_of=feature_of)

    def with_moments(self, found: Estimate, rows: float, diagonal: str) -> LatentFeatures:
        """P^X of one class with other moments of L, and D anew."""
        inner = self.mixture.feature_of
        S = separate(found.covariance, np.eye(len(found.mean), dtype=bool))
        law = gaussian_law(found.mean, S, diagonal, inner)
        mixture = replace(self.mixture, laws=(law,), rows=rows)
        shrunk = str(Shrinkage(found.intensity, (0.0,)))
        told = f"correlations from {rows:,.0f} rows" + (f", {shrunk}" if shrunk else "")
        notes = tuple(note for note in self.notes if not note.startswith("correlations"))
        return replace(self, mixture=mixture, notes=(*notes, told))

    def say(self, names: Sequence[str] | None = None) -> str:
        """One sentence: what P^X is, and how it was chosen."""
        counted = Counter(self.kinds)
        kinds = ", ".join(f"{counted[kind]} {kind}" for kind in KINDS if counted[kind])
        classes = "one class" if self.n_classes == 1 else f"{self.n_classes} classes"
        D = len(self.layout.column_of)
        chosen = ", the fewest whose held-out log density is within one standard error of the best"
        notes = "".join(f"; {note}" for note in self.notes)
        said = classes + (chosen if self.criterion else "") + notes
        return f"P^X is a latent Gaussian model of {kinds} columns in {D} coordinates, {said}."


def _is_coarse(margin: ColumnMap) -> bool:
    if isinstance(margin, Nominal):
        return bool((ndtr(margin.high) - ndtr(margin.low)).max() > COARSE)
    return isinstance(margin, Steps) and bool(np.diff(ndtr(margin.cuts)).max() > COARSE)


@dataclass(frozen=True)
class LatentSampler:
    """Draw (K, L) given the observed cells, L_tilde by the Gaussian conjugate of its class, X_tilde = g(L_tilde).

    (L, L_tilde) is exchangeable in every feature and g acts column by column, so (X, X_tilde) is (Theorem 3.2).
    """

    model: LatentFeatures
    n_sweeps: int | None = None
    n_jobs: int | None = None
    draws_several: ClassVar[bool] = True

    @property
    def feature_of(self) -> NDArray[np.intp]:
        """Feature of each column."""
        return self.model.feature_of

    def sample(self, X: NDArray, rng: Generator, m: int = 1) -> Pair:
        """X, its missing cells drawn, beside m knockoffs of it."""
        model, X = self.model, np.asarray(X, dtype=float)
        cells = model.read(X)
        if cells.all_points:
            L, network = cells.start, model.mixture.as_network()
            copies: Iterable[NDArray] = draw_copies(network, L, rng, m)
            X = self._complete(X, L)  # a constant column has no coordinate, and may lack cells
            del L, cells  # each is as large as the table
        else:
            del cells
            K, L = model.draw_hidden(X, rng, n_sweeps=self.n_sweeps, n_jobs=self.n_jobs)
            conjugate = Gaussian(model.mixture.laws, component="K")
            copies = conjugate.several(L, {"K": K}, m, rng) if m > 1 else [conjugate.sample(L, {"K": K}, rng)]
            X = self._complete(X, L)
        return Pair.of([X, *map(model.write, copies)], model.feature_of)

    def _complete(self, X: NDArray, L: NDArray) -> NDArray:
        """X with its missing cells filled from L."""
        if not np.isnan(X.sum()):  # no memory where nothing is missing
            return X
        missing = np.isnan(X)
        return np.where(missing, self.model.write(L), X) if missing.any() else X


def latent_features(
    margins: Sequence[ColumnMap],
    weights: ArrayLike,
    means: ArrayLike,
    covariances: ArrayLike,
    *,
    diagonal: str = DEFAULT_DIAGONAL,
    feature_of: ArrayLike | None = None,
) -> LatentFeatures:
    """P^X with given margins and given parameters of L.

    Weights, means and covariances of the classes, shapes (l,), (l, D) and (l, D, D), are over the coordinates of all
    columns in order. The coordinates of a column, and of a feature, are swapped as one.

    >>> from knockoffs.features.latent.margins import Affine, Steps
    >>> margins = [Affine(), Steps(np.array([0.0, 1.0]), np.array([-np.inf, 0.0, np.inf]))]
    >>> model = latent_features(margins, [1.0], [[0, 0]], [[[1, 0.5], [0.5, 1]]])
    >>> X = model.sample(4, np.random.default_rng(0))
    >>> sorted(set(model.as_sampler().sample(X, np.random.default_rng(1)).X_tilde[:, 1]) - {0.0, 1.0})
    []
    """
    owners = check_features(feature_of, len(margins))
    layout = lay_out(margins)
    inner = compact(owners[layout.column_of])
    mixture = gaussian_mixture_features(weights, means, covariances, diagonal=diagonal, feature_of=inner)
    words = {Nominal: "nominal", Steps: "ordinal"}
    return LatentFeatures(tuple(margins), mixture, owners, tuple(words.get(type(m), "continuous") for m in margins))
