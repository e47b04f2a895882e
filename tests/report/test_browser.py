"""The report in a real browser: nothing from outside, no script of the data, words that can be read."""

import os
from pathlib import Path

import numpy as np
import pytest

from knockoffs.importance.paths.lambda_path import LambdaPath
from knockoffs.report.facts import Facts
from knockoffs.report.page import page
from knockoffs.report.write import write_report

ROOT = Path(__file__).resolve().parents[2]


def test_no_script_of_the_data_runs_and_nothing_is_asked_for(browser, make, hostile, rng, tmp_path):
    selection = make(list(hostile), rng.random(len(hostile)) + 0.1)
    facts = Facts(selection, called=hostile[0], warnings=list(hostile), python="\n".join(hostile[:3]))
    place = write_report(facts, tmp_path / "report.html")
    browser.open(place)
    assert browser.run("window.ran") is None
    assert browser.requests() == [place.resolve().as_uri()]
    assert browser.complaints() == []
    assert browser.run("getComputedStyle(document.body).display") == "block"
    assert browser.run("document.images.length + document.querySelectorAll('iframe, object, embed').length") == 0


def test_the_policy_holds_where_escaping_would_fail(browser, selection, tmp_path):
    planted = (
        '<script>window.ran=1</script><img src="http://127.0.0.1:9/x.png" onerror="window.ran=2">'
        "<style>body{color:red}</style>"
    )
    place = tmp_path / "report.html"
    place.write_text(page(Facts(selection)).replace("<main>", f"<main>{planted}"), encoding="utf-8")
    browser.open(place)
    assert browser.run("window.ran") is None
    assert browser.run("getComputedStyle(document.body).color") != "rgb(255, 0, 0)"
    assert len(browser.complaints()) >= 3


@pytest.mark.parametrize("width", [400, 900, 1600])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_its_window_and_its_words_can_be_read(browser, make, hostile, rng, tmp_path, width, dark):
    selection = make(list(hostile), rng.random(len(hostile)) + 0.1)
    browser.open(write_report(Facts(selection), tmp_path / "report.html"), width=width, dark=dark)
    assert browser.run("document.documentElement.scrollWidth") <= width
    ink, paper = (browser.run(f"getComputedStyle(document.body).{key}") for key in ("color", "backgroundColor"))
    assert contrast(ink, paper) > 7
    assert brightness(paper) < 0.05 if dark else brightness(paper) > 0.9
    words = browser.run("getComputedStyle(document.querySelector('.picture text')).fill")
    assert words == ink  # figures follow the page


def brightness(colour):
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


CUT_OFF = """[...document.querySelectorAll('.picture text')].filter(words => {
    const box = words.getBoundingClientRect(), view = words.ownerSVGElement.getBoundingClientRect();
    return box.left < view.left - 1 || box.right > view.right + 1 || box.bottom > view.bottom + 1;
}).map(words => words.textContent)"""


@pytest.mark.parametrize("width", [400, 900])
def test_no_word_of_a_figure_is_cut_off(browser, selection, tmp_path, width):
    path = LambdaPath(np.linspace(0, 2, 5), np.outer(selection.W, np.arange(5.0)), selection.feature_names, "x")
    browser.open(write_report(Facts(selection, path=path), tmp_path / "report.html"), width=width)
    assert browser.run("document.querySelectorAll('.picture').length") > 4
    assert browser.run("document.querySelectorAll('.picture text').length") > 20
    assert browser.run(CUT_OFF) == []


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_that_hinders(browser, make, hostile, rng, tmp_path, dark):
    place = Path(os.environ.get("AXE_CORE", ROOT / "node_modules" / "axe-core" / "axe.min.js"))
    if not place.is_file():
        pytest.skip("axe-core is not here: npm install axe-core, or set AXE_CORE to its axe.min.js")
    draws = np.abs(rng.standard_normal((4, len(hostile))))
    tested = make(["a", "b"], p_values=np.array([0.01, 0.5]))
    for selection in (make(list(hostile), draws[0]), make(list(hostile), draws=draws), tested):
        browser.open(write_report(Facts(selection), tmp_path / "report.html"), dark=dark)
        browser.run(place.read_text(encoding="utf-8") + ";0")
        found = browser.run("axe.run(document).then(found => found.violations.map(v => v.id + ': ' + v.nodes[0].html))")
        assert found == []
