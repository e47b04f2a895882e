"""The command line: what it prints and writes, its exit codes, and that it starts at once."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.cli.running import SOURCE, run, run_apart

import knockoffs
from knockoffs.cli import app as cli
from knockoffs.record.reading import read_selection
from knockoffs.table.files import read_table_file

NAMES = [*(f"gene {j}" for j in range(12)), "[bold]x[/bold]", "two\nlines", "=SUM(A1)"]


def write_table(folder, ending=".csv", n=200, **more):
    """Fifteen features with odd names, of which the first six and the oddest three matter."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, len(NAMES)))
    y = 3 * X[:, [0, 1, 2, 3, 4, 5, 12, 13, 14]].sum(axis=1) + rng.standard_normal(n)
    frame = pl.DataFrame(X, schema=NAMES).with_columns(y=y, **more)
    path = folder / f"table{ending}"
    (frame.write_parquet if ending == ".parquet" else frame.write_csv)(path)
    return path


BY_KNOCKOFFS = ("--method", "knockoffs")  # of tables with few columns too
SELECT = ("--target", "y", "--fdr", 0.2, "--seed", 0, "--feature-model", "gaussian", "--no-verdict", *BY_KNOCKOFFS)


@pytest.fixture(scope="module")
def selected(tmp_path_factory):
    """A table, and the folder of its selection."""
    folder = tmp_path_factory.mktemp("selected")
    table = write_table(folder)
    run("select", table, *SELECT, "--out", folder / "out")
    return table, folder / "out"


# ---- start-up -----------------------------------------------------------------------------------------------


def test_the_command_line_starts_without_the_heavy_libraries():
    heavy = ("numpy", "scipy", "sklearn", "torch", "numba", "pandas", "polars", "joblib", "narwhals")
    code = f"import sys, knockoffs, knockoffs.cli.app; print([name for name in {heavy} if name in sys.modules])"
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert result.stdout.strip() == "[]"


def test_the_selector_is_imported_without_what_a_fit_alone_needs():
    """Scikit-learn's base classes bring SciPy and, where it is there, pandas; of ours only the class itself comes."""
    heavy = ("numba", "torch", "matplotlib", "polars", "dask", "jinja2", "lightgbm", "xgboost")
    code = (
        f"import sys; from knockoffs import KnockoffSelector; print([name for name in {heavy} if name in sys.modules], "
        "*sorted(name for name in sys.modules if name.partition('.')[0] == 'knockoffs'))"
    )
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    ours = ["knockoffs", "knockoffs.errors", "knockoffs.report", "knockoffs.report.display", "knockoffs.selector"]
    assert result.stdout.split() == ["[]", *ours]


COMMANDS = [command.name or command.callback.__name__ for command in cli.app.registered_commands]


def examples_of(text):
    """Calls that a help shows before its options, without the name of the program."""
    return re.findall(r"(?:^|  )  knockoffs ([a-z].*)$", text.partition("Options:")[0], re.MULTILINE)


def test_the_help_shows_every_command_by_what_one_wants_with_a_call(capsys):
    run("--help")
    calls = examples_of(capsys.readouterr().out)
    assert sorted(call.split()[0] for call in calls) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_shows_calls_whose_options_it_has(command, capsys):
    run(command, "--help")
    text = capsys.readouterr().out
    calls = examples_of(text)
    assert calls and all(call.split()[0] == command for call in calls)
    options = text[text.index("Options:") :]
    for flag in re.findall(r"--[a-z-]+", " ".join(calls)):
        assert re.search(rf"^  (--[a-z-]+ / )?{flag}\b", options, re.MULTILINE), flag


