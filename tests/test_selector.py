"""The selector behaves as scikit-learn's do, gives the same answer for the same seed, and says what it did."""

import re
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.refusals import refuses

from knockoffs.conditional_tests import MOST_TESTED
from knockoffs.conditional_tests.choice import UNASKED
from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.features.gaussian import fit_gaussian, gaussian_features
from knockoffs.filter.e_values import combine_draws
from knockoffs.importance.scores import Scores
from knockoffs.options import ImportanceOptions
from knockoffs.seeds import as_generator
from knockoffs.selector import KnockoffSelector

N_COLUMNS = 15
NON_NULLS = range(6)


def regression_data(seed=0, n=300):
    """Six strong features of fifteen: every one of them is found at 0.2."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, N_COLUMNS)) @ np.linalg.cholesky(0.3 + 0.7 * np.eye(N_COLUMNS)).T
    return X, 2 * X[:, NON_NULLS].sum(axis=1) + rng.standard_normal(n)


X, Y = regression_data()
for values in (X, Y):
    values.setflags(write=False)


def as_frame(X, library=pd):
    names = [f"gene {j}" for j in range(X.shape[1])]
    return pd.DataFrame(X, columns=names) if library is pd else pl.DataFrame(X, schema=names)


pytestmark = pytest.mark.filterwarnings("ignore:y is predicted almost perfectly")  # sums without noise


def quick(fdr=0.2, **options):
    given = {"feature_model": "auto" if "knockoffs" in options else "gaussian", "estimator": "lasso"}
    return KnockoffSelector(fdr, **given | {"method": "knockoffs", "verdict": False} | options)


def checked_selectors():
    """The plain default, which tests small tables; and knockoffs with a P^X that refuses missing cells."""
    return [KnockoffSelector(), quick(None)]


@pytest.fixture(scope="module")
def fitted():
    """The plain fit that many tests look at."""
    return quick().fit(X, Y)


@parametrize_with_checks(checked_selectors())
def test_scikit_learns_own_checks_pass(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks fit tables of two columns, sixteen rows or noise, and we warn
        check(estimator)


def test_it_finds_the_features_that_matter(fitted):
    assert set(NON_NULLS) <= set(fitted.get_support(indices=True))
    assert fitted.W_.shape == fitted.q_values_.shape == fitted.scores_.Z.shape == (N_COLUMNS,)
    np.testing.assert_array_equal(fitted.get_support(), fitted.W_ >= fitted.threshold_)
    np.testing.assert_array_equal(fitted.get_support(), fitted.q_values_ <= 0.2)
    assert fitted.knockoffs_.shape == X.shape
    assert fitted.feature_model_.as_network().n_columns == fitted.n_features_in_ == N_COLUMNS


class Survey(pd.DataFrame):
    @property
    def _constructor(self):
        return Survey


@pytest.mark.parametrize("library", [pd, pl, Survey], ids=["pandas", "polars", "a class of its own"])
def test_frames_in_names_out(fitted, library):
    frame = Survey(as_frame(X)) if library is Survey else as_frame(X, library)
    selector = quick().fit(frame, Y)
    np.testing.assert_array_equal(selector.W_, fitted.W_)
    names = selector.get_feature_names_out()
    assert {f"gene {j}" for j in NON_NULLS} <= set(names)
    assert list(selector.feature_names_in_) == list(frame.columns)
    assert isinstance(selector.knockoffs_, pl.DataFrame if library is pl else pd.DataFrame)
    assert list(selector.knockoffs_.columns) == list(frame.columns)
    selector.set_output(transform="polars" if library is pl else "pandas")
    assert list(selector.transform(frame).columns) == list(names)


def test_the_knockoffs_have_the_index_of_x():
    index = np.arange(len(X))[::-1]
    selector = quick().fit(as_frame(X).set_index(index), pd.Series(Y, index=index))
    np.testing.assert_array_equal(selector.knockoffs_.index, index)


def test_in_a_pipeline_and_a_grid_search():
    pipeline = Pipeline([("select", quick()), ("model", LinearRegression())])
    search = GridSearchCV(pipeline, {"select__fdr": [0.2, 0.3]}, cv=2, error_score="raise").fit(as_frame(X), Y)
    assert search.best_params_["select__fdr"] in (0.2, 0.3)
    assert search.best_score_ > 0.9
    names = make_pipeline(quick()).fit(as_frame(X), Y).get_feature_names_out()
    assert {f"gene {j}" for j in NON_NULLS} <= set(names)


def test_a_clone_has_the_same_parameters_and_gives_the_same_answer():
    selector = quick(offset=0, importance_options={"rule": "signed_maximum"}).fit(X, Y)
    copy = clone(selector)
    assert copy.get_params() == selector.get_params()
    for method in (copy.get_support, copy.explain):
        with pytest.raises(NotFittedError):
            method()
    np.testing.assert_array_equal(copy.fit(X, Y).W_, selector.W_)


# ---- randomness ----------------------------------------------------------------------------------------------------


SEEDS = [lambda: 7, lambda: np.int64(7), lambda: np.random.default_rng(7), lambda: np.random.SeedSequence(7)]


@pytest.mark.parametrize("make", [*SEEDS, lambda: np.random.RandomState(7)])
def test_the_same_seed_in_any_form_gives_the_same_answer(make):
    old = isinstance(make(), np.random.RandomState)  # whose numbers are others
    expected = quick(random_state=make() if old else 7).fit(X, Y).W_
    np.testing.assert_array_equal(quick(random_state=make()).fit(X, Y).W_, expected)


def test_without_a_seed_the_same_table_gives_the_same_answer():
    first, second = (KnockoffSelector(verdict=False).fit(X[:80, :5], Y[:80]) for _ in range(2))
    np.testing.assert_array_equal(first.p_values_, second.p_values_)
    assert KnockoffSelector().random_state == 0


def test_another_seed_or_none_gives_another_draw():
    draws = [quick(random_state=seed).fit(X, Y).knockoffs_[0, 0] for seed in (0, 1, None, None)]
    assert len(set(draws)) == 4


def test_a_generator_without_a_seed_sequence_can_be_used():
    legacy = np.random.Generator(np.random.RandomState(3)._bit_generator)
    assert len(as_generator(legacy).spawn(2)) == 2


@pytest.mark.parametrize(
    ("random_state", "message"),
    [(-1, "random_state=-1 is negative"), ("0", "random_state='0' .str."), (True, "not a seed"), (1.5, "float")],
)
def test_what_is_not_a_random_state_is_refused(random_state, message):
    refuses(message, as_generator, random_state)


@pytest.mark.parametrize("random_state", [5, np.random.SeedSequence(5)])
def test_fitting_twice_is_fitting_afresh(random_state):
    """Also where the first table had another shape."""
    other, y = regression_data(seed=1, n=200)
    selector = quick(random_state=random_state).fit(other[:, :12], y)
    fresh = quick(random_state=5).fit(X, Y)
    np.testing.assert_array_equal(selector.fit(X, Y).W_, fresh.W_)
    np.testing.assert_array_equal(selector.knockoffs_, fresh.knockoffs_)


# ---- strings and objects --------------------------------------------------------------------------------------------


MODELS = {
    "function": lambda: fit_gaussian,
    "fitted": lambda: fit_gaussian(X),
    "network": lambda: fit_gaussian(X).as_network(),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_name_a_function_a_fitted_model_and_its_network_are_the_same_p_x(fitted, make):
    np.testing.assert_array_equal(quick(feature_model=make()).fit(X, Y).W_, fitted.W_)


def test_options_reach_the_family():
    named = quick(feature_model_options={"diagonal": "equicorrelated"}).fit(X, Y)
    bound = quick(feature_model=partial(fit_gaussian, diagonal="equicorrelated")).fit(X, Y)
    np.testing.assert_array_equal(named.W_, bound.W_)
    with pytest.raises(InputError, match="feature_model_options='diagonl' is not known. Did you mean 'diagonal'"):
        quick(feature_model_options={"diagonl": "mvr"}).fit(X, Y)


@pytest.mark.parametrize("frame", [False, True])
def test_only_a_covariance(frame):
    covariance = 0.3 + 0.7 * np.eye(N_COLUMNS)
    expected = quick(feature_model=gaussian_features(X.mean(axis=0), covariance)).fit(X, Y).W_
    if frame:
        names = as_frame(X).columns
        covariance = pd.DataFrame(covariance, index=names, columns=names)
    np.testing.assert_array_equal(quick(feature_model=covariance).fit(as_frame(X), Y).W_, expected)


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        (np.eye(3), "feature_model has 3 columns and X has 15"),
        (np.ones((15, 2)), r"covariance of shape \(15, 2\): expected a square matrix"),
        (np.eye(15) + np.eye(15, k=1), "symmetric"),
        (np.ones((15, 15)), "exact combinations"),
        (pd.DataFrame(np.eye(15), columns=as_frame(X).columns[::-1]), "not those of X, in the order of X"),
    ],
)
def test_a_covariance_must_fit_the_table(covariance, message):
    refuses(message, quick(feature_model=covariance).fit, as_frame(X), Y)


def test_knockoffs_can_be_brought_along():
    drawn = quick().fit(as_frame(X), Y)
    brought = quick(knockoffs=drawn.knockoffs_).fit(as_frame(X), Y)
    np.testing.assert_array_equal(brought.W_, drawn.W_)
    assert brought.feature_model_ is None
    refuses("knockoffs are equal to X", quick(knockoffs=X).fit, X, Y)
    refuses(r"knockoffs have shape \(300, 3\)", quick(knockoffs=X[:, :3]).fit, X, Y)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"feature_model": "gaussian"}, "leave out feature_model"),
        ({"feature_model": np.eye(15)}, "leave out feature_model"),
        ({"feature_model_options": {"n_classes": 2}}, "leave out feature_model"),
        ({"n_draws": 3}, "n_draws=3: given knockoffs are one draw"),
    ],
)
def test_knockoffs_that_are_brought_along_leave_no_say_to_a_feature_model(asked, message):
    refuses(message, quick(knockoffs=np.random.default_rng(0).permuted(X, axis=0), **asked).fit, X, Y)


def test_a_model_of_ones_own_may_return_nothing_from_fit_and_a_classifier_names_its_classes():
    class Plain:
        def fit(self, XX, y):
            self.model = LinearRegression().fit(XX, y)

        def predict(self, XX):
            return self.model.predict(XX)

    class Labels(Plain):
        def predict(self, XX):
            return self.model.predict(XX) > 0.5

    class Classifier(Labels):
        def fit(self, XX, y):
            super().fit(XX, y)
            self.classes_ = np.unique(y)

    same = {"importance": "swap", "importance_options": {"rows": "cross_fitted"}}
    expected = quick(estimator=LinearRegression(), **same).fit(X, Y).W_
    np.testing.assert_allclose(quick(estimator=Plain()).fit(X, Y).W_, expected, atol=1e-8)
    message = "Labels predicts numbers. Use .* If it predicts labels, let its fit set classes_"
    refuses(message, quick(estimator=Labels()).fit, X, Y > 0)
    assert set(quick(fdr=0.3, estimator=Classifier()).fit(X, Y > 0).get_support(indices=True)) & set(NON_NULLS)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, r"returned NoneType: expected Scores\(Z, Z_tilde\)"),
        (np.ones(30), "returned ndarray: expected Scores"),
        (Scores(np.ones(30), np.ones(30)), r"returned Z of shape \(30,\): expected one number for each of 15 features"),
        (Scores(np.ones(15), np.ones(14)), r"returned Z_tilde of shape \(14,\)"),
    ],
)
def test_a_score_of_ones_own_that_returns_no_scores_is_told_what_to_return(returned, message):
    refuses(message, quick(importance=lambda *given, **options: returned).fit, X, Y)


def test_more_than_two_classes_are_not_numbers():
    """The middle class by number is an extreme by features: a numeric reading would see no trend in them."""
    classes = np.array([1, 0, 2])[np.digitize(Y, [-2, 2])]
    selector = quick().fit(X, classes)
    assert selector.get_support()[NON_NULLS].all()
    assert selector.selection_.notes["task"].startswith("y has 3 classes: 0, 1, 2")
    renamed = quick().fit(X, np.array(["c", "a", "b"])[classes])
    np.testing.assert_allclose(renamed.W_, selector.W_, atol=1e-6)


def test_weights_of_one_change_nothing_and_weights_of_zero_leave_rows_out(fitted):
    weighted = quick().fit(X, Y, sample_weight=np.ones(len(Y)))
    np.testing.assert_allclose(weighted.W_, fitted.W_, atol=1e-8)
    noisy = np.where(np.arange(len(Y)) < 50, 1e6, Y)
    left_out = quick().fit(X, noisy, sample_weight=(np.arange(len(Y)) >= 50).astype(float))
    assert set(NON_NULLS) <= set(left_out.get_support(indices=True))


def test_weights_come_in_any_form_and_are_left_as_they_were():
    weights = np.random.default_rng(1).random(len(Y))
    before = weights.copy()
    expected = quick().fit(X, Y, sample_weight=weights).W_
    np.testing.assert_array_equal(weights, before)
    for form in (weights.tolist(), pd.Series(weights), pl.Series(weights)):
        np.testing.assert_array_equal(quick().fit(X, Y, sample_weight=form).W_, expected)
    pipeline = make_pipeline(quick()).fit(X, Y, knockoffselector__sample_weight=weights)
    np.testing.assert_array_equal(pipeline[0].W_, expected)
    with pytest.raises(InputError, match="sample_weight is nan in row 3"):
        quick().fit(X, Y, sample_weight=np.where(np.arange(len(Y)) == 3, np.nan, weights))
    refuses("fit parameter='weights' is not known", quick().fit, X, Y, weights=weights)


def test_weights_are_routed_where_scikit_learn_is_told_to(fitted):
    weights = np.random.default_rng(1).random(len(Y))
    with sklearn.config_context(enable_metadata_routing=True):
        plain = make_pipeline(quick().set_fit_request(sample_weight=False), LinearRegression())
        routed = make_pipeline(quick().set_fit_request(sample_weight=True), LinearRegression())
        for pipeline in (plain, routed):
            pipeline[1].set_fit_request(sample_weight=True)
            pipeline.fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(routed[0].W_, quick().fit(X, Y, sample_weight=weights).W_)
    np.testing.assert_array_equal(plain[0].W_, fitted.W_)


def test_a_feature_may_own_several_columns():
    selector = quick(groups=np.repeat(np.arange(5), 3), offset=0).fit(X, Y)
    support = selector.get_support()
    assert selector.W_.shape == (5,) and support.shape == (15,) and support[:6].all()


# ---- what it says ---------------------------------------------------------------------------------------------------


def test_it_says_what_was_selected_at_which_level(fitted):
    text = fitted.explain()
    assert f"{fitted.get_support().sum()} of 15 features" in text and "0.2" in text
    assert "P^X is a Gaussian of 15 columns, fitted to 300 rows; its covariance was shrunk" in text


NOISE = np.random.default_rng(5).standard_normal(len(X))


def test_an_empty_selection_is_an_answer_that_says_why():
    selector = quick(0.1).fit(X, NOISE)
    assert not selector.get_support().any() and len(selector.get_feature_names_out()) == 0
    assert selector.threshold_ == np.inf
    assert "Nothing is selected" in selector.explain()
    assert "Knockoff+ selects at least 10 features at 0.1, or none." in selector.explain()


@pytest.mark.parametrize(
    ("n", "said"), [(1, "1 of 3 features is selected by its p-value;"), (2, "2 of 3 features are selected by their p-")]
)
def test_one_feature_is_selected_by_its_p_value_and_two_by_theirs(n, said):
    tested = quick(0.1, method="conditional_test", resolution="columns").fit(X[:60, :3], Y[:60]).selection_
    assert replace(tested, selected=np.arange(3) < n).explain().startswith(said)


def test_it_names_the_tests_where_few_features_stand_out():
    y = X[:, :3].sum(axis=1)
    text = quick(0.1, method="knockoffs").fit(X, y).explain()
    few = r"\d features? stands? above every knockoff, which is too few. Use method='conditional_test'"
    assert re.search(few, text)
    assert "level='post_hoc'" in text and "n_knockoffs" not in text and "offset" not in text  # two answers, not five
    tested = quick(0.1, method="conditional_test").fit(X, y)
    assert tested.get_support()[:3].all()  # as was promised
    brought = quick(0.1, method="knockoffs", knockoffs=np.random.default_rng(0).permuted(X, axis=0))
    assert "above every knockoff" not in brought.fit(X, y).explain()  # their P^X is not known


@pytest.mark.parametrize("library", ["default", "pandas", "polars"])
def test_transform_of_an_empty_selection_warns_and_passes_an_empty_table_on(library):
    """As scikit-learn's own selectors do."""
    given = {"default": X, "pandas": as_frame(X).set_index(np.arange(300)[::-1]), "polars": as_frame(X, pl)}[library]
    selector = quick(0.1).set_output(transform=library).fit(given, NOISE)
    with pytest.warns(UserWarning, match="No features were selected"):
        empty = selector.transform(given)
    assert type(empty) is type(given) and empty.shape[1] == 0
    if library == "pandas":
        np.testing.assert_array_equal(empty.index, given.index)
    if library == "polars":  # of which early versions make no array of a frame without columns
        selector.set_output(transform="default")
    union = make_union(selector, FunctionTransformer(np.negative))
    with pytest.warns(UserWarning, match="No features were selected"):
        np.testing.assert_array_equal(union.fit_transform(X, NOISE), -X)


