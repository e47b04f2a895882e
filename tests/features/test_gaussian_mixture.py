import numpy as np
import pytest
from scipy.stats import multivariate_normal

from knockoffs.errors import ColumnsError, InputError, KnockoffWarning
from knockoffs.features.gaussian import fit_gaussian, gaussian_features
from knockoffs.features.gaussian_mixture import fit_gaussian_mixture, gaussian_mixture_features
from knockoffs.features.shrinkage import INTENSITIES, _moments, estimate_covariance
from knockoffs.sampling.sampler import sample_knockoffs

MEANS = np.array([[-3.0, 0.0, 1.0], [3.0, 1.0, -1.0]])
COVARIANCES = np.array([[[1, 0.6, 0], [0.6, 1, 0.3], [0, 0.3, 1]], [[1, -0.6, 0.2], [-0.6, 1, 0], [0.2, 0, 1]]])


@pytest.fixture
def mixture():
    return gaussian_mixture_features([0.3, 0.7], MEANS, COVARIANCES)


def draw(n, rng):
    K = (rng.random(n) < 0.7).astype(int)
    return np.array([rng.multivariate_normal(MEANS[k], COVARIANCES[k]) for k in K])


def test_posterior_is_bayes_rule(mixture, rng):
    X = draw(50, rng)
    joint = np.column_stack(
        [w * multivariate_normal(m, S).pdf(X) for w, m, S in zip([0.3, 0.7], MEANS, COVARIANCES, strict=True)]
    )
    np.testing.assert_allclose(mixture.posterior(X), joint / joint.sum(axis=1, keepdims=True), rtol=1e-10)


def test_posterior_of_a_far_row_is_still_a_law(mixture):
    far = np.full((1, 3), 1e6)
    assert mixture.posterior(far).sum() == pytest.approx(1.0)


def test_joint_density_is_exchangeable(mixture, rng):
    """sum_k w_k P_k(x) Q_k(x_tilde | x) is unchanged by every swap: Proposition 3.1, exactly."""
    X, X_tilde = draw(20, rng), draw(20, rng)

    def joint(a, b):
        terms = [
            np.log(w) + law.log_density(a) + law.log_knockoff_density(b, a)
            for w, law in zip(mixture.weights, mixture.laws, strict=True)
        ]
        return np.logaddexp.reduce(terms, axis=0)

    for code in range(8):
        S = np.array([code & 1, code & 2, code & 4], dtype=bool)
        a, b = np.where(S, X_tilde, X), np.where(S, X, X_tilde)
        np.testing.assert_allclose(joint(a, b), joint(X, X_tilde), rtol=1e-9)


def test_knockoffs_have_the_mixture_moments(mixture, rng):
    """Moments 1 and 2 of (X, X_tilde) under a swap: 5 standard errors of 40,000 rows, 27 comparisons."""
    n = 40_000
    X = draw(n, rng)
    X_tilde = sample_knockoffs(mixture.as_network(), X, rng)
    both, swapped = np.hstack([X, X_tilde]), np.hstack([X_tilde[:, :1], X[:, 1:], X[:, :1], X_tilde[:, 1:]])
    gap = both[:, :, None] * both[:, None, :] - swapped[:, :, None] * swapped[:, None, :]
    error = gap.std(axis=0) / np.sqrt(n)
    assert (np.abs(gap.mean(axis=0)) <= 5 * error + 1e-12).all()


def test_em_recovers_the_mixture_and_aic_its_size(rng):
    X = draw(3000, rng)
    model = fit_gaussian_mixture(X, rng=rng, n_components=range(1, 5))
    assert model.n_components == 2 and set(model.criterion) == {1, 2, 3, 4}
    order = np.argsort(model.weights)
    assert np.abs(model.weights[order] - [0.3, 0.7]).max() < 0.05
    for k, truth in zip(order, (0, 1), strict=True):
        assert np.abs(model.laws[k].mean - MEANS[truth]).max() < 0.2  # standard error 0.033
        assert np.abs(model.laws[k].covariance - COVARIANCES[truth]).max() < 0.25


@pytest.mark.parametrize("criterion", ["bic", "held_out"])
def test_other_criteria_agree_on_a_clear_case(criterion, rng):
    assert (
        fit_gaussian_mixture(draw(1500, rng), rng=rng, n_components=range(1, 4), criterion=criterion).n_components == 2
    )


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


def test_constant_columns_keep_their_value(rng):
    X = np.column_stack([draw(300, rng), np.full(300, 7.0)])[:, [0, 3, 1, 2]]
    for model in (fit_gaussian(X), fit_gaussian_mixture(X, rng=rng, n_components=2)):
        X_tilde = sample_knockoffs(model.as_network(), X, rng)
        assert (X_tilde[:, 1] == 7).all() and (X_tilde[:, [0, 2, 3]] != X[:, [0, 2, 3]]).all()


