"""Progress is shown on a terminal as a bar, elsewhere as a line every half minute, and never stops the work."""

import sys

import pytest

from knockoffs import progress
from knockoffs.progress import track


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves only when told."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def walk(clock, seconds, **options):
    for item in track(range(6), "drawing", **options):
        clock[0] += seconds
        yield item


def test_short_work_is_silent(clock, capsys):
    assert list(walk(clock, 4)) == [*range(6)]
    assert capsys.readouterr().err == ""


def test_one_line_every_half_minute_in_a_pipe(clock, capsys):
    list(walk(clock, 12))  # 12, 24, 36, 48, 60, 72 seconds; the last is the end
    assert capsys.readouterr().err.splitlines() == ["drawing: 3 of 6 after 36 s, about 36 s to go"]
    list(walk(clock, 40))
    lines = capsys.readouterr().err.splitlines()
    assert (
        lines[0] == "drawing: 1 of 6 after 40 s, about 3 min 20 s to go"
        and lines[-1] == "drawing: 5 of 6 after 3 min 20 s, about 40 s to go"
    )
    assert len(lines) == 5


def test_silence_can_be_asked_for(clock, capsys):
    list(walk(clock, 40, show=False))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("stream", [None, open("/dev/full", "w")])  # noqa: SIM115
def test_a_stream_that_takes_nothing_does_not_stop_the_work(clock, monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    assert list(walk(clock, 40)) == [*range(6)]
