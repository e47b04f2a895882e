"""The report and the answer in a notebook: html from the templates.

Every text that comes from data is made printable and escaped as it is written into a template. The report has no
script, and its policy allows the one style that it holds, by its SHA-256.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from knockoffs.errors import count, printable
from knockoffs.plots.style import short
from knockoffs.report.context import answer_context, report_context
from knockoffs.report.facts import Facts
from knockoffs.report.formatting import number
from knockoffs.selection import Selection

if TYPE_CHECKING:
    from jinja2 import Environment

MARK = "<!-- report of knockoffs -->"  # by which a file is known as ours


def page(facts: Facts) -> str:
    """Html of a report."""
    from markupsafe import Markup

    style = files("knockoffs.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    template = environment().get_template("report.html")
    return template.render(**report_context(facts), mark=Markup(MARK), style=Markup(style), digest=digest)


def answer_html(selection: Selection, target: str | None = None) -> str:
    """Html of a selection for a notebook: the first screen."""
    return environment().get_template("answer.html").render(answer=answer_context(Facts(selection, called=target)))


@cache
def environment() -> Environment:
    """Environment of the templates, in which everything is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("knockoffs.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if not isinstance(value, str) or hasattr(value, "__html__") else printable(value),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"count": count, "number": number, "short": short, "as_words": as_words}
    return made


def as_words(note: str) -> str:
    """Note of what was chosen, without the name of its option.

    >>> as_words("rows='in_sample', the default for Lasso")
    'in sample, the default for Lasso'
    """
    return re.sub(r"^\w+='([^']*)'", lambda found: found[1].replace("_", " "), note.rstrip("."))
