"""Trials of knockoffs: how often features that do not matter beat their knockoffs.

y* is drawn from a model of y on three quarters of the features, chosen at random. The others do not matter for y*.
Features are then scored with y* as they are with y: P^X, the knockoffs and the statistic are those of the selection,
the random numbers those of a fixed seed. If P^X is right, each W of a null feature is as likely to be positive as
negative, whatever its size. The FDR is at most the level times the ratio of the two, so the ratio is measured, among
the largest |W|. The share of null features among the selected ones would say less: with some of the signals gone, often
nothing can be selected. A fault shows where a null feature is bound up with a feature that matters, so that few are
made null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.conditional_tests.distil import choose_response
from knockoffs.diagnostics.trial import Outcomes, Trial
from knockoffs.draws import draw_and_score
from knockoffs.errors import InputError
from knockoffs.importance.scores import Scores
from knockoffs.importance.statistic import Statistic
from knockoffs.response.clone import Estimator
from knockoffs.response.trees import make_boosting
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import KnockoffSampler, draw_pair
from knockoffs.table.columns import design
from knockoffs.table.table import Table
from knockoffs.table.target import Target
from knockoffs.trials.labels import Shuffle, label_sampler


@dataclass(frozen=True)
class KeptPair:
    """Sampler of knockoffs that were drawn before."""

    pair: Pair
    draws_several: ClassVar[bool] = True

    @property
    def feature_of(self) -> NDArray[np.intp]:
        """Feature of each column."""
        return self.pair.feature_of

    def sample(self, X: NDArray, rng: Generator, m: int = 1) -> Pair:
        """Give the pair, which has m knockoffs of each feature."""
        return self.pair


def trial_of_knockoffs(
    sampler: KnockoffSampler | None,
    pair: Pair,
    table: Table,
    target: Target,
    statistic: Statistic,
    statistics: Callable[[Scores], NDArray],
    level: float,
    n_jobs: int | None = None,
    *,
    m: int = 1,
    shuffle: Shuffle | None = None,
    per_round: int = 5,
    n_rounds: int = 10,
    largest: float = 0.5,
    seed: int = 0,
) -> Trial:
    """Trial of knockoffs: rounds of comparisons of null features with their knockoffs until the word is clear.

    Parameters
    ----------
    sampler : KnockoffSampler or None
        P^X of the selection; None for given knockoffs.
    pair : Pair
        Knockoffs of the selection, used where they were given.
    table, target : Table, Target
    statistic : Statistic
        The one that the selection used.
    statistics : callable
        Scores -> W, shape (n_features,).
    level : float
        False discovery rate that is allowed.
    n_jobs : int, optional
    m : int
        Knockoffs of each feature.
    shuffle : callable, optional
        How residuals change rows in labels, where rows depend on each other; see ``label_sampler``.
    per_round, n_rounds : int
        Labels of a round, which share their knockoffs, and most rounds.
    largest : float
        Share of the features that are compared, those of the largest |W|; the size of W says nothing of its sign.
    seed : int
    """
    found: list[tuple[int, float]] = []
    pair_stream, label_stream, score_stream = np.random.default_rng(seed).spawn(3)
    for number in range(n_rounds):
        kept = KeptPair(pair if sampler is None else draw_pair(sampler, table.X, pair_stream.spawn(1)[0], m))
        if number == 0:
            make_labels = null_labels(kept.pair.X[target.known_rows], table, target, shuffle)
        for i in range(per_round):
            null, values = make_labels(i, label_stream)
            if values.ndim == 1 and len(np.unique(values)) < 2:
                continue
            stream, of_labels = score_stream.spawn(1)[0], replace(target, values=values)
            try:
                drawn = draw_and_score(kept, table, of_labels, statistic, rng=stream, n_jobs=n_jobs, m=m)
            except InputError:  # a class that is rare among y may have one row among the labels
                continue
            W = statistics(drawn.scores)
            large = np.abs(W) >= max(np.quantile(np.abs(W), 1 - largest), np.finfo(float).tiny)
            found += [(int(j), float(W[j] > 0)) for j in np.flatnonzero(null & large)]
        outcomes = join_comparisons(found, m)
        if outcomes.decided(level):
            break
    return outcomes.judge(level, [table.feature_names[j] for j, _ in found] or [""])


def some_rows(
    pair: Pair, table: Table, target: Target, *, most_cells: int = 400_000, seed: int = 0
) -> tuple[Pair, Table, Target]:
    """Rows of a trial: all, or so many drawn at random as have ``most_cells`` cells, 1,000 at least."""
    most = max(most_cells // table.X.shape[1], 1000)
    if len(table) <= most:
        return pair, table, target
    rows = np.sort(np.random.default_rng(seed).choice(len(table), most, replace=False))
    return pair.rows(rows), table.rows(rows), target.at(rows)


def join_comparisons(found: Sequence[tuple[int, float]], m: int) -> Outcomes:
    """Outcomes of comparisons of features; those of one feature hang together."""
    if not found:
        return Outcomes(np.zeros(1), m=m)  # no W differs from 0: nothing can be called
    feature, values = np.array([j for j, _ in found]), np.array([won for _, won in found])
    n = np.bincount(feature)
    sums, share = np.bincount(feature, values)[n > 0], values.mean()
    n = n[n > 0]
    spread = ((sums - n * share) ** 2 / n).sum() / max(len(n) - 1, 1)
    return Outcomes(values, max(float(spread / max(share * (1 - share), 1e-9)), 1.0), m)


def null_labels(
    X: NDArray,
    table: Table,
    target: Target,
    shuffle: Shuffle | None = None,
    *,
    share: float = 0.25,
    n_trees: int = 20,
    few_rows: int = 100,
) -> Callable[[int, Generator], tuple[NDArray[np.bool_], NDArray]]:
    """Draw which features do not matter, and labels for which they do not; models of y take turns.

    Parameters
    ----------
    X : array, shape (n_observed, n_columns)
        Complete rows in which the target is known.
    table, target : Table, Target
    shuffle : callable, optional
    share : float
        Of the features, which do not matter.
    n_trees : int
        Of boosting.
    few_rows : int
        With fewer rows, or fewer than columns, labels come from the lasso alone.
    """
    encode, d, kind = design(table.columns, table.feature_of), len(table.feature_names), target.kind
    seen, owner = encode(X), encode.feature_of
    labelled = kind in ("binary", "classes")
    y = np.asarray(target.values)
    if labelled:
        classes, y = np.unique(y, return_inverse=True)
    task = "survival" if kind == "survival" else "classification" if labelled else "regression"
    models: list[Estimator] = [choose_response(seen, y, kind, "lasso").estimator]
    if len(y) >= max(few_rows, seen.shape[1]):
        models.append(make_boosting(task, random_state=0, max_iter=n_trees, learning_rate=4 / n_trees))

    def draw(i: int, rng: Generator) -> tuple[NDArray[np.bool_], NDArray]:
        null = np.zeros(d, dtype=bool)
        null[rng.permutation(d)[: int(np.ceil(share * d))]] = True
        rest = seen[:, ~np.isin(owner, np.flatnonzero(null))]  # covariates are numbered last, and matter
        values = label_sampler(rest, y, kind, models[i % len(models)], rng, shuffle=shuffle)(rng)
        return null, classes[values] if labelled else values

    return draw
