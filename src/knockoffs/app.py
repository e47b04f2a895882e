"""The page in the browser: a Streamlit script, started by ``knockoffs app``.

A table is uploaded, its columns are checked, and a selection is run: the page builds a command line and runs it in a
process of its own, so its answer is that of ``knockoffs select``. Nothing is shown without the token in the address.
Text from data reaches the page through `plain`, or through widgets that show text as it is.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
import warnings
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from secrets import compare_digest

import pandas as pd
import polars as pl
import streamlit as st

from knockoffs.cli.page import FOLDER, TOKEN, Run
from knockoffs.errors import InputError, KnockoffWarning, printable
from knockoffs.options import options_of
from knockoffs.plots.style import short
from knockoffs.record.reading import read_selection
from knockoffs.report.provenance import command_words, shell_word
from knockoffs.report.summary import recorded_screen
from knockoffs.simulate.examples import EXAMPLES
from knockoffs.table.columns import KINDS, Column
from knockoffs.table.files import read_table_file, write_table_file
from knockoffs.table.table import read_table, unusable_columns
from knockoffs.table.types import Label
from knockoffs.table.writer import atomic_file

ENDINGS = ("csv", "tsv", "gz", "parquet")
OFFERED = {  # options of the page, and their labels
    "method": "Method",
    "resolution": "Resolution of tests",
    "estimator": "Model of the target",
    "feature_model": "Model of the features, P^X",
    "task": "Kind of the target",
    "n_draws": "Draws of knockoffs",
    "level": "When the level is chosen",
    "seed": "Seed",
}
NEED_FILES = ("network", "fastphase")  # feature models that need more than the table
DEFAULT = "default"
MOST_LABELS = 30  # of a column whose order can be given
REPORT_HEIGHT = 900  # pixels
POLL = 0.5  # seconds between two looks at a run


@dataclass(frozen=True)
class Upload:
    """A table of the page: its file, its columns as an editable table, and warnings about it."""

    source: str
    path: Path
    names: list[str]
    n_rows: int
    editor: pd.DataFrame
    warnings: list[str]
    target: str | None = None


@dataclass(frozen=True)
class Answer:
    """What was found, the files of the run by name, and the command line that repeats it."""

    found: str
    files: dict[str, bytes]
    command: str


@dataclass
class Desk:
    """What one session holds; `close` deletes all of it."""

    folder: Path
    upload: Upload | None = None
    run: Run | None = None
    answer: Answer | None = None
    error: str = ""

    def close(self) -> None:
        """End the run, and delete the folder."""
        if self.run is not None:
            self.run.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@st.cache_resource(scope="session", on_release=Desk.close, show_spinner=False)
def session_desk() -> Desk:
    """Desk of this session, in a folder of its own; it is closed when the session ends."""
    return Desk(Path(tempfile.mkdtemp(dir=os.environ.get(FOLDER))))


def main() -> None:
    """Show the page."""
    st.set_page_config(page_title="knockoffs", layout="wide", menu_items={})
    if not is_allowed(st.query_params.get("token", "")):
        st.error("The token in the address is missing or wrong. Use the address that knockoffs app printed.")
        st.stop()
    desk = session_desk()
    st.title("Which features matter?" if desk.answer is None else plain(desk.answer.found))
    top = st.container()
    with st.expander("Table and question", expanded=desk.answer is None and desk.run is None):
        ask(desk)
    with top:
        if desk.error:
            st.error(plain(desk.error))
        if desk.run is not None:
            show_progress(desk)
        elif desk.answer is not None:
            show_answer(desk.answer)


def is_allowed(token: str) -> bool:
    """Whether a token is that of ``knockoffs app``; without such a token nobody is allowed."""
    expected = os.environ.get(TOKEN, "")
    return bool(expected) and compare_digest(token.encode(), expected.encode())


def plain(words: str) -> str:
    r"""Markdown that shows words as they are: no link, no image, no formatting comes from data.

    >>> print(plain("![x](http://a.b) <b>"))
    \!\[x\]\(http\:\/\/a\.b\) \<b\>
    """
    return "  \n".join(re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", printable(line)) for line in words.split("\n"))


# ---- the table ------------------------------------------------------------------------------------------------------


def ask(desk: Desk) -> None:
    """Show the table and the question, and start a run when the button is pressed."""
    upload = choose_table(desk)
    if upload is None:
        return
    for words in upload.warnings:
        st.warning(plain(words))
    st.write(f"{upload.n_rows:,} rows, {len(upload.names)} columns. Correct the kinds where they are wrong.")
    edited = st.data_editor(
        upload.editor,
        key=f"columns of {upload.source}",
        hide_index=True,
        disabled=["column", "missing", "values", "why"],
        column_config={
            "use": st.column_config.CheckboxColumn("use", help="Leave out identifiers and free text."),
            "kind": st.column_config.SelectboxColumn("kind", options=list(KINDS)),
            "order": st.column_config.TextColumn(
                "order of labels", help="For the kind ordinal: lowest < ... < highest"
            ),
            "why": st.column_config.TextColumn("why", width="large"),
        },
    )
    columns = range(len(upload.names))
    shown = [short(name, 80) for name in upload.names]
    first = upload.names.index(upload.target) if upload.target in upload.names else None
    left, right = st.columns(2)
    target = left.selectbox(
        "Target: the column to be explained",
        columns,
        index=first,
        format_func=shown.__getitem__,
        key=f"target of {upload.source}",
    )
    level = right.number_input("Level: the limit on wrong picks", min_value=0.001, max_value=0.99, value=0.1, step=0.05)
    with st.expander("More options"):
        options = more_options()
        weights = st.selectbox(
            "Weights of the rows", columns, index=None, format_func=shown.__getitem__, key=f"weights of {upload.source}"
        )
        options["groups"] = "auto" if st.checkbox("Group columns that are strongly correlated") else None
    asked = st.button("Select features", type="primary", disabled=target is None or desk.run is not None)
    if asked and target is not None:
        if weights is not None:
            options["weights"] = upload.names[weights]
        parameters = {**options, **question(upload, edited, upload.names[target]), "fdr": float(level)}
        desk.answer, desk.error = None, ""
        try:
            desk.run = Run(desk.folder, command_words(parameters, upload.path.name))
        except OSError as error:
            desk.error = f"The run cannot be started on this machine: {error.strerror or error}."
        st.rerun()


def choose_table(desk: Desk) -> Upload | None:
    """Table that was uploaded or chosen; it is read once."""
    kinds = {"upload": "Upload a file", **{key: f"Example: {key}" for key in EXAMPLES}}
    key = st.radio("Table", list(kinds), format_func=kinds.__getitem__, horizontal=True)
    if key == "upload":
        sent = st.file_uploader("A csv, csv.gz, tsv or parquet file with a header", type=ENDINGS)
        if sent is None:
            return None
        source, target = sent.file_id, None
    else:
        st.write(EXAMPLES[key].about)
        sent, source, target = None, key, EXAMPLES[key].target
    if (desk.upload is None or desk.upload.source != source) and desk.run is None:
        desk.upload = None
        for old in desk.folder.iterdir():
            old.unlink()
        try:
            with st.spinner("Reading the table"):
                if sent is None:
                    path = desk.folder / EXAMPLES[key].file
                    write_table_file(EXAMPLES[key].make(), path)
                else:
                    path = desk.folder / file_name(sent.name)
                    with atomic_file(path) as file:
                        file.write(sent.getbuffer())
                desk.upload = read_upload(path, source, target)
        except InputError as error:
            st.error(plain(str(error).replace(str(desk.folder) + os.sep, "")))
        except OSError as error:
            st.error(plain(f"The table cannot be kept on this machine: {error.strerror or error}."))
    return desk.upload


def file_name(name: str) -> str:
    r"""Name of an uploaded file without a folder and without characters that mean something to a shell or a disk.

    >>> file_name("C:\\data\\my table.csv"), file_name("../..//--x\n|y.CSV"), file_name(".csv")
    ('my table.csv', 'x__y.CSV', 'table.csv')
    """
    last = re.sub(r"[^\w .,()-]", "_", name.replace("\\", "/").rsplit("/", 1)[-1]).strip().lstrip("-. ")
    return f"table.{last}" if last.lower() in (*ENDINGS, "csv.gz", "tsv.gz") else last[-100:].lstrip("-. ")


def read_upload(path: Path, source: str, target: str | None) -> Upload:
    """Table of a file, with the kinds of its columns as an editable table."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", KnockoffWarning)
        frame = read_table_file(path)
        found = recognise(frame)
    rows = [editor_row(name, frame[name].head(200).to_list(), column) for name, column in found.items()]
    said = [str(w.message) for w in caught if issubclass(w.category, KnockoffWarning)]
    return Upload(source, path, list(found), len(frame), pd.DataFrame(rows), list(dict.fromkeys(said)), target)


