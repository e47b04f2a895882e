"""Of two fits, the one whose knockoffs are less like their columns."""

import numpy as np
import pytest

from knockoffs.features.latent import likeness
from knockoffs.features.latent.fit import fit_latent
from knockoffs.features.latent.likeness import seems_worse


def clusters(n=1200, d=6):
    """Three clusters of rounded columns."""
    rng = np.random.default_rng(0)
    return np.round(rng.standard_normal((n, d)) + 4 * rng.standard_normal((3, d))[rng.integers(3, size=n)])


def test_one_class_is_worse_for_clusters_and_three_are_not():
    X = clusters()
    one, three = (fit_latent(X, rng=np.random.default_rng(1), n_classes=k) for k in (1, 3))
    assert seems_worse(one, three, X, rng=np.random.default_rng(2))
    assert not seems_worse(three, one, X, rng=np.random.default_rng(2))


def test_two_good_fits_are_not_told_apart():
    rng = np.random.default_rng(3)
    X = np.round(rng.standard_normal((800, 5)) @ np.linalg.cholesky(0.5 + 0.5 * np.eye(5)).T)
    one, two = (fit_latent(X, rng=np.random.default_rng(1), n_classes=k) for k in (1, 2))
    assert not seems_worse(one, two, X, rng=rng)
    assert not seems_worse(two, one, X, rng=rng)


def test_classes_of_pixels_are_left_out():
    """Images are no mixture of few Gaussians, though one of eight predicts held-out rows better than one alone."""
    from sklearn.datasets import load_digits

    X = load_digits().data
    model = fit_latent(X[:, (X != np.median(X, axis=0)).sum(axis=0) > 100], rng=np.random.default_rng(1))
    assert model.n_classes == 1
    assert any("less like their columns" in note for note in model.notes)


@pytest.mark.parametrize(
    ("p", "simple", "worse"),
    [(1e-9, 14.0, True), (1e-9, 18.0, False), (1e-3, 5.0, False)],
    ids=["not much better", "much better", "not clearly wrong"],
)
def test_classes_are_left_out_where_they_are_clearly_wrong_and_not_much_better(p, simple, worse, monkeypatch):
    found = {"several": (p, 10.0), "one": (1e-30, simple)}
    monkeypatch.setattr(likeness, "against", lambda model, *rest: found[model])
    assert likeness.seems_worse("several", "one", np.zeros((5, 2)), rng=np.random.default_rng(0)) is worse
