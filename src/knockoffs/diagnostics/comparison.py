"""Comparison of knockoffs with features, without the target: a verdict by four checks of exchangeability."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.diagnostics.classifier import check_classifier
from knockoffs.diagnostics.margins import check_margins
from knockoffs.diagnostics.moments import check_moments
from knockoffs.diagnostics.near_duplicates import find_twins
from knockoffs.diagnostics.scores import link_scores, pooled_ranks
from knockoffs.diagnostics.sign_tests import Check
from knockoffs.diagnostics.support import check_support, round_alike
from knockoffs.diagnostics.verdict import Verdict
from knockoffs.errors import InputError
from knockoffs.sampling.pair import Pair


def verdict(
    pair: Pair,
    *,
    names: Sequence[str],
    kinds: Sequence[str] | None = None,
    rng: Generator,
    most_rows: int = 5000,
    most_columns: int = 300,
    most_rows_of_trees: int = 3000,
) -> Verdict:
    """Check whether X_tilde is exchangeable with X, without the target.

    Parameters
    ----------
    pair : Pair
        X and the knockoffs that the selection uses.
    names : sequence of str
        Of the columns, or of the features.
    kinds : sequence of str, optional
        "continuous", "count", "ordinal", "binary" or "nominal" for each column; numbers if left out.
    rng : numpy.random.Generator
    most_rows : int
        Rows that are looked at, drawn at random.
    most_columns : int
        Columns whose pairs are looked at, drawn at random. Support, margins and twins are of all columns, the trees of
        the 100 whose margins differ most.
    most_rows_of_trees : int

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 5))
    >>> verdict(Pair(X, rng.standard_normal((500, 5)), np.arange(5)), names="abcde", rng=rng).word
    'good'
    >>> verdict(Pair(X, X + rng.standard_normal((500, 5)), np.arange(5)), names="abcde", rng=rng).word
    'broken'
    """
    named, sorts = check_columns(pair, names, kinds)
    row_rng, column_rng, half_rng, tree_rng = rng.spawn(4)
    some = some_rows(pair, most_rows, row_rng)
    columns, feature_of = some_columns(pair, most_columns, column_rng)
    support, twins = check_support(some, named, sorts), find_twins(some, named, sorts)
    rounded = round_alike(some, sorts)
    ranked = pooled_ranks(rounded)
    margins = check_margins(rounded, named, sorts, ranked)
    few = rounded
    if len(columns) < pair.n_columns:
        few = Pair(rounded.X[:, columns], rounded.X_tilde[:, columns], feature_of)
        ranked = ranked[0][:, columns], ranked[1][:, columns]
    scores = link_scores(few, tuple(sorts[j] for j in columns), ranked)
    n_checked = len(some)
    del some, ranked  # as soon as they are not needed: each is as large as the table
    pairs = check_moments(few, scores, tuple(named[j] for j in columns), half_rng)
    for_trees = rounded.rows(row_rng.permutation(n_checked)[:most_rows_of_trees])
    trees = check_classifier(for_trees, sorts, tree_rng)
    checks = (support, margins, pairs, trees)
    word, p, failed = combine(checks)
    return Verdict(word, n_checked, p_value=p, checks=checks, failed=failed, twins=twins)


def combine(
    checks: Sequence[Check], *, doubtful: float = 0.05, broken: float = 0.01, matters: float = 0.1
) -> tuple[str, float, tuple[Check, ...]]:
    """Word, p-value (Bonferroni over the checks) and the checks that failed, the surest first.

    ``doubtful`` and ``broken`` are levels of the p-value, so the rates of false alarms; ``matters`` is the effect from
    which on a sure difference breaks the guarantee: 55 signs in 100 the same.
    """
    n = len(checks)
    found = sorted((one for one in checks if one.p_value * n < doubtful), key=lambda one: (one.p_value, -one.effect))
    breaks = any(one.p_value * n < broken and one.effect >= matters for one in found)
    p = min(1.0, n * min(one.p_value for one in checks))
    return ("broken" if breaks else "doubtful" if found else "good"), p, tuple(found)


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
    """Random part of the rows, in random order, as floats: codes and truth values cannot be subtracted."""
    some = pair.rows(rng.permutation(len(pair))[:most])
    return Pair(np.asarray(some.X, dtype=float), np.asarray(some.X_tilde, dtype=float), some.feature_of)


def some_columns(pair: Pair, most: int, rng: Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Choose features at random, at most ``most`` columns of them (or one feature): their columns, and their owners."""
    if pair.n_columns <= most:
        return np.arange(pair.n_columns), pair.feature_of
    features = rng.permutation(pair.n_features)
    sizes = np.bincount(pair.feature_of)[features].cumsum()
    chosen = np.sort(features[: max(int((sizes <= most).sum()), 1)])
    columns = np.flatnonzero(np.isin(pair.feature_of, chosen))
    return columns, np.searchsorted(chosen, pair.feature_of[columns])
