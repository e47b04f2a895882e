"""verdict: one word about the knockoffs, good, doubtful or broken, with its reasons and what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.diagnostics.classifier import check_classifier
from knockoffs.diagnostics.margins import check_margins
from knockoffs.diagnostics.moments import check_moments
from knockoffs.diagnostics.near_duplicates import Twin, find_twins
from knockoffs.diagnostics.remedies import Remedy, find_remedies
from knockoffs.diagnostics.rows import check_neighbours, check_order, check_repeats, repeated_by_rows
from knockoffs.diagnostics.scores import link_scores, pooled_ranks
from knockoffs.diagnostics.sign_tests import Check
from knockoffs.diagnostics.support import LABEL_KINDS, check_support, round_alike
from knockoffs.diagnostics.trial import Trial
from knockoffs.errors import InputError, name_some
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import KnockoffSampler
from knockoffs.table.types import Json

DOUBTFUL, BROKEN = 0.05, 0.01  # levels of the combined p-value: the rates of false alarms
MATTERS = 0.1  # effect from which a difference that is no chance breaks the guarantee: 55 signs in 100 the same
ROWS_TO_SEE_FAULTS = 500  # rows from which the faults of docs/verdict.md are seen in 95 of 100 data sets or more
WORDS = ("good", "doubtful", "broken")
EXCHANGE = ("support", "margins", "pairs", "classifier")  # about P^X; the others are about rows
# a table that was sorted is harmless; a covariance that was shrunk leaves rows a little nearer than their knockoffs
MATTERS_ELSE = {"order of rows": np.inf, "neighbouring rows": 0.2}


@dataclass(frozen=True)
class Budget:
    """The most that is looked at, which keeps the cost of a verdict below that of the selection.

    Parameters
    ----------
    rows : int
        Drawn at random; for repeated rows, their order, neighbours and twins a stretch of so many, its start at random.
    columns : int
        For pairs of columns, whose number is its square, order and neighbours, drawn at random; support, margins and
        twins look at all columns, the trees at the 100 whose margins differ most.
    classifier_rows : int
        Of ``rows``, those for the trees.
    trees, tried : int
        Trees, and the columns that each of them may cut.
    """

    rows: int = 5000
    columns: int = 300
    classifier_rows: int = 3000
    trees: int = 60
    tried: int = 100


@dataclass(frozen=True)
class Verdict:
    """What the checks found.

    Parameters
    ----------
    word : {"good", "doubtful", "broken"}
    n_rows : int
        Rows that were checked.
    p_value : float, optional
        Smallest p-value of the checks times their number: below a level with at most that probability if rows are
        independent and knockoffs exchangeable, for any number of rows.
    checks : tuple of Check
        Whether knockoffs can be told from features; empty where a trial is good.
    failed : tuple of Check
        Those that failed, the smallest p-value first.
    twins : tuple of Twin
        Features that cannot be found, because their knockoffs are nearly copies. Not part of the word.
    rows : tuple of str
        Sentences about rows that depend on each other; empty where no dependence was seen.
    remedies : tuple of Remedy
    trial : Trial, optional
        How often features that do not matter were called on this table: the word is by it. Without a target there is
        none, and the word is by the checks.
    """

    word: str
    n_rows: int
    p_value: float | None = None
    checks: tuple[Check, ...] = ()
    failed: tuple[Check, ...] = ()
    twins: tuple[Twin, ...] = ()
    rows: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    trial: Trial | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The worst columns, a few."""
        return tuple(dict.fromkeys(name for check in self.failed for name in check.columns))[:5]

    @property
    def headline(self) -> str:
        """What the word rests on, in one sentence or two."""
        if self.trial is not None:
            return self.trial.sentence
        meaning = {
            "good": "no check failed",
            "doubtful": "a check failed: read the selection with care",
            "broken": "knockoffs are distinguishable from the features: the level is not guaranteed",
        }
        what = meaning[self.word]
        if self.failed and not any(check.name in EXCHANGE for check in self.failed):
            what = "rows seem to depend on each other: the level is not guaranteed"
        chance = f"p = {self.p_value:.2g}" if (self.p_value or 1.0) > 1e-16 else "p < 1e-16"
        said = f"The knockoffs look {self.word}: {what} ({chance})."
        few = self.word == "good" and self.n_rows < ROWS_TO_SEE_FAULTS
        return f"{said}\nIn {self.n_rows} rows only gross faults can be seen." if few else said

    def say(self) -> str:
        """Plain sentences: the word, what failed, and what to do."""
        lines = [self.headline if self.trial is None else f"Verdict: {self.word}. {self.headline}"]
        lines += [check.sentence for check in self.failed]
        if self.twins:
            names = [name for twin in self.twins for name in twin.columns]
            lines.append(
                f"Nearly copies of their knockoffs (correlation {self.twins[-1].correlation:.2f} or more), so they are "
                f"unlikely to be selected: {name_some(names)}."
            )
        lines += [f"What to do: {remedy.sentence}" for remedy in self.remedies]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Json]:
        """Values for json."""
        return {
            "word": self.word,
            "n_rows": self.n_rows,
            "sentence": self.headline,
            "trial": None if self.trial is None else self.trial.to_dict(),
            "p_value": self.p_value,
            "columns": list(self.columns),
            "checks": [check.to_dict() for check in self.checks],
            "twins": [twin.to_dict() for twin in self.twins],
            "rows": list(self.rows),
            "remedies": [remedy.to_dict() for remedy in self.remedies],
        }


