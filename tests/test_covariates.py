"""Covariates: part of P^X and of the model of y, and no hypotheses."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from knockoffs import KnockoffSelector
from knockoffs.cli.app import app
from knockoffs.draws import draw_and_score
from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.features.gaussian import gaussian_features
from knockoffs.features.given import GivenModel
from knockoffs.importance.scores import Scores
from knockoffs.importance.statistic import Scored
from knockoffs.streaming.stream import fit_streamed
from knockoffs.table.table import read_table
from knockoffs.table.target import as_target

FEATURES = [f"f{j}" for j in range(12)]


def frame(n=200, seed=0):
    rng = np.random.default_rng(seed)
    C, X = rng.normal(size=(n, 2)), rng.normal(size=(n, 12))
    X += 0.5 * C @ rng.normal(size=(2, 12))
    y = X[:, :11].sum(axis=1) + 2 * C.sum(axis=1) + rng.normal(size=n)
    table = pd.DataFrame(X, columns=FEATURES)
    table.insert(0, "age", C[:, 0])
    table.insert(5, "sex", C[:, 1])
    return table, y


def selector(**options):
    given = {"fdr": 0.2, "feature_model": "gaussian", "covariates": ["sex", "age"], "verdict": False}
    return KnockoffSelector(**given | options)


# ---- features and covariates of a table --------------------------------------------------------------------------


def test_covariates_are_numbered_after_the_features():
    table = read_table(np.eye(6)[:, :5] + 0.1).with_covariates(["x3", "x0"])
    assert table.covariates == ("x0", "x3") and table.feature_names == ("x1", "x2", "x4")
    assert table.feature_of.tolist() == [3, 0, 1, 4, 2]
    grouped = table.with_groups({"pair": ["x1", "x4"]})
    assert grouped.feature_names == ("pair", "x2") and grouped.feature_of.tolist() == [2, 0, 1, 3, 0]
    fewer = grouped.without(["x0", "x2"])
    assert fewer.covariates == ("x3",) and fewer.feature_names == ("pair",) and fewer.feature_of.tolist() == [0, 1, 0]


def test_automatic_groups_leave_covariates_alone():
    x = np.random.default_rng(0).normal(size=(50, 1))
    X = x + 1e-3 * np.random.default_rng(1).normal(size=(50, 3))
    assert read_table(X).with_groups("auto").feature_of.tolist() == [0, 0, 0]
    assert read_table(X).with_covariates(["x1"]).with_groups("auto").feature_of.tolist() == [0, 1, 0]


# ---- knockoffs ---------------------------------------------------------------------------------------------------


def test_the_model_of_y_sees_no_knockoff_of_a_covariate_and_there_is_no_w_for_it():
    table, y = frame(60)
    read = read_table(table).with_covariates(["age", "sex"])
    law = gaussian_features(np.zeros(14), np.eye(14))
    seen = []

    def statistic(pair, target, *, rng, n_jobs=None):
        seen.append(pair)
        return Scored(Scores(*(np.bincount(pair.feature_of, abs(part).sum(axis=0)) for part in pair.parts)))

    sampler = GivenModel(law)(read, rng=np.random.default_rng(0)).sampler
    draw = draw_and_score(sampler, read, as_target(y, read), statistic, rng=np.random.default_rng(0))
    columns = read.covariate_columns
    np.testing.assert_array_equal(seen[0].X[:, columns], read.X[:, columns])
    np.testing.assert_array_equal(seen[0].X_tilde[:, columns], read.X[:, columns])
    others = np.setdiff1d(np.arange(14), columns)
    np.testing.assert_allclose(draw.scores.Z, abs(read.X[:, others]).sum(axis=0))  # swapped, and put back
    assert (draw.pair.X_tilde[:, columns] != read.X[:, columns]).all()  # the verdict is on all of P^X


@pytest.mark.parametrize(
    "options", [{}, {"n_draws": 3}, {"n_knockoffs": 2, "estimator": "lasso"}, {"estimator": "boosting"}]
)
def test_knockoffs_select_features_and_transform_passes_covariates_on(options):
    table, y = frame()
    fitted = selector(method="knockoffs", **options).fit(table, y)
    selection = fitted.selection_
    assert selection.feature_names == tuple(FEATURES) and selection.covariates == ("age", "sex")
    assert fitted.W_.shape == fitted.q_values_.shape == fitted.scores_.Z.shape == (12,)
    assert selection.selected.sum() >= 10
    kept = [name for name in table if name in ("age", "sex") or name in selection.selected_names]
    assert fitted.get_feature_names_out().tolist() == kept
    assert fitted.transform(table).shape[1] == len(kept)
    assert "given one another and the covariates 'age', 'sex'." in selection.explain()
    assert fitted.knockoffs_.columns.tolist() == list(table)


def test_batches_are_scored_as_rows_in_memory(tmp_path):
    table, y = frame(400)
    table.assign(y=y).to_parquet(tmp_path / "t.parquet")
    fitted = selector(method="knockoffs", estimator="lasso")
    fit_streamed(fitted, tmp_path / "t.parquet", "y", sample_rows=150, batch_rows=100)
    assert fitted.W_.shape == (12,) and fitted.selection_.selected.sum() >= 10
    with pytest.raises(InputError, match="covariates: 'y' is the target"):
        fit_streamed(selector(covariates=["y"]), tmp_path / "t.parquet", "y")


# ---- tests -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resolution", ["columns", "auto"])
def test_covariates_are_conditioned_on_and_not_tested(resolution):
    table, y = frame()
    fitted = selector(method="conditional_test", resolution=resolution).fit(table, y)
    assert fitted.p_values_.shape == (12,) and fitted.selection_.selected.sum() >= 10
    named = {name for found in fitted.discoveries_ or () for name in found.features}
    assert named <= set(FEATURES)


def test_p_values_are_those_of_the_features_in_a_table_without_covariates():
    # a test draws from the stream of its columns: the same model, the same columns, the same p-values
    table, y = frame()
    alone = selector(method="conditional_test", resolution="columns", covariates=()).fit(table, y)
    beside = selector(method="conditional_test", resolution="columns").fit(table, y)
    places = [list(table).index(name) for name in FEATURES]
    np.testing.assert_array_equal(beside.p_values_, alone.p_values_[places])
    assert (beside.q_values_ != alone.q_values_[places]).any()  # of fewer hypotheses


def test_only_hypotheses_enter_the_adjustment():
    fitted = selector(method="conditional_test", resolution="columns").fit(*frame())
    ordered = np.sort(fitted.p_values_)
    expected = np.minimum.accumulate((ordered * 12 / np.arange(1, 13))[::-1])[::-1]
    np.testing.assert_allclose(np.sort(fitted.q_values_), expected.clip(max=1))


# ---- families ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["auto", "gaussian", "mixture", "naive_bayes", "network"])
def test_families_with_covariates(family):
    table, y = frame(120)
    if family == "network":
        table = (table > 0).map({True: "high", False: "low"}.get)
    fitted = selector(feature_model=family, method="knockoffs", verdict=False, estimator="lasso").fit(table, y)
    assert fitted.W_.shape == (12,)


@pytest.mark.parametrize("family", ["hmm", "lda"])
def test_covariates_stand_beside_sites_and_words(family):
    """They are in the model of y alone: P^X is that of the other columns, and they are their own knockoffs."""
    table, y = frame(120)
    counts = (2 * table + 9).clip(0).round().astype(int)
    small = {"hmm": {"n_states": 2, "n_starts": 1}, "lda": {"n_topics": 2, "max_iter": 2}}[family]
    fitted = selector(
        feature_model=family, feature_model_options=small, method="knockoffs", verdict=False, estimator="lasso"
    ).fit(counts, y)
    assert fitted.W_.shape == (12,) and "no part of P^X" in fitted.selection_.explain()
    for name in fitted.selection_.covariates:
        assert (fitted.knockoffs_[name] == counts[name]).all()
    assert any((fitted.knockoffs_[name] != counts[name]).any() for name in fitted.selection_.feature_names)
    holes = counts.astype(float)
    holes.loc[3, fitted.selection_.covariates[0]] = np.nan
    if family == "hmm":
        with pytest.raises(InputError, match="covariates: .* have missing cells"):
            selector(feature_model=family, feature_model_options=small).fit(holes, y)


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"covariates": ["agee"]}, "covariates='agee' is not known. Did you mean 'age'?"),
        ({"covariates": 3}, "covariates=3: expected names of columns"),
        ({"drop": ["age"]}, "covariates: 'age' is in drop too"),
        ({"drop": "age"}, "covariates: 'age' is in drop too"),
        ({"groups": {"g": ["age", "f1"]}}, "covariates: 'age' is in the group 'g'"),
        ({"covariates": ["age", "sex", *FEATURES]}, "no column is left to test"),
    ],
)
def test_refused(options, message):
    table, y = frame(60)
    with pytest.raises(InputError) as refused:
        selector(**options).fit(table, y)
    assert message in str(refused.value)


def test_features_that_covariates_determine_are_refused_or_dropped_and_covariates_stay():
    table, y = frame()
    table["f2"] = 3 * table["sex"]  # which comes after f2
    with pytest.raises(InputError, match=r"covariates determine features.*'f2' of 'sex'.*drop=\['f2'\]"):
        selector().fit(table, y)
    with pytest.warns(KnockoffWarning, match="dropped as copies or exact combinations .*'f2' of 'sex'"):
        fitted = selector(dependent="drop").fit(table, y)
    assert fitted.selection_.covariates == ("age", "sex") and "f2" not in fitted.selection_.feature_names


# ---- the command line --------------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def csv(tmp_path):
    table, y = frame(120)
    table.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def test_the_record_names_covariates_and_runs_again(select_and_rerun, tmp_path):
    table, y = frame(120)
    options = ["--feature-model", "gaussian", "--covariates", "age,sex", "--fdr", 0.2]
    record, report = select_and_rerun(table.assign(y=y), "--target", "y", *options)
    assert [feature["name"] for feature in record["features"]] == FEATURES
    assert record["parameters"]["covariates"] == ["age,sex"]
    assert record["notes"]["covariates"].startswith("'age', 'sex': in P^X and in the model of y")
    assert "and the covariates 'age', 'sex'." in record["explanation"] and "covariates" in report
    assert len((tmp_path / "out" / "selection.csv").read_text().splitlines()) == 13


@pytest.mark.parametrize("more", [["--covariates", "y"], ["--covariates", "age", "--drop", "age"]])
def test_a_column_has_one_part(csv, more):
    found = run("select", csv, "--target", "y", *more)
    assert found.exit_code == 2 and "is the target, the weights or dropped" in " ".join(found.output.split())
