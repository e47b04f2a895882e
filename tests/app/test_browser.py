"""The page in a real browser: from dropping a file to the report, a cancel, two runs at once, a killed worker."""

import json
import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from client import App

from knockoffs.table.files import write_table_file

pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'knockoffs[app]'")
ROOT = Path(__file__).resolve().parents[2]
HOSTILE = (
    "<script>window.ran=1</script>",
    '"><img src=x onerror=window.ran=2>',
    "</select><svg/onload=window.ran=3>",
    "{{constructor.constructor('window.ran=4')()}}",
    "${window.ran=5}",
    "javascript:window.ran=6",
    "\u202eright-to-left\u2066",
    "bell\x07escape\x1b[31m",
    '=HYPERLINK("http://example.com","x")',
    "n" * 10_000,
    " ",
)
QUICK = {"method": "knockoffs", "estimator": "lasso"}


@pytest.fixture(scope="module")
def app(browser, tmp_path_factory):
    """The app, as it is started by a user."""
    started = App(tmp_path_factory.mktemp("browser") / "temporary", "--at-once", "2")
    yield started
    started.end(signal.SIGINT)


@pytest.fixture
def page(browser, app):
    browser.open(app.address)
    browser.until("document.querySelectorAll('#examples button').length")
    return browser


def csv_of(folder, names, n=120):
    """Table whose first three columns explain its last."""
    rng = np.random.default_rng(0)
    X = {name: rng.standard_normal(n).round(3) for name in names}
    label = np.array(["<b>low</b>", "mid'\u202e", "high"], dtype=object)[rng.integers(0, 3, n)]
    y = (3 * np.sum(list(X.values())[:3], axis=0) + rng.standard_normal(n)).round(3)
    extra = {"who": np.array([f"<i>{i}" for i in range(n)], dtype=object), "label": label, "y": y}
    write_table_file({**X, **extra}, folder / "table.csv")
    return (folder / "table.csv").read_text(encoding="utf-8")


def drop(page, content, name="t.csv"):
    """Drop a file on the page."""
    page.run(
        "(() => { const data = new DataTransfer();"
        f"data.items.add(new File([{json.dumps(content)}], {json.dumps(name)}));"
        "const how = {dataTransfer: data, bubbles: true, cancelable: true};"
        "document.body.dispatchEvent(new DragEvent('drop', how)); })()"
    )


def choose(page, name, value):
    """Choose from a list, as a user does."""
    field = f"document.getElementById({json.dumps(name)})"
    page.run(f"(() => {{ {field}.value = {json.dumps(value)}; {field}.dispatchEvent(new Event('change')); }})()")


def dropped(page, content, **options):
    """Drop a table, and choose its last column as the target."""
    drop(page, content)
    page.until("!document.getElementById('run-part').hidden")
    choose(page, "target", page.run("String(document.getElementById('target').options.length - 2)"))
    for key, value in {**QUICK, **options}.items():
        choose(page, f"option-{key}", value)
    page.run("document.getElementById('fdr').value = '0.4'")  # so few features can be selected at all


def cards(page, state=""):
    return page.run(f"document.querySelectorAll('.run{state}').length")


