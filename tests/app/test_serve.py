"""The app as it is started and stopped: an address with a token, one line at the end, nothing left."""

import os
import re
import signal
import socket
import threading
import time
from pathlib import Path
from urllib.request import urlopen

import pytest
from client import App

from knockoffs.app import serve as serve_module
from knockoffs.cli import app as cli
from knockoffs.errors import InputError

pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'knockoffs[app]'")
posix = pytest.mark.skipif(os.name == "nt", reason="signals are of POSIX")


@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_nothing_is_left_when_the_app_stops_while_a_job_runs(tmp_path, name):
    app = App(tmp_path / "temporary")
    assert "<title>knockoffs" in app.ask("")
    app.ask("examples/diabetes", b"")
    held = list((tmp_path / "temporary").iterdir())
    assert [path.name.startswith("knockoffs-app-") for path in held] == [True]
    assert held[0].stat().st_mode & 0o077 == 0  # nobody else looks into it
    status, lines = app.end(getattr(signal, name))
    assert status == 130 and len(lines) == 1 and lines[0].startswith("knockoffs: stopped")
    assert list((tmp_path / "temporary").iterdir()) == []
    with pytest.raises(OSError):
        app.ask("")


@posix
def test_it_listens_on_this_machine_alone(tmp_path):
    app = App(tmp_path / "temporary")
    try:
        port = int(app.address.split(":")[2].split("/")[0])
        heard = Path("/proc/net/tcp").read_text().splitlines()[1:] if Path("/proc/net/tcp").exists() else []
        listening = [line.split()[1] for line in heard if line.split()[3] == "0A"]
        if heard:
            assert [place for place in listening if place.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]
        with pytest.raises(OSError), socket.create_connection(("::1", port), timeout=2):
            pass
    finally:
        app.end(signal.SIGINT)


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(["app", *map(str, arguments)])
    return ended.value.code


def test_without_the_extra_one_sentence_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setattr(serve_module, "find_spec", lambda name: None)
    assert run() == 1
    assert capsys.readouterr().err == "knockoffs: the page needs a small web server: pip install 'knockoffs[app]'.\n"


def test_a_port_that_is_taken_and_a_folder_that_cannot_be_are_refused(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert run("--port", taken.getsockname()[1], "--no-browser") == 1
    assert "is taken" in capsys.readouterr().err
    (tmp_path / "file").write_text("x")
    assert run("--keep", tmp_path / "file") == 1
    assert "file" in capsys.readouterr().err
    for options in (("--port", 70000), ("--at-once", 0), ("--max-size", 0)):
        assert run(*options) == 2


def test_the_browser_is_led_by_a_file_that_only_the_user_can_read(monkeypatch, tmp_path):
    opened, seen = [], threading.Event()
    monkeypatch.setattr(serve_module.webbrowser, "open", lambda address: (opened.append(address), seen.set()))
    serve_module.open_browser("http://127.0.0.1:1/secret/", tmp_path)
    assert seen.wait(10)
    assert opened == [(tmp_path / "open.html").as_uri()] and "secret" not in opened[0]
    assert "url=http://127.0.0.1:1/secret/" in (tmp_path / "open.html").read_text()
    assert os.name == "nt" or (tmp_path / "open.html").stat().st_mode & 0o077 == 0


def test_serving_ends_with_what_it_holds_also_where_the_browser_fails(monkeypatch, tmp_path):
    def fail(address, folder):
        raise InputError("no browser")

    monkeypatch.setattr(serve_module, "open_browser", fail)
    monkeypatch.setattr(serve_module.tempfile, "tempdir", str(tmp_path))
    said = []
    with pytest.raises(InputError, match="no browser"):
        serve_module.serve(print, say=said.append)
    assert len(said) == 2 and list(tmp_path.iterdir()) == []
    address = re.search(r"http://\S+", said[0]).group()
    time.sleep(0.1)
    with pytest.raises(OSError):
        urlopen(address, timeout=2)
