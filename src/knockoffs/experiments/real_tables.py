"""Real tables: FDR and power on the columns people have, with labels drawn from known subsets of them.

Not in the paper. Columns come as they are: numbers with any tails, counts, grades, labels, missing cells. y is drawn
from a known subset of them, so the nulls are known while P^X is not. It is fitted once a table, and knockoffs are
drawn anew for every draw of labels.
"""

from __future__ import annotations

import pickle
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs import procedure
from knockoffs.conditional_tests.choice import few_for_knockoffs
from knockoffs.defaults import choose
from knockoffs.draws import draw_and_score
from knockoffs.errors import InputError
from knockoffs.experiments import real_page
from knockoffs.experiments.drawn_labels import LABELS, draw_truth
from knockoffs.experiments.real_columns import SOURCES, load_columns
from knockoffs.experiments.real_laws import Drawn, Law, fit_law
from knockoffs.experiments.real_page import plot_fdr
from knockoffs.experiments.runner import Arrays, Context, Row, fingerprint, mean_and_error
from knockoffs.experiments.runner import Table as Rows
from knockoffs.features.source import GivenModel
from knockoffs.filter import knockoff_filter
from knockoffs.machine.parallel import Task
from knockoffs.sampling.pair import Pair
from knockoffs.table.table import Table
from knockoffs.table.target import as_target

TARGETS = (0.2, 0.1)
FEW_COLUMNS = 40  # below which every column is also tested by itself
# name -> family of P^X, statistic
METHODS = {
    "default": ("auto", "best"),
    "default, lasso": ("auto", "lasso"),
    "default, tests": ("auto", "tests"),
    "mixture": ("mixture", "lasso"),
    "one Gaussian": ("gaussian", "lasso"),
    "knockpy": ("knockpy", "lasso"),
}
Work = tuple[str, int]  # labels, and the number of the repetition


@dataclass(frozen=True)
class Config:
    """Settings.

    Parameters
    ----------
    tables : tuple of str
        Keys of ``SOURCES``.
    repetitions : int
        Draws of labels, for each kind of labels.
    n_rows : int
        Most rows of a table.
    best_cells, test_cells : int
        Most cells of a table whose boosting, or whose conditional tests, are affordable.
    fewer : mapping of str to int
        Methods with fewer repetitions, the first ones; with 0 their P^X is not fitted at all.
    minutes : float
        Wall clock. A table gets an equal share of what is left when its turn comes, cheap ones first; when it is
        spent, the table has fewer repetitions, as the result says.
    """

    tables: tuple[str, ...] = tuple(SOURCES)
    labels: tuple[str, ...] = tuple(LABELS)
    repetitions: int = 100
    n_rows: int = 5000
    best_cells: int = 1_000_000
    test_cells: int = 100_000
    fewer: Mapping[str, int] = field(default_factory=dict)
    minutes: float = 600.0


CONFIG = Config()
QUICK = Config(
    repetitions=20, n_rows=3000, best_cells=200_000, test_cells=20_000, fewer={"default, tests": 5}, minutes=6.0
)


@dataclass(frozen=True)
class Item:
    """A real table with every P^X that was fitted to it."""

    name: str
    table: Table
    laws: Mapping[str, Law]


# One draw of labels


def repeat(path: str, work: Work, rng: Generator, config: Config) -> Arrays:
    """Truth, and for each method W (one minus the q-values, of tests) and seconds, for one draw of labels."""
    item, labels = _load(path), work[0]
    label_rng, *rngs = rng.spawn(1 + len(METHODS))
    truth = draw_truth(item.table, label_rng)
    y = LABELS[labels](item.table, truth, label_rng)
    streams = dict(zip(METHODS, rngs, strict=True))
    pairs: dict[str, Pair] = {}
    found: Arrays = {"truth": truth}
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, (family, statistic) in METHODS.items():
            law = item.laws.get(family)
            if law is None or not affordable(method, item.table, work, config):
                continue
            begun = time.perf_counter()
            if family not in pairs:
                pairs[family] = law.settled.sampler.sample(law.table.X, streams[method])
            found[f"W/{method}"] = score(statistic, law, y[law.rows], pairs[family], streams[method])
            found[f"seconds/{method}"] = np.array(time.perf_counter() - begun)
    found["seconds"] = np.array(time.perf_counter() - start)
    return found


