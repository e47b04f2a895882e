"""Which score, loss, rows and model of y find most: every combination on the same repetitions.

Not in the paper. Every model is fitted once a repetition (and once a fold), and all of its scores are read off that
fit: two fakes, two reductions of the path, up to four losses. The table also holds two ways to join models, both of
which keep flip-sign: the model with the smallest loss on held-out rows, and the sum of all models' W in units of
their own size.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import KnockoffWarning
from knockoffs.experiments.repetitions import (
    AT_ONE,
    LAMS,
    Prepare,
    Prepared,
    power_rows,
    prepare_simulation,
    statistics,
)
from knockoffs.experiments.runner import Arrays, Context, Table, fingerprint
from knockoffs.importance.evaluation import draw_folds
from knockoffs.sampling.swap import swap
from knockoffs.simulate import Simulation, polynomial_labels, simulate_mixture
from knockoffs.simulate.labels import draw_non_nulls

N_FOLDS = 5
TARGETS = (0.1, 0.2)
MODELS = ("lasso", "neural", "forest", "boosting")
PATH_LOSSES = ("accuracy", "log_loss", "brier", "margin")


@dataclass(frozen=True)
class Setting:
    """One kind of data.

    Parameters
    ----------
    name : str
    n, d, n_components, n_classes, n_non_nulls : int
        Components of the mixture, which is fitted by EM with that number; one is a Gaussian with AR(1) correlations.
    linear : bool
        Whether y is logistic in the features instead of the largest of random cubic polynomials.
    spread : float
        Standard deviation of the components' means.
    models : tuple of str
        Models of y; boosting and the lasso cost minutes a repetition where classes and columns are many.
    """

    name: str
    n: int
    d: int
    n_components: int
    n_classes: int
    n_non_nulls: int = 10
    linear: bool = False
    spread: float = 1.0
    models: tuple[str, ...] = ("lasso", "neural", "forest", "boosting")


@dataclass(frozen=True)
class Config:
    """Settings, repetitions, and the networks' training."""

    settings: tuple[Setting, ...]
    repetitions: int = 100
    hidden: tuple[int, ...] = (100, 100, 100)
    epochs: int = 100
    n_trees: int = 100
    batch: int = 50


CONFIG = Config(
    (
        Setting("one Gaussian, linear, 2 classes", 1000, 50, 1, 2, linear=True),
        Setting("one Gaussian, cubic, 2 classes", 2000, 30, 1, 2),
        Setting("5 components, cubic, 2 classes", 3000, 30, 5, 2),
        Setting("10 components, cubic, 10 classes", 3000, 30, 10, 10),
        Setting("20 components, cubic, 10 classes", 3000, 30, 20, 10, models=("lasso", "neural", "forest")),
        Setting("20 components, cubic, 10 classes, d = 60", 5000, 60, 20, 10, 20, models=("neural",)),
    )
)
QUICK = Config(
    tuple(Setting(f"{k} components, cubic, 3 classes", 500, 12, k, 3, n_non_nulls=6) for k in (1, 3)),
    repetitions=4,
    epochs=20,
    n_trees=20,
)


def run(config: Config, rng: Generator, context: Context) -> Table:
    """Power and FDR of every combination in every setting."""
    table: Table = []
    for setting, stream in zip(config.settings, rng.spawn(len(config.settings)), strict=True):
        rngs = stream.spawn(config.repetitions)
        scores = score_setting(setting, rngs, config, context)
        table += rows_of(setting, scores)
    return table


def plot(table: Table) -> Any:
    """Power at q = 0.1 of the scores that are best somewhere, one row of bars for each setting."""
    import matplotlib.pyplot as plt

    rows = [row for row in table if row["target_fdr"] == TARGETS[0]]
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    figure, axes = plt.subplots(len(settings), 1, figsize=(9, 2.4 * len(settings)), layout="constrained", squeeze=False)
    for axis, setting in zip(axes[:, 0], settings, strict=True):
        best = sorted((row for row in rows if row["setting"] == setting), key=lambda row: -row["power"])[:10][::-1]
        names = [" / ".join(str(row[key]) for key in ("model", "evaluation", "score", "loss")) for row in best]
        axis.barh(names, [row["power"] for row in best], xerr=[row["power_se"] for row in best], color="tab:blue")
        axis.set_title(setting, loc="left", fontsize=9)
        axis.set_xlim(0, 1)
        axis.tick_params(labelsize=7)
    axes[-1, 0].set_xlabel("power at target FDR 0.1")
    return figure


# Data


