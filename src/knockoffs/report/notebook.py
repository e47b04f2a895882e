"""The answer in a notebook: a sentence, the surest features, and no style but the notebook's own."""

from __future__ import annotations

from knockoffs.report.facts import Facts
from knockoffs.report.formatting import count, named, text
from knockoffs.selection import Selection

MOST = 20  # features in the table


def answer_html(selection: Selection) -> str:
    """Html of a selection for a notebook."""
    facts = Facts(selection)
    n = int(selection.selected.sum())
    head = "".join(f"<th scope='col'>{text(word)}</th>" for word in facts.headings.values())
    shown = facts.order[: min(max(n, 5), MOST)]
    rows = "".join(
        f"<tr><th scope='row'>{named(selection.feature_names[j])}</th><td>{'yes' if selection.selected[j] else ''}</td>"
        + "".join(f"<td>{text(cell)}</td>" for cell in facts.cells(j))
        + "</tr>"
        for j in shown
    )
    left = len(facts.order) - len(shown)
    more = f"<p>{count(left, 'more feature')} {'is' if left == 1 else 'are'} not shown.</p>" if left else ""
    word = "" if selection.verdict is None else f"<p>Verdict on the knockoffs: {text(selection.verdict.word)}.</p>"
    return (
        f"<div><p><strong>{n} of {count(len(facts.order), 'feature')} selected</strong></p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"
        f"<p>{text(facts.sentence(selection.explain()))}</p>{word}</div>"
    )
