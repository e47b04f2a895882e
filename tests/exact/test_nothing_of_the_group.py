"""Nothing about the tested columns enters what the statistic is made of: other values leave it the same, bit by bit.

Residuals, partners, choice of the model of y, pilot draws and the law of the draws are functions of y and the other
columns alone. That makes X_G and its draws exchangeable. Each is broken once, and seen.
"""

import numpy as np
import pytest
from scipy.linalg import toeplitz

from knockoffs.conditional_tests import tests as module
from knockoffs.conditional_tests.sequential import fixed_looks
from knockoffs.conditional_tests.tests import GroupTests, group_tests
from knockoffs.features.gaussian import gaussian_features
from knockoffs.features.gaussian_mixture import gaussian_mixture_features
from knockoffs.features.latent.margins import Affine, fit_curve
from knockoffs.features.latent.model import latent_features

D, N = 10, 150
S = toeplitz(0.6 ** np.arange(D))
MEANS = [np.zeros(D), np.full(D, 1.5)]
CURVE = fit_curve(np.exp(np.random.default_rng(0).standard_normal(400)))
LAWS = {
    "gaussian": gaussian_features(np.zeros(D), S),
    "mixture": gaussian_mixture_features([0.3, 0.7], MEANS, [S, np.eye(D)]),
    "latent": latent_features([Affine()] * 5 + [CURVE] * 5, [0.3, 0.7], MEANS, [S, np.eye(D)]),
}


def what_is_used(law, X, y, kind, group, response_model):
    """Weights and pilot draws of the statistic, the choice of the model, and the draws that follow."""
    used = {}

    def statistic(weights, pilot, **options):
        used.update(weights=weights, pilot=pilot, n_residuals=options["n_residuals"])
        return lambda x: used.setdefault("draws", []).append(x) or np.zeros(len(x))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "residual_statistic", statistic)
        tests = group_tests(
            law,
            X,
            y,
            kind=kind,
            rng=np.random.default_rng(4),
            nominal=(),
            response_model=response_model,
            encode=None,
        )
        tests.test(np.array(group), fixed_looks(5))
    used["name"] = tests.response_without(np.array(group)).name
    used["draws"] = used["draws"][1:]  # the first are the columns themselves
    return used


def same(first, other):
    arrays = [np.array_equal(first[key], other[key]) for key in ("weights", "pilot")]
    draws = [np.array_equal(a, b) for a, b in zip(first["draws"], other["draws"], strict=True)]
    return all(arrays) and all(draws) and first["name"] == other["name"]


def compare(law, group, kind="number", response_model="best"):
    """Whether all of it is the same for the table and for one with other values in the group."""
    rng = np.random.default_rng(1)
    X = LAWS[law].sample(N, rng)
    signal = X[:, group].sum(axis=1) + X[:, 6] ** 2 + rng.standard_normal(N)
    y = {"number": signal, "binary": signal > np.median(signal)}[kind]
    other = X.copy()
    other[:, group] = LAWS[law].sample(N, rng)[:, group] ** 2 + 0.5
    return same(*(what_is_used(LAWS[law], table, y, kind, group, response_model) for table in (X, other)))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("group", [[3], [0, 7], [2, 3, 4, 5, 6, 7]])
def test_other_values_of_the_group_change_nothing(law, group):
    assert compare(law, group)


@pytest.mark.parametrize("response_model", ["lasso", "boosting"])
@pytest.mark.parametrize("kind", ["number", "binary"])
def test_with_every_model_of_y(kind, response_model):
    assert compare("gaussian", [3, 4], kind, response_model)


def test_a_model_chosen_from_all_columns_is_seen(monkeypatch):
    """The penalty of the lasso, where y depends on the group."""

    def chosen_once(self, columns):
        return module.choose_response(self.X, self.y, self.kind, self.response_model)

    monkeypatch.setattr(GroupTests, "response_without", chosen_once)
    assert not compare("gaussian", [3], response_model="lasso")
