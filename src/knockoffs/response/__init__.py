"""Y given [X, X_tilde]: models of the target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from numpy.random import Generator

from knockoffs.errors import InputError
from knockoffs.registry import find, imported
from knockoffs.response.clone import Estimator


@dataclass(frozen=True)
class Model:
    """A model of y that has a name.

    Parameters
    ----------
    make : str or callable
        "module:factory", imported when first used; called with (task, random_state=, n_jobs=).
    offers : tuple of str
        What scores may ask it for: "coefficients", "gradient".
    score : str
        Its importance score, a name of ``SCORES``, where none is asked for.
    rows : str
        On which rows it is scored by default: unseen ones for models that remember the rows they were fitted on.
    package : str, optional
        Of an extra, without which it cannot be made.
    """

    make: str | Callable[..., object]
    offers: tuple[str, ...] = ()
    score: str = "swap"
    rows: str = "cross_fitted"
    package: str | None = None


def linear_model(make: str | Callable[..., object]) -> Model:
    """Linear model, scored by its coefficients."""
    return Model(make, ("coefficients", "gradient"), "coefficients", "in_sample")


ESTIMATORS: dict[str, Model] = {
    "lasso": linear_model("knockoffs.response.linear:make_lasso"),
    "logistic": linear_model("knockoffs.response.plain:make_logistic"),
    "linear": linear_model("knockoffs.response.plain:make_linear"),
    # its columns say nearly the same, else a lasso would do: what they add together is what counts
    "ridge": Model("knockoffs.response.plain:make_ridge", ("coefficients", "gradient"), "contribution", "in_sample"),
    "forest": Model("knockoffs.response.trees:make_forest", score="swap_integral"),
    "boosting": Model("knockoffs.response.trees:make_boosting", score="swap_integral"),
    # a network stops early: scored by log-loss in sample it finds as much as cross-fitted, in one fit
    "neural": Model("knockoffs.response.neural:make_neural", offers=("gradient",), rows="in_sample", package="torch"),
}
SURVIVAL_MODELS = ("lasso", "boosting")  # by name; others take signed times and predict a log-hazard


def make_estimator(
    name: str, task: str, *, random_state: int | Generator | None = None, n_jobs: int | None = None
) -> Estimator:
    """Unfitted model of y under a name of ``ESTIMATORS``.

    The task is "classification" ("binary", "multiclass"), "regression" ("numeric"), "count" or "survival".

    >>> make_estimator("lasso", "binary")
    LogisticPathCV()
    """
    if task == "survival" and name in ESTIMATORS and name not in SURVIVAL_MODELS:
        raise InputError(f"estimator={name!r} has no version for survival times: use 'best', 'lasso' or 'boosting'.")
    return imported(find(ESTIMATORS, "estimator", name).make)(task, random_state=random_state, n_jobs=n_jobs)


def model_of(estimator: object) -> Model:
    """Model that describes an unfitted estimator without a name.

    Linear models of scikit-learn and of this package, tree ensembles whose integrals are exact, networks of this
    package; of any other only that it predicts.
    """
    from knockoffs.response.tree_arrays import has_trees

    if _is_linear(estimator):
        return linear_model(type(estimator))
    if has_trees(estimator):
        return Model(type(estimator), score="swap_integral")
    offers = ("gradient",) if hasattr(estimator, "gradient") else ()
    if hasattr(estimator, "split_first_layer"):
        return Model(type(estimator), offers, rows="in_sample")
    return Model(type(estimator), offers)


def _is_linear(estimator: object) -> bool:
    """Whether it is a linear model of this package or of scikit-learn, or made from one."""
    from sklearn import linear_model as theirs

    from knockoffs.response.linear import LinearClassifier, LinearRegressor, PenaltyPath

    return isinstance(estimator, LinearClassifier | LinearRegressor | PenaltyPath) or any(
        getattr(theirs, kind.__name__, None) is kind for kind in type(estimator).__mro__
    )
