"""Choice between knockoffs and conditional tests: which is possible, and which is expected to find more."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from knockoffs.conditional_tests import MOST_TESTED, TEST_MODELS
from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.filter import FEW_FEATURES, ErrorControl, check_level, fewest_selected
from knockoffs.registry import find, key_of
from knockoffs.table.table import Table
from knockoffs.table.target import Target

METHODS = ("auto", "knockoffs", "conditional_test")
CONDITIONAL_FAMILIES = ("auto", "latent", "gaussian", "mixture", "naive_bayes", "hmm", "network")
GROUP_FAMILIES = ("auto", "latent", "gaussian", "mixture")  # those that draw several columns given the others
UNASKED = {"rows": None, "n_folds": 5, "n_fits": 1, "rule": "difference"}  # what W depends on, and no p-value


def choose_method(
    asked: Mapping[str, object], table: Table, target: Target, control: ErrorControl, n_rows: int | None
) -> tuple[str, dict[str, str]]:
    """Choose the method of selection: tests where features are few for knockoffs at this level, and P^X allows them.

    Parameters
    ----------
    asked : mapping
        Parameters of the selector.
    table, target, control
        As they were read and checked.
    n_rows : int, optional
        Rows of y that knockoffs would use; None for a table in batches, where ``target`` is a sample.

    Returns
    -------
    method : {"knockoffs", "conditional_test"}
    notes : dict
        Why, where it was not asked for, and which options have no effect.
    """
    find(dict.fromkeys(METHODS, True), "method", str(asked["method"]))
    method, d, fdr = key_of(str(asked["method"])), len(table.feature_names), control.fdr
    why = f"n_draws={control.n_draws} has no effect: a test makes as many draws as its p-value needs"
    joined = asked.get("clusters") is not None or asked.get("order") is not None
    ignored = {"n_draws": why} if control.n_draws > 1 and not joined else {}
    if method == "conditional_test":
        _check_testable(asked, target)
        return method, ignored
    never = _why_never(control, d)
    possible = control.n_knockoffs == 1 and _can_test(asked, table, target)
    if method == "auto" and possible:
        of_W = any(asked[name] != value for name, value in UNASKED.items())  # options that tests would ignore
        few = few_for_knockoffs(d, fdr, n_rows) and not (of_W and not few_for_knockoffs(d, fdr, None))
        if never or (few and control.offset == 1):
            why = f"knockoffs select {fewest_selected(fdr)} features or more at {fdr:g}, or none, and there are {d}"
            return "conditional_test", {"method": f"method='conditional_test', because {why}"} | ignored
    if never and (asked["fdr"] is not None or control.n_knockoffs > 1):
        raise InputError(never)
    if never and possible:
        instead = f"{never.removesuffix(FEW_FEATURES)}They are tested instead (method='conditional_test')."
        warnings.warn(instead, KnockoffWarning, stacklevel=3)
        return "conditional_test", {"method": instead} | ignored
    if never:
        warnings.warn(never, KnockoffWarning, stacklevel=3)
    return "knockoffs", {}


def _check_testable(asked: Mapping[str, object], target: Target) -> None:
    """Refuse what conditional tests were asked for and cannot do."""
    if target.weights is not None:
        raise InputError("sample_weight: conditional tests take no weights. Leave them out, or method='knockoffs'.")
    model = asked["estimator"]
    if isinstance(model, str) and key_of(model) not in TEST_MODELS:
        known = ", ".join(map(repr, TEST_MODELS))
        raise InputError(
            f"estimator={model!r} is not one of conditional tests, which take {known} by name: use one of them, a "
            "model with fit and predict, or method='knockoffs'."
        )


def _why_never(control: ErrorControl, d: int) -> str | None:
    """Why knockoffs can never select at this level, or None."""
    if control.level != "fixed":
        return None
    try:
        check_level(control.fdr, d, control.offset, control.n_draws, control.n_knockoffs)
    except InputError as error:
        return str(error)
    return None


def few_for_knockoffs(
    d: int, fdr: float, n_rows: int | None, *, few: float = 8.0, few_if_dear: float = 2.0, dear: float = 1.6e7
) -> bool:
    """Whether conditional tests are expected to find more than knockoffs, which select 1 / fdr features or none.

    Parameters
    ----------
    d : int
        Features.
    fdr : float
    n_rows : int or None
        Rows of y; None for a table that is read in batches, where tests see a sample alone.
    few : float
        Tests are taken for fewer than ``few / fdr`` features: an eighth of them, or more, would have to stand out
        before knockoffs could select one.
    few_if_dear : float
        The same where tests are dear: of more than ``MOST_TESTED`` rows they use a sample, knockoffs use all.
    dear : float
        With more, n_rows times d squared, tests are dear as well: each of d features has a model of y.

    Examples
    --------
    >>> few_for_knockoffs(79, 0.1, 2500), few_for_knockoffs(80, 0.1, 2500), few_for_knockoffs(79, 0.1, 2600)
    (True, False, False)
    >>> few_for_knockoffs(40, 0.1, 10_000), few_for_knockoffs(41, 0.1, 10_000), few_for_knockoffs(19, 0.1, None)
    (True, False, True)
    """
    large = n_rows is None or n_rows > MOST_TESTED or n_rows * d**2 > dear
    return d * fdr < (few_if_dear if large else few)


def _can_test(asked: Mapping[str, object], table: Table, target: Target) -> bool:
    """Whether P^X can draw each feature given the others, and nothing was asked for that only knockoffs have."""
    if target.weights is not None or key_of(str(asked["level"])) != "fixed":
        return False
    if not all(asked[name] is None for name in ("knockoffs", "importance", "loss")):
        return False
    law, model = asked["feature_model"], asked["estimator"]
    if isinstance(model, str) and model not in TEST_MODELS:
        return False
    if isinstance(law, str):
        return key_of(law) in (GROUP_FAMILIES if table.grouped else CONDITIONAL_FAMILIES)
    return hasattr(law, "resampler" if table.grouped else "conditional")
