"""The page benchmarks/arena.md, from the newest csv of each kind under benchmarks/results; or a page of other results.

PYTHONPATH=src python -m benchmarks.arena.page [FOLDER PAGE]
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arena import growth, profiles, quality
from benchmarks.arena.designs import DESIGNS
from benchmarks.arena.speed import ROOT

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "benchmarks" / "arena.md"
Row = dict[str, Any]
NAMES = {"default": "ours", "ours": "ours", "trex": "T-Rex", "boruta": "Boruta", "snpknock": "SNPknock"}
MODELS_OF_Y = ("default", "lasso", "boosting")
CONTENDERS = ("default", "knockpy", "hidimstat", "trex", "boruta")

INTRO = """# The arena

This package and its peers on the same work. `make bench` sets up the peers, each in an environment of its own, runs
everything and writes this page; the csv files behind it are in `benchmarks/results`. The peers are knockpy 1.3.5,
hidimstat 0.4.0, the T-Rex selector (trexselector 0.6.18, the port to Python of the R package), Boruta 0.4.3 and, for
hidden Markov models, SNPknock 0.8.3 ([its table](performance.md)). R is not needed for any of them. **In bold: the
best of a row.** Every row in which this package is behind is listed at the end of its section.
"""

CHECKS = """## Exact checks

The covariance that a sampler implies is computed from its own affine map, thresholds are compared with their
definition written as a loop, objects are fitted twice (`benchmarks/arena/checks.py`). One row is a simulation, since
a sampler of chains takes no numbers but its own: every row of a short chain is drawn for 20,000 times, and swaps may
differ by five standard errors. A dash: a contender has no such part.
"""

SPEED = """## Speed

CPU seconds of one thread, best of all calls, contenders in turn in one run; compiled code is loaded, not compiled.
MiB is the growth of the process over what it held before, compiled code included (`benchmarks/arena/speed.py`).
"""

QUALITY = """## Quality

Defaults against defaults, on tables with known truth (`benchmarks/arena/designs.py` has every design): 50 columns,
500 to 800 rows, 15 or 16 of the columns matter; *wide*: 200 rows, 300 columns, 20. A design is called by the law of
its features and by that of y. FDR ± its standard error at a target of {level}, and power after the slash. **In bold
an FDR more than two standard errors above the target.** Boruta promises no FDR and is not in bold; peers get labels
as codes, ours as labels.
"""


MODELS = """### The default model of y

Ours with its default, which takes the model that predicts held-out rows best, beside the lasso alone and boosting
alone: the same knockoffs, and only the tables that all three had. FDR and power as above; the last column is the power
of the default less that of the better of the two (by mean power), with the standard error of the difference, table by
table.
"""


ORACLE = """### What there is to find

Ours beside an oracle: knockoffs of the very law that the table was drawn from (`benchmarks/arena/oracle.py`), and the
default model of y. Who finds more than it does owes that to a P^X that is not the law of the columns. The last column
is the power of ours less that of the oracle, with the standard error of the difference, table by table.
"""


def newest(kind: str, results: Path) -> Path | None:
    """Newest dated file of a kind."""
    return max(results.glob(f"arena-*-{kind}.csv"), default=None)


def read(path: Path) -> list[Row]:
    """Lines of a csv file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def unique(values: Iterable[str]) -> list[str]:
    """Values in the order of their first appearance."""
    return list(dict.fromkeys(values))


def checks_section(rows: list[Row]) -> str:
    """One row a check, one column a contender."""
    who = [name for name in ("ours", *CONTENDERS[1:], "snpknock") if any(row["who"] == name for row in rows)]
    cells = {(row["check"], row["who"]): row for row in rows}

    def cell(check: str, name: str) -> str:
        row = cells.get((check, name))
        if row is None:
            return "-"
        return row["detail"] if row["holds"] == "True" else f"**fails**: {row['detail']}"

    body = [[check, *(cell(check, name) for name in who)] for check in unique(row["check"] for row in rows)]
    return CHECKS + "\n" + table(["check", *(NAMES.get(name, name) for name in who)], body)


def speed_section(rows: list[Row]) -> str:
    """One line for each contender in each contest, and where we are behind."""
    body, behind = [], []
    for name in unique(row["row"] for row in rows):
        group = [row for row in rows if row["row"] == name]
        timed = [row for row in group if row["seconds"] and not row["who"].startswith("bound")]
        best = min((float(row["seconds"]) for row in timed), default=float("inf"))
        own = [float(row["seconds"]) for row in timed if row["who"].startswith("ours")]
        mine = own[0] if own else float("inf")  # the first is the one asked about: not the faster options after it
        for row in group:
            seconds = f"{float(row['seconds']):.3g}" if row["seconds"] else "-"
            bold = row in timed and float(row["seconds"]) == best and len(timed) > 1
            memory = f"{float(row['memory']):.0f}" if row["memory"] else "-"
            said = row["note"] or row["error"]
            body.append([name, row["who"], f"**{seconds}**" if bold else seconds, memory, said])
        theirs = [row for row in timed if not row["who"].startswith("ours")]
        first = min(theirs, key=lambda row: float(row["seconds"]), default=None)
        if first is not None and mine > float(first["seconds"]):
            behind.append(f"- {name}: {mine:.3g} s against {float(first['seconds']):.3g} of {first['who']}.")
    said = "\n".join(["Behind:", "", *behind]) if behind else "No row is behind."
    return SPEED + "\n" + table(["work", "who", "CPU s", "MiB", "how well"], body) + "\n" + said + "\n"


