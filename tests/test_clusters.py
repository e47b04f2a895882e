"""Rows that belong together: each draw uses one row of each cluster, and the answers are joined."""

import numpy as np
import pandas as pd
import pytest
from tests.refusals import refuses

from knockoffs import KnockoffSelector
from knockoffs.conditional_tests.p_values import merge_p_values
from knockoffs.filter.e_values import combine_draws
from knockoffs.procedure import Data
from knockoffs.streaming.stream import fit_streamed
from knockoffs.table.dependent_rows import one_row_each, take_clusters
from knockoffs.table.table import read_table
from knockoffs.table.target import as_target


def frame(n_clusters=120, size=3, d=12, seed=0):
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n_clusters), size)
    table = pd.DataFrame(rng.normal(size=(len(cluster), d)), columns=[f"f{j}" for j in range(d)])
    y = table.iloc[:, :11].sum(axis=1).to_numpy() + rng.normal(size=n_clusters)[cluster]
    return table.assign(patient=[f"p{c}" for c in cluster]), y


def selector(**options):
    given = {"fdr": 0.2, "feature_model": "gaussian", "clusters": "patient", "verdict": False}
    return KnockoffSelector(**given | options)


# ---- one row of each ---------------------------------------------------------------------------------------------


def test_every_cluster_has_one_row_and_every_row_its_turn():
    clusters = np.array([3, 0, 0, 1, 3, 3, 2])
    drawn = [one_row_each(clusters, np.random.default_rng(seed)) for seed in range(50)]
    assert all(sorted(clusters[rows]) == [0, 1, 2, 3] and (np.diff(rows) > 0).all() for rows in drawn)
    assert set(np.concatenate(drawn)) == set(range(7))  # a row is missed with probability below 7 (2/3)^50 = 1e-8


def test_rows_are_those_whose_target_is_known():
    X, y = np.arange(40.0).reshape(20, 2) % 7, np.arange(20.0)
    y[::2] = np.nan
    table = read_table(X)
    data = Data(table, as_target(y, table), clusters=np.repeat(np.arange(10), 2))
    part = data.one_row_each(np.random.default_rng(0))
    assert part.rows.tolist() == list(range(1, 20, 2))
    np.testing.assert_array_equal(part.target.values, part.rows)
    np.testing.assert_array_equal(part.table.X, X[part.rows])


@pytest.mark.parametrize("kind", ["column", "array", "series"])
def test_clusters_are_a_column_or_labels(kind):
    table, y = frame(20)
    labels = table["patient"] if kind == "series" else table["patient"].to_numpy()
    codes, rest = take_clusters("patient" if kind == "column" else labels, table)
    assert np.unique(codes).size == 20 and (codes.reshape(20, 3) == codes.reshape(20, 3)[:, :1]).all()
    assert ("patient" in rest) is (kind != "column")


# ---- answers -----------------------------------------------------------------------------------------------------


def test_twice_the_mean_is_a_p_value_of_dependent_p_values():
    u = (np.arange(100_000) + 0.5) / 100_000  # a grid of uniforms, and the worst pair for a mean: one up, one down
    below = np.where(u < 0.1, 0.1 - u, u)
    merged = merge_p_values(np.stack([u, below]))
    for level in np.arange(1, 100) / 200:
        assert (merged <= level).mean() <= level + 1e-5
    assert (merged <= 0.1).mean() == pytest.approx(0.1, abs=1e-4)  # no smaller factor than 2 would do
    np.testing.assert_array_equal(merge_p_values(u[None]), u)


@pytest.mark.parametrize("n_draws", [1, 3])
def test_knockoffs_of_one_row_each_are_joined_by_e_values(n_draws):
    table, y = frame()
    fitted = selector(method="knockoffs", n_draws=n_draws, verdict=n_draws == 1).fit(table, y)
    selection = fitted.selection_
    assert selection.draws.shape == (n_draws, 12) and len(selection.pair) == len(selection.rows) == 120
    assert table["patient"].iloc[selection.rows].is_unique and len(fitted.knockoffs_) == len(fitted.target_) == 120
    assert selection.selected.sum() >= 9 and "patient" not in fitted.get_feature_names_out()
    if n_draws > 1:
        joined = combine_draws(selection.draws, 0.2)
        np.testing.assert_array_equal(selection.selected, joined.selected)
        assert len({tuple(W) for W in selection.draws}) == 3
    assert selection.notes["clusters"] == f"{n_draws} times one row of each of 120 clusters, drawn at random"


@pytest.mark.parametrize("resolution", ["columns", "auto"])
def test_p_values_of_one_row_each_are_merged(resolution):
    table, y = frame()
    fitted = selector(method="conditional_test", n_draws=3, resolution=resolution).fit(table, y)
    assert fitted.p_values_.shape == (12,) and fitted.selection_.selected.sum() >= 9
    assert "twice the mean" in fitted.selection_.notes["merged"] and "n_draws" not in fitted.selection_.notes
    assert fitted.p_values_.min() >= 2 / 10001  # no p-value of a part is below 1 / 10001


def test_a_selection_from_rows_of_their_own_clusters_is_one_from_all_rows():
    table, y = frame(150, 1)
    fitted = selector(method="knockoffs").fit(table, y)
    np.testing.assert_array_equal(fitted.selection_.pair.X, table.drop(columns="patient").to_numpy())


def test_a_report_and_its_record(select_and_rerun):
    table, y = frame()
    options = ["--target", "y", "--clusters", "patient", "--feature-model", "gaussian", "--draws", 2, "--no-verdict"]
    record, _ = select_and_rerun(table.assign(y=y), *options)
    assert record["parameters"]["clusters"] == "patient" and len(record["features"]) == 12


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clusters": "patent"}, "clusters='patent' is not known. Did you mean 'patient'?"),
        ({"clusters": [1, 2, 3]}, "clusters has 3 labels and X has 360 rows"),
        ({"clusters": [1.0] * 359 + [np.nan]}, "clusters: row 359 has no label"),
        ({"clusters": [1, 2] * 180}, "clusters: there are 2, and at least 5 are needed"),
        ({"knockoffs": np.zeros((360, 12)), "feature_model": "auto"}, "clusters: given knockoffs are of all rows"),
        ({"covariates": ["patient"]}, "covariates='patient' is not known"),
    ],
)
def test_refused(options, message):
    refuses(message, selector(**options).fit, *frame())


def test_refused_later(tmp_path):
    table, y = frame()
    fitted = selector(method="knockoffs").fit(table, y)
    refuses("lambda paths are not supported with clusters", fitted.lambda_path)
    table.assign(y=y).to_parquet(tmp_path / "t.parquet")
    refuses("clusters are not supported in batches", fit_streamed, selector(), tmp_path / "t.parquet", "y")
