"""The sampler of (K, L) given the cells: simulation-based calibration, and its closed forms."""

import numpy as np
import pytest
from scipy.stats import chi2, kstest, multivariate_normal, truncnorm

from knockoffs.features.latent.chain import classes, draw_latent, jump, sweep
from knockoffs.features.latent.margins import INTERVAL, Affine, Steps, interval_cells, point_cells
from knockoffs.features.latent.model import latent_features
from knockoffs.features.latent.nominal import fit_nominal
from knockoffs.features.latent.normals import draw_truncated, log_interval
from knockoffs.sampling.conjugates.markov_chain_kernels import seed_row

N, DRAWS, SWEEPS = 3000, 7, 40
UNLIKELY = 1e-6  # of each test of calibration: about 20 of them, so a false failure in 50,000 runs


def steps(*inner):
    cuts = np.array([-np.inf, *inner, np.inf])
    return Steps(np.arange(len(cuts) - 1.0), cuts)


def mixed_model():
    """Continuous, binary, ordinal, nominal with three levels; two classes."""
    nominal = fit_nominal(np.repeat([0.0, 1.0, 2.0], [5, 3, 2]), np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]))
    margins = [Affine(2.0, 3.0), steps(0.3), steps(-0.8, 0.1, 0.9), nominal]
    root = np.random.default_rng(5).standard_normal((2, 5, 5))
    covariances = root @ root.swapaxes(1, 2) / 5 + 0.3 * np.eye(5)
    return latent_features(margins, [0.6, 0.4], [[-0.5, 0.3, 0, 0.2, 0], [0.7, -0.4, 0.2, 0, 0.5]], covariances)


def draw_prior(model, n, rng):
    K = rng.choice(model.n_classes, size=n, p=model.mixture.weights)
    L = np.empty((n, len(model.layout.column_of)))
    for k, law in enumerate(model.mixture.laws):
        L[K == k] = rng.multivariate_normal(law.mean, law.covariance, size=int((K == k).sum()))
    return K, L


def calibration(model, rng, cells_of=lambda cells: cells, law=None, missing=0.2):
    """P-values: ranks of L among draws given X (a chi-square for each coordinate), and of the class.

    Truth and draws are exchangeable given X, so the rank of the truth is uniform over 0, ..., DRAWS.
    """
    K, L = draw_prior(model, N, rng)
    X = model.write(L)
    X[rng.random(X.shape) < missing] = np.nan
    cells = cells_of(model.read(X))
    drawn = [draw_latent(cells, law or model.law, rng=rng, n_sweeps=SWEEPS) for _ in range(DRAWS)]
    rank = sum((draw < L).astype(int) for _, draw in drawn)
    p_values = []
    for j in range(L.shape[1]):
        if not (hidden := cells.status[:, j] != 0).any():
            continue
        counts = np.bincount(rank[hidden, j], minlength=DRAWS + 1)
        expected = hidden.sum() / (DRAWS + 1)
        p_values.append(chi2.sf(((counts - expected) ** 2).sum() / expected, DRAWS))
    # the class: K and a draw of it are exchangeable, so their difference has mean zero
    difference = drawn[0][0].astype(float) - K
    p_values.append(chi2.sf(difference.sum() ** 2 / max((difference**2).sum(), 1), 1))
    return np.array(p_values)


def test_draws_are_calibrated(rng):
    assert calibration(mixed_model(), rng).min() > UNLIKELY


def test_truncation_on_the_wrong_side_is_seen(rng):
    def mirrored(cells):
        ordinal = cells.status == INTERVAL
        low, high = np.where(ordinal, -cells.high, cells.low), np.where(ordinal, -cells.low, cells.high)
        start = np.where(ordinal, -cells.start, cells.start)
        return cells._replace(low=low, high=high, start=start)

    assert calibration(mixed_model(), rng, mirrored).min() < UNLIKELY


def test_draws_do_not_depend_on_threads():
    model = mixed_model()
    X = model.sample(500, np.random.default_rng(3))
    one, four = (model.draw_hidden(X, np.random.default_rng(4), n_sweeps=3, n_jobs=n)[1] for n in (1, 4))
    np.testing.assert_array_equal(one, four)


@pytest.mark.parametrize(
    "a, b",
    [(-np.inf, np.inf), (0.0, np.inf), (-np.inf, -3.0), (2.0, 2.1), (-1.0, -0.9), (0.5, 3.0), (-8.0, 0.2)]
    + [(6.0, np.inf), (-0.1, 0.3), (8.0, 9.0), (0.4, 1.5), (0.44, 1.7), (-np.inf, 0.7)],
)
def test_truncated_normals(a, b):
    state = np.empty(4, np.uint64)
    seed_row(np.array([3, 4], np.uint64), 0, state)
    z = np.array([draw_truncated(a, b, state) for _ in range(4000)])
    assert z.min() >= a and z.max() <= b
    assert kstest(z, truncnorm(a, b).cdf).pvalue > 1e-6  # one false failure in 77,000 runs of all cases
    assert log_interval(a, b) == pytest.approx(truncnorm_log_mass(a, b), rel=1e-9, abs=1e-12)


def truncnorm_log_mass(a, b):
    from scipy.special import log_ndtr

    if a > 0:
        a, b = -b, -a
    return float(log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b))))


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
