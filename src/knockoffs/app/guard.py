"""Who may ask: the token in the address, Host and Origin are looked at before anything else, and so is the size.

The server listens on this machine alone, but every page that is open in the browser, and every user of the machine, can
reach that. The token keeps both out; Host keeps out pages whose name was led to this address (DNS rebinding), Origin
and Sec-Fetch-Site those that would send a form. Answers carry a policy under which the page runs its own script alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from secrets import compare_digest

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # none at all would make the origin of a request "null"
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Lets through to an application what may ask, with the token taken out of the path.

    Parameters
    ----------
    application : ASGI application
    token : str
        First part of every path.
    port : int
        Of the address that the browser was given.
    most_bytes : int
        Of a request's body.
    """

    def __init__(self, application: ASGIApp, *, token: str, port: int, most_bytes: int) -> None:
        self.application, self.token, self.most_bytes = application, token, most_bytes
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.origins = {f"http://{host}" for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        send = _with_headers(send)
        refused = self.refusal(scope, headers)
        if refused is not None:
            await _answer(send, *refused)
            return
        path = scope["path"].removeprefix(f"/{self.token}")
        if not path:  # addresses of the page are relative
            await send(
                {"type": "http.response.start", "status": 307, "headers": [(b"location", f"/{self.token}/".encode())]}
            )
            await send({"type": "http.response.body", "body": b""})
            return
        await self.application({**scope, "path": path, "raw_path": path.encode()}, self._counted(receive), send)

    def refusal(self, scope: Scope, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """Status and words of a request that is not let through; None for one that is."""
        hosts = [value for name, value in scope["headers"] if name.lower() == b"host"]
        if len(hosts) != 1 or headers["host"].lower() not in self.hosts:
            return 421, "This address is not mine."
        first = scope["path"].split("/", 2)[1] if scope["path"].startswith("/") else ""
        if not compare_digest(first.encode(), self.token.encode()):
            return 403, "The token in the address is missing or wrong: use the address that knockoffs app printed."
        reading = scope["method"] in ("GET", "HEAD")
        origin = headers.get("origin")
        if (origin is None and not reading) or (origin is not None and origin not in self.origins):
            return 403, "The request does not come from this page."
        opened = reading and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not opened:
            return 403, "The request does not come from this page."
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit() and len(length) < 16) or int(length) > self.most_bytes:
            return 413, too_large(self.most_bytes)
        return None

    def _counted(self, receive: Receive) -> Receive:
        """Count the bytes that come, whatever was said of them."""
        n = 0

        async def counted() -> Message:
            nonlocal n
            message = await receive()
            n += len(message.get("body", b""))
            if n > self.most_bytes:
                raise HTTPException(413, too_large(self.most_bytes))
            return message

        return counted


def too_large(most: int) -> str:
    """Refusal of a file beyond the limit.

    >>> too_large(200_000_000)
    'The file is larger than 200 MB. Start the app with a larger --max-size, or use knockoffs select.'
    """
    return (
        f"The file is larger than {most / 1e6:g} MB. Start the app with a larger --max-size, or use knockoffs select."
    )


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", []))
            set_already = {name.lower() for name, _ in own}
            more = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in set_already]
            message = {**message, "headers": own + more}
        await send(message)

    return sending


async def _answer(send: Send, status: int, words: str) -> None:
    body = json.dumps({"error": words}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