def frame_of(page, seconds=30):
    """Session of the report's frame, which has a process of its own."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        session, page._session = page._session, None
        try:
            found = [t for t in page.call("Target.getTargets")["targetInfos"] if t["type"] == "iframe"]
            if found:
                return page.call("Target.attachToTarget", targetId=found[-1]["targetId"], flatten=True)["sessionId"]
        finally:
            page._session = session
        time.sleep(0.2)
    raise TimeoutError("there is no frame")


def test_the_whole_way_from_a_dropped_file_to_the_report(page, app, tmp_path):
    dropped(page, csv_of(tmp_path, HOSTILE))
    shown = page.run("[...document.querySelectorAll('#columns tbody th')].map(e => e.textContent)")
    assert shown[0] == HOSTILE[0] and shown[6] == "\\u202eright-to-left\\u2066" and len(shown) == len(HOSTILE) + 3
    assert max(map(len, shown)) <= 80
    # an identifier is left out, and why
    assert page.run("document.getElementById('use-11').checked") is False
    assert "different label in each of 120 rows" in page.run("document.querySelectorAll('.problem')[0].textContent")
    # labels become a scale, in an order
    choose(page, "kind-12", "ordinal")
    order = "[...document.querySelectorAll('.order bdi')].map(e => e.textContent)"
    assert page.run(order) == ["<b>low</b>", "high", "mid'\\u202e"]
    page.run("document.getElementById('up-12-2').click()")
    assert page.run(order) == ["<b>low</b>", "mid'\\u202e", "high"]
    assert page.run("document.activeElement.id") == "up-12-1"
    page.run("document.getElementById('run').click()")
    page.until("document.querySelector('.run')")
    page.until("document.querySelector('.run.done, .run.failed, .run.killed')", 300)
    assert cards(page, ".done") == 1, page.run("document.querySelector('.run').textContent")
    said = page.run("document.querySelector('.run [role=status]').textContent")
    assert re.match(r"\d+ of 12 features selected\.", said) and int(said.split()[0]) >= 3
    command = page.run("document.querySelector('.run pre').textContent")
    assert "--fdr 0.4" in command and "--drop who" in command and "--kind 'label=[" in command and command.isprintable()
    # the report, in a frame that reaches nothing
    session, page._session = page._session, frame_of(page)
    try:
        page.until("document.getElementById('slider') && !document.getElementById('slider').hidden")
        assert page.run("document.querySelector('h1').textContent") == "Features that matter for y"
        assert page.run("window.origin") == "null" and page.run("window.ran") is None
        assert page.run(f"fetch({json.dumps(app.address + 'jobs')}).then(() => 'came', () => 'refused')") == "refused"
    finally:
        page._session = session
    links = page.run("[...document.querySelectorAll('.files a')].map(a => a.getAttribute('href'))")
    names = ["report.html", "report.html?download", "selection.json", "selection.csv", "file"]
    assert [link.rsplit("/", 1)[1] for link in links] == names
    kept = json.loads(app.ask(links[2]))
    assert kept["parameters"]["kinds"] == {"label": ["<b>low</b>", "mid'\u202e", "high"]}
    assert kept["parameters"]["drop"] == ["who"] and kept["data"]["file"] == "t.csv"
    # nothing from outside, and no script of the data
    assert page.run("window.ran") is None and page.complaints() == []
    assert all(url.startswith((app.address, "data:")) for url in page.requests())
    # a page that is opened again finds its runs
    page.open(app.address)
    page.until("document.querySelector('.run.done')")


def test_the_policy_holds_where_escaping_would_fail(page):
    for planted in (
        "document.body.innerHTML = '<img src=x onerror=window.ran=1>'",
        "document.body.insertAdjacentHTML('beforeend', '<script>window.ran=1</script>')",
        "setTimeout('window.ran=1', 0)",
    ):
        with pytest.raises(RuntimeError, match="TrustedHTML|TrustedScript|Trusted Type"):
            page.run(f"{planted}; 0")
    page.run(
        "(() => { const b = document.createElement('b'); b.setAttribute('style', 'color: red'); b.id = 'red';"
        "document.body.append(b); const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; })()"
    )
    assert page.run("getComputedStyle(document.getElementById('red')).color") != "rgb(255, 0, 0)"
    refused = page.run("fetch('http://127.0.0.1:9/').then(() => 'came', () => 'refused')")
    assert refused == "refused" and page.run("window.ran") is None
    assert len(page.complaints()) >= 5


def ran(page):
    """Run, and give what is said of it in the end."""
    before = cards(page)
    page.run("document.getElementById('run').click()")
    page.until(f"document.querySelectorAll('.run').length > {before}")
    page.until("document.querySelector('.run:last-child').matches('.done, .failed, .killed')", 300)
    return page.run("document.querySelector('.run:last-child [role=status]').textContent")


def test_weights_and_groups(page, app, tmp_path):
    dropped(page, csv_of(tmp_path, ["a", "b", "c", "d", "e", "f"]))
    page.run("document.getElementById('options').open = true")
    offered = page.run("[...document.getElementById('weights').options].map(e => e.textContent)")
    assert offered[1:] == ["a", "b", "c", "d", "e", "f", "y"]  # numbers only
    choose(page, "weights", page.run("document.getElementById('target').value"))
    page.run("document.getElementById('run').click()")
    assert "The weights are the column" in page.run("document.getElementById('alarm').textContent")
    assert page.run("document.getElementById('group-4')") is None
    choose(page, "weights", "3")
    choose(page, "groups", "named")
    assert page.run("document.getElementById('use-3')") is None  # it is no feature any more
    for j in (4, 5):
        page.enter(f"group-{j}", "pair, <b>")
    values = csv_of(tmp_path, ["a", "b", "c", "d", "e", "f"]).splitlines()[1:]
    negative = any(float(line.split(",")[3]) < 0 for line in values)
    said = ran(page)
    assert negative and said.startswith("Failed: --weights ") and "has a weight of -" in said
    choose(page, "weights", "")
    said = ran(page)
    assert re.match(r"\d of 6 features selected\.", said), said  # a, b, c, d, the pair and the label
    links = page.run("[...document.querySelectorAll('.run:last-child .files a')].map(a => a.getAttribute('href'))")
    groups = next(link for link in links if "/groups-" in link)
    assert app.ask(groups) == 'column,group\ne,"pair, <b>"\nf,"pair, <b>"\n' and page.complaints() == []


def test_two_runs_at_once_one_is_cancelled_and_one_is_killed(page, app, tmp_path):
    before = len(json.loads(app.ask("jobs")))
    dropped(page, csv_of(tmp_path, ["a", "b", "c", "d", "e", "f"]), n_draws=20_000)
    for _ in range(2):
        page.until("!document.getElementById('run').disabled")
        page.run("document.getElementById('run').click()")
    page.until("document.querySelectorAll('.run.running').length === 2")
    page.until(f"document.querySelectorAll('.run').length === {before + 2}")
    told = "[...document.querySelectorAll('.run.running .fine')].map(e => e.textContent)"
    page.until(
        f"{told}.filter(words => / left in this step/.test(words)).length === 2", 300
    )  # numba may have to compile
    rest = (
        "document.querySelector('.run.running .fine').textContent.match(/about (?:(\\d+) min )?(\\d+) s left in all/)"
    )
    seconds = f"(found => 60 * Number(found[1] || 0) + Number(found[2]))({rest})"
    falls = f"(now => now < (window.most = Math.max(window.most || 0, now)))({seconds})"
    page.until(falls, 120)  # what is left in all shrinks, if it rises before on a busy machine too
    bars = page.run("[...document.querySelectorAll('.run.running progress')].map(e => e.position)")
    assert all(0 < bar < 1 for bar in bars)
    workers = children(app.process.pid)
    assert len(workers) == 2
    page.run("document.querySelector('.run.running button').click()")
    page.until("document.querySelectorAll('.run.cancelled').length === 1", 20)
    left = [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    assert len(left) == 1 and cards(page, ".running") == 1
    os.kill(left[0], signal.SIGKILL)
    page.until("document.querySelectorAll('.run.killed').length === 1", 20)
    said = page.run("document.querySelector('.run.killed [role=status]').textContent")
    assert said.startswith("Ended from outside: ") and "SIGKILL" in said
    assert children(app.process.pid) == [] and page.complaints() == []


def children(parent):
    """Processes of jobs."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("there is no /proc here")
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            stat, words = (place / "stat").read_text(), (place / "cmdline").read_bytes()
        except OSError:
            continue
        state, up = stat.rpartition(") ")[2].split()[:2]
        if int(up) == parent and state != "Z" and b"spawn_main" in words:
            found.append(int(place.name))
    return found