def affordable(method: str, table: Table, work: Work, config: Config) -> bool:
    """Whether a method runs in a repetition."""
    if work[1] >= config.fewer.get(method, config.repetitions):
        return False
    statistic = METHODS[method][1]
    if statistic == "tests":
        return table.X.shape[1] < FEW_COLUMNS and table.X.size <= config.test_cells
    return statistic != "best" or table.X.size <= config.best_cells


def score(statistic: str, law: Law, y: NDArray, pair: Pair, rng: Generator) -> NDArray:
    """W of each column; of tests, one minus the q-value."""
    target = as_target(y, law.table)
    if statistic == "tests":
        source = GivenModel(law.settled.model)  # type: ignore[arg-type]
        tests = procedure.Plan(source, method="conditional_test")
        return 1 - procedure.run(tests, procedure.Data(law.table, target), rng=rng).q_values
    choice = choose(target, estimator=None if statistic == "best" else statistic)
    scores = draw_and_score(Drawn(pair), law.table, target, choice.statistic, rng=rng).scores
    return scores.Z - scores.Z_tilde


@lru_cache(maxsize=2)
def _load(path: str) -> Item:
    with open(path, "rb") as file:
        return pickle.load(file)  # written by this run, into a folder of its own


def selected(method: str, W: NDArray, q: float) -> NDArray[np.bool_]:
    """Which columns a method selects at a level."""
    return W >= 1 - q if METHODS[method][1] == "tests" else knockoff_filter(W, q)


# All of them


def run(config: Config, rng: Generator, context: Context) -> Rows:
    """FDR and power of every method on every table."""
    started = time.monotonic()
    streams = rng.spawn(1 + max(source.place for source in SOURCES.values()))
    tables: dict[str, Table] = {}
    rngs: dict[str, list[Generator]] = {}
    for name in config.tables:
        row_rng, *own = streams[SOURCES[name].place].spawn(2 + len(LABELS))
        try:
            tables[name] = load_columns(name, config.n_rows, row_rng, context.data_folder)
        except (InputError, OSError) as error:
            context.log(f"{name}: left out, {error}")
            continue
        rngs[name] = own
    known = {name: found_before(name, tables[name], rngs[name], config, context) for name in tables}
    open_ones = {name: tables[name] for name in tables if missing_work(known[name], config)}
    with tempfile.TemporaryDirectory() as folder:
        items = fit_all(open_ones, rngs, Path(folder), config, context)
        draw_all(items, known, rngs, config, context, started)
    return [row for name in tables for row in rows_of(name, tables[name], known[name])]


def key_of(name: str, table: Table, work: Work, rng: Generator, config: Config) -> str:
    """Name under which one repetition is kept."""
    affords = [affordable(method, table, work, config) for method in METHODS]
    return f"tables-{SOURCES[name].place:02d}-{work[0]}-{work[1]:03d}-{fingerprint(table.X, work, rng, affords)}"


def stream_of(work: Work, own: Sequence[Generator]) -> Generator:
    """Random stream of a repetition."""
    seed = own[1 + list(LABELS).index(work[0])].bit_generator.seed_seq
    return np.random.default_rng(
        np.random.SeedSequence(entropy=seed.entropy, spawn_key=(*seed.spawn_key, work[1]))  # type: ignore[attr-defined]
    )


def found_before(name: str, table: Table, own: Sequence[Generator], config: Config, context: Context) -> dict:
    """Repetitions that are done; None for those that are not."""
    works = [(labels, i) for i in range(config.repetitions) for labels in config.labels]
    return {work: context.find(key_of(name, table, work, stream_of(work, own), config)) for work in works}


def missing_work(known: Mapping[Work, Arrays | None], config: Config) -> list[Work]:
    """Repetitions that are not done."""
    return [work for work, arrays in known.items() if arrays is None]


