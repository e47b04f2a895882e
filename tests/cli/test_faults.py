"""Faults on the command line: no file is lost, what was computed is saved, and every end is a sentence."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from tests.cli.running import SOURCE, run, run_apart

from knockoffs import KnockoffSelector
from knockoffs.cli import app as cli
from knockoffs.record.reading import read_selection

SELECT = ("--target", "y", "--fdr", 0.2, "--feature-model", "gaussian", "--estimator", "lasso")
SELECT = (*SELECT, "--method", "knockoffs", "--no-verdict")
SAMPLE = ("--feature-model", "gaussian", "--drop", "y")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("faults") / "table.csv"
    X = np.random.default_rng(0).standard_normal((100, 8))
    names = [f"gene {j}" for j in range(8)]
    pl.DataFrame(X, schema=names).with_columns(y=3 * X[:, :6].sum(axis=1)).write_csv(path)
    return path


# ---- no file is lost ----------------------------------------------------------------------------------------


def test_sample_does_not_overwrite_its_table(table, tmp_path, capsys):
    """Nor by a link; other ways to name it: tests/table/test_writer.py."""
    own, link = tmp_path / "t.csv", tmp_path / "link.csv"
    own.write_bytes(table.read_bytes())
    link.symlink_to(own)
    for force in ((), ("--force",)):
        run("sample", own, *SAMPLE, "--out", link, *force, status=1)
        assert "is what is read" in capsys.readouterr().err
    assert own.read_bytes() == table.read_bytes()


def test_a_file_that_is_there_is_overwritten_with_force_only(table, tmp_path, capsys):
    theirs = tmp_path / "k.csv"
    theirs.write_text("mine")
    run("sample", table, *SAMPLE, "--out", theirs, status=1)
    out, err = capsys.readouterr()
    assert "is there already: name another file, or overwrite it with --force" in err
    assert "reading" not in err  # found before the work
    assert theirs.read_text() == "mine"
    run("sample", table, *SAMPLE, "--out", theirs, "--force")
    assert theirs.read_text() != "mine"


def test_a_selection_replaces_a_selection_and_nothing_else(table, tmp_path, capsys):
    for _ in range(2):
        run("select", table, *SELECT, "--out", tmp_path)
    for name in ("selection.json", "selection.csv"):
        good = (tmp_path / name).read_bytes()
        (tmp_path / name).write_text('{"mine": 1}')
        capsys.readouterr()
        run("select", table, *SELECT, "--out", tmp_path, status=1)
        assert f"{name} is there already" in capsys.readouterr().err
        assert (tmp_path / name).read_text() == '{"mine": 1}'
        (tmp_path / name).write_bytes(good)
    own = tmp_path / "own" / "selection.csv"
    own.parent.mkdir()
    own.write_bytes(table.read_bytes())
    run("select", own, *SELECT, "--out", own.parent, "--force", status=1)
    assert "is what is read" in capsys.readouterr().err
    run("rerun", tmp_path / "selection.json", table, "--out", tmp_path, "--force", status=1)
    assert "is what is read" in capsys.readouterr().err


def test_a_report_and_the_folder_of_the_selection(table, tmp_path, capsys):
    both = tmp_path / "out.html"
    run("select", table, *SELECT, "--out", both, "--report", both, status=2)
    assert "is --out too" in capsys.readouterr().err and not os.listdir(tmp_path)  # found before the work
    run("select", table, *SELECT, "--out", tmp_path / "new", "--report", tmp_path / "new" / "report.html")
    assert sorted(os.listdir(tmp_path / "new")) == ["report.html", "selection.csv", "selection.json"]


def test_columns_that_cannot_be_used_are_listed_in_lines_that_no_name_breaks(tmp_path, capsys):
    rows = "".join(f"k{i},l{i},{i % 7},{i % 5}\n" for i in range(60))
    (tmp_path / "t.csv").write_text(f'"a\nb",c,d,y\n{rows}')
    run("select", tmp_path / "t.csv", "--target", "y", status=1)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" has ")[0] for line in lines[-4:-1]] == ["knockoffs: X", r"  'a\nb'", "  'c'"]
    assert lines[-1] == r"To leave them out: drop=['a\nb', 'c'], or --drop on the command line."


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "stopped"]
)
def test_a_report_that_cannot_be_written_does_not_cost_the_answer(table, tmp_path, capsys, monkeypatch, error):
    def fail(*args, **options):
        raise error

    monkeypatch.setattr("knockoffs.report.write.write_report", fail)
    status = 130 if isinstance(error, KeyboardInterrupt) else 1
    run("select", table, *SELECT, "--out", tmp_path / "out", "--report", tmp_path / "r.html", status=status)
    captured = capsys.readouterr()
    assert "6 of 8 features selected" in captured.out and "wrote" in captured.err
    assert read_selection(tmp_path / "out" / "selection.json").features
    assert not (tmp_path / "r.html").exists()


def test_an_answer_that_cannot_be_saved_is_shown(table, tmp_path, capsys, monkeypatch):
    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    run("select", table, *SELECT, "--out", tmp_path / "out", status=1)
    captured = capsys.readouterr()
    assert "6 of 8 features selected" in captured.out and "No space left on device" in captured.err


@pytest.mark.parametrize("option", ["diagonal={}", "diagonal=3", "n_sweeps=-3", "n_starts=x", "max_iter=true"])
def test_an_option_of_another_type_is_a_sentence(table, tmp_path, capsys, option):
    name = "gaussian" if option.startswith("diagonal") else "auto" if option.startswith("n_sweeps") else "naive-bayes"
    call = ("sample", table, "--feature-model", name, "--feature-model-option", option, "--drop", "y")
    run(*call, "--out", tmp_path / "k.csv", status=1)
    assert option.partition("=")[0] in capsys.readouterr().err.splitlines()[-1]
    assert not os.listdir(tmp_path)


def test_a_place_that_cannot_be_written_is_found_before_the_work(table, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "out"
    run("select", table, *SELECT, "--out", out, status=1)
    err = capsys.readouterr().err
    assert "reading" not in err and "cannot" in err
    run("sample", table, *SAMPLE, "--out", f"{out}/nowhere/k.csv", status=1)
    assert "reading" not in capsys.readouterr().err


# ---- what was computed is saved before anything is printed -----------------------------------------------------


def saved(folder):
    return sorted(os.listdir(folder)) == ["selection.csv", "selection.json"]


def test_a_terminal_that_lacks_a_letter(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    names = ["größe", "速度", "é", "😀"]
    pl.DataFrame(X[:, :4], schema=names).with_columns(y=X[:, :4].sum(axis=1)).write_csv(tmp_path / "t.csv")
    options = ("--target", "y", "--fdr", 0.3, "--feature-model", "gaussian", "--estimator", "lasso", "--no-verdict")
    call = ("select", tmp_path / "t.csv", *options, "--out", tmp_path / "out")
    ended = run_apart(*call, text=False, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert ended.returncode == 0, ended.stderr
    assert b"\\u901f\\u5ea6" in ended.stdout and b"Traceback" not in ended.stderr
    assert read_selection(tmp_path / "out" / "selection.json").names == names


def test_a_full_disk_behind_standard_output(table, tmp_path):
    with open("/dev/full", "w") as full:
        ended = run_apart("select", table, *SELECT, "--out", tmp_path / "out", stdout=full)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("knockoffs: standard output: No space left on device.")
    assert "Traceback" not in ended.stderr and "Exception ignored" not in ended.stderr
    assert saved(tmp_path / "out")


def test_a_full_disk_behind_standard_error(table, tmp_path):
    with open("/dev/full", "w") as full:
        ended = run_apart("select", table, *SELECT, "--out", tmp_path / "out", stderr=full)
    assert ended.returncode == 0 and "features selected" in ended.stdout
    assert saved(tmp_path / "out")


@pytest.mark.parametrize("closed", [">&- 2>&- <&-", "| true"])
def test_streams_that_are_closed(table, tmp_path, closed):
    options = f"{' '.join(map(str, SELECT))} --out '{tmp_path}/out'"
    command = f"{sys.executable} -m knockoffs.cli.app select '{table}' {options}"
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(["bash", "-c", f"{command} {closed}"], env=environment, capture_output=True, text=True)
    assert "Traceback" not in ended.stderr and "Exception ignored" not in ended.stderr
    assert saved(tmp_path / "out")


# ---- Ctrl-C ---------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="signals are of POSIX")
def test_control_c_never_reaches_the_processes_of_several_jobs():
    """Told exactly, not by a signal at the right moment: it is blocked in all of them, from their first moment on."""
    code = """
