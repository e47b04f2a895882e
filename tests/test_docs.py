"""README.md and docs/ do what they say: their code runs, it prints what they show, and their links lead somewhere.

On a page, ```python blocks are run in order in one namespace, in an empty folder. A ```text block right after one is
what it printed; warnings are shown as ``KnockoffWarning: ...``. A ```console block holds commands after ``$`` and what
they print. Blocks that begin with ``# not run``, or with ``# needs NAME`` if NAME is not installed, are left out. Words
are compared exactly and numbers to 1 %, or to one unit of the last digit shown after a point. A comment before an
output, ``<!-- numbers: within 0.3 -->``, allows more where machines differ, and ``<!-- numbers: any -->`` anything.
``python tests/test_docs.py docs/quickstart.md`` rewrites the outputs of a page.
"""

import contextlib
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
import textwrap
import warnings
from importlib.metadata import version
from pathlib import Path
from unittest import mock

import pytest

from knockoffs import KnockoffSelector

ROOT = Path(__file__).resolve().parents[1]
ALL_PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "add").glob("*.md"))]
BUILT = ("api/index.md",)  # pages that the site has and the folder has not
MEASURED = [ROOT / "paper" / "README.md", *sorted((ROOT / "benchmarks").glob("*.md"))]  # written by programs
BLOCK = re.compile(r"^```(python|text|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!-- numbers: (?:within (\S+)|any) -->\s*\Z")
NUMBER = re.compile(r"-?(?:\d+(?:,\d{3})+|\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?")
EXTRAS = {"torch", "lightgbm", "bed_reader", "lifelines"}  # pages that import what is not installed are left out
WITHIN = 0.01  # relative difference of numbers that passes
WIDTH = 110  # of the outputs, which are wrapped as a terminal does


def run_page(page, folder, *, lean=False):
    """Run a page in a folder; return its text with the outputs that its blocks gave, and what differed.

    Lean: after the last block that speaks of the verdict, fits that do not ask for it have none. It is half of their
    work, and no part of their answer.
    """
    text, namespace = page.read_text(encoding="utf-8"), {"__name__": "__main__"}
    spoken_of = max((match.start() for match in BLOCK.finditer(text) if "erdict" in match[2]), default=-1)
    parts, at, printed, stale = [], 0, None, []
    with contextlib.chdir(folder):
        for match in BLOCK.finditer(text):
            kind, body = match.groups()
            parts.append(text[at : match.start()])
            at = match.end()
            comment = COMMENT.search(parts[-1])
            within = WITHIN if comment is None else float(comment.group(1) or "inf")
            follows = printed is not None and not parts[-1].removesuffix(comment.group() if comment else "").strip()
            if kind == "python" and is_run(body):
                where = f"{page.name}, block after {text[: match.start()].count(chr(10))}"
                verdict = match.start() <= spoken_of or not lean
                with mock.patch.dict(KnockoffSelector.__init__.__kwdefaults__, verdict=verdict):
                    printed = run_python(body, namespace, where)
                shown = body
            elif kind == "console" and is_run(body):
                printed, shown = None, run_console(body)
            elif kind == "text" and follows:
                shown, printed = wrapped(printed), None
            else:
                printed, shown = None, body
            if not alike(body, shown, within):
                stale.append(f"the page says:\n{body}\nit is now:\n{shown}")
            parts.append(f"```{kind}\n{shown}```")
    return "".join([*parts, text[at:]]), stale


def is_run(body):
    needed = re.match(r"# needs (\w+)", body)
    return not body.startswith("# not run") and (needed is None or importlib.util.find_spec(needed[1]) is not None)


def run_python(body, namespace, where):
    with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings():
        show_warnings()
        exec(compile(body, where, "exec"), namespace)
    return out.getvalue()


def show_warnings():
    from knockoffs.errors import KnockoffWarning

    warnings.simplefilter("error")
    warnings.simplefilter("always", KnockoffWarning)
    warnings.showwarning = lambda message, kind, *rest: print(f"{kind.__name__}: {message}")


def run_console(body):
    lines, status = [], 0
    for line in body.splitlines():
        if not line.startswith("$ "):
            continue
        lines.append(line + "\n")
        printed, status = run_command(line[2:], status)
        lines.append(wrapped(printed))
    return "".join(lines)


def run_command(command, status):
    if command == "echo $?":
        return f"{status}\n", 0
    command, _, last = command.partition(" | tail -n ")
    program, *arguments = shlex.split(command)
    if program != "knockoffs":
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
        return done.stdout, 0
    from knockoffs.cli.app import main

    out = io.StringIO()
    err = io.StringIO() if last else out  # a pipe leaves standard error on the terminal
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
        main(arguments)
    if last:
        return err.getvalue() + "".join(out.getvalue().splitlines(keepends=True)[-int(last) :]), 0
    return out.getvalue(), end.value.code


