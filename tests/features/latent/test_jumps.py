"""Jumps between classes: they leave the law of (K, L) given the cells as it is, and get there from anywhere."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from knockoffs.features.latent.chain import classes, draw_latent, jump, sweep
from knockoffs.features.latent.margins import Steps, interval_cells, point_cells
from knockoffs.features.latent.model import latent_features

BINARY = Steps(np.array([0.0, 1.0]), np.array([-np.inf, 0.0, np.inf]))
FAR = 4.5  # standard errors: a right answer fails in one of 150,000 comparisons


def two_classes(d, r):
    """Weights, means and covariances of two classes of d coordinates, correlated by r and -r (or not at all)."""
    S = np.full((2, d, d), r) + (1 - r) * np.eye(d)
    S[1] = np.where(np.eye(d, dtype=bool), 1.0, -r / (d - 1))
    return np.array([0.3, 0.7]), np.stack([np.full(d, 0.4), np.full(d, -0.3)]), S


@pytest.mark.parametrize("n_draws", [1, 2, 5])
@pytest.mark.parametrize("start", [0, 1])
def test_classes_given_two_intervals_have_their_exact_probabilities(n_draws, start):
    weights, means, S = two_classes(2, 0.9)
    law = classes(weights, means, S)
    n = 6000
    both_above = interval_cells(np.zeros((n, 2)), np.full((n, 2), np.inf), np.full((n, 2), 0.7))
    exact = np.array(
        [w * multivariate_normal(-m, C).cdf(np.zeros(2)) for w, m, C in zip(weights, means, S, strict=True)]
    )
    L, K = both_above.start.copy(), np.full(n, start)
    rng = np.random.default_rng(n_draws)
    for _ in range(25):
        jump(L, K, both_above, law, rng=rng, n_draws=n_draws)
    p = exact[0] / exact.sum()
    assert abs((K == 0).mean() - p) < FAR * np.sqrt(p * (1 - p) / n)
    assert (L > 0).all()


def test_a_jump_knows_what_the_points_say_of_the_class():
    """With a point and an interval the weights hold a density too."""
    weights, means, S = two_classes(2, 0.8)
    law = classes(weights, means, S)
    n, x = 6000, 0.9
    point, above = (
        point_cells(np.full((n, 1), x)),
        interval_cells(np.zeros((n, 1)), np.full((n, 1), np.inf), np.ones((n, 1))),
    )
    cells = type(point)(*(np.ascontiguousarray(np.hstack(parts)) for parts in zip(point, above, strict=True)))
    exact = []
    for w, m, C in zip(weights, means, S, strict=True):
        mean, sd = m[1] + C[1, 0] / C[0, 0] * (x - m[0]), np.sqrt(C[1, 1] - C[1, 0] ** 2 / C[0, 0])
        exact.append(w * multivariate_normal(m[0], C[0, 0]).pdf(x) * multivariate_normal().cdf(mean / sd))
    L, K = cells.start.copy(), np.zeros(n, np.intp)
    rng = np.random.default_rng(0)
    for _ in range(10):
        jump(L, K, cells, law, rng=rng)
    p = exact[0] / sum(exact)
    assert abs((K == 0).mean() - p) < FAR * np.sqrt(p * (1 - p) / n)
    assert (L[:, 0] == x).all()


def test_rows_of_their_own_law_stay_in_it():
    """Drawn from the model, (K, L) given the cells has one law before and after a jump: classes and moments."""
    weights, means, S = two_classes(4, 0.7)
    margins = [BINARY] * 4
    model = latent_features(margins, weights, means, S)
    rng, n = np.random.default_rng(3), 20_000
    K = rng.choice(2, n, p=weights)
    factors = np.linalg.cholesky(S)
    L = means[K] + np.einsum("nij,nj->ni", factors[K], rng.standard_normal((n, 4)))
    X = model.write(L)
    K2, L2 = K.copy(), L.copy()
    jump(L2, K2, model.read(X), model.law, rng=rng)
    assert (model.write(L2) == X).all()
    assert (K2 != K).mean() > 0.05
    changed = K2.astype(float) - K
    assert abs(changed.mean()) < FAR * changed.std() / np.sqrt(n)
    for f in (lambda x: x, lambda x: x**2, lambda x: x * np.roll(x, 1, axis=1)):
        difference = f(L2) - f(L)
        assert (np.abs(difference.mean(axis=0)) < FAR * difference.std(axis=0) / np.sqrt(n)).all()


def test_a_draw_leaves_the_class_it_begins_in():
    """Many coarse columns hold a chain of sweeps alone where it began; a draw with jumps has the right shares."""
    d = 12
    S = np.stack([np.full((d, d), 0.97) + 0.03 * np.eye(d), np.eye(d)])
    weights, means = np.array([0.5, 0.5]), np.zeros((2, d))
    margins = [BINARY] * d
    model = latent_features(margins, weights, means, S)
    X = model.sample(1500, np.random.default_rng(0))
    cells = model.read(X)
    shares, rng = [], np.random.default_rng(1)
    for begin in (0, 1):
        L, K = cells.start.copy(), np.full(len(X), begin)
        for _ in range(8):
            jump(L, K, cells, model.law, rng=rng)
            sweep(L, K, cells, model.law, rng=rng, n_sweeps=5)
        shares.append((K == 0).mean())
    K, _ = draw_latent(cells, model.law, rng=np.random.default_rng(4), n_sweeps=20)
    assert np.allclose([*shares, (K == 0).mean()], 0.5, atol=0.06)  # 4.5 standard errors
