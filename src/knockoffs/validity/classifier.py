"""A classifier is asked which of two is the row as it came, and which the row with features swapped.

Trees are boosted on the rows of earlier blocks and asked about the rows of the next one, so that no row is judged by a
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

from knockoffs.sampling.pair import Pair
from knockoffs.validity.margins import margin_differences
from knockoffs.validity.signs import Check, sign_sums

N_BLOCKS = 3  # the first is only learned from, the others are asked about one after the other
N_TREES = 60
MAX_COLUMNS = 100  # that the trees look at


def check_classifier(
    pair: Pair, names: Sequence[str], kinds: tuple[str, ...], rng: Generator, *, n_jobs: int | None = None
) -> Check:
    """Count how often boosted trees tell a row from its swapped self."""
    streams = rng.spawn(2)
    answers = {
        "all": tell_apart(pair, kinds, streams[0], halves=False, n_jobs=n_jobs),
        "half": tell_apart(pair, kinds, streams[1], halves=True, n_jobs=n_jobs),
    }
    n_asked = len(answers["all"])
    right = {swapped: float(answer.mean()) for swapped, answer in answers.items()}
    best = max(right, key=lambda swapped: right[swapped])
    # ties are broken by a coin, so the count is a whole number
    p = min(1.0, 2 * float(binom.sf(round(right[best] * n_asked) - 1, n_asked, 0.5)))
    effect = max(2 * right[best] - 1, 0.0)
    said = f"Trees tell rows from rows with {best} {'of the features' if best == 'half' else 'features'} swapped"
    sentence = f"{said} in {right[best]:.0%} of {n_asked} rows (50% is chance)."
    return Check("classifier", p, right[best], effect, (), sentence)


def tell_apart(
    pair: Pair, kinds: tuple[str, ...], rng: Generator, *, halves: bool, n_jobs: int | None = None
) -> NDArray[np.bool_]:
    """Right and wrong answers, shape (rows asked about,)."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    order_rng, swap_rng, coin_rng, tree_rng = rng.spawn(4)
    S = swap_rng.random((len(pair), pair.n_features)) < 0.5 if halves else np.ones((len(pair), pair.n_features), bool)
    swapped = swap_rows(pair, S)
    blocks = np.array_split(order_rng.permutation(len(pair)), N_BLOCKS)
    answers = []
    for b in range(1, N_BLOCKS):
        learn, ask = np.concatenate(blocks[:b]), blocks[b]
        columns = screen(pair.rows(learn), kinds)
        came, turned = features(pair, columns), features(swapped, columns)
        model = HistGradientBoostingClassifier(
            max_iter=N_TREES,
            learning_rate=0.1,
            max_leaf_nodes=8,
            min_samples_leaf=10,
            early_stopping=False,
            max_bins=63,
            random_state=int(tree_rng.integers(2**31)),
        )
        with threadpool_limits(limits=n_jobs or 1, user_api="openmp"):
            model.fit(np.vstack([came[learn], turned[learn]]), np.repeat([1, 0], len(learn)))
            lead = model.decision_function(came[ask]) - model.decision_function(turned[ask])
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
