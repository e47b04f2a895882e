import numpy as np
import pytest
from scipy.stats import multivariate_normal
from tests.refusals import refuses

from knockoffs.errors import ColumnsError, KnockoffWarning
from knockoffs.features.gaussian import fit_gaussian
from knockoffs.features.gaussian_mixture import fit_gaussian_mixture, gaussian_mixture_features
from knockoffs.sampling.sampler import sample_knockoffs

MEANS = np.array([[-3.0, 0.0, 1.0], [3.0, 1.0, -1.0]])
COVARIANCES = np.array([[[1, 0.6, 0], [0.6, 1, 0.3], [0, 0.3, 1]], [[1, -0.6, 0.2], [-0.6, 1, 0], [0.2, 0, 1]]])


@pytest.fixture
def mixture():
    return gaussian_mixture_features([0.3, 0.7], MEANS, COVARIANCES)


def draw(n, rng):
    K = (rng.random(n) < 0.7).astype(int)
    return np.array([rng.multivariate_normal(MEANS[k], COVARIANCES[k]) for k in K])


def test_posterior_of_a_far_row_is_still_a_law(mixture):
    far = np.full((1, 3), 1e6)
    assert mixture.posterior(far).sum() == pytest.approx(1.0)


def test_em_recovers_the_mixture_and_held_out_rows_its_size(rng):
    X = draw(3000, rng)
    model = fit_gaussian_mixture(X, rng=rng, n_components=range(1, 5))
    assert model.n_components == 2 and set(model.criterion) == {1, 2, 3, 4}
    order = np.argsort(model.weights)
    assert np.abs(model.weights[order] - [0.3, 0.7]).max() < 0.05
    for k, truth in zip(order, (0, 1), strict=True):
        assert np.abs(model.laws[k].mean - MEANS[truth]).max() < 0.2  # standard error 0.033
        assert np.abs(model.laws[k].covariance - COVARIANCES[truth]).max() < 0.25


