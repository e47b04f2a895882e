"""Naive Bayes, or the latent class model: K -> X_j, with the columns independent given the class K."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from joblib import delayed
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, KnockoffWarning, name_some, unknown_option
from knockoffs.features import kept_per_how
from knockoffs.features.class_conditional import (
    LAWS,
    CategoricalColumn,
    Children,
    Law,
    PoissonColumn,
    place_values,
    take_columns,
)
from knockoffs.features.mixture_path import numbers_to_try
from knockoffs.machine.parallel import parallel_map
from knockoffs.progress import track
from knockoffs.sampling.categorical import check_probabilities, normalise_log_weights, sample_categorical
from knockoffs.sampling.conjugates.independent import Independent
from knockoffs.sampling.network import BayesianNetwork, Blanket, Identity, Node
from knockoffs.table.columns import check_kinds, recognise_kind

CALLED = {
    "GaussianColumn": "Gaussian",
    "PoissonColumn": "Poisson",
    "CategoricalColumn": "categorical",
}


@dataclass(frozen=True)
class NaiveBayes:
    """Classes K with probabilities ``weights``, and columns that are independent given K.

    Examples
    --------
    >>> from knockoffs.features.class_conditional import CategoricalColumn
    >>> from knockoffs.sampling.sampler import sample_knockoffs
    >>> coin = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> model = NaiveBayes(np.array([0.5, 0.5]), (CategoricalColumn((0, 1), (coin, coin)),))
    >>> X = np.array([[0, 0], [1, 1], [1, 1]])
    >>> sample_knockoffs(model.as_network(), X, np.random.default_rng(0)).shape
    (3, 2)
    """

    weights: NDArray  # shape (n_classes,)
    # ``CategoricalColumn``, ``GaussianColumn`` or ``PoissonColumn`` of class_conditional.py. Columns of one law share a
    # node: they are independent given K, so one node or many is the same law
    children: tuple[Children, ...]

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=float)
        object.__setattr__(self, "weights", weights)
        check_probabilities("weights", np.atleast_1d(weights))
        counted = Counter(column for group in self.children for column in group.columns)
        twice = [column for column, times in counted.items() if times > 1]
        if twice:
            raise InputError(f"columns {name_some(twice)} are among the children twice: a column has one law.")
        for group in self.children:
            if group.n_classes != len(weights):
                raise InputError(
                    f"columns {name_some(group.columns)} have {group.n_classes} classes, the weights {len(weights)}."
                )

    def say(self, names: Sequence[str] | None = None) -> str:
        """Sentence that says what P^X is."""
        counted: Counter[str] = Counter()
        for group in self.children:
            counted[CALLED.get(type(group).__name__, type(group).__name__)] += len(group.columns)
        columns = ", ".join(f"{n} {kind}" for kind, n in counted.items())
        n = len(self.weights)
        classes = "one class" if n == 1 else f"{n} classes"
        return f"P^X is naive Bayes of {columns} columns, which are independent given the class, with {classes}."

    @property
    def n_parameters(self) -> int:
        """Free parameters, for AIC and BIC."""
        free = [len(self.weights) - 1]
        for group in self.children:  # a row of a table sums to one
            tables = len(group.columns) if isinstance(group, CategoricalColumn) else 0
            free.append(sum(array.size for array in group.parameters) - tables * group.n_classes)
        return sum(free)

    def log_weights(self, X: NDArray) -> NDArray:
        """Log P(K = k) + log P(x | K = k), shape (n, n_classes)."""
        with np.errstate(divide="ignore"):
            out = np.tile(np.log(self.weights), (len(X), 1))
        for group in self.children:
            out += group.log_prob(X[:, list(group.columns)])
        return out

    def log_density(self, X: NDArray) -> NDArray:
        """Log density of every row, shape (n,), exactly: -inf outside the columns' supports."""
        return np.logaddexp.reduce(self.log_weights(X), axis=1)

    def sample_hidden(self, X: NDArray, rng: Generator) -> dict[str, NDArray]:
        """K ~ P(K | X), exactly."""
        for group in self.children:
            group.check(X[:, list(group.columns)])
        return {"K": sample_categorical(self.log_weights(X), rng)}

    @kept_per_how
    def as_network(self, *, n_jobs: int | None = None) -> BayesianNetwork:
        """K -> X_j: K keeps its value, every column is drawn again from its law given K. ``n_jobs`` is not needed."""
        K = Node("K", parents=(), conjugate=Identity())
        leaves = [
            Node(
                f"X_{i}",
                parents=("K",),
                conjugate=Independent(partial(_draw, group), partial(_log_prob, group)),
                columns=group.columns,
            )
            for i, group in enumerate(self.children)
        ]
        return BayesianNetwork((K, *leaves), sample_hidden=self.sample_hidden)

    def sample(self, n: int, rng: Generator) -> NDArray:
        """Draw n rows of X, shape (n, n_columns)."""
        K = rng.choice(len(self.weights), size=n, p=self.weights / self.weights.sum())
        X = np.empty((n, sum(len(group.columns) for group in self.children)))
        for group in self.children:
            X[:, list(group.columns)] = group.draw(K, rng)
        return X

    def conditional(self, j: int, X: NDArray, rng: Generator, n_draws: int) -> NDArray:
        """Draws of X_j given the other columns of each row, shape (n_draws, n), exactly."""
        group, i = next((g, g.columns.index(j)) for g in self.children if j in g.columns)
        others = [other for other in self.children if other is not group]
        rest = [place for place in range(len(group.columns)) if place != i]
        others += [take_columns(group, rest)] if rest else []
        log_weights = replace(self, children=tuple(others)).log_weights(X)
        K = sample_categorical(np.tile(log_weights, (n_draws, 1)), rng)
        return take_columns(group, [i]).draw(K, rng).reshape(n_draws, len(X))


