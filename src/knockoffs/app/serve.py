"""The app from its start to its end: a free port of this machine, a folder that goes with it, a browser."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import tempfile
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from knockoffs.errors import InputError

if TYPE_CHECKING:
    from knockoffs.app.desk import Select

NEEDED = ("starlette", "uvicorn")
MISSING = "the page needs a small web server: pip install 'knockoffs[app]'."
LOOPBACK = "127.0.0.1"
PATIENCE = 5.0  # seconds for answers that are under way when the app stops


def check_extra() -> None:
    """Refuse, before any work, where the server is not installed."""
    if any(find_spec(name) is None for name in NEEDED):
        raise InputError(MISSING)


def serve(
    select: Select,
    *,
    port: int = 0,
    most_bytes: int = 200_000_000,
    parallel_map: int | None = None,
    keep: Path | None = None,
    browser: bool = True,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the page until Ctrl-C; then end its jobs and remove its folder.

    Parameters
    ----------
    select : callable
        ``select(folder, table, parameters)``, which a job runs in its process.
    port : int
        0 takes a free one.
    most_bytes : int
        Of a table that is sent.
    at_once : int, optional
        Selections that run at a time; half of the cores if left out.
    keep : Path, optional
        Folder in which the files of every selection are kept.
    browser : bool
        Whether a browser is opened.
    say : callable
        Takes the address, and what else there is to say.
    """
    check_extra()
    import uvicorn

    from knockoffs.app.desk import Desk
    from knockoffs.app.server import make_app

    try:
        listening = socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise InputError(f"port {port} of this machine is taken: {error.strerror}. Leave out --port.") from error
    token, port = secrets.token_urlsafe(24), listening.getsockname()[1]
    address = f"http://{LOOPBACK}:{port}/{token}/"
    parallel_map = parallel_map or max((os.cpu_count() or 2) // 2, 1)
    with listening, ended_politely(), tempfile.TemporaryDirectory(prefix="knockoffs-app-") as name:
        desk = Desk(Path(name), select, parallel_map=parallel_map, keep=keep)
        app = make_app(desk, token=token, port=port, most_bytes=most_bytes)
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_level="error",
                access_log=False,  # it would hold the token
                lifespan="off",
                ws="none",
                proxy_headers=False,
                server_header=False,
                limit_concurrency=100,
                timeout_graceful_shutdown=1,
            )
        )
        # in a thread of its own, so that Ctrl-C and SIGTERM are ours
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            say(f"the page is at {address}")
            say("it runs on this machine alone, and tables stay here; Ctrl-C ends it and removes what it holds")
            if browser:
                open_browser(address, Path(name))
            while thread.is_alive():
                time.sleep(0.2)
        finally:
            desk.close()
            server.should_exit = True
            thread.join(PATIENCE)


def open_browser(address: str, folder: Path) -> None:
    """Open a file that leads to the address: other users could read it in the list of processes."""
    leads = folder / "open.html"
    leads.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><title>knockoffs</title>'
        f'<meta http-equiv="refresh" content="0; url={escape(address)}"><a href="{escape(address)}">knockoffs</a>\n',
        encoding="utf-8",
    )
    leads.chmod(0o600)
    # a browser in the terminal would not come back before it is closed
    threading.Thread(target=webbrowser.open, args=(leads.as_uri(),), daemon=True).start()


@contextmanager
def ended_politely() -> Iterator[None]:
    """Within it, SIGTERM and a terminal that is closed end the app as Ctrl-C does: what it holds is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
