"""The commands check and test: what the columns hold, a verdict without a target, and p-values of every feature."""

import json

import numpy as np
import polars as pl
import pytest
from tests.cli.running import run

from knockoffs.record.reading import read_selection


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Two linked numbers, a label and a count; some cells are missing."""
    rng, n = np.random.default_rng(0), 200
    size = rng.standard_normal(n)
    weight = (size + 0.5 * rng.standard_normal(n)).tolist()
    columns = {
        "size": size,
        "weight": [None if i % 17 == 0 else value for i, value in enumerate(weight)],
        "colour": rng.choice(["blue", "green", "red"], n),
        "visits": rng.poisson(2, n),
        "y": 2 * size + rng.standard_normal(n),
    }
    path = tmp_path_factory.mktemp("check") / "table.csv"
    pl.DataFrame(columns).write_csv(path)
    return path


def test_check_with_a_target_tries_remedies_and_prints_the_rate_of_each(tmp_path, capsys):
    """The last three columns bend along the first three, which a Gaussian does not know."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    X[:, 3:] = 0.8 * (X[:, :3] ** 2 - 1) / np.sqrt(2) + 0.6 * X[:, 3:]
    y = (X[:, :3] ** 2 + X[:, :3]).sum(axis=1) + 2 * rng.standard_normal(300)
    pl.DataFrame({**dict(zip("abcdef", X.T, strict=True)), "y": y}).write_csv(tmp_path / "bent.csv")
    run("check", tmp_path / "bent.csv", "--target", "y", "--feature-model", "gaussian")
    out = capsys.readouterr().out
    assert "Verdict: doubtful" in out or "Verdict: broken" in out
    tried = out[out.index("Tried, with the rate of wrong picks in trials (10 % allowed):") :].splitlines()
    assert tried[1].split()[:3] == ["as", "it", "is"]
    assert any(line.endswith("--feature-model auto") and " % (" in line for line in tried)
    assert tried[-1].startswith("What to do: ")


def test_check_says_what_the_columns_hold_and_gives_a_verdict(table, capsys):
    run("check", table, "--drop", "y")
    out = capsys.readouterr().out
    for name, kind in (("size", "continuous"), ("weight", "continuous"), ("colour", "nominal"), ("visits", "count")):
        assert any(name in line and kind in line for line in out.splitlines()), name
    assert "P^X is a latent Gaussian model" in out
    assert "good" in out
    assert "'y'" not in out


def test_kinds_are_overruled_on_the_command_line(table, capsys):
    run("check", table, "--drop", "y", "--kind", "visits=ordinal")
    assert any("visits" in line and "ordinal" in line for line in capsys.readouterr().out.splitlines())
    run("check", table, "--kind", "visits=ordinel", status=1)
    assert "ordinel" in capsys.readouterr().err


def test_check_sees_knockoffs_that_are_none(table, tmp_path, capsys):
    """Each column shuffled by itself: its margin stays, its link to the other is lost."""
    rng = np.random.default_rng(1)
    frame = pl.read_csv(table).drop("weight").with_columns(weight=pl.col("size") + 0.1 * rng.standard_normal(200))
    frame.write_csv(tmp_path / "t.csv")
    shuffled = pl.DataFrame({name: rng.permutation(frame[name].to_numpy()) for name in frame.columns})
    shuffled.write_csv(tmp_path / "k.csv")
    run("check", tmp_path / "t.csv", "--knockoffs", tmp_path / "k.csv")
    out = capsys.readouterr().out
    assert "broken" in out and "weight" in out


def test_check_refuses_what_it_does_not_know(table, capsys):
    run("check", table, "--feature-model", "gausian", status=2)
    assert "Did you mean 'gaussian'?" in capsys.readouterr().err
    run("check", table, "--drop", "z", status=2)
    assert "--drop 'z' is not a column" in capsys.readouterr().err


def test_columns_that_others_determine_are_dropped_by_one_option(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({name: rng.standard_normal(120) for name in "abcdefgy"})
    table = tmp_path / "t.csv"
    frame.with_columns(total=pl.col("a") + pl.col("b"), half=pl.col("c") / 2).write_csv(table)
    common = [table, "--feature-model", "gaussian"]
    run("select", *common, "--target", "y", "--fdr", "0.2", status=1)
    assert "drop=['total', 'half']" in capsys.readouterr().err
    for call in (
        ("select", *common, "--target", "y", "--fdr", "0.2", "--no-verdict", "--estimator", "lasso", "--out", tmp_path),
        ("check", *common),
        ("sample", *common, "--out", tmp_path / "k.csv"),
    ):
        run(*call, "--dependent", "drop")
        assert "'total' of 'a', 'b'; 'half' of 'c'" in capsys.readouterr().err, call[0]
    record = read_selection(tmp_path / "selection.json")
    assert record.parameters["dependent"] == "drop" and set(record.names) == set("abcdefg")
    assert "'half' of 'c'" in record.notes["dependent"] and "'half' of 'c'" in record.warnings[0]
    assert pl.read_csv(tmp_path / "k.csv").columns == list("abcdefgy")
    run("rerun", tmp_path / "selection.json", table)
    assert "identical" in capsys.readouterr().out


def test_test_gives_every_feature_a_p_value(table, tmp_path, capsys):
    run("test", table, "--target", "y", "--estimator", "lasso", "--no-verdict", "--out", tmp_path)
    out = capsys.readouterr().out
    assert "  size  ████████████████  p = " in out
    record = read_selection(tmp_path / "selection.json")
    assert record.method == record.parameters["method"] == "conditional_test"
    assert record.selected == ["size"]
    p_values = record.numbers("p_value")
    assert p_values[0] < 0.01 and ((p_values > 0) & (p_values <= 1)).all()
    assert "threshold" not in out and json.loads((tmp_path / "selection.json").read_text())["threshold"] is None
    run("rerun", tmp_path / "selection.json", table, "--jobs", 2)
    assert "The answer is identical" in capsys.readouterr().out


@pytest.mark.parametrize(
    "flag", [("--method", "knockoffs"), ("--draws", "5"), ("--importance-option", "rule=difference")]
)
def test_what_is_of_knockoffs_alone_is_no_option_of_tests(flag, table, capsys):
    run("test", table, "--target", "y", *flag, status=2)
    assert f"No such option: {flag[0]}" in capsys.readouterr().err


def test_groups_of_a_file_are_one_feature(table, tmp_path, capsys):
    (tmp_path / "groups.csv").write_text("column,group\nsize,body\nweight,body\n")
    options = ("--estimator", "lasso", "--fdr", 0.5, "--no-verdict", "--out", tmp_path)
    run("select", table, "--target", "y", "--groups", tmp_path / "groups.csv", *options)
    record = read_selection(tmp_path / "selection.json")
    assert sorted(record.names) == ["body", "colour", "visits"]
    assert list(record.data["files"]) == ["groups.csv"]
    run("rerun", tmp_path / "selection.json", table)
    run("select", table, "--target", "y", "--groups", tmp_path / "none.csv", "--no-verdict", status=1)
    assert "there is no such file" in capsys.readouterr().err
