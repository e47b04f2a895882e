"""Many repetitions of the procedure with neural networks: prepared on all cores, trained and scored in batches."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from knockoffs.draws import score_swapped
from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.experiments.runner import Arrays, Context, Row, fingerprint, mean_and_error
from knockoffs.features.gaussian_mixture import MixtureFeatures, fit_gaussian_mixture, gaussian_mixture_features
from knockoffs.features.order import choose_order
from knockoffs.filter import false_discovery_proportion, knockoff_filter, power
from knockoffs.importance.scores import NamedScores, Scores
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import sample_knockoffs
from knockoffs.simulate import Simulation, simulate_mixture

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
    """The network of y and how many repetitions are trained together.

    Parameters
    ----------
    n_classes : int
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
    n_warnings: int = 0

    @property
    def pair(self) -> Pair:
        """X beside its knockoffs."""
        return Pair(self.X, self.X_tilde, np.arange(self.X.shape[1]))


Prepare = Callable[[Generator], Prepared]


@dataclass(frozen=True)
class Job:
    """Repetitions of one setting.

    Parameters
    ----------
    name : str
        For messages and file names.
    prepare : callable
        Simulates one repetition and draws its knockoffs; goes to the workers.
    rngs : sequence of Generator
        One for each repetition.
    training : Training
    batch : int
        Most repetitions trained together on a GPU.
    """

    name: str
    prepare: Prepare
    rngs: Sequence[Generator]
    training: Training
    batch: int = 50


FLOOR = 1e-3  # of the variances in a component, in units of the whole column
TRIES = 2  # of EM
CPU_BATCH = 2  # on a CPU, larger batches of networks only leave the cache


# Before the model of y


