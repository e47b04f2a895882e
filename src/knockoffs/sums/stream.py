"""A selection from a table larger than memory: its rows come in batches, and nothing of the size of the table is kept.

P^X is fitted on a random sample of the rows, which is the first batch; the others are the runs of rows of the file,
less those of the sample: every row has one knockoff, for the choice of a model as for the sums. The knockoffs of every
batch are drawn from a stream of its own, by its number, so that a stop on the way does not change the answer. Which
model of y is used is decided on the sample.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.defaults import task_for
from knockoffs.errors import InputError, name_some, unknown_option
from knockoffs.estimator import KnockoffSelector, Plan
from knockoffs.features.source import Settled, fills_cells, read_features
from knockoffs.importance.scores import Scores, mean_of
from knockoffs.machine.threads import worthwhile_threads
from knockoffs.procedure import Streams, check_swaps, decide, judge, run_tests
from knockoffs.progress import showing, stage, track
from knockoffs.sampling.pair import Pair
from knockoffs.seeds import as_generator, stream_at
from knockoffs.selection import Selection
from knockoffs.sums.statistic import LassoSum, ModelSum, SampleScores, settle_statistic
from knockoffs.table.batches import Blocks, open_blocks
from knockoffs.table.columns import design
from knockoffs.table.stream import RowStream, code_like, open_rows
from knockoffs.table.table import MIN_ROWS, Table
from knockoffs.table.target import Target, as_target, extend_target

MOST_SAMPLED, SAMPLE_CELLS, FEWEST_SAMPLED = 100_000, 2**24, 2_000  # rows, cells, rows of the sample
MOST_SCORED = 1_000_000  # further rows on which a model that is no lasso is scored: a minute of trees, 50 columns
BETWEEN = 10.0  # seconds between two notes in the journal
STATE = "state"
OURS = (f"{STATE}*",)


def fit_streamed(
    selector: KnockoffSelector,
    path: str | Path,
    target: str,
    *,
    weights: str | None = None,
    sample_rows: int | None = None,
    batch_rows: int | None = None,
    work: str | Path | None = None,
    resume: bool = True,
) -> KnockoffSelector:
    """Fit a selector to a parquet file, or a folder of them, of any number of rows.

    Parameters
    ----------
    selector : KnockoffSelector
        Its options are used as by ``fit``, and it becomes fitted; ``table_`` and ``knockoffs_`` are of the sample. The
        target and the weights stay in memory, 8 bytes a row each.
    path : path
    target : str
        Column to be explained.
    weights : str, optional
        Column of sample weights.
    sample_rows : int, optional
        Rows, drawn at random, on which P^X is fitted, the verdict is given and a model of y is chosen; by default
        100,000, or fewer where there are many columns.
    batch_rows : int, optional
        Rows of a batch; by default some four million cells. The draw depends on it.
    work : path, optional
        Folder in which the state is kept, so that a run that was stopped goes on; removed at the end.
    resume : bool
        False does not go on with a stopped run.

    Returns
    -------
    KnockoffSelector
        The selector itself.
    """
    if selector.knockoffs is not None:
        raise InputError("knockoffs were brought along: they are not read in batches. Leave them out.")
    if selector.n_knockoffs != 1:
        raise InputError(f"n_knockoffs={selector.n_knockoffs}: a table in batches takes one knockoff of each feature.")
    rows = open_rows(Path(path), leave_out=[target, *([weights] if weights else []), *(selector.drop or [])])
    features = _features(rows, target, weights, selector.drop)
    values, row_weights = _columns(rows, target, weights)
    size = default_sample(len(rows), len(features)) if sample_rows is None else min(int(sample_rows), len(rows))
    if size < MIN_ROWS:
        raise InputError(f"sample_rows={sample_rows}: P^X needs {MIN_ROWS} rows or more.")
    rng = as_generator(selector.random_state)
    sampled = np.arange(len(rows))
    if size < len(rows):
        sampled = np.sort(rng.spawn(1)[0].choice(len(rows), size, replace=False))
    source = selector._source()
    if selector.dependent != "refuse":
        raise InputError(f"dependent={selector.dependent!r}: not of a table in batches. Name the columns in drop.")
    frame, kinds, groups = rows.take(features, sampled), selector.kinds, selector.groups
    table, notes = read_features(source, frame, kinds=kinds, groups=groups, min_rows=MIN_ROWS)
    y = _target(values, row_weights, sampled, table, task_for(selector.task, selector.estimator))
    y = replace(y, name=target)
    seen = y.at(sampled)
    _check_classes(y, seen)
    table, source = selector._repaired(table, source, rng)  # which may leave out columns
    selector._generator = deepcopy(rng)
    streams = Streams(*rng.spawn(4))
    plan = selector._plan(table, seen, notes)
    said = plan.notes | dict(plan.choice.notes) | {"stream": _words(len(rows), size, plan.method)}
    with showing(bool(selector.verbose)), worthwhile_threads(table.X.size):
        if plan.method == "conditional_test":
            common: dict[str, Any] = {"knockoffs": source, "verdict": selector.verdict, "n_jobs": selector.n_jobs}
            common |= {"estimator": selector._test_model(), "fdr": plan.promise.fdr, "notes": said}
            selection = run_tests(table, seen, rng=as_generator(deepcopy(selector._generator)), **common)
        else:
            stage("fitting P^X")
            settled = source(table, rng=streams.fit, n_jobs=selector.n_jobs)
            batch = rows.batch_rows(len(features)) if batch_rows is None else int(batch_rows)
            job = _Job(rows, table.names, table, y, settled, sampled, batch)
            blocks = None
            if work is not None:
                fingerprint = _fingerprint(selector, job, target, weights, streams)
                blocks = open_blocks(Path(work), fingerprint, suffix=".npz", resume=resume, ours=OURS)
            selection = _select(selector, job, plan, seen, streams, blocks, said)
            if blocks is not None:
                blocks.remove(*OURS)
    selector.n_features_in_ = len(features)
    selector.feature_names_in_ = np.array(features, dtype=object)
    return selector._keep(selection, table, seen, features)


def default_sample(n_rows: int, n_columns: int) -> int:
    """Rows of the sample where nothing was asked for.

    >>> default_sample(20_000_000, 50), default_sample(1_000_000, 5000), default_sample(1000, 10)
    (100000, 3355, 1000)
    """
    return min(n_rows, MOST_SAMPLED, max(SAMPLE_CELLS // max(n_columns, 1), FEWEST_SAMPLED))


@dataclass(frozen=True)
class _Job:
    """What all batches share."""

    rows: RowStream
    features: tuple[str, ...]
    table: Table
    target: Target
    settled: Settled
    sampled: NDArray[np.intp]
    batch_rows: int

    @property
    def n_batches(self) -> int:
        return -(-len(self.rows) // self.batch_rows)

    @property
    def whole(self) -> bool:
        """Whether the sample is the whole table."""
        return len(self.sampled) == len(self.rows)

    def draw(self, X: NDArray, rng: Generator) -> Pair:
        """Knockoffs of some rows."""
        drawn = self.settled.sampler.sample(X, rng)
        return Pair(drawn.X, drawn.X_tilde, check_swaps(drawn.feature_of, self.table.feature_of))

    def read(self, frame: Any, batch: int) -> tuple[NDArray, Target, NDArray[np.intp]]:
        """Rows of a batch that are not in the sample, their target, and the labels that the sample does not have."""
        start = batch * self.batch_rows
        coded = code_like(frame, self.table.columns, f"{self.rows.path.name}, rows from {start} on,")
        first, last = np.searchsorted(self.sampled, [start, start + len(coded.X)])
        rest = np.ones(len(coded.X), dtype=bool)
        rest[self.sampled[first:last] - start] = False
        if not fills_cells(self.settled.model) and np.isnan(coded.X).any():
            i, j = np.argwhere(np.isnan(coded.X))[0]
            raise InputError(
                f"{self.rows.path.name}: column {self.table.names[j]!r} has no value, or a label that the sample does "
                f"not have, in row {start + i}, and this feature model takes no missing cells: use 'auto'."
            )
        return coded.X[rest], self.target.at(start + np.flatnonzero(rest)), coded.n_unknown


@dataclass(frozen=True)
class _Draw:
    """One draw of knockoffs: its streams, the swapped features and the statistic."""

    batches: Generator
    S: NDArray[np.bool_]
    statistic: LassoSum | ModelSum | SampleScores

    def of(self, job: _Job, X: NDArray, target: Target, batch: int) -> tuple[Any, NDArray[np.bool_]]:
        """Summand of a batch, and which features its knockoffs move; stream 0 is the sample's."""
        knockoffs, rest = stream_at(self.batches, batch + 1).spawn(2)
        pair = _seen(job, job.draw(X, knockoffs), target)
        return self.statistic.of(pair.swap(self.S), target, rest), ~pair.copied  # type: ignore[union-attr]


