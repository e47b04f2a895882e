"""A family fitted to the normal scores of some columns: knockoffs are drawn there and taken back to the units of X."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import name_some
from knockoffs.features.latent.margins import Curve, fit_curve
from knockoffs.features.source import Fitted, FittedSampler
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import KnockoffSampler, draw_pair
from knockoffs.table.table import Kinds, Table


@dataclass(frozen=True)
class Scores:
    """Strictly monotone maps of some columns to their normal scores and back; the other columns stay.

    Parameters
    ----------
    curves : mapping of column to Curve
    """

    curves: Mapping[int, Curve]

    def to(self, X: NDArray) -> NDArray:
        """X with the normal scores of these columns."""
        Z = X.copy()
        for j, curve in self.curves.items():
            Z[:, j] = curve.read(X[:, j]).start[:, 0]
            Z[np.isnan(X[:, j]), j] = np.nan
        return Z

    def back(self, Z: NDArray) -> NDArray:
        """X of normal scores."""
        X = Z.copy()
        for j, curve in self.curves.items():
            X[:, j] = curve.write(Z[:, [j]])
            X[np.isnan(Z[:, j]), j] = np.nan
        return X


@dataclass(frozen=True)
class TransformedSampler:
    """Knockoffs drawn among normal scores: a map of each column alone keeps them exchangeable."""

    inner: KnockoffSampler
    scores: Scores

    @property
    def feature_of(self) -> NDArray[np.intp]:
        """Feature of each column."""
        return self.inner.feature_of

    def sample(self, X: NDArray, rng: Generator) -> Pair:
        """X, its missing cells filled where the family fills them, and its knockoffs, in the units of X."""
        pair = self.inner.sample(self.scores.to(X), rng)
        full = np.where(np.isnan(X), self.scores.back(pair.X), X)  # what was there stays as it was, to the last digit
        return Pair(full, self.scores.back(pair.X_tilde), pair.feature_of)

    def sample_several(self, X: NDArray, m: int, rng: Generator) -> Pair:
        """X and m knockoffs of it, in the units of X."""
        drawn = draw_pair(self.inner, self.scores.to(X), rng, m)
        completed, *copies = map(self.scores.back, drawn.parts)
        return Pair.of([np.where(np.isnan(X), completed, X), *copies], drawn.feature_of)


@dataclass(frozen=True)
class TransformedLaw:
    """P^X of columns whose normal scores have a law that was fitted."""

    law: Any
    scores: Scores

    def log_density(self, X: NDArray) -> NDArray:
        """Log density of every row, by the law of the scores and the slopes of the maps."""
        slopes = [curve.log_slope(X[:, j]) for j, curve in self.scores.curves.items()]
        return self.law.log_density(self.scores.to(X)) + np.sum(slopes, axis=0)

    def sample(self, n: int, rng: Generator) -> NDArray:
        """Draw n rows."""
        return self.scores.back(self.law.sample(n, rng))

    def conditional(self, j: int, X: NDArray, rng: Generator, n_draws: int) -> NDArray:
        """Draws of X_j given the other columns of each row, shape (n_draws, n), if the law of the scores has them."""
        drawn = self.law.conditional(j, self.scores.to(X), rng, n_draws)
        return (
            self.scores.curves[j].write(drawn.reshape(-1, 1)).reshape(drawn.shape) if j in self.scores.curves else drawn
        )

    def as_sampler(self, **how: object) -> TransformedSampler:
        """Sampler of knockoffs in the units of X."""
        from knockoffs.features.source import settled

        return TransformedSampler(settled(self.law, how).sampler, self.scores)

    def say(self) -> str:
        """Say what was fitted."""
        inner = self.law.say() if hasattr(self.law, "say") else "P^X"
        return f"{inner.rstrip('.')}, fitted to the normal scores of {len(self.scores.curves)} columns."


@dataclass(frozen=True)
class Transformed:
    """A source of knockoffs that is fitted to the normal scores of some columns.

    Parameters
    ----------
    source : Fitted
    columns : tuple of str
    """

    source: Fitted
    columns: tuple[str, ...]

    def read(self, X: object, *, kinds: Kinds = None, argument: str = "X", min_rows: int = 1) -> Table:
        """Read the table as the family takes it."""
        return self.source.read(X, kinds=kinds, argument=argument, min_rows=min_rows)

    def __call__(self, table: Table, *, rng: Generator, n_jobs: int | None = None) -> FittedSampler:
        """Learn the maps, and fit the family to the scores."""
        places = [table.names.index(name) for name in self.columns]
        scores = Scores({j: fit_curve(table.X[~np.isnan(table.X[:, j]), j]) for j in places})
        found = self.source(replace(table, X=scores.to(table.X)), rng=rng, n_jobs=n_jobs)
        notes = {**found.notes, "transformation": f"normal scores of {name_some(self.columns)}"}
        law: Any = TransformedLaw(found.model, scores)
        return FittedSampler(TransformedSampler(found.sampler, scores), law, notes)


def can_transform(source: object, table: Table, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Those columns whose normal scores the source can be fitted to: numbers of a family that is fitted, no atoms."""
    if not isinstance(source, Fitted) or "numbers" not in source.family.takes:
        return ()
    place = {column.name: j for j, column in enumerate(table.columns) if column.kind == "continuous"}
    numbers = [name for name in columns if name in place]
    seen = {name: table.X[~np.isnan(table.X[:, place[name]]), place[name]] for name in numbers}
    return tuple(name for name, x in seen.items() if len(np.unique(x)) > 2 and not len(fit_curve(x).atoms))