# ---- bad input -------------------------------------------------------------------------------------------------------


def bad_tables():
    """Tables of other kinds that cannot be used: tests/hostile."""
    frame = as_frame(X)
    hole = frame.copy()
    hole.iloc[17, 3] = np.nan
    other_rows = pd.Series(Y, index=np.arange(1, 301))
    return [
        (hole, Y, "X contains NaN in column 'gene 3', the first in row 17"),
        (frame.assign(city="Bern"), Y, "labels, not numbers, in column 'city', for instance 'Bern'"),
        (frame.assign(leak=Y), Y, "column 'leak' of X equals y in every row"),
        (frame, pd.Series(Y, name="gene 2"), "y is called 'gene 2'"),
        (frame, other_rows, "indexes of X and y disagree, first in row 0: 0 in X and 1 in y"),
    ]


@pytest.mark.parametrize(("X", "y", "message"), bad_tables(), ids=range(5))
def test_data_that_cannot_be_used_are_refused_before_anything_is_computed(X, y, message, monkeypatch):
    monkeypatch.setattr("knockoffs.procedure.run", lambda *args, **kwargs: pytest.fail("it ran"))
    refuses(message, quick(0.2).fit, X, y)


def test_a_default_level_that_can_never_select_tests_instead_and_an_asked_one_is_refused():
    instead = r"fdr=0.1 can never select with 4 features: .* They are tested instead \(method='conditional_test'\).$"
    with pytest.warns(KnockoffWarning, match=instead):
        selector = quick(None, method="knockoffs").fit(X[:, :4], Y)
    assert selector.selection_.method == "conditional_test" and selector.p_values_.shape == (4,)
    assert "tested instead" in selector.selection_.notes["method"]
    with pytest.warns(KnockoffWarning, match="can never select with 4 features: .* or level='post_hoc'"):
        quick(None, importance="coefficients").fit(X[:, :4], Y)  # which tests do not have
    refuses("fdr=0.1 can never select with 4 features", quick(0.1, method="knockoffs").fit, X[:, :4], Y)
    refuses("can never select with 4 features: knockoff. with 2 knockoffs", quick(None, n_knockoffs=2).fit, X[:, :4], Y)