def wrapped(printed):
    lines = (line.rstrip() for line in printed.splitlines())
    cut = (textwrap.fill(line, WIDTH, break_on_hyphens=False, break_long_words=False) if line else "" for line in lines)
    return "".join(line + "\n" for line in cut)


def alike(old, new, within=WITHIN):
    """Whether two outputs have the same words, and numbers that differ by no more than is allowed."""
    old, new = (re.sub(r"\b[0-9a-f]{32,}\b", "(checksum)", text) for text in (old, new))
    old, new = (re.sub("[▏▎▍▌▋▊▉█]+", "(bar)", text) for text in (old, new))  # of numbers that may differ a little
    if words(old) != words(new):
        return False
    if within == float("inf"):
        return True
    pairs = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
    return all(abs(value(a) - value(b)) <= max(within * abs(value(a)), last_digit(a), last_digit(b)) for a, b in pairs)


def words(text):
    """Words of an output with # for each number, without its spaces; a minus stays with its number."""
    return re.sub(r"\s*#", " #", NUMBER.sub("#", text)).split()


def value(number):
    return float(number.replace(",", ""))


def last_digit(number):
    """One unit of the last digit after the point (and a bit for rounding); whole numbers have none to spare."""
    mantissa, _, exponent = number.partition("e")
    digits = mantissa.partition(".")[2]
    return 1.001 * 10.0 ** (int(exponent or 0) - len(digits)) if digits or exponent else 0.0


def pinned(package):
    """Version that constraints.txt asks for."""
    return re.search(rf"^{package}==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE).group(1)


def needs_data(page):
    text = page.read_text(encoding="utf-8")
    return "load_hiv" in text or "KNOCKOFFS_DATA" in text


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_a_page_runs_and_prints_what_it_shows(page, tmp_path, request, monkeypatch):
    text = page.read_text(encoding="utf-8")
    for extra in EXTRAS & set(re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE)):
        pytest.importorskip(extra)
    if "response.neural import" in text:
        pytest.importorskip("torch")
    if needs_data(page):
        monkeypatch.setenv("KNOCKOFFS_DATA", str(request.getfixturevalue("data_folder")))
    stale = run_page(page, tmp_path, lean=True)[1]
    if stale and any(version(package) != pinned(package) for package in ("numpy", "scipy", "scikit-learn")):
        pytest.skip("it runs; its numbers, and the order they give, are those of other versions")
    assert not stale, f"run `python tests/test_docs.py docs/{page.name}` and read the page again\n" + "\n".join(stale)


@pytest.mark.parametrize("page", [*ALL_PAGES, *MEASURED], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target) or target in BUILT:
            continue
        path, _, heading = target.partition("#")
        file = (page.parent / path) if path else page
        assert file.exists(), f"{page.name} links to {target}, which is not there"
        if heading:
            assert heading in anchors(file), f"{page.name} links to {target}; {file.name} has {sorted(anchors(file))}"


