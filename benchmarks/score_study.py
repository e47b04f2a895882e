"""Which score, loss, rows and model of y find most: every combination on the same repetitions.

    PYTHONPATH=src python -m benchmarks.score_study --jobs 16 [--quick]

Every model is fitted once a repetition (and once a fold), and all of its scores are read off that fit: two fakes, two
reductions of the path, four losses. The table also holds the model with the smallest log-loss on held-out rows: of
lasso and boosting, which is the default, and of all four. P^X is known, so that the level is held and powers can be
compared. Writes ``benchmarks/results/scores.csv`` and ``benchmarks/scores_table.md``; finished repetitions are kept.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from paper.mixtures import MixtureParameters, draw_mixture, sample_mixture
from paper.repetitions import LAMS, Prepared, power_rows, statistics
from paper.runner import Arrays, Context, Table, read_table, write_table
from paper.simulate import draw_non_nulls, polynomial_labels

from knockoffs import sample_knockoffs, swap
from knockoffs.defaults import BEST_OF, choose
from knockoffs.features.gaussian_mixture import gaussian_mixture_features
from knockoffs.importance.coefficients import coefficient_magnitude
from knockoffs.importance.model_choice import choose_best
from knockoffs.importance.paths.follow import path_losses
from knockoffs.importance.saliency import gradient_saliency, integrated_gradients
from knockoffs.importance.statistic import draw_folds
from knockoffs.response import Estimator, make_boosting, make_forest
from knockoffs.response.linear import LogisticPathCV
from knockoffs.sampling.pair import Pair
from knockoffs.table.target import Target

HERE = Path(__file__).parent
MODELS = ("lasso", "neural", "forest", "boosting")
TARGETS = (0.1, 0.2)
PATH_LOSSES = ("accuracy", "log_loss", "brier")
N_FOLDS = 5
CHOICE = "choice"  # the losses by which the default chooses
DEFAULT_NAME = "best of two"
DEFAULT_SCORE = {
    "lasso": "lasso/in_sample/coefficients/-",
    "neural": "neural/in_sample/swap/log_loss",
    "forest": "forest/cross_fitted/swap_integral/log_loss",
    "boosting": "boosting/cross_fitted/swap_integral/log_loss",
}


# Data


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
    models : tuple of str
        Models of y; trees cost a minute a repetition where classes and columns are many.
    epochs, n_trees : int
        Of networks and forests.
    """

    name: str
    n: int
    d: int
    n_components: int
    n_classes: int
    n_non_nulls: int = 10
    labels: str = "cubic"
    models: tuple[str, ...] = MODELS
    epochs: int = 100
    n_trees: int = 100


SETTINGS = (
    Setting("one Gaussian, linear, 2 classes", 1000, 50, 1, 2, labels="linear"),
    Setting("one Gaussian, cubic, 2 classes", 2000, 30, 1, 2),
    Setting("one Gaussian, products, 2 classes", 2000, 30, 1, 2, labels="products"),
    Setting("5 components, cubic, 2 classes", 3000, 30, 5, 2),
    Setting("10 components, cubic, 3 classes, d = 20", 1500, 20, 10, 3),
    Setting("20 components, cubic, 2 classes, d = 20", 1500, 20, 20, 2),
    Setting("10 components, cubic, 10 classes", 3000, 30, 10, 10, models=("neural",)),
)
QUICK = tuple(
    Setting(f"{k} components, cubic, 3 classes", 500, 12, k, 3, n_non_nulls=6, epochs=20, n_trees=20) for k in (1, 3)
)


def law_of_features(setting: Setting, rng: Generator) -> MixtureParameters:
    """P^X of a setting, from which the knockoffs are drawn: power is compared where the level is surely held."""
    if setting.n_components > 1:
        return draw_mixture(setting.n_components, setting.d, rng=rng)
    places = np.arange(setting.d)
    correlations = 0.5 ** np.abs(np.subtract.outer(places, places))
    return MixtureParameters(np.ones(1), np.zeros((1, setting.d)), correlations[None])


def prepare(setting: Setting, rng: Generator) -> Prepared:
    """Simulate one repetition and draw its knockoffs."""
    law_rng, data_rng, draw_rng = rng.spawn(3)
    law = law_of_features(setting, law_rng)
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


# One repetition