@pytest.mark.parametrize("name", ["feature_modle", "loss", "rows", "rule", "if_empty", "repair", "representatives"])
def test_an_unknown_parameter_is_refused_by_python(name):
    with pytest.raises(TypeError, match=name):
        KnockoffSelector(**{name: None})


# ---- any table -------------------------------------------------------------------------------------------------------


def mixed_frame(n=150, seed=0):
    """Numbers, labels, a count, a yes or no, and missing cells; y follows the size and the colour."""
    rng = np.random.default_rng(seed)
    size = rng.standard_normal(n)
    colour = rng.choice(["blue", "green", "red"], n)
    frame = pd.DataFrame(
        {
            "size": size,
            "weight": size + rng.standard_normal(n),
            "colour": colour,
            "visits": rng.poisson(3, n),
            "member": rng.random(n) < 0.4,
            "noise": rng.standard_normal(n),
        }
    )
    y = 2 * size + 3 * (colour == "red") + 0.5 * rng.standard_normal(n)
    frame.loc[rng.choice(n, 12, replace=False), "weight"] = np.nan
    frame.loc[rng.choice(n, 9, replace=False), "colour"] = None
    return frame, y


def test_the_default_takes_labels_counts_and_missing_cells():
    frame, y = mixed_frame()
    selector = KnockoffSelector(0.5, method="knockoffs", estimator="lasso", verdict=False).fit(frame, y)
    assert selector.table_.kinds == ("continuous", "continuous", "nominal", "count", "binary", "continuous")
    assert selector.W_[[0, 2]].min() > 0
    assert selector.get_support()[[0, 2]].all()
    assert list(selector.knockoffs_.columns) == list(frame.columns)
    assert set(selector.knockoffs_["colour"]) == {"blue", "green", "red"}
    assert selector.knockoffs_["visits"].dtype == frame["visits"].dtype
    assert not selector.knockoffs_.isna().any(axis=None)
    assert selector.transform(frame).shape == (150, selector.get_support().sum())  # with its missing cells
    assert "latent Gaussian" in selector.selection_.notes["feature_model"]


