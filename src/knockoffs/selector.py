"""KnockoffSelector: the procedure as a scikit-learn feature selector."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from knockoffs.errors import unknown_option
from knockoffs.report.display import Shown

if TYPE_CHECKING:  # the class stands without them: what a fit needs is imported by the fit
    from knockoffs.diagnostics.verdict import Verdict
    from knockoffs.selection import Selection
    from knockoffs.table.table import Table
    from knockoffs.table.target import Target
    from knockoffs.table.types import Kinds


class KnockoffSelector(Shown, SelectorMixin, BaseEstimator):
    """Select the features that matter given all the others, and control the false discovery rate.

    There are two models. ``feature_model`` is P^X, the distribution of the features, on which the guarantee rests.
    ``estimator`` models y; nothing is assumed about it, and a better one finds more.

    Parameters
    ----------
    fdr : float, optional
        Target false discovery rate, 0.1 by default. Knockoffs select at least 1/fdr features or none. If there are
        fewer features than that, ``method="conditional_test"`` (which "auto" takes) and ``level="post_hoc"`` can still
        select. A level that can never select is an error, or a warning if it is the default.
    feature_model : str, fitted P^X, BayesianNetwork, callable or array, shape (n_columns, n_columns)
        P^X: "auto" (any table: a latent Gaussian model with its own margin for every column); the name of another
        family ("gaussian", "mixture", "naive_bayes", "hmm", "lda", "network", "fastphase", "genotypes"); the .bif file
        of a Bayesian network; a fitted model; a network; a function that fits one; or a covariance matrix, for Gaussian
        features.
        "fixed" assumes nothing about the features, and that y is linear in them with Gaussian noise.
    feature_model_options : dict, optional
        Options of the family's fit, for instance ``{"n_components": 3, "diagonal": "mvr"}``.
    kinds : dict of column names to kinds, optional
        Overrides the detected kind of a column: "continuous", "count", "ordinal", "binary", "nominal", or a list of
        its labels in their order.
    estimator : str or scikit-learn-style estimator, optional
        Model of y given the features and their knockoffs: "best" (default: lasso or boosting, chosen by cross-validated
        loss), "lasso", "logistic", "linear", "ridge", "forest", "boosting" or "neural"; or an object with fit and
        predict.
    importance : str or callable, optional
        Importance score of a fitted model; by default the coefficients of a linear model, Swap Integral for trees, and
        Swap for others.
    importance_options : dict, optional
        Options of the score: "loss" (a name or a function; by default log-loss or squared error), "rows" (the rows that
        are scored: "in_sample", "held_out" or "cross_fitted"), "n_folds" (5), "n_fits" (1; the scores of
        several fits are averaged) and "rule" (W from Z and Z_tilde: "difference", "signed_maximum" or a function).
    task : {"regression", "classification", "count", "ordinal", "survival"}, optional
        Type of y, if it cannot be inferred from y or from the estimator.
    knockoffs : array or data frame, shape (n, n_columns), optional
        Knockoffs made elsewhere; ``feature_model`` is then not used.
    groups : "auto", dict, list or array, optional
        Columns that form one feature: a dict from column to group or from group to columns, a group for each column, or
        "auto" for near-duplicate columns. Or a tree of columns: dicts in a dict, or lists in a list.
    drop : sequence of str
        Columns to leave out.
    covariates : sequence of str
        Columns to condition on: part of P^X and of the model of y, never tested. A feature is then judged given the
        covariates and all other features. ``transform`` keeps them beside the selected features.
    clusters : str or array-like, shape (n,), optional
        Rows that belong together, such as those of one patient: a column of X, which is then not a feature, or one
        label per row. Each of ``n_draws`` draws uses one row of each cluster.
    order : str or array-like, shape (n,), optional
        Order of dependent rows in time: a column of X, which is then not a feature, or one date or number per row.
        Each of ``n_draws`` draws uses rows so far apart that they are nearly independent.
    environments : str or array-like, shape (n,), optional
        Independent studies or sites: a column of X, which is then not a feature, or one label per row. Each has its own
        P^X, knockoffs and scores, and discoveries hold in all of them, or in ``min_environments``.
    min_environments : int, optional
        In how many environments a discovery must hold.
    dependent : {"auto", "refuse", "drop"}
        Columns that others determine exactly: duplicates (also in other units or under other labels), sums, a full set
        of indicators. "drop" leaves out as few as possible and warns; "refuse" raises if P^X cannot hold them; "auto"
        drops for the feature model "auto" and refuses for others. For the feature model "auto", columns that others
        determine by another function, or nearly (squares, ratios, products, bins), are dropped too.
    method : {"auto", "knockoffs", "conditional_test"}
        "conditional_test" gives every feature a p-value by resampling it from P^X given the others. "auto" tests when
        there are fewer than 8/fdr features (2/fdr with more than 10,000 rows, with more than 1.6e7 rows times squared
        features, or in batches).
    resolution : {"auto", "columns"}
        "auto" finds single features, and groups if the data do not show which feature matters: ``discoveries_``. Tests:
        the chance that any discovery is false is at most ``fdr``. Knockoffs: the false discovery rate of discoveries is
        at most ``fdr``; groups are looked at if some columns are near-duplicates (average |correlation| of at least
        0.8), or if ``groups`` is a tree. "columns" judges each feature alone and controls the false discovery rate.
    n_draws : int
        Number of knockoff draws, combined by e-values; with several, the answer depends less on the seed.
    n_knockoffs : int
        Knockoffs per feature in a draw, all of which the feature must beat. Several need a linear ``estimator`` and the
        P^X "auto", "gaussian", "mixture", "naive_bayes", a covariance, or a network whose hidden nodes stay.
    level : {"fixed", "post_hoc"}
        "post_hoc" chooses the level after looking: if nothing is found at ``fdr``, it reports the smallest level that
        finds something. The guarantee is then E[FDP / reported level] <= 1.
    verdict : bool or "full"
        Whether to try how often features that do not matter are called on this table. "full" takes four times as many
        trials, and where the word is not good it tries two or three remedies, each as long as a fit.
    offset : {1, 0}
        1 is knockoff+, which controls the false discovery rate; 0 is knockoff, which controls a modified one.
    random_state : None, int, Generator, SeedSequence or RandomState
        Source of all randomness. The seed is fixed by default, so the same table gives the same answer; None is fresh
        entropy. NumPy's global state is never used.
    n_jobs : int, optional
        Number of parallel jobs. The answer does not depend on it.
    verbose : bool
        Whether to show progress on standard error: a bar on a terminal, a line every half minute elsewhere.

    Attributes
    ----------
    W_ : array, shape (n_features,)
        Feature statistics.
    threshold_ : float
        Features with W at least this are selected; infinity if no threshold controls the level.
    q_values_ : array, shape (n_features,)
        Smallest level at which each feature is selected. With ``discoveries_``, the level of the discovery that
        contains it, or of the finest group with it that was tested.
    ranking_ : array of int, shape (n_features,)
        Rank of each feature, 1 for the most certain.
    scores_ : Scores
        Importance of the features, Z, and of their knockoffs, Z_tilde.
    knockoffs_ : array or data frame, shape (n, n_columns)
        The knockoffs, in the format of X.
    p_values_ : array, shape (n_features,), or None
        p-values of the conditional tests.
    discoveries_ : tuple of Discovery, or None
        With resolution="auto", most certain first: a feature, or a group with one that matters. None if single features
        were judged alone.
        ``get_support`` marks the columns of all of them.
    feature_model_ : FeatureModel or None
        P^X; None if knockoffs were given.
    verdict_ : Verdict or None
        How often features that do not matter are called on this table: ``verdict_.word`` is "good", "doubtful" or
        "broken", ``verdict_.say()`` has the numbers.
    table_ : Table
        The table as it was read, with the names, kinds and labels of its columns.
    target_ : Target
        The target as it was read, with its type and the rows in which it is known.
    selection_ : Selection
        All of the above, with notes on what was chosen by default.
    generator_ : numpy.random.Generator
        The random generator as it was before the draw.
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
        importance_options: Mapping[str, object] | None = None,
        task: str | None = None,
        knockoffs: object = None,
        groups: object = None,
        drop: Sequence[str] = (),
        covariates: Sequence[str] = (),
        clusters: object = None,
        order: object = None,
        environments: object = None,
        min_environments: int | None = None,
        dependent: str = "auto",
        method: str = "auto",
        resolution: str = "auto",
        n_draws: int = 1,
        n_knockoffs: int = 1,
        level: str = "fixed",
        verdict: bool | str = True,
        offset: int = 1,
        random_state: object = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.fdr = fdr
        self.feature_model = feature_model
        self.feature_model_options = feature_model_options
        self.kinds = kinds
        self.estimator = estimator
        self.importance = importance
        self.importance_options = importance_options
        self.task = task
        self.knockoffs = knockoffs
        self.groups = groups
        self.drop = drop
        self.covariates = covariates
        self.clusters = clusters
        self.order = order
        self.environments = environments
        self.min_environments = min_environments
        self.dependent = dependent
        self.method = method
        self.resolution = resolution
        self.n_draws = n_draws
        self.n_knockoffs = n_knockoffs
        self.level = level
        self.verdict = verdict
        self.offset = offset
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: object, y: object, **fit_params: Any) -> Self:
        """Draw knockoffs of X, score features and knockoffs by a model of y, and select.

        Parameters
        ----------
        X : array or data frame, shape (n, n_columns)
        y : array-like, shape (n,)
            Numbers, or labels of classes. For a survival time: (time, event) or (time, event, entry), a data frame of
            these columns, or a structured array; the event is 1 where it was seen, 0 where the row is censored.
        **fit_params
            ``sample_weight``, array-like of shape (n,): weights of the rows in the model of y, to which it is passed on
            as scikit-learn's own selectors do. P^X and the knockoffs do not use it, so a row of weight two is not
            the same as the row twice: copies of a row get knockoffs of their own.
        """
        from knockoffs.defaults import count_of, plan_of, source_of, task_for
        from knockoffs.features.source import read_features
        from knockoffs.options import check_arguments
        from knockoffs.procedure import Data, run, run_environments
        from knockoffs.progress import showing
        from knockoffs.seeds import as_generator
        from knockoffs.table.dependent_rows import (
            gap_of,
            labels_of,
            places_in_blocks,
            split_environments,
            take_clusters,
            take_order,
        )
        from knockoffs.table.frames import refuse_dask
        from knockoffs.table.memory import check_memory
        from knockoffs.table.table import MIN_ROWS, names_of, without_columns
        from knockoffs.table.target import as_target

        options = self.options()
        with self.fitting():
            for name in fit_params:
                if name != "sample_weight":
                    raise unknown_option("fit parameter", name, ["sample_weight"])
            check_arguments(options)
            refuse_dask(X)
            source = source_of(options)
            clusters, features = take_clusters(options["clusters"], without_columns(X, options["drop"]))
            order, features = take_order(options["order"], features, clusters)
            labels, features = labels_of(options["environments"], features, "environments")
            table, notes = read_features(
                source,
                features,
                **{name: options[name] for name in ("kinds", "groups", "covariates", "dependent")},
                min_rows=MIN_ROWS,
            )
            task = task_for(options["task"], options["estimator"])
            target = as_target(y, table, task=task, weights=fit_params.get("sample_weight"), min_rows=MIN_ROWS)
            remedy = "write the table as parquet and use knockoffs.fit_streamed, or take fewer rows."
            check_memory(len(table), len(table.columns) * (count_of(options, "n_knockoffs") + 1) // 2, remedy)
            generator = as_generator(options["random_state"])
            n_draws, gap = count_of(options, "n_draws"), 1
            if order is not None:
                gap = gap_of(table, target, order)
                clusters = places_in_blocks(order, gap)
            data = Data(table, target, clusters=clusters, spaced=order is not None)
            seen = target
            if clusters is not None:
                seen = data.one_row_each(deepcopy(generator).spawn(1)[0]).target
                said = f"one row of each of {len(seen)} clusters, drawn at random"
                if order is not None:
                    said = f"one row in {gap}, {len(seen)} rows, from a start drawn at random"
                notes["clusters" if order is None else "order"] = f"{n_draws} times {said}"
            sites = None
            if labels is not None:
                sites, at_least = split_environments(labels, target, options["min_environments"])
                notes["environments"] = f"discoveries hold in at least {at_least} of {len(sites)} environments"
            plan = plan_of(options, source, table, seen, notes, n_rows=len(seen))
            self._check_names(X, reset=True)
            self.generator_ = deepcopy(generator)  # as it was: lambda paths follow the same draw
            with showing(bool(options["verbose"])):
                if sites is None:
                    selection = run(plan, data, rng=generator, n_jobs=options["n_jobs"])
                else:
                    selection = run_environments(plan, data, sites, at_least, rng=generator, n_jobs=options["n_jobs"])
            if options["verdict"] == "full" and selection.verdict is not None:
                from knockoffs.trials.remedies import try_remedies

                def judge(change: Mapping[str, object]) -> Verdict | None:
                    own = {"verdict": True, "verbose": False, "random_state": deepcopy(self.generator_)}
                    changed = KnockoffSelector(**{**options, **change, **own})
                    return changed.fit(X, y, **fit_params).verdict_

                selection = replace(selection, verdict=try_remedies(selection.verdict, table, options, judge))
            if selection.rows is not None:
                table, target = table.rows(selection.rows), target.at(selection.rows)
            return self.set_answer(selection, table, target, names_of(X))

    def options(self) -> dict[str, Any]:
        """Parameters of this class; a subclass with an ``__init__`` of its own may set some and leave the others."""
        return {name: getattr(self, name) for name in vars(KnockoffSelector())}

    @contextmanager
    def fitting(self) -> Iterator[None]:
        """Fit inside, from an unfitted selector; if that fails, the selector is left unfitted."""
        from knockoffs.errors import interrupts
        from knockoffs.machine.parallel import one_blas_thread

        self._forget()
        try:
            # underflow is meant: the caller's np.seterr(all="raise") is for the caller's code
            with (
                interrupts(),
                one_blas_thread(),
                np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"),
            ):
                yield
        except BaseException:
            self._forget()
            raise

    def _forget(self) -> None:
        """Remove the attributes of an earlier fit."""
        for name in [name for name in vars(self) if name == "_support" or (name.endswith("_") and name[0] != "_")]:
            delattr(self, name)

    def set_answer(self, selection: Selection, table: Table, target: Target, names: Sequence[str]) -> Self:
        """Set the attributes of a fitted selector from a selection; ``names`` are those of the columns as they came."""
        from knockoffs.table.table import columns_of

        self.selection_, self.table_, self.target_ = selection, table, target
        self.W_ = selection.W
        self.threshold_ = selection.threshold
        self.q_values_ = selection.q_values
        self.p_values_ = selection.p_values
        self.discoveries_ = selection.discoveries
        self.ranking_ = selection.ranking
        self.scores_ = selection.scores
        self.feature_model_ = selection.feature_model
        self.verdict_ = selection.verdict
        self.knockoffs_ = table.decode(selection.X_tilde)
        self._support = columns_of(selection.selected, table, names)
        return self

    def transform(self, X: Any) -> Any:
        """Return the selected columns as an array, or as the frame that ``set_output`` asks for, with their dtypes."""
        from knockoffs.table.frames import array_of, as_polars, is_frame, keep_columns, open_frame

        if not is_frame(X):
            return super().transform(X)
        mask = self.get_support()
        self._check_names(X, reset=False)
        if not mask.any():
            return self._transform(np.empty((len(X), len(mask))))  # which warns
        frame = open_frame(keep_columns(X, mask))
        asked = {"transform": get_config()["transform_output"], **getattr(self, "_sklearn_output_config", {})}
        if asked["transform"] == "default":
            return array_of(frame)
        return frame.to_pandas() if asked["transform"] == "pandas" else as_polars(frame)

    def _check_names(self, X: Any, *, reset: bool) -> None:
        """Keep the number and the names of the columns, or compare with those that were kept."""
        with warnings.catch_warnings():  # scikit-learn 1.8 asks in a way that polars has deprecated
            warnings.filterwarnings("ignore", "Support for the dataframe interchange", DeprecationWarning)
            validate_data(self, X, reset=reset, skip_check_array=True)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self._support

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

        options = self.options()
        feature_model = options["feature_model"]
        if options["knockoffs"] is not None:
            return False
        if isinstance(feature_model, str):
            family = FAMILIES.get(key_of(feature_model))
            return family is not None and "missing" in family.takes
        fits = callable(feature_model) and "missing" in family_of(feature_model).takes
        return fits or fills_cells(feature_model)


for _name, _default in vars(KnockoffSelector()).items():  # what a subclass leaves is found in the class
    setattr(KnockoffSelector, _name, _default)
