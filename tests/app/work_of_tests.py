"""Work that is quick, for the processes of the tests' jobs; the target says what happens."""

import os
import subprocess
import sys
import time

from knockoffs.errors import InputError
from knockoffs.progress import stage, track


def select(folder, table, parameters):
    """Pretend to select: what was asked for is the answer."""
    target = parameters["target"]
    if target == "b":
        endless(folder)
    if target == "label":
        raise InputError("the label <b>cannot</b> be explained.")
    if target == "a":
        os.kill(os.getpid(), 9)
    for step in ("reading the table", "scoring features and knockoffs"):
        stage(step)
        time.sleep(0.05)
    for name in ("report.html", "selection.json", "selection.csv"):
        (folder / name).write_text(f"{name} of {target}")
    return {"selected": 1, "of": 2, "explanation": "because", "verdict": "good", "parameters": parameters}


def endless(folder):
    """Work that does not end, with a process of its own and a file."""
    helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    (folder / "half").write_text(str(helper.pid))
    for _ in track(range(10_000), "waiting"):
        time.sleep(0.05)


def echo(folder, value):
    """Give back what came, after two steps."""
    stage("first")
    list(track(range(3), "second"))
    return value


def fault(folder):
    """Fail as a program fails that has a fault."""
    return {}["no such key"]


def refuse(folder):
    """Fail as a table fails that cannot be used."""
    raise InputError("column 'x' is no feature: drop it.")


def vanish(folder, how):
    """End without a word."""
    os.kill(os.getpid(), 9) if how == "kill" else os._exit(3)


def no_json(folder):
    """Give back what JSON has no word for."""
    return float
