"""Which score, loss, rows and model of y find most: every combination on the same repetitions.

Not in the paper. Every model is fitted once a repetition (and once a fold), and all of its scores are read off that
fit: two fakes, two reductions of the path, four losses. The table also holds the model with the smallest log-loss on
held-out rows: of lasso and boosting, which is what is used by default, and of all four. P^X is known, so that the
level is held and powers can be compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.defaults import BEST_OF, choose
from knockoffs.errors import KnockoffWarning
from knockoffs.experiments.repetitions import (
    AT_ONE,
    LAMS,
    Prepared,
    join_repetitions,
    power_rows,
    split_by_repetition,
    statistics,
)
from knockoffs.experiments.runner import Arrays, Context, Table, fingerprint
from knockoffs.features.gaussian_mixture import gaussian_mixture_features
from knockoffs.importance.best import BestOf, choose_best
from knockoffs.importance.rows import draw_folds
from knockoffs.importance.scores import NamedScores
from knockoffs.procedure import score_swapped
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import sample_knockoffs
from knockoffs.simulate import MixtureParameters, draw_mixture, draw_non_nulls, polynomial_labels, sample_mixture
from knockoffs.table.target import Target

N_FOLDS = 5
TARGETS = (0.1, 0.2)
MODELS = ("lasso", "neural", "forest", "boosting")
COLOURS = {"lasso": "#4c72b0", "neural": "#dd8452", "forest": "#55a868", "boosting": "#c44e52"}
DEFAULT_NAME = "best of two (the default)"
CHOICE = "choice"  # the losses by which the default chooses
WORK = (*MODELS, CHOICE)
PATH_LOSSES = ("accuracy", "log_loss", "brier", "margin")
DEFAULT_SCORE = {
    "lasso": "lasso/in_sample/coefficients/-",
    "neural": "neural/in_sample/swap/log_loss",
    "forest": "forest/cross_fitted/swap_integral/log_loss",
    "boosting": "boosting/cross_fitted/swap_integral/log_loss",
}


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


def run(config: Config, rng: Generator, context: Context) -> Table:
    """Power and FDR of every combination in every setting."""
    table: Table = []
    streams = rng.spawn(1 + max(setting.place for setting in config.settings))
    for setting in config.settings:
        rngs = streams[setting.place].spawn(config.repetitions)
        scores = score_setting(setting, rngs, config, context)
        table += rows_of(setting, scores)
    return table


def plot(table: Table) -> Any:
    """Power at q = 0.1 of the best scores, the default, the paper's and lasso coefficients, in each setting."""
    import matplotlib.pyplot as plt

    keys = ("model", "evaluation", "score", "loss")
    always = {"neural/in_sample/swap_integral/accuracy", DEFAULT_SCORE["lasso"], f"{DEFAULT_NAME}/-/-/-"}
    rows = [row for row in table if row["target_fdr"] == TARGETS[0]]
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    figure, axes = plt.subplots(len(settings), 1, figsize=(9, 2.2 * len(settings)), layout="constrained", squeeze=False)
    for axis, setting in zip(axes[:, 0], settings, strict=True):
        ranked = sorted((row for row in rows if row["setting"] == setting), key=lambda row: row["power"])
        shown = [r for i, r in enumerate(ranked) if i >= len(ranked) - 7 or "/".join(str(r[k]) for k in keys) in always]
        names = [" / ".join(str(row[key]) for key in keys).replace(" / -", "") for row in shown]
        colours = [COLOURS.get(row["model"], "#8c8c8c") for row in shown]
        axis.barh(names, [row["power"] for row in shown], xerr=[row["power_se"] for row in shown], color=colours)
        axis.set_title(setting, loc="left", fontsize=9)
        axis.set_xlim(0, 1)
        axis.tick_params(labelsize=7)
    axes[-1, 0].set_xlabel("power at target FDR 0.1")
    return figure


# Data


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


# Scores of one repetition


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


def _lasso(seed: int, **options: Any) -> Any:
    from knockoffs.response.linear import LogisticPathCV

    return LogisticPathCV(n_lams=50, random_state=seed, **options)