@pytest.mark.parametrize("fit", [fit_gaussian, fit_gaussian_mixture])
def test_dependent_columns_are_refused_with_their_numbers(fit, rng):
    X = rng.normal(size=(200, 4))
    with pytest.raises(ColumnsError, match="columns '0', '2', '4' determine one another"):
        fit(np.column_stack([X, 2 * X[:, 0] - X[:, 2]]), rng=rng)
    with pytest.raises(ColumnsError, match="'1', '4' determine one another"):
        fit(np.column_stack([X, 1e6 * X[:, 1] + 3]), rng=rng)
    with pytest.raises(ColumnsError, match="'2', '5' determine one another"):
        fit(np.column_stack([np.ones(200), X, X[:, 1]]), rng=rng)
    with pytest.raises(ColumnsError, match="'1', '20' are copies"):
        wide = rng.normal(size=(10, 20))
        fit(np.column_stack([wide, -wide[:, 1]]), rng=rng)


def test_few_rows_are_shrunk_and_said(rng):
    X = rng.normal(size=(60, 25))
    with pytest.warns(KnockoffWarning, match="rests on .* rows for 25 columns: its covariance was shrunk"):
        model = fit_gaussian_mixture(X, rng=rng, n_components=2)
    assert all(np.linalg.eigvalsh(law.covariance).min() > 0.01 for law in model.laws)


@pytest.mark.parametrize("n", [30, 120, 500])
def test_shrinkage_does_not_hide_collinear_columns(n, rng):
    """Ledoit and Wolf's intensity (0.015 for 500 rows) would turn a correlation of 0.9999995 into 0.985."""
    X = rng.normal(size=(n, 3))
    X[:, 2] = X[:, 0] + 1e-3 * X[:, 2]
    S = fit_gaussian(X).law.covariance
    assert S[0, 2] / np.sqrt(S[0, 0] * S[2, 2]) > 1 - 1e-4


def test_shrinkage_is_near_the_best_there_is(rng):
    """300 rows of 100 columns: the divergence from the true law is within 15 % of the best intensity's, and less
    than two thirds of the plain covariance's. One draw; over 20 seeds the first ratio was at most 1.04."""
    d, n = 100, 300
    truth = 0.5 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    X = rng.multivariate_normal(np.zeros(d), truth, size=n)

    def divergence(S):  # Kullback-Leibler, of N(0, truth) from N(0, S)
        ratio = np.linalg.solve(S, truth)
        return 0.5 * (np.trace(ratio) - d - np.linalg.slogdet(ratio)[1])

    _, plain = _moments(X, np.ones(n))
    diagonal = np.diag(np.diag(plain))
    best = min(divergence((1 - a) * plain + a * diagonal) for a in INTENSITIES)
    _, chosen = estimate_covariance(X, what="the test")
    assert divergence(chosen) < 1.15 * best
    assert divergence(chosen) < divergence(plain) / 1.5


def test_covariance_of_many_rows_is_kept(rng):
    X = rng.normal(size=(500, 3))
    np.testing.assert_allclose(fit_gaussian(X).law.covariance, np.cov(X.T, bias=True), rtol=1e-9)


def test_covariance_with_weights_is_that_of_the_rows_they_leave(rng):
    X = rng.normal(size=(1000, 4)) @ rng.normal(size=(4, 4))
    mean, covariance = estimate_covariance(X, np.r_[np.zeros(500), np.ones(500)], what="the test")
    expected = estimate_covariance(X[500:], what="the test")
    np.testing.assert_allclose(mean, expected[0])
    np.testing.assert_allclose(covariance, expected[1])


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
    with pytest.raises(InputError, match=message):
        gaussian_mixture_features(weights, means, covariances)


def test_one_gaussian_is_the_mixture_of_one(rng):
    X = draw(400, rng)
    one, mixture = fit_gaussian(X), fit_gaussian_mixture(X, rng=rng, n_components=1)
    np.testing.assert_allclose(mixture.laws[0].covariance, one.law.covariance, rtol=1e-10)
    np.testing.assert_allclose(mixture.laws[0].D, one.law.D, rtol=1e-8)


def test_given_gaussian_checks_its_mean():
    with pytest.raises(InputError, match=r"mean has shape \(3,\): expected 2"):
        gaussian_features([0, 0, 0], np.eye(2))


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
        with pytest.raises(InputError, match="columns '1' have missing or infinite values"):
            fit(X, rng=np.random.default_rng(0))


def test_aic_does_not_choose_components_of_few_rows(rng):
    """The likelihood of a component with fewer rows than columns has no bound: AIC alone takes 7 to 9 of them here."""
    from sklearn.datasets import load_breast_cancer

    X = load_breast_cancer().data
    model = fit_gaussian_mixture(X, rng=rng)
    inadmissible = [k for k, value in model.criterion.items() if np.isinf(value)]
    assert inadmissible and model.n_components not in inadmissible
    assert (model.weights * len(X) >= 2 * X.shape[1]).all()
