"""The command app: it starts the page in the browser (``knockoffs.app``), and runs the selections of that page."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import webbrowser
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Annotated

import typer

from knockoffs.cli.output import say
from knockoffs.cli.program import app

LOOPBACK = "127.0.0.1"
TOKEN, FOLDER = "KNOCKOFFS_APP_TOKEN", "KNOCKOFFS_APP_FOLDER"  # environment of the page
PROGRESS, MESSAGES, OUT = "progress.jsonl", "messages.txt", "answer"  # in the folder of a run
FILES = ("report.html", "selection.json", "selection.csv")
BETWEEN = 0.2  # seconds between two notes on the progress of the same stage


# ---- the server -----------------------------------------------------------------------------------------------------


@app.command("app")
def open_page(
    port: Annotated[
        int, typer.Option(metavar="N", help="Port of this machine; 0 takes a free one.", min=0, max=65535)
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    max_size: Annotated[int, typer.Option(metavar="MB", help="Largest table that is accepted, in MB.", min=1)] = 200,
) -> None:
    """Open a page in the browser.

    Upload a table, check its columns, run, read the report. The page runs on this machine alone. Ctrl-C ends it, and
    nothing is left on disk.

    \b
    knockoffs app
    knockoffs app --no-browser --port 8000
    """
    from knockoffs.errors import require
    from knockoffs.progress import stage

    require("streamlit", "pages in the browser")
    port = free_port(port)
    stage("")  # waiting for the user is no work
    with tempfile.TemporaryDirectory(prefix="knockoffs-app-", ignore_cleanup_errors=True) as folder:
        token = secrets.token_urlsafe(24)
        os.environ |= {**settings(port, max_size), TOKEN: token, FOLDER: folder}
        address = f"http://{LOOPBACK}:{port}/?token={token}"
        say(f"the page is at {address}")
        say("it runs on this machine alone, and tables stay here; Ctrl-C ends it and deletes what it holds")
        if browser:
            threading.Thread(target=open_browser, args=(address, port, Path(folder)), daemon=True).start()
        try:
            serve()
        finally:
            for run in list(Run.open):
                run.close()


def free_port(port: int) -> int:
    """Port of this machine that can be listened on: the given one, or any for 0."""
    from knockoffs.errors import InputError

    try:
        with socket.create_server((LOOPBACK, port)) as listening:
            return int(listening.getsockname()[1])
    except OSError as error:
        raise InputError(f"port {port} of this machine is taken: {error.strerror}. Leave out --port.") from error


def settings(port: int, max_size: int) -> dict[str, str]:
    """Environment variables with the settings of Streamlit, which override its configuration files."""
    values = {
        "server_address": LOOPBACK,
        "server_port": str(port),
        "server_allowed_hosts": LOOPBACK,  # against names that lead to this address; older versions do not know it
        "server_headless": "true",
        "server_enable_cors": "true",
        "server_enable_xsrf_protection": "true",
        "server_enable_agent_api": "false",
        "server_enable_static_serving": "false",
        "server_max_upload_size": str(max_size),
        "server_file_watcher_type": "none",
        "browser_gather_usage_stats": "false",
        "client_toolbar_mode": "viewer",
        "client_show_error_details": "none",
        "logger_hide_welcome_message": "true",
        "logger_level": "error",
        "global_development_mode": "false",
        "theme_light_primary_color": "#0072B2",
        "theme_dark_primary_color": "#2078B5",
    }
    return {f"STREAMLIT_{name.upper()}": value for name, value in values.items()}


def serve() -> None:
    """Serve the page until this process gets SIGINT, SIGTERM or SIGHUP."""
    from click import Abort
    from streamlit import net_util
    from streamlit.web.cli import main

    # Streamlit would ask a server on the internet for the address of this machine when a foreign page connects
    net_util.get_external_ip = net_util.get_internal_ip = lambda: None  # type: ignore[assignment]
    for name in ("SIGHUP", "SIGUSR1"):  # a terminal that is closed; Ctrl-C, by `interrupt_once`
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: signal.raise_signal(signal.SIGTERM))
    script = Path(__file__).parents[1] / "app.py"
    with suppress(Abort):
        main(["run", str(script)], standalone_mode=False)


def open_browser(address: str, port: int, folder: Path) -> None:
    """Open the address once the server answers, by a file: other users can read the arguments of a process."""
    for _ in range(100):
        with suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=1):
            break
        time.sleep(0.1)
    leads = folder / "open.html"
    leads.touch(0o600)
    leads.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><title>knockoffs</title>'
        f'<meta http-equiv="refresh" content="0; url={escape(address)}"><a href="{escape(address)}">knockoffs</a>\n',
        encoding="utf-8",
    )
    webbrowser.open(leads.as_uri())


# ---- a selection of the page ----------------------------------------------------------------------------------------


class Run:
    """A command line, as a list of words, in a process whose working directory holds the table and takes the files."""

    open: set[Run] = set()

    def __init__(self, folder: Path, words: list[str]) -> None:
        self.folder, self.words, self.cancelled = folder, words, False
        self.started = time.time()
        with (folder / MESSAGES).open("wb") as messages:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", "from knockoffs.cli.page import run_for_page; run_for_page()"],
                cwd=folder,
                env={**os.environ, "TMPDIR": str(folder)},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=messages,
                start_new_session=True,  # what it starts is ended with it
            )
        asked = [*words[1:], "--out", OUT, "--report", f"{OUT}/report.html", "--force"]
        assert self.process.stdin is not None  # it is a pipe
        self.process.stdin.write(json.dumps(asked).encode() + b"\n")
        self.process.stdin.flush()
        Run.open.add(self)

    @property
    def running(self) -> bool:
        """Whether the process is at work."""
        return self.process.poll() is None

    def stage(self) -> tuple[str, int | None, int | None]:
        """Return what is being done, and how many of how many steps of it are done."""
        with suppress(OSError, IndexError):
            name, done, total = json.loads((self.folder / PROGRESS).read_text(encoding="utf-8").split("\n")[-2])
            return name, done, total
        return "starting", None, None

    def files(self) -> dict[str, bytes]:
        """Content of the files of a run that succeeded, by name; empty otherwise."""
        if self.process.poll() != 0:
            return {}
        return {name: (self.folder / OUT / name).read_bytes() for name in FILES}

    def error(self) -> str:
        """Message of the command that failed, or how its process ended."""
        if self.cancelled:
            return "Cancelled."
        said = (self.folder / MESSAGES).read_text(encoding="utf-8", errors="replace")
        _, found, message = said.rpartition("\nknockoffs: ")
        if found or said.startswith("knockoffs: "):
            return message.removeprefix("knockoffs: ").strip()
        if self.process.returncode == -getattr(signal, "SIGKILL", 9):
            return "The system ended the process of this run, as it does when memory runs out."
        return f"The process of this run ended with status {self.process.returncode}. {said.strip()[-500:]}"

    def cancel(self) -> None:
        """End the process and those that it has started."""
        self.cancelled = self.running
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End the process, and delete what the run has written."""
        self.cancel()
        if self.process.stdin is not None:
            self.process.stdin.close()
        shutil.rmtree(self.folder / OUT, ignore_errors=True)
        for name in (PROGRESS, MESSAGES):
            (self.folder / name).unlink(missing_ok=True)
        Run.open.discard(self)


def run_for_page() -> None:
    """Run the command line that stands in the first line of standard input, and end when that input ends."""
    from knockoffs.cli.app import main
    from knockoffs.progress import heard

    words = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=end_with_page, daemon=True).start()
    last = ("", 0.0)
    with Path(PROGRESS).open("w", encoding="utf-8", buffering=1) as file:

        def note(stage: str, done: int | None, total: int | None) -> None:
            nonlocal last
            now = time.time()
            if stage and (stage != last[0] or now - last[1] > BETWEEN):
                last = (stage, now)
                file.write(json.dumps([stage, done, total]) + "\n")

        with heard(note):
            main(words)


def end_with_page() -> None:
    """End this process and those that it has started when the page is gone, however that ended."""
    while os.read(0, 1024):  # not sys.stdin, whose lock this thread would hold when Python ends
        pass
    if hasattr(os, "killpg"):
        os.killpg(os.getpgid(0), signal.SIGKILL)
    os._exit(1)
