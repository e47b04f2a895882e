"""Repetitions of the procedure with neural networks: knockoffs from a fitted mixture, one network, every score."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs import (
    InputError,
    KnockoffWarning,
    NeuralClassifier,
    fit_gaussian_mixture,
    knockoff_filter,
    sample_knockoffs,
    swap,
)
from knockoffs.features.gaussian_mixture import MixtureFeatures, gaussian_mixture_features
from knockoffs.importance.paths.follow import path_losses
from knockoffs.importance.saliency import gradient_saliency, integrated_gradients
from paper.mixtures import Simulation
from paper.runner import Arrays, Context, Row, fdr_and_power
from paper.simulate import Labels, simulate_mixture

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture

LABELS = {
    "swap_integral": "Swap Integral",
    "swap": "Swap",
    "permutation": "Permutation",
    "gradient": "Gradient",
    "integrated_gradients": "Integrated Gradients",
    "permutation_integral": "Permutation Integral",
    "swap_log_loss": "Swap, log-loss",
    "lasso": "LASSO",
}
FIVE = ("swap_integral", "swap", "permutation", "gradient", "integrated_gradients")  # the five of Figure 3
LAMS = np.linspace(0.0, 10.0, 21)  # the paper integrates to 10; steps of 0.5
AT_ONE = int(np.flatnonzero(LAMS == 1.0)[0])
TARGETS = tuple(round(0.05 * i, 2) for i in range(1, 11))


@dataclass(frozen=True)
class Training:
    """The network of y.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the layers.
    epochs, batch_size : int
        Passes over the rows, and rows a step; no early stopping, so that every row serves.
    permutation_path : bool
        Whether the whole lambda path is computed for Permutation too, for Permutation Integral.
    """

    n_classes: int
    hidden: tuple[int, ...] = (100, 100, 100)
    epochs: int = 40
    batch_size: int = 128
    permutation_path: bool = False


@dataclass(frozen=True)
class Prepared:
    """One repetition with its knockoffs: everything before the model of y."""

    X: NDArray
    X_tilde: NDArray
    y: NDArray
    non_nulls: NDArray[np.bool_]


Prepare = Callable[[Generator], Prepared]


@dataclass(frozen=True)
class Job:
    """Repetitions of one setting: how to simulate one with its knockoffs, a stream for each, and the network."""

    name: str
    prepare: Prepare
    rngs: Sequence[Generator]
    training: Training


FLOOR = 1e-3  # of the variances in a component, in units of the whole column
TRIES = 2  # of EM


# Before the model of y


def fit_mixture(X: NDArray, n_components: int, rng: Generator, *, n_starts: int = 3) -> MixtureFeatures:
    """Mixture fitted by EM.

    Where EM ends in a component of so few rows that its covariance is singular (t distributions have such far rows),
    it starts again; if that is no help, a floor is put under the variances.
    """
    *streams, last = rng.spawn(TRIES + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KnockoffWarning)
        for trial, stream in enumerate(streams):
            try:
                return fit_gaussian_mixture(X, rng=stream, n_components=n_components, n_starts=n_starts + trial)
            except InputError:
                continue
        centre, scale = X.mean(axis=0), X.std(axis=0)
        em = fit_em((X - centre) / scale, n_components, last)
        covariances = em.covariances_ * np.outer(scale, scale)
        return gaussian_mixture_features(em.weights_, centre + em.means_ * scale, covariances)


def fit_em(X: NDArray, n_components: int, rng: Generator) -> GaussianMixture:
    """Mixture of scikit-learn with a floor under the variances."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    seed = int(rng.integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # AIC compares what was reached
        return GaussianMixture(n_components, reg_covar=FLOOR, max_iter=100, random_state=seed).fit(X)


def fit_by_aic(X: NDArray, n_components: Sequence[int], rng: Generator, context: Context) -> MixtureFeatures:
    """Mixture with the number of components that AIC chooses.

    X is standardised. Real columns take few values and are near copies of each other, so EM adds ``FLOOR`` to the
    variances: without it components collapse onto a value.
    """
    streams = rng.spawn(len(n_components))
    fits = context.repeat(fit_em, [(X, k, stream) for k, stream in zip(n_components, streams, strict=True)])
    em = min(fits, key=lambda fit: fit.aic(X))
    return gaussian_mixture_features(em.weights_, em.means_, em.covariances_)


def prepare_simulation(simulate: Callable[..., Simulation], n_components: int, rng: Generator) -> Prepared:
    """Simulate, fit a mixture by EM and draw knockoffs."""
    data_rng, fit_rng, draw_rng = rng.spawn(3)
    data = simulate(rng=data_rng)
    model = fit_mixture(data.X, n_components, fit_rng)
    return Prepared(data.X, sample_knockoffs(model.as_network(), data.X, draw_rng), data.y, data.non_nulls)


