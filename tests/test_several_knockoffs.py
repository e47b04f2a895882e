"""Several knockoffs of every feature through the whole path: selector, command line, record, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import toeplitz

from knockoffs import KnockoffSelector, draws
from knockoffs.draws import draw_and_score
from knockoffs.errors import InputError
from knockoffs.features.gaussian import gaussian_features
from knockoffs.features.given import GivenModel
from knockoffs.features.hmm import HiddenMarkov
from knockoffs.features.hmm.emissions import GaussianEmissions
from knockoffs.filter import several_statistics
from knockoffs.filter.e_values import combine_draws
from knockoffs.importance.coefficients import contribution
from knockoffs.importance.statistic import ModelScore
from knockoffs.procedure import Streams, select_features
from knockoffs.response.plain import PlainLinear
from knockoffs.sampling.conjugates.independent import Independent
from knockoffs.sampling.network import BayesianNetwork, Identity, Node
from knockoffs.sampling.sampler import draw_pair
from knockoffs.table.table import read_table
from knockoffs.table.target import Target

LINEAR = {"feature_model": "gaussian", "estimator": "lasso", "verdict": False, "random_state": 0}


def table(n=200, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.multivariate_normal(np.zeros(d), toeplitz(0.5 ** np.arange(d)), size=n)
    return X, X[:, :4] @ [1.0, -1.0, 1.0, -1.0] + rng.standard_normal(n)


class Shuffled:
    """Sampler whose copies have changed places after they were drawn."""

    def __init__(self, model, place):
        self.sampler = GivenModel(model)(read_table(np.zeros((2, 6))), rng=np.random.default_rng()).sampler
        self.place = place

    feature_of = np.arange(6)
    draws_several = True

    def sample(self, X, rng, m):
        return draw_pair(self.sampler, X, rng, m).permute(self.place)


def scores(sampler, X, y, seed=3):
    statistic = ModelScore(PlainLinear(), contribution)
    streams = Streams(*np.random.default_rng(seed).spawn(4))
    return draw_and_score(sampler, read_table(X), Target(y), statistic, m=2, rng=streams.draw.spawn(1)[0]).scores.parts


def test_scores_change_places_as_the_copies_do():
    """From the draw to W, exactly: places are drawn, and every score comes back to the copy it is of."""
    rng = np.random.default_rng(1)
    model = gaussian_features(np.zeros(6), toeplitz(0.6 ** np.arange(6)))
    X = model.sample(100, rng)
    y = X[:, 0] + rng.standard_normal(100)
    stay = np.tile(np.arange(3)[:, None], 6)
    place = rng.permuted(stay, axis=0)
    Z, moved = (scores(Shuffled(model, which), X, y) for which in (stay, place))
    np.testing.assert_allclose(moved, np.take_along_axis(Z, place, axis=0), atol=1e-10)
    np.testing.assert_allclose(Z, scores(Shuffled(model, stay), X, y), atol=1e-12)
    assert np.abs(several_statistics(Z)) == pytest.approx(np.abs(several_statistics(moved)))


class First:
    """A linear model that gives all to the first of the columns that look alike."""

    def fit(self, X, y):
        self.coef_ = 1.0 / np.arange(1, X.shape[1] + 1)
        return self

    def predict(self, X):
        return X @ self.coef_

    def get_params(self, deep=True):
        return {}


def share_first(shuffle, monkeypatch, n_tables=150):
    if not shuffle:
        monkeypatch.setattr(draws, "random_places", lambda m, d, rng: np.tile(np.arange(m + 1)[:, None], d))
    first = []
    for seed in range(n_tables):
        X = np.random.default_rng([9, seed]).standard_normal((60, 6))
        selection = select_features(
            X,
            np.random.default_rng([8, seed]).standard_normal(60),
            knockoffs=GivenModel(gaussian_features(np.zeros(6), np.eye(6))),
            statistic=ModelScore(First(), contribution),
            fdr=0.2,
            n_knockoffs=4,
            rng=np.random.default_rng([7, seed]),
        )
        first += (selection.W > 0).tolist()
    return np.mean(first)


def test_a_null_feature_is_first_once_in_m_plus_one(monkeypatch):
    """Of a model that minds the order of its columns; 4 standard errors, 6e-5. Fails without the change of places."""
    allowed = 4 * np.sqrt(0.16 / 900)
    assert abs(share_first(True, monkeypatch) - 0.2) < allowed
    assert abs(share_first(False, monkeypatch, 20) - 0.2) > 4 * np.sqrt(0.16 / 120)


def test_the_selector_selects_what_the_filter_says():
    X, y = table()
    selector = KnockoffSelector(0.1, n_knockoffs=5, **LINEAR).fit(X, y)
    selection = selector.selection_
    W, m = selection.W, 5
    below = [(1 + (W <= -t).sum()) / m / max((W >= t).sum(), 1) for t in np.abs(W[W != 0])]
    t = min((t for t, fdp in zip(np.abs(W[W != 0]), below, strict=True) if fdp <= 0.1), default=np.inf)
    assert selection.threshold == t and (selection.selected == (t <= W)).all()
    assert selection.selected[:4].all() and selection.selected.sum() < 10  # one knockoff could not select 4 at 0.1
    assert "each against 5 knockoffs" in selector.explain()


def test_any_table_with_missing_cells_labels_and_groups():
    rng = np.random.default_rng(0)
    X, y = table(n=150, d=8)
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    frame["e"] = np.where(frame["e"] > 0.4, "high", np.where(frame["e"] > -0.4, "mid", "low"))
    frame.loc[rng.random(150) < 0.1, "b"] = np.nan
    options = {"groups": {"ab": ["a", "b"]}, "feature_model_options": {"n_classes": 1}}
    selector = KnockoffSelector(0.2, n_knockoffs=3, verdict=False, **options).fit(frame, y)
    assert len(selector.W_) == 7 and "boosting" not in selector.selection_.notes["estimator"]
    assert selector.knockoffs_["b"].notna().all()


def test_on_the_command_line_recorded_and_run_again(select_and_rerun):
    X, y = table()
    options = ["--target", "y", "--n-knockoffs", 5, "--estimator", "lasso", "--feature-model", "gaussian"]
    record, page = select_and_rerun(pd.DataFrame(X).assign(y=y), *options, "--no-verdict")
    assert record["parameters"]["n_knockoffs"] == 5 and "against 5 knockoffs" in record["explanation"]
    assert "compared with 5 knockoffs at once" in page and "minus the median of the others" in page


CHAIN = HiddenMarkov(
    np.full(2, 0.5), np.full((11, 2, 2), 0.5), GaussianEmissions(np.tile([-1.0, 1.0], (12, 1)), np.ones((12, 2)))
)
REFUSED = {
    "a tree": ({"estimator": "forest"}, "several knockoffs of a feature take a linear model"),
    "another score": ({"importance": "swap"}, "several knockoffs of a feature take a linear model"),
    "other rows": (
        {"importance": "contribution", "importance_options": {"rows": "cross_fitted"}},
        "on the rows it was fitted on",
    ),
    "a rule": ({"importance_options": {"rule": "signed_maximum"}}, "n_knockoffs=3 and another rule"),
    "tests": ({"method": "conditional_test"}, "conditional tests draw none"),
    "none": ({"n_knockoffs": 0}, "n_knockoffs=0: expected a whole number of at least 1"),
    "brought": ({"knockoffs": np.zeros((200, 12)), "feature_model": "auto"}, "come one for each feature"),
    "a chain": ({"feature_model": CHAIN}, "node 'H' moves by MarkovChain"),
    "a level": ({"fdr": 0.02}, "knockoff. with 3 knockoffs per feature needs at least 17 selections. Use method="),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_does_not_go_together_with(case):
    options, message = REFUSED[case]
    X, y = table()
    with pytest.raises(InputError, match=message):
        KnockoffSelector(**({"fdr": 0.1, "n_knockoffs": 3} | LINEAR | options)).fit(X, y)


def test_nothing_selected_is_explained():
    X, _ = table(n=60)
    y = np.random.default_rng(5).standard_normal(60)
    selector = KnockoffSelector(0.1, n_knockoffs=5, **LINEAR).fit(X, y)
    assert not selector.selection_.selected.any()
    assert "with 5 knockoffs per feature selects at least 2 features at 0.1" in selector.explain()


def test_draws_of_several_knockoffs_are_joined_by_their_e_values():
    X, y = table()
    selector = KnockoffSelector(0.2, n_knockoffs=4, n_draws=3, **LINEAR).fit(X, y)
    selection = selector.selection_
    assert selection.draws.shape == (3, 12) and len(np.unique(selection.draws[:, 0])) == 3
    expected = combine_draws(selection.draws, 0.2, n_knockoffs=4)
    np.testing.assert_array_equal(selection.selected, expected.selected)
    np.testing.assert_array_equal(selection.evidence.e_values, expected.e_values)
    assert selection.selected[:4].all()
    assert "3 draws of knockoffs, 4 per feature" in selector.explain()
    first = KnockoffSelector(0.2, n_knockoffs=4, **LINEAR).fit(X, y)
    np.testing.assert_array_equal(first.W_, selection.draws[0])


def test_a_feature_that_is_its_own_knockoffs_has_no_w():
    """Whatever a model makes of the order of columns that are the same."""
    again = Independent(lambda blanket, n, rng: rng.standard_normal((n, 4)), lambda u, blanket: np.zeros(len(u)))
    network = BayesianNetwork([Node("same", (), Identity(), columns=[0]), Node("X", (), again, columns=range(1, 5))])
    X, y = table(60, 5)
    selection = select_features(
        X,
        y,
        knockoffs=GivenModel(network),
        statistic=ModelScore(First(), contribution),
        fdr=0.3,
        n_knockoffs=3,
        rng=np.random.default_rng(0),
    )
    assert selection.W[0] == 0 and (selection.W[1:] != 0).all()