def test_a_missing_extra_is_named_before_any_work(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("knockoffs.errors.find_spec", lambda name: None)
    run("select", "nowhere.csv", "--target", "y", "--estimator", "neural", status=1)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1 and told[0].endswith("pip install 'knockoffs[neural]'.")
    assert not list(tmp_path.iterdir())


def test_a_package_that_turns_out_to_be_missing_ends_in_a_sentence(capsys, monkeypatch):
    def work(*arguments, **options):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(cli, "app", work)
    run("demo", status=1)
    assert (
        capsys.readouterr().err
        == "knockoffs: this needs torch, which is not installed: pip install 'knockoffs[neural]'.\n"
    )


def test_no_command_shows_the_help_and_exits_with_2():
    result = run_apart()
    assert result.returncode == 2
    assert "select" in result.stderr


# ---- select -------------------------------------------------------------------------------------------------


def test_select_prints_a_table_and_a_sentence(tmp_path, capsys):
    run("select", write_table(tmp_path), *SELECT)
    out, err = capsys.readouterr()
    first, _, *rows = out.splitlines()
    assert re.fullmatch(r"(\d+) of 15 features selected for y \(false discovery rate 0.2\)", first)
    shown = [re.fullmatch(r"  (.*?) +([▏▎▍▌▋▊▉█]+) +W = \S+", row) for row in rows[: int(first.split()[0])]]
    assert all(shown) and [len(row[2]) for row in shown] == sorted((len(row[2]) for row in shown), reverse=True)
    assert {"[bold]x[/bold]", "two\\nlines", "=SUM(A1)"} <= {row[1] for row in shown}  # no markup, no broken line
    assert "\nVerdict: none. It was not asked for, or there are fewer than 50 rows.\nNext step: " in out
    assert "the model of the features, P^X, is right" in out
    assert "reading" in err
    assert "\x1b" not in out + err  # plain lines in a pipe
    assert os.listdir(tmp_path) == ["table.csv"]  # nothing is written unasked


def test_selection_json_holds_everything(selected):
    table, folder = selected
    content = json.loads((folder / "selection.json").read_text())
    assert content["parameters"]["seed"] == 0
    assert content["parameters"]["fdr"] == 0.2
    assert content["parameters"]["feature_model"] == "gaussian"
    assert content["data"]["file"] == "table.csv"
    assert content["data"]["n_rows"] == 200
    assert len(content["data"]["sha256"]) == 64
    assert content["versions"].keys() >= {"python", "knockoffs", "numpy", "scipy", "scikit-learn", "numba"}
    assert [feature["name"] for feature in content["features"]] == NAMES
    for feature in content["features"]:
        assert feature["W"] == pytest.approx(feature["Z"] - feature["Z_tilde"], abs=0)
        assert feature["selected"] == (feature["W"] >= content["threshold"])
    assert "false discovery rate 0.2" in content["explanation"]


def test_selection_csv_can_be_read_by_others(selected):
    _, folder = selected
    frame = pd.read_csv(folder / "selection.csv")
    assert set(frame["name"]) == {*NAMES[:-1], "'=SUM(A1)"}  # a spreadsheet shows the name and runs nothing
    assert frame["W"].is_monotonic_decreasing
    record = read_selection(folder / "selection.json")
    assert {name.removeprefix("'") for name in frame["name"][frame["selected"]]} == set(record.selected)


@pytest.mark.parametrize("ending", [".csv.gz", ".tsv", ".parquet"])
def test_every_format_gives_the_same_answer(selected, tmp_path, ending):
    table, folder = selected
    other = tmp_path / f"table{ending}"
    frame = pl.read_csv(table)
    if ending == ".parquet":
        frame.write_parquet(other)
    else:
        frame.to_pandas().to_csv(other, sep="\t" if ending == ".tsv" else ",", index=False)
    run("select", other, *SELECT, "--out", tmp_path)
    old, new = (read_selection(place / "selection.json") for place in (folder, tmp_path))
    np.testing.assert_array_equal(old.W, new.W)


def test_columns_can_be_left_out(tmp_path):
    table = write_table(tmp_path, city=pl.Series(["Bern", "Basel"] * 100), id=pl.Series(range(200)))
    run("select", table, *SELECT, "--drop", "city", "--drop", "id", "--out", tmp_path)
    record = read_selection(tmp_path / "selection.json")
    assert record.names == NAMES
    assert record.parameters["drop"] == ["city", "id"]
    run("select", table, *SELECT, "--drop", "city, id", "--out", tmp_path)
    assert read_selection(tmp_path / "selection.json").names == NAMES


def test_a_run_that_selects_nothing_says_why(tmp_path, capsys):
    table = tmp_path / "noise.csv"
    rng = np.random.default_rng(3)
    pl.DataFrame(rng.standard_normal((100, 16)), schema=[*"abcdefghijklmnop"]).write_csv(table)
    options = ("--target", "p", "--fdr", 0.1, "--feature-model", "gaussian", "--method", "knockoffs", "--out", tmp_path)
    run("select", table, *options, "--no-verdict")
    out = capsys.readouterr().out
    assert "Nothing is selected" in out
    assert "\nNearest, not selected:\n" in out
    assert json.loads((tmp_path / "selection.json").read_text())["threshold"] == "inf"
    assert read_selection(tmp_path / "selection.json").threshold == np.inf


# ---- rerun --------------------------------------------------------------------------------------------------


def test_rerun_on_other_data_says_what_differs(selected, tmp_path, capsys):
    table, folder = selected
    other = tmp_path / "table.csv"
    pl.read_csv(table).with_columns(pl.col("gene 0") * 2 + pl.col("gene 11")).write_csv(other)
    run("rerun", folder / "selection.json", other, status=1)
    out = capsys.readouterr().out
    assert "Different: the data: SHA-256" in out
    assert "Different in the answer: W, the most for" in out


def test_rerun_with_other_versions_says_so(selected, tmp_path, capsys):
    table, folder = selected
    content = json.loads((folder / "selection.json").read_text())
    content["versions"]["numpy"] = "1.0"
    (tmp_path / "selection.json").write_text(json.dumps(content))
    run("rerun", tmp_path / "selection.json", table)
    out = capsys.readouterr().out
    assert "Different: the version of numpy: 1.0 then" in out
    assert "The answer is identical" in out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: "[]", "this is not a selection.json"),
        (lambda content: "{", "cannot be read as a selection"),
        (lambda content: json.dumps(content | {"format": 9}), "format 9, and this version reads formats 1 to 3"),
        (
            lambda content: json.dumps(content | {"parameters": {"target": "y"}}),
            "parameters: 'drop', 'fdr', 'seed' not there",
        ),
        (
            lambda content: json.dumps(content | {"parameters": content["parameters"] | {"magic": 1}}),
            "parameters: 'magic' not known to this version",
        ),
    ],
)
def test_a_file_that_is_no_selection_is_refused(selected, tmp_path, capsys, change, message):
    table, folder = selected
    content = json.loads((folder / "selection.json").read_text())
    (tmp_path / "selection.json").write_text(change(content))
    run("rerun", tmp_path / "selection.json", table, status=1)
    assert message in capsys.readouterr().err