def _draw(group: Children, blanket: Blanket, n: int, rng: Generator) -> NDArray:
    return group.draw(blanket["K"], rng)


def _log_prob(group: Children, u: NDArray, blanket: Blanket) -> NDArray:
    return group.log_prob(u)[np.arange(len(u)), blanket["K"]]


def fit_naive_bayes(
    X: ArrayLike,
    *,
    rng: Generator,
    n_jobs: int | None = None,
    kinds: Sequence[str] | None = None,
    n_classes: int | Sequence[int] = range(1, 9),
    criterion: str = "aic",
    n_starts: int = 5,
    pseudo_count: float = 1.0,
    max_iter: int = 500,
    tol: float = 1e-6,
) -> NaiveBayes:
    """Fit a latent class model by EM, the number of classes by AIC or BIC.

    Parameters
    ----------
    X : array, shape (n, n_columns)
        Neither the coding nor the units of a column matter: its law keeps the values that occur.
    rng : numpy.random.Generator
    n_jobs : int, optional
        Starts that run at the same time; the answer does not depend on it.
    kinds : sequence of str, optional
        "continuous" (Gaussian), "count" (Poisson, in units of the column), "binary", "nominal" or "ordinal" (a
        table over the values that occur) for each column; left out, they are recognised, whatever the units.
    n_classes : int or sequence of int
        The number of classes, or the numbers to choose from.
    criterion : {"aic", "bic"}
    n_starts : int
        Starts of EM for each number of classes; the best likelihood is kept.
    pseudo_count : float
        Every class borrows this many rows with the law of the whole column (a conjugate prior), so that a small class
        has no zero probability or variance by accident.
    max_iter, tol : int, float
        EM stops when a step gains less than ``tol`` per row.

    Returns
    -------
    NaiveBayes
    """
    X = _check_table(X)
    if criterion not in ("aic", "bic"):
        raise unknown_option("criterion", criterion, ("aic", "bic"))
    groups, known = _group_columns(X, kinds)
    codes = X.copy()
    for j, support in known.items():
        codes[:, j] = place_values(support, X[:, j]) if isinstance(support, np.ndarray) else X[:, j] / support
    numbers = numbers_to_try("n_classes", n_classes, len(X))
    if n_starts < 1 or pseudo_count < 0:
        raise InputError(f"n_starts={n_starts} must be at least 1 and pseudo_count={pseudo_count:g} not negative.")
    inner, outer = (n_jobs, None) if len(numbers) == 1 else (None, n_jobs)  # the starts run together, or the numbers do

    def fit(k: int, stream: Generator) -> tuple[NaiveBayes, float]:
        starts = stream.spawn(n_starts if k > 1 else 1)
        work = (delayed(_em)(codes, groups, k, start, pseudo_count, max_iter, tol) for start in starts)
        model, log_likelihood, converged = max(parallel_map(work, inner), key=lambda one: one[1])
        if not converged:
            text = f"EM of {k} classes did not converge in {max_iter} steps: raise max_iter."
            warnings.warn(text, KnockoffWarning, stacklevel=2)
        price = 2.0 if criterion == "aic" else float(np.log(len(X)))
        return model, price * model.n_parameters - 2 * log_likelihood

    tasks = (delayed(fit)(k, stream) for k, stream in zip(numbers, rng.spawn(len(numbers)), strict=True))
    models = track(parallel_map(tasks, outer, threads=True), "modelling the features", total=len(numbers))
    best, _ = min(models, key=lambda one: one[1])
    return NaiveBayes(best.weights, tuple(_of_values(group, known) for group in best.children))