def simulate(setting: Setting, *, rng: Generator) -> Simulation:
    """Features and labels of a setting."""
    if setting.n_components > 1:
        return simulate_mixture(
            setting.n,
            setting.d,
            n_components=setting.n_components,
            n_classes=setting.n_classes,
            n_non_nulls=setting.n_non_nulls,
            spread=setting.spread,
            rng=rng,
        )
    places = np.arange(setting.d)
    factor = np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(places, places)))
    X = rng.standard_normal((setting.n, setting.d)) @ factor.T
    non_nulls = draw_non_nulls(setting.d, setting.n_non_nulls, rng=rng)
    if setting.linear:
        beta = non_nulls * rng.choice([-0.5, 0.5], size=setting.d)
        y = (rng.random(setting.n) < 1 / (1 + np.exp(-X @ beta))).astype(np.intp)
    else:
        y = polynomial_labels(X, non_nulls, n_classes=setting.n_classes, rng=rng)
    return Simulation(X, y, non_nulls)


def preparation(setting: Setting) -> Prepare:
    """How one repetition is simulated, its P^X fitted and its knockoffs drawn."""
    return partial(prepare_simulation, partial(simulate, setting), setting.n_components)


# Scores of one repetition


def score_setting(setting: Setting, rngs: Sequence[Generator], config: Config, context: Context) -> Arrays:
    """All scores, name -> (repetitions, 2 d), with ``non_nulls``; finished batches are found again."""
    from joblib import Parallel, delayed

    parts = []
    for start in range(0, len(rngs), config.batch):
        batch_rngs = rngs[start : start + config.batch]
        streams = [rng.spawn(2 + len(MODELS)) for rng in batch_rngs]
        prepare = preparation(setting)

        def prepared(streams: Sequence[Sequence[Generator]] = streams, prepare: Prepare = prepare) -> list[Prepared]:
            return list(Parallel(n_jobs=context.n_jobs)(delayed(prepare)(stream[0]) for stream in streams))

        S = [stream[1].random(setting.d) < 0.5 for stream in streams]
        batch: list[Prepared] = []
        found: Arrays = {}
        for model in setting.models:
            settings = (config.hidden, config.epochs) if model == "neural" else (config.n_trees,)
            key = f"scores-{model}-{start:03d}-{fingerprint(replace(setting, models=()), batch_rngs, settings, LAMS)}"
            kept = context.find(key)
            if kept is None:
                batch = batch or prepared()
                own = [stream[2 + MODELS.index(model)] for stream in streams]
                kept = context.keep(key, _score_batch(model, batch, S, own, config, context))
                context.log(f"{setting.name}: {model}, repetitions {start + 1} to {start + len(batch_rngs)}")
            found |= kept
        parts.append(found)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _score_batch(
    model: str,
    batch: Sequence[Prepared],
    S: Sequence[NDArray],
    rngs: Sequence[Generator],
    config: Config,
    context: Context,
) -> Arrays:
    """Scores of one model for some repetitions, fitted on randomly swapped columns and swapped back."""
    from joblib import Parallel, delayed

    if model == "neural":
        scores = _score_networks(batch, S, rngs, config, context.device)
    else:
        fits = {"lasso": _lasso, "forest": partial(_forest, config.n_trees), "boosting": _boosting}
        work = (delayed(_score_one)(fits[model], model, p, s, rng) for p, s, rng in zip(batch, S, rngs, strict=True))
        each = list(Parallel(n_jobs=context.n_jobs)(work))
        scores = {name: np.stack([one[name] for one in each]) for name in each[0]}
    both = np.concatenate([np.stack(S), np.stack(S)], axis=1)
    d = both.shape[1] // 2
    back = {name: np.where(both, np.roll(Z, d, axis=1), Z) if Z.ndim == 2 else Z for name, Z in scores.items()}
    return back | {"non_nulls": np.stack([p.non_nulls for p in batch])}


def _lasso(seed: int) -> Any:
    from knockoffs.response.linear import LogisticPathCV

    return LogisticPathCV(random_state=seed)


def _forest(n_trees: int, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_trees, random_state=seed)


def _boosting(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=100, max_leaf_nodes=15, early_stopping=True, random_state=seed)


