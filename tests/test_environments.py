"""Several environments in one selection: P^X and W of each, one answer, refusals."""

import numpy as np
import pandas as pd
import pytest
from tests.refusals import refuses

from knockoffs import KnockoffSelector
from knockoffs.streaming.stream import fit_streamed


def frame(n=200, d=40, seed=0):
    """Three sites in any order of rows: 14 features matter in all, 8 in the first alone."""
    rng = np.random.default_rng(seed)
    site = rng.permutation(np.repeat(["Bonn", "Lyon", "Turin"], n))
    X = pd.DataFrame(rng.normal(size=(3 * n, d)), columns=[f"f{j}" for j in range(d)])
    y = X.iloc[:, :14].sum(axis=1) + (site == "Bonn") * 2 * X.iloc[:, 14:22].sum(axis=1) + rng.normal(size=3 * n)
    return X.assign(site=site), y


def selector(**options):
    given = {"fdr": 0.1, "feature_model": "gaussian", "estimator": "lasso", "environments": "site", "verdict": False}
    return KnockoffSelector(**given | options)


def test_what_matters_in_one_site_is_no_discovery_of_all():
    table, y = frame()
    y[7] = np.nan
    found = selector(verdict=True).fit(table, y)
    names = set(found.selection_.selected_names)
    assert len(names & {f"f{j}" for j in range(14)}) >= 13 and len(names & {f"f{j}" for j in range(14, 22)}) <= 2
    assert found.knockoffs_.shape == (600, 40) and (found.knockoffs_.index == table.index).all()
    assert list(found.selection_.environments) == ["Bonn", "Lyon", "Turin"]
    said = found.selection_.explain()
    assert "in at least 3 of 3 environments" in said and "environments are independent, and in each the model" in said
    some = selector(min_environments=2).fit(table, y).selection_
    assert len(set(some.selected_names) & {f"f{j}" for j in range(14)}) >= 12 and "at least 2 of 3" in some.explain()


def test_each_environment_is_a_selection_of_its_own():
    """W of a site is that of the site's rows alone, by the same random numbers."""
    from knockoffs.defaults import plan_of, source_of
    from knockoffs.procedure import Data, run
    from knockoffs.table.table import read_table
    from knockoffs.table.target import as_target

    table, y = frame()
    found = selector(random_state=5).fit(table, y).selection_
    rows = np.flatnonzero(table["site"] == "Lyon")
    own = read_table(table.drop(columns="site").iloc[rows])
    target = as_target(y.to_numpy()[rows], own)
    options = selector(method="knockoffs", environments=None).get_params(deep=False)
    plan = plan_of(options, source_of(options), own, target, {}, n_rows=200)
    alone = run(plan, Data(own, target), rng=np.random.default_rng(5).spawn(4)[1])
    np.testing.assert_array_equal(found.environments["Lyon"], alone.W)
    np.testing.assert_array_equal(found.pair.X_tilde[rows], alone.pair.X_tilde)


def test_labels_may_come_beside_the_table():
    table, y = frame()
    one = selector().fit(table, y)
    other = selector(environments=table["site"].to_numpy()).fit(table.drop(columns="site"), y)
    np.testing.assert_array_equal(one.W_, other.W_)


def test_on_the_command_line(select_and_rerun):
    table, y = frame()
    options = ["--target", "y", "--environments", "site", "--min-environments", 2]
    options += ["--feature-model", "gaussian", "--estimator", "lasso", "--no-verdict"]
    record, _ = select_and_rerun(table.assign(y=y), *options)
    assert record["parameters"]["min_environments"] == 2
    assert "in at least 2 of 3 environments" in record["explanation"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"environments": "sit"}, "environments='sit' is not known. Did you mean 'site'"),
        ({"min_environments": 4}, "min_environments=4: there are 3 environments"),
        ({"min_environments": 0}, "expected a whole number of at least 1"),
        ({"n_draws": 3}, "environments: n_draws is not supported beside it"),
        ({"n_knockoffs": 2}, "environments: n_knockoffs is not supported beside it"),
        ({"clusters": np.arange(600)}, "environments: clusters is not supported beside it"),
        ({"method": "conditional_test"}, "environments need W of each: use method='knockoffs'"),
        ({"environments": ["one"] * 600}, "all rows are of 'one', and at least two environments are needed"),
        ({"environments": ["a"] * 597 + ["b"] * 3}, "'b' has 3 rows with a target, and at least 5 are needed"),
        ({"environments": ["a"] * 599 + [None]}, "environments: row 599 has no label"),
        ({"environments": ["a", "b"]}, "environments has 2 labels and X has 600 rows"),
    ],
)
def test_what_does_not_go_with_it_is_refused(options, message):
    table, y = frame()
    if options.get("environments", "sit") != "sit":  # labels beside the table
        table = table.drop(columns="site")
    refuses(message, selector(**options).fit, table, y)


def test_the_environment_that_fails_is_named_and_batches_are_refused():
    table, y = frame()
    two = np.where(table["site"] == "Lyon", "no", np.where(y > 0, "yes", "no"))
    refuses("environment 'Lyon': ", selector().fit, table, two)
    refuses("environments are not supported in batches", fit_streamed, selector(), table.assign(y=y), "y")
    refuses("lambda paths are not supported with environments", selector().fit(table, y).lambda_path)
