"""The command ghost: files in, a record out that can be run again, and errors that name the file and the remedy."""

import json

import numpy as np
import polars as pl
import pytest
from scipy.linalg import toeplitz
from tests.cli.running import run

NAMES, N = [f"rs{j}" for j in range(35)], 2000


def study():
    """z-scores of 35 columns, of which twelve matter, and their correlations."""
    rng = np.random.default_rng(0)
    S = toeplitz(0.5 ** np.arange(35))
    beta = np.where(np.arange(35) % 3 == 0, 0.12, 0.0)
    return np.sqrt(N) * S @ beta + np.linalg.cholesky(S) @ rng.standard_normal(35), S


@pytest.fixture
def files(tmp_path):
    z, S = study()
    pl.DataFrame({"snp": NAMES, "z": z}).write_csv(tmp_path / "z.csv")
    np.save(tmp_path / "R.npy", S)
    order = np.random.default_rng(1).permutation(35)
    shuffled = pl.DataFrame(S[np.ix_(order, order)], schema=[NAMES[j] for j in order])
    shuffled.write_csv(tmp_path / "R.csv")
    return tmp_path


def call(files, *more, R="R.npy", **options):
    run("ghost", "--z", files / "z.csv", "--correlation", files / R, "--n", N, "--fdr", 0.2, *more, **options)


def test_the_same_answer_from_both_formats_and_again(files, capsys):
    call(files, "--out", files / "out")
    call(files, "--out", files / "other", R="R.csv")
    one, other = (json.loads((files / name / "selection.json").read_text()) for name in ("out", "other"))
    assert one["features"] == other["features"] and one["method"] == "ghost"
    assert sum(feature["selected"] for feature in one["features"]) >= 5
    assert set(one["data"]["files"]) == {"R.npy"}
    capsys.readouterr()
    run("rerun", files / "out" / "selection.json", files / "z.csv")
    said = capsys.readouterr().out
    assert "identical" in said and "provided that the correlations are those of the study" in said


def test_files_as_pandas_and_r_write_them_with_a_column_of_names_that_has_no_name(files, capsys):
    call(files, "--out", files / "out")
    z, S = study()
    pl.DataFrame({"": NAMES, "z": z}).write_csv(files / "z.csv")
    pl.DataFrame({"": NAMES, **dict(zip(NAMES, S, strict=True))}).write_csv(files / "R.csv")
    call(files, "--out", files / "other", R="R.csv")
    assert "the column '' names the rows" in capsys.readouterr().err
    one, other = (json.loads((files / name / "selection.json").read_text()) for name in ("out", "other"))
    assert one["features"] == other["features"]


def test_rerun_says_that_the_correlations_changed(files, capsys):
    call(files, "--out", files / "out")
    S = np.load(files / "R.npy")
    np.save(files / "R.npy", S * 0.9 + 0.1 * np.eye(35))
    run("rerun", files / "out" / "selection.json", files / "z.csv", status=1)
    assert "the file R.npy: SHA-256" in capsys.readouterr().out


def test_groups(files):
    rows = [f"{name},{'pair' if j < 2 else name}" for j, name in enumerate(NAMES)]
    (files / "groups.csv").write_text("\n".join(["column,group", *rows]) + "\n")
    call(files, "--groups", files / "groups.csv", "--out", files / "out")
    content = json.loads((files / "out" / "selection.json").read_text())
    assert [feature["name"] for feature in content["features"]][:2] == ["pair", "rs2"]
    call(files, "--groups", "auto")


@pytest.mark.parametrize(
    "change, status, message",
    [
        (lambda f: (f / "z.csv").write_text("snp,z\nrs0,1\nrs0,2\n"), 1, "names features twice: 'rs0'"),
        (lambda f: (f / "z.csv").write_text("snp,beta\nrs0,1\nrs1,2\n"), 2, "--scores 'z' is not a column"),
        (lambda f: (f / "z.csv").write_text("snp,z\nrs0,1\nrs1,\n"), 1, "z of 'rs1' is nan"),
        (lambda f: (f / "z.csv").write_text("snp,z\nrs0,a\nrs1,b\n"), 1, "holds labels, not z-scores"),
        (lambda f: (f / "R.npy").unlink(), 1, "there is no such file"),
        (lambda f: (f / "R.npy").write_bytes(b"no"), 1, "cannot be read as .npy"),
        (lambda f: np.save(f / "R.npy", np.eye(4)), 1, r"shape (4, 4) for 35"),
    ],
)
def test_errors(files, capsys, change, status, message):
    change(files)
    call(files, status=status)
    assert message in capsys.readouterr().err


def test_names_that_the_correlations_lack(files, capsys):
    text = (files / "R.csv").read_text().replace("rs7,", "other,", 1)
    (files / "R.csv").write_text(text)
    call(files, R="R.csv", status=1)
    assert "no correlations of 'rs7'" in capsys.readouterr().err


def test_what_is_needed(files, capsys):
    run("ghost", "--z", files / "z.csv", "--n", N, status=2)
    assert "--correlation is needed" in capsys.readouterr().err
    run("ghost", "--z", files / "z.csv", "--correlation", files / "R.npy", status=2)
    assert "--n is needed" in capsys.readouterr().err
