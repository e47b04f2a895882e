"""The conditional randomization test of every feature (Candes et al., 2018), distilled (Liu et al., 2022).

H_j: y is independent of X_j given the other features. If P^X is right, X_j and fresh draws of it given the others are
exchangeable under H_j given y and the others, so that a statistic that treats them alike gives an exact p-value,
whatever model of y it uses. The costly part, a model of y, sees y and the other features only and is fitted once a
feature; a draw costs a few inner products. Unlike knockoffs there is no smallest number of discoveries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
from joblib import delayed
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.conditional_tests.adjust import adjust_p_values
from knockoffs.conditional_tests.distil import distil
from knockoffs.conditional_tests.sequential import ENOUGH, sequential_p_value
from knockoffs.conditional_tests.statistic import residual_statistic
from knockoffs.errors import ColumnsError, InputError
from knockoffs.filter import check_fdr
from knockoffs.machine.parallel import parallel_map
from knockoffs.progress import track

N_PILOT = 100  # draws for means and variances: the shared error of the mean is a tenth of a standard deviation
CELLS = 500_000  # of draws held at a time


class Conditional(Protocol):
    """A P^X that can draw one feature given all the others."""

    def conditional(self, j: int, X: NDArray, rng: Generator, n_draws: int) -> NDArray:
        """Draw X_j given the other columns of each row of X, shape (n_draws, n)."""
        ...


@dataclass(frozen=True)
class Tested:
    """p-values of all features.

    Attributes
    ----------
    names : tuple of str
    p_values : array, shape (d,)
    q_values : array, shape (d,)
        Adjusted p-values: the smallest FDR at which each feature is selected.
    selected : array of bool, shape (d,)
    n_draws : array of int, shape (d,)
        Draws that each p-value rests on.
    notes : dict
    """

    names: tuple[str, ...]
    p_values: NDArray
    q_values: NDArray
    selected: NDArray[np.bool_]
    n_draws: NDArray[np.intp]
    notes: dict[str, str] = field(default_factory=dict)


def randomization_tests(
    model: Conditional,
    X: NDArray,
    y: NDArray,
    *,
    kind: str,
    fdr: float = 0.1,
    rng: Generator,
    n_jobs: int | None = None,
    names: Sequence[str] | None = None,
    nominal: Sequence[int] = (),
    response_model: object = "best",
    adjustment: str = "bh",
    max_draws: int | None = None,
    enough: int = ENOUGH,
    encode: Callable[[NDArray, Columns], NDArray] | None = None,
    feature_of: NDArray[np.intp] | None = None,
) -> Tested:
    """Test every feature by the conditional randomization test, and select at an FDR.

    Parameters
    ----------
    model : Conditional
        P^X with conditionals.
    X : array, shape (n, n_columns)
    y : array, shape (n,)
        Numbers, or codes of classes.
    kind : {"number", "count", "binary", "classes", "ordinal"}
        What y is.
    fdr : float
    rng : numpy.random.Generator
    n_jobs : int, optional
        Features at a time; the answer does not depend on it.
    names : sequence of str, optional
    nominal : sequence of int
        Columns whose values are labels without an order.
    response_model : {"best", "lasso", "boosting"} or estimator
        Model of y without the feature; "best" is the one whose held-out residuals are smaller.
    adjustment : {"bh", "by"}
    max_draws : int, optional
        Most draws for a p-value; by default five times what the smallest level of BH, fdr / d, asks for, 500 at least.
    enough : int
        Draws as large as the observed statistic after which a p-value is settled.
    encode : callable, optional
        ``(rest, columns) -> array``: the columns other than those of the feature as the model of y takes them, labels
        as indicators.
    feature_of : array of int, shape (n_columns,), optional
        Feature that owns each column, where features are groups: a group is drawn anew as a whole, and its statistic is
        the most striking of its columns'.
    """
    X, y, fdr = np.asarray(X, dtype=float), np.asarray(y), check_fdr(fdr)
    if X.ndim != 2 or y.shape != (len(X),):
        raise InputError(f"X has shape {X.shape} and y {y.shape}: expected (n, d) and (n,).")
    incomplete = np.flatnonzero(~np.isfinite(X).all(axis=0))
    if incomplete.size:
        raise ColumnsError(incomplete, "columns", "have cells that are missing or infinite: complete them first.")
    if not hasattr(model, "conditional"):
        raise InputError(f"{type(model).__name__} has no conditional(j, X, rng, n_draws): it cannot be tested with.")
    feature_of = np.arange(X.shape[1]) if feature_of is None else np.asarray(feature_of)
    d = int(feature_of.max()) + 1
    names = tuple(f"x{j}" for j in range(d)) if names is None else tuple(str(name) for name in names)
    if len(names) != d:
        raise InputError(f"names has {len(names)} names for {d} features.")
    return tested_features(
        model,
        X,
        y,
        kind=kind,
        fdr=fdr,
        rng=rng,
        n_jobs=n_jobs,
        names=names,
        nominal=nominal,
        response_model=response_model,
        encode=encode,
        feature_of=feature_of,
        adjustment=adjustment,
        max_draws=max_draws,
        enough=enough,
    )


def tested_features(
    model: Conditional,
    X: NDArray,
    y: NDArray,
    *,
    kind: str,
    fdr: float,
    rng: Generator,
    n_jobs: int | None,
    names: Sequence[str],
    nominal: Sequence[int],
    response_model: object,
    encode: Callable[[NDArray, Columns], NDArray] | None,
    feature_of: NDArray[np.intp],
    adjustment: str = "bh",
    max_draws: int | None = None,
    enough: int = ENOUGH,
) -> Tested:
    """Test as ``randomization_tests`` does, what was checked before."""
    d = len(names)
    owned = [np.flatnonzero(feature_of == feature) for feature in range(d)]
    if len(feature_of) > d and not hasattr(model, "conditional_together"):
        raise InputError(
            f"{type(model).__name__} cannot draw a group of columns given all the others: test single columns, take a "
            "Gaussian, a mixture or feature_model='auto', or method='knockoffs'."
        )
    max_draws = max(500, int(np.ceil(5 * d / fdr))) if max_draws is None else max_draws
    if y.dtype.kind not in "biuf" or kind in ("binary", "classes"):
        y = np.unique(y, return_inverse=True)[1]
    streams = rng.spawn(d)
    draw = resampling(model, X, rng.spawn(1)[0])
    tasks = (
        delayed(p_value_of)(
            draw,
            columns,
            X,
            y,
            kind=kind,
            nominal=np.isin(columns, list(nominal)),
            encode=encode,
            response_model=response_model,
            max_draws=max_draws,
            enough=enough,
            rng=stream,
        )
        for columns, stream in zip(owned, streams, strict=True)
    )
    answers = list(track(parallel_map(tasks, n_jobs), "tests of features", total=d))
    p_values = np.array([p for p, _, _ in answers])
    q_values = adjust_p_values(p_values, adjustment)
    used = sorted({how for _, _, how in answers})
    notes = {
        "response_model": f"residuals of y by {' or '.join(used)}, fitted without the feature and held out",
        "adjustment": {
            "bh": "Benjamini and Hochberg: the FDR is proven for independent and positively dependent p-values",
            "by": "Benjamini and Yekutieli: the FDR is proven for all p-values",
        }[adjustment],
        "max_draws": f"at most {max_draws} draws a feature: no p-value is below {1 / (1 + max_draws):.2g}",
    }
    n_draws = np.array([n for _, n, _ in answers], dtype=np.intp)
    return Tested(tuple(names), p_values, q_values, q_values <= fdr, n_draws, notes)


Columns = NDArray[np.intp]  # those of one feature
Draw = Callable[[Columns, Generator, int], NDArray]  # to (n_draws, n, n_columns)


def resampling(model: Conditional, X: NDArray, rng: Generator) -> Draw:
    """How columns are drawn anew: given the others, or given the others and what is hidden, where that is cheaper."""
    if hasattr(model, "resampler"):
        return model.resampler(X, rng).draw_together
    return partial(_draw_given_others, model, X)


def _draw_given_others(model: Conditional, X: NDArray, columns: Columns, rng: Generator, n_draws: int) -> NDArray:
    if len(columns) > 1 and hasattr(model, "conditional_together"):
        return model.conditional_together(columns, X, rng, n_draws)
    return np.asarray(model.conditional(int(columns[0]), X, rng, n_draws))[..., None]


def p_value_of(
    draw: Draw,
    columns: Columns,
    X: NDArray,
    y: NDArray,
    *,
    kind: str,
    nominal: NDArray[np.bool_],
    encode: Callable[[NDArray, Columns], NDArray] | None,
    response_model: object,
    max_draws: int,
    enough: int,
    rng: Generator,
) -> tuple[float, int, str]:
    """p-value of one feature, the draws it rests on, and the model of y that was used."""
    distil_stream, pilot_stream, draw_stream = rng.spawn(3)
    rest = np.delete(X, columns, axis=1)
    distilled = distil(
        rest if encode is None else encode(rest, columns), y, kind=kind, model=response_model, rng=distil_stream
    )
    pilot = np.asarray(draw(columns, pilot_stream, N_PILOT), dtype=float)
    of_columns = [
        residual_statistic(distilled.weights, pilot[..., i], n_residuals=distilled.n_residuals, nominal=bool(labels))
        for i, labels in enumerate(nominal)
    ]

    def statistic(drawn: NDArray) -> NDArray:  # (m, n, n_columns) to (m,)
        return np.max([one(drawn[..., i]) for i, one in enumerate(of_columns)], axis=0)

    p, n_draws = sequential_p_value(
        float(statistic(X[None][..., columns])[0]) - 1e-9,  # a draw equal to X_j is a tie, whatever rounding says
        lambda m: statistic(np.asarray(draw(columns, draw_stream, m), dtype=float)),
        max_draws=max_draws,
        enough=enough,
        batch=max(1, min(200, CELLS // (len(X) * len(columns)))),
    )
    return p, n_draws, distilled.model
