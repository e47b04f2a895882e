"""The desk: tables that were sent, jobs that look at them and select from them, and one folder for all of it."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import secrets
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knockoffs.app.estimate import guess_steps
from knockoffs.app.examples import EXAMPLES, examples
from knockoffs.app.jobs import About, Job, Jobs
from knockoffs.app.look import Told, look_at_example, look_at_file
from knockoffs.errors import InputError, unknown_option
from knockoffs.features import FAMILIES
from knockoffs.options import Option, options_of
from knockoffs.record.reading import PARAMETERS
from knockoffs.registry import key_of
from knockoffs.report.formatting import short
from knockoffs.report.provenance import command_of, python_of_file
from knockoffs.table.columns import KINDS
from knockoffs.table.files import FORMATS, file_format
from knockoffs.table.types import Json

OFFERED = {  # in the page, and what they are called there
    "method": "Method",
    "n_draws": "Draws of knockoffs",
    "level": "When the level is chosen",
    "task": "What the target is",
    "feature_model": "Model of the features, P^X",
    "estimator": "Model of the target",
    "seed": "Seed",
}
NEED_FILES = ("network", "fastphase")  # families that a table alone does not fit
WITHOUT_FILES = "auto takes any table; the others are for tables of their kind, which the documentation tells."
MOST_TABLES = 10
LONGEST_NAME = 100
FILES = {
    "report.html": "text/html; charset=utf-8",
    "selection.json": "application/json",
    "selection.csv": "text/csv; charset=utf-8",
}
Record = dict[str, Any]  # options as a selection.json holds them
Select = Callable[[Path, str, Record], dict[str, Json]]


@dataclass(frozen=True)
class Sent:
    """A table that was sent: its file, and the job that looks at it."""

    name: str
    path: Path
    look: Job
    target: str | None = None  # of an example


class Desk:
    """Tables and jobs.

    Record
    ----------
    folder : Path
        Everything is written into it, and it is removed by whoever made it.
    select : callable
        ``select(folder, table, parameters)`` selects and writes the files into the folder; by its name importable.
    at_once : int
        Selections that run at a time.
    keep : Path, optional
        Folder in which the files of every selection are kept.
    """

    def __init__(self, folder: Path, select: Select, *, parallel_map: int = 2, keep: Path | None = None) -> None:
        self.folder, self.select, self.keep = folder, select, keep
        self.looks = Jobs(folder / "looks", parallel_map=2)
        self.selections = Jobs(folder / "selections", parallel_map=parallel_map, when_done=self._keep_files)
        self.tables: dict[str, Sent] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """End all jobs."""
        self.looks.close()
        self.selections.close()

    # ---- tables -------------------------------------------------------------------------------------------------

    def place(self, name: str) -> Path:
        """Place for a file that is being sent, in a folder of its own, under a name that is no more than a name."""
        kept = file_name(name)
        file_format(Path(kept))
        folder = self.folder / "tables" / secrets.token_hex(8)
        folder.mkdir(parents=True)
        return folder / kept

    def take(self, path: Path) -> str:
        """Look at a file that has come; gives the name by which the table is asked for."""
        look = self.looks.add(look_at_file, str(path), about={"file": path.name})
        return self._keep_table(Sent(path.name, path, look))

    def take_example(self, key: str) -> str:
        """Make a table to try, and look at it."""
        if key not in [example["key"] for example in examples()]:
            raise unknown_option("example", key, EXAMPLES)
        path = self.place(EXAMPLES[key].file)
        look = self.looks.add(look_at_example, str(path), key, about={"file": path.name})
        return self._keep_table(Sent(path.name, path, look, EXAMPLES[key].target))

    def _keep_table(self, table: Sent) -> str:
        with self._lock:
            self.tables[table.path.parent.name] = table
            busy = {job.about["table"] for job in self.selections.all() if job.state in ("waiting", "running")}
            idle = [name for name in self.tables if name not in busy]
            for name in idle[: max(len(self.tables) - MOST_TABLES, 0)]:
                shutil.rmtree(self.tables.pop(name).path.parent, ignore_errors=True)
        return table.path.parent.name

    def table(self, name: str) -> dict[str, object]:
        """Tell what is known of a table, or how far the look at it is."""
        sent = self.tables[name]
        target = None
        if sent.look.state == "done":
            names = [column["name"] for column in sent.look.result["columns"]]
            target = names.index(sent.target) if sent.target in names else None
        return {"id": name, "look": sent.look.view(), "table": sent.look.result, "target": target}

    # ---- selections ---------------------------------------------------------------------------------------------

    def run(self, asked: Mapping[str, Json]) -> str:
        """Start a selection as the page asks for it; gives the name of the job."""
        sent = self.tables.get(str(asked.get("table")))
        if sent is None or sent.look.state != "done":
            raise InputError("this table is not here any more: drop it again.")
        columns, groups = sent.look.result["columns"], asked.get("groups")
        parameters = parameters_of(asked, columns)
        if isinstance(groups, dict) and groups:
            parameters["groups"] = write_groups(groups, columns, sent.path.parent)
        about: About = {
            "table": sent.path.parent.name,
            "file": sent.name,
            "target": short(parameters["target"]),
            "fdr": parameters["fdr"],
            "groups": None if parameters["groups"] == "auto" else parameters["groups"],
            "asked": what_costs(parameters),
            "guess": self._guess(sent, parameters),
            "command": command_of(parameters, sent.name),
            "python": python_of_file(parameters, sent.name),
        }
        return self.selections.add(self.select, str(sent.path), parameters, about=about).name

    def _guess(self, sent: Sent, parameters: Record) -> dict[str, float]:
        """Seconds of each step: as they were when the same was asked before, else by the size of the table."""
        asked = what_costs(parameters)
        done = [job for job in self.selections.all() if job.state == "done"]
        for job in reversed(done):
            if job.about["table"] == sent.path.parent.name and job.about["asked"] == asked:
                return dict(job.took)
        look = sent.look.result
        guessed = guess_steps(look["n_rows"], len(look["columns"]) - len(parameters["drop"]), parameters)
        return {step: round(seconds, 2) for step, seconds in guessed.items()}

    def job(self, name: str) -> dict[str, object]:
        """Tell how far a selection is, and what it has found."""
        job = self.selections.get(name)
        if job is None:
            raise KeyError(name)
        return {**job.view(), "result": job.result}

    def _keep_files(self, job: Job) -> None:
        if self.keep is not None:
            kept = self.keep / f"{job.about['file']}-{job.name}"
            kept.mkdir(parents=True)
            for name in FILES:
                shutil.copyfile(job.folder / name, kept / name)


def what_costs(parameters: Record) -> str:
    """Sign for the parameters on which the time of a run depends."""
    kept = {name: value for name, value in parameters.items() if name not in ("seed", "fdr", "level")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]


def write_groups(groups: Mapping[str, Json], columns: list[Told], folder: Path) -> str:
    """Write groups, a name by the number of a column, as a file of the table's folder; gives its name."""
    pairs = []
    for j, group in groups.items():
        column = columns[_index(j, columns, "groups")]
        if not isinstance(group, str) or not group.strip() or len(group) > LONGEST_NAME or not group.isprintable():
            raise InputError(f"column {column['shown']!r}: a group has a name of at most {LONGEST_NAME} characters.")
        pairs.append((column["name"], group.strip()))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("column", "group"), *pairs])
    content = text.getvalue().encode("utf-8", "surrogatepass")
    name = f"groups-{hashlib.sha256(content).hexdigest()[:8]}.csv"  # two runs may have groups of their own
    (folder / name).write_bytes(content)
    return name