def _score_one(make: Callable[[int], Any], name: str, data: Prepared, S: NDArray, rng: Generator) -> Arrays:
    """All scores of one scikit-learn style model, in sample (out of bag for a forest) and cross-fitted."""
    from knockoffs.response.trees import out_of_bag

    X, X_tilde = swap(data.X, data.X_tilde, S)
    order = rng.permutation(len(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(int(rng.integers(2**31))).fit(np.hstack([X, X_tilde]), data.y)
        whole = out_of_bag(model, len(X)) if name == "forest" else model
        rows = "out_of_bag" if name == "forest" else "in_sample"
        losses = ("accuracy", "log_loss")
        scores = {
            f"{name}/{rows}/{key}": Z for key, Z in _path_scores(whole, X, X_tilde, data.y, order, losses).items()
        }
        fold_of = draw_folds(len(X), N_FOLDS, rng, labels=data.y)
        folds = []
        # a multinomial lasso path takes minutes a repetition over five folds: its coefficients are enough
        for fold in range(N_FOLDS if name != "lasso" or len(np.unique(data.y)) == 2 else 0):
            held = fold_of == fold
            part = make(int(rng.integers(2**31))).fit(np.hstack([X[~held], X_tilde[~held]]), data.y[~held])
            inner = np.argsort(order[held])
            folds.append((held.sum(), part, _path_scores(part, X[held], X_tilde[held], data.y[held], inner, losses)))
    sizes = [size for size, _, _ in folds]
    for key in folds[0][2] if folds else ():
        scores[f"{name}/cross_fitted/{key}"] = np.average([fold[2][key] for fold in folds], axis=0, weights=sizes)
    if name == "lasso":
        from knockoffs.importance.coefficients import coefficient_magnitude

        owners = np.arange(X.shape[1])
        found = coefficient_magnitude(model, X, X_tilde, data.y, feature_of=owners, rng=rng)
        scores["lasso/in_sample/coefficients/-"] = np.concatenate([found.Z, found.Z_tilde])
    return scores


def _path_scores(model: Any, X: NDArray, X_tilde: NDArray, y: NDArray, order: NDArray, losses: Sequence[str]) -> Arrays:
    """Swap, Permutation and their integrals by each loss; and the loss of the unmoved table, under "held_loss"."""
    from knockoffs.importance.lambda_path import path_losses

    XX, found = np.hstack([X, X_tilde]), {}
    fakes = {"swap": np.hstack([X_tilde, X]), "permutation": XX[order]}
    for loss in losses:
        for fake, XX_fake in fakes.items():
            path = path_losses(model, XX, XX_fake, y, loss)
            unmoved = path.unmoved()
            found[f"{fake}/{loss}"] = path.at(np.array([1.0]))[:, 0] - unmoved
            found[f"{fake}_integral/{loss}"] = path.integral(0.0, 10.0, len(LAMS)) - 10.0 * unmoved
        found[f"held_loss/{loss}"] = np.asarray(unmoved, dtype=float)
    return found


def _score_networks(
    batch: Sequence[Prepared], S: Sequence[NDArray], rngs: Sequence[Generator], config: Config, device: str
) -> Arrays:
    """All scores of a batch of networks, in sample and cross-fitted."""
    XX = np.stack([np.hstack(swap(p.X, p.X_tilde, s)) for p, s in zip(batch, S, strict=True)])
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
    from knockoffs.importance.neural_paths import path_losses
    from knockoffs.importance.saliency import gradient_scores, integrated_gradient_scores
    from knockoffs.response.networks import train_classifiers

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
        along = path_losses(network, table, moved, labels, LAMS, PATH_LOSSES)
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
    """Ways to join the models' cross-fitted Swap by log-loss; both are blind to swaps, so flip-sign is kept."""
    models = [name.split("/")[0] for name in W if name.endswith("/cross_fitted/swap/log_loss")]
    if len(models) < 2:
        return {}
    each = np.stack([W[f"{model}/cross_fitted/swap/log_loss"] for model in models])
    held = np.stack([scores[f"{model}/cross_fitted/held_loss/log_loss"] for model in models])
    best = held.argmin(axis=0)
    scaled = each / np.abs(each).max(axis=2, keepdims=True).clip(1e-300)
    return {
        "best/cross_fitted/swap/log_loss": each[best, np.arange(each.shape[1])],
        "sum/cross_fitted/swap/log_loss": scaled.sum(axis=0),
    }


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
        "in bold what is within one standard error of the setting's best. P^X is a mixture fitted by EM with the true",
        "number of components. An FDR well above the target says that the fit is too poor there (20 components of 30",
        "or 60 dimensions from 150 or 250 rows each); a more powerful score shows it first. An empty cell was not run.",
        "`knockoffs reproduce scores` makes the table again.",
        "",
        f"| {' | '.join(keys)} | {' | '.join(settings)} |",
        f"|{'---|' * (len(keys) + len(settings))}",
        *(
            f"| {' | '.join(combination)} | {' | '.join(cell(combination, setting) for setting in settings)} |"
            for combination in sorted(
                combinations, key=lambda c: (MODELS.index(c[0]) if c[0] in MODELS else 9, -mean(c))
            )
        ),
    ]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
