"""The conditional randomization test of every feature (Candes et al., 2018), distilled (Liu et al., 2022).

H_j: y is independent of X_j given the other features. If P^X is right, X_j and draws of it given the others are
exchangeable under H_j given y and the others. A statistic that treats them alike then gives an exact p-value, whatever
model of y it uses. The model of y sees y and the other features only, and is fitted once for each feature; a draw costs
a few inner products. Unlike knockoffs, tests need no smallest number of discoveries. A group of columns is tested in
the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import cast

import numpy as np
from joblib import delayed
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.conditional_tests.column_functions import outer_fences
from knockoffs.conditional_tests.distil import Response, choose_response
from knockoffs.conditional_tests.p_values import adjust_p_values, merge_p_values
from knockoffs.conditional_tests.sequential import Looks, Randomization, fixed_looks, plan_looks, sequential_p_value
from knockoffs.conditional_tests.statistic import ResidualStatistic, residual_statistic
from knockoffs.conditional_tests.stratified import StratifiedGenerator
from knockoffs.errors import ColumnsError, InputError
from knockoffs.features import Conditional
from knockoffs.filter import check_fdr
from knockoffs.machine.parallel import parallel_map
from knockoffs.progress import track
from knockoffs.seeds import seeds_of

Columns = NDArray[np.intp]  # those of one group
Sampler = Callable[[Generator, int], NDArray]  # to draws of them, shape (n_draws, n, n_columns)
FIXED = 0  # seed of what is random in a test beside the draws that its p-value counts


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
    scores : array, shape (d,)
        Statistic in standard deviations of its draws: it orders features that share the smallest p-value.
    notes : dict
    """

    names: tuple[str, ...]
    p_values: NDArray
    q_values: NDArray
    selected: NDArray[np.bool_]
    n_draws: NDArray[np.intp]
    scores: NDArray
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
    encode: Callable[[NDArray, Columns], NDArray] | None = None,
    feature_of: NDArray[np.intp] | None = None,
) -> Tested:
    """p-values of all features by the conditional randomization test, and those selected at an FDR.

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
        Model of y without the feature; "best" is the lasso or boosting, whichever predicts held-out rows better.
    adjustment : {"bh", "by"}
    max_draws : int, optional
        Draws for each p-value. By default as many as show whether it is below fdr / d, or above fdr, and else as many
        as give it a standard error of a tenth of it: at most 100 d / fdr.
    encode : callable, optional
        ``(rest, columns) -> array``: the columns other than those of the feature as the model of y takes them, labels
        as indicators.
    feature_of : array of int, shape (n_columns,), optional
        Feature that owns each column, where features are groups, which are drawn and tested as one.
    """
    X, y, fdr = np.asarray(X, dtype=float), np.asarray(y), check_fdr(fdr)
    if X.ndim != 2 or y.shape != (len(X),):
        raise InputError(f"X has shape {X.shape} and y {y.shape}: expected (n, d) and (n,).")
    incomplete = np.flatnonzero(~np.isfinite(X).all(axis=0))
    if incomplete.size:
        raise ColumnsError(incomplete, "columns", "have cells that are missing or infinite: complete them first.")
    feature_of = np.arange(X.shape[1]) if feature_of is None else np.asarray(feature_of)
    d = int(feature_of.max()) + 1
    names = tuple(f"x{j}" for j in range(d)) if names is None else tuple(str(name) for name in names)
    if len(names) != d:
        raise InputError(f"names has {len(names)} names for {d} features.")
    tests = group_tests(model, X, y, kind=kind, rng=rng, nominal=nominal, response_model=response_model, encode=encode)
    return single_feature_tests(tests, names, feature_of, fdr, n_jobs, adjustment=adjustment, max_draws=max_draws)


def single_feature_tests(
    tests: GroupTests | MergedTests,
    names: Sequence[str],
    feature_of: NDArray[np.intp],
    fdr: float,
    n_jobs: int | None = None,
    *,
    adjustment: str = "bh",
    max_draws: int | None = None,
) -> Tested:
    """p-values of all features, each given all the others, and those selected at an FDR.

    Parameters
    ----------
    feature_of : array of int, shape (n_columns,)
        Feature of each column; covariates have numbers beyond the last feature.
    fdr, n_jobs, adjustment, max_draws
        As ``randomization_tests`` has them.
    """
    d = len(names)
    owned = [np.flatnonzero(feature_of == feature) for feature in range(d)]
    looks = plan_looks((fdr / d, fdr), 100) if max_draws is None else fixed_looks(max_draws)
    found = tests.test_all(owned, n_jobs, [looks] * d)
    p_values = np.array([one.p_value for one in found])
    q_values = adjust_p_values(p_values, adjustment)
    notes = {
        **tests.notes_on(owned),
        "adjustment": {
            "bh": "Benjamini and Hochberg: the FDR is proven for independent and positively dependent p-values",
            "by": "Benjamini and Yekutieli: the FDR is proven for all p-values",
        }[adjustment],
        "max_draws": f"at most {looks.n[-1]:,} draws a feature, fewer where the answer is clear earlier",
    }
    n_draws = np.array([one.n_draws for one in found], dtype=np.intp)
    scores = np.array([one.score for one in found])
    return Tested(tuple(names), p_values, q_values, q_values <= fdr, n_draws, scores, notes)