def fit_mixture(X: NDArray, n_components: int, rng: Generator, *, n_starts: int = 3) -> tuple[MixtureFeatures, int]:
    """Fit a mixture by EM, and count the warnings.

    Where EM ends in a component of so few rows that its covariance is singular (t distributions have such far rows),
    it starts again; if that is no help, a floor is put under the variances.
    """
    *streams, last = rng.spawn(TRIES + 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", KnockoffWarning)
        for trial, stream in enumerate(streams):
            try:
                model = fit_gaussian_mixture(X, rng=stream, n_components=n_components, n_starts=n_starts + trial)
                break
            except InputError:
                continue
        else:
            centre, scale = X.mean(axis=0), X.std(axis=0)
            em = _fit_em((X - centre) / scale, n_components, last)
            covariances = em.covariances_ * np.outer(scale, scale)
            model = gaussian_mixture_features(em.weights_, centre + em.means_ * scale, covariances)
    return model, sum(issubclass(warning.category, KnockoffWarning) for warning in caught)


def prepare_simulation(simulate: Callable[..., Simulation], n_components: int, rng: Generator) -> Prepared:
    """Simulate, fit a mixture by EM and draw knockoffs."""
    data_rng, fit_rng, draw_rng = rng.spawn(3)
    data = simulate(rng=data_rng)
    model, n_warnings = fit_mixture(data.X, n_components, fit_rng)
    X_tilde = sample_knockoffs(model.as_network(), data.X, draw_rng)
    return Prepared(data.X, X_tilde, data.y, data.non_nulls, n_warnings)


def mixture_job(
    name: str,
    *,
    n: int,
    d: int,
    n_components: int,
    n_non_nulls: int,
    training: Training,
    rngs: Sequence[Generator],
    **options: object,
) -> Job:
    """Features from a mixture with random parameters, labels by polynomials, a mixture fitted by EM."""
    simulate = partial(
        simulate_mixture,
        n,
        d,
        n_components=n_components,
        n_non_nulls=n_non_nulls,
        n_classes=training.n_classes,
        **options,  # type: ignore[arg-type]
    )
    return Job(name, partial(prepare_simulation, simulate, n_components), rngs, training)


def fit_once(
    X: NDArray, n_components: Iterable[int], *, name: str, rng: Generator, context: Context
) -> tuple[MixtureFeatures, dict[int, float]]:
    """Mixture with the number of components that AIC chooses, kept between runs; and the AIC of every candidate.

    X is standardised. Real columns take few values and are near copies of each other, so EM adds ``FLOOR`` to the
    variances: without it components collapse onto a value.
    """
    candidates = list(n_components)
    key = f"{name}-mixture-{fingerprint(X, candidates, FLOOR, rng)}"

    def fit() -> Arrays:
        context.log(f"{name}: fitting mixtures of {candidates} components to {X.shape[0]} x {X.shape[1]} cells")
        # the candidates run in threads: together they should not ask for more cores than there are
        threads = max(1, (os.cpu_count() or 1) // len(candidates))
        with threadpool_limits(limits=threads):
            em, criterion = choose_order(X, candidates, _fit_em, criterion="aic", rng=rng, n_jobs=context.n_jobs)
        context.log(f"{name}: AIC chose {em.n_components} components")
        return {
            "weights": em.weights_,
            "means": em.means_,
            "covariances": em.covariances_,
            "criterion": np.array(list(criterion.items())).reshape(-1, 2),
        }

    found = context.once(key, fit)
    model = gaussian_mixture_features(found["weights"], found["means"], found["covariances"])
    return model, {int(k): float(value) for k, value in found["criterion"]}


def _fit_em(X: NDArray, n_components: int, rng: Generator) -> GaussianMixture:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    seed = int(rng.integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # AIC compares what was reached
        return GaussianMixture(n_components, reg_covar=FLOOR, max_iter=100, random_state=seed).fit(X)


# The model of y and its scores, many repetitions at once


def score_jobs(jobs: Sequence[Job], context: Context) -> dict[str, Arrays]:
    """Z and Z_tilde of every score for every repetition of every job.

    Returns
    -------
    dict
        Name of the job -> score -> array (repetitions, 2 d), with ``non_nulls`` (repetitions, d), ``accuracy`` and
        ``n_warnings`` (repetitions,).
    """
    on_cpu = _on_cpu(context.device)
    chunks = []  # job, key, slice
    # one stream before the model of y and one after, so that it makes no difference where the first is used
    streams = {job.name: [rng.spawn(2) for rng in job.rngs] for job in jobs}
    for job in jobs:
        size = min(job.batch, CPU_BATCH) if on_cpu else job.batch
        for start in range(0, len(job.rngs), size):
            part = slice(start, min(start + size, len(job.rngs)))
            key = f"{job.name}-{start:03d}-{fingerprint(job.prepare, job.rngs[part], job.training)}"
            chunks.append((job, key, part))
    missing = [chunk for chunk in chunks if context.find(chunk[1]) is None]
    if missing:
        context.log(f"{sum(c[2].stop - c[2].start for c in missing)} repetitions to do in {len(missing)} batches")
    parts = [(job, streams[job.name][part]) for job, _, part in missing]
    scored = _score_on_cores(parts, context) if on_cpu else _score_on_gpu(parts, context)
    results: dict[str, list[Arrays]] = {job.name: [] for job in jobs}
    for job, key, part in chunks:
        found = context.find(key)
        if found is None:
            found = context.keep(key, next(scored))
            context.log(f"{job.name}: repetitions {part.start + 1} to {part.stop} of {len(job.rngs)}")
        results[job.name].append(found)
    return {
        name: {score: np.concatenate([part[score] for part in parts]) for score in parts[0]}
        for name, parts in results.items()
    }


Streams = Sequence[Sequence[Generator]]  # of each repetition: before the model of y, and after


def _score_on_cores(parts: Sequence[tuple[Job, Streams]], context: Context) -> Iterator[Arrays]:
    """Batches in order, each prepared, trained and scored by one worker: small networks gain nothing from threads."""
    from joblib import Parallel, delayed

    tasks = (delayed(_score_part)(job.prepare, job.training, streams) for job, streams in parts)
    scored: Iterator[Arrays] = Parallel(n_jobs=context.n_jobs, return_as="generator")(tasks)
    return scored


def _score_part(prepare: Prepare, training: Training, streams: Streams) -> Arrays:
    batch = [prepare(before) for before, _ in streams]
    return score_batch(batch, training, [after for _, after in streams], "cpu")


def _score_on_gpu(parts: Sequence[tuple[Job, Streams]], context: Context) -> Iterator[Arrays]:
    """Batches in order, trained and scored on the GPU while the workers prepare the next ones."""
    from joblib import Parallel, delayed

    if not parts:
        return
    tasks = (delayed(job.prepare)(before) for job, streams in parts for before, _ in streams)
    prepared = Parallel(n_jobs=context.n_jobs, return_as="generator")(tasks)
    for job, streams in parts:
        batch = [next(prepared) for _ in streams]
        yield score_batch(batch, job.training, [after for _, after in streams], context.device)


def _on_cpu(device: str) -> bool:
    from knockoffs.response.networks import choose_device

    return choose_device(device).type == "cpu"


def score_batch(batch: Sequence[Prepared], training: Training, rngs: Sequence[Generator], device: str) -> Arrays:
    """Train one network a repetition on randomly swapped columns and score them all; scores are swapped back.

    Returns
    -------
    dict
        Score -> array (R, 2 d), and what `score_jobs` names.
    """
    streams = [rng.spawn(3) for rng in rngs]  # seeds of network, swap and permutation
    accuracy = np.empty(len(batch))

    def score(pairs: list[Pair]) -> list[NamedScores]:
        found, accuracy[:] = _score_networks(pairs, batch, training, streams, device)
        return split_by_repetition(found)

    scored = score_swapped([p.pair for p in batch], score, [swaps for _, swaps, _ in streams])
    return join_repetitions(scored) | {
        "non_nulls": np.stack([p.non_nulls for p in batch]),
        "accuracy": accuracy,
        "n_warnings": np.array([p.n_warnings for p in batch]),
    }


def split_by_repetition(Z: Arrays) -> list[NamedScores]:
    """Scores of each repetition by name, from arrays (R, 2 d, ...)."""
    n = len(next(iter(Z.values())))
    return [NamedScores({name: Scores.of(values[r]) for name, values in Z.items()}) for r in range(n)]


def join_repetitions(scored: Sequence[NamedScores]) -> Arrays:
    """Arrays (R, 2 d, ...) by name, from the scores of each repetition."""
    return {name: np.stack([one[name].stacked for one in scored]) for name in scored[0]}


def _score_networks(
    pairs: Sequence[Pair],
    batch: Sequence[Prepared],
    training: Training,
    streams: Sequence[Sequence[Generator]],
    device: str,
) -> tuple[Arrays, NDArray]:
    """Every score of one network a repetition, shape (R, 2 d, ...), and the accuracies."""
    from knockoffs.importance.paths.batched import network_losses
    from knockoffs.importance.saliency import gradient_scores, integrated_gradient_scores
    from knockoffs.response.training import train_classifiers

    XX, y = np.stack([pair.stacked for pair in pairs]), np.stack([p.y for p in batch])
    # one permutation of the rows, shared by all columns
    shuffled = np.stack([xx[rows.permutation(len(xx))] for xx, (_, _, rows) in zip(XX, streams, strict=True)])
    network = train_classifiers(
        XX,
        y,
        training.n_classes,
        hidden=training.hidden,
        epochs=training.epochs,
        batch_size=training.batch_size,
        patience=None,
        seeds=[seed for seed, _, _ in streams],
        device=device,
    )
    swapped = np.roll(XX, XX.shape[2] // 2, axis=2)
    along = network_losses(network, XX, swapped, y, LAMS)
    lams = LAMS if training.permutation_path else LAMS[[0, AT_ONE]]
    permuted = network_losses(network, XX, shuffled, y, lams, ["accuracy"])["accuracy"]
    with warnings.catch_warnings():
        # a ReLU network has kinks, and fifty steps miss a little of them; only the order of the scores matters
        warnings.simplefilter("ignore", KnockoffWarning)
        integrated = integrated_gradient_scores(network, XX)
    drop = along["accuracy"] - along["accuracy"][:, :, :1]
    lost = along["log_loss"] - along["log_loss"][:, :, :1]
    permuted_drop = permuted - permuted[:, :, :1]
    Z = {
        "swap_integral": np.trapezoid(drop, LAMS, axis=2),
        "swap": drop[:, :, AT_ONE],
        "permutation": permuted_drop[:, :, AT_ONE if training.permutation_path else 1],
        "gradient": gradient_scores(network, XX),
        "integrated_gradients": integrated,
        "swap_log_loss": lost[:, :, AT_ONE],
    }
    if training.permutation_path:
        Z["permutation_integral"] = np.trapezoid(permuted_drop, LAMS, axis=2)
        Z["swap_path"] = drop
    return Z, 1 - along["accuracy"][:, 0, 0]


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
    rows = []
    for target in targets:
        selected = [knockoff_filter(w, target) for w in W]
        found = mean_and_error(power(s, truth) for s, truth in zip(selected, non_nulls, strict=True))
        false = mean_and_error(
            false_discovery_proportion(s, truth) for s, truth in zip(selected, non_nulls, strict=True)
        )
        rows.append(
            columns
            | {
                "target_fdr": target,
                "power": found[0],
                "power_se": found[1],
                "fdr": false[0],
                "fdr_se": false[1],
                "repetitions": len(W),
            }
        )
    return rows