# ---- sample and demo ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_sample_writes_knockoffs_in_the_format_that_came_in(tmp_path, ending):
    table = write_table(tmp_path)
    out = tmp_path / f"knockoffs{ending}"
    run("sample", table, "--feature-model", "gaussian", "--drop", "y", "--out", out)
    frame, before = read_table_file(out), read_table_file(table)
    assert list(frame.columns) == NAMES
    assert len(frame.columns) == 15 and len(frame["gene 0"]) == 200
    # the features are independent, so their knockoffs can be: 5 standard errors over 200 rows are 0.35, a copy has 1
    assert abs(np.corrcoef(frame["gene 0"], before["gene 0"])[0, 1]) < 0.6


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_knockoffs_of_a_table_with_gaps_come_with_the_table_they_are_of(tmp_path, capsys, ending):
    rng = np.random.default_rng(0)
    whole = {f"x{j}": rng.normal(size=80).round(3) for j in range(4)}
    gaps = {name: rng.random(80) < 0.1 for name in whole}
    frame = pl.DataFrame({n: [None if g else v for v, g in zip(whole[n], gaps[n], strict=True)] for n in whole})
    table, out, completed = (tmp_path / f"{name}{ending}" for name in ("table", "k", "k.completed"))
    frame.write_csv(table) if ending == ".csv" else frame.write_parquet(table)
    run("sample", table, "--out", out)
    assert "Use the knockoffs with this table" in capsys.readouterr().err
    made, filled = read_table_file(out), read_table_file(completed)
    for name in whole:
        seen, drawn = filled[name].to_numpy(), made[name].to_numpy()
        np.testing.assert_array_equal(seen[~gaps[name]], whole[name][~gaps[name]])
        assert not np.isnan(seen).any() and not np.isnan(drawn).any()
    run("sample", table, "--out", tmp_path / f"other{ending}")
    (tmp_path / f"other{ending}").unlink()
    run("sample", table, "--out", tmp_path / f"other{ending}", status=1)
    assert f"other.completed{ending} is there already" in capsys.readouterr().err