def fit_all(
    tables: Mapping[str, Table],
    rngs: Mapping[str, Sequence[Generator]],
    folder: Path,
    config: Config,
    context: Context,
) -> dict[str, tuple[Path, float]]:
    """Every P^X of every table, at the same time, dear ones first; a file for each table, and a guess at its cost."""
    from joblib import Parallel, delayed

    families = tuple(dict.fromkeys(family for family, _ in METHODS.values()))
    asked = {family for method, (family, _) in METHODS.items() if config.fewer.get(method, 1)}
    dear = sorted(tables, key=lambda name: -tables[name].X.size * tables[name].X.shape[1])
    jobs = [(name, family, i) for name in dear for i, family in enumerate(families) if family in asked]
    context.log(f"{len(jobs)} fits of P^X to {len(dear)} tables")
    fitted = Parallel(n_jobs=context.n_jobs, max_nbytes=None)(
        delayed(fit_law)(tables[name], family, rngs[name][0].spawn(1 + i)[i]) for name, family, i in jobs
    )
    laws: dict[str, dict[str, Law]] = {name: {} for name in dear}
    for (name, family, _), law in zip(jobs, fitted, strict=True):
        if isinstance(law, str):
            context.log(f"{name}: no {family}, {law[:200]}")
        else:
            laws[name][family] = law
            said = law.settled.notes.get("feature_model", "") if family == "auto" else ""
            context.log(f"{name}: {family} fitted to {len(law.table)} rows in {law.seconds:.1f} s. {said}")
    items = {}
    for i, name in enumerate(dear):
        path = folder / f"{i}.pickle"
        with open(path, "wb") as file:
            pickle.dump(Item(name, tables[name], laws[name]), file)
        items[name] = (path, float(tables[name].X.size * tables[name].X.shape[1]))
    return items


def draw_all(
    items: Mapping[str, tuple[Path, float]],
    known: Mapping[str, dict[Work, Arrays | None]],
    rngs: Mapping[str, Sequence[Generator]],
    config: Config,
    context: Context,
    started: float,
) -> None:
    """Fill in the repetitions that are not done, cheap tables first, as far as time allows."""
    from joblib import Parallel, delayed, effective_n_jobs

    jobs_at_once = effective_n_jobs(context.n_jobs)
    cheap = sorted(items, key=lambda name: items[name][1])
    spent = dict.fromkeys(cheap, 0.0)
    share: dict[str, float] = {}

    def left() -> float:
        return started + 60 * config.minutes - time.monotonic()

    def works() -> Iterator[Task[tuple[str, Work, Arrays]]]:
        for place, name in enumerate(cheap):
            share[name] = max(left(), 0.0) * jobs_at_once / (len(cheap) - place)
            todo = missing_work(known[name], config)
            context.log(f"{name}: {len(todo)} repetitions to do in at most {share[name]:.0f} s of work")
            for work in todo:
                if left() < 0 or spent[name] > share[name]:
                    context.log(f"{name}: time is out before repetition {work[1] + 1} of {work[0]} labels")
                    break
                path = str(items[name][0])
                yield delayed(_named)(name, work, path, stream_of(work, rngs[name]), config)

    parallel = Parallel(n_jobs=jobs_at_once, pre_dispatch=jobs_at_once + 2, return_as="generator_unordered")
    for name, work, arrays in parallel(works()):
        spent[name] += float(arrays["seconds"])
        table = _load(str(items[name][0])).table
        known[name][work] = context.keep(key_of(name, table, work, stream_of(work, rngs[name]), config), arrays)


def _named(name: str, work: Work, path: str, rng: Generator, config: Config) -> tuple[str, Work, Arrays]:
    return name, work, repeat(path, work, rng, config)


def rows_of(name: str, table: Table, known: Mapping[Work, Arrays | None]) -> Rows:
    """FDR and power of each method for each kind of labels, and the null column it selects most often."""
    rows: Rows = []
    for labels in dict.fromkeys(work[0] for work in known):
        done = [arrays for work, arrays in known.items() if work[0] == labels and arrays is not None]
        for method in METHODS:
            for q in TARGETS:
                answer = answered_by(method, table, q)
                mine = [arrays for arrays in done if f"W/{answer}" in arrays]
                if mine:
                    size = {"table": name, "n": len(table), "d": table.X.shape[1]}
                    rows.append(size | _row(table, labels, method, answer, q, mine))
    return rows


