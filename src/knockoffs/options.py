"""Every choice a user has, once: the selector, the command line, selection.json and the docs are made from this list.

A new option is one entry here and its use; the tests compare the selector's parameters with this list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from numbers import Integral
from typing import Any, TypedDict

from knockoffs.errors import InputError
from knockoffs.table.types import Json, Kinds


@dataclass(frozen=True)
class Option:
    """One choice.

    Parameters
    ----------
    name : str
        In selection.json, and of the selector's parameter unless that is called otherwise.
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
        What the command line calls the value; by its type if left out.
    known : callable, optional
        Names that may be given; others are refused before any data are read.
    where : tuple of str
        Who has it: "selector", and the commands by name.
    parameter : str, optional
        Of the selector, where it is called otherwise.
    """

    name: str
    default: bool | int | float | str | None
    help: str
    kind: type = str
    flag: str | None = None
    least: int | None = None
    metavar: str | None = None
    known: Callable[[], Iterable[str]] | None = None
    where: tuple[str, ...] = ("selector", "select")
    parameter: str | None = None

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
        places = (f"knockoffs.{place}".split(":") for place in registries)
        return [name for module, attribute in places for name in getattr(import_module(module), attribute)]

    return known


ALL = ("selector", "select", "path", "sample", "check")
MODELS = ("selector", "select", "path")
PROMISED = ("selector", "select", "ghost")
OPTIONS: tuple[Option, ...] = (
    # what is read
    Option("target", None, "Column to be explained.", metavar="COLUMN", where=("select", "path")),
    Option(
        "drop",
        None,
        "Column to leave out; may be given several times, or with commas between.",
        list,
        metavar="COLUMN",
        where=ALL,
    ),
    Option(
        "dependent",
        "auto",
        "Columns that others determine exactly: drop, refuse where the feature model cannot hold them, or auto, which "
        "drops for the feature model auto and refuses for others.",
        known=_names("features.columns:DEPENDENT"),
        where=ALL,
    ),
    Option(
        "kinds",
        None,
        "What a column holds, for instance grade=ordinal: continuous, count, ordinal, binary or nominal; repeatable.",
        dict,
        flag="--kind",
        metavar="COLUMN=KIND",
        where=ALL,
    ),
    Option(
        "weights",
        None,
        "Column with the weights of the rows in the model of the target.",
        metavar="COLUMN",
        where=("select", "path"),
    ),
    Option(
        "task",
        None,
        "What the target is, where it does not tell: regression, classification, count or ordinal.",
        known=_names("defaults:TASKS"),
        where=MODELS,
    ),
    # what is promised
    Option("fdr", None, "False discovery rate to hold.  [default: 0.1]", float, where=PROMISED),
    Option(
        "method",
        "auto",
        "How features are selected: knockoffs; conditional-test (p-values, for few columns); or auto, which takes "
        "tests of fewer than 4 / fdr columns (2 / fdr with more than 10,000 rows or 60 columns, or in batches).",
        known=_names("conditional_tests.choice:METHODS"),
    ),
    Option("n_draws", 1, "Draws of knockoffs, joined by their e-values.", int, flag="--draws", least=1, where=PROMISED),
    Option(
        "n_knockoffs",
        1,
        "Knockoffs of every feature in a draw: with m of them 1 / (m fdr) discoveries are enough, and 5 is usual. For "
        "linear models of the target.",
        int,
        least=1,
    ),
    Option(
        "level",
        "fixed",
        "fixed; or post-hoc, which may state a larger level after looking, where nothing is found at that asked for.",
        known=_names("filter.e_values:WAYS"),
        where=PROMISED,
    ),
    Option("offset", 1, "1 (knockoff+) or 0, which does not hold the false discovery rate.", int, where=PROMISED),
    Option("verdict", True, "Check the knockoffs against the features, without a look at the target.", bool),
    Option(
        "repair",
        False,
        "Do what the verdict advises, without a look at the target, until the knockoffs look good.",
        bool,
        where=("selector", "select", "check"),
    ),
    # P^X
    Option(
        "feature_model",
        "auto",
        "P^X, the model of the features: auto (any table), gaussian, mixture, naive-bayes, hmm, lda, network, "
        "fastphase, or a network's .bif file.",
        where=ALL,
    ),
    Option(
        "feature_model_options",
        None,
        "Option of the feature model, for instance diagonal=mvr; repeatable.",
        dict,
        flag="--feature-model-option",
        metavar="NAME=VALUE",
        where=ALL,
    ),
    Option(
        "groups",
        None,
        "Columns that are one feature: auto, or a csv file with the header column,group.",
        metavar="FILE",
        where=(*ALL, "ghost"),
    ),
    Option(
        "representatives",
        False,
        "Make the knockoffs of groups through representatives of them, columns chosen without the target.",
        bool,
        where=ALL,
    ),
    Option(
        "knockoffs",
        None,
        "Knockoffs drawn elsewhere: a table of the same columns.",
        metavar="FILE",
        where=("selector", "select", "check"),
    ),
    # a study of which only z-scores are known
    Option("scores", "z", "Column of the z-scores, one row a feature.", metavar="COLUMN", where=("ghost",)),
    Option(
        "names",
        None,
        "Column of the features' names; by default the first column of text.",
        metavar="COLUMN",
        where=("ghost",),
    ),
    Option(
        "correlation",
        None,
        "Correlations of the features: .npy, or a table with their names in the header.",
        metavar="FILE",
        where=("ghost",),
    ),
    Option("n", None, "Rows of the study behind the z-scores.", float, where=("ghost",)),
    Option(
        "shrink", 0.0, "Share of the identity in the correlations: of a small reference panel.", float, where=("ghost",)
    ),
    Option(
        "penalty", None, "Penalty of the lasso; by default 0.6 of what pure noise would need.", float, where=("ghost",)
    ),
    # the statistic
    Option(
        "estimator",
        None,
        "Model of the target: best (the default: lasso or boosting, by its predictions), lasso, logistic, linear, "
        "ridge, forest, boosting, neural. Tests take best, lasso and boosting.",
        known=_names("defaults:BEST_NAMES", "response:ESTIMATORS"),
        where=MODELS,
    ),
    Option(
        "importance",
        None,
        "Importance score: coefficients, contribution, swap, permutation, swap-integral, permutation-integral, "
        "gradient, integrated-gradients.",
        known=_names("importance:SCORES"),
    ),
    Option(
        "loss",
        None,
        "Loss of the score: accuracy, log-loss, brier or margin for classes, squared-error, absolute-error or "
        "poisson-deviance for numbers.",
        known=_names("importance.losses:LOSSES"),
        where=MODELS,
    ),
    Option(
        "rows",
        None,
        "Rows that are scored: in-sample, held-out, cross-fitted, out-of-bag.",
        known=_names("importance.resampling:ROWS"),
        where=MODELS,
    ),
    Option(
        "n_folds",
        5,
        "Folds of a cross-fitted score, and of the choice of a model.",
        int,
        flag="--folds",
        least=2,
        where=MODELS,
    ),
    Option("n_fits", 1, "Fits whose scores are averaged.", int, flag="--fits", least=1),
    Option(
        "rule", "difference", "W from Z: difference or signed-maximum.", known=_names("filter:RULES"), where=PROMISED
    ),
    # how it is run
    Option(
        "stream",
        "auto",
        "Read the table in batches of rows: auto (where it would not fit into memory), always or never.",
        known=_names("table.memory:STREAM"),
        where=("select",),
    ),
    Option(
        "sample_rows",
        None,
        "Of a table in batches: rows, drawn at random, on which P^X is fitted; by default at most 100,000.",
        int,
        least=5,
        where=("select",),
    ),
    Option(
        "keep_knockoffs",
        None,
        "Of a table in batches: folder for the knockoffs of all rows, as parquet.",
        metavar="FOLDER",
        where=("select",),
    ),
    Option(
        "seed",
        0,
        "Seed of everything random; the same seed gives the same answer.",
        int,
        least=0,
        where=(*ALL, "ghost"),
        parameter="random_state",
    ),
    Option(
        "report",
        None,
        "Page for the answer, one .html file that opens without a network.",
        metavar="FILE",
        where=("select",),
    ),
    Option(
        "report_paths",
        False,
        "Follow lambda paths for the report, which fits the model of the target once more.",
        bool,
        where=("select",),
    ),
    Option("jobs", None, "Jobs at a time; the answer does not depend on it.", int, where=ALL, parameter="n_jobs"),
    Option(
        "if_empty",
        "raise",
        "What transform does where nothing is selected: raise an error, keep the best feature, or give no columns.",
        known=_names("defaults:IF_EMPTY"),
        where=("selector",),
    ),
    Option("verbose", False, "Show progress, as the commands always do.", bool, where=("selector",)),
)


class Parameters(TypedDict, total=False):
    """Options of a command by name, as they are handed on and recorded: for type checkers; tested equal to the list."""

    target: str
    drop: list[str]
    dependent: str
    kinds: Kinds
    weights: str | None
    task: str | None
    fdr: float | None
    method: str
    n_draws: int
    n_knockoffs: int
    level: str
    offset: int
    verdict: bool
    repair: bool
    feature_model: str | None
    feature_model_options: dict[str, Json] | None
    groups: str | None
    representatives: bool
    knockoffs: str | None
    scores: str
    names: str | None
    correlation: str | None
    n: float | None
    shrink: float
    penalty: float | None
    estimator: str | None
    importance: str | None
    loss: str | None
    rows: str | None
    n_folds: int
    n_fits: int
    rule: str
    stream: str
    sample_rows: int | None
    keep_knockoffs: str | None
    seed: int
    report: str | None
    report_paths: bool
    jobs: int | None


# what `knockoffs test` has no use for: tests draw a column anew, and there is no W
NOT_OF_TESTS = (
    "weights",
    "method",
    "n_draws",
    "n_knockoffs",
    "level",
    "offset",
    "knockoffs",
    "importance",
    "loss",
    "rows",
    "n_folds",
    "n_fits",
    "rule",
    "keep_knockoffs",
    "report_paths",
)
NAMES_ONLY = ("rows", "task", "method", "level")  # no object stands for these
NOT_RECORDED = ("report", "report_paths", "jobs", "keep_knockoffs")  # the answer does not depend on them


def check_arguments(given: Mapping[str, object]) -> None:
    """Refuse arguments of the selector that are of another type, before any work.

    Objects may stand for names where the selector takes them (a model, a score, a rule), so those are not looked at.

    >>> check_arguments({"kinds": ["ordinal"]})
    Traceback (most recent call last):
    knockoffs.errors.InputError: kinds=['ordinal']: expected a mapping, for instance {'name': value}, or None.
    """
    for option in options_of("selector").values():
        name = option.parameter or option.name
        if name not in given or given[name] is None:
            continue
        value, wanted = given[name], ""
        if option.kind is dict and not isinstance(value, Mapping):
            wanted = "a mapping, for instance {'name': value}, or None"
        elif option.kind is bool and type(value).__name__ not in ("bool", "bool_"):
            wanted = "True or False"
        elif option.kind is list and (isinstance(value, bytes) or not isinstance(value, Iterable)):
            wanted = "names of columns, or None"
        elif name in NAMES_ONLY and not isinstance(value, str):
            wanted = f"one of {', '.join(map(repr, option.known()))}" if option.known else "a name"
        elif name == "n_jobs" and (isinstance(value, bool) or not isinstance(value, Integral) or value == 0):
            wanted = "a whole number that is not 0 (-1 stands for all cores), or None"
        if wanted:
            raise InputError(f"{name}={value!r}: expected {wanted}.")


def options_of(face: str) -> dict[str, Option]:
    """Options that the selector or a command has, by name."""
    if face == "test":
        return {name: option for name, option in options_of("select").items() if name not in NOT_OF_TESTS}
    return {option.name: option for option in OPTIONS if face in option.where}


def selector_arguments(parameters: Mapping[str, object]) -> dict[str, Any]:
    """Arguments of the selector from recorded parameters; those of the data are left out."""
    return {
        option.parameter or name: parameters[name]
        for name, option in options_of("selector").items()
        if name in parameters and name not in ("drop", "knockoffs")
    }