def file_name(name: str) -> str:
    r"""Last part of a name, without what a file system or a terminal takes for something else.

    >>> file_name("C:\\data\\my table.csv"), file_name("../..//--x\n|y.CSV"), file_name(".csv")
    ('my table.csv', 'x__y.CSV', 'table.csv')
    """
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    last = "".join(c if c.isprintable() and c not in '<>:"|?*' else "_" for c in last).strip().lstrip("-. ")
    if last.lower() in [ending[1:] for ending in FORMATS]:  # an ending and no name
        last = f"table.{last}"
    ending = next((end for end in sorted(FORMATS, key=len, reverse=True) if last.lower().endswith(end)), "")
    stem = last[: len(last) - len(ending)]
    while len(stem.encode()) > LONGEST_NAME:  # file systems count bytes
        stem = stem[:-1]
    return stem + last[len(last) - len(ending) :] if ending else last[:LONGEST_NAME]


def parameters_of(asked: Mapping[str, Json], columns: list[Told]) -> Record:
    """Record of a selection, every one of them: those of the page, in which columns go by number, and defaults."""
    recorded = {n: option for n, option in options_of("select").items() if option.recorded}
    level, weights = asked.get("fdr"), asked.get("weights")
    parameters: Record = {name: option.default for name, option in recorded.items()}
    parameters["target"] = columns[_index(asked.get("target"), columns, "target")]["name"]
    parameters["fdr"] = level
    dropped, kinds = asked.get("drop") or [], asked.get("kinds") or {}
    if not isinstance(dropped, list) or not isinstance(kinds, dict):
        raise InputError("drop is a list of columns, and kinds a kind by column.")
    parameters["drop"] = [columns[_index(j, columns, "drop")]["name"] for j in dropped]
    if weights is not None:
        parameters["weights"] = columns[_index(weights, columns, "weights")]["name"]
        if parameters["weights"] == parameters["target"]:
            raise InputError("the weights are the target: choose another column, or none.")
    if asked.get("groups") == "auto":
        parameters["groups"] = "auto"
    elif not isinstance(asked.get("groups"), dict | None):
        raise InputError("groups are found by themselves, or a name by column.")
    given = {j: columns[_index(j, columns, "kinds")] for j in kinds}
    parameters["kinds"] = {column["name"]: _kind(kinds[j], column) for j, column in given.items()} or None
    options = asked.get("options") or {}
    for name, value in options.items() if isinstance(options, dict) else ():
        if name not in OFFERED:
            raise unknown_option("option", name, OFFERED)
        parameters[name] = value
    if isinstance(level, bool) or not isinstance(level, int | float):
        raise InputError("the level is a number between 0 and 1.")
    for name in ("fdr", *OFFERED):
        known = choices(name, recorded[name])
        value = parameters[name]
        if not PARAMETERS[name](value) or (known and value is not None and key_of(str(value)) not in known):
            raise InputError(f"{name} cannot be {short(repr(value))}.")
    return parameters  # each was checked