def answered_by(method: str, table: Table, q: float) -> str:
    """Whose answer a method gives: the default tests columns where they are few for knockoffs at this level."""
    few = few_for_knockoffs(table.X.shape[1], q, len(table))
    return "default, tests" if method == "default" and few else method


def _row(table: Table, labels: str, method: str, answer: str, q: float, done: Sequence[Arrays]) -> Row:
    truth = np.stack([arrays["truth"] for arrays in done])
    found = np.stack([selected(answer, arrays[f"W/{answer}"], q) for arrays in done])
    often = (found & ~truth).sum(axis=0) / np.maximum((~truth).sum(axis=0), 1)
    worst = int(np.argmax(often))
    return {
        "kinds": kinds_of(table),
        "missing": float(np.isnan(table.X).mean()),
        "labels": labels,
        "method": method,
        "target_fdr": q,
        **fdr_and_power(found, truth),
        "seconds": float(np.median([arrays[f"seconds/{answer}"] for arrays in done])),
        "worst_null": table.names[worst] if often[worst] > 0 else "-",
        "worst_share": float(often[worst]),
    }


def fdr_and_power(found: NDArray[np.bool_], truth: NDArray[np.bool_]) -> Row:
    """Means and standard errors over repetitions, both of shape (repetitions, d)."""
    fdr, fdr_se = mean_and_error((found & ~truth).sum(axis=1) / np.maximum(found.sum(axis=1), 1))
    power, power_se = mean_and_error((found & truth).sum(axis=1) / truth.sum(axis=1))
    return {"fdr": fdr, "fdr_se": fdr_se, "power": power, "power_se": power_se, "repetitions": len(found)}


def kinds_of(table: Table) -> str:
    """Count the kinds of columns, in words."""
    kinds = table.kinds
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))


INTRO = (
    "# Real tables",
    "",
    "Columns of real tables as they come, and labels drawn from a known random subset of them, a quarter of the",
    "columns (6 to 30), so that the nulls are known and P^X is not. FDR ± its standard error, and power after the",
    "slash; **in bold an FDR more than two standard errors above its target**. P^X is fitted once a table,",
    "knockoffs are drawn anew for each draw of labels. `knockoffs reproduce tables` makes this page again.",
    "",
    "- *Linear* labels are numbers: the standardised values of the chosen columns (clipped at three robust",
    "  standard deviations), random effects of the levels of labels, random signs, Gaussian noise. *Curved* labels",
    "  are two classes: steps, humps and slopes in the ranks, and products of pairs.",
    "- A missing cell of a chosen column counts as the column's mean. Only columns with at most a tenth of their",
    "  cells missing are chosen: where cells are missing for reasons that other columns hold, those would matter",
    "  too, and the truth would not be known. Nulls may be missing as often as they are.",
    "- Columns nearly constant in the rows taken, and columns whose normal scores correlate above 0.99 with an",
    "  earlier one, are left out: of two columns that determine one another neither is null given the other.",
    "- *default* is `KnockoffSelector(fdr)` as it comes: knockoffs, and conditional tests of tables with fewer than",
    "  4 / fdr columns (40 at 0.1, 20 at 0.2). *default, lasso* is the same P^X with lasso coefficients, *default,",
    "  tests* its conditional tests, on tables with fewer than 40 columns. *mixture* (the default of earlier versions)",
    "  and *one Gaussian* get labels as codes and complete rows only, as they need them, and lasso coefficients.",
    "  *knockpy* is that package's Gaussian sampler, where it is installed.",
    "- The genotypes of the data folder are left out: they have a model of their own (`hmm`).",
)


plot = plot_fdr  # FDR at one level, a point for each method on each table


def write_page(table: Rows, page: Path) -> None:
    """Write FDR and power of every method on every table as Markdown."""
    real_page.write_page(table, page, INTRO)