def test_sample_is_the_same_for_the_same_seed(tmp_path):
    table = write_table(tmp_path)
    for name, seed in (("a.csv", 1), ("b.csv", 1), ("c.csv", 2)):
        run("sample", table, "--feature-model", "gaussian", "--seed", seed, "--out", tmp_path / name)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes() != (tmp_path / "c.csv").read_bytes()


def test_options_of_the_feature_model(tmp_path, capsys):
    table = write_table(tmp_path)
    options = (
        "sample",
        table,
        "--feature-model",
        "gaussian",
        "--out",
        tmp_path / "k.csv",
        "--force",
        "--feature-model-option",
    )
    run(*options, "diagonal=equicorrelated")
    run(*options, "diagonl=mvr", status=1)
    assert "Did you mean 'diagonal'?" in capsys.readouterr().err
    run(*options, "diagonal", status=2)
    run("sample", table, "--feature-model", "hmm", *options[4:], "n_states=two", status=1)
    assert "the feature model could not be fitted with n_states='two'" in capsys.readouterr().err.splitlines()[-1]


def test_demo_finds_what_the_price_of_houses_depends_on(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("demo")
    out = capsys.readouterr().out
    assert "Verdict: " in out and "Next step: " in out
    assert "5 columns matter (area, garden, built, condition, km to centre)" in out
    assert "Found: 5 of 5. Left out, rightly: " in out and "FALSE" not in out
    folder = tmp_path / "knockoffs-demo"
    assert {path.name for path in folder.iterdir()} == {"houses.csv", "report.html", "selection.csv", "selection.json"}
    assert f"The report: {folder / 'report.html'}" in out
    calls = re.findall(r"^  knockoffs (\w+)", out.split("Go on with")[1], re.MULTILINE)
    assert calls == ["check", "select", "app"]


def test_the_demo_replaces_its_own_files_alone(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("knockoffs.cli.select.run_selection", lambda *given: pytest.fail("the work was begun"))
    (tmp_path / "report.html").write_text("mine")
    run("demo", "--out", tmp_path, status=1)
    assert "--force" in capsys.readouterr().err and (tmp_path / "report.html").read_text() == "mine"
    (tmp_path / "report.html").unlink()
    (tmp_path / "houses.csv").write_text("mine")
    run("demo", "--out", tmp_path, status=1)
    assert "--force" in capsys.readouterr().err and (tmp_path / "houses.csv").read_text() == "mine"


# ---- bad calls and bad data ---------------------------------------------------------------------------------


BAD_CALLS = [  # arguments that are none: tests/hostile/test_arguments.py
    (["--target", "z"], "--target 'z' is not a column of the table"),
    (["--target", "gene_0"], "Did you mean 'gene 0'?"),
    (["--target", "y", "--fdr", "20"], "fdr=20 is not between 0 and 1. Did you mean 0.2?"),
    (["--target", "y", "--fdr", "high"], "--fdr"),
    (["--target", "y", "--drop", "nothing"], "--drop 'nothing' is not a column"),
    (["--target", "y", "--importance-option", "los=accuracy"], "--importance-option='los' is not known. Did you mean"),
    (["--target", "y", "--importance-option", "loss"], "--importance-option 'loss': expected NAME=VALUE"),
    (["--target", "y", "--weights", "y"], "--weights 'y' is the target"),
    (["--target", "y", "--weights", "z"], "--weights 'z' is not a column"),
    (["--target", "y", "--knockoffs", "k.csv", "--feature-model", "gaussian"], "leave out --feature-model"),
    (["--target", "y", "--seed", "-1"], "--seed"),
    (["--target", "y", "--jobs", "0"], "--jobs=0: expected a whole number that is not 0"),
    (["--target", "GENE-0"], "Did you mean 'gene 0'?"),
    (
        ["--target", "y", "--drop", "gene 1,gene_2"],
        "--drop 'gene_2' is not a column of the table. Did you mean 'gene 2'?",
    ),
    (["--tagret", "y"], "No such option: --tagret"),
    ([], "--target"),
]


@pytest.mark.parametrize(("options", "message"), BAD_CALLS, ids=range(len(BAD_CALLS)))
def test_a_bad_call_exits_with_2_and_one_sentence(selected, capsys, options, message):
    run("select", selected[0], *options, status=2)
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err.splitlines()[-1]
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("nowhere.csv", None, "nowhere.csv: there is no such file"),
        ("hole.csv", "a,y\n1,2\n,3\n" + "4,5\n" * 5, "X contains NaN in column 'a', the first in row 1"),
        ("text.csv", "a,y\n1,2\nu,3\n" + "4,5\n" * 5, "labels, not numbers, in column 'a', for instance '1'"),
        ("one.csv", "a,y\n1,2\n3,2\n4,2\n5,2\n6,2\n7,2\n", "y has the one value 2 in all 6 rows"),
        ("narrow.csv", "a,b,y\n1,2,3\n4,1,6\n7,8,9\n2,3,1\n1,1,0\n", "fdr=0.2 can never select with 2 features"),
        ("copy.csv", "a,b,y\n1,2,1\n4,1,4\n7,8,7\n2,3,2\n1,1,1\n", "column 'a' of X equals y in every row"),
    ],
)
def test_bad_data_exit_with_1_and_one_sentence(tmp_path, capsys, name, content, message):
    if content is not None:
        (tmp_path / name).write_text(content)
    run("select", tmp_path / name, *SELECT, "--out", tmp_path / "out", status=1)
    err = capsys.readouterr().err
    assert message in err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


