"""Who may ask: the token, Host, Origin and sizes are looked at first; and every answer carries the policy."""

import asyncio
import re

import pytest
from client import HOST, ORIGIN, PORT, TOKEN, request

pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'knockoffs[app]'")

from knockoffs.app.server import PAGES  # noqa: E402

HERE = (("host", HOST),)


@pytest.mark.parametrize(
    "path", ["/", "", "/x", f"/{TOKEN}x/", f"/{TOKEN[:-1]}/", f"//{TOKEN}/", "/é/", "/about", f"/X{TOKEN}/jobs"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_without_the_token_nothing_is_told(client, path, method):
    answer = request(client.app, method, path, [*HERE, *ORIGIN.items()])
    assert answer.status == 403 and "token" in answer.json()["error"]


@pytest.mark.parametrize(
    "hosts, status",
    [
        ([HOST], 200),
        ([f"localhost:{PORT}"], 200),
        ([f"LOCALHOST:{PORT}"], 200),
        ([], 421),
        ([HOST, HOST], 421),
        ([HOST, "evil.example"], 421),
        (["evil.example"], 421),
        ([f"evil.example:{PORT}"], 421),
        (["127.0.0.1"], 421),
        ([f"127.0.0.1:{PORT + 1}"], 421),
        ([f"127.0.0.1.evil.example:{PORT}"], 421),
        ([f"[::1]:{PORT}"], 421),
        ([f"0.0.0.0:{PORT}"], 421),
    ],
)
def test_a_name_that_was_led_to_this_address_is_not_answered(client, hosts, status):
    assert request(client.app, "GET", f"/{TOKEN}/", [("host", host) for host in hosts]).status == status


@pytest.mark.parametrize(
    "method, path, headers, status",
    [
        ("POST", "examples/none", ORIGIN, 400),  # let through, and refused by the desk
        ("POST", "examples/none", {"origin": f"http://localhost:{PORT}"}, 400),
        ("POST", "examples/none", {}, 403),
        ("POST", "examples/none", {"origin": "null"}, 403),
        ("POST", "examples/none", {"origin": "http://evil.example"}, 403),
        ("POST", "examples/none", {"origin": f"https://{HOST}"}, 403),
        ("POST", "examples/none", {"origin": f"http://127.0.0.1:{PORT + 1}"}, 403),
        ("POST", "examples/none", {**ORIGIN, "sec-fetch-site": "cross-site"}, 403),
        ("POST", "examples/none", {**ORIGIN, "sec-fetch-site": "same-site"}, 403),
        ("GET", "jobs", {}, 200),
        ("GET", "jobs", {"sec-fetch-site": "same-origin"}, 200),
        ("GET", "jobs", {"sec-fetch-site": "cross-site"}, 403),
        ("GET", "jobs", {"origin": "http://evil.example"}, 403),
        (
            "GET",
            "app.js",
            {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"},
            403,
        ),
        # the file that is opened for the user leads here; frames and images of other pages do not
        ("GET", "", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, 200),
        ("GET", "", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}, 403),
        ("DELETE", "jobs", {}, 403),
        ("OPTIONS", "jobs", {"origin": "http://evil.example", "access-control-request-method": "POST"}, 403),
    ],
)
def test_other_pages_are_not_answered(client, method, path, headers, status):
    answer = request(client.app, method, f"/{TOKEN}/{path}", [*HERE, *headers.items()])
    assert answer.status == status
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_a_body_beyond_the_limit_is_refused_by_what_it_says_and_by_what_comes(client):
    large = "200 kB is more than the 100 kB of the tests"
    headers = [*HERE, *ORIGIN.items()]
    path = f"/{TOKEN}/tables?name=t.csv"
    for length in ("100001", "1e9", "-1", "٣", "x", "9" * 5000):
        answer = request(client.app, "POST", path, [*headers, ("content-length", length)], [large.encode()])
        assert answer.status == 413 and "--max-size" in answer.json()["error"]
    for told in ([], [("content-length", "5")]):  # chunked, or a lie
        answer = request(client.app, "POST", path, [*headers, *told], [b"a,b\n" * 5_000] * 10)
        assert answer.status == 413 and "larger than 0.1 MB" in answer.json()["error"]
    assert client.desk.tables == {} and not list(client.desk.folder.rglob("*.csv"))


def test_a_file_that_breaks_off_is_removed(client):
    headers = [*HERE, *ORIGIN.items()]
    coming = [{"type": "http.request", "body": b"a,b\n1,2\n", "more_body": True}, {"type": "http.disconnect"}]
    sent = []

    async def receive():
        return coming.pop(0)

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/{TOKEN}/tables",
        "query_string": b"name=t.csv",
        "root_path": "",
    }
    scope["headers"] = [(name.encode(), value.encode()) for name, value in headers]
    asyncio.run(client.app(scope, receive, send))
    assert client.desk.tables == {} and not list(client.desk.folder.rglob("*.csv"))


@pytest.mark.parametrize(
    "path", [*PAGES, "about", "jobs", "nothing", "jobs/none", "tables/none/file", "jobs/x/report.html"]
)
def test_every_answer_carries_the_policy(client, path):
    answer = client.get(path)
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy and "*" not in policy and "http" not in policy
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'") and "frame-ancestors" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin" and answer.headers["cache-control"] == "no-store"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "server" not in answer.headers


def test_refusals_carry_it_too(client):
    answer = request(client.app, "GET", "/", HERE)
    assert answer.status == 403 and "default-src 'none'" in answer.headers["content-security-policy"]


def test_the_page_holds_no_script_and_no_style_of_its_own(client):
    page = client.get("").body.decode()
    assert page.count("<script") == 1 and 'src="app.js"' in page
    assert "<style" not in page and " style=" not in page and not re.search(r"\son\w+\s*=", page)
    for name in PAGES:
        content = client.get(name).body.decode()
        assert "http:" not in content and "https:" not in content and "//cdn" not in content
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "document.write", "new Function"):
            assert word not in content, f"{word} in {name}"


def test_an_address_without_its_last_slash_leads_to_the_page(client):
    answer = request(client.app, "GET", f"/{TOKEN}", HERE)
    assert answer.status == 307 and answer.headers["location"] == f"/{TOKEN}/"
    assert client.get("jobs/").status == 404 and client.get("/jobs").status == 404
