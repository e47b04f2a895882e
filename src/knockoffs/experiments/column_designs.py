"""Columns of every kind, simulated: FDR of the default beside the oracle that knows P^X and beside naive treatments.

Not in the paper. Every design is X_j = g_j(L_j) with L Gaussian, or two scales of it, and L is known to the one who
simulates: knockoffs L_tilde by the true law and X_tilde = g(L_tilde) are exact, whatever g is. The oracle is that.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import poisson
from scipy.stats import t as student

from knockoffs.defaults import choose
from knockoffs.draws import draw_and_score
from knockoffs.experiments import real_page
from knockoffs.experiments.drawn_labels import curved_labels, draw_truth, linear_labels
from knockoffs.experiments.real_laws import Drawn
from knockoffs.experiments.real_tables import fdr_and_power, kinds_of
from knockoffs.experiments.runner import Arrays, Context, fingerprint
from knockoffs.experiments.runner import Table as Rows
from knockoffs.features.gaussian import gaussian_features
from knockoffs.features.latent.margins import Affine
from knockoffs.features.latent.model import latent_features
from knockoffs.features.source import knockoff_source
from knockoffs.filter import knockoff_filter
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import NetworkSampler
from knockoffs.table.columns import Column
from knockoffs.table.table import Table, read_table
from knockoffs.table.target import as_target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TARGETS = (0.2, 0.1)
METHODS = ("default", "oracle", "naive")
RHO = 0.7  # correlations of L are RHO^|i - j|, unless a design says otherwise
N_LEVELS = 3  # of a nominal column, each a coordinate of L, of which the largest wins
SHARE_MISSING = 0.2
CUT = 0.6  # quantile of a column above which its neighbour is missing: a fifth of all cells
DRAW: dict[str, tuple[Callable[..., NDArray], float]] = {
    "linear": (linear_labels, 7.0),
    "curved": (curved_labels, 16.0),
}

Write = Callable[[NDArray], NDArray]  # coordinates of one column, shape (n, m), to its cells, shape (n,)


@dataclass(frozen=True)
class Design:
    """One simulated table.

    Parameters
    ----------
    kinds : tuple of str
        Keys of ``WRITE``, one for each column.
    n : int
    n_non_nulls : int
    scales : tuple of float
        Rows are multiplied by one of them, at random.
    missing : float
        Share of cells that are missing, completely at random.
    cut_by_neighbour : bool
        Every second column is missing where the one before it is among its largest; y depends on the others alone.
    strength : float
        Of the labels, in units of those of the other designs.
    rho : float
        Correlation of neighbouring coordinates of L.
    """

    kinds: tuple[str, ...]
    n: int = 500
    n_non_nulls: int = 10
    scales: tuple[float, ...] = (1.0,)
    missing: float = 0.0
    cut_by_neighbour: bool = False
    strength: float = 1.0
    rho: float = RHO


@dataclass(frozen=True)
class Simulated:
    """A table, its latent coordinates, and which belong to which column."""

    table: Table
    L: NDArray
    scale: NDArray
    column_of: NDArray[np.intp]


@dataclass(frozen=True)
class Config:
    """Settings; with ``minutes`` of wall clock spent, the designs that are left have no repetitions."""

    designs: tuple[str, ...]
    repetitions: int = 200
    minutes: float = 120.0


# Columns


def _first(write: Callable[[NDArray], NDArray]) -> Write:
    return lambda L: write(L[:, 0])


LABELS = np.array(["red", "green", "blue"])
BANDS = np.array(["low", "middle", "high"])  # in their order, which is not that of the alphabet
WRITE: dict[str, Write] = {
    "gaussian": _first(lambda z: z),
    "log_normal": _first(np.exp),
    "t5": _first(lambda z: student.ppf(ndtr(z), 5)),
    "count": _first(lambda z: poisson.ppf(ndtr(z), 2.0)),
    "binary": _first(lambda z: (z > 0.5).astype(float)),
    "ordinal": _first(lambda z: np.searchsorted([-1.5, -0.5, 0.5, 1.2], z).astype(float)),
    "zero_inflated": _first(lambda z: np.maximum(np.exp(z) - 1, 0.0)),
    "nominal": lambda L: LABELS[np.argmax(L, axis=1)],
}
ALL_KINDS = tuple(WRITE)
WRITE |= dict.fromkeys(("band", "unordered_band"), _first(lambda z: BANDS[np.searchsorted([-0.7, 0.7], z)]))
DESIGNS: dict[str, Design] = {
    **{f"20 {kind.replace('_', '-')} columns": Design((kind,) * 20) for kind in ALL_KINDS if kind != "gaussian"},
    "20 columns, two scales": Design(("gaussian",) * 20, scales=(1.0, 4.0)),
    "20 columns of all kinds": Design((ALL_KINDS * 3)[:20]),
    "20 columns, a fifth missing": Design(("gaussian",) * 20, missing=SHARE_MISSING),
    "20 of all kinds, a fifth missing": Design((ALL_KINDS * 3)[:20], missing=SHARE_MISSING),
    "n = 400, p = 200": Design(("gaussian",) * 200, n=400, n_non_nulls=30),
    "n = 300, p = 500": Design(("gaussian",) * 500, n=300, n_non_nulls=30),
}
# ten of 40 columns matter, and much: here a wrong P^X shows
STRONG = partial(Design, n=1000, strength=1.8)
DESIGNS |= {
    "40 log-normal columns": STRONG(("log_normal",) * 40),
    "20 nominal, 20 Gaussian": STRONG(("nominal", "gaussian") * 20),
    "40 columns of all kinds": STRONG(ALL_KINDS * 5),
    "40 columns, missing by a neighbour": STRONG(("gaussian",) * 40, missing=SHARE_MISSING, cut_by_neighbour=True),
}
# two of three columns are bands of a number, as text: in their order, and as labels without one
BANDED = partial(Design, n=2000, n_non_nulls=8, strength=3.0, rho=0.8)
DESIGNS |= {
    f"27 {name}, 13 Gaussian": BANDED(((kind, "gaussian", kind) * 14)[:40])
    for kind, name in (("band", "bands"), ("unordered_band", "bands without an order"))
}
CONFIG = Config(tuple(DESIGNS))
QUICK = Config(tuple(DESIGNS), repetitions=20, minutes=5.0)


def column_of(design: Design) -> NDArray[np.intp]:
    """Column of each coordinate of L."""
    return np.repeat(np.arange(len(design.kinds)), [N_LEVELS if kind == "nominal" else 1 for kind in design.kinds])


def covariance(design: Design) -> NDArray:
    """Of L: rho^|i - j| between columns, none between the coordinates of different levels."""
    column = column_of(design)
    level = np.concatenate([np.arange(np.sum(column == j)) for j in range(len(design.kinds))])
    apart = np.abs(np.subtract.outer(column, column))
    return np.where(np.equal.outer(level, level), design.rho**apart, 0.0)


def write(design: Design, L: NDArray) -> list[NDArray]:
    """Columns X_j = g_j(L_j)."""
    column = column_of(design)
    return [WRITE[kind](L[:, column == j]) for j, kind in enumerate(design.kinds)]


def simulate(design: Design, rng: Generator) -> Simulated:
    """Draw the rows of a design."""
    L = rng.standard_normal((design.n, len(column_of(design)))) @ np.linalg.cholesky(covariance(design)).T
    scale = rng.choice(np.array(design.scales), design.n)
    L *= scale[:, None]
    cells = write(design, L)
    names = [f"{kind} {j}" for j, kind in enumerate(design.kinds)]
    order = {name: BANDS.tolist() for name, kind in zip(names, design.kinds, strict=True) if kind == "band"}
    table = read_table(pl.DataFrame(dict(zip(names, cells, strict=True))), kinds=order)
    hidden = rng.random(table.X.shape) < design.missing
    if design.cut_by_neighbour:
        hidden[:, 0::2] = False
        hidden[:, 1::2] = table.X[:, 0::2] > np.quantile(table.X[:, 0::2], CUT, axis=0)
    return Simulated(replace(table, X=np.where(hidden, np.nan, table.X)), L, scale, column_of(design))


def with_indicators(table: Table) -> Table:
    """Table whose labels, ordered or not, have an effect each in y, and an indicator each in the model of y."""
    columns = (c if c.levels is None or c.kind == "binary" else replace(c, kind="nominal") for c in table.columns)
    return replace(table, columns=tuple(columns))


# Knockoffs


def default_pair(design: Design, data: Simulated, rng: Generator) -> tuple[Table, Pair]:
    """Fit the default P^X and draw."""
    return data.table, knockoff_source("auto")(data.table, rng=rng).sampler.sample(data.table.X, rng)


def oracle_pair(design: Design, data: Simulated, rng: Generator) -> tuple[Table, Pair]:
    """X_tilde = g(L_tilde), L_tilde by the true law given the true L.

    y depends on X alone, so X_tilde does not know more of it than X does, though it was made from L. Where cells are
    missing and all columns Gaussian, they are drawn by the true law.
    """
    columns = np.arange(len(design.kinds))
    if data.table.missing:
        S = covariance(design)
        known = latent_features([Affine()] * len(columns), [1.0], np.zeros((1, len(columns))), S[None])
        return data.table, known.as_sampler().sample(data.table.X, rng)
    own = None if len(data.column_of) == len(columns) else data.column_of
    law = gaussian_features(np.zeros(len(data.column_of)), covariance(design), feature_of=own)
    L = data.L / data.scale[:, None]
    L_tilde = NetworkSampler(law.as_network()).sample(L, rng).X_tilde * data.scale[:, None]
    cells = write(design, L_tilde)
    coded = [codes(column, x) for column, x in zip(data.table.columns, cells, strict=True)]
    return data.table, Pair(data.table.X, np.column_stack(coded), columns)


def codes(column: Column, x: NDArray) -> NDArray:
    """Cells as the numbers that stand for them in the table."""
    if column.levels is None:
        return x
    place = {level: k for k, level in enumerate(column.levels)}
    return np.array([place[value] for value in x.tolist()], dtype=float)


def naive_pair(design: Design, data: Simulated, rng: Generator) -> tuple[Table, Pair]:
    """One Gaussian: means for missing cells, indicators for labels (all levels but the last), numbers as they are."""
    X = np.where(np.isnan(data.table.X), np.nanmean(data.table.X, axis=0), data.table.X)
    X = np.where([column.levels is not None for column in data.table.columns], np.rint(X), X)
    parts, owners = [], []
    for j, column in enumerate(data.table.columns):
        m = len(column.levels or ())
        part = (X[:, [j]] == np.arange(m - 1)).astype(float) if m else X[:, [j]]
        parts.append(part)
        owners += [j] * part.shape[1]
    plain = read_table(np.hstack(parts))
    numbers = tuple(Column(column.name) for column in plain.columns)
    table = replace(plain, columns=numbers).with_groups(owners if len(owners) > len(design.kinds) else None)
    return table, knockoff_source("gaussian")(table, rng=rng).sampler.sample(table.X, rng)


PAIRS = {"default": default_pair, "oracle": oracle_pair, "naive": naive_pair}


def methods_of(design: Design) -> tuple[str, ...]:
    """Methods of a design: no oracle where cells that are no numbers are missing."""
    easy = not design.missing or set(design.kinds) == {"gaussian"}
    return METHODS if easy else ("default", "naive")


# Runs


def repeat(name: str, rng: Generator, deadline: float) -> Arrays:
    """Truth, and W and seconds of each method, for one table; nothing after the deadline."""
    if time.time() > deadline:
        return {}
    design = DESIGNS[name]
    data_rng, label_rng, *rngs = rng.spawn(2 + len(METHODS))
    data = simulate(design, data_rng)
    able = 0.0 if design.cut_by_neighbour else 1.0
    shown = with_indicators(data.table)
    truth = draw_truth(shown, label_rng, design.n_non_nulls, most_missing=able)
    ys = {
        labels: draw(shown, truth, label_rng, strength=strength * design.strength)
        for labels, (draw, strength) in DRAW.items()
    }
    found: Arrays = {"truth": truth}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, stream in zip(METHODS, rngs, strict=True):
            if method not in methods_of(design):
                continue
            start = time.perf_counter()
            table, pair = PAIRS[method](design, data, stream)
            table = with_indicators(table)
            found[f"seconds/{method}"] = np.array(time.perf_counter() - start)
            for labels, y in ys.items():
                target = as_target(y, table)
                lasso = choose(target, estimator="lasso").statistic
                scores = draw_and_score(Drawn(pair), table, target, lasso, rng=stream).scores
                found[f"W/{labels}/{method}"] = scores.Z - scores.Z_tilde
    return found


def run(config: Config, rng: Generator, context: Context) -> Rows:
    """FDR and power of the default, the oracle and the naive treatment in every design."""
    from joblib import Parallel, delayed

    deadline = time.time() + 60 * config.minutes
    streams = dict(zip(DESIGNS, rng.spawn(len(DESIGNS)), strict=True))
    rows: Rows = []
    for name in sorted(config.designs, key=lambda name: len(DESIGNS[name].kinds)):
        example = simulate(DESIGNS[name], np.random.default_rng(0)).table
        rngs = streams[name].spawn(config.repetitions)
        keys = [f"designs-{i:03d}-{fingerprint(name, DESIGNS[name], stream)}" for i, stream in enumerate(rngs)]
        known = [context.find(key) for key in keys]
        todo = [i for i, arrays in enumerate(known) if arrays is None]
        context.log(f"{name}: {len(todo)} repetitions")
        work = (delayed(repeat)(name, rngs[i], deadline) for i in todo)
        for i, arrays in zip(todo, Parallel(n_jobs=context.n_jobs, return_as="generator")(work), strict=True):
            known[i] = context.keep(keys[i], arrays) if arrays else None
        done = [arrays for arrays in known if arrays is not None]
        if len(done) < len(rngs):
            context.log(f"{name}: time was out after {len(done)} repetitions")
        rows += rows_of(name, example, done)
    return rows


def rows_of(name: str, example: Table, done: Sequence[Arrays]) -> Rows:
    """FDR and power of each method at each level."""
    what = {"table": name, "n": len(example), "d": example.X.shape[1], "kinds": kinds_of(example)}
    what |= {"missing": float(np.isnan(example.X).mean())}
    rows: Rows = []
    for labels, method, q in product(DRAW, METHODS, TARGETS):
        mine = [arrays for arrays in done if f"W/{labels}/{method}" in arrays]
        if mine:
            truth = np.stack([arrays["truth"] for arrays in mine])
            found = np.stack([knockoff_filter(arrays[f"W/{labels}/{method}"], q) for arrays in mine])
            seconds = float(np.median([arrays[f"seconds/{method}"] for arrays in mine]))
            own = {"labels": labels, "method": method, "target_fdr": q}
            rows.append(what | own | fdr_and_power(found, truth) | {"seconds": seconds})
    return rows


INTRO = (
    "# Simulated columns of every kind",
    "",
    "FDR ± its standard error, and power after the slash; **in bold an FDR more than two standard errors above its",
    "target**. Columns are g_j(L_j), L Gaussian with correlations 0.7^|i - j|. Ten of 20 columns matter, ten of 40,",
    "and nearly twice as much, 30 of 200 and of 500, by labels drawn as for the real tables, and lasso coefficients",
    "score features. *default* is P^X `auto`, fitted anew to every table. *oracle* knows P^X. *naive* is one Gaussian:",
    "numbers as they are, labels as indicators, missing cells at their mean. In y a missing cell counts as the mean of",
    "its column. *Missing by a neighbour*: every second column is missing where the one before it is among its largest",
    "two fifths, and y depends on the columns that are never missing.",
    "*Bands* are low, middle and high of a number, as text, with correlations 0.8^|i - j|; eight columns matter, each",
    "band by an effect of its own. The lasso has an indicator for each band and each label, whatever the knockoffs.",
    "`knockoffs reproduce designs` makes this page again.",
)


def plot(table: Rows) -> Figure:
    """FDR at one level, a point for each method in each design."""
    return real_page.plot_fdr(table)


def write_page(table: Rows, page: Path) -> None:
    """Write FDR and power of every method in every design as Markdown."""
    real_page.write_page(table, page, INTRO)