def recognise(frame: pl.DataFrame) -> dict[str, Column | str]:
    """Columns by name, as they were recognised; for a column that cannot be used, what is wrong with it."""
    wrong = unusable_columns(frame)
    if len(wrong) == len(frame.columns):
        raise InputError(next(iter(wrong.values())))
    columns = iter(read_table(frame.drop(wrong), argument="the table").columns)
    return {name: wrong[name] if name in wrong else next(columns) for name in frame.columns}


def editor_row(name: str, values: list[object], column: Column | str) -> dict[str, object]:
    """Row of the editable table: whether a column is used, its kind, its labels in order, some values, and why."""
    first = [value for value in values if value is not None and value == value]
    some = ", ".join(short(f"{v:g}" if isinstance(v, float) else str(v), 20) for v in list(dict.fromkeys(first))[:4])
    row = {"use": True, "column": short(name, 80), "kind": None, "order": "", "missing": None, "values": some}
    if isinstance(column, str):
        return {**row, "use": False, "why": printable(column)}
    why = column.why.replace("say kinds={{name}: 'nominal'}", "choose nominal")
    levels = [level for level in column.levels or () if isinstance(level, str) and "<" not in level]
    if 2 < len(levels) <= MOST_LABELS and len(levels) == len(column.levels or ()):
        row["order"] = " < ".join(levels)
    return {**row, "kind": column.kind, "missing": column.n_missing, "why": short(why, 160)}


