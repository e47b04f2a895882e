"""Knockoffs of a fixed design (Barber and Candès, 2015): nothing is assumed about the rows of X.

No swap changes the Gram matrix of [X, X_tilde]. If y is linear in X with Gaussian noise, swaps of null features do not
change the law of [X, X_tilde]'y either; a statistic that depends on the rows through these two alone is then valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from knockoffs.errors import InputError
from knockoffs.features.gaussian import free_columns
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL, solve_diagonal
from knockoffs.sampling.pair import Pair
from knockoffs.table.redundancy import constant_columns
from knockoffs.table.table import Table
from knockoffs.table.target import Target


@dataclass(frozen=True)
class FixedDesign:
    """Knockoffs of the rows of one table, and of no others."""

    X: NDArray  # shape (n, n_columns)
    feature_of: NDArray[np.intp]  # shape (n_columns,): feature that owns each column
    # shape (p,): columns that are no covariates. Covariates are their own knockoffs: y may depend on them as on the
    # intercept.
    tested: NDArray[np.intp]
    n_added: int  # rows added to X where there are too few for knockoffs; each is the mean row
    # shape (n + n_added, p + k): orthonormal: what intercepts and covariates, k columns, leave of the tested columns;
    # then these
    span: NDArray
    unit: NDArray  # shape (p,): lengths of the tested columns, centred
    # shape (p, p): in these units: T is upper triangular, and the first p columns of ``span`` times T are what is left
    # of the tested columns; D is X'X less X'X_tilde
    T: NDArray
    D: NDArray  # shape (p, p)

    provided = (
        "provided that y is linear in X with independent Gaussian noise of one variance; nothing is assumed about X."
    )

    def as_sampler(self) -> FixedDesign:
        """Return itself: there is no law to make a network of."""
        return self

    def sample(self, X: NDArray, rng: Generator) -> Pair:
        """X and its knockoffs, with the rows that were added; the directions beside X are drawn at random.

        In the units of T, with S = T'T, X_tilde = X - Q T S^-1 D + U L', where Q are the first p columns of ``span``,
        LL' = 2D - D S^-1 D, and U is orthonormal and orthogonal to ``span``.
        """
        if X is not self.X and not np.array_equal(X, self.X):
            raise InputError("feature_model='fixed' has knockoffs of the rows that it was made of, and of no others.")
        p = len(self.T)
        padded = np.vstack([X, np.broadcast_to(X.mean(axis=0), (self.n_added, X.shape[1]))])
        noise = rng.standard_normal((len(padded), p))
        for _ in range(2):  # the second time removes what rounding left
            noise -= self.span @ (self.span.T @ noise)
        U = qr(noise, mode="economic")[0]
        half = solve_triangular(self.T, self.D, trans="T")  # T S^-1 D
        values, vectors = np.linalg.eigh(2 * self.D - half.T @ half)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        X_tilde = padded.copy()
        X_tilde[:, self.tested] += (U @ root.T - self.span[:, :p] @ half) * self.unit
        return Pair(padded, X_tilde, self.feature_of)

    def pad(self, target: Target, rng: Generator) -> Target:
        """Target of all rows: y, and noise of its estimated variance in the rows that were added."""
        if not self.n_added:
            return target
        y, span = target.values, self.span[: len(target)]
        residual = y - span @ (span.T @ y)
        spread = np.sqrt(residual @ residual / (len(y) - span.shape[1] + 1))  # one column is of the added rows
        noise = y.mean() + spread * rng.standard_normal(self.n_added)
        return replace(target, values=np.concatenate([y, noise]))

    def say(self, names: Sequence[str] | None = None) -> str:
        """Sentence on what the guarantee rests on."""
        added = (
            f" {self.n_added} rows were added to X, and noise of the estimated variance to y, because the construction "
            "needs twice as many rows as columns."
        )
        return f"The rows of X are a fixed design (Barber and Candès, 2015).{added if self.n_added else ''}"


def fixed_design(
    X: NDArray,
    *,
    rng: Generator | None = None,
    n_jobs: int | None = None,
    diagonal: str = DEFAULT_DIAGONAL,
    feature_of: NDArray[np.intp] | None = None,
    covariates: Sequence[int] = (),
    names: Sequence[str] | None = None,
) -> FixedDesign:
    """Make a fixed design of the rows of X: no swap with its knockoffs changes the Gram matrix.

    X, shape (n, n_columns), must have full rank with the intercept. ``covariates`` are columns that are not tested;
    ``rng`` and ``n_jobs`` are not used.
    """
    n, d = X.shape
    varying = np.setdiff1d(np.arange(d), constant_columns(X))  # a constant column is its own knockoff
    free_columns(X[:, varying], names=None if names is None else [names[j] for j in varying])
    among = np.isin(varying, covariates)
    tested, beside = varying[~among], varying[among]
    p, k = len(tested), 1 + len(beside)
    if n <= p + k:
        raise InputError(
            f"feature_model='fixed' needs more rows than columns, and X has {n} rows and {d} columns (and the "
            "intercept): use feature_model='auto', or drop columns."
        )
    n_added = max(2 * p + k - n, 0)
    n_added += n_added > 0  # these have an intercept of their own
    owner = np.arange(d) if feature_of is None else np.asarray(feature_of)
    centred = np.zeros((n + n_added, d))
    centred[:n] = X - X.mean(axis=0)
    intercepts = np.eye(2)[(np.arange(n + n_added) >= n).astype(int), : 1 + (n_added > 0)]
    unit = np.sqrt((centred**2).sum(axis=0))
    Q, T = qr(np.hstack([intercepts, *(centred[:, some] / unit[some] for some in (beside, tested))]), mode="economic")
    T = T[-p:, -p:]
    D = solve_diagonal(T.T @ T, diagonal, np.unique(owner[tested], return_inverse=True)[1])
    return FixedDesign(X, owner, tested, n_added, np.roll(Q, p, axis=1), unit[tested], T, D)


def known_rows(table: Table, target: Target) -> tuple[Table, Target, NDArray[np.intp] | None]:
    """Table and target of the rows whose target is known, and which they are; None if all are."""
    known = target.known_rows
    if isinstance(known, slice):
        return table, target, None
    return table.rows(known), replace(target, observed=None), np.flatnonzero(known)
