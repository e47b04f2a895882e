"""The page as a browser sees it: without a socket, where requests go straight to the application; and for real."""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import knockoffs

SOURCE = Path(knockoffs.__file__).resolve().parents[1]

TOKEN, PORT = "a-token-for-tests", 8123
HOST = f"127.0.0.1:{PORT}"
ORIGIN = {"origin": f"http://{HOST}"}
TABLE = "a,b,label,y\n" + "".join(f"{i * 7 % 11}.5,{i * i},{'lmh'[i * 5 % 3]},{i % 2}\n" for i in range(30))


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    def json(self):
        return json.loads(self.body)


def request(app, method, path, headers=(), parts=(b"",)):
    """Answer of an application; the body comes in parts."""
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "scheme": "http",
        "headers": [(name.encode(), value.encode()) for name, value in headers],
        "client": ("127.0.0.1", 5000),
        "server": ("127.0.0.1", PORT),
    }
    coming = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    coming[-1]["more_body"] = False
    sent = []

    async def receive():
        return coming.pop(0) if coming else await asyncio.Event().wait()  # a browser stays until it has its answer

    async def send(message):
        sent.append(message)

    async def once():
        await app(scope, receive, send)

    try:
        asyncio.run(once())
    except Exception:  # a server logs it and answers what was sent before
        if not sent:
            raise
    start = next(message for message in sent if message["type"] == "http.response.start")
    body = b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body")
    return Answer(start["status"], {k.decode().lower(): v.decode() for k, v in start["headers"]}, body)


class Client:
    """A desk behind its guard."""

    def __init__(self, desk, app):
        self.desk, self.app = desk, app

    def get(self, path="", **headers):
        return request(self.app, "GET", f"/{TOKEN}/{path}", {"host": HOST, **headers}.items())

    def post(self, path, content=b"", *, js=None, **headers):
        body = (
            json.dumps(js).encode() if js is not None else content if isinstance(content, bytes) else content.encode()
        )
        return request(self.app, "POST", f"/{TOKEN}/{path}", {"host": HOST, **ORIGIN, **headers}.items(), [body])

    def until(self, path, done, seconds=60):
        end = time.monotonic() + seconds
        while True:
            content = self.get(path).json()
            if done(content):
                return content
            assert time.monotonic() < end, content
            time.sleep(0.1)

    def table(self, content=TABLE, name="t.csv"):
        """Send a table and wait until it was looked at."""
        sent = self.post(f"tables?name={name}", content)
        assert sent.status == 201, sent.body
        return self.until(f"tables/{sent.json()['id']}", lambda t: t["look"]["state"] not in ("waiting", "running"))

    def run(self, table, target=3, **asked):
        return self.post("jobs", js={"table": table["id"], "target": target, "fdr": 0.1, **asked})

    def job(self, name, *states):
        return self.until(f"jobs/{name}", lambda job: job["state"] in states)


class App:
    """``knockoffs app`` in a process of its own, whose temporary files are looked at."""

    def __init__(self, folder, *options):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        env = os.environ | {"PYTHONPATH": str(SOURCE), "TMPDIR": str(folder)}
        command = [sys.executable, "-m", "knockoffs", "app", "--no-browser", *options]
        self.process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        self.address = re.search(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", line).group()

    def ask(self, path, body=None):
        headers = {} if body is None else {"Origin": self.address.rsplit("/", 2)[0]}
        with urlopen(Request(self.address + path, data=body, headers=headers), timeout=20) as answer:
            return answer.read().decode()

    def end(self, number):
        self.process.send_signal(number)
        said = self.process.communicate(timeout=30)[1]
        return self.process.returncode, [line for line in said.splitlines() if not line.startswith("it runs on")]
