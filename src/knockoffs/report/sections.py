"""The sections of the page, in its order: each a function of the facts that gives html, or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from html import escape

import numpy as np

from knockoffs.plots.margins import margin
from knockoffs.report.facts import MOST_ROWS, Facts
from knockoffs.report.figures import (
    MOST_BARS,
    draw_criterion,
    draw_margin,
    draw_paths,
    draw_stability,
    draw_verdict,
    draw_W,
)
from knockoffs.report.formatting import count, named, number, short, text
from knockoffs.report.method import method_paragraph
from knockoffs.report.provenance import command_of
from knockoffs.selection import PROVIDED
from knockoffs.table.types import Json

MOST_MARGINS = 12  # columns beside their knockoffs
MOST_COLUMNS = 60  # in the table of what columns hold
KEPT = 500_000  # characters of names that are written out in full, all together
LISTED = 80  # characters of a name in the list for the search


def section(name: str, title: str, body: str) -> str:
    """Section with a heading that can be linked to; nothing where there is nothing to say."""
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>\n{body}</section>\n' if body else ""


def paragraph(words: str, kind: str = "") -> str:
    """Paragraph of plain words."""
    return f"<p{f' class={kind!r}' if kind else ''}>{text(words)}</p>\n" if words else ""


def answer(facts: Facts) -> str:
    """Give the answer in one sentence, and the promise that it makes."""
    selection = facts.selection
    n, d = int(selection.selected.sum()), len(selection.feature_names)
    called = f" for {named(facts.called)}" if facts.called else ""
    if n == 0:
        lead = f"<strong>None</strong> of {count(d, 'feature')} is selected{called}, at level {selection.fdr:g}."
    else:
        first = ", ".join(named(name, 30) for name in selection.selected_names[:6])
        more = f" and {n - 6} more" if n > 6 else ""
        verb = "is selected as one that matters" if n == 1 else "are selected as those that matter"
        asked = f"{verb}{called} given all the others, {_at_level(facts)}"
        lead = f"<strong>{n} of {count(d, 'feature')}</strong> {asked}: {first}{more}."
    parts = [f'<p class="lead">{lead}</p>\n']
    word = None if selection.verdict is None else selection.verdict.word
    if word is not None and word != "good":
        parts.append(
            f'<p class="alarm" role="note"><strong>The knockoffs look {escape(word)}.</strong> The promise below rests '
            'on a model of the features that does not fit them: see <a href="#verdict">the verdict</a>.</p>\n'
        )
    parts.append(paragraph(facts.sentence(selection.explain()), "promise"))
    return "".join(parts)


def _at_level(facts: Facts) -> str:
    selection, level = facts.selection, facts.stops[facts.at].level
    if selection.evidence is not None and not facts.stops[facts.at].asked:
        return f"at the level {level:.3g}, chosen after looking"
    if selection.evidence is None and selection.p_values is None and selection.offset == 0:
        return f"at a modified false discovery rate of {level:g}"
    return f"at a false discovery rate of {level:g}"


def levels(facts: Facts) -> str:
    """Give the slider, which is shown where scripts run, and what holds at the level that was asked for."""
    stops, at = facts.stops, facts.at
    stop = stops[at]
    broken = facts.selection.verdict is not None and facts.selection.verdict.word == "broken"
    alarm = '<p class="alarm">The verdict is broken: none of these promises can be relied on.</p>\n' if broken else ""
    return f"""{alarm}<div id="slider" hidden>
<p><label for="level">Level: <output id="level-value" for="level">{stop.level:.4g}</output></label>
<input type="range" id="level" min="0" max="{len(stops) - 1}" step="1" value="{at}" aria-describedby="level-promise">
<button type="button" id="back">Back to the level of the answer, {stop.level:.4g}</button></p>
</div>
<div id="level-promise" role="status" aria-live="polite" aria-atomic="true"
 class="stop{" asked" if stop.asked else ""}">
