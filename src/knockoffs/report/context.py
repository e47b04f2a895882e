"""What the templates say, as plain values: one function a section of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from knockoffs.filter.bounds import fdp_bounds
from knockoffs.report import figures
from knockoffs.report.facts import MOST_ROWS, Facts
from knockoffs.report.method import CONFIDENCE, method_paragraph
from knockoffs.report.provenance import command_of

MOST_COLUMNS = 60  # in the table of kinds

Context = dict[str, object]


def report_context(facts: Facts) -> Context:
    """Values of the whole report."""
    return {
        "title": "Features that matter",
        "answer": answer_context(facts),
        "explanation": facts.sentence(facts.selection.explain()),
        "bound": bound(facts),
        "concordance": None if (c := facts.concordance) is None else f"{c:.2f}",
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
    """Values of the first screen."""
    screen = facts.selection.first_screen
    return {"screen": screen, "called": facts.called, "next_step": facts.sentence(screen.next_step)}


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
        "tree": figures.draw_tree(facts),
        "effects": figures.draw_effects(facts),
        "stability": figures.draw_stability(facts),
        "survival": figures.draw_survival(facts),
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
