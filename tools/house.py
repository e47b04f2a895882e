"""The module graph of the package: its picture with the walk of one fit, its counts, and the stub of the public names.

    python tools/house.py              write __init__.pyi and docs/house.svg, and print the counts (make house)
    python tools/house.py --counts     print the counts alone

Imports are read from the source by ``ast`` and nothing is run, except for the walk: one fit under a tracer.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"

# from the ground up; a floor may use its own rooms and those below, never those above
FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("registry", "seeds", "progress", "machine"),
    ("filter", "sampling", "simulate"),
    ("table",),
    ("diagnostics", "response"),
    ("features",),
    ("importance", "conditional_tests"),
    ("selection", "draws"),
    ("trials",),
    ("procedure", "options"),
    ("defaults",),
    ("plots", "record"),
    ("report",),
    ("selector",),
    ("streaming",),
    ("cli",),
    ("app",),
    ("__main__",),
)
# the only ways up, each taken inside a function and for a reason
DOORS = {("selection", "report"): "a notebook asks a selection how it looks"}


# The graph


def modules(source: Path = SOURCE) -> dict[str, Path]:
    """Name and file of every module of the package."""
    found = {}
    for path in sorted((source / "knockoffs").rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: dict[str, Path], *, lazy: bool = True) -> set[str]:
    """Modules of the package that a file imports; ``lazy`` counts those imported inside functions as well.

    What is imported for type checkers alone is left out: it is not there at run time.
    """

    def walk(node: ast.AST) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and not lazy:
                continue
            if isinstance(child, ast.ImportFrom) and (child.module or "").split(".")[0] == "knockoffs":
                for alias in child.names:
                    whole = f"{child.module}.{alias.name}"
                    yield whole if whole in known else str(child.module)
            elif isinstance(child, ast.Import):
                yield from (alias.name for alias in child.names if alias.name.split(".")[0] == "knockoffs")
            yield from walk(child)

    return set(walk(ast.parse(path.read_text(encoding="utf-8"))))


def graph(source: Path = SOURCE, *, lazy: bool = True) -> dict[str, set[str]]:
    """Modules that every module imports."""
    known = modules(source)
    return {name: imports(path, known, lazy=lazy) - {name} for name, path in known.items()}


def room(module: str) -> str:
    """Room of a module: its folder, or itself at the root.

    >>> room("knockoffs.features.latent.fit"), room("knockoffs.filter"), room("knockoffs")
    ('features', 'filter', '__init__')
    """
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def rooms(source: Path = SOURCE, *, lazy: bool = True) -> dict[str, set[str]]:
    """Rooms that every room uses."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, used in graph(source, lazy=lazy).items():
        found[room(module)] |= {room(other) for other in used} - {room(module), "__init__"}
    return dict(found)


def cycle(edges: dict[str, set[str]]) -> list[str]:
    """Modules that import one another in a circle, or an empty list.

    >>> cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}})
    ['b', 'c', 'b']
    """
    done: set[str] = set()

    def visit(module: str, way: list[str]) -> list[str]:
        if module in way:
            return [*way[way.index(module) :], module]
        if module in done:
            return []
        for other in sorted(edges.get(module, ())):
            found = visit(other, [*way, module])
            if found:
                return found
        done.add(module)
        return []

    return next((found for module in sorted(edges) if (found := visit(module, []))), [])


# The public names


def stub(source: Path = SOURCE) -> str:
    """Text of ``__init__.pyi``: every public name, imported from where it lives."""
    tree = ast.parse((source / "knockoffs" / "__init__.py").read_text(encoding="utf-8"))
    assigned = next(
        node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_PUBLIC"
    )
    homes: dict[str, str] = ast.literal_eval(assigned.value)
    lines = [f"from knockoffs.{home} import {name} as {name}" for name, home in homes.items()]
    return "\n".join(
        [
            '"""The public names, for type checkers and editors. Written from ``__init__.py`` by ``make house``."""',
            "",
            *sorted(lines, key=lambda line: (line.split()[1], line.split()[3].lower())),
            "",
            "__version__: str",
            "__all__: list[str]",
            "",
        ]
    )


# The walk of one fit


PLAIN = {"feature_model": "gaussian", "estimator": "lasso"}


class Walk(NamedTuple):
    """One fit: the modules it enters, calls of each function, its deepest stack, and which room calls which."""

    modules: tuple[str, ...]
    calls: Counter[CodeType]
    depth: int
    steps: frozenset[tuple[str, str]]


