"""Addresses of the page: its files, tables that are sent, jobs, and what comes of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from importlib.resources import files
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from knockoffs.app.desk import FILES, Desk, offered
from knockoffs.app.examples import examples
from knockoffs.app.guard import Guard
from knockoffs.errors import InputError, printable
from knockoffs.table.types import Json

Handler = Callable[[Request, Exception], Awaitable[Response]]
MOST_JSON = 4_000_000  # bytes of a request that is no file
# a report is a document of its own: its script reaches nothing of the page, nor the server
SANDBOX = "sandbox allow-scripts; frame-ancestors 'self'"
PAGES = {
    "": ("app", "pages/index.html", "text/html; charset=utf-8"),
    "look.css": ("report", "page.css", "text/css; charset=utf-8"),
    "app.css": ("app", "pages/app.css", "text/css; charset=utf-8"),
    "app.js": ("app", "pages/app.js", "text/javascript; charset=utf-8"),
    "dom.js": ("app", "pages/dom.js", "text/javascript; charset=utf-8"),
    "columns.js": ("app", "pages/columns.js", "text/javascript; charset=utf-8"),
    "runs.js": ("app", "pages/runs.js", "text/javascript; charset=utf-8"),
}


def make_app(desk: Desk, *, token: str, port: int, most_bytes: int) -> Guard:
    """Application that serves a desk to whoever has the token."""

    def route(path: str, endpoint: Callable[..., Awaitable[Response]], method: str = "GET") -> Route:
        return Route(path, partial(endpoint, desk), methods=[method])

    routes = [
        *(Route(f"/{name}", partial(_page, name), methods=["GET"]) for name in PAGES),
        Route("/about", partial(_about, most_bytes), methods=["GET"]),
        route("/tables", _send_table, "POST"),
        route("/examples/{key}", _take_example, "POST"),
        route("/tables/{name}", _table),
        route("/tables/{name}/file", _table_file),
        route("/jobs", _jobs),
        route("/jobs", _run, "POST"),
        route("/jobs/{name}", _job),
        route("/jobs/{name}/cancel", _cancel, "POST"),
        route("/jobs/{name}/{file}", _job_file),
    ]
    handlers: dict[type[Exception], Handler] = {InputError: _refused, HTTPException: _http_error, Exception: _fault}
    handlers[ClientDisconnect] = _http_error
    application = Starlette(routes=routes, exception_handlers=handlers)
    application.router.redirect_slashes = False  # it does not know the token
    return Guard(application, token=token, port=port, most_bytes=most_bytes)


# ---- the page --------------------------------------------------------------------------------------------------------


async def _page(name: str, request: Request) -> Response:
    room, path, kind = PAGES[name]
    content = files(f"knockoffs.{room}").joinpath(path).read_bytes()
    return Response(content, media_type=kind)


async def _about(most_bytes: int, request: Request) -> Response:
    from knockoffs import __version__

    told = {"version": __version__, "most_bytes": most_bytes, "examples": examples()}
    return _json({**told, "options": await run_in_threadpool(offered)})


# ---- tables ----------------------------------------------------------------------------------------------------------


async def _send_table(desk: Desk, request: Request) -> Response:
    """Take a file, which is the body of the request; its name stands in the address."""
    path = desk.place(request.query_params.get("name", ""))
    try:
        with path.open("wb") as file:
            async for part in request.stream():
                await run_in_threadpool(file.write, part)
    except BaseException:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise
    return _json(desk.table(desk.take(path)), 201)


async def _take_example(desk: Desk, request: Request) -> Response:
    return _json(desk.table(desk.take_example(request.path_params["key"])), 201)


async def _table(desk: Desk, request: Request) -> Response:
    return _json(desk.table(_known(request, desk.tables)))


async def _table_file(desk: Desk, request: Request) -> Response:
    return _download(desk.tables[_known(request, desk.tables)].path, "application/octet-stream")


# ---- jobs ------------------------------------------------------------------------------------------------------------


async def _jobs(desk: Desk, request: Request) -> Response:
    return _json([desk.job(job.name) for job in desk.selections.all()])


async def _run(desk: Desk, request: Request) -> Response:
    asked = await _read_json(request)
    name = await run_in_threadpool(desk.run, asked)
    return _json(desk.job(name), 201)


async def _job(desk: Desk, request: Request) -> Response:
    return _json(desk.job(_job_name(desk, request)))


async def _cancel(desk: Desk, request: Request) -> Response:
    name = _job_name(desk, request)
    await run_in_threadpool(desk.selections.cancel, name)
    return _json(desk.job(name))


async def _job_file(desk: Desk, request: Request) -> Response:
    job = desk.selections.get(_job_name(desk, request))
    name = request.path_params["file"]
    if job is not None and name == job.about.get("groups") and job.about["table"] in desk.tables:
        return _download(desk.tables[job.about["table"]].path.parent / name, FILES["selection.csv"])
    if job is None or job.state != "done" or name not in FILES:
        raise HTTPException(404, "There is no such file.")
    if name == "report.html" and "download" not in request.query_params:
        return FileResponse(job.folder / name, media_type=FILES[name], headers={"content-security-policy": SANDBOX})
    return _download(job.folder / name, FILES[name])


def _download(path: Path, kind: str) -> Response:
    headers = {"content-security-policy": "sandbox"}
    return FileResponse(path, media_type=kind, filename=path.name, headers=headers)


def _job_name(desk: Desk, request: Request) -> str:
    name = request.path_params["name"]
    if desk.selections.get(name) is None:
        raise HTTPException(404, "This job is not here any more.")
    return name


def _known(request: Request, known: Collection[str]) -> str:
    name = request.path_params["name"]
    if name not in known:
        raise HTTPException(404, "This table is not here any more: drop it again.")
    return name


# ---- JSON ------------------------------------------------------------------------------------------------------------


async def _read_json(request: Request) -> dict[str, Json]:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_JSON:
            raise HTTPException(413, "This is too much for a request.")
    try:
        content = json.loads(bytes(body))
    except (ValueError, RecursionError):
        raise HTTPException(400, "The request is not JSON.") from None
    if not isinstance(content, dict):
        raise HTTPException(400, "The request is not an object of JSON.")
    return content


def _json(content: object, status: int = 200) -> Response:
    return Response(json.dumps(content, allow_nan=False), status, media_type="application/json")


async def _refused(request: Request, error: Exception) -> Response:
    return _json({"error": printable(str(error))}, 400)


async def _http_error(request: Request, error: Exception) -> Response:
    status, words = (error.status_code, error.detail) if isinstance(error, HTTPException) else (400, "It broke off.")
    return _json({"error": words}, status)


async def _fault(request: Request, error: Exception) -> Response:
    return _json({"error": f"This is a fault of the program: {type(error).__name__}."}, 500)