def test_dropped_columns_are_left_out_and_never_selected():
    frame = as_frame(X).assign(city=["Bern", "Basel"] * 150)
    selector = quick(drop=["gene 0", "city"]).fit(frame, Y)
    assert len(selector.W_) == 14 and "gene 0" not in selector.selection_.feature_names
    support = selector.get_support()
    assert support.shape == (16,) and not support[[0, 15]].any() and support[1:6].all()
    assert selector.n_features_in_ == 16
    np.testing.assert_array_equal(selector.W_, quick().fit(frame.drop(columns=["gene 0", "city"]), Y).W_)
    assert "gene 0" not in selector.get_feature_names_out()
    of_array = quick(drop=["x0"]).fit(X, Y)
    np.testing.assert_array_equal(of_array.get_support()[1:], of_array.selection_.selected)
    assert of_array.selection_.feature_names == tuple(f"x{j}" for j in range(1, N_COLUMNS))  # under their own names
    of_rows = KnockoffSelector(drop=["x0"], kinds={"x2": "nominal"}, verdict=False, method="knockoffs", random_state=0)
    with pytest.warns(KnockoffWarning):
        of_rows.fit([[f"{i}", i**2 % 7 + 0.5, i % 3] for i in range(60)], np.arange(60) % 5)
    assert [(column.name, column.kind) for column in of_rows.table_.columns] == [("x1", "ordinal"), ("x2", "nominal")]


