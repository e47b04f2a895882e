"""Two records of a selection: what differs in the answer, and in what it depends on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import numpy as np

from knockoffs.conditional_tests.resolution import discovery_name
from knockoffs.record import SelectionRecord, brief


def differences(old: SelectionRecord, new: SelectionRecord) -> tuple[list[str], list[str]]:
    """Differences between two records: in the answer, and in what it depends on or how it is worded."""
    return _answer_differs(old, new), _grounds_differ(old, new)


def _answer_differs(old: SelectionRecord, new: SelectionRecord) -> list[str]:
    found = []
    if old.method != new.method:
        found.append(f"the method: {brief(old.method)} then, {brief(new.method)} now")
    if old.names != new.names:
        found.append("the names of the features")
    else:
        words = {"W": "W", "Z": "Z", "Z_tilde": "Z of the knockoffs", "q_value": "the q-values"}
        words |= {"p_value": "the p-values", "e_value": "the e-values", "frequency": "the frequencies"}
        for key, word in words.items():
            then, now = old.numbers(key), new.numbers(key)
            if not np.array_equal(then, now, equal_nan=True):
                with np.errstate(invalid="ignore"):
                    worst = int(np.argmax(np.where(then == now, 0.0, np.abs(then - now))))
                values = f"{float(then[worst])!r} then, {float(now[worst])!r} now"
                found.append(f"{word}, the most for {old.names[worst]!r}: {values}")
    if old.threshold != new.threshold:
        found.append(f"the threshold: {old.threshold!r} then, {new.threshold!r} now")
    gone, come = sorted(set(old.selected) - set(new.selected)), sorted(set(new.selected) - set(old.selected))
    if old.discoveries != new.discoveries:
        found.append(f"the discoveries: {discovery_names(old)} then, {discovery_names(new)} now")
    if gone:
        found.append(f"no longer selected: {', '.join(map(repr, gone))}")
    if come:
        found.append(f"newly selected: {', '.join(map(repr, come))}")
    if _differ(old.verdict, new.verdict):
        found.append(f"the verdict: {brief(old.verdict)} then, {brief(new.verdict)} now")
    return found


def discovery_names(record: SelectionRecord) -> str:
    """Discoveries of a record in words."""
    if record.discoveries is None:
        return "single features"
    return "; ".join(discovery_name(found["features"]) for found in record.discoveries) or "none"


def _grounds_differ(old: SelectionRecord, new: SelectionRecord) -> list[str]:
    found = []
    if old.edited:
        found.append("the record itself: it was edited after it had been written")
    if old.data.get("sha256") != new.data.get("sha256"):
        found.append(f"the data: SHA-256 {_start(old.data.get('sha256'))} then, {_start(new.data.get('sha256'))} now")
    for key, word in (("file", "the name of the data file"), ("n_rows", "rows"), ("n_columns", "columns")):
        then, now = old.data.get(key), new.data.get(key)
        if then != now and then is not None:
            found.append(f"{word}: {then} then, {now} now")
    files = _changes(old.data.get("files") or {}, new.data.get("files") or {}, _start)
    found += [f"the file {name}: SHA-256 {change}" for name, change in files]
    if old.columns and old.columns != new.columns:  # earlier versions kept none
        was, now = ({column["name"]: column["why"] for column in record.columns} for record in (old, new))
        changes = _changes(was, now)[:3] or [("kinds", "others then, others now")]
        found += [f"the column {name!r}: {change}" for name, change in changes]
    if old.warnings != new.warnings:
        found.append(f"the warnings: {len(old.warnings)} then, {len(new.warnings)} now")
    found += [f"the note on {key}: {change}" for key, change in _changes(old.notes, new.notes)]
    if old.explanation != new.explanation:
        found.append(f"the explanation: {brief(old.explanation)} then, {brief(new.explanation)} now")
    if old.first_screen is not None and _differ(old.first_screen, new.first_screen):  # earlier versions kept none
        found.append(f"the first screen: {brief(old.first_screen)} then, {brief(new.first_screen)} now")
    found += [f"the version of {package}: {change}" for package, change in _changes(old.versions, new.versions)]
    return sorted(found)


def _differ(then: object, now: object) -> bool:
    """Whether two values are written differently: 1.0 is not true."""
    return json.dumps(then, sort_keys=True) != json.dumps(now, sort_keys=True)


def _changes(
    then: Mapping[str, str], now: Mapping[str, str], show: Callable[[str], str] = str
) -> list[tuple[str, str]]:
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    return [(name, f"{show(then.get(name, 'none'))} then, {show(now.get(name, 'none'))} now") for name in names]


def _start(sha256: object) -> str:
    return f"{str(sha256)[:12]}..."