def repeat(setting: Setting, model: str, rng: Generator) -> Arrays:
    """Scores of one model by name, shape (2 d,) each, with held-out losses and the non-nulls.

    The random swap is that of all models of a repetition, and the scores are swapped back.
    """
    data_rng, swap_rng, *rngs = rng.spawn(2 + len(MODELS) + 1)
    data = prepare(setting, data_rng)
    d = setting.d
    S = swap_rng.random(d) < 0.5
    A, B = swap(data.X, data.X_tilde, S)
    own = rngs[(*MODELS, CHOICE).index(model)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = losses_of_choice(A, B, data.y, own) if model == CHOICE else scores(setting, model, A, B, data.y, own)
    back = np.arange(2 * d)
    back[:d][S], back[d:][S] = back[d:][S].copy(), back[:d][S].copy()
    return {name: Z[back] if Z.ndim else Z for name, Z in found.items()} | {"non_nulls": data.non_nulls}


def make(setting: Setting, model: str, seed: int, alpha: float | None = None) -> Estimator:
    """Unfitted model of y."""
    if model == "lasso":
        return LogisticPathCV(n_alphas=50, random_state=seed, alpha=alpha)
    if model == "forest":
        return make_forest("classification", n_estimators=setting.n_trees, random_state=seed)
    if model == "boosting":
        return make_boosting("classification", random_state=seed)
    from knockoffs import NeuralClassifier

    return NeuralClassifier((100, 100, 100), epochs=setting.epochs, random_state=seed)


def scores(setting: Setting, name: str, A: NDArray, B: NDArray, y: NDArray, rng: Generator) -> Arrays:
    """All scores of one model: in sample and cross-fitted."""
    order = rng.permutation(len(A))
    fold_of = draw_folds(len(A), N_FOLDS, rng, labels=y)
    XX = np.hstack([A, B])
    model = make(setting, name, int(rng.integers(2**31))).fit(XX, y)
    found = {"in_sample": path_scores(model, XX, y, order)}
    options = {"feature_of": np.arange(A.shape[1]), "rng": rng}
    if name == "lasso":
        found["in_sample"]["coefficients/-"] = coefficient_magnitude(model, A, B, y, **options).stacked
    if name == "neural":
        found["in_sample"]["gradient/-"] = gradient_saliency(model, A, B, y, **options).stacked
        found["in_sample"]["integrated_gradients/-"] = integrated_gradients(model, A, B, y, **options).stacked
    # a lasso keeps the penalty that all rows chose, which does not know which columns are knockoffs
    alpha = model.alpha_ if isinstance(model, LogisticPathCV) else None
    folds = []
    for fold in range(N_FOLDS):
        held = fold_of == fold
        part = make(setting, name, int(rng.integers(2**31)), alpha).fit(XX[~held], y[~held])
        folds.append(path_scores(part, XX[held], y[held], np.argsort(order[held])))
    sizes = np.bincount(fold_of)
    found["cross_fitted"] = {key: np.average([fold[key] for fold in folds], axis=0, weights=sizes) for key in folds[0]}
    return {f"{name}/{rows}/{key}": Z for rows, each in found.items() for key, Z in each.items()}


def losses_of_choice(A: NDArray, B: NDArray, y: NDArray, rng: Generator) -> Arrays:
    """Held-out losses by which the default chooses its model."""
    best = choose(Target(y, kind="classes")).statistic
    losses = choose_best(best, Pair(A, B, np.arange(A.shape[1])), Target(y), rng=rng)[1]
    return {f"{CHOICE}/{name}": np.array(losses[name]) for name in BEST_OF}


def path_scores(model: object, XX: NDArray, y: NDArray, order: NDArray) -> Arrays:
    """Swap, Permutation and their integrals by each loss; and the loss of the unmoved table, under "held_loss".

    Integrals are exact for trees and trapezoids on 21 points for others.
    """
    found = {}
    for fake, XX_fake in {"swap": np.roll(XX, XX.shape[1] // 2, axis=1), "permutation": XX[order]}.items():
        for loss in PATH_LOSSES:
            path = path_losses(model, XX, XX_fake, y, loss)
            unmoved = path.unmoved()
            found[f"{fake}/{loss}"] = path.at(np.ones(1))[:, 0] - unmoved
            found[f"{fake}_integral/{loss}"] = path.integral(LAMS[0], LAMS[-1], len(LAMS)) - np.ptp(LAMS) * unmoved
            found[f"held_loss/{loss}"] = np.asarray(unmoved)
    return found


# All of them


def run(settings: tuple[Setting, ...], repetitions: int, rng: Generator, context: Context) -> Table:
    """Power and FDR of every combination in every setting."""
    table: Table = []
    for setting, stream in zip(settings, rng.spawn(len(settings)), strict=True):
        rngs = stream.spawn(repetitions)
        work = [*setting.models, *([CHOICE] if set(BEST_OF) <= set(setting.models) else [])]
        found: Arrays = {}
        for model in work:
            context.log(f"{setting.name}: {model}")
            each = context.repeat(repeat, [(replace(setting, models=()), model, own) for own in rngs])
            found |= {name: np.stack([one[name] for one in each]) for name in each[0]}
        table += rows_of(setting, found)
    return table


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
        "points for others. An empty cell was not run. `python -m benchmarks.score_study` makes the table again.",
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


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Power of every score, loss, choice of rows and model of y")
    parser.add_argument("--quick", action="store_true", help="two small settings, into build/scores")
    parser.add_argument("--jobs", type=int, default=-1)
    given = parser.parse_args()
    results, page = HERE / "results", HERE / "scores_table.md"
    if given.quick:
        results = Path("build/scores")
        page = results / "scores_table.md"
        results.mkdir(parents=True, exist_ok=True)
    context = Context("cpu", given.jobs, Path("build/scores/kept"), verbose=1)
    settings, repetitions = (QUICK, 4) if given.quick else (SETTINGS, 100)
    write_table(results / "scores.csv", run(settings, repetitions, np.random.default_rng(2019), context))
    write_page(read_table(results / "scores.csv"), page)


if __name__ == "__main__":
    main()
