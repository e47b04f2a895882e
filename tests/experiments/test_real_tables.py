from dataclasses import replace

import numpy as np
import pytest

from knockoffs.conditional_tests.choice import few_for_knockoffs
from knockoffs.experiments import real_tables
from knockoffs.experiments.real_columns import first_of_copies, load_columns, varies
from knockoffs.experiments.real_page import too_high
from knockoffs.experiments.real_tables import Config, rows_of, selected, write_page
from knockoffs.experiments.runner import Context
from knockoffs.selector import KnockoffSelector

SMALL = Config(("diabetes",), ("linear",), repetitions=2, best_cells=0, test_cells=0)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    context = Context(n_jobs=1, chunks=tmp_path_factory.mktemp("chunks"))
    found = real_tables.run(SMALL, np.random.default_rng(0), context)
    lines = []
    again = real_tables.run(SMALL, np.random.default_rng(0), replace(context, log=lines.append))
    assert again == found  # nothing is done twice
    assert not any("repetitions to do" in line for line in lines)
    return found


def test_every_method_that_runs_has_a_row_for_each_level(rows):
    methods = {row["method"] for row in rows}
    assert (
        {"default, lasso", "mixture", "one Gaussian"}
        <= methods
        <= set(real_tables.METHODS) - {"default", "default, tests"}
    )
    assert len(rows) == 2 * len(methods)
    assert all(row["repetitions"] == 2 and row["n"] == 442 and row["d"] == 10 for row in rows)


def test_the_page_and_the_figure(rows, tmp_path):
    write_page(rows, tmp_path / "tables.md")
    text = (tmp_path / "tables.md").read_text()
    assert "| diabetes | 442 | 10 | 0.0 % |" in text
    assert "## Linear labels, target 0.2" in text
    assert real_tables.plot(rows).axes


def test_time_that_is_out_leaves_repetitions_out():
    lines = []
    context = Context(n_jobs=1, log=lines.append)
    assert real_tables.run(replace(SMALL, minutes=0.0), np.random.default_rng(0), context) == []
    assert any("time is out before repetition 1" in line for line in lines)


def test_fdr_and_power_by_hand():
    table = load_columns("diabetes", 500, np.random.default_rng(0))
    truth = np.arange(10) < 5
    W = np.where(truth, 2.0, 0.0)
    W[[8, 9]] = 1.0  # two nulls follow five that matter: both pass at 0.2, five over five and then 1 + 0 over 7
    W[5] = -0.5
    known = {("linear", 0): {"truth": truth, "W/mixture": W, "seconds/mixture": np.array(1.0)}}
    at = {row["target_fdr"]: row for row in rows_of("diabetes", table, known)}
    assert at[0.2]["fdr"] == pytest.approx(2 / 7)
    assert at[0.2]["power"] == 1.0
    assert (at[0.1]["fdr"], at[0.1]["power"]) == (0.0, 0.0)
    assert at[0.2]["worst_null"] in (table.names[8], table.names[9])


def test_the_default_is_what_a_user_gets_at_each_level():
    table = load_columns("breast cancer", 500, np.random.default_rng(0))
    d = table.X.shape[1]
    assert 20 <= d < 40
    truth = np.arange(d) < 5
    answers = {
        "W/default": np.where(truth, 2.0, -1.0),
        "W/default, tests": np.where(truth & (np.arange(d) > 0), 0.95, 0.0),
    }
    times = {"seconds/default": np.array(1.0), "seconds/default, tests": np.array(2.0)}
    known = {("linear", 0): {"truth": truth} | answers | times}
    rows = rows_of("breast cancer", table, known)
    at = {row["target_fdr"]: row for row in rows if row["method"] == "default"}
    assert (at[0.2]["power"], at[0.2]["seconds"]) == (1.0, 1.0)  # knockoffs, which select five or more
    assert (at[0.1]["power"], at[0.1]["seconds"]) == (0.8, 2.0)  # tests: knockoffs would need ten
    y = table.X[:, 0] + np.random.default_rng(0).standard_normal(len(table))
    quick = {"feature_model": "gaussian", "estimator": "lasso", "verdict": False, "random_state": 0}
    chosen = [KnockoffSelector(q, **quick).fit(table.X, y).selection_.method for q in (0.2, 0.1)]
    assert chosen == ["knockoffs", "conditional_test"]


def test_the_tests_of_the_default_are_run_wherever_it_may_take_them():
    table = load_columns("breast cancer", 500, np.random.default_rng(0))
    wide = replace(table, X=np.tile(table.X, 2)[:, :39])
    most = [d for d in range(1, 60) if few_for_knockoffs(d, min(real_tables.TARGETS), len(table))][-1]
    assert most == 39 and real_tables.affordable("default, tests", wide, ("linear", 0), Config())


def test_tests_select_by_their_q_values():
    assert selected("default, tests", 1 - np.array([0.05, 0.15, 0.5]), 0.1).tolist() == [True, False, False]
    assert selected("default, tests", 1 - np.array([0.05, 0.15, 0.5]), 0.2).tolist() == [True, True, False]


def test_bold_is_above_two_standard_errors():
    assert too_high({"fdr": 0.25, "fdr_se": 0.02, "target_fdr": 0.2})
    assert not too_high({"fdr": 0.25, "fdr_se": 0.03, "target_fdr": 0.2})


def test_copies_and_constants_are_left_out():
    alike = np.eye(4)
    alike[0, 2] = alike[2, 0] = 0.995
    assert first_of_copies(alike).tolist() == [0, 1, 3]
    assert not varies(np.r_[np.zeros(50), 1.0, np.nan])
    assert varies(np.r_[np.zeros(50), np.ones(10)])


def test_a_table_that_is_not_there_is_left_out(tmp_path):
    lines = []
    config = replace(SMALL, tables=("NHANES",))
    context = Context(n_jobs=1, data_folder=tmp_path, log=lines.append)
    assert real_tables.run(config, np.random.default_rng(0), context) == []
    assert "left out" in lines[0]