<p><strong id="stop-count">{_stop_words(stop.level, stop.n_selected, stop.asked)}</strong></p>
<p id="stop-caution" class="caution">{escape(stop.caution)}</p>
<p id="stop-promise">{escape(stop.promise)}</p>
<p id="stop-names" class="names"></p>
</div>
<p class="fine">A false feature is one that does not matter given all the others. Everything holds
{escape(PROVIDED)}</p>
"""


def _stop_words(level: float, n: int, asked: bool) -> str:
    which = "the level asked for" if asked else "a level chosen after looking"
    return f"Level {level:.4g}, {which}: {count(n, 'feature') if n else 'nothing'} selected."


def slider_data(facts: Facts) -> dict[str, Json]:
    """Give what the slider and the search read: the words of each level, and the features in their order."""
    names = facts.selection.feature_names
    return {
        "stops": [
            {
                "level": f"{stop.level:.4g}",
                "n": stop.n_selected,
                "asked": stop.asked,
                "words": _stop_words(stop.level, stop.n_selected, stop.asked),
                "caution": stop.caution,
                "promise": stop.promise,
            }
            for stop in facts.stops
        ],
        "at": facts.at,
        "selected": int(facts.selection.selected.sum()),
        "shown": min(MOST_ROWS, len(names)),
        "rows": [[short(names[j], LISTED), *facts.cells(j)] for j in facts.order],
    }


def features(facts: Facts) -> str:
    """Table of the features, the surest first; the first two hundred, and a search for the others."""
    selection, headings = facts.selection, facts.headings
    d = len(selection.feature_names)
    head = "".join(f'<th scope="col"{_numeric(key)}>{text(word)}</th>' for key, word in headings.items())
    shown = facts.order[:MOST_ROWS]
    room = KEPT // max(len(shown), 1)
    rows = []
    for rank, j in enumerate(shown):
        name = selection.feature_names[j]
        whole = name if len(name) <= room else f"{name[:room]}…"
        mark = "yes" if selection.selected[j] else ""
        cells = "".join(f'<td class="number">{text(cell)}</td>' for cell in facts.cells(j))
        kind = ' class="chosen"' if mark else ""
        rows.append(
            f'<tr{kind} data-rank="{rank}"><th scope="row">{named(whole)}</th><td class="mark">{mark}</td>{cells}</tr>'
        )
    hidden = "" if d > 15 else " hidden"
    more = f'<button type="button" id="more">Show {MOST_ROWS} more</button>' if d > len(shown) else ""
    note = (
        f"<noscript><p>The first {len(shown)} of {d:,} features; selection.csv has all.</p></noscript>" if more else ""
    )
    return f"""<p id="search-box"{hidden}><label for="search">Find a feature: </label><input type="search" id="search"
 autocomplete="off" spellcheck="false"> <span id="found" role="status" aria-live="polite"></span></p>
<p class="means" id="means">{_what_columns_mean(facts)}</p>
<div class="scroll" role="region" aria-label="Table of the features" tabindex="0"><table id="features"
 aria-describedby="means">
