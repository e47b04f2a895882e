"""The page without a browser: its answers are those of the command line, and nothing of a session stays on disk."""

import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from base64 import b64decode
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

pytest.importorskip("streamlit", reason="the extra app is not installed: pip install 'knockoffs[app]'")
import streamlit as st
from streamlit.testing.v1 import AppTest

from knockoffs import app
from knockoffs.cli import page
from knockoffs.simulate.examples import EXAMPLES
from knockoffs.table.files import write_table_file

# what a shell, Python, typer, Markdown or the pairs NAME=VALUE might trip over
NAMES = ("--fdr", "a=b", 'it\'s "x"', "c,d", "$(touch ran)", "<script>ran=1</script>", "bell\x07 \u202erev", "**é ü**")
LABELS = ("<=5", "6=6", '">7"')


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """File of a table whose names and labels are hostile; three of its columns matter."""
    rng = np.random.default_rng(0)
    n = 150
    X = {name: rng.standard_normal(n).round(3) for name in NAMES}
    X["scale"] = np.array(LABELS, dtype=object)[rng.integers(0, 3, n)]
    X["code"] = rng.integers(1, 5, n)
    X["text"] = np.array([f"id{i}" for i in range(n)], dtype=object)
    y = X["--fdr"] + X["a=b"] - X["c,d"] + 0.5 * rng.standard_normal(n)
    path = tmp_path_factory.mktemp("hostile") / "my table.csv"
    write_table_file({**X, "the 'y'": y.round(3)}, path)
    return path


@pytest.fixture
def tab(tmp_path, monkeypatch):
    """The page with its token; its folder is a folder of the test."""
    monkeypatch.setenv(page.TOKEN, "secret")
    monkeypatch.setenv(page.FOLDER, str(tmp_path))
    at = AppTest.from_file(app.__file__, default_timeout=1200)
    at.query_params["token"] = "secret"
    yield at.run()
    st.cache_resource.clear()  # the desk is closed
    assert not page.Run.open and not list(tmp_path.glob("tmp*"))


def choose(at, key):
    at.radio[0].set_value(key).run()
    assert not at.exception
    return at


def press(at, label):
    next(button for button in at.button if button.label == label).click().run()
    assert not at.exception
    return at


def until_done(at, seconds=1200):
    end = time.monotonic() + seconds
    while page.Run.open:
        assert time.monotonic() < end
        time.sleep(0.3)
        at.run()
    assert not at.exception
    return at


@pytest.mark.parametrize("token", ["", "wrong", "sécret"])
def test_nothing_is_shown_without_the_token(tab, token):
    tab.query_params["token"] = token
    tab.run()
    assert [box.value.split(" is")[0] for box in tab.error] == ["The token in the address"]
    assert not tab.title and not tab.radio and not tab.button


def test_nobody_is_allowed_where_no_token_was_made(monkeypatch):
    monkeypatch.delenv(page.TOKEN, raising=False)
    assert not app.is_allowed("")


def test_the_answer_is_that_of_the_command_that_is_shown(tab, tmp_path, hostile, monkeypatch):
    seen, show = [], app.show_answer
    monkeypatch.setattr(app, "show_answer", lambda answer: (seen.append(answer), show(answer)))
    tab.file_uploader[0].set_value((hostile.name, hostile.read_bytes(), "text/csv")).run()
    boxes = {box.label: box for box in (*tab.selectbox, *tab.number_input)}
    boxes["Target: the column to be explained"].set_value(len(NAMES) + 3).run()
    boxes["Model of the target"].set_value("lasso")
    boxes["Seed"].set_value(5)
    boxes["Level: the limit on wrong picks"].set_value(0.3)
    until_done(press(tab, "Select features"))
    assert not tab.error, tab.error[0].value
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [hostile.name]  # the run left nothing
    screen = json.loads(seen[-1].files["selection.json"])["first_screen"]
    shown = [row["name"] for row in screen["rows"]]
    assert {"--fdr", "a=b", "c,d"} <= set(shown)
    assert tab.title[0].value == app.plain(f"{len(shown)} discoveries among {len(NAMES) + 2} features for the 'y'")
    (frame,) = tab.get("iframe")
    assert (
        b64decode(frame.proto.src.partition(",")[2]) == seen[-1].files["report.html"]
    )  # the first screen, and all else
    assert [button.label for button in tab.get("download_button")] == list(page.FILES)
    if shutil.which("bash") is None:
        pytest.skip("the line is for bash")
    place = tmp_path / "outside"
    place.mkdir()
    shutil.copy(hostile, place)
    line = tab.code[0].value.replace("knockoffs", f"{sys.executable} -m knockoffs", 1)
    environment = os.environ | {"PYTHONPATH": str(Path(app.__file__).parents[1])}
    command = ["bash", "-c", f"{line} --out found --report report.html"]
    subprocess.run(command, cwd=place, env=environment, capture_output=True, check=True)
    assert not (place / "ran").exists()
    for name, content in seen[-1].files.items():
        assert content == (place / ("" if name == "report.html" else "found") / name).read_bytes(), name


