import numpy as np
import pytest

from knockoffs.experiments import new_user
from knockoffs.experiments.new_user import cells_of, named_in, try_table, within, write_page
from knockoffs.experiments.runner import Context

pd = pytest.importorskip("pandas")


@pytest.fixture
def frame(rng):
    X = pd.DataFrame(rng.standard_normal((120, 4)), columns=list("abcd"))
    X["id"] = [f"patient {i}" for i in range(120)]
    X["y"] = 2 * X["a"] + rng.standard_normal(120)
    return X


def test_a_table_that_runs(frame):
    row = try_table(frame, "y", drop=["id"])
    assert "error" not in row
    assert (row["rows"], row["columns"], row["missing"], row["kinds"]) == (120, 4, 0, "4 continuous")
    assert row["method"] == "conditional_test"
    assert "a" in row["selected"]
    assert len(cells_of({"package": "p", "table": "t", "target_name": "y"} | row)) == len(new_user.HEADER)


def test_a_refusal_names_the_column_that_has_to_go(frame):
    row = try_table(frame, "y")
    assert named_in(row["error"], frame.columns) == ["id"]


def test_a_mistake_of_ours_is_called_a_bug(frame, monkeypatch):
    monkeypatch.setattr("knockoffs.selector.KnockoffSelector.fit", lambda self, X, y: 1 / 0)
    assert try_table(frame, "y")["error"].startswith("BUG")


def test_time_is_out():
    row = within(0.01, "scikit-learn", "iris", "target")
    assert row["error"] == "not done within 0.01 s"


def test_an_answer_is_kept_and_no_answer_is_not(tmp_path, monkeypatch):
    answers = iter([{"error": "not done within 1 s"}, {"method": "knockoffs", "n_selected": 0, "verdict": "good"}])
    monkeypatch.setattr(new_user, "within", lambda *job: next(answers))
    context = Context(chunks=tmp_path)
    for said in ("error", "method", "method"):  # a third answer is not asked for
        assert said in new_user.kept(1.0, "scikit-learn", "iris", "target", context)


def test_packages_that_are_not_installed_are_left_out():
    lines = []
    config = new_user.Config(("no_such_package",))
    assert new_user.run(config, np.random.default_rng(0), Context(log=lines.append)) == []
    assert "not installed" in lines[0]


def test_the_page(tmp_path):
    refused = {"package": "p", "table": "t", "target_name": "y", "error": "no | good", "seconds": 1.0}
    write_page([refused], tmp_path / "page.md")
    assert "refused: no / good" in (tmp_path / "page.md").read_text()
    assert new_user.plot([refused]).axes
