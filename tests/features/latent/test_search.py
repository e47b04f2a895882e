"""The fit is a function of the table: no seed, one search, held-out rows."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

from knockoffs.errors import KnockoffWarning
from knockoffs.features.covariance import estimate_covariance
from knockoffs.features.em import Mixture
from knockoffs.features.latent import fit as fitting
from knockoffs.features.latent.fit import fit_latent
from knockoffs.features.latent.margins import fit_curve
from knockoffs.features.latent.search import choose_classes, choose_shrinkage, choose_units, pool, shrink_mixture


def mixed(n=400):
    rng = np.random.default_rng(0)
    z = rng.standard_normal((n, 4)) + rng.standard_normal((n, 1))
    X = np.column_stack([z[:, 0], np.exp(z[:, 1]), z[:, 2] > 0.3, np.digitize(z[:, 3], [-1, 0, 1])]).astype(float)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, ["continuous", "continuous", "binary", "nominal"]


TABLES = {
    "iris": lambda: (load_iris().data, None),
    "wine": lambda: (load_wine().data, None),
    "mixed": mixed,
}


def parameters(model):
    laws = [(law.mean, law.covariance, law.D) for law in model.mixture.laws]
    margins = [vars(margin) for margin in model.margins]
    return model.mixture.weights, laws, margins


@pytest.mark.parametrize("name", TABLES)
def test_the_seed_never_decides(name):
    X, kinds = TABLES[name]()
    fits = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        before = rng.bit_generator.state
        fits.append(parameters(fit_latent(X, rng=rng, kinds=kinds)))
        assert rng.bit_generator.state == before  # the draws of knockoffs begin where the user's seed says
    np.testing.assert_equal(*fits)


def test_a_seed_in_the_fit_is_seen(monkeypatch):
    """The fault: stochastic EM with numbers of its own in every call."""
    X, kinds = mixed()
    real, seeds = fitting.fit_one_class, iter(range(10))

    def seeded(*arguments, rng, **options):
        return real(*arguments, rng=np.random.default_rng(next(seeds)), **options)

    monkeypatch.setattr(fitting, "fit_one_class", seeded)
    one, two = (parameters(fit_latent(X, kinds=kinds, n_classes=1)) for _ in range(2))
    with pytest.raises(AssertionError):
        np.testing.assert_equal(one, two)


def test_classes_are_searched_once(monkeypatch):
    calls, real = [], fitting.choose_classes

    def counted(*arguments, **options):
        calls.append(arguments)
        return real(*arguments, **options)

    monkeypatch.setattr(fitting, "choose_classes", counted)
    for table in TABLES.values():
        X, kinds = table()
        fit_latent(X, kinds=kinds)
    assert len(calls) == len(TABLES)


def test_units_are_those_in_which_rows_are_likelier(rng):
    Z = rng.standard_normal((600, 4))
    own, gain = choose_units(Z)
    assert own and gain > 0
    own, gain = choose_units(np.exp(Z))
    assert not own and gain > 0


@pytest.mark.parametrize("units", [1.0, 1e6])
def test_a_mixture_is_found_in_its_own_units_whatever_they_are(units, rng):
    centres = np.array([[-5.0, 0, 5], [0, 5, -5], [5, -5, 0]])
    X = units * (rng.standard_normal((900, 3)) + centres[np.arange(900) % 3])
    scores = np.column_stack([fit_curve(x).read(x).start for x in X.T])
    choice = choose_classes(X, scores, np.arange(3), range(1, 8))
    assert choice.affine and choice.mixture.n_components == 3
    assert choice.gain > 0.2


def test_classes_drawn_again_from_the_cells_have_the_fitted_weights():
    """Three far clusters, one column of them rounded: a chain with a new beginning finds the classes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 8)) + 6 * rng.standard_normal((3, 8))[rng.integers(3, size=1500)]
    X[:, 0] = np.round(X[:, 0])
    model = fit_latent(X)
    assert model.n_classes >= 3
    K, _ = model.draw_hidden(X, np.random.default_rng(2))
    shares = np.bincount(K, minlength=model.n_classes) / len(K)
    assert np.abs(shares - model.mixture.weights).sum() / 2 < 0.1


def test_knockoffs_of_pixels_keep_their_correlations():
    """Coarse columns and several classes. The slope of corr(X_i, X_tilde_j) on corr(X_i, X_j): 1 where exchangeable."""
    from sklearn.datasets import load_digits

    X = load_digits().data[:900]
    X = X[:, (X != np.median(X, axis=0)).sum(axis=0) > 50]
    model = fit_latent(X)
    pair = model.as_sampler().sample(X, np.random.default_rng(2))
    C, d = np.corrcoef(pair.stacked.T), X.shape[1]
    off = ~np.eye(d, dtype=bool)
    own, crossed = C[:d, :d][off], C[:d, d:][off]
    assert (own @ crossed) / (own @ own) > 0.97


