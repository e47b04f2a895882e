"""Draw docs/which_procedure.svg: which procedure for which table, as questions with an answer beside each.

``make picture`` draws it again. Colours follow the reader's light or dark; without colours everything can be read too.
"""

from html import escape
from pathlib import Path

PLACE = Path(__file__).resolve().parents[1] / "docs" / "which_procedure.svg"

# question, its meaning; labels of the arrows to the answer and to the next question; answer, call, guarantee
STEPS = (
    (
        ("Are there rows,", "or only z-scores?"),
        "studies that publish no rows",
        ("z-scores", "rows"),
        ("Ghost knockoffs", "knockoffs ghost --z z.csv ...", "E[FDP] at most fdr"),
    ),
    (
        ("Are there fewer than", "4 / fdr features?"),
        "40 at fdr=0.1; 20 with many rows",
        ("yes", "no"),
        ("Conditional tests", 'method="auto", the default', "P(any is false) at most fdr"),
    ),
    (
        ("Are some columns", "near-duplicates?"),
        "the verdict names them",
        ("yes", "no"),
        ("Groups of columns, then continue", 'groups="auto"', "the guarantees below, for groups"),
    ),
    (
        ("Will fewer than 1 / fdr", "features matter?"),
        "10 at fdr=0.1: one draw needs 10",
        ("yes", "no, or unknown"),
        ("Several knockoffs, or tests", "n_knockoffs=5, or knockoffs test", "need 1 / (5 fdr) discoveries, or one"),
    ),
    (
        ("Must the answer be stable", "from seed to seed?"),
        "near the threshold it varies",
        ("no", "yes"),
        ("One draw: the default", "KnockoffSelector(fdr)", "E[FDP] at most fdr"),
    ),
    (
        ("Must the level be", "fixed in advance?"),
        "or a larger, reported one",
        ("yes", "no"),
        ("Many draws", "n_draws=5", "E[FDP] at most fdr; less power"),
    ),
)
LAST = ("Many draws, post-hoc level", 'n_draws=5, level="post_hoc"', "E[FDP / reported level] at most 1")

WIDTH, BOX, HEIGHT, GAP, MARGIN = 700, 280, 92, 34, 20
LEFT, RIGHT = MARGIN, WIDTH - MARGIN - BOX
STYLE = """
.ground { fill: #ffffff } .ask { fill: #f3f5f7; stroke: #8c959f } .give { fill: #e8f2fa; stroke: #0072b2 }
.line { stroke: #57606a; stroke-width: 1.5; fill: none } .tip { fill: #57606a }
text { font-family: sans-serif; font-size: 16px; fill: #1f2328 }
.small { font-size: 13.5px; fill: #57606a } .way { font-size: 14px; font-weight: 600 } .head { font-weight: 600 }
.call { font-family: monospace; font-size: 12.5px }
@media (prefers-color-scheme: dark) {
.ground { fill: #131416 } .ask { fill: #22262b; stroke: #7d8590 } .give { fill: #10283b; stroke: #56b4e9 }
.line { stroke: #9aa4af } .tip { fill: #9aa4af } text { fill: #e6edf3 } .small { fill: #b1bac4 }
}
"""


def text(x: float, y: float, words: str, look: str = "", *, middle: bool = True) -> str:
    """One line of text."""
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text x="{x:g}" y="{y:g}" class="{look}"{anchor}>{escape(words)}</text>'


def box(x: float, y: float, look: str) -> str:
    """Round a box; answers have a thicker line, so that colours are not needed."""
    thick = 2.2 if look == "give" else 1.2
    return f'<rect x="{x}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="9" class="{look}" stroke-width="{thick}"/>'


def answer(x: float, y: float, parts: tuple[str, str, str]) -> list[str]:
    """Draw an answer: its name, its call, its guarantee."""
    name, call, guarantee = parts
    middle = x + BOX / 2
    lines = [text(middle, y + 28, name, "head"), text(middle, y + 52, call, "call")]
    return [box(x, y, "give"), *lines, text(middle, y + 76, guarantee, "small")]


def arrow(way: str) -> str:
    """Draw a line with a tip at its end."""
    return f'<path d="{way}" class="line" marker-end="url(#tip)"/>'


def picture() -> str:
    """SVG of the questions, one below another, with an answer beside each."""
    step = HEIGHT + GAP
    height = 2 * MARGIN + len(STEPS) * step + HEIGHT
    middle = LEFT + BOX / 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Which procedure for which table</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="tip" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
        '<path d="M0 0 L9 4 L0 8 z" class="tip"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" rx="10" class="ground"/>',
    ]
    for i, (question, means, (aside, onward), parts) in enumerate(STEPS):
        y = MARGIN + i * step
        lines.append(box(LEFT, y, "ask"))
        lines += [text(middle, y + 28 + 21 * k, words) for k, words in enumerate(question)]
        lines.append(text(middle, y + 76, means, "small"))
        lines.append(arrow(f"M{LEFT + BOX} {y + HEIGHT / 2:g} H{RIGHT - 2}"))
        lines.append(text((LEFT + BOX + RIGHT) / 2, y + HEIGHT / 2 - 8, aside, "way"))
        lines.append(arrow(f"M{middle:g} {y + HEIGHT} v{GAP - 2}"))
        lines.append(text(middle + 12, y + HEIGHT + 21, onward, "way", middle=False))
        lines += answer(RIGHT, y, parts)
        if parts[0].endswith("then continue"):  # groups are formed first, and the next question is about them
            lines.append(arrow(f"M{RIGHT + BOX / 2:g} {y + HEIGHT} v{GAP / 2:g} H{LEFT + BOX - 40} v{GAP / 2 - 2:g}"))
    lines += answer(LEFT, MARGIN + len(STEPS) * step, LAST)
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PLACE.write_text(picture(), encoding="utf-8")
