"""Every choice a user has, once: the selector, the command line, selection.json and the docs are made from this list.

A new option is one entry here and its use; the tests compare the selector's parameters with this list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """One choice.

    Parameters
    ----------
    name : str
        Of the selector's parameter, and in selection.json.
    default : object
    help : str
        One sentence, for the command line and the docs.
    kind : type
        What the command line reads: str, int, float, bool, or list for an option that may be given several times.
    flag : str, optional
        On the command line; the name with dashes if left out.
    least : int, optional
        Smallest value of a whole number.
    metavar : str, optional
        What the command line calls the value.
    known : callable, optional
        Names that may be given; others are refused before any data are read.
    where : tuple of str
        Who has it: "selector", and the commands by name.
    """

    name: str
    default: Any
    help: str
    kind: type = str
    flag: str | None = None
    least: int | None = None
    metavar: str | None = None
    known: Callable[[], Iterable[str]] | None = None
    where: tuple[str, ...] = ("selector", "select")

    @property
    def written(self) -> str:
        """Flag on the command line.

        >>> Option("n_folds", 5, "").written
        '--n-folds'
        """
        return self.flag or "--" + self.name.replace("_", "-")


def _names(*registries: str) -> Callable[[], list[str]]:
    """Names of registries, "module:attribute", which are imported when they are asked for."""

    def known() -> list[str]:
        from importlib import import_module

        found: list[str] = []
        for place in registries:
            module, attribute = place.split(":")
            found += list(getattr(import_module(f"knockoffs.{module}"), attribute))
        return found

    return known


EVERY = ("selector", "select", "path")
OPTIONS: tuple[Option, ...] = (
    # what is read
    Option("target", None, "Column to be explained.", where=("select", "path")),
    Option("drop", (), "Column to leave out; may be given several times.", list, where=("select", "path", "sample")),
    Option(
        "weights", None, "Column with the weights of the rows in the model of the target.", where=("select", "path")
    ),
    Option(
        "task",
        None,
        "regression or classification, where the target does not tell.",
        known=_names("defaults:TASKS"),
        where=EVERY,
    ),
    # what is promised
    Option("fdr", None, "False discovery rate to hold; 0.1 if left out.", float),
    Option("offset", 1, "1 (knockoff+) or 0, which does not hold the false discovery rate.", int),
    # P^X
    Option(
        "feature_model",
        None,
        "P^X, the model of the features: gaussian, mixture, naive-bayes, hmm, lda, network, fastphase, or a network's "
        ".bif file.",
        where=(*EVERY, "sample"),
    ),
    Option(
        "feature_model_options",
        None,
        "Option of the feature model, for instance diagonal=mvr; repeatable.",
        list,
        flag="--feature-model-option",
        metavar="NAME=VALUE",
        where=(*EVERY, "sample"),
    ),
    Option("knockoffs", None, "Knockoffs drawn elsewhere: a table of the same columns.", metavar="FILE"),
    Option("feature_of", None, "The feature that owns each column, where a feature has several.", where=("selector",)),
    # the statistic
    Option(
        "estimator",
        None,
        "Model of the target: best (the default: lasso or boosting, by its predictions), lasso, logistic, linear, "
        "forest, boosting, neural.",
        known=_names("defaults:BEST_NAMES", "response:ESTIMATORS"),
        where=EVERY,
    ),
    Option(
        "importance",
        None,
        "Importance score: coefficients, swap, permutation, swap-integral, permutation-integral, gradient, "
        "integrated-gradients.",
        known=_names("importance:SCORES"),
    ),
    Option(
        "loss",
        None,
        "Loss of the score: accuracy, log-loss, brier or margin for classes, squared-error or absolute-error for "
        "numbers.",
        known=_names("importance.losses:LOSSES"),
        where=EVERY,
    ),
    Option(
        "rows",
        None,
        "Rows that are scored: in-sample, held-out, cross-fitted, out-of-bag.",
        known=_names("importance.rows:ROWS"),
        where=EVERY,
    ),
    Option(
        "n_folds",
        5,
        "Folds of a cross-fitted score, and of the choice of a model.",
        int,
        flag="--folds",
        least=2,
        where=EVERY,
    ),
    Option("n_fits", 1, "Fits whose scores are averaged.", int, flag="--fits", least=1),
    Option("rule", "difference", "W from Z: difference or signed-maximum.", known=_names("filter:RULES")),
    # how it is run
    Option(
        "random_state",
        None,
        "Seed of everything random; the same seed gives the same answer.",
        int,
        flag="--seed",
        least=0,
        where=(*EVERY, "sample"),
    ),
    Option(
        "n_jobs",
        None,
        "Jobs at a time; the answer does not depend on it.",
        int,
        flag="--jobs",
        where=(*EVERY, "sample"),
    ),
)


def options_of(face: str) -> dict[str, Option]:
    """Options that the selector or a command has, by name."""
    return {option.name: option for option in OPTIONS if face in option.where}
