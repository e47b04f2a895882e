"""A classifier guesses which of two rows is the original, and which the row with features swapped.

Trees are boosted on the rows of earlier blocks and predict the rows of the next one, so that no row is predicted by a
model that has seen it. Under exchangeability each answer is right with probability 1/2, whatever the answers before, so
the number of right answers is binomial, exactly. A row and its swapped self always stay together.

Two questions: all features swapped (is the law of X_tilde that of X?), and a random half of them in each row (are X and
X_tilde linked as they should be?).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.stats import binom

from knockoffs.diagnostics.margins import margin_differences
from knockoffs.diagnostics.sign_tests import Check, sign_sums
from knockoffs.machine.parallel import worthwhile_threads
from knockoffs.sampling.pair import Pair

N_BLOCKS = 3  # the first only trains, the others are predicted one after the other
MAX_COLUMNS = 100  # that the trees look at
TREES = {"max_iter": 40, "learning_rate": 0.2, "max_depth": 3, "min_samples_leaf": 10, "max_bins": 16}


def check_classifier(pair: Pair, kinds: tuple[str, ...], rng: Generator) -> Check:
    """Count how often boosted trees distinguish a row from its swapped copy."""
    order_rng, *streams = rng.spawn(3)
    blocks = np.array_split(order_rng.permutation(len(pair)), N_BLOCKS)
    columns = [screen(pair.rows(np.concatenate(blocks[:b])), kinds) for b in range(1, N_BLOCKS)]
    answers = {
        which: tell_apart(pair, blocks, columns, stream, halves=which == "half")
        for which, stream in zip(("all", "half"), streams, strict=True)
    }
    n_asked = len(answers["all"])
    right = {swapped: float(answer.mean()) for swapped, answer in answers.items()}
    best = max(right, key=lambda swapped: right[swapped])
    # ties are broken by a coin, so the count is a whole number
    p = min(1.0, 2 * float(binom.sf(round(right[best] * n_asked) - 1, n_asked, 0.5)))
    effect = max(2 * right[best] - 1, 0.0)
    which = "half of the features" if best == "half" else "all features"
    accuracy = f"{100 * right[best]:.0f} % accuracy (50 % is chance, n = {n_asked})"
    sentence = f"A tree classifier detects rows with {which} swapped with {accuracy}."
    return Check("classifier", p, right[best], effect, (), sentence)


def tell_apart(
    pair: Pair,
    blocks: Sequence[NDArray[np.intp]],
    columns: Sequence[NDArray[np.intp]],
    rng: Generator,
    *,
    halves: bool,
) -> NDArray[np.bool_]:
    """Right and wrong answers about the rows of all blocks but the first, shape (rows asked about,).

    ``columns`` are those that the trees may use for the second block, the third, ...
    """
    from sklearn.ensemble import HistGradientBoostingClassifier  # takes a while to import

    swap_rng, coin_rng = rng.spawn(2)
    S = swap_rng.random((len(pair), pair.n_features)) < 0.5 if halves else np.ones((len(pair), pair.n_features), bool)
    swapped = swap_rows(pair, S)
    answers = []
    for b in range(1, len(blocks)):
        learn, ask, own = np.concatenate(blocks[:b]), blocks[b], columns[b - 1]
        V = np.vstack([features(pair.rows(learn), own), features(swapped.rows(learn), own)])
        trees = HistGradientBoostingClassifier(**TREES, early_stopping=False)
        with worthwhile_threads(V.size):
            trees.fit(V, np.repeat([True, False], len(learn)))
            original, other = (trees.decision_function(features(one.rows(ask), own)) for one in (pair, swapped))
        lead = original - other
        answers.append(np.where(lead == 0, coin_rng.random(len(ask)) < 0.5, lead > 0))
    return np.concatenate(answers)


def swap_rows(pair: Pair, S: NDArray[np.bool_]) -> Pair:
    """[X, X_tilde] with the features S[i], shape (n, n_features), swapped in row i."""
    mask = S[:, pair.feature_of]
    return Pair(np.where(mask, pair.X_tilde, pair.X), np.where(mask, pair.X, pair.X_tilde), pair.feature_of)


def features(pair: Pair, columns: NDArray[np.intp]) -> NDArray:
    """[X, X_tilde, X - X_tilde]: trees cut along axes, and the diagonal is one they need."""
    X, X_tilde = pair.X[:, columns], pair.X_tilde[:, columns]
    return np.hstack([X, X_tilde, X - X_tilde])


def screen(pair: Pair, kinds: tuple[str, ...]) -> NDArray[np.intp]:
    """Columns the trees look at: all, or those whose margins differ most in the rows that are learned from."""
    if pair.n_columns <= MAX_COLUMNS:
        return np.arange(pair.n_columns)
    strength = [np.abs(t).max(initial=0.0) for t in margin_differences(pair, kinds, of=sign_sums)[0]]
    return np.sort(np.argsort(strength)[::-1][:MAX_COLUMNS])
