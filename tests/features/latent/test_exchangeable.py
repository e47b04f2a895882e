"""The law of (X, X_tilde) of small latent models, with L and L_tilde integrated by quadrature, under every swap."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from knockoffs.features.latent.margins import Steps
from knockoffs.features.latent.model import latent_features
from knockoffs.features.latent.nominal import fit_nominal

FAR = 6.0  # the standard normal beyond it has probability 2e-9
NODES = 11  # Gauss-Legendre nodes for each piece of each coordinate


def steps(*inner):
    cuts = np.array([-np.inf, *inner, np.inf])
    return Steps(np.arange(len(cuts) - 1.0), cuts)


def pieces(cuts):
    """Nodes and weights of integrals over each step, pieces at most 3 wide."""
    t, w = np.polynomial.legendre.leggauss(NODES)
    nodes, weights = [], []
    for low, high in zip(cuts[:-1], cuts[1:], strict=True):
        low, high = max(low, -FAR), min(high, FAR)
        parts = np.linspace(low, high, 1 + int(np.ceil((high - low) / 3.0)))
        for a, b in zip(parts[:-1], parts[1:], strict=True):
            nodes.append(a + (b - a) * (t + 1) / 2)
            weights.append(w * (b - a) / 2)
    return np.concatenate(nodes), np.concatenate(weights)


def joint_law(model, kernel_laws=None):
    """P(X = x, X_tilde = x_tilde) of two step columns, shape (m1, m2, m1, m2), by the sampler's own kernel.

    kernel_laws are those that L_tilde is drawn with; the model's own, unless a fault is planted.
    """
    (a, wa), (b, wb) = (pieces(margin.cuts) for margin in model.margins)
    L = np.array([(x, y) for x in a for y in b])
    weights = np.outer(wa, wb).ravel()
    X = model.write(L).astype(int)
    shape = tuple(len(margin.values) for margin in model.margins)
    cell = np.ravel_multi_index(X.T, shape)
    indicator = (cell[:, None] == np.arange(np.prod(shape))) * weights[:, None]
    law = np.zeros((np.prod(shape), np.prod(shape)))
    kernel_laws = kernel_laws or model.mixture.laws
    for weight, own, moving in zip(model.mixture.weights, model.mixture.laws, kernel_laws, strict=True):
        density = weight * np.exp(own.log_density(L))
        for some in np.array_split(np.arange(len(L)), 40):
            rows = np.repeat(L[some], len(L), axis=0)
            kernel = np.exp(moving.log_knockoff_density(np.tile(L, (len(some), 1)), rows)).reshape(len(some), len(L))
            law += (indicator[some] * density[some][:, None]).T @ (kernel @ indicator)
    return law.reshape(*shape, *shape)


def asymmetry(law):
    """Largest change of the law under the swap of a feature, for laws of shape (m1, m2, m1, m2)."""
    return max(np.abs(law - law.swapaxes(0, 2)).max(), np.abs(law - law.swapaxes(1, 3)).max())


def correlation(r):
    return np.array([[1.0, r], [r, 1.0]])


def two_classes(margins):
    covariances = [correlation(0.7), np.array([[0.5, -0.3], [-0.3, 0.9]])]
    return latent_features(margins, [0.6, 0.4], [[-0.4, 0.2], [0.6, -0.3]], covariances)


MODELS = {
    "binary": lambda: latent_features([steps(0.3), steps(-0.5)], [1.0], [[0, 0]], [correlation(0.6)]),
    "binary and ordinal": lambda: latent_features(
        [steps(-0.2), steps(-0.9, 0.4)], [1.0], [[0, 0]], [correlation(-0.5)]
    ),
    "two classes": lambda: two_classes([steps(0.3), steps(-0.5, 0.8)]),
}


@pytest.mark.parametrize("name", MODELS)
def test_law_is_unchanged_by_every_swap(name):
    law = joint_law(MODELS[name]())
    assert law.sum() == pytest.approx(1, abs=1e-6)
    assert asymmetry(law) < 1e-6


def test_a_law_of_another_class_is_seen():
    model = MODELS["two classes"]()
    assert asymmetry(joint_law(model, model.mixture.laws[::-1])) > 1e-3


def nominal_law(model):
    """P(N, B, N_tilde, B_tilde) of a label with three levels and a binary column, by probabilities of boxes.

    [L, L_tilde] is a six-dimensional Gaussian by the sampler's own affine map, and every event a box of it.
    """
    (law,), (nominal, binary) = model.mixture.laws, model.margins
    # [L, L_tilde] = [mean, mean] + [I 0; I - slope^T, C] [L - mean; z]
    top = np.hstack([law.factor, np.zeros((3, 3))])
    bottom = np.hstack([(np.eye(3) - law.slope.T) @ law.factor, law.noise_factor])
    root = np.vstack([top, bottom])
    out = np.empty((3, 2, 3, 2))
    for a, b, a_tilde, b_tilde in product(range(3), range(2), range(3), range(2)):
        low, high = (
            np.concatenate([ends[a], [steps_at[b]], ends[a_tilde], [steps_at[b_tilde]]])
            for ends, steps_at in ((nominal.low, binary.cuts[:-1]), (nominal.high, binary.cuts[1:]))
        )
        out[a, b, a_tilde, b_tilde] = multivariate_normal.cdf(
            high, np.tile(law.mean, 2), root @ root.T, maxpts=100_000, abseps=1e-6, releps=1e-6, lower_limit=low
        )
    return out


def nominal_model():
    """A label whose three boxes cut two coordinates, beside a binary column."""
    nominal = fit_nominal(np.repeat([0.0, 1.0, 2.0], [5, 3, 2]), np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]))
    S = np.eye(3)
    S[2, :2] = S[:2, 2] = [0.5, -0.1]
    return latent_features([nominal, steps(0.2)], [1.0], [[0, 0, 0]], [S])


def test_a_nominal_column_is_one_feature():
    model = nominal_model()
    law = nominal_law(model)
    # the quasi-Monte Carlo error of a six-dimensional probability is about 1e-6
    assert law.sum() == pytest.approx(1, abs=2e-5)
    assert asymmetry(law) < 1e-5
    np.testing.assert_allclose(law.sum(axis=(1, 2, 3)), [0.5, 0.3, 0.2], atol=1e-5)
