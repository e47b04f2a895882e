"""The first screen: what was found, the verdict in one line and one next step, the same wherever it is shown."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knockoffs.diagnostics.verdict import Verdict
from knockoffs.errors import count, printable
from knockoffs.plots.style import short
from knockoffs.report.formatting import number
from knockoffs.selection import Selection

BLOCKS = " ▏▎▍▌▋▊▉█"  # bars of text: eighths of a character


@dataclass(frozen=True)
class Row:
    """A discovery, or the nearest of the features that were not selected: its name, p-value or W, and bar."""

    name: str
    value: float
    share: float


@dataclass(frozen=True)
class FirstScreen:
    """What print, a notebook, the command line, the report and the page in the browser show first."""

    found: str  # number of discoveries or of selected features
    level: str  # error rate that is controlled
    what: str  # what the rows are: "discovery", "selected feature" or "nearest, not selected"
    value: str  # "p-value", "W" or "e-value"
    rows: tuple[Row, ...]  # the largest bar first: W, or the statistic of a test in standard deviations of its draws
    n_more: int  # discoveries that are not in the rows
    word: str  # "good", "doubtful", "broken" or ""
    verdict: str  # in one line
    next_step: str


def recorded_screen(content: Mapping[str, Any]) -> FirstScreen:
    """First screen as selection.json holds it; infinity is a text there."""
    rows = tuple(Row(row["name"], float(row["value"]), float(row["share"])) for row in content["rows"])
    return FirstScreen(**{**content, "rows": rows})


def first_screen(selection: Selection, *, most: int = 30, nearest: int = 5) -> FirstScreen:
    """First screen of a selection, with at most ``most`` discoveries, or the ``nearest`` features if there is none."""
    tested, d = selection.p_values is not None, len(selection.feature_names)
    names, values, sizes = _found(selection)
    n = len(names)
    if selection.discoveries is not None:
        what, found = "discovery", f"{count(n, 'discovery', 'discoveries')} among {count(d, 'feature')}"
    else:
        what, found = "selected feature", f"{n} of {count(d, 'feature')} selected"
    if n == 0:
        what, near = "nearest, not selected", selection.surest_first[:nearest]
        names, values, sizes = _features(selection, near[sizes_of(selection)[near] > 0])
        if selection.discoveries is not None and d > 1 and len(set(selection.q_values.tolist())) == 1:
            names, values, sizes = [f"all {d} features together"], values[:1], sizes[:1]
    largest = float(sizes[np.isfinite(sizes)].max(initial=0.0)) or 1.0
    rows = [
        Row(names[j], float(values[j]), round(float(np.clip(sizes[j] / largest, 0.0, 1.0)), 4))
        for j in np.argsort(-sizes, kind="stable")[:most]
    ]
    return FirstScreen(
        found=found,
        level=error_rate(selection),
        what=what,
        value="p-value" if tested else "W" if selection.discoveries is None or n == 0 else "e-value",
        rows=tuple(rows),
        n_more=max(n - most, 0),
        word="" if selection.verdict is None else selection.verdict.word,
        verdict=verdict_line(selection.verdict),
        next_step=next_step(selection, n),
    )


def _found(selection: Selection) -> tuple[list[str], NDArray, NDArray]:
    """Names, values and sizes of what was found, surest first."""
    if selection.discoveries is None:
        order = selection.surest_first
        return _features(selection, order[selection.selected[order]])
    found, names = selection.discoveries, [str(one) for one in selection.discoveries]
    scores = np.maximum([one.score for one in found], 0.0)
    if selection.p_values is not None:
        return names, np.array([one.p_value for one in found]), scores
    W = dict(zip(selection.feature_names, sizes_of(selection), strict=True))  # e-values are mostly equal
    return names, scores, np.array([max(W[name] for name in one.features) for one in found])


def _features(selection: Selection, chosen: NDArray[np.intp]) -> tuple[list[str], NDArray, NDArray]:
    values = selection.W if selection.p_values is None else selection.p_values
    return [selection.feature_names[j] for j in chosen], values[chosen], sizes_of(selection)[chosen]


def sizes_of(selection: Selection) -> NDArray:
    """Lengths of the features' bars: W, the statistic of a test, or -log10 of its p-value; never negative."""
    if selection.p_values is None:
        sizes = selection.W
    elif selection.test_scores is not None:
        sizes = selection.test_scores
    else:
        sizes = -np.log10(np.maximum(selection.p_values, 1e-300))
    return np.maximum(np.nan_to_num(sizes, posinf=np.inf, neginf=0.0), 0.0)


