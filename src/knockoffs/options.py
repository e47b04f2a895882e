"""Every option, once: the selector, the commands, selection.json and the table in the docs derive from this list.

A new option is one field here, and its use. The selector repeats the names in its signature, which scikit-learn reads;
a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from numbers import Integral
from typing import Any

from knockoffs.errors import InputError, unknown_option
from knockoffs.registry import key_of
from knockoffs.table.types import Json, Kinds

DATA = ("selector", "select", "test", "sample", "check")  # whoever reads a table
MODEL = ("selector", "select", "test")  # whoever models the target
ERROR = ("selector", "select", "test", "ghost")  # whoever controls an error rate
KNOCKOFFS = ("selector", "select")
SELECTION = ("select", "test")
GHOST = ("ghost",)
# what an option holds, by the type of its field
KINDS = {kind.__name__: kind for kind in (str, int, float, bool, dict)} | {"tuple": list, "Kinds": dict, "object": str}


def _option(default: object, help: str, **about: object) -> Any:
    """Field of ``Options``: its default, and what ``Option`` says about it."""
    return field(default=default, metadata={"help": help, **about})


def _names(*registries: str) -> Callable[[], list[str]]:
    """Names of registries, "module:attribute", which are imported when the names are needed."""

    def choices() -> list[str]:
        places = (f"knockoffs.{place}".split(":") for place in registries)
        return [name for module, attribute in places for name in getattr(import_module(module), attribute)]

    return choices


@dataclass(frozen=True, kw_only=True)
class ImportanceOptions:
    """Options of the importance scores and of W: the keys of ``importance_options``."""

    loss: object = _option(
        None,
        "Loss of the score: accuracy, log-loss or brier for classes; squared-error or poisson-deviance for numbers; "
        "partial-likelihood for survival times.",
        choices=_names("importance.losses:LOSSES"),
        objects=True,
        faces=KNOCKOFFS,
    )
    rows: str | None = _option(
        None,
        "Rows that are scored: in-sample, held-out or cross-fitted.",
        choices=_names("importance.statistic:ROWS"),
        faces=KNOCKOFFS,
    )
    n_folds: int = _option(
        5, "Folds of a cross-fitted score and of the choice of a model.", least=2, most=1000, faces=KNOCKOFFS
    )
    n_fits: int = _option(1, "Number of fits whose scores are averaged.", least=1, most=10_000, faces=KNOCKOFFS)
    rule: object = _option(
        "difference",
        "How W is computed from Z and Z_tilde: difference or signed-maximum.",
        choices=_names("filter:RULES"),
        objects=True,
        faces=("selector", "select", "ghost"),
    )


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a run. Each field says which faces have it: the selector, or a command by its name."""

    # what is read
    target: str = _option(
        "",
        "Column to explain; required, but for a survival time.",
        metavar="COLUMN",
        faces=(*SELECTION, "check"),
    )
    time: str | None = _option(
        None, "Column of survival times, in place of --target; needs --event.", metavar="COLUMN", faces=SELECTION
    )
    event: str | None = _option(
        None,
        "Column that is 1 if the event was observed, else 0; or COLUMN=VALUE, for one of several kinds of events.",
        metavar="COLUMN",
        faces=SELECTION,
    )
    entry: str | None = _option(
        None, "Column of entry times, if rows are not observed from time 0.", metavar="COLUMN", faces=SELECTION
    )
    drop: tuple[str, ...] = _option(
        (), "Column to leave out; repeat the option, or separate names by commas.", metavar="COLUMN", faces=DATA
    )
    covariates: tuple[str, ...] = _option(
        (),
        "Column to condition on without testing it; repeat the option, or separate names by commas.",
        metavar="COLUMN",
        faces=MODEL,
    )
    phenotype: str | None = _option(
        None,
        "For .bed files: text with a header and the columns FID, IID and the target; --covariates takes its columns, "
        "or such files.",
        metavar="FILE",
        faces=SELECTION,
    )
    dependent: str = _option(
        "auto",
        "Columns that others determine exactly: drop, refuse, or auto (drop for the feature model auto, refuse for "
        "others).",
        choices=_names("table.redundancy:DEPENDENT"),
        faces=DATA,
    )
    kinds: Kinds = _option(
        None,
        "Kind of a column, for instance grade=ordinal: continuous, count, ordinal, binary or nominal; repeatable.",
        flag="--kind",
        metavar="COLUMN=KIND",
        faces=DATA,
    )
    clusters: str | None = _option(
        None,
        "Column that identifies rows that belong together, such as those of one patient.",
        metavar="COLUMN",
        objects=True,
        faces=("selector", *SELECTION),
    )
    order: str | None = _option(
        None,
        "Column of dates or numbers that puts dependent rows in the order of time.",
        metavar="COLUMN",
        objects=True,
        faces=("selector", *SELECTION),
    )
    environments: str | None = _option(
        None,
        "Column of studies or sites: discoveries hold in all of them, or in --min-environments.",
        metavar="COLUMN",
        objects=True,
        faces=KNOCKOFFS,
    )
    min_environments: int | None = _option(
        None, "Number of environments in which a discovery must hold; all by default.", least=1, faces=KNOCKOFFS
    )
    weights: str | None = _option(
        None, "Column of sample weights for the model of the target.", metavar="COLUMN", faces=("select",)
    )
    task: str | None = _option(
        None,
        "Type of the target, if it cannot be inferred: regression, classification, count, ordinal or survival.",
        choices=_names("defaults:TASKS"),
        faces=MODEL,
    )
    # which error is controlled, and how
    fdr: float | None = _option(None, "Target false discovery rate.  [default: 0.1]", faces=(*ERROR, "check"))
    method: str = _option(
        "auto",
        "knockoffs, conditional-test (a p-value for every feature), or auto, which tests when there are fewer than "
        "8/fdr features (2/fdr if tests would take minutes, or in batches).",
        choices=_names("conditional_tests.choice:METHODS"),
        faces=KNOCKOFFS,
    )
    resolution: str = _option(
        "auto",
        "auto (groups of columns where the data cannot say which matters; for knockoffs, of near copies), or columns "
        "(each feature alone).",
        choices=_names("conditional_tests.resolution:RESOLUTIONS"),
        faces=("selector", *SELECTION),
    )
    n_draws: int = _option(
        1,
        "Number of knockoff draws, combined by e-values.",
        flag="--draws",
        least=1,
        most=10_000,
        faces=(*KNOCKOFFS, "ghost"),
    )
    n_knockoffs: int = _option(
        1,
        "Knockoffs per feature in a draw; several need a linear model of the target.",
        least=1,
        most=1000,
        faces=KNOCKOFFS,
    )
    level: str = _option(
        "fixed",
        "fixed, or post-hoc: if nothing is found at fdr, report the smallest level at which something is.",
        choices=_names("filter.e_values:WAYS"),
        faces=(*KNOCKOFFS, "ghost"),
    )
    offset: int = _option(
        1, "1 (knockoff+, controls the FDR) or 0 (controls a modified FDR only).", faces=(*KNOCKOFFS, "ghost")
    )
    verdict: bool | str = _option(
        True,
        'Try how often features that do not matter are called on this table; in Python also "full": with more trials, '
        "and remedies are tried too.",
        names=("full",),
        faces=("selector", *SELECTION),
    )
    # P^X
    feature_model: str = _option(
        "auto",
        "P^X, the model of the features: auto (any table), gaussian, mixture, naive-bayes, hmm, lda, network, "
        "fastphase, genotypes, fixed (nothing is assumed about the features, but a linear target), or a network's .bif "
        "file.",
        choices=_names("features:FAMILIES"),
        endings=(".bif", ".bif.gz"),
        objects=True,
        faces=DATA,
    )
    feature_model_options: dict[str, Json] | None = _option(
        None,
        "Option of the feature model, for instance diagonal=mvr; repeatable.",
        flag="--feature-model-option",
        metavar="NAME=VALUE",
        faces=DATA,
    )
    groups: str | None = _option(
        None,
        "Columns that form one feature: auto, or a csv file with the header column,group.",
        metavar="FILE",
        faces=(*DATA, "ghost"),
    )
    knockoffs: str | None = _option(
        None,
        "Knockoffs made elsewhere: a table with the same columns.",
        metavar="FILE",
        faces=("selector", "select", "check"),
    )
    # a study that is known by its z-scores
    scores: str = _option("z", "Column of the z-scores, one row per feature.", metavar="COLUMN", faces=GHOST)
    names: str | None = _option(
        None, "Column of the feature names; by default the first text column.", metavar="COLUMN", faces=GHOST
    )
    correlation: str | None = _option(
        None,
        "Correlations of the features: .npy, or a table with their names in the header.",
        metavar="FILE",
        faces=GHOST,
    )
    n: float | None = _option(None, "Number of rows of the study behind the z-scores.", faces=GHOST)
    shrink: float = _option(0.0, "Shrinkage of the correlations to the identity, for a small panel.", faces=GHOST)
    penalty: float | None = _option(None, "Penalty of the lasso; by default 0.6 of what pure noise needs.", faces=GHOST)
    # the importance scores
    estimator: str | None = _option(
        None,
        "Model of the target: best (default: lasso or boosting, chosen by cross-validated loss), lasso, logistic, "
        "linear, ridge, forest, boosting or neural; tests take best, lasso and boosting.",
        choices=_names("defaults:BEST_NAMES", "response:ESTIMATORS"),
        objects=True,
        faces=MODEL,
    )
    importance: str | None = _option(
        None,
        "Importance score: coefficients, contribution, swap, permutation, swap-integral, permutation-integral, "
        "gradient or integrated-gradients.",
        choices=_names("importance:SCORES"),
        objects=True,
        faces=KNOCKOFFS,
    )
    importance_options: dict[str, Json] | None = _option(
        None,
        "Option of the importance score (loss, rows, n-folds, n-fits, rule), for instance loss=accuracy; repeatable.",
        flag="--importance-option",
        metavar="NAME=VALUE",
        faces=(*KNOCKOFFS, "ghost"),
    )
    # how it is run
    stream: str = _option(
        "auto",
        "Read the table in batches of rows: auto (if it does not fit into memory), always or never.",
        choices=_names("table.memory:STREAM"),
        faces=SELECTION,
    )
    sample_rows: int | None = _option(
        None,
        "Number of random rows on which P^X is fitted in batches; by default at most 100,000.",
        least=5,
        faces=SELECTION,
    )
    keep_knockoffs: str | None = _option(
        None,
        "Folder for the knockoffs of all rows as parquet, in batches.",
        metavar="FOLDER",
        recorded=False,
        faces=("select",),
    )
    seed: int = _option(
        0,
        "Random seed; the same seed gives the same answer.",
        least=0,
        parameter="random_state",
        objects=True,
        faces=(*DATA, "ghost"),
    )
    report: str | None = _option(
        None,
        "File for the report, one .html page that opens offline.",
        metavar="FILE",
        recorded=False,
        faces=SELECTION,
    )
    report_paths: bool = _option(
        False,
        "Add lambda paths to the report, which fits the model of the target once more.",
        recorded=False,
        faces=("select",),
    )
    jobs: int | None = _option(
        None,
        "Number of parallel jobs (-1: all cores); the answer does not depend on it.",
        parameter="n_jobs",
        recorded=False,
        faces=DATA,
    )
    verbose: bool = _option(False, "Show progress, as the commands always do.", recorded=False, faces=("selector",))

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Options:
        """Options from the parameters of a selection.json."""
        return cls(**{**parameters, **{name: tuple(parameters.get(name) or ()) for name in ("drop", "covariates")}})

    @property
    def target_columns(self) -> list[str]:
        """Columns of the target: one, or time, event and perhaps entry of a survival time."""
        event = (self.event or "").partition("=")[0]
        return [name for name in (self.target, self.time, event, self.entry) if name]

    def recorded(self, face: str) -> dict[str, Json]:
        """Options of a command on which the answer depends, as selection.json holds them."""
        values = {name: getattr(self, name) for name, option in options_of(face).items() if option.recorded}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def selector_arguments(self) -> dict[str, Any]:
        """Arguments of the selector, without those that come with the data: drop, knockoffs, verbose."""
        listed = options_of("selector").values()
        return {
            option.called: getattr(self, option.name)
            for option in listed
            if option.name not in ("drop", "knockoffs", "verbose")
        }


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option, as the faces see it; ``name`` is its field in ``Options`` and in selection.json."""

    name: str
    default: object
    kind: type  # str, int, float, bool, list, or dict for NAME=VALUE pairs
    help: str  # one sentence
    faces: tuple[str, ...]  # who has it: "selector", and the commands by name
    flag: str = ""  # on the command line, if it is not the name with dashes
    metavar: str | None = None  # what the command line calls the value
    choices: Callable[[], Iterable[str]] | None = None  # gives the names that are accepted
    names: tuple[str, ...] = ()  # that Python takes besides True and False
    endings: tuple[str, ...] = ()  # of files that are accepted besides
    least: int | None = None  # smallest whole number
    most: int | None = None  # largest one: beyond it a slip of the hand would take days, or all memory
    objects: bool = False  # whether Python takes objects besides names
    parameter: str = ""  # of the selector, if it is not the name
    required: bool = False  # whether a command needs it
    recorded: bool = True  # whether the answer depends on it, so that selection.json holds it

    @property
    def written(self) -> str:
        """Flag on the command line.

        >>> options_of("select")["sample_rows"].written
        '--sample-rows'
        """
        return self.flag or "--" + self.name.replace("_", "-")

    @property
    def called(self) -> str:
        """Parameter of the selector.

        >>> options_of("selector")["seed"].called
        'random_state'
        """
        return self.parameter or self.name


Listed = type[Options] | type[ImportanceOptions]


def listed(source: Listed = Options) -> tuple[Option, ...]:
    """Options of ``Options`` or ``ImportanceOptions``, in their order."""
    kinds = {f.name: KINDS[re.split(r"\W", str(f.type))[0]] for f in fields(source)}
    return tuple(Option(name=f.name, default=f.default, kind=kinds[f.name], **f.metadata) for f in fields(source))


def options_of(face: str, source: Listed = Options) -> dict[str, Option]:
    """Options that the selector or a command has, by name."""
    return {option.name: option for option in listed(source) if face in option.faces}


def check_arguments(given: Mapping[str, Any]) -> None:
    """Refuse arguments of the selector that cannot be used, before any work.

    >>> check_arguments({"kinds": ["ordinal"]})
    Traceback (most recent call last):
    knockoffs.errors.InputError: kinds=['ordinal']: expected a mapping, for instance {'name': value}, or None.
    """
    for option in options_of("selector").values():
        refuse_value(option, given.get(option.called), option.called)
    listed = [given.get(name) or () for name in ("covariates", "drop")]
    for name in set.intersection(*({names} if isinstance(names, str) else {*map(str, names)} for names in listed)):
        raise InputError(f"covariates: {name!r} is in drop too. Take it out of one of them.")
    importance_options(given.get("importance_options"))


def importance_options(
    given: Mapping[str, object] | None, face: str = "selector", argument: str = "importance_options"
) -> ImportanceOptions:
    """Options of the importance score with their defaults; unknown names and values are refused.

    >>> importance_options({"n-folds": 3}).n_folds
    3
    >>> importance_options({"rows": "held_ot"})
    Traceback (most recent call last):
    knockoffs.errors.InputError: importance_options: rows='held_ot' is not known. Did you mean 'held_out'? Known:
    'in_sample', 'held_out', 'cross_fitted'.
    """
    known: dict[str, Option] = options_of(face, ImportanceOptions)
    found: dict[str, Any] = {}
    for name, value in (given or {}).items():
        if key_of(name) not in known:
            raise unknown_option(argument, name, known)
        option = known[key_of(name)]
        refuse_value(option, value, f"{argument}: {option.name}")
        found[option.name] = option.default if value is None else value
    return ImportanceOptions(**found)


def refuse_value(option: Option, value: object, called: str) -> None:
    """Refuse a value of another type, an unknown name or a number that is too small; None stands for the default."""
    if value is None:
        return
    wanted = _wanted(option, value)
    if wanted:
        raise InputError(f"{called}={value!r}: expected {wanted}.")
    if option.choices is not None and isinstance(value, str):
        choices = list(option.choices())
        if key_of(value) not in choices and not (option.endings and value.lower().endswith(option.endings)):
            raise unknown_option(called, value, choices)


def _wanted(option: Option, value: object) -> str:
    """Words for what was expected, if the value is of another type."""
    whole = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    if option.objects and not isinstance(value, str):
        return ""
    if option.kind is dict and not isinstance(value, Mapping):
        return "a mapping, for instance {'name': value}, or None"
    if option.kind is bool and type(value).__name__ not in ("bool", "bool_") and value not in option.names:
        return "True or False" + "".join(f" or {name!r}" for name in option.names)
    if option.kind is list and (isinstance(value, bytes) or not isinstance(value, Iterable)):
        return "names of columns, or None"
    if option.choices is not None and not isinstance(value, str):
        return f"one of {', '.join(map(repr, option.choices()))}"
    if option.name == "jobs":
        return _wanted_jobs(whole)
    if option.least is not None and (whole is None or whole < option.least):
        return f"a whole number of at least {option.least}"
    if option.most is not None and (whole is None or whole > option.most):
        return f"a whole number of at most {option.most}"
    return ""


def _wanted_jobs(jobs: int | None, per_core: int = 8) -> str:
    """Words for what was expected, if these parallel jobs cannot be: on this machine ``per_core`` at most."""
    from joblib import cpu_count
    from joblib.parallel import get_active_backend

    if not jobs:
        return "a whole number that is not 0 (-1 stands for all cores), or None"
    most = max(per_core * cpu_count(), get_active_backend()[0].effective_n_jobs(-1))  # a cluster may have more
    return f"at most {most} jobs (-1 stands for all cores), or None" if jobs > most else ""
