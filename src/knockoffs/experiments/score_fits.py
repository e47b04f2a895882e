"""All scores of all models of y in one setting of the study of scores: each is fitted once and read many ways."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.defaults import BEST_OF, choose
from knockoffs.draws import score_swapped
from knockoffs.errors import KnockoffWarning
from knockoffs.experiments.repetitions import AT_ONE, LAMS, Prepared, join_repetitions, split_by_repetition
from knockoffs.experiments.runner import Arrays, Context, fingerprint
from knockoffs.experiments.score_settings import MODELS, Config, Setting, prepare
from knockoffs.importance.model_choice import BestOf, choose_best
from knockoffs.importance.resampling import draw_folds
from knockoffs.importance.scores import NamedScores
from knockoffs.response.clone import Estimator
from knockoffs.response.linear import LogisticPathCV
from knockoffs.response.trees import make_boosting, make_forest, out_of_bag
from knockoffs.sampling.pair import Pair
from knockoffs.table.target import Target

N_FOLDS = 5
CHOICE = "choice"  # the losses by which the default chooses
WORK = (*MODELS, CHOICE)
PATH_LOSSES = ("accuracy", "log_loss", "brier", "margin")


def score_setting(setting: Setting, rngs: Sequence[Generator], config: Config, context: Context) -> Arrays:
    """All scores, name -> (repetitions, 2 d), with ``non_nulls``; finished batches are found again."""
    from joblib import Parallel, delayed

    parts = []
    for start in range(0, len(rngs), config.batch):
        batch_rngs = rngs[start : start + config.batch]
        streams = [rng.spawn(2 + len(WORK)) for rng in batch_rngs]
        swaps = [stream[1] for stream in streams]
        batch: list[Prepared] = []
        found: Arrays = {}
        for i, model in enumerate(WORK):
            if model not in setting.models and not (model == CHOICE and set(BEST_OF) <= set(setting.models)):
                continue
            key = key_of(model, setting, batch_rngs, config, start)
            kept = context.find(key)
            if kept is None:
                batch = batch or Parallel(n_jobs=context.n_jobs)(delayed(prepare)(setting, own[0]) for own in streams)
                own = [stream[2 + i] for stream in streams]
                kept = context.keep(key, _score_batch(model, batch, deepcopy(swaps), own, config, context))
                context.log(f"{setting.name}: {model}, repetitions {start + 1} to {start + len(batch_rngs)}")
            found |= kept
        parts.append(found)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def key_of(model: str, setting: Setting, rngs: Sequence[Generator], config: Config, start: int) -> str:
    """Name under which the scores of a model for some repetitions are kept: it changes with all that they rest on."""
    how = {
        "lasso": [repr(_lasso(0))],
        "neural": [config.hidden, config.epochs],
        "forest": [repr(_forest(config.n_trees, 0))],
        "boosting": [repr(_boosting(0))],
        CHOICE: [repr(_lasso(0)), repr(_boosting(0))],
    }
    return f"scores-{model}-{start:03d}-{fingerprint(replace(setting, models=()), rngs, how[model], LAMS)}"


def _score_batch(
    model: str,
    batch: Sequence[Prepared],
    swaps: Sequence[Generator],
    rngs: Sequence[Generator],
    config: Config,
    context: Context,
) -> Arrays:
    """Scores of one model for some repetitions; all models of a repetition get the same swap of its columns."""
    from joblib import Parallel, delayed

    kept: Arrays = {}  # numbers that are no scores of columns: losses

    def score(pairs: list[Pair]) -> list[NamedScores]:
        if model == "neural":
            found = _score_networks(pairs, batch, rngs, config, context.device)
        elif model == CHOICE:
            work = (delayed(_losses_of_choice)(*job) for job in zip(pairs, batch, rngs, strict=True))
            losses = list(Parallel(n_jobs=context.n_jobs)(work))
            found = {f"{CHOICE}/{name}": np.array([each[name] for each in losses]) for name in BEST_OF}
        else:
            fits = {"lasso": _lasso, "forest": partial(_forest, config.n_trees), "boosting": _boosting}
            jobs = zip(pairs, batch, rngs, strict=True)
            each = list(Parallel(n_jobs=context.n_jobs)(delayed(_score_one)(fits[model], model, *job) for job in jobs))
            found = {name: np.stack([one[name] for one in each]) for name in each[0]}
        kept.update({name: values for name, values in found.items() if values.ndim < 2})
        scores = {name: values for name, values in found.items() if values.ndim >= 2}
        return split_by_repetition(scores) if scores else [NamedScores() for _ in pairs]

    scored = score_swapped([p.pair for p in batch], score, swaps)
    if model == CHOICE:
        return kept
    back = join_repetitions(scored) | kept
    return back | {"non_nulls": np.stack([p.non_nulls for p in batch])}


def _lasso(seed: int, alpha: float | None = None) -> LogisticPathCV:
    return LogisticPathCV(n_alphas=50, random_state=seed, alpha=alpha)


def _forest(n_trees: int, seed: int) -> Estimator:
    return make_forest("classification", n_estimators=n_trees, random_state=seed)


def _boosting(seed: int) -> Estimator:
    return make_boosting("classification", random_state=seed)


def _score_one(make: Callable[..., Estimator], name: str, pair: Pair, data: Prepared, rng: Generator) -> Arrays:
    """All scores of one scikit-learn style model: in sample, cross-fitted, and out of bag for a forest."""
    X, X_tilde = pair.X, pair.X_tilde
    order = rng.permutation(len(X))
    fold_of = draw_folds(len(X), N_FOLDS, rng, labels=data.y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(int(rng.integers(2**31))).fit(np.hstack([X, X_tilde]), data.y)
        found = {"in_sample": _path_scores(model, X, X_tilde, data.y, order)}
        if name == "forest":
            found["out_of_bag"] = _path_scores(out_of_bag(model, len(X)), X, X_tilde, data.y, order)
        if name == "lasso":
            from knockoffs.importance.coefficients import coefficient_magnitude

            owners = np.arange(X.shape[1])
            read = coefficient_magnitude(model, X, X_tilde, data.y, feature_of=owners, rng=rng)
            found["in_sample"]["coefficients/-"] = np.concatenate([read.Z, read.Z_tilde])
        # a lasso keeps the penalty that all rows chose, which does not know which columns are knockoffs
        options = {"alpha": model.alpha_} if isinstance(model, LogisticPathCV) else {}
        folds = []
        for fold in range(N_FOLDS):
            held = fold_of == fold
            part = make(int(rng.integers(2**31)), **options).fit(np.hstack([X[~held], X_tilde[~held]]), data.y[~held])
            folds.append(_path_scores(part, X[held], X_tilde[held], data.y[held], np.argsort(order[held])))
    sizes = np.bincount(fold_of)
    found["cross_fitted"] = {key: np.average([fold[key] for fold in folds], axis=0, weights=sizes) for key in folds[0]}
    return {f"{name}/{rows}/{key}": Z for rows, scores in found.items() for key, Z in scores.items()}


def _losses_of_choice(pair: Pair, data: Prepared, rng: Generator) -> dict[str, float]:
    """Held-out losses by which the default chooses its model."""
    best = choose(Target(data.y, kind="classes")).statistic
    assert isinstance(best, BestOf)  # of at least a hundred rows
    return choose_best(best, pair, Target(data.y), rng=rng)[1]


def _path_scores(model: object, X: NDArray, X_tilde: NDArray, y: NDArray, order: NDArray) -> Arrays:
    """Swap, Permutation and their integrals by each loss; and the loss of the unmoved table, under "held_loss".

    Integrals are exact for trees and trapezoids on 21 points for others.
    """
    from knockoffs.importance.paths.follow import path_losses
    from knockoffs.importance.paths.tree import TreePath

    XX, found = np.hstack([X, X_tilde]), {}
    for fake, XX_fake in {"swap": np.hstack([X_tilde, X]), "permutation": XX[order]}.items():
        paths = {loss: path_losses(model, XX, XX_fake, y, loss) for loss in PATH_LOSSES}
        first = paths[PATH_LOSSES[0]]
        if isinstance(first, TreePath):  # all losses from the same jumps
            rises, unmoved = first.rises(PATH_LOSSES, np.array([1.0]), 0.0, 1.0)
            areas, _ = first.rises(PATH_LOSSES, np.empty(0), LAMS[0], LAMS[-1])
            at_one, integral = rises[:, :, 0], areas[:, :, 0]
        else:
            along = np.stack([path.at(LAMS) for path in paths.values()])
            rise, unmoved = along - along[:, :, :1], along[:, 0, 0]
            at_one, integral = rise[:, :, AT_ONE], np.trapezoid(rise, LAMS, axis=2)
        for i, loss in enumerate(PATH_LOSSES):
            found[f"{fake}/{loss}"], found[f"{fake}_integral/{loss}"] = at_one[i], integral[i]
            found[f"held_loss/{loss}"] = np.asarray(unmoved[i])
    return found


def _score_networks(
    pairs: Sequence[Pair], batch: Sequence[Prepared], rngs: Sequence[Generator], config: Config, device: str
) -> Arrays:
    """All scores of a batch of networks, in sample and cross-fitted."""
    XX = np.stack([pair.stacked for pair in pairs])
    y = np.stack([p.y for p in batch])
    n, n_classes = y.shape[1], int(y.max()) + 1
    orders = np.stack([rng.permutation(n) for rng in rngs])
    everything = np.tile(np.arange(n), (len(batch), 1))
    found = _network_scores(XX, y, n_classes, everything, everything, orders, rngs, config, device, saliency=True)
    scores = {f"neural/in_sample/{key}": Z for key, Z in found.items()}
    # folds of one size for all repetitions, so that they train as one batch
    fold_of = np.stack([rng.permutation(n) for rng in rngs]) % N_FOLDS
    folds = []
    for fold in range(N_FOLDS):
        held = np.stack([np.flatnonzero(row == fold) for row in fold_of])
        kept = np.stack([np.flatnonzero(row != fold) for row in fold_of])
        folds.append(_network_scores(XX, y, n_classes, kept, held, orders, rngs, config, device, saliency=False))
    for key in folds[0]:
        scores[f"neural/cross_fitted/{key}"] = np.mean([fold[key] for fold in folds], axis=0)
    return scores


def _network_scores(
    XX: NDArray,
    y: NDArray,
    n_classes: int,
    fit_rows: NDArray,
    score_rows: NDArray,
    orders: NDArray,
    rngs: Sequence[Generator],
    config: Config,
    device: str,
    *,
    saliency: bool,
) -> Arrays:
    from knockoffs.importance.paths.batched import network_losses
    from knockoffs.importance.saliency import gradient_scores, integrated_gradient_scores
    from knockoffs.response.training import train_classifiers

    R = np.arange(len(XX))[:, None]
    network = train_classifiers(
        XX[R, fit_rows],
        y[R, fit_rows],
        n_classes,
        hidden=config.hidden,
        epochs=config.epochs,
        seeds=[int(rng.integers(2**62)) for rng in rngs],
        device=device,
    )
    table, labels, found = XX[R, score_rows], y[R, score_rows], {}
    inner = np.argsort(orders[R, score_rows], axis=1)
    fakes = {"swap": np.roll(table, XX.shape[2] // 2, axis=2), "permutation": table[R, inner]}
    for fake, moved in fakes.items():
        along = network_losses(network, table, moved, labels, LAMS, PATH_LOSSES)
        for loss, path in along.items():
            rise = path - path[:, :, :1]
            found[f"{fake}/{loss}"] = rise[:, :, AT_ONE]
            found[f"{fake}_integral/{loss}"] = np.trapezoid(rise, LAMS, axis=2)
            found[f"held_loss/{loss}"] = path[:, 0, 0]
    if saliency:
        found["gradient/-"] = gradient_scores(network, table)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KnockoffWarning)  # a ReLU network's kinks; only the order matters here
            found["integrated_gradients/-"] = integrated_gradient_scores(network, table)
    return found
