"""Remedies are tried before they are advised: each gets a trial of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from knockoffs.conditional_tests.distil import choose_response
from knockoffs.diagnostics.remedies import Change, Remedy, possible_remedies
from knockoffs.diagnostics.verdict import Verdict
from knockoffs.errors import InputError
from knockoffs.table.columns import design
from knockoffs.table.table import Table
from knockoffs.trials.verdict import FEWEST_ROWS, silently


def try_remedies(
    found: Verdict, table: Table, options: Mapping[str, object], judge: Callable[[Change], Verdict | None]
) -> Verdict:
    """Verdict with the remedies that apply, each with the rate of false calls it reached; as it is where it is good.

    Parameters
    ----------
    found : Verdict
    table : Table
    options : mapping
        Arguments of the selector.
    judge : callable
        Verdict of the selector with some arguments changed; an InputError leaves the remedy out.
    """
    if found.trial is None or found.word == "good" or found.rows_cost:
        return found
    tried = []
    for change in possible_remedies(found.trial, found.twins, table, options):
        try:
            with silently():
                other = judge(change)
        except InputError:
            continue
        if other is not None and other.trial is not None:
            dropped = change.get("drop")
            why = _determined(table, dropped[-1]) if isinstance(dropped, list) else ""
            tried.append(Remedy(change, other.trial, why))
    return replace(found, remedies=tuple(tried))


def _determined(table: Table, name: str, *, enough: float = 0.9) -> str:
    """Words on how well the other columns predict held-out cells of a column, where they nearly determine it."""
    j = table.names.index(name)
    known = np.isfinite(table.X).all(axis=1)
    if table.kinds[j] == "nominal" or known.sum() < FEWEST_ROWS:
        return ""
    encode = design([column for i, column in enumerate(table.columns) if i != j])
    x, rest = table.X[known, j], encode(np.delete(table.X[known], j, axis=1))
    left = x - choose_response(rest, x, "number").held_out(rest)[:, 0]
    share = 1 - (left**2).mean() / max(x.var(), np.finfo(float).tiny)
    return f"(determined by the others: R2 = {share:.3f} on held-out rows)" if share >= enough else ""