def test_what_cannot_be_read_or_understood_is_said_on_the_page(page):
    alarm = "document.getElementById('alarm').textContent"
    drop(page, "a,b\n1,2,3\n")
    page.until(alarm)
    assert page.run(alarm).startswith("t.csv: ") and page.run("document.getElementById('columns-part').hidden")
    drop(page, "x", "t.exe")
    page.until(f"{alarm}.includes('.parquet')")
    drop(page, "a,b\n" + "1,2\n2,1\n" * 10)
    page.until("!document.getElementById('run-part').hidden")
    assert page.run(alarm) == ""
    page.run("document.getElementById('run').click()")
    assert page.run(alarm) == "Choose the column that is to be explained."
    assert page.run("document.activeElement.id") == "target"
    choose(page, "target", "1")
    for level in ("0", "1", "", "-3", "x"):
        page.run(f"document.getElementById('fdr').value = {json.dumps(level)}; document.getElementById('run').click()")
        assert "between 0 and 1" in page.run(alarm)
    assert page.run("document.activeElement.id") == "fdr"


def test_thousands_of_columns_are_searched_not_all_drawn(page):
    names = [f"gene {j} <b>" for j in range(3000)]
    rng = np.random.default_rng(0)
    rows = "\n".join(",".join(f"{value:.2f}" for value in row) for row in rng.standard_normal((12, 3000)))
    drop(page, ",".join(names) + "\n" + rows + "\n")
    page.until("!document.getElementById('columns-part').hidden")
    count = "document.querySelectorAll('#columns tbody tr').length"
    assert page.run(count) == 100
    page.run("document.getElementById('more').click()")
    assert page.run(count) == 200
    page.enter("search", "gene 2999 ")
    assert page.run(count) == 1 and page.run("document.querySelector('#columns th bdi').textContent") == names[2999]
    page.run("document.getElementById('use-2999').click()")
    page.enter("search", "")
    page.enter("search", "2999")
    assert page.run("document.getElementById('use-2999').checked") is False
    assert page.run("document.getElementById('target').options.length") == 3001