<caption>{count(d, "feature")}, the surest first</caption>
<thead><tr>{head}</tr></thead>
<tbody>{"".join(rows)}</tbody></table></div>
{more}{note}
"""


def _numeric(key: str) -> str:
    return "" if key in ("name", "selected") else ' class="number"'


def _what_columns_mean(facts: Facts) -> str:
    means = {
        "W": "W is the feature's importance minus its knockoff's.",
        "p": "The p-value is of the hypothesis that the feature does not matter given the others.",
        "e": "The e-value is the evidence of all draws.",
        "frequency": "The frequency is the share of draws that select the feature by themselves, and no probability.",
    }
    if facts.selection.n_knockoffs > 1:
        means["W"] = (
            f"W is the largest importance of the feature and its {facts.selection.n_knockoffs} knockoffs less the "
            "median of the others, positive where it is the feature's."
        )
    words = [means[key] for key in facts.headings if key in means]
    level = "q-value" if facts.selection.evidence is None else "level"
    words.append(
        f"The {level} is the smallest level that selects the feature, and no promise in itself: see the slider."
    )
    high = facts.high_label
    of = f" (of “{named(high, 30)}”)" if high is not None else ""
    if "effect" in facts.headings:
        words.append(
            f"“In the model” is the feature's coefficient{of} in the linear model of the target, given all the others, "
            "in standard deviations; a lasso draws it towards zero, and it has no promise of its own."
        )
    if "direction" in facts.headings:
        words.append(
            f"The last column is the rank correlation with the target{of}, of the feature alone: given the others, its "
            "effect may have the other sign."
        )
    return " ".join(words)


def pictures(facts: Facts) -> str:
    """W with the threshold, and the draws."""
    W = facts.selection.W
    drawn = "" if np.isnan(W).all() else draw_W(facts.selection, facts.rank_of)
    parts = []
    if drawn:
        others = max(int((W != 0).sum()) - MOST_BARS, 0)
        zero = int((W == 0).sum())
        told = "Full bars are selected; a bar to the left is a knockoff that beat its feature."
        if others:
            told += f" {count(others, 'feature')} of a smaller |W| {'is' if others == 1 else 'are'} not shown."
        if zero:
            told += f" W is 0 for {count(zero, 'feature')}."
        parts.append(f"<figure>{drawn}<figcaption>{text(told)}</figcaption></figure>\n")
    stable = draw_stability(facts.selection, facts.order)
    if stable:
        told = "Full bars are selected by all draws together. Each draw of knockoffs selects by itself now and then."
        parts.append(f"<figure>{stable}<figcaption>{told}</figcaption></figure>\n")
    return "".join(parts)


def paths(facts: Facts) -> str:
    """W along lambda, where it was followed."""
    if facts.path is None:
        return ""
    drawn = draw_paths(facts.path, facts.order.tolist(), facts.selection.selected)
    told = (
        "W as each column moves from its own values (0) to its knockoff's (1, dotted) and beyond, by the score Swap. "
        "The thin lines are other features, the largest. Where one feature towers over the others the scale is "
        "logarithmic away from zero."
    )
    return f"<figure>{drawn}<figcaption>{text(told)}</figcaption></figure>\n"


def beside_knockoffs(facts: Facts) -> str:
    """Each of the first features beside its knockoff."""
    pair = facts.selection.pair
    if len(pair) == 0:
        return ""
    chosen = [int(j) for j in facts.order if facts.selection.selected[j]] or facts.order[:6].tolist()
    columns = [k for j in chosen[:MOST_MARGINS] for k in facts.columns_of(j)[:3]][:MOST_MARGINS]
    cards = []
    for k in columns:
        column = facts.column(k)
        found = margin(pair.X[:, k], pair.X_tilde[:, k], column)
        cards.append(
            f"<figure>{draw_margin(found, column.name)}<figcaption>{named(column.name, 30)}: {found.nearness} with its "
            "knockoff</figcaption></figure>"
        )
    told = (
        "Full bars are the column, the line or the empty bars its knockoff. The two should be spread alike; and the "
        "less they agree row by row, the easier the feature is to find."
    )
    return f'<p>{told}</p>\n<div class="cards">{"".join(cards)}</div>\n'


def verdict(facts: Facts) -> str:
    """Whether the knockoffs could be told from the features."""
    found = facts.selection.verdict
    if found is None:
        return paragraph("The knockoffs were not checked.")
    sentences = [paragraph(facts.sentence(words)) for words in found.say().split("\n")]
    rows = "".join(
        f'<tr><th scope="row">{text(check.name)}</th><td class="number">{number(check.p_value, 2)}</td>'
        f'<td class="number">{number(check.effect, 2)}</td><td>{text(facts.sentence(check.sentence))}</td></tr>'
        for check in found.checks
    )
    return f"""{"".join(sentences)}<figure>{draw_verdict(found)}
