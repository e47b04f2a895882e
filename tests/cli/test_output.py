"""What the command line prints fits the terminal, and options that it advises stay whole."""

import io
import sys

import pytest

from knockoffs.cli.output import say

ADVICE = (
    "warning: " + "columns that say the same " * 4 + "are left out: to keep them use --keep-them-all or --no-verdict."
)


@pytest.mark.parametrize("terminal", [True, False])
def test_lines_break_between_words_in_a_terminal_alone(terminal, monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "70")
    say(ADVICE)
    say("")
    lines = stream.getvalue().split("\n")
    assert lines[-2:] == ["", ""] and " ".join(map(str.strip, lines)).strip() == ADVICE
    assert len(lines) == (5 if terminal else 3) and max(map(len, lines[:-2])) <= (70 if terminal else 200)
    assert all(any(option in line for line in lines) for option in ("--keep-them-all", "--no-verdict."))
