"""The documentation site, which `make docs` builds from these pages, the docstrings and the examples; no network."""

import os
import re
import sys
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")
DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT / "src"))  # the pages are about these sources, whatever else is installed

project = "knockoffs"
author = "The knockoffs developers"
project_copyright = "2026, the knockoffs developers; BSD 3-Clause"
SOURCE = re.search(r'^Source = "(.*)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)[1]
release = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)[1]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
default_role = "py:obj"  # `name` in a docstring is a link where there is such a name
suppress_warnings = ["ref.python"]  # words of a type, "(n, n_columns)", that are also names of attributes

# ---- pages: the same files that a code host shows ----------------------------------------------------------------

myst_heading_anchors = 4  # [...](page.md#heading), as code hosts have them
myst_links_external_new_tab = False
INCLUDED = re.compile(r"```\{include\} \.\./\.\./(\w+\.md)\n```\n")  # project/*.md are files of the root
MOVED = (  # links to files outside of docs/, and where the site has them
    (r"\]\((?:\.\./)+examples/(plot_\w+)\.py\)", r"](/gallery/\1.rst)"),
    (r"\]\((?:\.\./)+examples/\)", "](/gallery/index.rst)"),
    (r"\]\((?:\.\./)*(CONTRIBUTING|SECURITY|CHANGELOG)\.md", lambda match: f"](/project/{match[1].lower()}.md"),
    (r"\]\((?:\.\./)*(paper|benchmarks)/", rf"]({SOURCE}/blob/main/\1/"),
    (r"\]\(docs/", "](/"),
)


def prepare_page(app, docname, source):
    """Make a page of the site of one that a code host shows: files of the root come in, and links find them."""
    text = INCLUDED.sub(lambda match: (ROOT / match[1]).read_text(encoding="utf-8"), source[0])
    for pattern, place in MOVED:
        text = re.sub(pattern, place, text)
    text = as_formulas(text)
    source[0] = text + contents(text) if docname == "index" else text


