"""Progress is shown where it is asked for, a bar or a line every half minute, and never stops the work."""

import io
import sys
import threading

import numpy as np
import pytest

from knockoffs import KnockoffSelector, progress
from knockoffs.progress import heard, showing, stage, track


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves only when told."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def impatient(monkeypatch):
    """Half a minute takes no time at all, and a line is waited for."""
    said, wait = threading.Event(), threading.Event.wait
    monkeypatch.setattr(progress, "BETWEEN", 0.001)
    monkeypatch.setattr(progress.Progress, "say", lambda self: (print(self.doing, file=sys.stderr), said.set()))

    def next_line():
        said.clear()
        assert wait(said, 300)

    return next_line


def test_lines_say_what_is_being_done_and_for_how_long(clock, capsys):
    with showing():
        shown = progress._SHOWN.get()
        for item in track(range(6), "drawing"):
            clock[0] += 40
            if item in (0, 4):
                shown.say()
        stage("comparing")
        shown.say()
    expected = [
        "drawing: 0 of 6 done, after 40 s",
        "drawing: 4 of 6 done, about 1 min 20 s to go, after 3 min 20 s",
        "comparing, after 4 min 00 s",
    ]
    assert capsys.readouterr().err.splitlines() == expected


def test_a_line_every_half_minute_without_a_terminal(impatient, capsys):
    with showing():
        stage("modelling the features")
        impatient()
        for _ in track([1], "drawing"):
            impatient()
            impatient()
    lines = capsys.readouterr().err.splitlines()
    assert "modelling the features" in lines and "drawing: 0 of 1 done" in lines
    assert progress.BETWEEN == 0.001 and progress._SHOWN.get() is None
    for thread in threading.enumerate():
        if "say_until" in thread.name:
            thread.join(300)
            assert not thread.is_alive()


def test_nothing_is_shown_unless_it_is_asked_for(impatient, capsys):
    before = threading.active_count()
    with showing(False):
        assert list(track(range(3), "drawing")) == [0, 1, 2]
        assert threading.active_count() == before
    assert capsys.readouterr().err == ""


def test_what_is_asked_for_further_out_stays(impatient):
    with showing():
        shown = progress._SHOWN.get()
        with showing(False):
            assert progress._SHOWN.get() is shown
        with showing():
            assert progress._SHOWN.get() is shown
        assert progress._SHOWN.get() is shown


def test_a_bar_on_a_terminal_after_two_seconds_and_one_at_a_time(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    with showing():
        for _ in track(range(3), "quick work"):
            pass
        assert stream.getvalue() == ""
        for _ in track(range(3), "slow work"):
            for _ in track(range(3), "work inside"):
                clock[0] += 3
    assert "slow work" in stream.getvalue() and "work inside" not in stream.getvalue()


@pytest.mark.parametrize("stream", [None, open("/dev/full", "w")])  # noqa: SIM115
def test_a_stream_that_takes_nothing_does_not_stop_the_work(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    with showing():
        assert list(track(range(6), "drawing")) == [*range(6)]
        progress._SHOWN.get().say()


@pytest.mark.parametrize(("verbose", "method"), [(True, "knockoffs"), (True, "conditional_test"), (False, "knockoffs")])
def test_the_selector_shows_its_progress_if_asked_to(monkeypatch, capsys, verbose, method):
    """Every stage writes its line as if half a minute had passed."""
    kept = progress.Progress.__setattr__

    def and_say(self, name, value):
        kept(self, name, value)
        if name == "doing":
            print(value, file=sys.stderr)

    monkeypatch.setattr(progress.Progress, "__setattr__", and_say)
    monkeypatch.setattr(progress, "BETWEEN", 1e6)  # seconds: a slow machine writes no lines of its own
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 12))
    options = {
        "feature_model": "gaussian",
        "estimator": "lasso",
        "method": method,
        "resolution": "columns",
        "random_state": 0,
    }
    KnockoffSelector(fdr=0.2, verbose=verbose, **options).fit(X, X[:, 0] + rng.standard_normal(100))
    told = [line.partition(", about")[0] for line in capsys.readouterr().err.splitlines()]
    expected = {
        "knockoffs": ["modelling the features", "drawing knockoffs", "scoring features and knockoffs"],
        "conditional_test": ["modelling the features", *(f"tests of features: {k} of 12 done" for k in (0, 11))],
    }
    if not verbose:
        assert told == []
        return
    assert [line for line in told if line in expected[method]] == expected[method]
    null = "a quarter of the features do" if method == "knockoffs" else "a column does"
    assert told[-1] == f"trials with labels for which {null} not matter"


def test_a_listener_is_told_of_the_outermost_loop_alone():
    told = []
    with heard(lambda *step: told.append(step)):
        stage("fitting")
        for _ in track([1, 2], "draws"):
            stage("drawing")
            list(track([1, 2, 3], "fits"))
        stage("comparing")
    loop = [("draws", 0, 2), ("draws", 1, 2), ("draws", 2, 2), ("draws", None, None)]
    assert told == [("fitting", None, None), *loop, ("comparing", None, None)]
    told.clear()
    stage("elsewhere")
    assert told == []


def test_a_loop_that_is_left_early_is_not_waited_for():
    told = []
    with heard(lambda *step: told.append(step)):
        for item in track(range(9), "search"):
            if item == 2:
                break
    assert told[-2:] == [("search", 2, 9), ("search", None, None)]


def test_where_nothing_is_done_no_line_is_written(capsys):
    with showing():
        stage("")
        progress._SHOWN.get().say()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("how", ["lines", "listener", "not asked"])
def test_compiling_is_said_once_where_progress_is_shown(how, capsys, monkeypatch):
    """A loop that numba has not seen is compiled within; with a cache nothing is."""
    from contextlib import nullcontext

    import numba

    monkeypatch.setattr(progress.Progress, "compiled", False)
    heard_of = []
    outer = {"lines": showing(), "listener": heard(lambda *doing: heard_of.append(doing[0]))}.get(how, nullcontext())
    with outer, showing(False):
        for value in (1, 1.0):
            assert numba.njit(lambda x: x + 1)(value) == 2
    said = capsys.readouterr().err
    assert said.count("compiling, once") == (how == "lines")
    assert heard_of == (["compiling, once"] if how == "listener" else [])
