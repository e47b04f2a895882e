"""The studies of the verdict, of scores and of a new user's tables, at a tiny size."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("torch")

from benchmarks.verdict_cases import CASES, Judged  # noqa: E402
from paper.runner import Context, read_table  # noqa: E402

from benchmarks import figures_default, new_user, score_study, verdict_study  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
CONTEXT = Context("cpu", 1)


# The verdict


def test_the_error_of_a_wrong_law_is_seen_by_the_trial():
    right, wrong = (verdict_study.one_data_set("conditional_test", "gaussian", 300, bend, 0) for bend in (0.0, 0.8))
    assert right["word"] == "good" and wrong["word"] != "good" and wrong["rate"] > right["rate"]


def test_a_study_goes_on_where_it_was_stopped(tmp_path):
    path, asked = tmp_path / "verdict_laws.csv", []

    def one(*task):
        asked.append(task)
        law = dict(zip(("method", "feature_model", "n", "bend", "seed"), task, strict=True))
        return law | {"error": 0.1, "word": "good", "rate": 0.05}

    tasks = list(verdict_study.laws((500,), 1))
    for some in (tasks[:3], tasks):
        verdict_study.extend(path, one, iter(some), 1.0, 1)
    assert asked == tasks
    with path.open() as file:
        assert len(verdict_study.summary_of_laws(list(csv.DictReader(file)))) == 2 + len(tasks)


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_a_pair(case, rng):
    made = CASES[case](150, rng)
    pair = made.pair if isinstance(made, Judged) else made
    assert len(pair) == 150
    assert pair.X.shape == pair.X_tilde.shape
    assert np.isfinite(pair.stacked).all()


def test_the_page_holds_the_numbers_of_the_study():
    with (RESULTS / "verdict.csv").open() as file:
        rows = list(csv.DictReader(file))
    page = (ROOT / "benchmarks" / "verdict.md").read_text()

    def count(column, valid):
        return sum(round(float(row[column]) * int(row["repetitions"])) for row in rows if row["valid"] == valid)

    n = {valid: sum(int(row["repetitions"]) for row in rows if row["valid"] == valid) for valid in "01"}
    assert f"{n['1']} data sets" in page and f"{n['1']} valid data sets and {n['0']} faulty ones" in page
    alarms, broken = count("doubtful_or_worse", "1"), count("broken", "1")
    said = f"{alarms} were called doubtful or worse ({100 * alarms / n['1']:.1f}%), {broken} of them broken"
    assert said in " ".join(page.split())
    faults = [row for row in rows if row["valid"] == "0" and row["n"] == "500"]
    shown = [f"{round(float(row['broken']) * 40)} of 40" for row in faults]
    table = page[page.index("**Faults**") : page.index("**The smallest excess")]
    assert table.count(" of 40") == len(faults) and sorted(re.findall(r"\d+ of 40", table)) == sorted(shown)


# Scores


def test_the_study_of_scores(tmp_path):
    few = ("lasso", "forest", "boosting")
    setting = score_study.Setting("tiny", 120, 6, 1, 2, n_non_nulls=4, labels="products", models=few, n_trees=5)
    table = score_study.run((setting,), 2, np.random.default_rng(0), CONTEXT)
    assert {row["model"] for row in table} == {*few, "best of two"}
    assert {row["evaluation"] for row in table} == {"in_sample", "cross_fitted", "-"}
    keys = ("model", "evaluation", "score", "loss")
    combinations = {tuple(row[key] for key in keys) for row in table}
    assert len(combinations) == len(table) / 2 == 6 * 12 + 1 + 1  # two levels; coefficients, and the best
    assert all(0 <= row["power"] <= 1 for row in table)


@pytest.mark.parametrize(
    "study, results, name",
    [(score_study, "scores", "scores_table"), (figures_default, "figures_default", "figures_default")],
)
def test_a_page_is_that_of_the_stored_table(study, results, name, tmp_path):
    study.write_page(read_table(RESULTS / f"{results}.csv"), tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text() == (ROOT / "benchmarks" / f"{name}.md").read_text()


# A new user


@pytest.fixture
def frame(rng):
    X = pd.DataFrame(rng.standard_normal((120, 4)), columns=list("abcd"))
    X["id"] = [f"patient {i}" for i in range(120)]
    X["y"] = 2 * X["a"] + rng.standard_normal(120)
    return X


def test_a_table_that_runs(frame):
    row = new_user.try_table(frame, "y", drop=["id"])
    assert "error" not in row
    assert (row["rows"], row["columns"], row["missing"], row["kinds"]) == (120, 4, 0, "4 continuous")
    assert row["method"] == "conditional_test" and row["selected"] == row["discoveries"] == "a"
    rows = [{"package": "p", "table": "t", "target_name": "y"} | row]
    assert len(new_user.cells_of(rows)) == len(new_user.HEADER)


def test_a_refusal_names_the_column_that_has_to_go(frame):
    row = new_user.try_table(frame, "y")
    assert new_user.named_in(row["error"], frame.columns) == ["id"]


def test_agreement_of_seeds():
    row = {"selected": "a; b", "small": '{"a": 0.01, "b": 0.04}', "verdict": "good", "seconds": 2.0}
    other = row | {"selected": "a", "small": '{"a": 0.03}'}
    found = new_user.agreement([row, row, other])
    assert not found["same"] and found["words"] == "good" and found["seconds"] == 2
    assert found["jaccard"] == pytest.approx((1 + 0.5 + 0.5) / 3) and found["ratio"] == pytest.approx(3)


def test_packages_that_are_not_installed_are_left_out(capsys):
    assert new_user.run(("no_such_package",)) == []
    assert "not installed" in capsys.readouterr().out
