"""The pictures that are drawn without data: what the docs show is what is drawn, and words stay in their boxes."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
if not (ROOT / "tools" / "which.py").is_file():
    pytest.skip("the tools are not here", allow_module_level=True)
spec = importlib.util.spec_from_file_location("which", ROOT / "tools" / "which.py")
which = importlib.util.module_from_spec(spec)
spec.loader.exec_module(which)

OUTSIDE = """(() => {
    const around = [...document.querySelectorAll('rect')].slice(1).map(rect => rect.getBBox());
    const held = (a, b) => a.x >= b.x + 3 && a.x + a.width <= b.x + b.width - 3
                        && a.y >= b.y && a.y + a.height <= b.y + b.height;
    return [...document.querySelectorAll('text:not(.way)')]
        .filter(words => !around.some(box => held(words.getBBox(), box))).map(words => words.textContent);
})()"""


def test_the_docs_show_what_is_drawn():
    assert which.PLACE.read_text(encoding="utf-8") == which.picture(), "run make picture"


def test_every_answer_is_also_in_words():
    page = (ROOT / "docs" / "which_procedure.md").read_text(encoding="utf-8")
    for words in ("n_draws", "post_hoc", "groups", "n_knockoffs", "ghost", "conditional"):
        assert words in which.picture() or words.capitalize() in which.picture()
        assert words in page.split("## By the table")[0], f"{words} is missing in the text beside the picture"


def test_no_word_leaves_its_box(browser):
    browser.open(which.PLACE)
    assert browser.run("document.querySelectorAll('text').length") > 30
    assert browser.run(OUTSIDE) == []
