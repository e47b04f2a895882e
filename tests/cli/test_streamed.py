"""knockoffs select on a table in batches: chosen by itself, said, recorded and run again."""

import json

import numpy as np
import polars as pl
import pytest
from tests.cli.running import run

from knockoffs.cli.select import why_streamed
from knockoffs.options import Options
from knockoffs.table import memory

SELECT = ("--target", "y", "--fdr", 0.2, "--feature-model", "gaussian", "--estimator", "lasso", "--no-verdict")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 12))
    y = X[:, :6].sum(axis=1) + rng.standard_normal(800)
    path = tmp_path / "big.parquet"
    names = [f"x{j}" for j in range(12)]
    pl.DataFrame(X, schema=names).with_columns(y=pl.Series(y), other=pl.Series(y)).write_parquet(path)
    return path


def little(monkeypatch, n_bytes):
    monkeypatch.setattr(memory, "available_memory", lambda: n_bytes)


def test_chosen_where_memory_is_short_and_run_again_where_it_is_not(table, tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        little(patch, 800 * 14 * 8 * 7)
        run("select", table, *SELECT, "--drop", "other", "--sample-rows", 300, "--out", tmp_path / "out")
    captured = capsys.readouterr()
    assert "in batches, because it would take about 0.7 MiB in memory" in captured.err
    assert "800 rows are read in batches; P^X is fitted on 300 of them" in captured.out
    content = json.loads((tmp_path / "out" / "selection.json").read_text())
    assert content["parameters"]["stream"] == "always" and content["parameters"]["sample_rows"] == 300
    assert content["data"]["n_rows"] == 800 and content["data"]["n_columns"] == 14
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["selection.csv", "selection.json"]
    run("rerun", tmp_path / "out" / "selection.json", table)
    assert "The answer is identical" in capsys.readouterr().out


def test_in_memory_where_it_fits_and_recorded_so(table, tmp_path, monkeypatch, capsys):
    run("select", table, *SELECT, "--method", "knockoffs", "--drop", "other", "--out", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "selection.json").read_text())["parameters"]["stream"] == "never"
    capsys.readouterr()
    little(monkeypatch, 800 * 12 * 8 * 5)  # enough to run, too little to be chosen
    run("rerun", tmp_path / "out" / "selection.json", table)
    assert "The answer is identical" in capsys.readouterr().out


def test_a_folder_and_a_report(table, tmp_path, capsys):
    folder = tmp_path / "folder"
    folder.mkdir()
    frame = pl.read_parquet(table).drop("other")
    frame[:300].write_parquet(folder / "a.parquet")
    frame[300:].write_parquet(folder / "b.parquet")
    page = tmp_path / "page.html"
    run("select", folder, *SELECT, "--sample-rows", 300, "--report", page)
    assert "read in batches" in page.read_text()
    in_parts = capsys.readouterr().out
    run("select", table, *SELECT, "--drop", "other", "--stream", "always", "--sample-rows", 300)
    assert capsys.readouterr().out == in_parts
    run("select", folder, *SELECT, "--stream", "never", status=2)


def test_text_is_read_in_batches_by_itself_to_the_answer_of_parquet(table, tmp_path, monkeypatch, capsys):
    text = tmp_path / "big.csv"
    pl.read_parquet(table).write_csv(text)
    little(monkeypatch, 2**20)
    monkeypatch.setattr("knockoffs.table.stream.BATCH_CELLS", 12 * 100)
    answers = []
    for path, how in ((text, "auto"), (table, "always")):
        run("select", path, *SELECT, "--drop", "other", "--sample-rows", 300, "--stream", how)
        captured = capsys.readouterr()
        answers.append(captured.out)
        reason = (
            "it would take about 2.1 MiB in memory, and 1.0 MiB are free"
            if path == text
            else "--stream always was given"
        )
        assert f"in batches, because {reason}" in captured.err
    assert answers[0] == answers[1]


def test_knockoffs_of_all_rows_are_kept(table, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("knockoffs.table.stream.BATCH_CELLS", 12 * 100)
    call = ("select", table, *SELECT, "--drop", "other", "--sample-rows", 300)
    run(*call, "--stream", "never", "--keep-knockoffs", tmp_path / "kept", status=2)
    run(*call, "--keep-knockoffs", tmp_path / "kept")
    assert "because --keep-knockoffs was given" in capsys.readouterr().err
    files = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert len(files) == 8 and files[1] == "rows-000000000100.parquet"
    kept, X = pl.read_parquet(tmp_path / "kept"), pl.read_parquet(table).drop("y", "other")
    assert kept.schema == X.schema and kept.shape == X.shape
    assert abs(np.corrcoef(kept["x0"], X["x0"])[0, 1]) < 0.2 and kept["x0"].n_unique() == 800
    run(*call, "--keep-knockoffs", tmp_path / "kept", status=1)
    assert "is not empty: name another folder" in capsys.readouterr().err


def test_what_cannot_fit_says_so_before_it_is_read(table, tmp_path, monkeypatch, capsys):
    little(monkeypatch, 1000)
    run("select", table, *SELECT, "--drop", "other", "--stream", "never", status=1)
    assert "or more, and 0.0 MiB are free" in capsys.readouterr().err


def test_calls_that_cannot_be(table, capsys):
    run("select", table, *SELECT, "--stream", "sometimes", status=2)
    run("select", table, *SELECT, "--stream", "always", "--report-paths", status=2)
    run("select", table, *SELECT, "--stream", "always", "--drop", "nothing", status=1)
    assert "drop='nothing'" in capsys.readouterr().err
    assert why_streamed(table, Options(target="y")) is None


@pytest.mark.parametrize("name", ["parts", "parts.parquet"])
@pytest.mark.parametrize("call", [("check",), ("sample", "--out", "knockoffs.parquet")])
def test_commands_that_read_one_file_say_so_of_a_folder(table, tmp_path, monkeypatch, capsys, call, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    (tmp_path / name / "a.parquet").write_bytes(table.read_bytes())
    run(call[0], name, *call[1:], status=1)
    assert f"{name}: this is a folder, which only select and test read" in capsys.readouterr().err