def quality_section(rows: list[Row], level: float = 0.1) -> str:
    """FDR and power, one row a design, one column a method."""
    lines = {(line["design"], line["method"]): line for line in quality.means(rows) if line["level"] == level}
    methods = [name for name in CONTENDERS if any(key[1] == name for key in lines)]

    def cell(design: str, method: str) -> str:
        line = lines.get((design, method))
        if line is None:
            return "-"
        wrong = above_level(line) and method != "boruta"
        fdr = f"{line['fdr']:.2f} ± {line['fdr_error']:.2f}"
        power = "" if DESIGNS[design].n_non_nulls == 0 else f" / {line['power']:.2f}"
        return (f"**{fdr}**" if wrong else fdr) + power

    designs = [name for name in DESIGNS if any(key[0] == name for key in lines)]
    body = [[name, *(cell(name, method) for method in methods)] for name in designs]
    runs = {m: sorted({lines[d, m]["runs"] for d in designs if (d, m) in lines}) for m in methods}
    counted = ", ".join(f"{NAMES.get(m, m)} {_span(count)}" for m, count in runs.items())
    faults = sum(line["errors"] for line in lines.values())
    text = QUALITY.format(level=level) + "\n" + table(["design", *(NAMES.get(m, m) for m in methods)], body)
    text += f"\nTables for each design: {counted}. Calls that failed: {faults}.\n"
    return text + "\n" + behind_in_power(lines, designs, methods)


def above_level(line: Row) -> bool:
    """Whether an FDR is above its target by more than two standard errors (and rounding)."""
    return bool(line["fdr"] - 2 * line["fdr_error"] > line["level"] + 1e-9)


def behind_in_power(lines: dict[tuple[str, str], Row], designs: list[str], methods: list[str]) -> str:
    """Designs in which a peer that held its level found more, by more than two standard errors."""
    said = []
    for design in designs:
        mine = lines.get((design, "default"))
        if mine is None or DESIGNS[design].n_non_nulls == 0:
            continue
        for method in methods:
            line = lines.get((design, method))
            if line is None or method in ("default", "boruta"):
                continue
            error = (line["power_error"] ** 2 + mine["power_error"] ** 2) ** 0.5
            if not above_level(line) and line["power"] - mine["power"] > 2 * error:
                name, known = NAMES.get(method, method), lines.get((design, "oracle"))
                told = f"; the oracle finds {known['power']:.2f}" if known else ""
                said.append(f"- {design}: {mine['power']:.2f} against {line['power']:.2f} of {name}{told}.")
    if not said:
        return "No peer that held its level found more anywhere, by more than two standard errors.\n"
    return "\n".join(
        ["Behind in power, a peer holding its level and the difference above two standard errors:", "", *said, ""]
    )


def models_section(rows: list[Row], level: float = 0.1) -> str:
    """Our default beside the lasso alone and boosting alone, on the tables that all three had."""
    body, lost, counts = [], [], set()
    for design, tables in paired(rows, MODELS_OF_Y, level).items():
        counts.add(len(tables))
        lines = {line["method"]: line for line in quality.means([row for own in tables for row in own.values()])}
        fdr = {name: f"{line['fdr']:.2f} ± {line['fdr_error']:.2f}" for name, line in lines.items()}
        if DESIGNS[design].n_non_nulls == 0:
            body.append([design, *(fdr[name] for name in MODELS_OF_Y), "-"])
            continue
        better = max(MODELS_OF_Y[1:], key=lambda name: lines[name]["power"])
        gaps = np.array([own["default"]["power"] - own[better]["power"] for own in tables])
        gap, error = gaps.mean(), gaps.std(ddof=1) / np.sqrt(len(gaps))
        shown = [f"{fdr[name]} / {lines[name]['power']:.2f}" for name in MODELS_OF_Y]
        body.append([design, *shown, f"{gap:+.2f} ± {error:.2f}, {better}"])
        if gap + 2 * error < -1e-9:
            lost.append(
                f"- {design}: {lines['default']['power']:.2f} against {lines[better]['power']:.2f} of {better}."
            )
    if not body:
        return ""
    said = "\n".join(["The default loses power, by more than two standard errors:", "", *lost])
    said = said if lost else "The default loses to neither anywhere, by more than two standard errors."
    heads = ["design", "default", "lasso", "boosting", "default less the better"]
    return f"{MODELS}\n{table(heads, body)}\nTables for each design: {_span(sorted(counts))}. {said}\n"