def test_groups_by_name_are_selected_together():
    frame = as_frame(X)
    groups = {"first": ["gene 0", "gene 1"], "last": ["gene 13", "gene 14"]}
    selector = quick(groups=groups).fit(frame, Y)
    assert selector.W_.shape == (13,)
    assert {"first", "last", "gene 5"} <= set(selector.selection_.feature_names)
    support = selector.get_support()
    assert support[0] == support[1] == selector.selection_.selected[selector.selection_.feature_names.index("first")]
    column_to_group = {name: group for group, names in groups.items() for name in names}
    np.testing.assert_array_equal(quick(groups=column_to_group).fit(frame, Y).W_, selector.W_)


def test_models_that_tests_do_not_take_by_name_are_refused_before_the_work():
    with pytest.raises(InputError, match="estimator='forest' is not one of conditional tests, which take 'best', 'las"):
        quick(method="conditional_test", estimator="forest").fit(X, Y)


def test_few_groups_are_tested_by_auto():
    groups = np.arange(15) // 5
    chosen, asked = (quick(0.2, groups=groups, method=name).fit(X, Y) for name in ("auto", "conditional_test"))
    assert chosen.selection_.method == "conditional_test" and chosen.p_values_.shape == (3,)
    np.testing.assert_array_equal(chosen.p_values_, asked.p_values_)
    assert chosen.selection_.notes["method"].endswith(
        "because knockoffs select 5 features or more at 0.2, or none, and there are 3"
    )
    with pytest.raises(InputError, match="can never select with 3 features: .* method='conditional_test'"):
        quick(0.2, groups=groups, method="auto", feature_model="hmm").fit(np.digitize(X, [0]), Y)  # draws no groups


