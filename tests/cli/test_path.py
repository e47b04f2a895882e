"""``knockoffs path``: the path is that of the selection, its pictures open, and a path to nowhere is refused."""

import sys

import numpy as np
import polars as pl
import pytest

from knockoffs.cli import app as cli
from knockoffs.record.reading import read_selection

NAMES = ["_hidden", "cost in $ and $", "two\nlines", *(f"x{j}" for j in range(9))]
GAUSSIAN = ("--feature-model", "gaussian", "--seed", 3)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Twelve features with odd names, of which the first three matter; y is a number, kind one of three classes."""
    path = tmp_path_factory.mktemp("path") / "table.csv"
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, len(NAMES)))
    y = X[:, :3] @ [1.0, 2.0, 3.0] + 0.5 * rng.standard_normal(150)
    kind = np.array(["a", "b", "c"])[np.digitize(y, [-1.5, 1.5])]
    weight = rng.uniform(0.5, 1.5, 150)
    squares = (X[:, :3] ** 2).sum(axis=1)
    pl.DataFrame(X, schema=NAMES).with_columns(y=y, kind=kind, weight=weight, squares=squares).write_csv(path)
    return path


def run(*arguments, status=0):
    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in arguments])
    assert ended.value.code == status


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("y", ()),
        ("y", ("--weights", "weight", "--importance-option", "rows=cross-fitted", "--importance-option", "n-folds=3")),
        ("kind", ("--importance-option", "loss=brier")),
        ("squares", ()),  # boosting predicts it, and is chosen
    ],
)
def test_w_at_one_is_that_of_the_selection(table, tmp_path, target, options):
    """Lambda 0 moves nothing, and 1 is Swap: the same knockoffs, swaps, fits and folds as of select."""
    unused = [name for name in ("y", "kind", "weight", "squares") if name != target and name not in options]
    shared = ("--target", target, *GAUSSIAN, *options, *(part for name in unused for part in ("--drop", name)))
    out = tmp_path / "path.csv"
    run("path", table, *shared, "--column", "x0", "--lambda-range", 0, 2, "--points", 3, "--out", out)
    run("select", table, *shared, "--importance", "swap", "--fdr", 0.2, "--out", tmp_path)
    frame = pl.read_csv(out)
    assert frame.columns == ["feature", "lambda", "W"]
    assert frame["feature"].to_list() == [name for name in NAMES for _ in range(3)]
    assert frame["lambda"].to_list() == [0.0, 1.0, 2.0] * len(NAMES)
    W = frame["W"].to_numpy().reshape(-1, 3)
    np.testing.assert_allclose(W[:, 0], 0, atol=1e-12)
    np.testing.assert_allclose(W[:, 1], read_selection(tmp_path / "selection.json").W, rtol=1e-9, atol=1e-12)
    assert (W[:3, 2] > W[3:, 2].max()).all()  # what matters is far out
    chosen = read_selection(tmp_path / "selection.json").notes["estimator"]
    assert chosen.startswith("estimator='boosting'" if target == "squares" else "estimator='lasso'")


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_pictures_open_and_name_the_columns(table, tmp_path, ending, capsys):
    out = tmp_path / f"path{ending}"
    columns = [part for name in NAMES[:3] for part in ("--column", name)]
    drop = ("--drop", "kind", "--drop", "weight", "--drop", "squares")
    run("path", table, "--target", "y", *drop, *columns, *GAUSSIAN, "--fake", "permuted", "--out", out)
    assert f"wrote {out}" in capsys.readouterr().err
    content = out.read_bytes()
    if ending == ".png":
        from matplotlib.image import imread

        picture = imread(out)
        assert picture.shape[0] > 500 and picture.shape[1] > 1000
        assert len(np.unique(picture[..., :3].reshape(-1, 3), axis=0)) > 20  # lines of several colours
    elif ending == ".svg":
        text = content.decode()
        for shown in (
            "_hidden",
            "cost in $ and $",
            "two\\nlines",
            "9 others",
            "1: permuted",
            "squared error",
            "path for y",
        ):
            assert shown in text
    else:
        assert content.startswith(b"%PDF")


BAD = [
    (["--column", "x99"], "--column 'x99' is not a column of the table"),
    (["--column", "y"], "--column 'y' is not a feature"),
    (["--column", "x0", "--out", "path.gif"], "the ending gives the format"),
    (["--column", "x0", "--lambda-range", "3", "3"], "lambda range (3, 3) is empty"),
    (["--column", "x0", "--lambda-range", "-1", "3"], "lambda range (-1, 3) must be finite and start at 0"),
    (["--column", "x0", "--points", "1"], "--points"),
    (["--column", "x0", "--fake", "swaped"], "Did you mean 'swapped'?"),
    (["--column", "x0", "--importance-option", "loss=squared"], "Did you mean 'squared_error'?"),
    (["--column", "x0", "--importance-option", "rule=difference"], "--importance-option='rule' is not known"),
    ([], "--column"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=range(len(BAD)))
def test_a_bad_call_exits_with_2_and_one_sentence(table, capsys, options, message):
    run("path", table, "--target", "y", *options, status=2)
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_a_loss_of_the_other_task_is_refused(table, tmp_path, capsys):
    options = ("--target", "y", "--drop", "kind", "--column", "x0", "--out", tmp_path / "p.csv")
    options = (*options, "--importance-option", "loss=log-loss")
    run("path", table, *options, status=1)
    assert "loss='log_loss' is not for regression: use 'squared_error'" in capsys.readouterr().err
    assert not (tmp_path / "p.csv").exists()


def test_without_matplotlib_the_extra_is_named(table, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    options = ("--target", "y", "--drop", "kind", "--column", "x0", *GAUSSIAN)
    run("path", table, *options, "--out", tmp_path / "p.png", status=1)
    assert "pip install 'knockoffs[plots]'" in capsys.readouterr().err
    run("path", table, *options, "--out", tmp_path / "p.csv")  # the numbers need no pictures
