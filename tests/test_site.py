"""The site that `make docs` built: nothing is asked from outside, no link leads nowhere, every public name is there."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "build" / "site"
pytestmark = pytest.mark.skipif(not SITE.exists(), reason="the site is not built: make docs")
FETCHED = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("object", "data"),
}


class Page(HTMLParser):
    """What a page asks for, where its links lead, and its anchors."""

    def __init__(self, path):
        super().__init__()
        self.fetched, self.links, self.anchors = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.anchors.add(value)
            if (tag, name) in FETCHED and value:
                self.fetched.append(value)
            if (tag, name) == ("a", "href") and value:
                self.links.append(value)


def outside(address):
    return re.match(r"(?!data:)[a-z]+:|//", address) is not None


def pages():
    return {path: Page(path) for path in SITE.rglob("*.html") if "_static" not in path.parts}


def faults(found):
    """Addresses of pages that are outside of the site, and links that lead nowhere."""
    for path, page in found.items():
        for address in page.fetched:
            if outside(address):
                yield f"{path.name} asks for {address}"
        for link in page.links:
            file, anchor = urldefrag(link)
            target = (path.parent / unquote(file)).resolve() if file else path
            if outside(link):
                continue
            if not target.exists():
                yield f"{path.name} links to {link}, which is not there"
            elif anchor and target in found and unquote(anchor) not in found[target].anchors:
                yield f"{path.name} links to {link}; there is no such place on it"


def test_pages_are_complete_without_a_network():
    found = pages()
    assert len(found) > 50
    assert list(faults({path.resolve(): page for path, page in found.items()})) == []


def test_style_sheets_ask_for_nothing_outside():
    for sheet in SITE.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        asked = re.findall(r"@import\s+[^;]+|url\(\s*['\"]?([^)'\"]+)", text)
        assert not [address for address in asked if outside(address)], sheet.name


def test_every_public_name_has_a_page():
    import knockoffs

    for name in knockoffs._PUBLIC:
        assert (SITE / "api" / "names" / f"knockoffs.{name}.html").exists(), name


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<script src="https://cdn.example/x.js"></script>', "asks for"),
        ('<a href="gone.html">x</a>', "not there"),
        ('<a href="#gone">x</a>', "no such place"),
        ('<a id="here" href="#here">x</a><a href="https://example.org">x</a>', None),
    ],
)
def test_a_fault_of_a_page_is_seen(body, fault, tmp_path):
    path = (tmp_path / "page.html").resolve()
    path.write_text(body)
    seen = list(faults({path: Page(path)}))
    assert seen == [] if fault is None else len(seen) == 1 and fault in seen[0]


def test_a_keyboard_can_scroll_and_a_screen_reader_knows_the_headings():
    for path in SITE.rglob("*.html"):
        if {"_static", "_modules"} & set(path.parts):
            continue
        text = path.read_text(encoding="utf-8")
        assert "<pre>" not in text, f"{path.name}: a wide block cannot be scrolled by keyboard"
        assert 'role="heading">' not in text, f"{path.name}: a heading has no level"
