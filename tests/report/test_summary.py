"""The first screen: one content for all faces, bars in order, names that stay names."""

import json
import re
from dataclasses import asdict, replace

import numpy as np
import pytest

from knockoffs.conditional_tests.resolution import Discovery
from knockoffs.report.facts import Facts
from knockoffs.report.page import page
from knockoffs.report.summary import as_text, bar, first_screen, recorded_screen, verdict_line


@pytest.fixture
def found(make):
    """Tests that found a feature and a group of two among five."""
    tested = make(list("abcde"), p_values=np.array([2e-4, 0.03, 0.04, 0.5, 0.9]))
    both = (Discovery(("b", "c"), 0.0004, 0.001, 4.0), Discovery(("a",), 0.0002, 0.002, 8.0))
    return replace(tested, discoveries=both, selected=np.array([1, 1, 1, 0, 0], bool))


def test_rows_are_sorted_by_their_bars_which_are_scores(found):
    screen = first_screen(found)
    assert screen.found == "2 discoveries among 5 features" and screen.value == "p-value"
    assert [(row.name, row.value, row.share) for row in screen.rows] == [("a", 2e-4, 1.0), ("one of b, c", 4e-4, 0.5)]
    lines = as_text(screen, "y").splitlines()
    assert lines[0] == "2 discoveries among 5 features for y (the chance that any of them is false is at most 0.2)"
    assert lines[2:4] == [f"  a            {'█' * 16}  p = 0.0002", f"  one of b, c  {'█' * 8}          p = 0.0004"]
    assert lines[5].startswith("Verdict: ") and lines[-1].startswith("Next step: ")


def test_every_face_says_the_same(found):
    screen, html = first_screen(found), page(Facts(found, called="y"))
    again = recorded_screen(json.loads(json.dumps(asdict(screen))))
    assert again == screen  # what the page in the browser and the command line read
    assert str(found) == as_text(again)
    shown = re.sub(r"<[^>]+>", "", html)
    for words in (screen.found, screen.level, screen.verdict, screen.next_step, *(row.name for row in screen.rows)):
        assert words in shown and words in str(found).replace("\n", " ")
    assert "one of b, c" in found._repr_html_()


def test_if_nothing_is_selected_the_nearest_are_named_for_what_they_are(make):
    nothing = make(["a", "b", "c"], [0.5, 0.2, -1.0])
    screen = first_screen(nothing)
    assert screen.found == "0 of 3 features selected" and screen.what == "nearest, not selected"
    assert [row.name for row in screen.rows] == ["a", "b"]  # c is less important than its knockoff
    assert "Nearest, not selected:\n  a" in str(nothing)
    assert first_screen(make(["a"], [0.0])).rows == ()
    tested = replace(make(list("abc"), p_values=np.full(3, 0.2), fdr=0.1), discoveries=())
    screen = first_screen(tested)  # the group of all features was not rejected, so no other was tested
    assert [(row.name, row.value) for row in screen.rows] == [("all 3 features together", 0.2)]
    assert screen.level == "the chance that any discovery would be false is at most 0.1"


def test_many_and_infinite_and_hostile(make, hostile, rng):
    many = make([f"x{j}" for j in range(100)], rng.random(100) + 1, fdr=0.2)
    assert len(first_screen(many).rows) == 30 and "and 70 more" in str(many)
    assert [row.share for row in first_screen(make(["a", "b"], [np.inf, 1.0], fdr=0.6)).rows] == [1.0, 1.0]
    lines = str(make(list(hostile), rng.random(len(hostile)) + 1)).splitlines()
    assert max(map(len, lines)) <= 100
    assert not set("".join(lines)) & set("\x00\x07\x1b\u202e\u2066\u2028\r")


def test_bars_are_as_long_as_their_shares():
    for eighths in range(129):
        drawn = bar(eighths / 128, 16)
        assert len(drawn) == -(-eighths // 8)


def test_the_verdict_is_one_line_with_its_word(selection):
    class Trial:
        word = "good"
        headline = "On this table 9 % of 120 trials were wrong.\nMore."

    assert verdict_line(Trial()) == "Verdict: good. On this table 9 % of 120 trials were wrong."
    assert verdict_line(selection.verdict).startswith("Verdict: good. ")


def test_ranks_are_those_of_the_order(selection):
    assert (selection.ranking[selection.surest_first] == np.arange(40) + 1).all()


def test_the_next_step_of_tests_that_find_nothing_is_no_grouping(make):
    """Where a tree is tested and nothing is found, all features together were tested already."""
    nothing = make(list("abc"), p_values=np.array([0.6, 0.7, 0.9]))
    assert "group columns" in first_screen(nothing).next_step
    tree = first_screen(replace(nothing, discoveries=()))
    assert tree.next_step == "Use more rows, or other columns: even all of these together are not significant."