def verdict(
    pair: Pair,
    *,
    names: Sequence[str],
    kinds: Sequence[str] | None = None,
    held_out_pair: Pair | None = None,
    rng: Generator,
    budget: Budget | None = None,
) -> Verdict:
    """Check whether X_tilde is exchangeable with X, and whether rows are independent, without the target.

    Parameters
    ----------
    pair : Pair
        X and the knockoffs that the selection uses, rows in the order of the table.
    names : sequence of str
        Of the columns, or of the features.
    kinds : sequence of str, optional
        "continuous", "count", "ordinal", "binary" or "nominal" for each column; numbers if left out.
    held_out_pair : Pair, optional
        Rows that P^X was not fitted on, with their knockoffs (`cross_fitted_pair`): they are checked in place of
        ``pair``, which then serves for twins, repeated rows and the order alone.
    rng : numpy.random.Generator
    budget : Budget, optional

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 5))
    >>> verdict(Pair(X, rng.standard_normal((500, 5)), np.arange(5)), names="abcde", rng=rng).word
    'good'
    >>> verdict(Pair(X, X + rng.standard_normal((500, 5)), np.arange(5)), names="abcde", rng=rng).word
    'broken'
    """
    budget = budget or Budget()
    named, sorts = check_columns(pair, names, kinds)
    checked = pair if held_out_pair is None else held_out_pair
    if checked.n_columns != pair.n_columns:
        raise InputError(f"held_out_pair has {checked.n_columns} columns: pair has {pair.n_columns}.")
    row_rng, column_rng, half_rng, tree_rng = rng.spawn(4)
    stretch = following_rows(pair, budget.rows, row_rng)
    all_rows = checked is pair and len(pair) <= budget.rows
    some = stretch if all_rows else some_rows(checked, budget.rows, row_rng)
    columns, feature_of = some_columns(pair, budget.columns, column_rng)
    few_names, few_kinds = tuple(named[j] for j in columns), tuple(sorts[j] for j in columns)
    by_rows = repeated_by_rows(stretch.X) & [kind not in LABEL_KINDS for kind in sorts]
    support = check_support(some, named, sorts, by_rows)
    n_checked, rounded = len(some), round_alike(some, sorts)
    ranked = pooled_ranks(rounded)
    margins = check_margins(rounded, named, sorts, ranked)
    following = _columns_of(rounded, columns, feature_of)
    scores = link_scores(following, few_kinds, _ranks_of(ranked, columns))
    del some, ranked  # as soon as they are not needed: each is as large as the table
    pairs = check_moments(following, scores, few_names, half_rng)
    for_trees = rounded.rows(row_rng.permutation(n_checked)[: budget.classifier_rows])
    trees = check_classifier(for_trees, sorts, tree_rng, n_trees=budget.trees, n_tried=budget.tried)
    del rounded, for_trees
    if not all_rows:
        del following, scores
        following = round_alike(_columns_of(stretch, columns, feature_of), few_kinds)
        scores = link_scores(following, few_kinds)
    checks = (
        support,
        margins,
        pairs,
        trees,
        check_repeats(stretch),
        check_order(following, scores, few_names),
        check_neighbours(following, scores),
    )
    twins = find_twins(stretch, named, sorts)
    word, p = combine(checks)
    failed = failing(checks, rows_repeat=bool(by_rows.any()))
    rows = tuple(check.sentence for check in failed if check.name not in EXCHANGE)
    remedies = find_remedies(failed, twins, stretch, named, sorts)
    return Verdict(word, n_checked, p, checks, failed, twins, rows, remedies)


def combine(checks: Sequence[Check]) -> tuple[str, float]:
    """Word and p-value: Bonferroni over the checks; broken where a sure difference also matters."""
    p = min(1.0, len(checks) * min(check.p_value for check in checks))
    breaks = [
        check
        for check in checks
        if check.p_value * len(checks) < BROKEN and check.effect >= MATTERS_ELSE.get(check.name, MATTERS)
    ]
    return ("broken" if breaks else "doubtful" if p < DOUBTFUL else "good"), p