CODE_OR_HEADING = re.compile(r"(^```.*?^```$|^#+ [^\n]*$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


FORMULA = re.compile(r"\$([^$\n]+)\$")


def as_formulas(text):
    """Page with its formulas as HTML, which needs no script and no font; not those in code and in headings.

    >>> as_formulas("$P_X$, `$P_X$`")
    '<i>P<sub>X</sub></i>, `$P_X$`'
    """
    parts = CODE_OR_HEADING.split(text)  # every second part is code or a heading
    return "".join(part if k % 2 else FORMULA.sub(as_html, part) for k, part in enumerate(parts))


def as_html(match):
    """HTML of a simple formula: indices, powers, a tilde and the bar of a condition."""
    html = match[1].replace(r"\mid", "&#124;").replace(r"\log", "log")  # a plain bar would end the cell of a table
    html = re.sub(r"\\tilde (\w)", "\\1\N{COMBINING TILDE}", html)
    html = re.sub(r"_(\w)|_\{([^}]+)\}", r"<sub>\1\2</sub>", html)
    html = re.sub(r"\^(\w)|\^\{([^}]+)\}", r"<sup>\1\2</sup>", html)
    return f"<i>{html}</i>"


def contents(index):
    """Table of contents of the site: the sections of the map are its parts, the pages in their lists its entries."""
    parts, seen = [], set()
    for title, body in re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", index, re.MULTILINE | re.DOTALL):
        listed = "".join(re.findall(r"^(?:- |  \[).*", body, re.MULTILINE))  # not links in sentences and tables
        pages = [page for page in re.findall(r"\]\(([\w/.]+)\.(?:md|rst)\)", listed) if page not in seen]
        if title == "Examples":
            pages = ["gallery/index"]
        seen.update(pages)
        if pages:
            entries = "".join(f"{page}\n" for page in dict.fromkeys(pages))
            parts.append(f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{entries}```\n")
    return "".join(parts)


# ---- the public names, from the docstrings -----------------------------------------------------------------------

autodoc_typehints = "none"  # the sections of a docstring say them, with shapes
autodoc_member_order = "bysource"
autosummary_generate = True
autosummary_imported_members = True
templates_path = ["_templates"]
napoleon_google_docstring = False
napoleon_use_param = napoleon_use_rtype = False  # types are words: "array, shape (n, d)"
napoleon_use_ivar = True
toc_object_entries_show_parents = "hide"
API = """# Public names

All names are imported from `knockoffs`. They are listed in the order of the procedure.
"""


def write_names():
    """Write the page of public names: one section for each part of the list in ``knockoffs/__init__.py``."""
    listed = (ROOT / "src" / "knockoffs" / "__init__.py").read_text(encoding="utf-8")
    parts = re.findall(r"^    # (.*)\n((?:    \".*\n)+)", listed, re.MULTILINE)
    text = [API]
    for title, lines in parts:
        names = re.findall(r'^    "(\w+)":', lines, re.MULTILINE)
        body = "\n".join(f"knockoffs.{name}" for name in names)
        title = title[0].upper() + title[1:]
        text.append(f"## {title}\n\n```{{eval-rst}}\n.. autosummary::\n   :toctree: names\n   :nosignatures:\n")
        text.append("".join(f"   {line}\n" for line in ["", *body.splitlines()]) + "```\n")
    place = DOCS / "api" / "index.md"
    place.parent.mkdir(exist_ok=True)
    if not place.exists() or place.read_text(encoding="utf-8") != "\n".join(text):
        place.write_text("\n".join(text), encoding="utf-8")


write_names()


def plain_words(app, what, name, thing, options, lines):
    """Docstrings are plain text with formulas: |W|, X^* and W_ are no markup. A registry lists its names."""
    if what == "data" and isinstance(thing, dict):
        lines[:] = ["A dictionary with an entry for each of " + ", ".join(f"``{key}``" for key in thing) + ".", ""]
        return
    for number, line in enumerate(lines):
        if re.match(r"\s*(>>>|\.\.\. |\*+\w+\s*(:|$))", line):  # an example, or a parameter **options
            continue
        parts = re.split(r"(``.*?``|`.*?`)", line)
        parts[::2] = (re.sub(r"([|*]|(?<=\w)_(?!\w))", r"\\\1", part) for part in parts[::2])
        parts[::2] = (part.replace("P^X", r"P\ :sub:`X`\ ") for part in parts[::2])
        lines[number] = "".join(parts)


def skip_member(app, what, name, thing, skip, options):
    """Leave out what scikit-learn adds to every estimator."""
    theirs = str(getattr(thing, "__module__", "")).startswith("sklearn")
    return True if theirs or (name.startswith("set_") and name.endswith("_request")) else None


# ---- the gallery: every example is run, with its pictures --------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "reset_modules": ("matplotlib",),
    "min_reported_time": 1e9,
    "write_computation_times": False,
}

# ---- how it looks ------------------------------------------------------------------------------------------------

html_theme = "furo"
html_title = f"knockoffs {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
pygments_style = "default"
pygments_dark_style = "monokai"
html_show_sourcelink = False
html_copy_source = False


# what the theme and the gallery leave out, and a screen reader or a keyboard needs
NEEDED = (
    (r'<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
    (r"<pre>", '<pre tabindex="0">'),  # wide ones scroll
    (
        r'<a class="reference internal" href="(plot_\w+\.html)">(<span class="doc">)(.*?)</span>',
        r'<a class="reference internal" href="\1" aria-label="\3">\2\3</span>',
    ),
)


def complete_page(app, pagename, templatename, context, doctree):
    """Add what is needed to read a page without seeing it, or without a mouse."""
    for part in ("body", "furo_navigation_tree"):
        for pattern, words in NEEDED:
            if context.get(part):
                context[part] = re.sub(pattern, words, context[part])


def setup(app):
    """Prepare pages and docstrings before they are read."""
    app.connect("source-read", prepare_page)
    app.connect("autodoc-process-docstring", plain_words, priority=400)  # before napoleon
    app.connect("autodoc-skip-member", skip_member)
    app.connect("html-page-context", complete_page, priority=900)  # after the theme