# ---- families by their name ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    """Six columns of letters, six of counts, six of numbers."""
    folder = tmp_path_factory.mktemp("letters")
    rng = np.random.default_rng(0)
    columns = {f"site {j}": rng.choice(["A", "C", "G"], 80) for j in range(6)}
    pl.DataFrame(columns).write_csv(folder / "letters.csv")
    pl.DataFrame({f"word {j}": rng.poisson(3, 80) for j in range(6)}).write_csv(folder / "counts.csv")
    pl.DataFrame(rng.standard_normal((80, 6)), schema=[*"abcdef"]).write_csv(folder / "numbers.csv")
    return folder


@pytest.mark.parametrize(
    ("family", "table", "option"),
    [
        ("naive-bayes", "letters", "n_classes=2"),
        ("lda", "counts", "n_topics=2"),
        ("mixture", "numbers", "n_components=2"),
    ],
)
def test_sample_by_families_of_letters_counts_and_numbers(letters, tmp_path, family, table, option):
    """Into the table's folder, so in the table's format; csv and parquet have the same numbers."""
    before = pl.read_csv(letters / f"{table}.csv")
    before.write_csv(tmp_path / "table.csv")
    before.write_parquet(tmp_path / "table.parquet")
    for ending in ("csv", "parquet"):
        options = ("--feature-model", family, "--feature-model-option", option, "--out", tmp_path)
        run("sample", tmp_path / f"table.{ending}", *options)
    after = pl.read_parquet(tmp_path / "table.knockoffs.parquet")
    assert after.equals(pl.read_csv(tmp_path / "table.knockoffs.csv"))
    assert after.schema == before.schema
    assert after.shape == before.shape
    assert not after.equals(before)
    if table == "letters":
        assert set(after.to_numpy().ravel()) == {"A", "C", "G"}