def _forest(n_trees: int, seed: int) -> Any:
    from knockoffs.response.trees import make_forest

    return make_forest("classification", n_estimators=n_trees, random_state=seed)


def _boosting(seed: int) -> Any:
    from knockoffs.response.trees import make_boosting

    return make_boosting("classification", random_state=seed)


def _score_one(make: Callable[..., Any], name: str, pair: Pair, data: Prepared, rng: Generator) -> Arrays:
    """All scores of one scikit-learn style model: in sample, cross-fitted, and out of bag for a forest."""
    from knockoffs.response.trees import out_of_bag

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
        options = {"lam": model.lam_} if name == "lasso" else {}
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


def _path_scores(model: Any, X: NDArray, X_tilde: NDArray, y: NDArray, order: NDArray) -> Arrays:
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


# From scores to the table


def rows_of(setting: Setting, scores: Arrays) -> Table:
    """Power and FDR of each combination, and of the ways to join models."""
    truth = scores["non_nulls"]
    W = {name: statistics(Z) for name, Z in scores.items() if Z.ndim == 2 and name != "non_nulls"}
    rows: Table = []
    for name, statistic in (W | joined(W, scores)).items():
        model, evaluation, score, loss = name.split("/")
        what = {"setting": setting.name, "model": model, "evaluation": evaluation, "score": score, "loss": loss}
        rows += power_rows(statistic, truth, TARGETS, **what)
    return rows


def joined(W: dict[str, NDArray], scores: Arrays) -> dict[str, NDArray]:
    """W of the model that predicts best, by its default score: of two as the default does it, and of all four."""
    losses = {
        DEFAULT_NAME: {model: f"{CHOICE}/{model}" for model in BEST_OF},
        "best of four": {model: f"{model}/cross_fitted/held_loss/log_loss" for model in MODELS},
    }
    found = {}
    for name, keys in losses.items():
        if all(key in scores for key in keys.values()):
            best = np.argmin([scores[key] for key in keys.values()], axis=0)
            each = np.stack([W[DEFAULT_SCORE[model]] for model in keys])
            found[f"{name}/-/-/-"] = each[best, np.arange(each.shape[1])]
    return found


def write_page(table: Table, page: Path, level: float = TARGETS[0]) -> None:
    """Write the table of powers and FDRs at one level as Markdown: a row for each combination, a column a setting."""
    settings = list(dict.fromkeys(row["setting"] for row in table))
    keys = ("model", "evaluation", "score", "loss")
    rows = [row for row in table if row["target_fdr"] == level]
    cells = {(tuple(row[key] for key in keys), row["setting"]): row for row in rows}
    combinations = list(dict.fromkeys(tuple(row[key] for key in keys) for row in rows))

    def cell(combination: tuple, setting: str) -> str:
        row = cells.get((combination, setting))
        if row is None:
            return ""
        best = max(other["power"] for other in rows if other["setting"] == setting)
        power = f"**{row['power']:.2f}**" if row["power"] >= best - row["power_se"] else f"{row['power']:.2f}"
        return f"{power} ({row['fdr']:.2f})"

    def mean(combination: tuple) -> float:
        return float(np.mean([cells[combination, s]["power"] for s in settings if (combination, s) in cells]))

    lines = [
        "# Power of every score, loss, evaluation and model",
        "",
        f"Power, and in brackets the empirical FDR, at target FDR {level:g} over {rows[0]['repetitions']} repetitions;",
        "in bold what is within one standard error of the setting's best. P^X is known. A lasso is refitted on folds",
        "with the penalty that all rows chose; a forest has 100 trees. Integrals are exact for trees, trapezoids on 21",
        "points for others. An empty cell was not run. `knockoffs reproduce scores` makes the table again.",
        "",
        f"| {' | '.join(keys)} | {' | '.join(settings)} |",
        f"|{'---|' * (len(keys) + len(settings))}",
        *(
            f"| {' | '.join(combination)} | {' | '.join(cell(combination, setting) for setting in settings)} |"
            for combination in sorted(
                combinations, key=lambda c: (MODELS.index(c[0]) if c[0] in MODELS else -1, -mean(c))
            )
        ),
    ]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
