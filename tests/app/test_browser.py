"""The page in a browser: nothing without the token, no request elsewhere, hostile names are text, no file stays."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("streamlit", reason="the extra app is not installed: pip install 'knockoffs[app]'")
from tests.browser import CHROMIUM, Browser

from knockoffs.cli import page
from knockoffs.table.files import write_table_file

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
HOSTILE = ("<script>ran=1</script>", "![x](http://example.com/a.png)", "<img src=x onerror=ran=1>", ":red[x] $y$")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Address of a page that runs; when it is ended, nothing of it is left."""
    folder = tmp_path_factory.mktemp("app")
    command = [sys.executable, "-m", "knockoffs", "app", "--no-browser"]
    environment = os.environ | {"PYTHONPATH": str(Path(page.__file__).parents[2]), "TMPDIR": str(folder)}
    with subprocess.Popen(command, env=environment, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        yield process.stderr.readline().split()[-1]
        process.terminate()
        process.communicate(timeout=600)
    assert not list(folder.iterdir())


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("chromium"))
    yield found
    found.close()


def open_page(browser, address, words, **how):
    for _ in range(1500):  # the server may be starting
        browser.open(address, **how)
        if browser.run("location.protocol") == "http:":
            break
        time.sleep(0.2)
    browser.until(f"document.body.innerText.includes({json.dumps(words)})")


def button(label):
    return (
        f"[...document.querySelectorAll('button')].find(b => !b.disabled && b.innerText.trim() == {json.dumps(label)})"
    )


def press(browser, label):
    browser.until(button(label))
    browser.run(f"{button(label)}.click()")


def choose_target(browser, words):
    browser.until("document.querySelector('[data-testid=stSelectbox] input')")
    for _ in range(200):  # keys that come while the page changes are lost
        browser.run("document.querySelector('[data-testid=stSelectbox] input').focus()")
        browser.run("document.execCommand('selectAll')")
        browser.call("Input.insertText", text=words)
        time.sleep(0.5)
        browser.press("ArrowDown", 40)
        browser.press("Enter", 13)
        time.sleep(1)
        if browser.run(f"!!({button('Select features')})"):
            return


def test_without_the_token_nothing_is_shown(browser, address):
    open_page(browser, address.split("?")[0], "The token in the address is missing or wrong.")
    assert not browser.run("document.body.innerText.includes('Table')")


def test_other_addresses_and_other_origins_are_refused(address):
    port = int(address.split(":")[2].split("/")[0])
    request = (
        "GET /_stcore/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://{origin}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    answers = []
    for origin in (f"127.0.0.1:{port}", "example.com"):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(request.format(port=port, origin=origin).encode())
            answers.append(connection.recv(12))
    assert answers == [b"HTTP/1.1 101", b"HTTP/1.1 403"]
    if sys.platform == "linux":  # where all of 127.0.0.0/8 is this machine
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))


@pytest.mark.parametrize(("width", "dark"), [(400, True), (1400, False)])
def test_from_the_upload_to_the_report(browser, address, tmp_path, width, dark):
    rng = np.random.default_rng(0)
    X = dict(zip((*HOSTILE, "a", "b"), rng.standard_normal((6, 120)).round(3), strict=True))
    write_table_file({**X, "<b>y</b>": X[HOSTILE[0]] + X[HOSTILE[1]] + X["a"]}, tmp_path / "t.csv")
    open_page(browser, address, "Upload a file", width=width, dark=dark)
    browser.until("document.querySelector('input[type=file]')")
    found = browser.call("Runtime.evaluate", expression="document.querySelector('input[type=file]')")["result"]
    browser.call("DOM.setFileInputFiles", files=[str(tmp_path / "t.csv")], objectId=found["objectId"])
    browser.until("document.body.innerText.includes('120 rows, 7 columns')")
    choose_target(browser, "<b>y")
    press(browser, "Select features")
    browser.until("document.body.innerText.includes('among 6 features for <b>y</b>')")
    browser.until("document.querySelector('iframe')?.src.startsWith('data:text/html')")
    browser.until("document.body.innerText.includes('knockoffs select t.csv --target')")
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("window.ran === undefined")
    assert not [url for url in browser.requests() if not url.startswith((address.split("?")[0], "data:", "blob:"))]


def test_a_run_is_cancelled(browser, address):
    open_page(browser, address, "Example: houses")
    browser.run("[...document.querySelectorAll('label')].find(l => l.innerText.includes('patients')).click()")
    press(browser, "Select features")
    press(browser, "Cancel")
    browser.until("document.body.innerText.includes('Cancelled.')")
    browser.until(button("Select features"))


def test_the_example_convinces(browser, address):
    """The answer stands above the table and the question, and holds the columns that the price depends on."""
    open_page(browser, address, "Example: houses", width=1400)
    browser.run("[...document.querySelectorAll('label')].find(l => l.innerText.includes('houses')).click()")
    browser.until("document.body.innerText.includes('500 rows, 14 columns')")
    press(browser, "Select features")
    browser.until("document.body.innerText.includes('discoveries among 13 features for price')")
    browser.until("document.querySelector('iframe')?.src.startsWith('data:text/html')")
    place = "[...document.querySelectorAll({})].find(e => e.innerText.includes({})).getBoundingClientRect().top"
    answer, question = (
        browser.run(place.format(json.dumps(kind), json.dumps(words)))
        for kind, words in (("h1", "discoveries among"), ("summary", "Table and question"))
    )
    assert answer < question
    folder = os.environ.get("KNOCKOFFS_FIGURES")  # keep the picture, to look at it
    if folder:
        time.sleep(2)
        browser.picture(Path(folder) / "app.png")