def test_the_keyboard_reaches_everything(page):
    seen = []
    for _ in range(6):
        page.press("Tab", 9)
        seen.append(page.run("document.activeElement.id"))
    assert seen[0] == "file" and "example-diabetes" in seen
    page.run("document.getElementById('example-diabetes').focus()")
    page.press(" ", 32)
    page.until("!document.getElementById('run-part').hidden")
    assert page.run("document.activeElement.id") == "columns-heading"
    page.press("Tab", 9)
    assert page.run("document.activeElement.id") == "search"
    unlabelled = page.run(
        "[...document.querySelectorAll('input, select, button')].filter(e => !e.labels?.length && "
        "!e.getAttribute('aria-label') && !e.textContent.trim()).map(e => e.id)"
    )
    assert unlabelled == []


@pytest.mark.parametrize("width", [400, 900, 1600])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_its_window(browser, app, tmp_path, width, dark):
    browser.open(app.address, width=width, dark=dark)
    browser.until("document.querySelectorAll('#examples button').length")
    drop(browser, csv_of(tmp_path, HOSTILE))
    browser.until("!document.getElementById('run-part').hidden")
    browser.run("document.getElementById('options').open = true")
    assert browser.run("document.documentElement.scrollWidth") <= width
    paper = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(21, 24, 28)") == dark


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_that_hinders(browser, app, tmp_path, dark):
    place = Path(os.environ.get("AXE_CORE", ROOT / "node_modules" / "axe-core" / "axe.min.js"))
    if not place.is_file():
        pytest.skip("axe-core is not here: npm install axe-core, or set AXE_CORE to its axe.min.js")
    browser.open(app.address, dark=dark)
    browser.until("document.querySelectorAll('#examples button').length")

    def violations():
        options = "{iframes: false}"
        found = f"axe.run(document, {options}).then(f => f.violations.map(v => v.id + ': ' + v.nodes[0].html))"
        return browser.run(found)

    browser.run(place.read_text(encoding="utf-8") + ";0")
    assert violations() == []
    dropped(browser, csv_of(tmp_path, HOSTILE), n_draws=20_000)
    choose(browser, "kind-12", "ordinal")
    browser.run("document.getElementById('options').open = true; document.getElementById('run').click()")
    browser.until("document.querySelector('.run.running')")
    assert violations() == []
    browser.run("document.querySelector('.run.running button').click()")
    browser.until("!document.querySelector('.run.running')")
    choose(browser, "option-n_draws", "1")
    browser.run("document.getElementById('run').click()")
    browser.until("document.querySelector('.run.running')")
    browser.until("!document.querySelector('.run.running')", 300)
    assert cards(browser, ".done") >= 1
    browser.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    assert violations() == []