def codes(n=1500):
    """Small integer codes as in a survey: shares of a whole in tenths, and amounts beside counts of the same things."""
    rng = np.random.default_rng(0)
    shares = np.floor(10 * rng.dirichlet(np.ones(4), size=(n, 4))).reshape(n, 16)
    rare = rng.random((n, 8)) < rng.uniform(0.004, 0.1, 8)
    amounts = rare * rng.integers(1, 6, (n, 8))
    counts = rare * (1 + (rng.random((n, 8)) < 0.1))
    return np.hstack([shares, amounts, counts]).astype(float)


@pytest.mark.filterwarnings("ignore:columns")
def test_codes_that_nearly_determine_one_another_have_knockoffs():
    X = codes()
    model = fit_latent(X)
    assert np.isfinite(model.as_sampler().sample(X, np.random.default_rng(1)).X_tilde).all()
    for law in model.mixture.laws:
        assert np.linalg.eigvalsh(law.covariance)[0] > 0


def correlation(rng, d):
    """Random correlation matrix."""
    A = rng.standard_normal((d, 2 * d))
    S = A @ A.T
    return S / np.sqrt(np.outer(np.diagonal(S), np.diagonal(S)))


@pytest.fixture
def classes(rng):
    """Three classes in four coordinates: weights, scales, correlations."""
    return np.array([2.0, 1.0, 1.0]), rng.uniform(0.5, 2, (3, 4)), np.stack([correlation(rng, 4) for _ in range(3)])


def covariances(scales, correlations):
    """Covariances of scales and correlations."""
    return correlations * scales[:, :, None] * scales[:, None, :]


def test_part_of_the_way_it_is_the_convex_combination(classes):
    weights, scales, R = classes
    average = (2 * R[0] + R[1] + R[2]) / 4
    target = 0.8 * average + 0.2 * np.eye(4)
    found = pool(weights, covariances(scales, R), 0.8, [0.3, 0.5, 1.0])
    expected = np.stack([left * R_k + (1 - left) * target for left, R_k in zip([0.3, 0.5, 1.0], R, strict=True)])
    np.testing.assert_allclose(found, covariances(scales, expected), atol=1e-14)
    assert np.linalg.eigvalsh(found).min() > 0


def test_classes_of_few_rows_with_equal_correlations_are_drawn_together(rng):
    """60 rows a class for 20 coordinates, all correlations .5: new rows are likelier than by what a class knows alone.

    By itself, shrunk towards none as far as held-out rows ask, a class has correlations that are too small.
    """
    factor = np.linalg.cholesky(0.5 * np.eye(20) + 0.5)
    means, scales = 10.0 * np.outer(range(3), np.ones(20)), np.array([1, 2, 0.5])

    def draw(rows):
        K = np.repeat(np.arange(3), rows)
        return K, rng.standard_normal((3 * rows, 20)) @ factor.T * scales[K, None] + means[K]

    (K, Z), (_, new) = draw(60), draw(1000)
    assert min(choose_shrinkage(Z, np.eye(3)[K]).own) > 0.6
    start = Mixture(np.full(3, 1 / 3), means, scales[:, None, None] ** 2 * np.eye(20))
    with pytest.warns(KnockoffWarning, match="shrunk"):
        alone = [estimate_covariance(Z[K == k], what="a class") for k in range(3)]
    by_itself = Mixture(np.full(3, 1 / 3), np.stack([a.mean for a in alone]), np.stack([a.covariance for a in alone]))
    gains = shrink_mixture(Z, start).log_density(new) - by_itself.log_density(new)
    assert gains.mean() > 0.15  # 0.30 here, its standard error 0.02


def test_classes_whose_correlations_differ_keep_them(rng):
    """Correlations of .9 and -.3 with 600 rows each: the average would be wrong for both."""
    K = np.repeat([0, 1], 600)
    Z = np.empty((1200, 3))
    for k, r in enumerate((0.9, -0.3)):
        Z[K == k] = rng.standard_normal((600, 3)) @ np.linalg.cholesky((1 - r) * np.eye(3) + r).T
    assert max(choose_shrinkage(Z, np.eye(2)[K]).own) < 0.1


def test_one_class_is_shrunk_towards_no_correlation(rng):
    noise = choose_shrinkage(rng.standard_normal((60, 20)), np.ones((60, 1)))
    assert noise.common > 0.5 and noise.own == (0.0,)


def test_held_out_rows_judge_one_class_as_it_is_used(rng):
    """Its correlations are shrunk by what is common, exactly; unshrunk, it lost against two needless classes."""
    Z = rng.standard_normal((60, 20))
    one = Mixture(np.ones(1), np.zeros((1, 20)), np.eye(20)[None])
    a = choose_shrinkage(Z, np.ones((60, 1))).common
    S = np.cov(Z.T, bias=True)
    expected = np.where(np.eye(20, dtype=bool), S * (1 + 1e-6), (1 - a) * S)
    np.testing.assert_allclose(shrink_mixture(Z, one).covariances[0], expected, atol=1e-12)


def test_what_is_said():
    assert str(choose_shrinkage(np.zeros((5, 1)), np.ones((5, 1)))) == ""
