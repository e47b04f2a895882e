"""Knockoffs, or a test for every feature: which of the two is expected to find more, and which is possible."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from knockoffs.conditional_tests import MOST_TESTED
from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.filter import check_level
from knockoffs.registry import find, key_of
from knockoffs.table.table import Table
from knockoffs.table.target import Target

MOST_FEATURES = 60  # that are tested where knockoffs could do: a model of y for each of more takes minutes
FEW, FEW_IF_SAMPLED = 4.0, 2.0  # times 1 / fdr: of fewer features knockoffs must select a quarter, or half, or none
METHODS = ("auto", "knockoffs", "conditional_test")
CONDITIONAL_FAMILIES = ("auto", "latent", "gaussian", "mixture", "naive_bayes", "hmm", "network")
TEST_MODELS = ("best", "lasso", "boosting")  # models of y that conditional tests take by name
UNASKED = {"rows": None, "n_folds": 5, "n_fits": 1, "rule": "difference"}  # what W depends on, and no p-value


def choose_method(
    asked: Mapping[str, object],
    table: Table,
    target: Target,
    *,
    fdr: float,
    offset: int,
    n_draws: int,
    n_knockoffs: int = 1,
    n_rows: int | None,
) -> tuple[str, dict[str, str]]:
    """How features are selected: by tests where features are few for knockoffs at this level, and P^X allows it.

    Parameters
    ----------
    asked : mapping
        Parameters of the selector.
    table, target, fdr, offset, n_draws, n_knockoffs
        As they were read and checked.
    n_rows : int, optional
        Rows of y that knockoffs would use; none of a table in batches, of which ``target`` is a sample.

    Returns
    -------
    method : {"knockoffs", "conditional_test"}
    notes : dict
        Why, where it was not asked for.
    """
    find(dict.fromkeys(METHODS, True), "method", str(asked["method"]))
    method, d = key_of(str(asked["method"])), len(table.feature_names)
    if method == "conditional_test" and target.weights is not None:
        raise InputError("sample_weight: conditional tests take no weights. Leave them out, or method='knockoffs'.")
    model = asked["estimator"]
    if method == "conditional_test" and isinstance(model, str) and key_of(model) not in TEST_MODELS:
        known = ", ".join(map(repr, TEST_MODELS))
        raise InputError(
            f"estimator={model!r} is not one of conditional tests, which take {known} by name: use one of them, a "
            "model with fit and predict, or method='knockoffs'."
        )
    if method == "auto":
        of_W = any(asked[name] != value for name, value in UNASKED.items())  # which tests would not heed
        few = few_for_knockoffs(d, fdr, n_rows) and not (of_W and d * fdr >= FEW_IF_SAMPLED)
        one = n_draws == n_knockoffs == 1
        if few and offset == 1 and one and _can_test(asked, table, target):
            needed = int(np.ceil(1 / fdr - 1e-9))
            why = f"knockoffs select {needed} features or more at {fdr:g}, or none, and there are {d}"
            return "conditional_test", {"method": f"method='conditional_test', because {why}"}
        method = "knockoffs"
    if method == "knockoffs" and key_of(str(asked["level"])) == "fixed":
        try:
            check_level(fdr, d, offset, n_draws, n_knockoffs)
        except InputError as error:
            if asked["fdr"] is not None:
                raise
            warnings.warn(str(error), KnockoffWarning, stacklevel=3)
    return method, {}


def few_for_knockoffs(d: int, fdr: float, n_rows: int | None) -> bool:
    """Whether conditional tests are expected to find more than knockoffs, which select 1 / fdr features or none.

    They find more up to 4 / fdr features and beyond: a quarter of the features, or more, would have to stand out before
    knockoffs could name one. Of more than ``MOST_TESTED`` rows tests use a sample, and leave the others out; knockoffs
    use all, so that tests are taken only where half of the features, or more, would have to stand out. So it is with
    more than ``MOST_FEATURES``, at strict levels, where tests take long.

    Parameters
    ----------
    d : int
        Features.
    fdr : float
    n_rows : int or None
        Rows of y; None of a table that is read in batches, of which tests see a sample alone.

    Examples
    --------
    >>> few_for_knockoffs(39, 0.1, 10_000), few_for_knockoffs(40, 0.1, 10_000), few_for_knockoffs(39, 0.1, 10_001)
    (True, False, False)
    >>> few_for_knockoffs(19, 0.1, None), few_for_knockoffs(20, 0.1, None)
    (True, False)
    """
    large = n_rows is None or n_rows > MOST_TESTED or d > MOST_FEATURES
    return d * fdr < (FEW_IF_SAMPLED if large else FEW)


def _can_test(asked: Mapping[str, object], table: Table, target: Target) -> bool:
    """Whether P^X can draw a column given the others, and nothing was asked for that only knockoffs have."""
    if target.weights is not None or table.grouped or key_of(str(asked["level"])) != "fixed":
        return False
    if not all(asked[name] is None for name in ("knockoffs", "importance", "loss")):
        return False
    law, model = asked["feature_model"], asked["estimator"]
    named = isinstance(law, str) and key_of(law) in CONDITIONAL_FAMILIES
    return (not isinstance(model, str) or model in TEST_MODELS) and (named or hasattr(law, "conditional"))
