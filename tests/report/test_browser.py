"""The page in a real browser: nothing from outside, no script of the data, and a slider that tells the truth."""

import os
from pathlib import Path

import numpy as np
import pytest

from knockoffs.report.facts import Facts
from knockoffs.report.formatting import short
from knockoffs.report.levels import stops
from knockoffs.report.page import page
from knockoffs.report.write import write_report

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def opened(browser, selection, tmp_path):
    browser.open(write_report(Facts(selection), tmp_path / "report.html"))
    return browser


def stop_of(browser):
    texts = [
        browser.run(f"document.getElementById('{name}').textContent")
        for name in ("stop-count", "stop-caution", "stop-promise")
    ]
    marked = browser.run("[...document.querySelectorAll('#features tr.chosen')].map(r => r.cells[0].textContent)")
    return texts, marked


def test_the_slider_selects_again_and_says_what_holds(opened, selection):
    found = stops(selection)
    at = next(i for i, stop in enumerate(found) if stop.asked)
    texts, marked = stop_of(opened)
    assert marked == list(selection.selected_names)
    assert "the level asked for" in texts[0] and texts[1] == "" and "FDR ≤ 0.2" in texts[2]
    seen = set()
    for i, stop in enumerate(found):
        opened.enter("level", i)
        texts, marked = stop_of(opened)
        assert texts[1:] == [stop.caution, stop.promise]
        assert len(marked) == stop.n_selected
        assert opened.run("document.querySelectorAll('rect.selected').length") == stop.n_selected
        assert (i == at) == opened.run("document.getElementById('back').disabled")
        seen.add(stop.n_selected)
    assert len(seen) > 2
    opened.run("document.getElementById('back').click()")
    assert stop_of(opened)[1] == list(selection.selected_names)


def test_the_keyboard_moves_the_slider(opened, selection):
    at = next(i for i, stop in enumerate(stops(selection)) if stop.asked)
    opened.run("document.getElementById('level').focus()")
    opened.press("ArrowRight", 39)
    assert opened.run("document.getElementById('level').value") == str(at + 1)
    texts, _ = stop_of(opened)
    assert "chosen after looking" in texts[0] and "not promised" in texts[1]
    assert opened.run("document.getElementById('level').getAttribute('aria-valuetext')").startswith("level 0.25, ")
    assert opened.run("document.getElementById('level-promise').getAttribute('aria-live')") == "polite"


def test_no_script_of_the_data_runs_and_nothing_is_asked_for(browser, make, hostile, rng, tmp_path):
    selection = make(list(hostile), rng.random(len(hostile)) + 0.1)
    facts = Facts(selection, called=hostile[0], warnings=list(hostile), python="\n".join(hostile[:3]))
    place = write_report(facts, tmp_path / "report.html")
    browser.open(place)
    browser.enter("level", 0)
    browser.enter("search", "<")
    assert browser.run("document.querySelectorAll('#features tbody tr').length") == sum(
        "<" in short(n, 80) for n in hostile
    )
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


def test_without_scripts_the_answer_is_there_and_the_slider_is_not(browser, selection, tmp_path):
    browser.open(write_report(Facts(selection), tmp_path / "report.html"), scripts=False)
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    texts, marked = stop_of(browser)
    assert "the level asked for" in texts[0] and marked == list(selection.selected_names)
    assert browser.run("document.getElementById('slider').hidden") is True


def test_every_feature_can_be_found_among_thousands(browser, make, rng, tmp_path):
    W = rng.standard_normal(5000) * 0.3 + (np.arange(5000) < 300) * 2
    selection = make([f"snp {j} <b>" for j in range(5000)], W, judged=False)
    browser.open(write_report(Facts(selection), tmp_path / "report.html"))
    count = "document.querySelectorAll('#features tbody tr').length"
    assert browser.run(count) == 200
    browser.run("document.getElementById('more').click()")
    assert browser.run(count) == 400
    n = int(selection.selected.sum())
    assert browser.run("document.querySelectorAll('#features tr.chosen').length") == min(n, 400)
    last = selection.feature_names[int(np.argmin(W))]
    browser.enter("search", last)
    assert browser.run("document.querySelector('#features tbody th').textContent") == last
    assert browser.run(count) == 1


@pytest.mark.parametrize("width", [400, 900, 1600])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_its_window_and_its_words_can_be_read(browser, make, hostile, rng, tmp_path, width, dark):
    selection = make(list(hostile), rng.random(len(hostile)) + 0.1)
    browser.open(write_report(Facts(selection), tmp_path / "report.html"), width=width, dark=dark)
    assert browser.run("document.documentElement.scrollWidth") <= width
    ink, paper = (browser.run(f"getComputedStyle(document.body).{key}") for key in ("color", "backgroundColor"))
    assert contrast(ink, paper) > 7
    assert brightness(paper) < 0.05 if dark else brightness(paper) > 0.9


def brightness(colour):
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


CUT_OFF = """[...document.querySelectorAll('svg.picture text')].filter(words => {
    const box = words.getBBox(), view = words.ownerSVGElement.viewBox.baseVal;
    return box.x < -0.5 || box.x + box.width > view.width + 0.5 || box.y + box.height > view.height + 0.5;
}).map(words => words.textContent)"""


@pytest.mark.parametrize("width", [400, 900])
def test_no_word_of_a_picture_is_cut_off(browser, selection, tmp_path, width):
    assert len(selection.verdict.checks) > 5
    browser.open(write_report(Facts(selection), tmp_path / "report.html"), width=width)
    assert browser.run("document.querySelectorAll('svg.picture text').length") > 20
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
