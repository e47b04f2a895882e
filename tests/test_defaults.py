"""Strings become things, families get tables they can use, and what was chosen by default is said."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from knockoffs.feature_choice import feature_model_for, load_feature_model, read_features

from knockoffs.defaults import choose
from knockoffs.errors import InputError
from knockoffs.features.discrete_network import DiscreteNetwork, fit_discrete_network
from knockoffs.features.gaussian import fit_gaussian
from knockoffs.features.hidden_markov_fit import fit_hidden_markov
from knockoffs.features.naive_bayes import fit_naive_bayes
from knockoffs.importance.accuracy_drop import At, Integral
from knockoffs.procedure import fit_feature_model
from knockoffs.sampling.sampler import sample_knockoffs

WEATHER = DiscreteNetwork(
    parents={"rain": (), "wet": ("rain",), "slippery": ("wet",)},
    tables={"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.2, 0.8]], "slippery": [[0.95, 0.05], [0.3, 0.7]]},
    states={"rain": ("yes", "no"), "wet": ("wet", "dry"), "slippery": ("very", "not")},
)


def draw(family, X, **options):
    """Knockoffs as the command line draws them: in the format that came in."""
    family = load_feature_model(family)
    table = read_features(X, family)
    unfitted = feature_model_for(family, table, options or None)
    model = fit_feature_model(unfitted, table.X, feature_names=table.names, rng=np.random.default_rng(0))
    return table.decode(sample_knockoffs(model.as_network(), table.X, np.random.default_rng(1)))


def labels_table(n=60):
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue"], n),
            "sick": rng.random(n) < 0.3,
            "visits": rng.choice([1, 2, 5], n),
            "grade": pl.Series(rng.choice(["low", "high"], n), dtype=pl.Enum(["low", "high"])),
        }
    )


@pytest.mark.parametrize("family", [partial(fit_naive_bayes, n_classes=2), fit_discrete_network])
@pytest.mark.parametrize("as_pandas", [False, True])
def test_discrete_families_take_labels_and_give_labels_back(family, as_pandas):
    frame = labels_table().to_pandas() if as_pandas else labels_table()
    knockoffs = draw(family, frame)
    assert type(knockoffs) is type(frame)
    assert list(knockoffs.dtypes) == list(frame.dtypes)
    for name in ("colour", "sick", "grade"):
        assert set(knockoffs[name].to_list()) <= set(frame[name].to_list())
    assert not knockoffs.equals(frame)


def test_a_network_takes_whole_numbers_as_codes_of_themselves():
    assert set(draw(fit_discrete_network, labels_table())["visits"].to_list()) == {1, 2, 5}


def test_labels_get_the_codes_of_a_fitted_network():
    table = read_features(pd.DataFrame({"wet": ["dry", "wet"], "rain": ["yes", "no"]}), WEATHER)
    np.testing.assert_array_equal(table.X, [[1, 0], [0, 1]])  # not the alphabet's
    with pytest.raises(InputError, match="column 'wet' of X holds 'damp', and the feature model knows 'wet', 'dry'"):
        read_features(pd.DataFrame({"wet": ["damp"]}), WEATHER)


def test_a_network_observes_the_columns_of_the_table():
    frame = pd.DataFrame({"slippery": ["very", "not"], "rain": ["yes", "no"]})
    model = feature_model_for(WEATHER, read_features(frame, WEATHER))
    assert model.observed == ("slippery", "rain")
    assert model.as_network().n_columns == 2


def test_a_network_comes_from_a_file(data_folder):
    network = load_feature_model(str(next((data_folder / "bif").glob("asia*"))))
    assert len(network.parents) == 8
    with pytest.raises(InputError, match="nowhere.bif': there is no such file"):
        load_feature_model("nowhere.bif")


def test_labels_are_refused_by_gaussian_families_by_name():
    with pytest.raises(InputError, match=r"labels, not numbers, in 3 columns \('colour', 'sick', 'grade'\)"):
        read_features(labels_table(), fit_gaussian)


def test_options_are_bound_and_checked():
    table = read_features(np.eye(4), fit_gaussian)
    assert feature_model_for(fit_gaussian, table) is fit_gaussian
    assert feature_model_for(fit_gaussian, table, {"diagonal": "sdp"}).keywords == {"diagonal": "sdp"}
    with pytest.raises(InputError, match="feature_model_options are for a family that is yet to be fitted"):
        feature_model_for(WEATHER, read_features(np.zeros((2, 3)), WEATHER), {"diagonal": "sdp"})


def test_a_chain_takes_labels_or_numbers_and_not_codes_for_numbers():
    """Labels of 25 kinds are still symbols, and a table of both is refused by name."""
    rng = np.random.default_rng(0)
    many = pl.DataFrame({f"site {j}": rng.choice([*"abcdefghijklmnopqrstuvwxy"], 80) for j in range(3)})
    knockoffs = draw(fit_hidden_markov, many, n_states=2, n_starts=1)
    assert knockoffs.schema == many.schema
    mixed = labels_table().with_columns(weight=rng.random(60))
    with pytest.raises(InputError, match=r"X has columns of numbers, 'weight' \(for instance 0\.\d+\)"):
        draw(fit_hidden_markov, mixed)
    with pytest.raises(InputError, match="X has columns of numbers, 'weight'"):
        draw(fit_discrete_network, mixed)
    with pytest.raises(InputError, match="emissions='gaussian', and X holds labels"):
        draw(fit_hidden_markov, labels_table(), emissions="gaussian")
    assert set(draw(fit_hidden_markov, labels_table(), n_states=2, n_starts=1)["visits"].to_list()) == {1, 2, 5}


def test_columns_that_are_no_nodes_are_named():
    frame = pd.DataFrame({"rain": ["yes", "no"], "snow": ["yes", "no"]})
    with pytest.raises(InputError, match="columns 'snow' of X are no nodes of the network, which has 'rain', 'wet'"):
        feature_model_for(WEATHER, read_features(frame, WEATHER))


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (np.linspace(0, 1, 100), "regression"),
        (np.arange(100) % 2, "classification"),
        (np.array(["a", "b", "c", "d", "e"] * 20, dtype=object), "classification"),
        (np.arange(100) % 2 == 0, "classification"),
    ],
)
def test_the_task_is_told_from_y(y, task):
    choice = choose(y)
    assert choice.task == task
    lasso, boosting = choice.estimator.candidates
    assert "coefficients" in lasso.notes["importance"]
    assert lasso.evaluation == "in_sample"
    assert "swap" in boosting.notes["importance"]
    assert boosting.evaluation == "cross_fitted"


def test_the_default_score_of_a_model_does_not_saturate():
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
    from sklearn.svm import SVC

    classes = np.arange(50) % 2
    forest = choose(classes, estimator=RandomForestClassifier())
    assert (forest.evaluation, forest.importance.keywords["loss"]) == ("cross_fitted", "log_loss")
    assert isinstance(forest.importance.keywords["reduce"], Integral)
    boosting = choose(np.linspace(0, 1, 50), estimator=GradientBoostingRegressor())
    assert (boosting.evaluation, boosting.importance.keywords["loss"]) == ("cross_fitted", "squared_error")
    assert choose(classes, estimator=SVC()).importance.keywords["loss"] == "accuracy"
    assert isinstance(choose(classes, estimator=SVC()).importance.keywords["reduce"], At)
    own = choose(classes, estimator=RandomForestClassifier(), loss=lambda y, said: (y != said).astype(float))
    assert isinstance(own.importance.keywords["reduce"], At)  # an integral of a loss of one's own is not exact
    # asked for by its name, it is that of the paper
    asked = choose(classes, estimator=RandomForestClassifier(), importance="swap_integral")
    assert "loss" not in asked.importance.keywords


def test_an_estimator_says_what_y_is():
    from sklearn.linear_model import LinearRegression

    assert choose(np.arange(50) % 2, estimator=LinearRegression()).task == "regression"


def test_an_estimator_without_scikit_learns_base_class_will_do():
    class Mean:
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.zeros(len(X))

    assert choose(np.linspace(0, 1, 50), estimator=Mean()).task == "regression"


def test_dashes_are_underscores():
    assert choose(np.arange(50) % 2, importance="swap", loss="log-loss").importance.keywords["loss"] == "log_loss"


def test_a_linear_model_of_our_own_is_known_as_an_object():
    from knockoffs.response.linear import LassoPathCV, PlainLogistic

    number = choose(np.linspace(0, 1, 50), estimator=LassoPathCV())
    assert (number.evaluation, number.notes["importance"]) == (
        "in_sample",
        "importance='coefficients', the default for LassoPathCV",
    )
    classes = choose(np.arange(50) % 2, estimator=PlainLogistic())
    assert classes.evaluation == "in_sample"
    assert classes.notes["task"] == "y has two classes, 0 (25 rows) and 1 (25 rows): binary"


def test_a_classifier_is_not_given_numbers():
    from sklearn.ensemble import RandomForestClassifier

    with pytest.raises(InputError, match="RandomForestClassifier is made for classification, but y holds numbers"):
        choose(np.linspace(0, 1, 50), estimator=RandomForestClassifier())