def walk_of_fit(**options: object) -> Walk:
    """Follow one fit under a tracer; the fit before it fills caches and imports.

    With fewer columns the default would be tests.
    """
    import warnings

    import numpy as np

    from knockoffs import KnockoffSelector

    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 80)) + 0.5 * rng.standard_normal((200, 1))
    y = X[:, :5].sum(axis=1) + rng.standard_normal(200)
    entered: dict[str, None] = {}
    calls: Counter[CodeType] = Counter()
    steps: set[tuple[str, str]] = set()
    depth = 0

    def is_ours(frame: FrameType) -> bool:
        return str(frame.f_globals.get("__name__", "")).split(".")[0] == "knockoffs"

    def tracer(frame: FrameType, event: str, _: object) -> None:
        nonlocal depth
        if event != "call" or not is_ours(frame):
            return
        module = frame.f_globals["__name__"]
        entered.setdefault(module)
        calls[frame.f_code] += 1
        stack, above = [], frame.f_back
        while above is not None:  # through scikit-learn, joblib, ...
            stack += [above.f_globals["__name__"]] if is_ours(above) else []
            above = above.f_back
        depth = max(depth, len(stack) + 1)
        if stack:
            steps.add((room(stack[0]), room(module)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        KnockoffSelector(random_state=0, **options).fit(X, y)
        selector = KnockoffSelector(random_state=0, **options)
        sys.setprofile(tracer)
        try:
            selector.fit(X, y)
        finally:
            sys.setprofile(None)
    return Walk(tuple(entered), calls, depth, frozenset((a, b) for a, b in steps if a != b))


# Counts


def code_lines(text: str) -> int:
    r"""Lines that hold code: no docstring, no comment, not empty.

    >>> code_lines("'Words.'\n\nx = [  # why\n    1,\n]\n")
    3
    """
    words: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None:
                words |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    empty = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in empty:
            held |= set(range(token.start[0], token.end[0] + 1))
    return len(held - words)


def constants(text: str) -> list[str]:
    r"""Names of a module that stand for numbers, alone or in a tuple.

    >>> constants("N = 3\nA, B = 1e-3, 2\nNAME = 'x'\n")
    ['N', 'A', 'B']
    """
    found = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = value.elts if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) else [value]
            found += [
                name.id
                for name, one in zip(names, values, strict=False)
                if isinstance(name, ast.Name) and name.id.isupper() and _is_number(one)
            ]
    return found


def _is_number(node: ast.AST) -> bool:
    """Whether an expression holds numbers and nothing else."""
    leaves = [part for part in ast.walk(node) if isinstance(part, ast.Constant | ast.Name | ast.Call)]
    return bool(leaves) and all(isinstance(part, ast.Constant) and type(part.value) in (int, float) for part in leaves)


def _lines(folder: str) -> int:
    return sum(path.read_text(encoding="utf-8").count("\n") for path in (ROOT / folder).rglob("*.py"))


def counts() -> dict[str, float]:
    """Size of the package, of its tests and docs, and of one default fit."""
    from inspect import signature
    from statistics import median

    import knockoffs

    texts = {name: path.read_text(encoding="utf-8") for name, path in modules().items()}
    nodes = [node for text in texts.values() for node in ast.walk(ast.parse(text))]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    walk = walk_of_fit()
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    return {
        "files of source": len(texts),
        "lines of source": sum(text.count("\n") for text in texts.values()),
        "lines of code in it, without docstrings and comments": sum(map(code_lines, texts.values())),
        "lines of tests": _lines("tests"),
        "lines of paper": _lines("paper"),
        "lines of benchmarks": _lines("benchmarks"),
        "words of docs": sum(len(page.read_text(encoding="utf-8").split()) for page in pages),
        "modules that a default fit enters": len(walk.modules),
        "functions that it enters": len(walk.calls),
        "its deepest stack, in calls of the package": walk.depth,
        "constants in modules that it enters": sum(len(constants(texts[name])) for name in walk.modules),
        "constants in all": sum(len(constants(text)) for text in texts.values()),
        "parameters of the selector": len(signature(knockoffs.KnockoffSelector.__init__).parameters) - 1,
        "public names": len(knockoffs._PUBLIC),
        "lines of the median function": median((node.end_lineno or 0) - node.lineno + 1 for node in functions),
        "characters of the median line": median(
            len(line) for text in texts.values() for line in text.splitlines() if line.strip()
        ),
        "lines of the longest file": max(text.count("\n") for text in texts.values()),
    }


# The picture


WIDTH, ROOM, HEIGHT, GAP, MARGIN = 1040, 150, 38, 46, 30
SAID = {
    "filter": "W, threshold, evidence",
    "sampling": "Algorithm 1, conjugates",
    "table": "table, target, files",
    "features": "P^X, one file a family",
    "diagnostics": "the verdict",
    "response": "models of y",
    "importance": "Z, lambda paths",
    "conditional_tests": "p-values",
    "procedure": "one screen",
    "draws": "the random swap",
    "selector": "KnockoffSelector",
    "options": "every choice, once",
    "record": "selection.json",
    "selection": "the result, in words",
    "defaults": "what was not asked for",
    "plots": "figures of a selection",
    "report": "one page",
    "cli": "the command line",
}


def places() -> dict[str, tuple[float, float]]:
    """Middle of every room, the ground floor at the bottom."""
    there = set(rooms()) | {other for used in rooms().values() for other in used}
    floors = [tuple(name for name in floor if name in there and name != "__main__") for floor in FLOORS]
    floors = [floor for floor in floors if floor]
    found = {}
    for level, floor in enumerate(floors):
        y = MARGIN + HEIGHT / 2 + (len(floors) - 1 - level) * (HEIGHT + GAP)
        for i, name in enumerate(floor):
            found[name] = (WIDTH * (i + 1) / (len(floor) + 1), y)
    return found


def picture() -> str:
    """SVG of the rooms, the imports between them (grey, down only) and the walk of one fit (red, numbered)."""
    at = places()
    walk = walk_of_fit(**PLAIN)
    steps, order = walk.steps, list(dict.fromkeys(room(module) for module in walk.modules))
    height = max(y for _, y in at.values()) + HEIGHT / 2 + MARGIN + 24
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>',
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="3" orient="auto">'
        '<path d="M0 0 L7 3 L0 6 z" fill="#c44e52"/></marker></defs>',
    ]
    used = rooms()
    for name in sorted(at):
        for other in sorted(used.get(name, ())):
            if other in ("errors", "registry", "progress", "seeds") or other not in at:
                continue  # used everywhere, and nothing to see
            (x0, y0), (x1, y1) = at[name], at[other]
            if y1 <= y0:
                continue  # a door up, see DOORS
            walked_too = (name, other) in steps
            look = 'stroke="#c44e52" stroke-width="1.6" marker-end="url(#tip)"' if walked_too else 'stroke="#cccccc"'
            lines.append(f'<path d="M{x0:.0f} {y0 + HEIGHT / 2:.0f} L{x1:.0f} {y1 - HEIGHT / 2:.0f}" {look}/>')
    for name, (x, y) in sorted(at.items()):
        on = name in order
        fill, stroke = ("#fbe9e7", "#c44e52") if on else ("#f4f4f4", "#999999")
        lines.append(
            f'<rect x="{x - ROOM / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{ROOM}" height="{HEIGHT}" rx="5" '
            f'fill="{fill}" stroke="{stroke}"/>'
        )
        number = f"{order.index(name) + 1}. " if on else ""
        shift = -3 if name in SAID else 4
        lines.append(f'<text x="{x:.0f}" y="{y + shift:.0f}" text-anchor="middle" font-size="13">{number}{name}</text>')
        if name in SAID:
            small = 'text-anchor="middle" font-size="10" fill="#555"'
            lines.append(f'<text x="{x:.0f}" y="{y + 12:.0f}" {small}>{SAID[name]}</text>')
    told = (
        "Imports point down. Red: the calls of one fit (gaussian, lasso), rooms numbered as it first enters them. "
        "errors, registry, progress and seeds are used by all."
    )
    lines.append(f'<text x="{MARGIN}" y="{height - 12:.0f}" font-size="11" fill="#555">{told}</text>')
    return "\n".join([*lines, "</svg>", ""])


def main(arguments: list[str]) -> None:
    """Write the stub and the picture, and print the counts."""
    sys.path.insert(0, str(SOURCE))
    if arguments != ["--counts"]:
        (SOURCE / "knockoffs" / "__init__.pyi").write_text(stub(), encoding="utf-8")
        (ROOT / "docs" / "house.svg").write_text(picture(), encoding="utf-8")
    print("\n".join(f"{value:9,.10g}  {name}" for name, value in counts().items()))


if __name__ == "__main__":
    main(sys.argv[1:])
