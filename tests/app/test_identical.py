"""What the page finds, the command line and the Python lines that it shows find too, to the last bit."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from knockoffs.app.desk import parameters_of
from knockoffs.app.estimate import STEPS
from knockoffs.cli import page
from knockoffs.progress import heard
from knockoffs.record.comparing import differences
from knockoffs.record.reading import read_selection
from knockoffs.table.files import write_table_file

pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'knockoffs[app]'")
SOURCE = Path(page.__file__).resolve().parents[2]
# what a shell, Python, typer or the pairs NAME=VALUE might trip over
NAMES = (
    "--fdr",
    "a=b",
    'it\'s "x"',
    "c,d",
    "$(touch ran)",
    "<b>&\\n",
    "bell\x07 \u202erev",
    "grade = [1]",
    "é ü",
    "`id`",
    "x\ty",
)
LABELS = ("<=5", "6=6", '">7"')


def hostile_table(folder):
    """Table whose names and labels are hostile; three of its columns matter."""
    rng = np.random.default_rng(0)
    n = 150
    X = {name: rng.standard_normal(n).round(3) for name in NAMES}
    X["scale"] = np.array(LABELS, dtype=object)[rng.integers(0, 3, n)]
    X["code"] = rng.integers(1, 5, n)
    X["w, eight"] = rng.uniform(0.5, 2, n).round(3)
    X["text"] = np.array([f"id{i}" for i in range(n)], dtype=object)
    y = X["--fdr"] + X["a=b"] - X["c,d"] + 0.5 * rng.standard_normal(n)
    write_table_file({**X, "the 'y'": y.round(3)}, folder / "my table.csv")
    return (folder / "my table.csv").read_bytes()


def asked(table):
    """Everything that the page can ask for at once."""
    columns = table["table"]["columns"]
    number = {column["name"]: j for j, column in enumerate(columns)}
    assert columns[number["text"]]["problem"] and list(number) == [
        *NAMES,
        "scale",
        "code",
        "w, eight",
        "text",
        "the 'y'",
    ]
    return {
        "target": number["the 'y'"],
        "fdr": 0.3,
        "drop": [number["text"], number["é ü"]],
        "weights": number["w, eight"],
        "groups": {number["$(touch ran)"]: "=g, 'one'", number["`id`"]: "=g, 'one'"},
        "kinds": {number["scale"]: [2, 0, 1], number["code"]: "nominal", number["a=b"]: "continuous"},
        "options": {"method": "knockoffs", "estimator": "lasso", "seed": 5, "n_draws": 2},
    }


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A selection by the page, in the processes that it starts; its files, and the lines that it shows."""
    import work_of_tests  # noqa: F401
    from client import PORT, TOKEN, Client

    from knockoffs.app.desk import Desk
    from knockoffs.app.server import make_app

    folder = tmp_path_factory.mktemp("identical")
    desk = Desk(folder / "desk", page.select_for_page, parallel_map=2)
    client = Client(desk, make_app(desk, token=TOKEN, port=PORT, most_bytes=1_000_000))
    try:
        table = client.table(hostile_table(folder), "my%20table.csv")
        assert table["look"]["error"] == ""
        answer = client.run(table, **asked(table))
        assert answer.status == 201, answer.body
        job = client.until(f"jobs/{answer.json()['id']}", lambda job: job["state"] not in ("waiting", "running"), 400)
        assert job["state"] == "done", job["error"]
        for name in ("report.html", "selection.json", "selection.csv"):
            (folder / name).write_bytes(client.get(f"jobs/{job['id']}/{name}?download").body)
        groups = job["about"]["groups"]
        (folder / groups).write_bytes(client.get(f"jobs/{job['id']}/{groups}").body)
    finally:
        desk.close()
    return folder, job


def outside(folder, command):
    """Run a program in the folder of the table."""
    bin_folder = folder / "bin"
    bin_folder.mkdir(exist_ok=True)
    (bin_folder / "knockoffs").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m knockoffs "$@"\n')
    (bin_folder / "knockoffs").chmod(0o755)
    env = os.environ | {"PYTHONPATH": str(SOURCE), "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not (folder / "ran").exists()
    return done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="the line is for bash")
def test_the_command_line_gives_the_identical_answer(ran):
    folder, job = ran
    line = job["about"]["command"]
    assert line.isprintable() and "\u202e" not in line
    outside(folder, ["bash", "-c", f"{line} --out again"])
    ours, again = read_selection(folder / "selection.json"), read_selection(folder / "again" / "selection.json")
    assert differences(ours, again) == ([], [])
    assert (folder / "selection.json").read_bytes() == (folder / "again" / "selection.json").read_bytes()
    assert (folder / "selection.csv").read_bytes() == (folder / "again" / "selection.csv").read_bytes()
    kinds = {column["name"]: column for column in ours.columns}
    assert 'in the order <=5 < ">7" < 6=6' in kinds["scale"]["why"]
    assert kinds["code"]["kind"] == "nominal" and "text" not in kinds and "é ü" not in kinds


def test_the_python_lines_give_the_identical_answer(ran):
    folder, job = ran
    more = "import json; print(json.dumps([selector.W_.tolist(), selector.q_values_.tolist(), [str(n) for n in "
    more += "selector.selection_.feature_names], selector.selection_.selected.tolist()]))"
    printed = outside(folder, [sys.executable, "-c", f"{job['about']['python']}\n{more}"])
    ours = read_selection(folder / "selection.json")
    W, q, names, selected = json.loads(printed.splitlines()[-1])
    assert (W, q, names) == (ours.W.tolist(), ours.numbers("q_value").tolist(), ours.names)
    assert [name for name, chosen in zip(names, selected, strict=True) if chosen] == ours.selected
    assert printed.splitlines()[0] == ours.explanation


def test_the_report_says_the_same_and_names_no_folder(ran):
    folder, job = ran
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert "desk" not in html and str(folder) not in html
    assert "my table.csv" in html and "<b>&\\n" not in html
    assert (
        job["result"]["of"] == 11  # thirteen columns, two of which are left out, one of which is weights, two a group
        and job["result"]["explanation"] == read_selection(folder / "selection.json").explanation
    )


def test_the_steps_that_the_page_numbers_are_those_that_a_run_tells(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = {f"x{j}": rng.standard_normal(80).round(3) for j in range(6)}
    write_table_file({**X, "y": (X["x0"] + rng.standard_normal(80)).round(3)}, tmp_path / "t.csv")
    columns = [{"name": name, "levels": None} for name in (*X, "y")]
    quick = {"method": "knockoffs", "feature_model": "gaussian", "estimator": "lasso"}
    parameters = parameters_of({"target": 6, "fdr": 0.3, "options": quick}, columns)
    monkeypatch.chdir(tmp_path)  # and back, when this is over
    told = []
    with heard(lambda step, done, total: told.append(step)):
        page.select_for_page(tmp_path, str(tmp_path / "t.csv"), parameters)
    assert [step for step in dict.fromkeys(told) if step in STEPS] == list(STEPS)
    script = files("knockoffs.app").joinpath("pages/runs.js").read_text(encoding="utf-8")
    steps = re.findall(r'"([^"]+)"', re.search(r"const STEPS = \[(.*?)\];", script, re.DOTALL).group(1))
    assert steps == list(STEPS)