def _index(j: object, columns: list[Told], what: str) -> int:
    """Read the number of a column, also where it is the key of an object in JSON."""
    number = int(j) if isinstance(j, str) and j.isascii() and j.isdigit() and len(j) < 10 else j
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(columns):
        raise InputError("choose the target." if what == "target" and j is None else f"{what} names no column.")
    return number


def _kind(kind: object, column: Told) -> str | list[str]:
    """Kind that was chosen: a word, or the numbers of the labels in their order."""
    if isinstance(kind, str) and kind in KINDS:
        return kind
    levels = column["levels"] or []
    if not isinstance(kind, list) or sorted(map(str, kind)) != sorted(map(str, range(len(levels)))):
        raise InputError(f"column {column['shown']!r} cannot be {short(repr(kind))}.")
    return [levels[int(k)] for k in kind]


def choices(name: str, option: Option) -> list[str]:
    """Names that an option of the page may have; none where it is no name."""
    if name == "feature_model":
        return [family for family in FAMILIES if family not in NEED_FILES]
    return [] if option.choices is None else list(option.choices())


def offered() -> list[dict[str, object]]:
    """Options of the page, with their words, as the command line has them."""
    listed = options_of("select")
    return [
        {
            "name": name,
            "label": label,
            "help": WITHOUT_FILES if name == "feature_model" else listed[name].help,
            "type": listed[name].kind.__name__,
            "default": listed[name].default,
            "least": listed[name].least,
            "choices": choices(name, listed[name]),
        }
        for name, label in OFFERED.items()
    ]
