"""KnockoffSelector: the procedure as a scikit-learn feature selector."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from knockoffs.errors import InputError, KnockoffWarning, unknown_option
from knockoffs.report.display import Shown

if TYPE_CHECKING:  # the class stands without them: what a fit needs is imported by the fit
    from knockoffs.defaults import Choice
    from knockoffs.features.source import KnockoffSource
    from knockoffs.procedure import ErrorControl, Rule
    from knockoffs.selection import Selection
    from knockoffs.table.table import Table
    from knockoffs.table.target import Target
    from knockoffs.table.types import Kinds


@dataclass(frozen=True)
class Plan:
    """What will be done, settled before the work; ``notes`` say what was chosen by default."""

    choice: Choice
    method: str
    rule: Rule
    promise: ErrorControl
    notes: dict[str, str]


class KnockoffSelector(Shown, SelectorMixin, BaseEstimator):
    """Select the features that matter given all the others, with the false discovery rate held at the level asked for.

    Two slots: ``feature_model`` is P^X, on which the guarantee rests; ``estimator`` is the model of y, about which
    nothing is assumed and which only has to predict well.

    Parameters
    ----------
    fdr : float, optional
        Target false discovery rate, 0.1 if left out. A level at which knockoff+ can never select (below one over the
        number of features) is an error; where it is only the default that is too small, a warning.
    feature_model : str, fitted P^X, BayesianNetwork, callable or array, shape (n_columns, n_columns)
        P^X: "auto" (the default, any table: a latent Gaussian model with a margin of its own for every column), or the
        name of another family that is fitted to X ("gaussian", "mixture", "naive_bayes", "hmm", "lda", "network",
        "fastphase"), the .bif file of a Bayesian network, a fitted one, a network, a function
        that fits one, or a covariance, which makes the features Gaussian around their means.
    feature_model_options : dict, optional
        Options of the fit of a family, for instance ``{"n_components": 3, "diagonal": "mvr"}``.
    kinds : mapping of column names to kinds, optional
        Overrules what a column is taken for: "continuous", "count", "ordinal", "binary", "nominal", or a list of its
        labels in their order.
    estimator : str or scikit-learn-style estimator, optional
        Model of y given the features and their knockoffs: "best" (the default) is lasso or boosting, whichever predicts
        held-out rows better, and both where that is boosting and the lasso is nearly as good; "lasso", "logistic",
        "linear", "ridge", "forest", "boosting", "neural"; or any object with fit and predict.
    importance : str or callable, optional
        Importance score of a fitted model; by default the coefficients of a linear model, Swap Integral for trees, and
        Swap for others.
    loss : str or callable, optional
        What the scores that fake a column measure, by default log-loss or squared error.
    rows : str, optional
        On which rows a fitted model is scored: in sample, or rows that it has not seen.
    n_folds, n_fits : int
        Folds of a cross-fitted score, and fits whose scores are averaged.
    task : {"regression", "classification"}, optional
        What y is, where it cannot be told from y or from the estimator.
    knockoffs : array or data frame, shape (n, n_columns), optional
        Knockoffs drawn elsewhere; ``feature_model`` is then not used.
    groups : "auto", mapping, list or array, optional
        Columns that are one feature, swapped and selected together: a mapping from column to group or from group to
        columns, a group for each column, or "auto" for columns that say nearly the same.
    representatives : bool
        Whether the knockoffs of groups are made through representatives, columns of each group chosen without y: all
        its links to other groups are taken to go through them. For many columns, and groups that the others nearly
        determine; for P^X "auto", "gaussian", "mixture" or a covariance.
    drop : list of str, optional
        Columns to leave out.
    dependent : {"auto", "refuse", "drop"}
        Columns that others determine exactly: duplicates, also in other units, on another scale or under other labels,
        sums, a full set of indicators. "drop" leaves a smallest set of them out and says so; "refuse" is an error that
        names it, where P^X cannot hold them; "auto" drops for P^X "auto" and refuses for the others.
    method : {"auto", "knockoffs", "conditional_test"}
        "conditional_test" gives every feature a p-value by drawing it anew from P^X given the others, and needs no
        smallest number of discoveries; "auto" takes it where a table has fewer than 4 / fdr features, or,
        of more than 10,000 rows, of which tests use a sample, or of more than 60 features, fewer than 2 / fdr; a table
        in batches counts as such.
    n_draws : int
        Draws of knockoffs, joined by their e-values: the answer depends less on the seed.
    n_knockoffs : int
        Knockoffs of every feature in a draw, all of which it must beat: with m of them 1 / (m fdr) discoveries are
        enough, where one asks for 1 / fdr. For levels that few discoveries cannot reach, few features and groups; 5 is
        usual. They lie nearer to the feature than a single one. For a linear ``estimator`` and P^X "auto", "gaussian",
        "mixture", "naive_bayes", a covariance, or any network whose hidden nodes stay.
    level : {"fixed", "post_hoc"}
        "post_hoc" chooses the level after looking: where nothing is found at ``fdr``, the smallest that finds
        something is stated. The promise is then E[FDP / stated level] <= 1.
    verdict : bool
        Whether the knockoffs are checked against the features, without a look at y.
    repair : bool
        Whether the remedies that the verdict names are done in turn, until the knockoffs look good: another kind for a
        column, normal scores, another family, more classes, a group of columns whose knockoffs are twins, fewer
        columns. y is not looked at, and the notes say what was done.
    offset : {1, 0}
        1 is knockoff+, which controls the false discovery rate; 0 is knockoff, which controls a modified one.
    rule : {"difference", "signed_maximum"} or callable
        W from Z and Z_tilde.
    random_state : None, int, Generator, SeedSequence or RandomState
        Everything random is drawn from it. NumPy's global state is never used: None is fresh entropy.
    n_jobs : int, optional
        Jobs at a time. The answer does not depend on it.
    if_empty : {"raise", "best", "empty"}
        What ``transform`` and ``get_support`` make of an empty selection, for the next step of a Pipeline: an error;
        the best feature (of the largest W, or the smallest p-value), of which nothing is promised; or no columns.
        ``selection_`` is the same in each case.
    verbose : bool
        Whether progress is shown on standard error: a bar on a terminal, a line every half minute elsewhere.

    Attributes
    ----------
    W_ : array, shape (n_features,)
        Feature statistics.
    threshold_ : float
        Features with W at least this are selected; infinity if no threshold holds the level.
    q_values_ : array, shape (n_features,)
        Smallest level at which each feature is selected.
    scores_ : Scores
        Importance of the features, Z, and of their knockoffs, Z_tilde.
    knockoffs_ : array or data frame, shape (n, n_columns)
        The draw, in the format in which X came.
    p_values_ : array, shape (n_features,), or None
        Of the conditional tests.
    feature_model_ : FeatureModel or None
        P^X; None if the knockoffs were brought along.
    verdict_ : Verdict or None
        Whether the knockoffs could be told from the features: ``verdict_.word`` is "good", "doubtful" or "broken".
    table_ : Table
        The table as it was read: names, kinds and labels of its columns.
    target_ : Target
        The target as it was read: what it is, and the rows in which it is known.
    selection_ : Selection
        All of the above, with notes on what was chosen by default.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X has names.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> selector = KnockoffSelector(fdr=0.2, feature_model="gaussian", random_state=0).fit(X, y)
    >>> selector.selection_.method, selector.p_values_.shape  # ten columns are few for knockoffs at this level
    ('conditional_test', (10,))
    """

    __metadata_request__fit: ClassVar = {"sample_weight": None}  # set_fit_request, though fit names no weights

    def __init__(
        self,
        fdr: float | None = None,
        *,
        feature_model: object = "auto",
        feature_model_options: Mapping[str, object] | None = None,
        kinds: Kinds = None,
        estimator: object = None,
        importance: object = None,
        loss: object = None,
        rows: str | None = None,
        n_folds: int = 5,
        n_fits: int = 1,
        task: str | None = None,
        knockoffs: object = None,
        groups: object = None,
        representatives: bool = False,
        drop: Sequence[str] | None = None,
        dependent: str = "auto",
        method: str = "auto",
        n_draws: int = 1,
        n_knockoffs: int = 1,
        level: str = "fixed",
        verdict: bool = True,
        repair: bool = False,
        offset: int = 1,
        rule: object = "difference",
        random_state: object = None,
        n_jobs: int | None = None,
        if_empty: str = "raise",
        verbose: bool = False,
    ) -> None:
        self.fdr = fdr
        self.feature_model = feature_model
        self.feature_model_options = feature_model_options
        self.kinds = kinds
        self.estimator = estimator
        self.importance = importance
        self.loss = loss
        self.rows = rows
        self.n_folds = n_folds
        self.n_fits = n_fits
        self.task = task
        self.knockoffs = knockoffs
        self.groups = groups
        self.representatives = representatives
        self.drop = drop
        self.dependent = dependent
        self.method = method
        self.n_draws = n_draws
        self.n_knockoffs = n_knockoffs
        self.level = level
        self.verdict = verdict
        self.repair = repair
        self.offset = offset
        self.rule = rule
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.if_empty = if_empty
        self.verbose = verbose

    def fit(self, X: object, y: object, **fit_params: Any) -> Self:
        """Draw knockoffs of X, score features and knockoffs by a model of y, and select.

        Parameters
        ----------
        X : array or data frame, shape (n, n_columns)
        y : array-like, shape (n,)
            Numbers, or labels of classes.
        **fit_params
            ``sample_weight``, array-like of shape (n,): weights of the rows in the model of y, to which it is passed on
            as scikit-learn's own selectors do. P^X and the knockoffs do not use it, so a row of weight two is not
            the same as the row twice: copies of a row get knockoffs of their own.
        """
        from knockoffs.defaults import task_for
        from knockoffs.features.source import read_features
        from knockoffs.options import check_arguments
        from knockoffs.procedure import select_from
        from knockoffs.progress import showing
        from knockoffs.seeds import as_generator
        from knockoffs.table.drop import names_of, without_columns
        from knockoffs.table.memory import check_memory
        from knockoffs.table.partitions import is_partitioned
        from knockoffs.table.table import MIN_ROWS
        from knockoffs.table.target import as_target

        for name in fit_params:
            if name != "sample_weight":
                raise unknown_option("fit parameter", name, ["sample_weight"])
        check_arguments(self.get_params(deep=False))
        if is_partitioned(X):
            raise InputError("X is a dask DataFrame: use knockoffs.fit_streamed(selector, X, name of the target).")
        source = self._source()
        table, notes = read_features(
            source,
            without_columns(X, self.drop),
            kinds=self.kinds,
            groups=self.groups,
            representatives=self.representatives,
            dependent=self.dependent,
            min_rows=MIN_ROWS,
        )
        task = task_for(self.task, self.estimator)
        target = as_target(y, table, task=task, weights=fit_params.get("sample_weight"), min_rows=MIN_ROWS)
        remedy = "write the table as parquet and use knockoffs.fit_streamed, or take fewer rows."
        n_knockoffs = _count(self.n_knockoffs, "n_knockoffs", 1)
        check_memory(len(table), len(table.columns) * (n_knockoffs + 1) // 2, remedy)
        generator = as_generator(self.random_state)
        table, source = self._repaired(table, source, generator)
        plan = self._plan(table, target, notes, len(target))
        validate_data(self, X, skip_check_array=True)  # keeps the number and the names of the columns

        self._generator = deepcopy(generator)  # as it was: lambda paths follow the same draw
        with showing(bool(self.verbose)):
            if plan.method == "conditional_test":
                selection = self._test(table, target, source, plan, generator)
            else:
                selection = select_from(
                    table,
                    target,
                    knockoffs=source,
                    statistic=plan.choice.statistic,
                    rule=plan.rule,
                    promise=plan.promise,
                    verdict=self.verdict,
                    notes=plan.notes | dict(plan.choice.notes),
                    rng=generator,
                    n_jobs=self.n_jobs,
                )
        return self._keep(selection, table, target, names_of(X))

    def _test(
        self, table: Table, target: Target, source: KnockoffSource, plan: Plan, generator: Generator
    ) -> Selection:
        """Select by conditional tests."""
        from knockoffs.procedure import run_tests

        return run_tests(
            table,
            target,
            knockoffs=source,
            estimator="best" if self.estimator is None else self.estimator,
            fdr=plan.promise.fdr,
            verdict=self.verdict,
            notes=plan.notes,
            rng=generator,
            n_jobs=self.n_jobs,
        )

    def _repaired(self, table: Table, source: KnockoffSource, generator: Generator) -> tuple[Table, KnockoffSource]:
        """Table and P^X after the remedies of a verdict, where they are asked for."""
        from knockoffs.defaults import repair_ways
        from knockoffs.diagnostics.repair import repair

        if not self.repair or self.knockoffs is not None:
            return table, source
        return repair(table, source, repair_ways(source), rng=generator.spawn(1)[0], n_jobs=self.n_jobs)

    def _plan(self, table: Table, target: Target, notes: Mapping[str, str], n_rows: int | None) -> Plan:
        """Settle what was not asked for, and check the rest, before the work; ``n_rows``: see ``few_for_knockoffs``."""
        from knockoffs.conditional_tests.choice import choose_method
        from knockoffs.defaults import DEFAULT_FDR, IF_EMPTY, choose
        from knockoffs.filter import RULES, check_fdr, check_offset
        from knockoffs.filter.e_values import WAYS
        from knockoffs.procedure import ErrorControl, check_antisymmetric, check_several
        from knockoffs.registry import find, key_of

        n_knockoffs = _count(self.n_knockoffs, "n_knockoffs", 1)
        offset, fdr = check_offset(self.offset), check_fdr(DEFAULT_FDR if self.fdr is None else self.fdr)
        choice = choose(
            target,
            estimator=self.estimator,
            importance=self.importance,
            loss=self.loss,
            rows=self.rows,
            n_folds=_count(self.n_folds, "n_folds", 2),
            n_fits=_count(self.n_fits, "n_fits", 1),
            n_columns=len(table.columns),
            grouped=table.grouped,
            n_knockoffs=n_knockoffs,
        )
        rule = self.rule if callable(self.rule) else find(RULES, "rule", str(self.rule))
        n_draws = _count(self.n_draws, "n_draws", 1)
        find(dict.fromkeys(WAYS), "level", str(self.level))
        find(dict.fromkeys(IF_EMPTY), "if_empty", str(self.if_empty))
        asked = self.get_params(deep=False)
        counts = {"n_draws": n_draws, "n_knockoffs": n_knockoffs}
        method, why = choose_method(asked, table, target, fdr=fdr, offset=offset, n_rows=n_rows, **counts)
        promise = ErrorControl(fdr, offset, n_draws, key_of(self.level), n_knockoffs)
        if method == "knockoffs":
            check_antisymmetric(rule)
            check_several(promise, rule)
        elif n_knockoffs > 1 and key_of(self.method) == "conditional_test":
            raise InputError(f"n_knockoffs={n_knockoffs}: conditional tests draw none. Use method='knockoffs'.")
        return Plan(choice, method, rule, promise, {"task": target.note, **why, **notes})

    def _keep(self, selection: Selection, table: Table, target: Target, names: Sequence[str]) -> Self:
        """Set the attributes of a fitted selector; ``names`` are those of the columns as they came."""
        from knockoffs.table.drop import columns_of

        self.selection_, self.table_, self.target_ = selection, table, target
        self.W_ = selection.W
        self.threshold_ = selection.threshold
        self.q_values_ = selection.q_values
        self.p_values_ = selection.p_values
        self.scores_ = selection.scores
        self.feature_model_ = selection.feature_model
        self.verdict_ = selection.verdict
        self.knockoffs_ = table.decode(selection.X_tilde)
        self._support = columns_of(selection.selected, table, names)
        surest = selection.surest_first[0]
        self._best = columns_of(np.arange(len(table.feature_names)) == surest, table, names)
        if not self._support.any() and self.if_empty == "best":
            warnings.warn(
                f"nothing is selected: the best feature, {table.feature_names[surest]!r}, is kept by transform "
                "(if_empty='best'), and nothing is promised of it.",
                KnockoffWarning,
                stacklevel=3,
            )
        return self

    def transform(self, X: object) -> Any:
        """Give the selected columns of X; what happens where nothing was selected is said by ``if_empty``."""
        if not self._get_support_mask().any():
            if self.if_empty != "empty":
                raise InputError(
                    "nothing is selected, so there is no column to pass on. if_empty='best' keeps the best feature (of "
                    "which nothing is promised), if_empty='empty' gives a table without columns. Why nothing is "
                    "selected: selector.explain()."
                )
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "No features were selected", UserWarning)  # it was asked for
                return super().transform(X)
        return super().transform(X)

    def _source(self) -> KnockoffSource:
        from knockoffs.features.source import GivenKnockoffs, knockoff_source

        if self.knockoffs is not None:
            default = self.feature_model is None or str(self.feature_model) == "auto"
            if not default or self.feature_model_options:
                raise InputError(
                    "knockoffs are used as they are: leave out feature_model and its options, or knockoffs."
                )
            if self.n_draws != 1:
                raise InputError(
                    f"n_draws={self.n_draws!r}: knockoffs that are brought along are one draw. Leave it out."
                )
            return GivenKnockoffs(self.knockoffs)
        return knockoff_source(self.feature_model, self.feature_model_options)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self._best if self.if_empty == "best" and not self._support.any() else self._support

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = self._takes_missing()
        # labels are taken too, but the tags "categorical" and "string" promise other things: codes alone, any object
        return tags

    def _takes_missing(self) -> bool:
        """Whether P^X takes missing cells."""
        from knockoffs.features import FAMILIES, family_of
        from knockoffs.features.source import fills_cells
        from knockoffs.registry import key_of

        if self.knockoffs is not None:
            return False
        if isinstance(self.feature_model, str):
            family = FAMILIES.get(key_of(self.feature_model))
            return family is not None and "missing" in family.takes
        fits = callable(self.feature_model) and "missing" in family_of(self.feature_model).takes
        return fits or fills_cells(self.feature_model)


def _count(value: object, argument: str, smallest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < smallest:
        raise InputError(f"{argument}={value!r}: expected a whole number of at least {smallest}.")
    return int(value)