def test_several_draws_have_no_effect_on_tests_and_it_is_said():
    one, several = (quick(0.1, method="auto", n_draws=n).fit(X[:, :8], Y) for n in (1, 3))
    np.testing.assert_array_equal(one.p_values_, several.p_values_)
    assert "n_draws" not in one.selection_.notes
    assert (
        several.selection_.notes["n_draws"]
        == "n_draws=3 has no effect: a test makes as many draws as its p-value needs"
    )


def test_near_copies_are_joined_by_auto_and_said():
    copy = X[:, 0] + 0.01 * np.random.default_rng(1).standard_normal(len(X))
    selector = quick(groups="auto").fit(np.column_stack([X, copy]), Y)
    owners = selector.table_.feature_of
    assert owners[0] == owners[15] and len(set(owners)) == 15 == len(selector.W_)
    assert selector.get_support()[[0, 15]].all()
    assert selector.selection_.notes["groups"].startswith("15 groups of 16 columns")


# ---- methods, draws and the verdict ----------------------------------------------------------------------------------


def test_few_columns_are_tested_and_it_is_said():
    y = Y - 2 * X[:, 4:6].sum(axis=1)
    selector = quick(0.1, method="auto").fit(X[:, :8], y)
    assert selector.selection_.method == "conditional_test"
    note = "method='conditional_test', because knockoffs select 10 features or more at 0.1, or none, and there are 8"
    assert selector.selection_.notes["method"] == note
    assert selector.p_values_.shape == (8,) and (selector.p_values_[:4] < 0.01).all()
    assert selector.get_support()[:4].all()
    assert np.isnan(selector.W_).all() and selector.scores_ is None
    asked = quick(0.1, method="conditional_test").fit(X[:, :8], y)
    np.testing.assert_array_equal(asked.p_values_, selector.p_values_)
    assert "method" not in asked.selection_.notes