def failing(checks: Sequence[Check], *, rows_repeat: bool) -> tuple[Check, ...]:
    """Sort out the checks that failed, the surest first.

    A wrong P^X alone puts rows nearer together than their knockoffs, and makes them repeat where all columns are
    discrete: then it is P^X that is named, and not the rows. The other way round, rows that belong together share the
    links they have by chance, in no pair of columns clearly: then it is the rows.
    """
    found = [check for check in checks if check.p_value * len(checks) < DOUBTFUL]
    if any(check.name in EXCHANGE and (check.columns or check.name != "pairs") for check in found):
        excused = {"neighbouring rows"} | (set() if rows_repeat else {"repeated rows"})
    else:
        excused = {"pairs"} if any(check.name not in EXCHANGE for check in found) else set()
    found = [check for check in found if check.name not in excused]
    return tuple(sorted(found, key=lambda check: (check.p_value, -check.effect)))


def check_columns(
    pair: Pair, names: Sequence[str], kinds: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name and kind of every column."""
    if pair.X.shape != pair.X_tilde.shape:
        raise InputError(f"X has shape {pair.X.shape}, its knockoffs {pair.X_tilde.shape}: expected the same.")
    if len(pair) < 6:
        raise InputError(f"the pair has {len(pair)} rows: nothing can be checked with fewer than 6.")
    named = [str(name) for name in names]
    if len(named) == pair.n_features != pair.n_columns:
        named = [named[feature] for feature in pair.feature_of]
    if len(named) != pair.n_columns:
        raise InputError(f"names has {len(named)} entries: expected {pair.n_columns}, one for each column.")
    sorts = ["continuous"] * pair.n_columns if kinds is None else [str(kind) for kind in kinds]
    if len(sorts) != pair.n_columns:
        raise InputError(f"kinds has {len(sorts)} entries: expected {pair.n_columns}, one for each column.")
    return tuple(named), tuple(sorts)


def some_rows(pair: Pair, most: int, rng: Generator) -> Pair:
    """Take a random part of the rows, in random order, as floats."""
    return as_floats(pair.rows(rng.permutation(len(pair))[:most]))


def following_rows(pair: Pair, most: int, rng: Generator) -> Pair:
    """Take a stretch of rows that follow each other, as floats."""
    start = int(rng.integers(max(len(pair) - most, 0) + 1))
    return as_floats(pair.rows(slice(start, start + most)))


def as_floats(pair: Pair) -> Pair:
    """Turn codes and truth values into numbers, which can be subtracted."""
    return Pair(np.asarray(pair.X, dtype=float), np.asarray(pair.X_tilde, dtype=float), pair.feature_of)


def some_columns(pair: Pair, most: int, rng: Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Choose features at random, at most ``most`` columns of them (or one feature): their columns, and their owners."""
    if pair.n_columns <= most:
        return np.arange(pair.n_columns), pair.feature_of
    features = rng.permutation(pair.n_features)
    sizes = np.bincount(pair.feature_of)[features].cumsum()
    chosen = np.sort(features[: max(int((sizes <= most).sum()), 1)])
    columns = np.flatnonzero(np.isin(pair.feature_of, chosen))
    return columns, np.searchsorted(chosen, pair.feature_of[columns])


def _ranks_of(ranked: tuple[NDArray, NDArray], columns: NDArray[np.intp]) -> tuple[NDArray, NDArray]:
    """Take the ranks of some columns; nothing is copied where they are all of them."""
    return ranked if len(columns) == ranked[0].shape[1] else (ranked[0][:, columns], ranked[1][:, columns])


def _columns_of(pair: Pair, columns: NDArray[np.intp], feature_of: NDArray[np.intp]) -> Pair:
    """Take some columns of a pair; nothing is copied where they are all of them."""
    if len(columns) == pair.n_columns:
        return pair
    return Pair(pair.X[:, columns], pair.X_tilde[:, columns], feature_of)


def cross_fitted_pair(
    fit: Callable[[NDArray, Generator], KnockoffSampler], X: NDArray, rng: Generator, n_folds: int = 5
) -> Pair:
    """Knockoffs of each row under a P^X that was fitted without it.

    Parameters
    ----------
    fit : callable
        ``(X, rng) -> KnockoffSampler``.
    X : array, shape (n, n_columns)
    rng : numpy.random.Generator
    n_folds : int
    """
    if not 2 <= n_folds <= len(X):
        raise InputError(f"n_folds={n_folds}: expected 2 or more, and no more than the {len(X)} rows.")
    order_rng, *streams = rng.spawn(1 + n_folds)
    folds = np.array_split(order_rng.permutation(len(X)), n_folds)
    parts = []
    for fold, stream in zip(folds, streams, strict=True):
        fit_rng, draw_rng = stream.spawn(2)
        parts.append(fit(np.delete(X, fold, axis=0), fit_rng).sample(X[fold], draw_rng))
    place = np.argsort(np.concatenate(folds))
    X_tilde = np.concatenate([part.X_tilde for part in parts])[place]
    return Pair(np.concatenate([part.X for part in parts])[place], X_tilde, parts[0].feature_of)