# ---- models, scores and losses by their name -----------------------------------------------------------------


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    """Eight features, of which the first four matter to a number, to two classes and to three; and weights."""
    path = tmp_path_factory.mktemp("targets") / "table.csv"
    rng = np.random.default_rng(1)
    X = rng.standard_normal((160, 8))
    number = X[:, :4].sum(axis=1) + 0.3 * rng.standard_normal(160)
    columns = {
        "number": number,
        "two": np.where(number > 0, "yes", "no"),
        "three": np.array(["low", "middle", "high"])[np.digitize(number, [-1, 1])],
        "weight": rng.uniform(0.5, 2, 160),
    }
    pl.DataFrame(X, schema=[*"abcdefgh"]).with_columns(**columns).write_csv(path)
    return path


def select_target(table, folder, target, *options, status=0):
    """Select for one of the targets; the others are left out."""
    others = [name for name in ("number", "two", "three", "weight") if name != target and name not in options]
    drop = [part for name in others for part in ("--drop", name)]
    shared = ("--feature-model", "gaussian", "--fdr", 0.25, "--seed", 2, "--no-verdict", "--out", folder)
    run("select", table, "--target", target, *drop, *shared, *BY_KNOCKOFFS, *options, status=status)
    return read_selection(folder / "selection.json") if status == 0 else None


NAMED = [  # each with each: tests/test_defaults.py
    ("two", "--estimator", "boosting"),
    ("three", "--importance", "swap-integral"),
    ("three", "--importance-option", "loss=log-loss"),
    ("number", "--importance-option", "loss=squared-error"),
]


@pytest.mark.parametrize(("target", "flag", "name"), NAMED)
def test_a_model_a_score_and_a_loss_by_its_name(targets, tmp_path, target, flag, name):
    """On average the four features that matter beat their knockoffs by more than the four that do not."""
    more = ("--importance-option", "rows=cross-fitted") if name.startswith("loss=") else ()
    record = select_target(targets, tmp_path, target, flag, name, *more)
    assert record.W[:4].mean() > 2 * np.abs(record.W[4:]).mean()
    said = {"number": "y is a number between", "two": "y has two classes", "three": "y has 3 classes"}[target]
    assert said in record.notes["task"]
    if flag == "--importance":
        assert record.W[:4].min() > max(0.0, record.W[4:].max())
    if more:
        assert record.parameters["importance_options"] == {"loss": name.removeprefix("loss="), "rows": "cross-fitted"}
        assert "importance='swap'" in record.notes["importance"]  # a loss asks for a score that takes one


def test_weights_come_from_a_column(targets, tmp_path, capsys):
    with_weights = select_target(targets, tmp_path / "a", "number", "--weights", "weight")
    without = select_target(targets, tmp_path / "b", "number")
    assert with_weights.names == without.names == [*"abcdefgh"]  # weights are no feature
    assert with_weights.parameters["weights"] == "weight"
    assert (with_weights.W != without.W).any()
    run("rerun", tmp_path / "a" / "selection.json", targets)
    select_target(targets, tmp_path / "c", "number", "--weights", "two", status=1)
    assert "sample_weight holds what is no number" in capsys.readouterr().err