import signal
from joblib import Parallel, delayed
from knockoffs.cli.interrupt import interrupt_once, shield_children
with interrupt_once():
    shield_children()
    masks = Parallel(n_jobs=2)(delayed(signal.pthread_sigmask)(signal.SIG_BLOCK, []) for _ in range(2))
    masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, []))
    print([signal.SIGINT in mask for mask in masks])
"""
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=600)
    assert done.stdout == "[True, True, True]\n", done.stderr


def test_control_c_ends_in_a_sentence_without_child_or_litter(tmp_path):
    """The signal goes to the whole group, as from a terminal."""
    X = np.random.default_rng(0).standard_normal((4000, 31))
    pl.DataFrame(X, schema=[*(f"x{j}" for j in range(30)), "y"]).write_csv(tmp_path / "t.csv")
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "knockoffs.cli.app", "select", "t.csv", "--target", "y", "--jobs", "2"]
    command += ["--estimator", "forest", "--importance-option", "n_fits=50", "--out", "out"]
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(
        [*command, "--feature-model", "gaussian"], env=environment, cwd=tmp_path, start_new_session=True, **pipes
    )
    while "selecting" not in process.stderr.readline():
        pass
    time.sleep(2)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert err.splitlines() == ["knockoffs: stopped; unfinished files were removed, and older files are unchanged."]
    assert out == ""
    assert os.listdir(tmp_path) == ["t.csv"]
    with pytest.raises(ProcessLookupError):  # nobody of the group is left
        for _ in range(12_000):
            os.killpg(process.pid, 0)
            time.sleep(0.1)


@pytest.mark.skipif(os.name == "nt", reason="signals are of POSIX")
def test_a_run_that_is_suspended_and_continued_does_not_end():
    """Ctrl-Z and fg: the run goes on, and Ctrl-C still ends it."""
    code = """