def _seen(job: _Job, pair: Pair, target: Target) -> Pair:
    """Rows whose target is known, as the model of y sees them."""
    return pair.rows(target.known_rows).map(design(job.table.columns, job.table.feature_of))


def _select(
    selector: KnockoffSelector,
    job: _Job,
    plan: Plan,
    seen: Target,
    streams: Streams,
    blocks: Blocks | None,
    notes: Mapping[str, str],
) -> Selection:
    """Sample first, then the batches, then W."""
    draws: list[_Draw] = []
    states: list[_State] = []
    pairs: list[Pair] = []
    for rng in streams.draws(plan.promise.n_draws):
        draw_stream, swap_stream, score_stream = rng.spawn(3)
        knockoffs, rest = stream_at(draw_stream, 0).spawn(2)
        pair = job.draw(job.table.X, knockoffs)
        known = _seen(job, pair, seen)
        S = swap_stream.random(known.n_features) < 0.5
        swapped = known.swap(S)
        statistic = settle_statistic(
            plan.choice.statistic, swapped, seen, rng=score_stream, n_jobs=selector.n_jobs, whole=job.whole
        )
        first = statistic.of(swapped, seen, rest) if isinstance(statistic, LassoSum) else None
        draws.append(_Draw(draw_stream, S, statistic))
        states.append(_State(first, ~known.copied))
        pairs += [] if pairs else [pair]  # of the first draw alone
    unknown = np.zeros(len(job.table.columns), dtype=np.intp)
    if not job.whole and any(not isinstance(draw.statistic, SampleScores) for draw in draws):
        states, unknown = _add_batches(job, draws, states, streams, blocks)
    scores = [_finish(draw, state) for draw, state in zip(draws, states, strict=True)]
    W = np.stack([plan.rule(one.Z, one.Z_tilde) for one in scores])
    said = {**notes, **job.settled.notes, **draws[0].statistic.notes, **_of_labels(job, unknown)}
    if isinstance(draws[0].statistic, ModelSum):
        said["rows"] = f"the model of the target is scored on {states[0].total.weight:,.0f} rows outside of the sample"
    return Selection(
        feature_names=job.table.feature_names,
        fdr=plan.promise.fdr,
        method="knockoffs",
        offset=plan.promise.offset,
        pair=pairs[0],
        feature_model=job.settled.model,
        scores=mean_of(scores),
        draws=W,
        verdict=judge(pairs[0], job.table, streams.verdict, selector.n_jobs) if selector.verdict else None,
        notes=said,
        **decide(W, plan.promise),
    )