@pytest.mark.parametrize(("weight", "said"), [("", "nan"), (-2, "-2.0")])
def test_a_bad_weight_is_named_with_its_row(tmp_path, capsys, weight, said):
    rows = [f"{k % 5},{k % 7},{k % 3},{weight if k == 3 else 1}" for k in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y,how often", *rows]))
    run("select", tmp_path / "t.csv", "--target", "y", "--weights", "how often", "--out", tmp_path / "o", status=1)
    assert f"sample_weight is {said} in row 3: weights are finite and not negative" in capsys.readouterr().err


UNFIT = [  # each with each: tests/test_defaults.py
    ("three", ["--estimator", "boosting", "--importance", "gradient"], "use 'swap', 'permutation', 'swap_integral'"),
    ("three", ["--estimator", "linear"], "estimator='linear' predicts a number, and y has classes"),
    ("number", ["--importance-option", "loss=log-loss"], "is not for regression: use 'squared_error', 'poisson"),
    ("three", ["--importance-option", "loss=squared-error"], "is not for classification: use 'accuracy'"),
    ("number", ["--task", "classification"], "y holds numbers, for instance"),
    ("two", ["--task", "regression"], "task='regression', but y holds labels"),
    ("three", ["--feature-model", "fastphase"], "fastphase needs prefix="),
]


@pytest.mark.parametrize(("target", "options", "message"), UNFIT, ids=range(len(UNFIT)))
def test_what_does_not_fit_together_exits_with_1_and_one_sentence(targets, tmp_path, capsys, target, options, message):
    select_target(targets, tmp_path, target, *options, status=1)
    err = capsys.readouterr().err
    assert message in err.splitlines()[-1]
    assert not (tmp_path / "selection.json").exists()


# ---- knockoffs and networks that were brought along ----------------------------------------------------------


def test_knockoffs_of_a_file(targets, tmp_path, capsys):
    """Drawn by sample, they give the selection; their hash is kept, and another file is told from it."""
    drop = [part for name in ("two", "three", "weight") for part in ("--drop", name)]
    file = tmp_path / "knockoffs.csv"
    run("sample", targets, *drop, "--feature-model", "gaussian", "--out", file)  # with a copy of the target
    options = ("--fdr", 0.25, "--knockoffs", file, "--no-verdict", "--out", tmp_path)
    run("select", targets, "--target", "number", *drop, *options)
    assert "the knockoffs were brought along" in capsys.readouterr().out
    record = read_selection(tmp_path / "selection.json")
    assert record.parameters["knockoffs"] == str(file)
    assert record.parameters["feature_model"] == "auto"
    assert list(record.data["files"]) == ["knockoffs.csv"] and len(record.data["files"]["knockoffs.csv"]) == 64
    run("rerun", tmp_path / "selection.json", targets)
    assert "The answer is identical" in capsys.readouterr().out
    pl.read_csv(file).with_columns(pl.col("a") + 1).write_csv(file)
    run("rerun", tmp_path / "selection.json", targets, status=1)
    assert "Different: the file knockoffs.csv: SHA-256" in capsys.readouterr().out
    file.unlink()
    run("rerun", tmp_path / "selection.json", targets, status=1)
    assert "knockoffs.csv: there is no such file" in capsys.readouterr().err


RAIN = """network unknown {}
variable rain { type discrete [ 2 ] { yes, no }; }
variable wet { type discrete [ 2 ] { wet, dry }; }
variable slips { type discrete [ 3 ] { never, once, often }; }
probability ( rain ) { table 0.3, 0.7; }
probability ( wet | rain ) { (yes) 0.9, 0.1; (no) 0.2, 0.8; }
probability ( slips | wet ) { (wet) 0.2, 0.5, 0.3; (dry) 0.7, 0.2, 0.1; }
"""


def test_a_network_of_a_file(tmp_path):
    """Knockoffs have the table's labels and columns, some of the network's in any order; select keeps the hash."""
    network, table = tmp_path / "rain.bif", tmp_path / "table.csv"
    network.write_text(RAIN)
    rng = np.random.default_rng(0)
    wet = rng.choice(["wet", "dry"], 100)
    slips = rng.choice(["never", "once", "often"], 100)
    pl.DataFrame({"slips": slips, "wet": wet}).with_columns(hurt=(slips == "often").astype(int)).write_csv(table)
    run("sample", table, "--drop", "hurt", "--feature-model", network, "--out", tmp_path / "knockoffs.csv")
    knockoffs = pl.read_csv(tmp_path / "knockoffs.csv")
    assert knockoffs.columns == ["slips", "wet"]
    assert set(knockoffs["slips"]) == {"never", "once", "often"} and set(knockoffs["wet"]) == {"wet", "dry"}
    options = ("--target", "hurt", "--fdr", 0.5, "--feature-model", network, "--no-verdict", "--out", tmp_path)
    run("select", table, *options)
    assert list(read_selection(tmp_path / "selection.json").data["files"]) == ["rain.bif"]
    run("rerun", tmp_path / "selection.json", table)


def test_the_version_is_printed_by_the_module_as_well():
    done = subprocess.run([sys.executable, "-m", "knockoffs", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"knockoffs {knockoffs.__version__}\n"