def oracle_section(rows: list[Row], level: float = 0.1) -> str:
    """Our default beside who knows P^X, on the tables that both had."""
    pair = ("default", "oracle")
    body, counts = [], set()
    for design, tables in paired(rows, pair, level).items():
        if DESIGNS[design].n_non_nulls == 0:
            continue
        counts.add(len(tables))
        lines = {line["method"]: line for line in quality.means([row for own in tables for row in own.values()])}
        gaps = np.array([own["default"]["power"] - own["oracle"]["power"] for own in tables])
        both = [f"{lines[m]['fdr']:.2f} ± {lines[m]['fdr_error']:.2f} / {lines[m]['power']:.2f}" for m in pair]
        body.append([design, *both, f"{gaps.mean():+.2f} ± {gaps.std(ddof=1) / np.sqrt(len(gaps)):.2f}"])
    if not body:
        return ""
    shown = table(["design", "ours", "oracle", "ours less oracle"], body)
    return f"{ORACLE}\n{shown}\nTables for each design: {_span(sorted(counts))}.\n"


def paired(rows: list[Row], methods: Sequence[str], level: float) -> dict[str, list[dict[str, Row]]]:
    """For each design, the tables that all of some methods had: a row for each method."""
    cells: dict[str, dict[int, dict[str, Row]]] = {}
    for row in rows:
        if row["method"] in methods and not row["error"] and row["level"] == level:
            cells.setdefault(row["design"], {}).setdefault(row["repetition"], {})[row["method"]] = row
    complete = {
        design: [own for own in cells[design].values() if len(own) == len(methods)]
        for design in DESIGNS
        if design in cells
    }
    return {design: tables for design, tables in complete.items() if len(tables) > 1}


def _span(counts: list[int]) -> str:
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def write(results: Path = RESULTS, page: Path = PAGE) -> None:
    """Write the page from what there is; a note on the run, if one was written, comes first."""
    parts = [INTRO]
    note = max(results.glob("arena-*-note.md"), default=None)
    if note is not None:
        parts.append(note.read_text())
    sections = (
        ("quality", quality_of),
        ("speed", speed_of),
        ("checks", checks_of),
        ("growth", growth.section),
        ("profiles", profiles.section),
    )
    for kind, section in sections:
        path = newest(kind, results)
        if path is not None:
            parts.append(section(path))
    page.write_text("\n".join(parts))


def quality_of(path: Path) -> str:
    """Section of a file, with its name."""
    rows = quality.read(path)
    grown = same_forests(rows)
    if grown:  # more tables than with scikit-learn's forest
        rows = [row | {"method": row["method"].removesuffix("_grown")} for row in rows if row["method"] != "boruta"]
    said = f"\nAt 0.2 and every table: `benchmarks/results/{path.name}`.\n"
    more = [section for section in (oracle_section(rows), models_section(rows)) if section]
    return "\n".join([quality_section(rows, 0.1) + grown + said, *more])


def same_forests(rows: list[Row], level: float = 0.1) -> str:
    """Boruta around the forest of forest.py beside Boruta around scikit-learn's, on the tables that both had."""
    both = [own for tables in paired(rows, ("boruta", "boruta_grown"), level).values() for own in tables]
    if not both:
        return ""
    gaps = [f"{name} {_gap(both, field)}" for name, field in (("FDR", "fdp"), ("power", "power"))]
    return f"""
Boruta's forests are grown by `benchmarks/arena/forest.py`: scikit-learn's trees (a test compares them one by one), on
a GPU if there is one. On the {len(both)} tables that were run with scikit-learn's own forest too, the differences are
{", ".join(gaps)}.
"""


def _gap(both: list[dict[str, Row]], field: str) -> str:
    gaps = np.array([own["boruta_grown"][field] - own["boruta"][field] for own in both])
    gaps = gaps[np.isfinite(gaps)]
    return f"{gaps.mean():+.3f} ± {gaps.std(ddof=1) / np.sqrt(len(gaps)):.3f}"


def speed_of(path: Path) -> str:
    """Section of a file."""
    rows = list({(row["row"], row["who"]): row for row in read(path)}.values())  # of a second run on a day, the later
    return speed_section(rows) + f"\nMeasured on {rows[0]['date']}: `benchmarks/results/{path.name}`.\n"


def checks_of(path: Path) -> str:
    """Section of a file."""
    return checks_section(read(path))


if __name__ == "__main__":
    write(*map(Path, sys.argv[1:]))
