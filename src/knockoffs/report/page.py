"""The page: one file, no network, and a policy under which no script runs but its own.

The script and the style are allowed by their SHA-256; there is no style attribute and no handler in the page. Data
stand in it as escaped text, and as JSON in an element that is not run.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from importlib.resources import files

from knockoffs.report import sections
from knockoffs.report.facts import Facts
from knockoffs.report.formatting import json_block, short, text
from knockoffs.report.sections import section

MARK = "<!-- report of knockoffs -->"  # by which a file is known as ours


def page(facts: Facts) -> str:
    """Html of a report."""
    style, script = _file("page.css"), _file("page.js")
    policy = (
        f"default-src 'none'; script-src 'sha256-{_hash(script)}'; style-src 'sha256-{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    called = f" for {short(facts.called, 40)}" if facts.called else ""
    title = f"Features that matter{called}"
    parts = [
        section("warnings", "Warnings", sections.warned(facts)),
        section("levels", "What holds at which level", sections.levels(facts)),
        section("features-ranked", "Features", sections.features(facts)),
        section("pictures", "W, feature by feature", sections.pictures(facts)),
        section("paths", "Lambda paths", sections.paths(facts)),
        section("knockoffs", "Features beside their knockoffs", sections.beside_knockoffs(facts)),
        section("verdict", "Can the knockoffs be told from the features?", sections.verdict(facts)),
        section("model", "The model of the features, P^X", sections.model(facts)),
        section("method", "Method, for a paper", sections.method(facts)),
        section("provenance", "Provenance", sections.provenance(facts)),
    ]
    return f"""<!DOCTYPE html>
{MARK}
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{text(title)}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{text(title)}</h1>
{sections.answer(facts)}</header>
<main>
{"".join(parts)}</main>
<footer><p>Made by knockoffs {text(facts.versions.get("knockoffs", ""))}. This file needs no network.</p></footer>
{json_block("data", sections.slider_data(facts))}
<script>{script}</script>
</body>
</html>
"""


def _file(name: str) -> str:
    return files("knockoffs.report").joinpath(name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return b64encode(hashlib.sha256(content.encode()).digest()).decode()
