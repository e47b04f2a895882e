"""What the templates say, as plain values: one function a section of the report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np

from knockoffs.filter.bounds import fdp_bounds
from knockoffs.report import figures
from knockoffs.report.facts import MOST_ROWS, Facts
from knockoffs.report.formatting import count
from knockoffs.report.method import CONFIDENCE, method_paragraph
from knockoffs.report.provenance import command_of
from knockoffs.report.summary import error_rate, next_step, verdict_line

MOST_LISTED = 30  # selected features in the first block
MOST_COLUMNS = 60  # in the table of kinds

Context = dict[str, object]


def report_context(facts: Facts) -> Context:
    """Values of the whole report."""
    return {
        "title": "Features that matter",
        "answer": answer_context(facts),
        "explanation": facts.sentence(facts.selection.explain()),
        "bound": bound(facts),
        "warnings": [facts.sentence(words) for words in facts.warnings],
        "table": table_context(facts),
        "figures": figures_context(facts),
        "verdict": verdict_context(facts),
        "model": model_context(facts),
        "method": method_paragraph(facts),
        "provenance": provenance_context(facts),
        "version": facts.versions.get("knockoffs", ""),
    }


def answer_context(facts: Facts) -> Context:
    """Values of the first block: selected features with a bar each, the verdict, one next step."""
    selection = facts.selection
    columns, verdict, grouped = selection.discovery_columns, selection.verdict, selection.discoveries is not None
    values = np.array(columns["W" if selection.p_values is None else "p_value"], dtype=float)
    sizes = np.nan_to_num(values) if selection.p_values is None else -np.log10(np.maximum(values, 1e-300))
    largest = max((float(size) for size in sizes if math.isfinite(size)), default=1.0) or 1.0
    order = np.argsort(-sizes, kind="stable")
    listed = [
        {
            "name": columns["discovery"][j],
            "share": round(float(np.clip(sizes[j] / largest, 0.0, 1.0)), 4),
            "value": float(values[j]),
        }
        for j in (range(len(sizes)) if grouped else order)[:MOST_LISTED]
    ]
    n, of = len(sizes), count(len(selection.feature_names), "feature")
    return {
        "n": n,
        "found": f"{count(n, 'discovery', 'discoveries')} among {of}" if grouped else f"{n} of {of} selected",
        "called": facts.called,
        "level": at_level(facts),
        "features": listed,
        "what": "discovery" if grouped else "selected feature",
        "heading": "W" if selection.p_values is None else "p-value",
        "verdict": verdict_line(None) if verdict is None else verdict_line(verdict.word, verdict.headline),
        "word": "" if verdict is None else verdict.word,
        "next_step": facts.sentence(
            next_step(
                n_selected=n,
                method=selection.method,
                one_draw=selection.evidence is None,
                smallest_q=float(np.min(selection.q_values, initial=np.inf)),
                verdict=None if verdict is None else verdict.word,
                remedies=[] if verdict is None else [remedy.sentence for remedy in verdict.remedies],
            )
        ),
    }


def at_level(facts: Facts) -> str:
    """Level of the answer, and which error rate it is of."""
    selection = facts.selection
    if selection.discoveries is not None:
        return error_rate(selection.fdr, grouped=True)
    if selection.evidence is not None and selection.evidence.stated > selection.fdr:
        return f"level {selection.evidence.stated:.3g}, chosen after looking"
    modified = selection.offset == 0 and selection.evidence is None and selection.p_values is None
    return f"{'modified ' if modified else ''}{error_rate(selection.fdr)}"


def bound(facts: Facts) -> str:
    """Bound on the false discoveries among the selected features of one draw; empty otherwise."""
    selection = facts.selection
    n = int(selection.selected.sum())
    if n == 0 or selection.evidence is not None or selection.p_values is not None:
        return ""
    false = fdp_bounds(selection.W, CONFIDENCE).false_features(selection.selected)
    return (
        f"With {100 * CONFIDENCE:g} % confidence at most {false} of the {n} selected features are false discoveries "
        "(a bound that holds for all levels at once; the false discovery rate is a mean)."
    )


def table_context(facts: Facts) -> Context:
    """Values of the table of features, the surest first."""
    selection = facts.selection
    found_in = {name: str(found) for found in selection.discoveries or () for name in found.features}
    rows = [
        {
            "name": selection.feature_names[j],
            "selected": found_in.get(selection.feature_names[j], "yes" if selection.selected[j] else ""),
            "cells": facts.cells(j),
        }
        for j in facts.order[:MOST_ROWS]
    ]
    return {
        "headings": facts.headings,
        "rows": rows,
        "n_features": len(selection.feature_names),
        "n_knockoffs": selection.n_knockoffs,
        "high_label": facts.high_label,
    }


def figures_context(facts: Facts) -> Context | None:
    """Figures of the page; None without matplotlib."""
    if not figures.can_draw():
        return None
    return {
        "features": figures.draw_features(facts),
        "stability": figures.draw_stability(facts),
        "paths": figures.draw_paths(facts),
        "margins": figures.draw_margins(facts),
        "verdict": figures.draw_verdict(facts),
    }


def verdict_context(facts: Facts) -> Context | None:
    """Values of the verdict; None where the knockoffs were not checked."""
    found = facts.selection.verdict
    if found is None:
        return None
    checks = [
        {"name": c.name, "p_value": c.p_value, "effect": c.effect, "sentence": facts.sentence(c.sentence)}
        for c in found.checks
    ]
    sentences = [facts.sentence(words) for words in found.say().split("\n")]
    return {"sentences": sentences, "checks": checks, "n_rows": found.n_rows}


def model_context(facts: Facts) -> Context:
    """Values of P^X: kinds of the columns, missing cells, and what was chosen."""
    notes = facts.selection.notes
    found: Context = {
        "sentence": facts.sentence(notes.get("feature_model", "The knockoffs were drawn elsewhere.")),
        "notes": [facts.sentence(note) for key, note in notes.items() if key != "feature_model"],
        "columns": None,
    }
    if facts.table is None:
        return found
    columns = sorted(facts.table.columns, key=lambda column: -column.n_missing)
    counted = Counter(column.kind for column in columns).most_common()
    rows = [
        {
            "name": c.name,
            "kind": c.kind,
            "missing": c.n_missing,
            "why": facts.sentence(c.why.replace("{name}", repr(c.name))),
        }
        for c in columns[:MOST_COLUMNS]
    ]
    return {
        **found,
        "columns": rows,
        "n_columns": len(columns),
        "kinds": ", ".join(f"{n:,} {kind}" for kind, n in counted),
        "n_missing": sum(column.n_missing for column in columns),
        "n_cells": facts.table.X.size,
    }


def provenance_context(facts: Facts) -> Context:
    """Values of the provenance: what repeats the selection, the data, the versions."""
    data: Mapping[str, object] = facts.data or {}
    files: Mapping[str, str] = (facts.data or {}).get("files") or {}
    words = {"file": "data file", "sha256": "SHA-256", "n_rows": "rows", "n_columns": "columns"}
    terms = [(word, str(data[key])) for key, word in words.items() if key in data]
    terms += [(f"SHA-256 of {name}", value) for name, value in files.items()]
    if facts.versions:
        terms.append(("versions", ", ".join(f"{name} {version}" for name, version in facts.versions.items())))
    command = ""
    if facts.parameters is not None and facts.data is not None:
        command = facts.sentence(command_of(facts.parameters, str(facts.data.get("file", "TABLE"))))
    return {"command": command, "python": (facts.python or "").splitlines(), "terms": terms}