def _finish(draw: _Draw, state: _State) -> Scores:
    """Scores of a draw, swapped back."""
    statistic = draw.statistic
    scores = statistic.found if isinstance(statistic, SampleScores) else statistic.scores(state.total)
    return scores.swap(draw.S).tie(~state.moved)


@dataclass(frozen=True)
class _State:
    """The sum so far, and the features that some knockoff has moved."""

    total: Any
    moved: NDArray[np.bool_]

    def add(self, part: Any, moved: NDArray[np.bool_]) -> _State:
        return _State(part if self.total is None else self.total + part, self.moved | moved)


def _add_batches(
    job: _Job, draws: Sequence[_Draw], states: list[_State], streams: Streams, blocks: Blocks | None
) -> tuple[list[_State], NDArray[np.intp]]:
    """Add up the batches, in their order, from where the journal stands."""
    wanted = _wanted(job, draws, streams)
    unknown, done = np.zeros(len(job.table.columns), dtype=np.intp), 0
    if blocks is not None:
        found = blocks.find(STATE, partial(_read_state, draws=draws))
        if found is not None:
            states, unknown, done = found
    last = time.monotonic()
    rest = track(_frames(job, wanted[done:]), "batches of rows", total=len(wanted) - done)
    for k, (batch, frame) in enumerate(rest, start=done + 1):
        X, target, n_unknown = job.read(frame, batch)
        unknown = unknown + n_unknown
        if len(target):
            states = [
                state if isinstance(draw.statistic, SampleScores) else state.add(*draw.of(job, X, target, batch))
                for draw, state in zip(draws, states, strict=True)
            ]
        if blocks is not None and time.monotonic() - last >= BETWEEN:
            blocks.keep(STATE, partial(_write_state, states=states, unknown=unknown, done=k))
            last = time.monotonic()
    return states, unknown


