"""The page as text: one file, nothing from outside, data that stay data, and a size that does not run away."""

import hashlib
import re
from base64 import b64encode
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from knockoffs.conditional_tests.resolution import Discovery
from knockoffs.importance.paths.lambda_path import LambdaPath
from knockoffs.report import figures
from knockoffs.report.facts import Facts
from knockoffs.report.page import page
from knockoffs.sampling.pair import Pair
from knockoffs.table.table import read_table
from knockoffs.table.target import as_target


class Elements(HTMLParser):
    """Start tags with their attributes, and the text within scripts and styles."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.inside, self._open, self.words = [], {"script": [], "style": []}, None, []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag in self.inside:
            self._open = tag
            self.inside[tag].append("")

    def handle_endtag(self, tag):
        self._open = None if tag == self._open else self._open

    def handle_data(self, data):
        if self._open:
            self.inside[self._open][-1] += data
        else:
            self.words.append(data)


@pytest.fixture
def hostile_page(make, hostile, rng):
    W = rng.random(len(hostile)) + 0.1
    selection = make(list(hostile), W)
    X = selection.pair.X
    table = read_table(X)
    columns = tuple(replace(column, name=name) for column, name in zip(table.columns, hostile, strict=True))
    table = replace(table, columns=columns, named=True)
    path = LambdaPath(np.linspace(0, 2, 5), np.outer(W, np.arange(5.0)), tuple(hostile), "squared_error")
    labels = np.array(["<i>no</i>", "</script>"], dtype=object)[(X[:, 0] > 0).astype(int)]
    return page(
        Facts(
            selection,
            table=table,
            target=as_target(labels, table),
            called=hostile[1],
            parameters={"target": hostile[1], "drop": list(hostile[:5]), "fdr": 0.2, "seed": 0},
            data={"file": hostile[2], "sha256": "0", "n_rows": 80, "n_columns": 24, "files": {hostile[0]: "1"}},
            python=f"KnockoffSelector(drop=[{hostile[1]!r}])",
            versions={"knockoffs": hostile[3]},
            warnings=list(hostile),
            path=path,
        )
    )


def test_data_make_no_elements_and_no_attributes(hostile_page):
    found = Elements(hostile_page)
    tags = {tag for tag, _ in found.tags}
    assert not tags & {"script", "img", "i", "iframe", "object", "embed", "form", "base", "foreignobject", "image"}
    assert len(found.inside["style"]) == 1
    for tag, attributes in found.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "src", "srcset")]
        if "href" in attributes:
            assert attributes["href"].startswith(("#", "data:,")), tag
    assert len(hostile_page.encode()) < 1e6


def test_hostile_marks_are_written_as_escapes(hostile_page):
    for sign in "\x00\x07\x1b\u202e\u2066\u2028\ud800\r":
        assert sign not in hostile_page
    shown = " ".join(Elements(hostile_page).words)
    for written in ("\\x00", "\\u202e", "\\u2066", "\\ud800", "<script>window.ran=1</script>", "شمال"):
        assert written in shown


def test_the_policy_allows_no_script_and_this_style_alone(selection):
    found = Elements(page(Facts(selection)))
    policy = next(a["content"] for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    digest = b64encode(hashlib.sha256(found.inside["style"][0].encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
    assert "unsafe" not in policy and "script-src" not in policy


def first_block(html):
    return html.split("<main>")[0]


def test_the_first_block_lists_the_selected_features_by_their_bars(selection):
    html = page(Facts(selection))
    top = first_block(html)
    n = int(selection.selected.sum())
    assert f"<strong>{n} of 40 features selected</strong>" in top
    assert re.findall("<bdi>(.*?)</bdi>", top) == list(selection.selected_names)
    bars = [float(bar) for bar in re.findall('value="([^"]+)"', top)]
    chosen = np.sort(selection.W[selection.selected])[::-1]
    assert np.allclose(bars, chosen / chosen[0], atol=1e-4)
    assert top.count("Verdict: good. ") == top.count("Next step:") == 1
    assert html == page(Facts(selection))  # the same selection, the same bytes


def test_bars_of_tests_are_logarithms_of_p_values(make):
    selection = make(["a", "b", "c"], p_values=np.array([1e-2, 1e-4, 0.9]), judged=False)
    top = first_block(page(Facts(selection)))
    assert re.findall("<bdi>(.*?)</bdi>", top) == ["b", "a"]
    assert re.findall('value="([^"]+)"', top) == ["1.0", "0.5"]
    assert "Verdict: none. It was not asked for, or there are fewer than 50 rows." in top


def test_a_broken_verdict_stands_in_the_first_block_with_what_to_do(make, rng):
    from knockoffs.diagnostics.comparison import verdict

    selection = make([f"x{j}" for j in range(12)], rng.random(12) + 1)
    X = rng.standard_normal((500, 3))
    broken = verdict(Pair(X, 3 * X, np.arange(3)), names="abc", rng=rng)
    assert broken.word == "broken"
    top = first_block(page(Facts(replace(selection, verdict=broken))))
    assert 'class="line broken"' in top and "the level is not guaranteed" in top
    assert "knockoffs check TABLE --target TARGET" in top.split("Next step:")[1]


def test_the_notebook_shows_the_first_block(selection):
    html = selection._repr_html_()
    assert html.strip() in page(Facts(selection))
    assert str(selection).splitlines()[0].split(" (")[0] in html
    assert "<style" not in html and "class=" in html


def test_without_matplotlib_the_report_says_what_to_install(selection, monkeypatch):
    assert "<svg" in page(Facts(selection))
    monkeypatch.setattr(figures, "can_draw", lambda: False)
    html = page(Facts(selection))
    assert "<svg" not in html and "Figures need matplotlib: pip install 'knockoffs[plots]'." in html


def test_figures_follow_the_colours_of_the_page(selection):
    html = page(Facts(selection))
    assert {"blue", "orange", "soft", "ink"} <= set(re.findall(r'(?:fill|stroke)="var\(--(\w+)\)"', html))
    assert "#0072b2" not in html.lower().split("</style>")[1]


def test_columns_are_there_where_there_is_something_to_say(make, rng):
    draws = np.abs(rng.standard_normal((4, 30)))
    with_draws = Facts(make([f"x{j}" for j in range(30)], draws=draws))
    assert list(with_draws.cells) == ["feature", "selected", "W", "e-value", "frequency", "level"]
    tested = Facts(make([f"x{j}" for j in range(5)], p_values=rng.random(5)))
    assert list(tested.cells) == ["feature", "selected", "p-value", "q-value"]
    assert all(len(cells) == 5 for cells in tested.cells.values())
    assert "Features beside" in page(tested)


def test_directions_are_those_of_ranks_and_only_where_there_is_one(make, rng):
    selection = make(["up", "down", "labels"], [3.0, 2.0, 1.0], judged=False)
    X = selection.pair.X
    X[:, 2] = rng.integers(0, 3, len(X))
    table = read_table(
        pd.DataFrame(
            {"up": X[:, 0], "down": X[:, 1], "labels": np.array(list("abc"), dtype=object)[X[:, 2].astype(int)]}
        )
    )
    y = np.exp(X[:, 0]) - 3 * X[:, 1]
    found = Facts(selection, table=table, target=as_target(y, table)).directions
    from scipy.stats import spearmanr

    assert found.keys() == {0, 1}
    assert found[0] == f"↑ {spearmanr(X[:, 0], y).statistic:+.2f}"
    assert found[1] == f"↓ {spearmanr(X[:, 1], y).statistic:+.2f}".replace("-", "−")
    X[:, 0] = 1.0
    assert Facts(selection, table=table, target=as_target(y, table)).directions[0] == ""


@pytest.mark.parametrize("name", ["snp_{}", "{}" + "n" * 10_000])
def test_five_thousand_columns_cost_little(make, rng, name):
    W = rng.standard_normal(5000) * 0.3 + (np.arange(5000) < 400) * 2
    selection = make([name.format(j) for j in range(5000)], W, n=300, judged=False)
    table = read_table(pd.DataFrame({n: selection.pair.X[:, j] for j, n in enumerate(selection.feature_names)}))
    facts = Facts(selection, table=table, target=as_target(selection.pair.X[:, 0] ** 3 + selection.pair.X[:, 1], table))
    html = page(facts)
    assert len(html.encode()) < 1e6
    assert len(re.findall("<tr[ >]", html)) < 500


def test_no_feature_and_one_feature(make):
    one = make(["only"], [1.0], fdr=0.9999, offset=0, judged=False)
    assert "<strong>1 of 1 feature selected</strong>; modified false discovery rate" in page(Facts(one))
    assert "<strong>0 of 1 feature selected</strong>" in page(Facts(make(["only"], [0.0], judged=False)))
    assert "∞" in page(Facts(make(["a", "b"], [np.inf, -np.inf], judged=False)))


def test_names_of_a_group_are_whole(make):
    """Three names of 20 characters: the middle one is not cut, though together they are longer than one may be."""
    names = [letter * 20 for letter in "abc"]
    tested = make(names, p_values=np.array([0.02, 0.03, 0.04]))
    group = replace(tested, discoveries=(Discovery(tuple(names), 0.001, 0.01, 4.0),), selected=np.ones(3, bool))
    top = page(Facts(group)).split("</table>")[0]
    assert f"one of {', '.join(names)}" in top