def method_of(X, y, **options):
    """Method of the plan, without the work."""
    plans = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("knockoffs.procedure.run", lambda plan, *args, **kwargs: 1 / plans.append(plan))
        with pytest.raises(TypeError):
            KnockoffSelector(**{"feature_model": "gaussian", "estimator": "lasso", **options}).fit(X, y)
    return plans[0].method


@pytest.mark.parametrize(("fdr", "most"), [(None, 79), (0.1, 79), (0.2, 39), (0.05, 159)])
def test_up_to_how_many_columns_are_tested(fdr, most):
    X = np.random.default_rng(0).standard_normal((60, most + 1))
    assert method_of(X[:, :most], X[:, 0] + X[:, 1], fdr=fdr) == "conditional_test"
    assert method_of(X, X[:, 0] + X[:, 1], fdr=fdr) == "knockoffs"
    assert method_of(X[:, :most], X[:, 0] + X[:, 1], fdr=fdr, method="knockoffs") == "knockoffs"


@pytest.mark.parametrize(("fdr", "most"), [(0.1, 19), (0.2, 9)])
def test_of_more_rows_than_are_tested_fewer_columns_are(fdr, most):
    """Rows that tests would leave out count for knockoffs; rows without a target count for neither."""
    n = MOST_TESTED + 1
    X = np.random.default_rng(0).standard_normal((n, most + 1))
    y = X[:, 0] + X[:, 1]
    assert method_of(X, y, fdr=fdr) == "knockoffs"
    assert method_of(X[:, :most], y, fdr=fdr) == "conditional_test"
    assert method_of(X[1:], y[1:], fdr=fdr) == "conditional_test"
    assert method_of(X, np.r_[np.nan, y[1:]], fdr=fdr) == "conditional_test"


@pytest.mark.parametrize("options", [{"rule": "signed_maximum"}, {"rows": "held_out"}, {"n_fits": 2}, {"n_folds": 3}])
def test_who_asks_for_what_W_depends_on_gets_W_where_it_is_no_half_of_the_features(options):
    X, y = regression_data(n=60)
    assert method_of(X, y, fdr=0.2, importance_options=options) == "knockoffs"
    assert method_of(X, y, fdr=0.1, importance_options=options) == "conditional_test"  # ten of fifteen, or none
    defaults = vars(ImportanceOptions())
    assert {name: defaults[name] for name in UNASKED} == UNASKED and set(options) <= set(UNASKED)


