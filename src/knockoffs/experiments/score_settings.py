"""The data of the study of scores: settings, their laws and one repetition of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from knockoffs.experiments.repetitions import Prepared
from knockoffs.features.gaussian_mixture import gaussian_mixture_features
from knockoffs.sampling.sampler import sample_knockoffs
from knockoffs.simulate import MixtureParameters, draw_mixture, draw_non_nulls, polynomial_labels, sample_mixture

MODELS = ("lasso", "neural", "forest", "boosting")


@dataclass(frozen=True)
class Setting:
    """One kind of data.

    Parameters
    ----------
    name : str
    n, d, n_components, n_classes, n_non_nulls : int
        Components of the mixture; one is a Gaussian with AR(1) correlations.
    labels : {"cubic", "linear", "products"}
        The largest of random cubic polynomials; logistic in the features; or the sign of a sum of products of pairs,
        with noise, in which no feature has an effect of its own.
    place : int
        Which of the seed's streams it draws from: a setting keeps its numbers when others come and go.
    models : tuple of str
        Models of y; trees cost a minute a repetition where classes and columns are many.
    """

    name: str
    n: int
    d: int
    n_components: int
    n_classes: int
    n_non_nulls: int = 10
    labels: str = "cubic"
    place: int = 0
    models: tuple[str, ...] = MODELS


@dataclass(frozen=True)
class Config:
    """Settings, repetitions, and the networks' training."""

    settings: tuple[Setting, ...]
    repetitions: int = 100
    hidden: tuple[int, ...] = (100, 100, 100)
    epochs: int = 100
    n_trees: int = 100
    batch: int = 25


CONFIG = Config(
    (
        Setting("one Gaussian, linear, 2 classes", 1000, 50, 1, 2, labels="linear"),
        Setting("one Gaussian, cubic, 2 classes", 2000, 30, 1, 2, place=1),
        Setting("one Gaussian, products, 2 classes", 2000, 30, 1, 2, labels="products", place=6),
        Setting("5 components, cubic, 2 classes", 3000, 30, 5, 2, place=2),
        Setting("10 components, cubic, 3 classes, d = 20", 1500, 20, 10, 3, place=5),
        Setting("20 components, cubic, 2 classes, d = 20", 1500, 20, 20, 2, place=7),
        Setting("10 components, cubic, 10 classes", 3000, 30, 10, 10, place=3, models=("neural",)),
    )
)
QUICK = Config(
    tuple(Setting(f"{k} components, cubic, 3 classes", 500, 12, k, 3, n_non_nulls=6, place=k) for k in (1, 3)),
    repetitions=4,
    epochs=20,
    n_trees=20,
)


def law_of_features(setting: Setting, *, rng: Generator) -> MixtureParameters:
    """P^X of a setting, which the knockoffs are drawn from: power is compared where the level is surely held."""
    if setting.n_components > 1:
        return draw_mixture(setting.n_components, setting.d, rng=rng)
    places = np.arange(setting.d)
    correlations = 0.5 ** np.abs(np.subtract.outer(places, places))
    return MixtureParameters(np.ones(1), np.zeros((1, setting.d)), correlations[None])


def prepare(setting: Setting, rng: Generator) -> Prepared:
    """Simulate one repetition and draw its knockoffs."""
    law_rng, data_rng, draw_rng = rng.spawn(3)
    law = law_of_features(setting, rng=law_rng)
    X, _ = sample_mixture(law, setting.n, rng=data_rng)
    non_nulls = draw_non_nulls(setting.d, setting.n_non_nulls, rng=data_rng)
    if setting.labels == "linear":
        beta = non_nulls * data_rng.choice([-0.5, 0.5], size=setting.d)
        y = (data_rng.random(setting.n) < 1 / (1 + np.exp(-X @ beta))).astype(np.intp)
    elif setting.labels == "products":
        first, second = data_rng.permutation(np.flatnonzero(non_nulls)).reshape(2, -1)
        signal = (X[:, first] * X[:, second]).sum(axis=1) + data_rng.standard_normal(setting.n)
        y = (signal > 0).astype(np.intp)
    else:
        y = polynomial_labels(X, non_nulls, n_classes=setting.n_classes, rng=data_rng)
    features = gaussian_mixture_features(law.weights, law.means, law.covariances)
    return Prepared(X, sample_knockoffs(features.as_network(), X, draw_rng), y, non_nulls)
