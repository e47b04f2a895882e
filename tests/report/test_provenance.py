"""The command on the page is one that the program understands, and gives the parameters back."""

import json
import shlex
import shutil
import subprocess
import sys

import pytest

from knockoffs.options import Options
from knockoffs.report.provenance import command_of, python_of


def test_the_command_gives_the_same_parameters(monkeypatch):
    from knockoffs.cli import app, select

    parameters = Options().recorded("select")
    parameters |= {
        "target": "a b",
        "drop": ["it's", "--x"],
        "fdr": 0.05,
        "verdict": False,
        "n_draws": 7,
        "level": "post_hoc",
    }
    parameters |= {"kinds": {"grade": "ordinal"}, "feature_model_options": {"n_classes": [1, 2]}, "seed": 3}
    parameters |= {"importance_options": {"loss": "accuracy", "n_folds": 3}}
    seen = []
    monkeypatch.setattr(select, "select_and_show", lambda table, given, out, force: seen.extend([table, given]))
    words = shlex.split(command_of(parameters, "my table.csv"))
    app.app(args=words[1:], standalone_mode=False)
    assert str(seen[0]) == "my table.csv"
    assert seen[1].recorded("select") == parameters


def test_python_lines_run():
    from knockoffs import KnockoffSelector

    selector = KnockoffSelector(fdr=0.05, feature_model="gaussian", drop=["a" * 900], random_state=4)
    made = eval(python_of(selector).split("\n")[-1].removesuffix(".fit(X, y)"), {"KnockoffSelector": KnockoffSelector})
    assert made.get_params() == selector.get_params()


def test_a_command_shows_what_cannot_be_seen_and_runs_with_it():
    names = ["a\nb", "it's", "bell\x07", "\u202ex", "back\\slash\t'q'", "é"]
    command = command_of({"target": names[0], "drop": names[1:]}, "t.csv")
    assert command.isprintable()
    if shutil.which("bash") is None:
        pytest.skip("the line is for bash")
    listed = f"{sys.executable} -c 'import sys, json; print(json.dumps(sys.argv[1:]))'"
    done = subprocess.run(
        ["bash", "-c", command.replace("knockoffs", listed, 1)], capture_output=True, text=True, check=True
    )
    expected = ["select", "t.csv", "--target", names[0]]
    for name in names[1:]:
        expected += ["--drop", name]
    assert json.loads(done.stdout) == expected