def mixture_job(
    name: str,
    *,
    n: int,
    d: int,
    n_components: int,
    n_non_nulls: int,
    spread: float,
    labels: Labels,
    training: Training,
    rngs: Sequence[Generator],
) -> Job:
    """Features from a mixture with random parameters, labels by polynomials, a mixture fitted by EM."""
    simulate = partial(
        simulate_mixture,
        n,
        d,
        n_components=n_components,
        n_classes=training.n_classes,
        n_non_nulls=n_non_nulls,
        spread=spread,
        labels=labels,
    )
    return Job(name, partial(prepare_simulation, simulate, n_components), rngs, training)


# The model of y and its scores


def score_jobs(jobs: Sequence[Job], context: Context) -> dict[str, Arrays]:
    """Z and Z_tilde of every score for every repetition of every job.

    Returns
    -------
    dict
        Name of the job -> score -> array (repetitions, 2 d), with ``non_nulls`` (repetitions, d) and ``accuracy``.
    """
    work = [(job.prepare, job.training, rng, context.device) for job in jobs for rng in job.rngs]
    context.log(f"{', '.join(job.name for job in jobs)}: {len(work)} repetitions")
    found = iter(context.repeat(repeat, work, ignore=["device"]))
    results = {}
    for job in jobs:
        mine = [next(found) for _ in job.rngs]
        results[job.name] = {name: np.stack([one[name] for one in mine]) for name in mine[0]}
    return results


def repeat(prepare: Prepare, training: Training, rng: Generator, device: str) -> Arrays:
    """One repetition: scores (2 d,) by name, the non-nulls and the accuracy."""
    before, after = rng.spawn(2)
    data = prepare(before)
    return score_network(data, training, after, device) | {"non_nulls": data.non_nulls}


def score_network(data: Prepared, training: Training, rng: Generator, device: str) -> Arrays:
    """Scores (2 d,) of one network, which is trained on randomly swapped columns; they are swapped back."""
    seed, swap_rng, order_rng = rng.spawn(3)
    d = data.X.shape[1]
    S = swap_rng.random(d) < 0.5
    A, B = swap(data.X, data.X_tilde, S)
    XX, y = np.hstack([A, B]), data.y
    model = NeuralClassifier(
        training.hidden,
        epochs=training.epochs,
        batch_size=training.batch_size,
        patience=None,
        device=device,
        random_state=seed,
    ).fit(XX, y)

    def rise(fake: NDArray, loss: str, lams: NDArray = LAMS) -> NDArray:
        along = path_losses(model, XX, fake, y, loss).at(lams)
        return along - along[:, :1]

    swapped, permuted = np.roll(XX, d, axis=1), XX[order_rng.permutation(len(XX))]
    ends = LAMS[[0, AT_ONE]]
    options = {"feature_of": np.arange(d), "rng": order_rng}
    drop = rise(swapped, "accuracy")
    with warnings.catch_warnings():
        # a ReLU network has kinks, and fifty steps miss a little of them; only the order of the scores matters
        warnings.simplefilter("ignore", KnockoffWarning)
        integrated = integrated_gradients(model, A, B, y, **options)
    Z = {
        "swap_integral": np.trapezoid(drop, LAMS, axis=1),
        "swap": drop[:, AT_ONE],
        "gradient": gradient_saliency(model, A, B, y, **options).stacked,
        "integrated_gradients": integrated.stacked,
        "swap_log_loss": rise(swapped, "log_loss", ends)[:, 1],
    }
    if training.permutation_path:
        along = rise(permuted, "accuracy")
        Z |= {"permutation": along[:, AT_ONE], "permutation_integral": np.trapezoid(along, LAMS, axis=1)}
        Z["swap_path"] = drop
    else:
        Z["permutation"] = rise(permuted, "accuracy", ends)[:, 1]
    back = np.arange(2 * d)
    back[:d][S], back[d:][S] = back[d:][S].copy(), back[:d][S].copy()
    return {name: scores[back] for name, scores in Z.items()} | {"accuracy": np.array(model.score(XX, y))}


# From scores to rows of a table


def statistics(Z: NDArray) -> NDArray:
    """W (R, d) from scores (R, 2 d)."""
    d = Z.shape[1] // 2
    return Z[:, :d] - Z[:, d:]


def power_rows(
    W: NDArray, non_nulls: NDArray[np.bool_], targets: Iterable[float] = TARGETS, **columns: object
) -> list[Row]:
    """Power and empirical FDR, with standard errors, at each target FDR.

    Parameters
    ----------
    W, non_nulls : array, shape (repetitions, d)
    targets : iterable of float
    **columns
        What else each row says.
    """
    return [
        columns | {"target_fdr": target} | fdr_and_power([knockoff_filter(w, target) for w in W], non_nulls)
        for target in targets
    ]