@dataclass(frozen=True)
class GroupTests:
    """The conditional randomization test of any group of columns of a table.

    The model of y is chosen once for each block of columns, from the columns outside it, so that the choice never sees
    what is tested. What is random are the draws, from a stream that belongs to the group.

    Parameters
    ----------
    given_others : callable
        Sampler of a group of columns given the others.
    X : array, shape (n, n_columns)
    y : array, shape (n,)
        Numbers, or codes of classes.
    kind : str
        What y is.
    nominal : array of bool, shape (n_columns,)
        Columns whose values are labels without an order.
    response_model : {"best", "lasso", "boosting"} or estimator
    encode : callable or None
        ``(rest, columns) -> array``: the columns other than those of the group as the model of y takes them.
    seed : numpy.random.SeedSequence
        Of the draws that a p-value counts.
    n_blocks : int
        Blocks of columns, for the choice of the model of y.
    n_pilot : tuple of int
        Fewest and most draws for the means and variances of the statistic.
    cells : int
        Of draws held at a time.
    chosen : dict
        Models of y that were chosen so far, by the columns left out.
    """

    given_others: Callable[[Columns], Sampler]
    X: NDArray
    y: NDArray
    kind: str
    nominal: NDArray[np.bool_]
    response_model: object
    encode: Callable[[NDArray, Columns], NDArray] | None
    seed: np.random.SeedSequence
    n_blocks: int = 5
    n_pilot: tuple[int, int] = (20, 100)
    cells: int = 100_000
    chosen: dict[tuple[int, ...], Response] = field(default_factory=dict)

    def test_all(self, groups: Sequence[Columns], n_jobs: int | None, looks: Sequence[Looks]) -> list[Randomization]:
        """Test each of several groups."""
        for columns in groups:
            self.response_without(columns)
        tasks = (delayed(self.test)(columns, when) for columns, when in zip(groups, looks, strict=True))
        return list(track(parallel_map(tasks, n_jobs), "tests of features", total=len(groups)))

    def test(self, columns: Columns, looks: Looks) -> Randomization:
        """p-value of a group of columns."""
        sample = self.given_others(columns)
        size = len(self.X) * len(columns)
        statistic = self.statistic(
            columns,
            self.response_without(columns),
            self.pilot(sample, columns, seeds_of(np.random.SeedSequence(FIXED), columns)),
        )
        draw_stream = np.random.default_rng(seeds_of(self.seed, columns))
        return sequential_p_value(
            self.observed(statistic, columns),
            lambda m: statistic(sample(draw_stream, m)),
            looks,
            batch=max(1, self.cells // size),
        )

    def pilot(self, sample: Sampler, columns: Columns, seed: np.random.SeedSequence) -> NDArray:
        """Draws of the columns from which the constants of their statistic are taken."""
        n_draws = int(np.clip(20 * self.cells // (len(self.X) * len(columns)), *self.n_pilot))
        return sample(StratifiedGenerator(np.random.PCG64(seed)), n_draws)

    def statistic(self, columns: Columns, response: Response, pilot: NDArray) -> ResidualStatistic:
        """Statistic of a group of columns; its constants come from pilot draws."""
        distilled = response.distil(self.without(columns))
        labels = self.nominal[columns].tolist()
        return residual_statistic(distilled.weights, pilot, n_residuals=distilled.n_residuals, nominal=labels)

    def observed(self, statistic: ResidualStatistic, columns: Columns) -> float:
        """Statistic of the columns as they are; draws that equal them but for rounding are ties."""
        # in the order of draws: loops over another one would be compiled once more
        return float(statistic(np.ascontiguousarray(self.X[:, columns])[None])[0]) - 1e-9

    def without(self, columns: Columns) -> NDArray:
        """All other columns, as the model of y takes them: numbers within their fences."""
        rest = np.delete(self._within_fences, columns, axis=1)
        return rest if self.encode is None else self.encode(rest, columns)

    def response_without(self, columns: Columns) -> Response:
        """Model of y, chosen from columns outside of these: from all but their blocks, where those are few."""
        block_of = np.arange(self.X.shape[1]) * self.n_blocks // self.X.shape[1]
        touched = np.flatnonzero(np.isin(block_of, block_of[columns]))
        away = columns if 2 * touched.size > self.X.shape[1] else touched
        key = tuple(away.tolist())
        if key not in self.chosen:
            self.chosen[key] = choose_response(self.without(away), self.y, self.kind, self.response_model)
        return self.chosen[key]

    def notes_on(self, groups: Sequence[Columns]) -> dict[str, str]:
        """Words on the models of y that tests of these groups use."""
        names = sorted({self.response_without(columns).name for columns in groups})
        return {"response_model": f"y is replaced by its residuals given the other features ({' or '.join(names)})"}

    @cached_property
    def _within_fences(self) -> NDArray:
        X, numbers = self.X.copy(), np.flatnonzero(~self.nominal)
        X[:, numbers] = X[:, numbers].clip(*np.transpose([outer_fences(X[:, j]) for j in numbers]).reshape(2, -1))
        return X


@dataclass(frozen=True)
class MergedTests:
    """Tests of groups of columns, each on several sets of rows."""

    parts: tuple[GroupTests, ...]

    @property
    def X(self) -> NDArray:
        """Rows of the first set, from which a tree of features is made."""
        return self.parts[0].X

    @property
    def nominal(self) -> NDArray[np.bool_]:
        """Columns of labels without an order."""
        return self.parts[0].nominal

    def test_all(self, groups: Sequence[Columns], n_jobs: int | None, looks: Sequence[Looks]) -> list[Randomization]:
        """Test each of several groups."""
        found = [part.test_all(groups, n_jobs, looks) for part in self.parts]
        p_values = merge_p_values(np.array([[one.p_value for one in part] for part in found]))
        scores = np.mean([[one.score for one in part] for part in found], axis=0)
        draws = np.sum([[one.n_draws for one in part] for part in found], axis=0)
        return [Randomization(float(p), int(n), float(s)) for p, n, s in zip(p_values, draws, scores, strict=True)]

    def notes_on(self, groups: Sequence[Columns]) -> dict[str, str]:
        """Words on the models of y, and on how p-values are merged."""
        merged = f"a p-value is twice the mean of those of {len(self.parts)} sets of rows"
        return {**self.parts[0].notes_on(groups), "merged": merged}


def group_tests(
    model: Conditional,
    X: NDArray,
    y: NDArray,
    *,
    kind: str,
    rng: Generator,
    nominal: Sequence[int],
    response_model: object,
    encode: Callable[[NDArray, Columns], NDArray] | None,
) -> GroupTests:
    """Make tests of groups of columns under a P^X with conditionals.

    ``rng`` makes the draws that p-values count. Hidden coordinates and pilot draws come from a stream that is fixed, so
    a p-value is a function of the table but for the error of counting.
    """
    if y.dtype.kind not in "biuf" or kind in ("binary", "classes"):
        y = np.unique(y, return_inverse=True)[1]
    seed = cast(np.random.SeedSequence, rng.spawn(1)[0].bit_generator.seed_seq)
    labels = np.isin(np.arange(X.shape[1]), list(nominal))
    sampler = sampling_given_others(model, X, np.random.default_rng(FIXED))
    return GroupTests(sampler, X, y, kind, labels, response_model, encode, seed)


def sampling_given_others(model: Conditional, X: NDArray, rng: Generator) -> Callable[[Columns], Sampler]:
    """Samplers of groups of columns given the others, or given latent values of the others, where P^X has them."""
    if hasattr(model, "resampler"):
        return model.resampler(X, rng).given_others
    if not hasattr(model, "conditional"):
        name = type(getattr(model, "law", model)).__name__  # of columns beside others, the law is what lacks it
        raise InputError(
            f"{name} has no conditional(j, X, rng, n_draws), so features cannot be tested: use method='knockoffs'."
        )
    return partial(_given_others, model, X)


def _given_others(model: Conditional, X: NDArray, columns: Columns) -> Sampler:
    if len(columns) == 1:
        return lambda rng, n_draws: np.asarray(model.conditional(int(columns[0]), X, rng, n_draws), float)[..., None]
    raise InputError(
        f"{type(model).__name__} cannot draw a group of columns given all the others: test single columns, take a "
        "Gaussian, a mixture or feature_model='auto', or method='knockoffs'."
    )
