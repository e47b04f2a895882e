"""Take pictures of the five faces of an answer, and let axe-core look at the two that are pages.

``AXE_CORE=.../axe.min.js python tools/screens.py [FOLDER]`` needs Chromium (``apt-get install chromium``), axe-core
(``npm install axe-core``) and the extra ``app``. It writes the pictures of three tables to FOLDER (build/screens),
``docs/report.png``, ``docs/app.png`` and ``docs/faces_*.png``, and prints the findings.
``tests/browser.py`` drives Chromium.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from html import escape
from pathlib import Path

import polars as pl
from sklearn.datasets import load_iris

from knockoffs import KnockoffSelector
from knockoffs.simulate.examples import EXAMPLES

ROOT = Path(__file__).resolve().parents[1]
spec = importlib.util.spec_from_file_location("browser", ROOT / "tests" / "browser.py")
browsing = importlib.util.module_from_spec(spec)
spec.loader.exec_module(browsing)

VIEWS = [(width, dark) for width in (400, 1400) for dark in (False, True)]
AXE = "axe.run(document, {iframes: false}).then(r => r.violations.map(v => [v.id, v.impact, v.nodes[0].html]))"
BUTTON = "[...document.querySelectorAll('button')].find(b => !b.disabled && b.innerText.trim() == 'Select features')"
FACES = ("print", "notebook", "command", "report", "page")
SHELL = '<!DOCTYPE html><html lang="en"><meta name="viewport" content="width=device-width">'
SHELL += '<meta name="color-scheme" content="light dark">'
HEADING = '<main><h1 style="position: absolute; left: -99rem">An answer</h1>'  # read aloud, not seen


def example_tables():
    """Three tables with their targets: made-up houses, iris, diabetes."""
    iris = load_iris()
    names = [str(name) for name in iris.feature_names]
    flowers = dict(zip(names, iris.data.T, strict=True)) | {"species": [str(iris.target_names[k]) for k in iris.target]}
    made = {name: (EXAMPLES[name].make(), EXAMPLES[name].target) for name in ("houses", "diabetes")}
    return {"houses": made["houses"], "iris": (flowers, "species"), "diabetes": made["diabetes"]}


def look(browser, width, dark):
    """Change the window of an open page."""
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.call("Emulation.setEmulatedMedia", media="", features=[scheme])
    time.sleep(2)


def take(browser, place, found, label):
    """Take a picture of the page, and note what axe-core finds on it."""
    browser.picture(place)
    script = os.environ.get("AXE_CORE")
    if script:
        browser.run(Path(script).read_text(encoding="utf-8") + ";0")
        found[label] = browser.run(AXE)
    width, seen = (browser.run(f"document.documentElement.{key}") for key in ("clientWidth", "scrollWidth"))
    if seen > width:
        found[f"{label}, width"] = f"{seen} of {width} pixels"


def write_faces(tables, folder):
    """Write what Python, a notebook, the command line and the report show of each table; return the pages by name."""
    pages = {}
    for name, (columns, target) in tables.items():
        table = pl.DataFrame(columns)
        place = folder / f"{name}.csv"
        table.write_csv(place)
        read = pl.read_csv(place)
        selector = KnockoffSelector(random_state=0).fit(read.drop(target), read[target])
        selector.report(folder / f"{name}-report.html", force=True)
        out = folder / f"{name}-out"
        command = ["knockoffs", "select", place.name, "--target", target, "--out", out.name, "--force"]
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
        )
        texts = {"print": str(selector), "selection": str(selector.selection_), "command": done.stdout}
        for face, words in texts.items():
            (folder / f"{name}-{face}.txt").write_text(words, encoding="utf-8")
            pages[f"{name}-{face}"] = f"<pre style='white-space: pre-wrap'>{escape(words)}</pre>"
        pages[f"{name}-notebook"] = selector._html_repr()
        same = str(selector).splitlines()[2:] == str(selector.selection_).splitlines()[2:]
        print(f"{name}: print(selection) as print(selector): {same}; command: {str(selector) in done.stdout}")
    for name, words in pages.items():
        (folder / f"{name}.html").write_text(f"{SHELL}<title>{name}</title>{HEADING}{words}</main>", encoding="utf-8")
    return [*pages, *(f"{name}-report" for name in tables)]


def app_screens(browser, tables, folder, found):
    """Take pictures of the page before and after the run of each table."""
    command = [sys.executable, "-m", "knockoffs", "app", "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            address = process.stderr.readline().split()[-1]
            time.sleep(5)
            for name, (_, target) in tables.items():
                browser.open(address, width=1400)
                browser.until("document.querySelector('input[type=file]')")
                field = browser.call("Runtime.evaluate", expression="document.querySelector('input[type=file]')")[
                    "result"
                ]
                browser.call("DOM.setFileInputFiles", files=[str(folder / f"{name}.csv")], objectId=field["objectId"])
                browser.until("document.querySelector('[data-testid=stSelectbox] input')")
                for _ in range(20):  # keys that come while the page changes are lost
                    browser.run("document.querySelector('[data-testid=stSelectbox] input').focus()")
                    browser.call("Input.insertText", text=target)
                    time.sleep(1)
                    browser.press("ArrowDown", 40)
                    browser.press("Enter", 13)
                    time.sleep(2)
                    if browser.run(f"!!({BUTTON})"):
                        break
                for width, dark in VIEWS if name == "houses" else ():
                    look(browser, width, dark)
                    take(
                        browser,
                        folder / f"page-question-{width}{'-dark' * dark}.png",
                        found,
                        f"question {width} {dark}",
                    )
                browser.run(f"{BUTTON}.click()")
                browser.until("document.querySelector('iframe, [data-testid=stAlert]')", 900)
                assert not browser.run("document.querySelector('[data-testid=stAlert]')?.innerText"), "the run failed"
                for width, dark in VIEWS:
                    look(browser, width, dark)
                    take(
                        browser,
                        folder / f"{name}-page-{width}{'-dark' * dark}.png",
                        found,
                        f"{name} page {width} {dark}",
                    )
        finally:
            process.terminate()


def join(places, out, height):
    """Join pictures side by side, cut to a height, in few colours."""
    from PIL import Image

    parts = [Image.open(place).convert("RGB") for place in places]
    made = Image.new("RGB", (sum(part.width for part in parts), height), "white")
    left = 0
    for part in parts:
        made.paste(part.crop((0, 0, part.width, min(height, part.height))), (left, 0))
        left += part.width
    made.quantize(64).save(out, optimize=True)


def five_faces(name, folder, out, width=400, height=640, below=256):
    """Join the five faces of a table: in a row at 400 pixels, in one below at 1400, scaled to the same width."""
    from PIL import Image

    made = Image.new("RGB", (len(FACES) * width, height + below), "white")
    for i, face in enumerate(FACES):
        small, large = (Image.open(folder / f"{name}-{face}-{w}.png").convert("RGB") for w in (400, 1400))
        large = large.resize((width, large.height * width // large.width), Image.Resampling.LANCZOS)
        made.paste(small.crop((0, 0, width - 8, height - 8)), (i * width, 0))
        made.paste(large.crop((0, 0, width - 8, below)), (i * width, height))
    made.quantize(32).save(out, optimize=True)


def main():
    """Take all pictures."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "screens").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    tables, found = example_tables(), {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pages = write_faces(tables, folder)
        browser = browsing.Browser(profile)
        try:
            for name in pages:
                for width, dark in VIEWS:
                    browser.open(folder / f"{name}.html", width=width, dark=dark)
                    take(browser, folder / f"{name}-{width}{'-dark' * dark}.png", found, f"{name} {width} {dark}")
            app_screens(browser, tables, folder, found)
        finally:
            browser.close()
    join([folder / "houses-report-1400.png", folder / "houses-report-400-dark.png"], ROOT / "docs" / "report.png", 1560)
    join([folder / "houses-page-1400.png", folder / "houses-page-400-dark.png"], ROOT / "docs" / "app.png", 900)
    for name in tables:
        five_faces(name, folder, ROOT / "docs" / f"faces_{name}.png")
    (folder / "axe.json").write_text(json.dumps(found, indent=1))
    print(f"axe-core: {sum(map(len, found.values()))} findings on {len(found)} views")
    for label, what in found.items():
        if what:
            print(f"  {label}: {what}")


if __name__ == "__main__":
    main()