def test_cancel_ends_the_process_and_deletes_what_it_wrote(tab, tmp_path):
    choose(tab, "patients")
    press(tab, "Select features")
    (run,) = page.Run.open
    press(tab, "Cancel")
    assert not run.running and not page.Run.open
    assert [box.value for box in tab.error] == [app.plain("Cancelled.")]
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["patients.csv"]


def test_a_column_that_cannot_be_used_makes_no_warnings_of_the_others():
    """Columns are then read one by one, and a missing cell of one of them is not a row without a value."""
    size = [None, *np.linspace(0.1, 9.9, 59).round(2)]
    frame = pl.DataFrame({"who": [f"id{i}" for i in range(60)], "size": size, "age": np.arange(60) % 7 + 0.5})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = app.recognise(frame)
    assert "different label in each of 60 rows" in found["who"]
    assert [found[name].n_missing for name in ("size", "age")] == [1, 0]


def test_a_file_that_cannot_be_read_is_refused_without_its_folder(tab, tmp_path):
    tab.file_uploader[0].set_value(("t.csv", b"a,a\n1,2\n", "text/csv")).run()
    (message,) = [box.value for box in tab.error]
    assert "t\\.csv" in message and tmp_path.name not in message


def test_a_full_disk_is_a_sentence_and_leaves_nothing(tab, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("knockoffs.table.writer.os.fsync", full)
    tab.file_uploader[0].set_value(("t.csv", b"a,b\n1,2\n", "text/csv")).run()
    assert not tab.exception
    (message,) = [box.value for box in tab.error]
    assert message == app.plain("The table cannot be kept on this machine: No space left on device.")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    monkeypatch.undo()
    monkeypatch.setenv(page.TOKEN, "secret")
    monkeypatch.setattr(app, "Run", full)
    press(choose(tab, "patients"), "Select features")
    assert [box.value for box in tab.error] == [
        app.plain("The run cannot be started on this machine: No space left on device.")
    ]


def test_a_session_that_ends_leaves_nothing(tmp_path, hostile):
    folder = tmp_path / "desk"
    folder.mkdir()
    shutil.copy(hostile, folder)
    run = page.Run(folder, ["knockoffs", "select", hostile.name, "--target", "the 'y'"])
    app.Desk(folder, run=run).close()
    assert not run.running and not folder.exists() and not page.Run.open


def test_a_run_ends_with_the_page(tmp_path, hostile):
    shutil.copy(hostile, tmp_path)
    run = page.Run(tmp_path, ["knockoffs", "select", hostile.name, "--target", "the 'y'", "--drop", "text"])
    run.process.stdin.close()  # as the system does when the page is gone
    assert run.process.wait(60) != 0
    run.close()


def test_a_command_that_fails_says_why(tmp_path, hostile):
    shutil.copy(hostile, tmp_path)
    run = page.Run(tmp_path, ["knockoffs", "select", hostile.name, "--target", "the 'z'"])
    run.process.wait(60)
    assert run.files() == {} and "is not a column of the table. Did you mean \"the 'y'\"?" in run.error()
    run.close()


def test_what_was_edited_becomes_the_question(hostile):
    upload = app.read_upload(hostile, "1", None)
    edited = upload.editor.copy()
    row = {name: i for i, name in enumerate(upload.names)}
    assert not edited.loc[row["text"], "use"] and "identifier" in edited.loc[row["text"], "why"]
    assert edited.loc[row["code"], "why"].endswith("if they are codes, choose nominal")
    edited.loc[row["c,d"], "use"] = False
    edited.loc[row["code"], "kind"] = "nominal"
    asked = app.question(upload, edited, "the 'y'")
    assert asked == {"target": "the 'y'", "drop": ["c,d", "text"], "kinds": {"code": "nominal"}}


def test_labels_are_ordered_by_their_line():
    editor = pd.DataFrame([app.editor_row("g", ["b", "a", "c"], column()) for _ in "1"])
    upload = app.Upload("1", Path("t.csv"), ["g"], 3, editor, [])
    assert editor.loc[0, "order"] == "a < b < c"
    edited = editor.assign(kind="ordinal", order="c < a<b")
    assert app.question(upload, edited, "y")["kinds"] == {"g": ["c", "a", "b"]}
    assert app.question(upload, editor, "y")["kinds"] is None


def column():
    return app.Column("g", "string", ("a", "b", "c"), "nominal")


@pytest.mark.parametrize("key", EXAMPLES)
def test_examples_are_read_whole(key, tmp_path):
    path = tmp_path / EXAMPLES[key].file
    write_table_file(EXAMPLES[key].make(), path)
    upload = app.read_upload(path, key, EXAMPLES[key].target)
    assert upload.editor["use"].all() and upload.target in upload.names and not upload.warnings