def _wanted(job: _Job, draws: Sequence[_Draw], streams: Streams) -> list[int]:
    """Batches that are read: all for sums of products, as many as give enough rows, at random, for other scores."""
    n = job.n_batches
    needed = -(-MOST_SCORED // job.batch_rows)
    if needed >= n or any(draw.statistic.every_row for draw in draws):
        return list(range(n))
    return sorted(streams.test.choice(n, needed, replace=False).tolist())


def _frames(job: _Job, wanted: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """Frames of some batches; those that follow one another are read in one go."""
    frames, at = None, -1
    for batch in wanted:
        if frames is None or batch != at:
            frames = job.rows.batches(job.features, job.batch_rows, batch)
        yield batch, next(frames)
        at = batch + 1


# ---- the journal -------------------------------------------------------------------------------------------------


def _write_state(file: Any, *, states: Sequence[_State], unknown: NDArray, done: int) -> None:
    arrays: dict[str, NDArray] = {"done": np.array(done), "unknown": unknown}
    for k, state in enumerate(states):
        arrays[f"{k}/moved"] = state.moved
        arrays |= {} if state.total is None else {f"{k}/{name}": one for name, one in state.total.arrays().items()}
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    # a file that was cut or changed is made again: its content is told by its hash
    file.write(hashlib.sha256(content.getvalue()).digest() + content.getvalue())


def _read_state(path: Path, *, draws: Sequence[_Draw]) -> tuple[list[_State], NDArray, int]:
    content = path.read_bytes()
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        raise ValueError("damaged")
    with np.load(io.BytesIO(content[32:]), allow_pickle=False) as stored:
        states = []
        for k, draw in enumerate(draws):
            own = {name.removeprefix(f"{k}/"): stored[name] for name in stored.files if name.startswith(f"{k}/")}
            moved = own.pop("moved")
            states.append(_State(draw.statistic.read(own) if own else None, moved))  # type: ignore[union-attr]
        return states, stored["unknown"], int(stored["done"])


def _fingerprint(
    selector: KnockoffSelector, job: _Job, target: str, weights: str | None, streams: Streams
) -> dict[str, Any]:
    """Write down what must be the same for a stopped run to go on."""
    options = {name: repr(value) for name, value in selector.get_params(deep=False).items() if name != "n_jobs"}
    state = json.dumps(streams.draw.bit_generator.state, default=str)
    return {
        "target": [target, weights],
        "options": options,
        "rows": [len(job.sampled), job.batch_rows],
        "random": hashlib.sha256(state.encode()).hexdigest(),
        "files": job.rows.fingerprint(),
    }


# ---- what comes in, and words ------------------------------------------------------------------------------------


def _features(rows: RowStream, target: str, weights: str | None, drop: Sequence[str] | None) -> list[str]:
    dropped = [drop] if isinstance(drop, str) else list(drop or [])
    for argument, names in (("target", [target]), ("weights", [weights] if weights else []), ("drop", dropped)):
        for name in names:
            if name not in rows.names:
                raise unknown_option(argument, name, rows.names)
    if weights == target:
        raise InputError(f"weights={weights!r} is the target: name another column, or leave the weights out.")
    kept = [name for name in rows.names if name not in {target, weights, *dropped}]
    if not kept:
        raise InputError(f"{rows.path}: no columns are left.")
    return kept


def _columns(rows: RowStream, target: str, weights: str | None) -> tuple[NDArray, NDArray | None]:
    """Target and weights of all rows, as they came."""
    if weights is None:
        return rows.column(target), None
    try:
        return rows.column(target), np.asarray(rows.column(weights), dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"weights {weights!r} holds labels, not numbers: weights are not negative.") from None


def _target(
    values: NDArray, weights: NDArray | None, sampled: NDArray[np.intp], table: Table, task: str | None
) -> Target:
    """Target of all rows; what it is is told by the sample."""
    known = np.flatnonzero([value is not None and value == value for value in values[sampled].tolist()])
    if not len(known):
        raise InputError(f"the target is missing in all {len(sampled)} rows of the sample.")
    told = as_target(values[sampled[known]], table.rows(known), task=task)
    return extend_target(told, values, weights)


def _check_classes(y: Target, seen: Target) -> None:
    """Refuse a sample without some class: nothing could be learned of it there."""
    if y.task != "classification" or len(seen) == len(y):
        return
    lacking = set(y.values.tolist()) - set(seen.values.tolist())
    if lacking:
        raise InputError(
            f"no row of the sample has the class {name_some(sorted(map(str, lacking)))} of the target: join rare "
            "classes, leave their rows out, or take a larger sample_rows."
        )


def _words(n: int, size: int, method: str) -> str:
    if method == "conditional_test":
        return f"{size:,} of {n:,} rows, drawn at random, are used"
    fitted = "all of them" if size == n else f"{size:,} of them, drawn at random"
    return f"{n:,} rows are read in batches; P^X is fitted on {fitted}, and the verdict is on these"


def _of_labels(job: _Job, unknown: NDArray[np.intp]) -> dict[str, str]:
    if not unknown.any():
        return {}
    names = [f"{job.table.names[j]!r} ({int(unknown[j]):,})" for j in np.flatnonzero(unknown)]
    return {"labels": f"labels that the sample does not have are taken as missing cells, in columns {name_some(names)}"}
