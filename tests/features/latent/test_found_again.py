"""Classes that a draw from the cells cannot find again are not used."""

import numpy as np

from knockoffs.features.latent.fit import fit_latent


def pixels(rng):
    """Coarse pixels of handwritten digits, most of them 0 in most rows."""
    from sklearn.datasets import load_digits

    X = load_digits().data
    return X[:, (X != np.median(X, axis=0)).sum(axis=0) > 100]


def clusters(rng, n=1500, d=8):
    """Three far clusters, one column of them rounded."""
    X = rng.standard_normal((n, d)) + 6 * rng.standard_normal((3, d))[rng.integers(3, size=n)]
    X[:, 0] = np.round(X[:, 0])
    return X


def test_classes_drawn_afresh_have_the_fitted_weights():
    X = clusters(np.random.default_rng(0))
    model = fit_latent(X, rng=np.random.default_rng(1))
    assert model.n_classes > 1
    K, _ = model.draw_hidden(X, np.random.default_rng(2))
    shares = np.bincount(K, minlength=model.n_classes) / len(K)
    assert np.abs(shares - model.mixture.weights).sum() / 2 < 0.15


def test_knockoffs_of_pixels_keep_their_correlations():
    """The slope of corr(X_i, X_tilde_j) on corr(X_i, X_j) over pairs: 1 where exchangeable."""
    X = pixels(None)
    model = fit_latent(X, rng=np.random.default_rng(1), n_classes=4)  # asked for, so it is used
    pair = model.as_sampler().sample(X, np.random.default_rng(2))
    C, d = np.corrcoef(pair.stacked.T), X.shape[1]
    off = ~np.eye(d, dtype=bool)
    own, crossed = C[:d, :d][off], C[:d, d:][off]
    assert model.n_classes == 4
    assert (own @ crossed) / (own @ own) > 0.97
