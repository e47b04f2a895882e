"""Hostile arguments: each is refused before the work in words that say what to do."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from tests.refusals import refuses

from knockoffs import (
    KnockoffSelector,
    fit_gaussian,
    fit_hidden_markov,
    gaussian_features,
    knockoff_filter,
    q_values,
    read_table,
    swap,
)
from knockoffs.errors import InputError
from knockoffs.filter.e_values import e_bh, knockoff_e_values
from knockoffs.table.table import without_columns

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5))
Y = X[:, 0] + X[:, 1] + 0.3 * RNG.standard_normal(60)
OPTIONS = {"fdr": 0.3, "estimator": "lasso", "verdict": False, "method": "knockoffs", "random_state": 0}
ARGUMENTS = {
    "fdr word": ({"fdr": "a"}, "use a level between 0 and 1"),
    "fdr nan": ({"fdr": np.nan}, "not between 0 and 1"),
    "fdr zero": ({"fdr": 0}, "fdr=0 is not between 0 and 1"),
    "fdr in percent": ({"fdr": 20}, "fdr=20 is not between 0 and 1. Did you mean 0.2?"),
    "fdr out of reach": (
        {"fdr": 0.05},
        "can never select with 5 features: knockoff. needs at least 20 selections. Use",
    ),
    "fdr array": ({"fdr": np.array([0.1, 0.2])}, "use a level between 0 and 1"),
    "fdr tiny": ({"fdr": 1e-300}, r"at least 1e\+300 selections"),
    "seed": ({"random_state": 1.5}, "use None, an int, a Generator"),
    "seed negative": ({"random_state": -1}, "a seed is a non-negative int"),
    "jobs none": ({"n_jobs": 0}, "whole number that is not 0"),
    "jobs word": ({"n_jobs": "a"}, "whole number that is not 0"),
    "jobs fraction": ({"n_jobs": 1.5}, "whole number that is not 0"),
    "jobs beyond the machine": ({"n_jobs": 100_000}, r"n_jobs=100000: expected at most \d+ jobs .-1 stands for all"),
    "jobs beyond all machines": ({"n_jobs": 10**30}, r"expected at most \d+ jobs"),
    "fdr beyond floats": ({"fdr": 10**400}, "not between 0 and 1"),
    "draws beyond memory": ({"n_draws": 10**9}, "n_draws=1000000000: expected a whole number of at most 10000"),
    "knockoffs beyond memory": ({"n_knockoffs": 10**6}, "expected a whole number of at most 1000"),
    "fits without end": ({"importance_options": {"n_fits": 10**9}}, "n_fits=1000000000: .* at most 10000"),
    "sweeps without end": (
        {"feature_model_options": {"n_sweeps": 10**12}},
        "n_sweeps=1000000000000: expected a whole number of at most 10000",
    ),
    "starts without end": (
        {"feature_model": "mixture", "feature_model_options": {"n_starts": 10**9}},
        "n_starts=1000000000: expected a whole number of at most 10000",
    ),
    "names of options": ({"importance_options": {3: 4}}, "importance_options=3 is not known"),
    "draws": ({"n_draws": "3"}, "a whole number of at least 1"),
    "folds": ({"importance_options": {"n_folds": 1}}, "a whole number of at least 2"),
    "rows": ({"importance_options": {"rows": 3}}, "expected one of 'in_sample'"),
    "task": ({"task": 3}, "expected one of 'binary'"),
    "task misspelt": ({"task": "regresion"}, "task='regresion' is not known. Did you mean 'regression'?"),
    "method": ({"method": 3}, "expected one of 'auto'"),
    "method misspelt": ({"method": "knockof"}, "method='knockof' is not known. Did you mean 'knockoffs'?"),
    "level": ({"level": "posthoc"}, "level='posthoc' is not known. Did you mean 'post_hoc'?"),
    "offset": ({"offset": 2}, "offset=2"),
    "kinds": ({"kinds": ["ordinal"]}, "expected a mapping"),
    "kinds of no column": ({"kinds": {"x0 ": "count"}}, "no column of X. Did you mean 'x"),
    "kinds of a number": ({"kinds": {"x0": 3}}, r"kinds\['x0'\]='3' is not known"),
    "clusters": ({"clusters": 3}, "clusters=3: expected the name of a column of X, or a label for each row"),
    "drop everything": ({"drop": [f"x{j}" for j in range(5)]}, "drop: no column is left"),
    "groups": ({"groups": 3}, "use a mapping from column to group"),
    "groups misspelt": ({"groups": "atuo"}, "groups"),
    "groups short": ({"groups": [0, 0]}, "expected 5, a group for each column"),
    "drop": ({"drop": 3}, "expected names of columns"),
    "drop unknown": ({"drop": ["x0 "]}, "Did you mean 'x"),
    "options by number": ({"feature_model_options": {1: 2}}, "feature_model_options='1' is not known"),
    "options": ({"feature_model_options": 3}, "expected a mapping"),
    "verdict": ({"verdict": "yes"}, "expected True or False"),
    "model": ({"estimator": 3}, "lacks fit and predict"),
    "model misspelt": ({"estimator": "laso"}, "estimator='laso' is not known. Did you mean 'lasso'?"),
    "model by its class": ({"estimator": LogisticRegression}, "is the class LogisticRegression: pass an instance"),
    "model of another task": (
        {"task": "classification", "estimator": LinearRegression()},
        "LinearRegression is made for regression",
    ),
    "score": ({"importance": 3}, "pass the name of a score or a function"),
    "score misspelt": ({"importance": "coeficients"}, "Did you mean 'coefficients'?"),
    "rule": ({"importance_options": {"rule": 3}}, "rule='3' is not known"),
    "rule misspelt": ({"importance_options": {"rule": "diference"}}, "Did you mean 'difference'?"),
    "loss that is not used": (
        {"importance": "coefficients", "importance_options": {"loss": "log_loss"}},
        "loss='log_loss' is not used by importance='coefficients'",
    ),
    "options of scores": ({"importance_options": ["loss"]}, "importance_options=.*expected a mapping"),
    "feature model": ({"feature_model": 3}, "pass a name, a fitted P"),
    "feature model misspelt": ({"feature_model": "gausian"}, "Did you mean 'gaussian'?"),
}
MATRICES = {  # looked at with P^X
    "covariance": ({"feature_model": np.full((5, 5), np.nan)}, "every entry must be finite"),
    "covariance not symmetric": ({"feature_model": np.triu(np.ones((5, 5)))}, "not symmetric"),
    "knockoffs short": ({"knockoffs": X[:3]}, "they must be the same"),
    "knockoffs missing": ({"knockoffs": np.full_like(X, np.nan)}, "contains NaN"),
}


@pytest.mark.parametrize(("options", "words"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_that_are_refused_before_anything_is_computed(options, words, monkeypatch):
    monkeypatch.setattr("knockoffs.procedure.run", lambda *args, **kwargs: pytest.fail("it ran"))
    refuses(words, KnockoffSelector(**OPTIONS | options).fit, X, Y)


@pytest.mark.parametrize(("options", "words"), MATRICES.values(), ids=MATRICES)
def test_matrices_that_are_refused(options, words):
    refuses(words, KnockoffSelector(**OPTIONS | options).fit, X, Y)


DOORS = {
    "W of words": (lambda: knockoff_filter(["a"], 0.1), "W holds what is no number"),
    "W complex": (lambda: q_values([1j]), "W holds what is no number"),
    "W of objects": (lambda: knockoff_e_values([object()], 0.1), "W holds what is no number"),
    "W of nothing": (lambda: knockoff_filter([], 0.1), "W is empty: expected one statistic for each feature"),
    "q of nothing": (lambda: q_values([]), "W is empty"),
    "e of nothing": (lambda: knockoff_e_values([], 0.1), "W is empty"),
    "states without end": (lambda: fit_hidden_markov(X, n_states=10**9, rng=RNG), "whole numbers from 1 to 1000"),
    "W nan": (lambda: knockoff_filter([np.nan, 1], 0.1), "W is NaN for 1 features"),
    "W in two dimensions": (lambda: q_values([[1, 2]]), "one statistic for each feature"),
    "e of words": (lambda: e_bh(["a"], 0.1), "e holds what is no number"),
    "e negative": (lambda: e_bh([-1.0, 2.0], 0.1), "is not a number >= 0"),
    "Gaussian of one dimension": (lambda: fit_gaussian(X[:, 0]), "a row for each sample and a column"),
    "Gaussian of words": (lambda: fit_gaussian(X.astype(str)), "a covariance is of numbers"),
    "Gaussian of nothing": (lambda: fit_gaussian(None), "a row for each sample and a column"),
    "Gaussian of nan": (lambda: fit_gaussian(X * np.nan), "fill them or drop the rows"),
    "covariance singular": (lambda: gaussian_features(np.zeros(3), np.ones((3, 3))), "positive definite|determine"),
    "swap by numbers": (lambda: swap(X[:, :2], X[:, :2], [0, 1]), "expected True or False for each of 2 features"),
    "swap of too many": (lambda: swap(X, X, [True]), "expected True or False for each of 5 features"),
    "swap of other rows": (lambda: swap(X, X[:3], [True] * 5), "they must be the same"),
}


@pytest.mark.parametrize(("call", "words"), DOORS.values(), ids=DOORS)
def test_other_doors(call, words):
    refuses(words, call)


def test_names_that_nobody_has_are_named_in_a_few_lines():
    """Quadratic once: each of many unknown names was compared with each of many columns, and all were listed."""
    names = [f"column {j}" for j in range(5_000)]
    table = pd.DataFrame(np.random.default_rng(0).standard_normal((6, 5_000)), columns=names)
    with pytest.raises(InputError, match="And 4990 more") as error:
        read_table(table, kinds={f"{name}?": "count" for name in names})
    assert len(str(error.value)) < 3000
    assert without_columns(table, names[:2_500]).shape == (6, 2_500)
    with pytest.raises(InputError, match="and 4970 more") as error:
        without_columns(table, ["nonsense"])
    assert len(str(error.value)) < 3000