import sys
from knockoffs.cli.interrupt import interrupt_once
try:
    with interrupt_once():
        for line in sys.stdin:
            print(line.strip(), flush=True)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, **pipes) as process:

        def echoed(word):
            process.stdin.write(f"{word}\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        assert echoed("first") == "first"
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        time.sleep(0.5)  # a wait for signals that polls would run out meanwhile
        process.send_signal(signal.SIGCONT)
        time.sleep(0.5)
        assert echoed("second") == "second"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "stopped\n"


def test_ctrl_c_in_compiled_code_is_ctrl_c(monkeypatch, capsys):
    """Python makes a SystemError of an exception that compiled code leaves behind."""

    def interrupted(*_, **__):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise SystemError("CPUDispatcher returned a result with an exception set") from error

    def broken(*_, **__):
        raise SystemError("another fault")

    X, y = np.random.default_rng(0).standard_normal((60, 4)), np.random.default_rng(1).standard_normal(60)
    for work, error in ((interrupted, KeyboardInterrupt), (broken, SystemError)):
        monkeypatch.setattr("knockoffs.procedure.run", work)
        with pytest.raises(error):
            KnockoffSelector(fdr=0.3).fit(X, y)
    monkeypatch.setattr("knockoffs.cli.app.app", interrupted)
    with pytest.raises(SystemExit) as ended:
        cli.main([])
    assert ended.value.code == 130 and "stopped" in capsys.readouterr().err


def test_a_table_without_names_is_told_so(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("".join(f"{i}.5,{i}.25,{i}\n" for i in range(20)))
    run("select", tmp_path / "t.csv", "--target", "y", status=2)
    assert "Its first line holds numbers: put a line with the names of the columns before it" in capsys.readouterr().err