def test_fit_does_not_depend_on_jobs_or_units_or_offset(seed):
    X = draw(800, np.random.default_rng(seed))

    def knockoffs(X, n_jobs=None):
        rng = np.random.default_rng(seed + 1)
        model = fit_gaussian_mixture(X, rng=rng, n_components=range(1, 4), n_jobs=n_jobs)
        return sample_knockoffs(model.as_network(), X, rng)

    plain = knockoffs(X)
    assert (knockoffs(X, n_jobs=2) == plain).all()
    units = np.array([1e-12, 1.0, 1e12])
    np.testing.assert_allclose(knockoffs(X * units) / units, plain, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(knockoffs(X + 1e5) - 1e5, plain, rtol=1e-4, atol=1e-6)


def test_few_rows_are_shrunk_and_said(rng):
    X = rng.normal(size=(60, 25))
    with pytest.warns(KnockoffWarning, match="rests on .* rows for 25 columns: its covariance was shrunk"):
        model = fit_gaussian_mixture(X, rng=rng, n_components=2)
    assert all(np.linalg.eigvalsh(law.covariance).min() > 0.01 for law in model.laws)


@pytest.mark.parametrize(
    ("weights", "means", "covariances", "message"),
    [
        ([0.5, 0.6], MEANS, COVARIANCES, "weights add up to 1.1"),
        ([1.0, 0.0], MEANS, COVARIANCES, "component 1 has weight 0: it is empty"),
        ([1.0], MEANS, COVARIANCES, r"means has shape \(2, 3\): expected \(1, d\)"),
        ([0.5, 0.5], MEANS, COVARIANCES[:1], r"covariances has shape \(1, 3, 3\): expected \(2, 3, 3\)"),
        ([0.5, 0.5], MEANS, [np.eye(3), np.ones((3, 3))], "covariance of component 1 is not positive definite"),
    ],
)
def test_impossible_mixtures_are_refused(weights, means, covariances, message):
    refuses(message, gaussian_mixture_features, weights, means, covariances)


def test_one_gaussian_is_the_mixture_of_one(rng):
    X = draw(400, rng)
    one, mixture = fit_gaussian(X), fit_gaussian_mixture(X, rng=rng, n_components=1)
    np.testing.assert_allclose(mixture.laws[0].covariance, one.laws[0].covariance, rtol=1e-10)
    np.testing.assert_allclose(mixture.laws[0].D, one.laws[0].D, rtol=1e-8)


def test_components_do_not_collapse_onto_a_shared_value(rng):
    """A quarter of the rows are exactly 0 in column 1: likelihood would put a component there, without spread."""
    X = draw(800, rng)
    X[:200, 1] = 0.0
    model = fit_gaussian_mixture(X, rng=rng, n_components=range(1, 7))
    assert all(np.diag(law.covariance)[1] > 1e-4 * X[:, 1].var() for law in model.laws)
    with pytest.raises(ColumnsError, match="component . of the mixture collapsed onto a single value of column '1'"):
        fit_gaussian_mixture(X, rng=rng, n_components=6)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_values_are_refused_by_column(value):
    X = np.random.default_rng(0).standard_normal((30, 3))
    X[4, 1] = value
    for fit in (fit_gaussian, fit_gaussian_mixture):
        refuses("column '1' has missing or infinite values", fit, X, rng=np.random.default_rng(0))


def test_aic_does_not_choose_components_of_few_rows(rng):
    """The likelihood of a component with fewer rows than columns has no bound: AIC alone takes 7 to 9 of them here."""
    from sklearn.datasets import load_breast_cancer

    X = load_breast_cancer().data
    model = fit_gaussian_mixture(X, rng=rng)
    inadmissible = [k for k, value in model.criterion.items() if np.isinf(value)]
    assert inadmissible and model.n_components not in inadmissible
    assert (model.weights * len(X) >= 2 * X.shape[1]).all()


def test_the_law_is_a_density_that_sums_over_components(mixture, rng):
    X = draw(50, rng)
    parts = zip([0.3, 0.7], MEANS, COVARIANCES, strict=True)
    density = sum(w * multivariate_normal(m, S).pdf(X) for w, m, S in parts)
    np.testing.assert_allclose(mixture.log_density(X), np.log(density), rtol=1e-10)


def test_draws_have_the_moments_of_the_mixture(mixture, rng):
    """5 standard errors of 40,000 rows, 12 comparisons: a false alarm in 10^5 runs."""
    n = 40_000
    X = mixture.sample(n, rng)
    mean = 0.3 * MEANS[0] + 0.7 * MEANS[1]
    second = sum(w * (S + np.outer(m, m)) for w, m, S in zip([0.3, 0.7], MEANS, COVARIANCES, strict=True))
    assert (np.abs(X.mean(axis=0) - mean) <= 5 * X.std(axis=0) / np.sqrt(n)).all()
    products = X[:, :, None] * X[:, None, :]
    assert (np.abs(products.mean(axis=0) - second) <= 5 * products.std(axis=0) / np.sqrt(n)).all()


def test_what_was_fitted_is_said(rng):
    model = fit_gaussian_mixture(draw(900, rng), rng=rng, n_components=range(1, 4))
    rows = ", ".join(f"{900 * weight:.0f}" for weight in model.weights)
    assert model.say().startswith(
        "P^X is a mixture of 2 Gaussians of 3 columns (chosen by held-out likelihood among 1 to 3 components), "
        f"fitted to 900 rows, {rows} a component"
    )
    given = gaussian_mixture_features([0.3, 0.7], MEANS, COVARIANCES)
    assert given.say() == "P^X is a mixture of 2 Gaussians of 3 columns with given parameters."
    few = draw(140, rng)
    one = fit_gaussian_mixture(few, rng=rng, n_components=1)
    assert one.intensities == fit_gaussian(few).intensities