def _of_values(group: Children, known: Mapping[int, NDArray | float]) -> Children:
    """Law of the values of X that the codes stand for."""
    own = [known[j] for j in group.columns if j in known]
    if isinstance(group, CategoricalColumn):
        return replace(group, supports=tuple(own))  # type: ignore[arg-type]
    return replace(group, units=np.array(own, dtype=float)) if isinstance(group, PoissonColumn) else group


def _em(
    X: NDArray,
    groups: list[tuple[Law, tuple[int, ...]]],
    n_classes: int,
    rng: Generator,
    pseudo_count: float,
    max_iter: int,
    tol: float,
) -> tuple[NaiveBayes, float, bool]:
    """One run of EM from n_classes random rows of codes: the model, its log likelihood, and whether it converged."""
    blocks = [X[:, list(columns)] for _, columns in groups]
    statistics = [kind.statistics(block) for (kind, _), block in zip(groups, blocks, strict=True)]
    overall = [np.asarray(T.mean(axis=0)) for T in statistics]

    def maximise(R: NDArray, borrowed: float) -> NaiveBayes:
        N = R.sum(axis=0)
        children = []
        for (kind, columns), block, T, mean in zip(groups, blocks, statistics, overall, strict=True):
            means = ((T.T @ R).T + borrowed * mean) / (N + borrowed + 1e-300)[:, None]
            children.append(kind.from_means(columns, block, means))
        return NaiveBayes(N / N.sum(), tuple(children))

    def log_weights(model: NaiveBayes) -> NDArray:  # of codes that are known to be such
        with np.errstate(divide="ignore"):
            prior = np.log(model.weights)
        return prior + sum(group.log_prob_of_codes(block) for group, block in zip(model.children, blocks, strict=True))

    R = np.zeros((len(X), n_classes))
    R[rng.choice(len(X), size=n_classes, replace=False), np.arange(n_classes)] = 1.0
    model = maximise(R if n_classes > 1 else np.ones((len(X), 1)), max(pseudo_count, 1.0))
    before = -np.inf
    for _ in range(max_iter):
        log_posterior, log_evidence = normalise_log_weights(log_weights(model))
        after = float(log_evidence.sum())
        if after - before < tol * len(X) and np.isfinite(before):
            return model, after, True
        model, before = maximise(np.exp(log_posterior), pseudo_count), after
    return model, float(normalise_log_weights(log_weights(model))[1].sum()), False


def _group_columns(
    X: NDArray, kinds: Sequence[str] | None
) -> tuple[list[tuple[Law, tuple[int, ...]]], dict[int, NDArray | float]]:
    """Columns of each law; the values of those with labels, and the units of those with counts."""
    if kinds is None:
        kinds = [recognise_kind(column)[0] for column in X.T]
    if len(kinds) != X.shape[1]:
        raise InputError(f"kinds has {len(kinds)} entries for {X.shape[1]} columns.")
    check_kinds(kinds)
    laws, known = [LAWS[kind] for kind in kinds], dict[int, NDArray | float]()
    for j, (kind, values) in enumerate(zip(kinds, map(np.unique, X.T), strict=True)):
        if len(values) == 1 and kind == "continuous":
            raise InputError(f"columns {name_some([j])} are constant: drop them.")
        if len(values) == 1:  # a table with one state, whatever the kind
            laws[j], known[j] = CategoricalColumn, values
        elif laws[j] is PoissonColumn and values[0] >= 0 and (values == np.floor(values)).all() and values[-1] < 2**53:
            known[j] = float(np.gcd.reduce(values.astype(np.int64)))
        elif laws[j] is CategoricalColumn and not (kind == "binary" and len(values) > 2):
            known[j] = values
        elif kind != "continuous":
            wanted = "two values" if kind == "binary" else "whole numbers that are not negative"
            raise InputError(f"columns {name_some([j])} are not of kind {kind!r}: expected {wanted}.")
    groups: dict[tuple[Law, bool], list[int]] = {}
    for j, law in enumerate(laws):  # columns of two values have a node of their own, for products that are faster
        groups.setdefault((law, law is CategoricalColumn and np.size(known[j]) == 2), []).append(j)
    return [(law, tuple(columns)) for (law, _), columns in groups.items()], known


def _check_table(X: ArrayLike) -> NDArray:
    X = np.asarray(X)
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(f"X has shape {X.shape}: expected (n, n_columns).")
    if not np.issubdtype(X.dtype, np.number) and X.dtype != bool:
        raise InputError(f"X has dtype {X.dtype}: code categories as 0, 1, ... first.")
    X = X.astype(float)
    bad = ~np.isfinite(X).all(axis=0)
    if bad.any():
        raise InputError(f"columns {name_some(np.flatnonzero(bad))} of X have NaN or infinite values.")
    return X
