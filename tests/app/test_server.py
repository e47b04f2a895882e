"""The server of the page, as other users of the machine may use it: without a token, idle, many; and its end."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from knockoffs.cli import page

pytest.importorskip("streamlit", reason="the extra app is not installed: pip install 'knockoffs[app]'")
client = pytest.importorskip("websockets.sync.client")
BackMsg = pytest.importorskip("streamlit.proto.BackMsg_pb2").BackMsg
ForwardMsg = pytest.importorskip("streamlit.proto.ForwardMsg_pb2").ForwardMsg

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are of POSIX")
MB = 2  # largest upload
SECONDS = 120  # in which a busy machine answers


class Server:
    """A program that serves the page, and its token."""

    def __init__(self, process, folder):
        self.process, self.folder = process, folder
        address = process.stderr.readline().split()[-1]
        self.port, self.token = int(re.search(r":(\d+)/", address)[1]), address.partition("=")[2]
        for _ in range(10 * SECONDS):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except ConnectionRefusedError:
                time.sleep(0.1)

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        with closing(connection):
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            answer.read()
        return answer

    @contextmanager
    def session(self, token=""):
        """A session of a browser: its number, and the kinds of elements that the page shows in it."""
        own = f"127.0.0.1:{self.port}"
        how = {"origin": f"http://{own}", "subprotocols": ["streamlit"], "max_size": None}
        with client.connect(f"ws://{own}/_stcore/stream", **how) as socket:
            run = BackMsg()
            run.rerun_script.query_string = f"token={token}"
            socket.send(run.SerializeToString())
            number, shown, end = "", [], False
            while not end:
                message = ForwardMsg()
                message.ParseFromString(socket.recv(timeout=SECONDS))
                kind = message.WhichOneof("type")
                if kind == "new_session":
                    number = message.new_session.initialize.session_id
                elif kind == "delta":
                    shown.append(message.delta.new_element.WhichOneof("type"))
                end = kind == "script_finished"
            yield number, shown

    def upload(self, session, size, *, forged=False):
        """Status of an upload; a forged request lacks the cookie that a page of this origin has."""
        headers = {"Content-Type": "multipart/form-data; boundary=b"}
        if not forged:
            cookie = self.ask("GET", "/_stcore/health").getheader("Set-Cookie").partition(";")[0]
            headers |= {"Cookie": cookie, "X-Xsrftoken": cookie.partition("=")[2].strip('"')}
        head = b'--b\r\nContent-Disposition: form-data; name="f"; filename="t.csv"\r\n\r\n'
        body = head + b"1,2\n" * (size // 4) + b"\r\n--b--\r\n"
        return self.ask("PUT", f"/_stcore/upload_file/{session}/{size}", body, **headers).status

    def end(self, how):
        """Send a signal; what was said until the program ended."""
        self.process.send_signal(how)
        return self.process.communicate(timeout=SECONDS)[1]


@pytest.fixture
def server(tmp_path):
    command = [sys.executable, "-m", "knockoffs", "app", "--no-browser", "--max-size", str(MB)]
    environment = os.environ | {"PYTHONPATH": str(Path(page.__file__).parents[2]), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        yield Server(process, tmp_path)
        process.kill()


def test_uploads_without_a_token_are_limited_and_touch_no_disk(server):
    """As SECURITY.md says: they are accepted, so they can fill the memory."""
    with server.session() as (number, shown):
        assert "file_uploader" not in shown and "iframe" not in shown
        assert server.upload(number, 10**6) == 204
        assert server.upload(number, MB * 2**20 + 10**5) == 413
        assert server.upload(number, 1000, forged=True) == 403
        assert server.upload("nobody", 1000) == 400
    assert not [path for path in server.folder.rglob("*") if path.is_file()]


def test_idle_connections_lock_nobody_out(server):
    """Of 110 that said nothing the last got the server before."""
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(250)]
    for half in idle[::2]:
        half.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    with server.session(server.token) as (_, shown):
        assert "file_uploader" in shown or "radio" in shown
    for connection in idle:
        connection.close()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_end_is_quiet_while_a_browser_is_open(server, how):
    """Ctrl-C was raised inside the server, which printed a hundred lines of tracebacks."""
    with server.session(server.token):
        said = server.end(how)
    assert "Traceback" not in said and "Error" not in said
    assert not list(server.folder.iterdir())


def test_a_page_that_is_suspended_and_continued_goes_on(server):
    for _ in range(2):
        server.process.send_signal(signal.SIGSTOP)
        os.waitpid(server.process.pid, os.WUNTRACED)
        time.sleep(0.5)
        server.process.send_signal(signal.SIGCONT)
        time.sleep(0.5)
    with server.session(server.token) as (_, shown):
        assert shown
    assert server.process.poll() is None
