"""KnockoffSelector: the procedure as a scikit-learn feature selector."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from knockoffs.defaults import DEFAULT_FDR, choose
from knockoffs.errors import InputError, KnockoffWarning, unknown_option
from knockoffs.feature_choice import DEFAULT_FEATURE_MODEL, feature_model_for, load_feature_model, read_features
from knockoffs.filter import RULES, check_fdr, check_offset
from knockoffs.procedure import select_features
from knockoffs.sampling.swap import check_features
from knockoffs.table.table import MIN_ROWS, as_table, check_knockoffs, check_level
from knockoffs.table.target import check_target, check_weights


class KnockoffSelector(SelectorMixin, BaseEstimator):
    """Select the features that matter given all the others, with the false discovery rate held at the level asked for.

    Two slots: ``feature_model`` is P^X, on which the guarantee rests; ``estimator`` is the model of y, about which
    nothing is assumed and which only has to predict well.

    Parameters
    ----------
    fdr : float, optional
        Target false discovery rate, 0.1 if left out. A level at which knockoff+ can never select (below one over the
        number of features) is an error; where it is only the default that is too small, a warning.
    feature_model : str, fitted P^X, BayesianNetwork, callable or array, shape (n_columns, n_columns)
        P^X: the name of a family that is fitted to X ("gaussian", "mixture", "naive_bayes", "hmm", "lda", "network",
        "fastphase"), the .bif file of a Bayesian network, a fitted one, a network, a function
        that fits one, or a covariance, which makes the features Gaussian around their means.
    feature_model_options : dict, optional
        Options of the fit of a family, for instance ``{"n_components": 3, "diagonal": "mvr"}``.
    estimator : str or scikit-learn-style estimator, optional
        Model of y given the features and their knockoffs: "best" (the default) is lasso or boosting, whichever predicts
        held-out rows better; "lasso", "logistic", "linear", "forest", "boosting", "neural"; or any object with fit and
        predict.
    importance : str or callable, optional
        Importance score of a fitted model; by default the coefficients of a linear model, Swap Integral for trees, and
        Swap for others.
    loss : str or callable, optional
        What the scores that fake a column measure, by default log-loss or squared error.
    evaluation : str, optional
        On which rows a fitted model is scored: in sample, or rows that it has not seen.
    n_folds, n_fits : int
        Folds of a cross-fitted evaluation, and fits whose scores are averaged.
    task : {"regression", "classification"}, optional
        What y is, where it cannot be told from y or from the estimator.
    knockoffs : array or data frame, shape (n, n_columns), optional
        Knockoffs drawn elsewhere; ``feature_model`` is then not used.
    feature_of : array of int, shape (n_columns,), optional
        The feature that owns each column, where a feature has several. The selection is of whole features.
    offset : {1, 0}
        1 is knockoff+, which controls the false discovery rate; 0 is knockoff, which controls a modified one.
    rule : {"difference", "signed_maximum"} or callable
        W from Z and Z_tilde.
    random_state : None, int, Generator, SeedSequence or RandomState
        Everything random is drawn from it. NumPy's global state is never used: None is fresh entropy.
    n_jobs : int, optional
        Jobs at a time. The answer does not depend on it.

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
    feature_model_ : FeatureModel or None
        P^X; None if the knockoffs were brought along.
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
    >>> selector.W_.shape
    (10,)
    """

    def __init__(
        self,
        fdr: float | None = None,
        *,
        feature_model: Any = DEFAULT_FEATURE_MODEL,
        feature_model_options: Mapping[str, Any] | None = None,
        estimator: Any = None,
        importance: Any = None,
        loss: Any = None,
        evaluation: str | None = None,
        n_folds: int = 5,
        n_fits: int = 1,
        task: str | None = None,
        knockoffs: Any = None,
        feature_of: ArrayLike | None = None,
        offset: int = 1,
        rule: Any = "difference",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.fdr = fdr
        self.feature_model = feature_model
        self.feature_model_options = feature_model_options
        self.estimator = estimator
        self.importance = importance
        self.loss = loss
        self.evaluation = evaluation
        self.n_folds = n_folds
        self.n_fits = n_fits
        self.task = task
        self.knockoffs = knockoffs
        self.feature_of = feature_of
        self.offset = offset
        self.rule = rule
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
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
        for name in fit_params:
            if name != "sample_weight":
                raise unknown_option("fit parameter", name, ["sample_weight"])
        offset, rule = check_offset(self.offset), _rule(self.rule)
        fdr = check_fdr(DEFAULT_FDR if self.fdr is None else self.fdr)
        n_folds, n_fits = _count(self.n_folds, "n_folds", 2), _count(self.n_fits, "n_fits", 1)
        rng = as_generator(self.random_state)
        if self.knockoffs is None:
            family = load_feature_model(self.feature_model)
            table = read_features(X, family, min_rows=MIN_ROWS)
        else:  # any table that comes with its knockoffs will do
            table = as_table(X, labels=True, min_rows=MIN_ROWS)
        target = check_target(y, table)
        weights = check_weights(fit_params.get("sample_weight"), len(target))
        owners = check_features(self.feature_of, len(table.columns))
        self._check_level(fdr, int(owners.max()) + 1, offset)
        X_tilde = None if self.knockoffs is None else check_knockoffs(self.knockoffs, table)
        choice = choose(
            target,
            estimator=self.estimator,
            importance=self.importance,
            loss=self.loss,
            evaluation=self.evaluation,
            task=self.task,
            sample_weight=weights,
        )
        grouped = None if self.feature_of is None else owners
        feature_model, brought = None, {}
        if X_tilde is not None:
            brought["knockoffs"] = "the knockoffs were brought along: the guarantee rests on how they were drawn"
        else:
            feature_model = feature_model_for(family, table, self.feature_model_options, grouped)
        validate_data(self, X, skip_check_array=True)  # keeps the number and the names of the columns

        self.selection_ = select_features(
            table.X,
            target.astype(float) if choice.task == "regression" else target,
            feature_model=feature_model,
            estimator=choice.estimator,
            importance=choice.importance,
            fdr=fdr,
            offset=offset,
            rule=rule,
            knockoffs=X_tilde,
            feature_of=grouped,
            feature_names=feature_names(table.names, owners),
            evaluation=choice.evaluation,
            n_folds=n_folds,
            n_fits=n_fits,
            sample_weight=weights,
            notes=choice.notes | brought,
            rng=rng,
            n_jobs=self.n_jobs,
        )
        self.W_ = self.selection_.W
        self.threshold_ = self.selection_.threshold
        self.q_values_ = self.selection_.q_values
        self.scores_ = self.selection_.scores
        self.feature_model_ = self.selection_.feature_model
        self.knockoffs_ = table.decode(self.selection_.X_tilde)
        self._support = self.selection_.selected[owners]
        return self

    def explain(self) -> str:
        """Say in one paragraph what was selected and what it means, or why nothing was and what would help."""
        check_is_fitted(self)
        return self.selection_.explain()

    def _check_level(self, fdr: float, n_features: int, offset: int) -> None:
        try:
            check_level(fdr, n_features, offset)
        except InputError as error:
            if self.fdr is not None:
                raise
            warnings.warn(str(error), KnockoffWarning, stacklevel=3)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self._support

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def as_generator(random_state: Any) -> np.random.Generator:
    """Make a Generator of whatever stands for randomness; the only place where seeds become one.

    A Generator is used as it is, so that it moves on; an int or a SeedSequence gives the same numbers every time.

    >>> as_generator(3).integers(100) == as_generator(np.random.SeedSequence(3)).integers(100)
    np.True_
    """
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, bool | np.bool_):
        raise InputError(f"random_state={random_state} is not a seed: use an int, or None for fresh entropy.")
    if isinstance(random_state, int | np.integer):
        if random_state < 0:
            raise InputError(f"random_state={random_state} is negative: a seed is a non-negative int.")
        return np.random.default_rng(int(random_state))
    if isinstance(random_state, np.random.SeedSequence):
        # a fresh copy: spawning from the one passed in would change the next answer
        seed, key, size = random_state.entropy, random_state.spawn_key, random_state.pool_size
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key, pool_size=size))
    if isinstance(random_state, np.random.Generator):
        can_spawn = isinstance(random_state.bit_generator.seed_seq, np.random.bit_generator.ISpawnableSeedSequence)
        return random_state if can_spawn else np.random.default_rng(random_state.integers(2**32, size=4))
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    raise InputError(
        f"random_state={random_state!r} ({type(random_state).__name__}): "
        "use None, an int, a Generator, a SeedSequence or a RandomState."
    )


def feature_names(column_names: tuple[str, ...], owners: NDArray[np.intp]) -> list[str]:
    """Name of each feature: its column's, or those of its columns together.

    >>> feature_names(("red", "green", "size"), np.array([0, 0, 1]))
    ['red, green', 'size']
    """
    members: list[list[str]] = [[] for _ in range(int(owners.max()) + 1)]
    for name, owner in zip(column_names, owners, strict=True):
        members[owner].append(name)
    return [", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") for names in members]


def _rule(rule: Any) -> Any:
    if callable(rule):
        return rule
    key = str(rule).replace("-", "_")
    if key not in RULES:
        raise unknown_option("rule", rule, RULES)
    return RULES[key]


def _count(value: Any, argument: str, smallest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < smallest:
        raise InputError(f"{argument}={value!r}: expected a whole number of at least {smallest}.")
    return int(value)