def error_rate(selection: Selection) -> str:
    """Error rate that is controlled, and at which level."""
    level, evidence = selection.fdr, selection.evidence
    if selection.discoveries is not None and selection.p_values is not None:
        what = ("any discovery would be", "it is", "any of them is")[min(len(selection.discoveries), 2)]
        return f"the chance that {what} false is at most {level:g}"
    if selection.discoveries is not None:
        return f"false discovery rate {level:g} of features and groups"
    if evidence is not None and evidence.stated > level:
        return f"level {evidence.stated:.3g}, chosen after looking"
    modified = selection.offset == 0 and evidence is None and selection.p_values is None
    return f"{'modified ' if modified else ''}false discovery rate {level:g}"


def verdict_line(verdict: Verdict | None) -> str:
    """Verdict in one line: its word, and its first sentence."""
    if verdict is None:
        return "Verdict: none. It was not asked for, or there are fewer than 50 rows."
    return f"Verdict: {verdict.word}. {verdict.headline.splitlines()[0]}"


def next_step(selection: Selection, n_found: int) -> str:
    """One thing to do next."""
    verdict, smallest = selection.verdict, float(np.min(selection.q_values, initial=np.inf))
    if verdict is not None and verdict.word != "good":
        return verdict.next_step
    if n_found == 0 and smallest <= 2 * selection.fdr:
        return f"The smallest level that selects a feature is {number(smallest)}. Set that level for new rows."
    if n_found == 0 and selection.discoveries is not None and selection.p_values is not None:
        return "Use more rows, or other columns: even all of these together are not significant."
    if n_found == 0:
        return "Nothing comes near the level. Use more rows, or group columns that measure the same thing."
    if selection.method == "knockoffs" and selection.evidence is None:
        return (
            "Another draw of knockoffs may select slightly different features: combine five by n_draws=5 (--draws 5)."
        )
    return "Confirm the answer on new rows, with the level fixed beforehand."


def as_text(screen: FirstScreen, target: str | None = None, *, width: int = 100, bar_width: int = 16) -> str:
    """First screen as lines of text of at most ``width`` characters, the longest bar of ``bar_width``.

    >>> rows = (Row("bmi", 0.0002, 1.0), Row("one of hdl, ldl", 0.004, 0.45))
    >>> said = ("Verdict: good.", "Confirm the answer on new rows.")
    >>> print(as_text(FirstScreen("2 discoveries among 10 features", "level 0.1", "discovery", "p-value", rows, 0,
    ...                           "good", *said), "y"))
    2 discoveries among 10 features for y (level 0.1)
    <BLANKLINE>
      bmi              ████████████████  p = 0.0002
      one of hdl, ldl  ███████▎          p = 0.004
    <BLANKLINE>
    Verdict: good.
    Next step: Confirm the answer on new rows.
    """
    for_target = "" if target is None else f" for {short(target, 40)}"
    lines = textwrap.wrap(f"{screen.found}{for_target} ({screen.level})", width)
    if screen.rows:
        symbol = "p" if screen.value == "p-value" else screen.value
        parts = [textwrap.wrap(printable(row.name)[:400], width - bar_width - 18) or ["“ ”"] for row in screen.rows]
        widest = max(len(part) for names in parts for part in names)
        title = [] if screen.what != "nearest, not selected" else ["Nearest, not selected:"]
        lines += ["", *title]
        for row, (first, *more) in zip(screen.rows, parts, strict=True):
            lines.append(f"  {first:<{widest}}  {bar(row.share, bar_width):<{bar_width}}  {symbol} = {row.value:.3g}")
            lines += [f"    {part}" for part in more]
        if screen.n_more:
            lines.append(f"  and {screen.n_more} more")
    for words in ("", screen.verdict, f"Next step: {screen.next_step}"):
        lines += textwrap.wrap(printable(short(words, 400)), width) if words else [""]
    return "\n".join(lines)


def bar(share: float, width: int) -> str:
    """Bar of text, in eighths of a character; what is not nothing is seen.

    >>> bar(1.0, 3), bar(0.5, 3), bar(0.001, 3), bar(0.0, 3)
    ('███', '█▌', '▏', '')
    """
    full, rest = divmod(max(round(share * width * 8), int(share > 0)), 8)
    return "█" * full + BLOCKS[rest].strip()
