"""The latent model against what it is in special cases: the mixture, closed forms, its own draws."""

import numpy as np
import pytest
from scipy.special import ndtr

from knockoffs.errors import InputError
from knockoffs.features.gaussian_mixture import gaussian_mixture_features
from knockoffs.features.latent.margins import Affine, Steps, fit_curve
from knockoffs.features.latent.model import latent_features
from knockoffs.features.latent.nominal import fit_nominal
from knockoffs.sampling.sampler import NetworkSampler, sample_knockoffs


def label(codes=(0.0, 1.0, 2.0)):
    """A label with shares .5, .3, .2, whose boxes cut two coordinates."""
    return fit_nominal(np.repeat(codes, [5, 3, 2]), np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]))


def binary(cut):
    return Steps(np.array([0.0, 1.0]), np.array([-np.inf, cut, np.inf]))


def parameters(rng, d=4, k=3):
    root = rng.standard_normal((k, d, d))
    return np.full(k, 1 / k), 2 * rng.standard_normal((k, d)), root @ root.swapaxes(1, 2) + 0.2 * np.eye(d)


def test_without_steps_it_is_the_mixture(rng):
    """Identity margins, nothing missing: the same law and, with the same random numbers, the same knockoffs."""
    given = parameters(rng)
    latent, mixture = latent_features([Affine()] * 4, *given), gaussian_mixture_features(*given)
    X = latent.sample(300, rng)
    pair = latent.as_sampler().sample(X, np.random.default_rng(1))
    np.testing.assert_array_equal(pair.X, X)
    np.testing.assert_array_equal(pair.X_tilde, sample_knockoffs(mixture.as_network(), X, np.random.default_rng(1)))
    expected = np.logaddexp.reduce(mixture.log_joint(X), axis=1)
    np.testing.assert_allclose(latent.log_density(X), expected, rtol=1e-12)
    assert NetworkSampler(mixture.as_network()).feature_of.tolist() == latent.as_sampler().feature_of.tolist()


def test_curves_change_units_only(rng):
    """X = g(L): the density has the Jacobian, and the knockoffs are g of those of L."""
    given = parameters(rng, d=2, k=2)
    margins = [fit_curve(np.exp(rng.standard_normal(400))), Affine(3.0, 2.0)]
    plain, latent = latent_features([Affine()] * 2, *given), latent_features(margins, *given)
    L = np.clip(plain.sample(50, rng), -4, 4)
    X = latent.write(L)
    np.testing.assert_allclose(latent.read(X).start, L, atol=1e-9)
    slopes = margins[0].log_slope(X[:, 0]) + margins[1].log_slope(X[:, 1])
    np.testing.assert_allclose(latent.log_density(X), plain.log_density(L) + slopes, atol=1e-6)
    moved = plain.as_sampler().sample(latent.read(X).start, np.random.default_rng(2)).X_tilde
    np.testing.assert_array_equal(latent.as_sampler().sample(X, np.random.default_rng(2)).X_tilde, latent.write(moved))


def test_density_with_one_step_is_exact():
    S = np.array([[1.0, 0.6], [0.6, 1.0]])
    model = latent_features([Affine(), binary(0.3)], [1.0], [[0, 0]], [S])
    x = np.array([-1.0, 0.2, 1.4])
    above = ndtr((0.6 * x - 0.3) / 0.8)
    normal = np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)
    for value, share in ((1.0, above), (0.0, 1 - above), (np.nan, np.ones(3))):
        X = np.column_stack([x, np.full(3, value)])
        np.testing.assert_allclose(np.exp(model.log_density(X)), normal * share, rtol=1e-9)


def test_density_of_labels_adds_up_to_one():
    nominal = label()
    S = np.eye(3)
    S[0, 1:] = S[1:, 0] = [0.4, -0.1]
    model = latent_features([binary(0.0), nominal], [1.0], [[0, 0, 0]], [S])
    X = np.array([(b, a) for b in (0.0, 1.0) for a in (0.0, 1.0, 2.0)])
    p = np.exp(model.log_density(X, n_draws=4000)).reshape(2, 3)  # a relative error of about 1 %
    np.testing.assert_allclose(p.sum(axis=1), [0.5, 0.5], rtol=0.05)
    np.testing.assert_allclose(p.sum(axis=0), [0.5, 0.3, 0.2], rtol=0.05)


def test_conditional_is_that_of_the_gaussian(rng):
    S = np.array([[1.0, 0.8], [0.8, 1.0]])
    model = latent_features([Affine(), Affine()], [1.0], [[0, 1]], [S])
    X = np.array([[2.0, 5.0], [-1.0, 5.0]])
    drawn = model.conditional(1, X, rng, 20_000)
    assert drawn.shape == (20_000, 2)
    # mean 1 + 0.8 x, variance 0.36; 5 standard errors
    assert (np.abs(drawn.mean(axis=0) - [2.6, 0.2]) < 5 * 0.6 / np.sqrt(20_000)).all()
    assert (np.abs(drawn.var(axis=0) - 0.36) < 5 * 0.36 * np.sqrt(2 / 20_000)).all()


def test_conditional_of_a_step_given_a_step(rng):
    S = np.array([[1.0, 0.7], [0.7, 1.0]])
    model = latent_features([binary(0.0), binary(0.0)], [1.0], [[0, 0]], [S])
    drawn = model.conditional(1, np.array([[1.0, 0.0]] * 4000), rng, 5, n_sweeps=10)
    share = 0.5 + np.arcsin(0.7) / np.pi  # orthant probability of two standard normals
    assert drawn.mean() == pytest.approx(share, abs=5 * np.sqrt(0.25 / 4000))


def test_wrong_number_of_columns_is_refused():
    model = latent_features([Affine()], [1.0], [[0]], [[[1.0]]])
    with pytest.raises(InputError, match="has 1 columns"):
        model.log_density(np.zeros((3, 2)))