<figcaption>Squares speak against the knockoffs.</figcaption></figure>
<div class="scroll" role="region" aria-label="Checks of the knockoffs" tabindex="0"><table>
<caption>Checks, on {count(found.n_rows, "row")}; no check looks at the target.</caption>
<thead><tr><th scope="col">check</th><th scope="col" class="number">p-value</th>
<th scope="col" class="number">effect</th><th scope="col">what was seen</th></tr></thead>
<tbody>{rows}</tbody></table></div>
"""


def model(facts: Facts) -> str:
    """Tell the model of X: kinds of columns, missing cells, the number of classes and what was decided."""
    law, notes = facts.selection.feature_model, facts.selection.notes
    parts = [paragraph(facts.sentence(notes.get("feature_model", "The knockoffs were drawn elsewhere.")))]
    criterion = getattr(law, "criterion", None)
    if isinstance(criterion, dict) and criterion:
        chosen = getattr(law, "n_classes", getattr(law, "n_components", None))
        drawn = draw_criterion(criterion, chosen)
        told = "Criterion by the number of classes: the smaller, the better."
        if criterion.get(chosen, 0) > min(criterion.values()):
            told += (
                " Fewer classes than the best are taken where rows hardly tell the two, or where the best do not last."
            )
        parts.append(f"<figure>{drawn}<figcaption>{told}</figcaption></figure>" if drawn else "")
    if facts.table is not None:
        columns = facts.table.columns
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in Counter(column.kind for column in columns).most_common())
        missing = sum(column.n_missing for column in columns)
        cells = f"{count(missing, 'cell')} of {facts.table.X.size:,} missing" if missing else "no cell missing"
        parts.append(paragraph(f"{count(len(columns), 'column')}: {kinds}; {cells}."))
        parts.append(_columns_table(facts))
    others = [note for key, note in notes.items() if key != "feature_model"]
    if others:
        listed = "".join(f"<li>{text(facts.sentence(note))}</li>" for note in others)
        parts.append(f"<h3>What was chosen</h3>\n<ul>{listed}</ul>\n")
    return "".join(parts)


def _columns_table(facts: Facts) -> str:
    assert facts.table is not None
    columns = sorted(facts.table.columns, key=lambda column: -column.n_missing)[:MOST_COLUMNS]
    rows = "".join(
        f'<tr><th scope="row">{named(c.name)}</th><td>{text(c.kind)}</td><td class="number">{c.n_missing:,}</td>'
        f"<td>{text(facts.sentence(c.why.replace('{name}', repr(c.name))))}</td></tr>"
        for c in columns
    )
    left = len(facts.table.columns) - len(columns)
    more = f" {left:,} more are not listed." if left else ""
    return f"""<details><summary>What the columns were taken for</summary>
<div class="scroll" role="region" aria-label="Kinds of the columns" tabindex="0"><table>
<caption>Those with the most missing cells first.{more}</caption>
<thead><tr><th scope="col">column</th><th scope="col">kind</th><th scope="col" class="number">missing</th>
<th scope="col">why</th></tr></thead><tbody>{rows}</tbody></table></div></details>
"""


def method(facts: Facts) -> str:
    """Give a paragraph to be pasted into a paper."""
    words, references = method_paragraph(facts)
    listed = "".join(f"<li>{text(reference)}</li>" for reference in references)
    return f"{paragraph(words)}<h3>References</h3>\n<ul>{listed}</ul>\n"


def provenance(facts: Facts) -> str:
    """How it is made again, from what, and with which versions."""
    parts = []
    if facts.parameters is not None and facts.data is not None:
        command = facts.sentence(command_of(facts.parameters, str(facts.data.get("file", "TABLE"))))
        parts.append(f"<p>This command makes it again:</p>\n<pre tabindex='0'><code>{text(command)}</code></pre>\n")
    if facts.python is not None:
        code = "\n".join(text(line) for line in facts.python.split("\n"))
        parts.append(f"<p>These lines make it again:</p>\n<pre tabindex='0'><code>{code}</code></pre>\n")
    if facts.data:
        told = {"file": "data file", "sha256": "SHA-256", "n_rows": "rows", "n_columns": "columns"}
        files = facts.data.get("files") or {}
        data: Mapping[str, object] = facts.data
        items = [(word, str(data[key])) for key, word in told.items() if key in data]
        items += [(f"SHA-256 of {name}", value) for name, value in files.items()]
        parts.append(_terms(items))
    if facts.versions:
        parts.append(_terms([("versions", ", ".join(f"{name} {v}" for name, v in facts.versions.items()))]))
    return "".join(parts)


def _terms(items: list[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<dt>{text(short(word))}</dt><dd>{text(value)}</dd>' for word, value in items)}</dl>\n"


def warned(facts: Facts) -> str:
    """Warnings about the data."""
    items = "".join(f"<li>{text(facts.sentence(words))}</li>" for words in facts.warnings)
    return f"<ul>{items}</ul>\n" if items else ""
