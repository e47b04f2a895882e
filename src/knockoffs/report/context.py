"""What the templates say, as plain values: one function a section of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from knockoffs.features.fixed import FixedDesign
from knockoffs.filter.bounds import fdp_bounds
from knockoffs.report import figures
from knockoffs.report.facts import Facts
from knockoffs.report.provenance import command_of

MOST_COLUMNS = 60  # in the table of kinds
CONFIDENCE = 0.95  # of the bound on the false discovery proportion

Context = dict[str, object]


def report_context(facts: Facts) -> Context:
    """Values of the whole report."""
    selection = facts.selection
    law = selection.notes.get("feature_model", "The knockoffs were drawn elsewhere.")
    return {
        "title": "Features that matter",
        "answer": answer_context(facts),
        "explanation": facts.sentence(selection.explain().replace(f" {law}", "")),  # it has a section of its own
        "bound": bound(facts),
        "concordance": None if (c := facts.concordance) is None else f"{c:.2f}",
        "warnings": [facts.sentence(words) for words in facts.warnings],
        "cells": facts.cells,
        "rows": list(zip(*facts.cells.values(), strict=True)),
        "n_features": len(selection.feature_names),
        "n_knockoffs": selection.n_knockoffs,
        "high_label": facts.high_label,
        "figures": figures.draw_all(facts) if figures.can_draw() else None,
        "verdict": selection.verdict,
        "model": {
            "sentence": facts.sentence(law.replace("P^X is", "The model of the features is", 1)),
            **model_context(facts),
        },
        "selection": selection,
        "fixed": isinstance(selection.feature_model, FixedDesign),
        "confidence": f"{100 * CONFIDENCE:g} %",
        "provenance": provenance_context(facts),
        "version": facts.versions.get("knockoffs", ""),
        "sentence": facts.sentence,
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
        f"With {100 * CONFIDENCE:g} % confidence, at most {false} of the {n} selected features are false discoveries. "
        "This bound holds for all levels at once; the false discovery rate is an average."
    )


def model_context(facts: Facts) -> Context:
    """Values of P^X: kinds of the columns, missing cells, and what was chosen."""
    columns = [] if facts.table is None else sorted(facts.table.columns, key=lambda column: -column.n_missing)
    counted = Counter(column.kind for column in columns).most_common()
    rows = [
        {"column": column, "why": facts.sentence(column.why.replace("{name}", repr(column.name)))}
        for column in columns[:MOST_COLUMNS]
    ]
    return {
        "notes": [facts.sentence(note) for key, note in facts.selection.notes.items() if key != "feature_model"],
        "rows": rows,
        "n_columns": len(columns),
        "kinds": ", ".join(f"{n:,} {kind}" for kind, n in counted),
        "n_missing": sum(column.n_missing for column in columns),
        "n_cells": 0 if facts.table is None else facts.table.X.size,
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