ONLY_KNOCKOFFS = [
    {"importance": "coefficients"},
    {"estimator": "forest"},
    {"offset": 0},
    {"level": "post_hoc"},
    {"n_knockoffs": 2, "estimator": "lasso", "fdr": 0.3},
    {"groups": np.arange(8) // 2, "feature_model": "naive_bayes", "fdr": 0.3},
    {"feature_model": "lda"},
]


@pytest.mark.parametrize("options", ONLY_KNOCKOFFS, ids=[next(iter(options)) for options in ONLY_KNOCKOFFS])
def test_what_only_knockoffs_have_is_not_tested(options):
    X, y = regression_data(n=60)
    X = np.random.default_rng(0).poisson(3.0, (60, 8)) if options.get("feature_model") == "lda" else X[:, :8]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KnockoffWarning)  # of the default level
        assert method_of(X, y, **{"estimator": None, **options}) == "knockoffs"


def test_weights_are_not_taken_by_tests():
    X, y = regression_data(n=60)
    with pytest.raises(InputError, match="conditional tests take no weights"):
        quick(0.1, method="conditional_test").fit(X, y, sample_weight=np.ones(60))


def test_a_verdict_comes_with_the_answer_and_can_be_left_out():
    judged, not_judged = (quick(verdict=verdict).fit(X, Y) for verdict in (True, False))
    assert judged.verdict_.word == "good" and judged.verdict_ is judged.selection_.verdict
    assert not_judged.verdict_ is None
    np.testing.assert_array_equal(judged.W_, not_judged.W_)  # its random numbers are its own
    alike = X + 2 * np.random.default_rng(1).standard_normal((len(X), 1))  # knockoffs that do not know what they share
    permuted = np.random.default_rng(0).permuted(alike, axis=0)
    noisy = alike[:, :6].sum(axis=1) + 3 * np.random.default_rng(3).standard_normal(len(X))
    broken = quick(verdict=True, knockoffs=permuted).fit(alike, noisy)
    assert broken.verdict_.word == "broken"
    assert "Verdict: broken. " in broken.explain()
    few = quick(feature_model=fit_gaussian(X), verdict=True)
    assert few.fit(X[:40], Y[:40]).verdict_ is None  # too few rows to tell


def test_missing_cells_are_allowed_by_the_families_that_take_them():
    def allowed(**options):
        return KnockoffSelector(**options).__sklearn_tags__().input_tags.allow_nan

    assert allowed() and allowed(feature_model="latent")
    assert not allowed(feature_model="gaussian") and not allowed(feature_model=fit_gaussian)
    assert not allowed(feature_model="nonsense") and not allowed(feature_model=np.eye(2))
    assert not allowed(knockoffs=np.zeros((3, 2)))


@pytest.mark.parametrize("offset", [0, 1])
def test_a_level_that_several_draws_can_never_reach_is_refused_as_for_one(offset):
    """The best that can happen, every feature ahead in every draw, selects at 1 / d and not below."""
    for d in (4, 10, 15):
        best = np.tile(np.arange(1.0, d + 1), (3, 1))
        assert combine_draws(best, 1 / d + 1e-9, offset=offset).selected.all()
        assert not combine_draws(best, 1 / d - 1e-4, offset=offset).selected.any()
    refused = "fdr=0.05 can never select with 15 features: the e-values of 3 draws need at least 20 selections. Use"
    refuses(refused, quick(0.05, n_draws=3, offset=offset).fit, X, Y)
    with pytest.warns(
        KnockoffWarning, match="fdr=0.1 can never select with 9 features: the e-values .* tested instead"
    ):
        quick(None, n_draws=2, offset=offset).fit(X[:, :9], Y)
    assert quick(0.05, n_draws=2, level="post_hoc", offset=offset).fit(X, Y).selection_.evidence


def test_a_level_above_a_half_may_be_chosen_after_looking():
    found = quick(0.6, level="post-hoc").fit(X, Y).selection_
    assert found.selected.any() and found.evidence.stated <= 0.6