def anchors(page):
    """Anchors that a code host gives the headings of a page."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    return {heading.strip().replace(" ", "-") for heading in plain}


def test_every_page_is_on_the_map():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in ALL_PAGES[1:]:
        name = page.relative_to(ROOT / "docs").as_posix()
        assert name == "index.md" or f"({name})" in index, f"docs/index.md does not mention {name}"


@pytest.mark.parametrize("page", ALL_PAGES[1:], ids=lambda page: page.name)
def test_a_page_begins_with_the_question_it_answers(page):
    title, blank, first = page.read_text(encoding="utf-8").split("\n")[:3]
    assert title.startswith("# ") and not blank and re.match(r"\*[^*]+\?\*", first), first


def test_the_words_of_the_readme_and_of_the_docs_have_a_limit():
    counts = {page.name: len(page.read_text(encoding="utf-8").split()) for page in ALL_PAGES}
    assert counts["README.md"] <= 900 and sum(counts.values()) <= 40_000


def test_the_site_writes_formulas_as_html():
    spec = importlib.util.spec_from_file_location("conf", ROOT / "docs" / "conf.py")
    conf = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conf)
    page = "# $P_X$\n\n$P_X$, `$P_X$`\n\n```python\n$P_X$\n```\n\n[$P_X$](a.md)\n"
    formula = "<i>P<sub>X</sub></i>"
    assert conf.as_formulas(page) == page.replace("\n\n$P_X$", f"\n\n{formula}").replace("[$P_X$]", f"[{formula}]")
    assert (
        conf.as_formulas(r"$Q(\tilde u_j \mid S^{-1})$")
        == "<i>Q(u\N{COMBINING TILDE}<sub>j</sub> &#124; S<sup>-1</sup>)</i>"
    )


INCLUDE = re.compile(r"^```\{literalinclude\} (\S+)\n((?::.*\n)*)```$", re.MULTILINE)


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_source_that_a_page_includes_is_there(page):
    for file, options in INCLUDE.findall(page.read_text(encoding="utf-8")):
        source = (page.parent / file).read_text(encoding="utf-8")
        wanted = dict(re.findall(r"^:([\w-]+): (.*)$", options, re.MULTILINE))
        assert wanted.keys() <= {"language", "pyobject", "start-at", "end-before"}, options
        if "pyobject" in wanted:
            outer, _, inner = wanted["pyobject"].partition(".")
            assert re.search(rf"^(class|def) {outer}\b", source, re.MULTILINE), f"{file}: {wanted}"
            assert not inner or re.search(rf"^    def {inner}\b", source, re.MULTILINE), f"{file}: {wanted}"
        for line in (wanted.get("start-at"), wanted.get("end-before")):
            assert line is None or source.count(line) == 1, f"{file} has {line!r} {source.count(line)} times"


def test_tests_that_pages_name_are_there():
    for page in ALL_PAGES:
        for file, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page.read_text(encoding="utf-8")):
            assert (ROOT / file).exists(), f"{page.name} names {file}, which is not there"
            assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8"), f"{page.name} names {file}::{name}"


# ---- the page of options ---------------------------------------------------------------------------------------

OPTIONS_TABLE = re.compile(r"(?<=<!-- options -->\n).*?(?=<!-- end of options -->)", re.DOTALL)
COMMANDS = ("select", "test", "sample", "check", "ghost")


def options_table():
    """Table of all options, as docs/options.md has it."""
    from knockoffs.options import ImportanceOptions, listed

    lines = ["| selector | command line | default | what it says | commands |", "|---|---|---|---|---|"]
    for option in (*listed(), *listed(ImportanceOptions)):
        key = option in listed(ImportanceOptions)
        parameter = f"`{option.called}`" if "selector" in option.faces else ""
        commands = "" if option.faces == ("selector",) else f"`{option.written}`"
        if key:
            parameter = f'`importance_options={{"{option.name}": ...}}`'
            commands = f"`--importance-option {option.written[2:]}=...`"
        default = f"`{option.default}`" if option.default not in (None, (), "") else ""
        has = ", ".join(command for command in COMMANDS if command in option.faces)
        says = re.sub(r"\s*\[default: (.*?)\]", r" (\1 if left out)", option.help).replace("|", "\\|")
        lines.append(f"| {parameter} | {commands} | {default} | {says} | {has} |")
    return "\n".join(lines) + "\n"


def test_the_page_of_options_is_the_list_of_options():
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert OPTIONS_TABLE.findall(page) == [options_table()], "run `python tests/test_docs.py docs/options.md`"


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("```python\nprint('three')\n```\n```text\nfour\n```\n", "three"),
        ("```console\n$ echo three\nfour\n```\n", "three"),
        ("```python\nprint(3.1)\n```\n\n```text\n3.3\n```\n", "3.1"),
        ("```python\nprint(3.1)\n```\n\n<!-- numbers: within 0.05 -->\n```text\n3.3\n```\n", "3.1"),
    ],
)
def test_an_output_that_went_stale_is_seen(page, fault, tmp_path):
    file = tmp_path / "page.md"
    file.write_text(page)
    fresh, stale = run_page(file, tmp_path)
    assert len(stale) == 1
    assert fault in stale[0]
    file.write_text(fresh)
    assert run_page(file, tmp_path) == (fresh, [])


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("W 0.234", "W 0.233", True),  # a unit of the last digit
        ("W 0.234", "W 0.231", False),
        ("p < 1e-16", "p < 2e-16", True),
        ("1,048,576 cells", "1,050,000 cells", True),  # 1 %
        ("34 of 201", "35 of 201", False),  # whole numbers have no last digit to spare
        ("34 of 201", "34 out of 201", False),
        ("[-0.5 1.]", "[0.5 1.]", False),
        ("a -0.001", "a  0.", True),
        ("sha256 " + 64 * "a", "sha256 " + 64 * "b", True),
    ],
)
def test_what_counts_as_the_same_output(old, new, same):
    assert alike(old, new) == same


if __name__ == "__main__":
    import tempfile

    os.environ.setdefault("KNOCKOFFS_DATA", str(ROOT.parent / "shared" / "data"))
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as empty:
            fresh_text, changes = run_page(Path(name).resolve(), empty)
        if Path(name).name == "options.md":
            fresh_text = OPTIONS_TABLE.sub(lambda match: options_table(), fresh_text)
        Path(name).write_text(fresh_text, encoding="utf-8")
        print(f"{name}: {len(changes)} outputs changed")