def question(upload: Upload, edited: pd.DataFrame, target: str) -> dict[str, object]:
    """Parameters of the table: its target, the columns that are left out, and the kinds that were corrected."""
    drop: list[str] = []
    kinds: dict[str, str | list[Label]] = {}
    for name, old, new in zip(upload.names, upload.editor.to_dict("records"), edited.to_dict("records"), strict=True):
        if name == target:
            continue
        if not new["use"]:
            drop.append(name)
        elif new["kind"] == "ordinal" and new["order"] and (new["kind"], new["order"]) != (old["kind"], old["order"]):
            kinds[name] = [label.strip() for label in new["order"].split("<")]
        elif new["kind"] != old["kind"] and new["kind"] is not None:
            kinds[name] = new["kind"]
    return {"target": target, "drop": drop, "kinds": kinds or None}


def more_options() -> dict[str, object]:
    """Options of the command line that the page offers, as the user sets them."""
    listed = options_of("select")
    values: dict[str, object] = {}
    for name, label in OFFERED.items():
        option, about = listed[name], plain(listed[name].help)
        if option.choices is not None:
            known = (name for name in option.choices() if name not in NEED_FILES)
            choices = list(dict.fromkeys([str(option.default or DEFAULT), *known]))
            chosen = st.selectbox(label, choices, help=about)
            values[name] = None if chosen == DEFAULT else chosen
        else:
            least, default = option.least or 0, int(str(option.default))
            number = st.number_input(label, least, option.most, value=default, step=1, help=about)
            values[name] = int(number)
    return values


# ---- the run and its answer -----------------------------------------------------------------------------------------


@st.fragment(run_every=POLL)
def show_progress(desk: Desk) -> None:
    """Show what the run is doing, and its answer when it has ended."""
    run = desk.run
    if run is None:
        return
    if not run.running:
        finish(desk, run)
        st.rerun()
    stage, done, total = run.stage()
    with st.status(f"Running, {time.time() - run.started:.0f} s", state="running", expanded=True):
        st.text(stage)
        if total:
            st.progress(min((done or 0) / total, 1.0), text=f"{done or 0} of {total}")
    if st.button("Cancel"):
        run.cancel()
        finish(desk, run)
        st.rerun()


def finish(desk: Desk, run: Run) -> None:
    """Keep the answer of a run that has ended, or what went wrong; its files are deleted."""
    files = run.files()
    if files:
        record = read_selection(run.folder / "answer" / "selection.json")
        screen = recorded_screen(record.first_screen or {})
        found = f"{screen.found} for {short(str(record.parameters['target']), 40)}"
        desk.answer = Answer(found, files, " ".join(map(shell_word, run.words)))
    else:
        desk.error = run.error()
    run.close()
    desk.run = None


def show_answer(answer: Answer) -> None:
    """Show the report, which begins with the first screen; then the files and the command."""
    report = b64encode(answer.files["report.html"]).decode()
    st.iframe(f"data:text/html;base64,{report}", height=REPORT_HEIGHT)  # a data address: no access to this page
    for place, (name, content) in zip(st.columns(len(answer.files)), answer.files.items(), strict=True):
        place.download_button(name, content, name, on_click="ignore", width="stretch")
    st.write("The same answer on the command line, in the folder of the table:")
    st.code(answer.command, language=None, wrap_lines=True)


if __name__ == "__main__":  # Streamlit executes this file on every change; the module is imported once
    import knockoffs.app

    knockoffs.app.main()
