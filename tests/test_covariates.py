"""Covariates: part of P^X and of the model of y, and no hypotheses."""

import numpy as np
import pandas as pd
import pytest
from tests.refusals import refuses
from typer.testing import CliRunner

from knockoffs import KnockoffSelector
from knockoffs.cli.app import app
from knockoffs.draws import draw_and_score
from knockoffs.errors import KnockoffWarning
from knockoffs.features import FAMILIES
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
    refuses("covariates: 'y' is the target", fit_streamed, selector(covariates=["y"]), tmp_path / "t.parquet", "y")


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


SMALL = {
    "hmm": {"n_states": 2, "n_starts": 1},
    "lda": {"n_topics": 2, "max_iter": 2},
    "genotypes": {"n_ancestors": 2, "max_iter": 3},
}
BY_SITES = ("hmm", "lda", "fastphase", "genotypes")


def table_for(family, n=120):
    """Features as a family takes them, two covariates and y."""
    rng = np.random.default_rng(0)
    table, y = frame(n)
    if family == "network":
        return table.gt(0).replace({True: "high", False: "low"}), y
    if family in BY_SITES:
        counts = rng.binomial(2, 0.4, size=(n, 12))
        table[FEATURES] = counts
        y = counts[:, :11].sum(axis=1) + 2 * table["age"].to_numpy() + rng.normal(size=n)
    return table, y


@pytest.fixture
def options_of(tmp_path):
    """Options of the fit of a family; fastPHASE reads its parameters from files."""

    def options(family):
        if family != "fastphase":
            return SMALL.get(family)
        rng = np.random.default_rng(1)
        for ending, block in (("rhat", np.full((12, 1), 0.1)), ("alphahat", np.full((12, 2), 0.5))):
            write(f"c_{ending}.txt", block)
        write("c_thetahat.txt", rng.beta(1, 1, size=(12, 2)))
        (tmp_path / "c_origchars").write_text("12\n" + "2\t10\n" * 12)
        return {"prefix": str(tmp_path / "c")}

    def write(name, block):
        rows = (" ".join(map(repr, row.tolist())) + "\n" for row in block)
        (tmp_path / name).write_text("> start 0\n" + "".join(rows))

    return options


@pytest.mark.parametrize("method", ["knockoffs", "conditional_test"])
@pytest.mark.parametrize("family", list(FAMILIES))
def test_every_family_with_covariates(family, method, options_of):
    """They are conditioned on and not tested; of sites and words P^X is that of the other columns."""
    table, y = table_for(family)
    asked = selector(
        feature_model=family, feature_model_options=options_of(family), method=method, estimator="lasso", verdict=True
    )
    if method == "conditional_test" and family in ("fixed", "lda"):
        refuses("(has no tests|features cannot be tested): use method='knockoffs'", asked.fit, table, y)
        return
    fitted = asked.fit(table, y)
    assert fitted.selection_.feature_names == tuple(FEATURES) and fitted.selection_.covariates == ("age", "sex")
    assert fitted.get_support().sum() >= 5 and "the covariates 'age', 'sex'." in fitted.selection_.explain()
    assert ("no part of P^X" in fitted.selection_.explain()) == (family in BY_SITES)
    if method == "knockoffs":
        assert fitted.W_.shape == (12,)
        own = [(fitted.knockoffs_[name] == table[name]).all() for name in table]
        assert [name for name, same in zip(table, own, strict=True) if same] == (
            ["age", "sex"] if family in (*BY_SITES, "fixed") else []
        )


@pytest.mark.parametrize("family", BY_SITES)
def test_covariates_beside_sites_and_words_may_be_labels(family, options_of):
    table, y = table_for(family)
    table["sex"] = np.where(table["sex"] > 0, "f", "m")
    options = {"feature_model_options": options_of(family), "method": "knockoffs", "estimator": "lasso"}
    assert selector(feature_model=family, **options).fit(table, y).W_.shape == (12,)
    assert selector(feature_model=family, **options, covariates="sex", drop=["age"]).fit(table, y).W_.shape == (12,)


def test_covariates_beside_sites_have_no_missing_cells():
    table, y = table_for("hmm")
    table.loc[3, "age"] = np.nan
    asked = selector(feature_model="hmm", feature_model_options=SMALL["hmm"])
    refuses("covariates: missing cells in 'age'. Fill them, or leave their rows out.", asked.fit, table, y)


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
    refuses(message, selector(**options).fit, *frame(60))


def test_features_that_covariates_determine_are_refused_or_dropped_and_covariates_stay():
    table, y = frame()
    table["f2"] = 3 * table["sex"]  # which comes after f2
    refuses(r"covariates determine features.*'f2' of 'sex'.*drop=\['f2'\]", selector().fit, table, y)
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
    options = ["--feature-model", "gaussian", "--covariates", "age,sex", "--fdr", 0.2, "--no-verdict"]
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
