"""A selection from a table larger than memory: its rows come in batches, and nothing of the size of the table is kept.

P^X is fitted on a random sample of the rows, which is the first batch; the others are the runs of rows of the file,
less those of the sample: every row has one knockoff, for the choice of a model as for the sums. The knockoffs of every
batch are drawn from a stream of its own, by its number, and the batches are added in a fixed order (``tower.py``), so
that neither a stop on the way nor the number of workers changes the answer. Which model of y is used is decided on the
sample. A sample that is small for its columns leaves the covariance of P^X to all rows (``moments.py``).
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from knockoffs.defaults import task_for
from knockoffs.diagnostics.verdict import Budget
from knockoffs.errors import InputError, name_some
from knockoffs.features.moments import ByMoments, folds_for, settle_by_moments, wants_more_rows, warn_again
from knockoffs.features.source import Fitted, FittedSampler, KnockoffSource, fills_cells, read_features
from knockoffs.importance.scores import Scores, mean_of
from knockoffs.machine.threads import worthwhile_threads
from knockoffs.procedure import Streams, decide, judge
from knockoffs.progress import showing, stage, track
from knockoffs.response.gram import FoldGrams
from knockoffs.sampling.pair import Pair
from knockoffs.seeds import as_generator, stream_at
from knockoffs.selection import Selection
from knockoffs.selector import KnockoffSelector, Plan
from knockoffs.streaming.batch import Batch, Keep, StreamedDraw, Work
from knockoffs.streaming.cluster import connect, on_cluster
from knockoffs.streaming.incoming import (
    check_classes,
    feature_names,
    open_table,
    place_for_knockoffs,
    target_and_weights,
    target_of_rows,
)
from knockoffs.streaming.moments import MomentWork
from knockoffs.streaming.state import read_state, write_state
from knockoffs.streaming.statistic import LassoSum, SampleScores, ScoreSum, settle_statistic
from knockoffs.streaming.tower import Part, RowSum, Tower
from knockoffs.table.batches import JOURNAL, Blocks, open_blocks
from knockoffs.table.rows import Rows
from knockoffs.table.table import MIN_ROWS, Table
from knockoffs.table.target import Target
from knockoffs.table.types import Frame, Json

if TYPE_CHECKING:
    import dask.dataframe as dd
    from distributed import Client

MOST_SAMPLED, SAMPLE_CELLS, FEWEST_SAMPLED = 100_000, 2**24, 2_000  # rows, cells, rows of the sample
MOST_SCORED = 1_000_000  # further rows on which a model that is no lasso is scored: a minute of trees, 50 columns
BETWEEN = 10.0  # seconds between two notes in the journal
STATE, MOMENTS = "state", "state-moments"
OURS = (f"{STATE}*",)


def fit_streamed(
    selector: KnockoffSelector,
    path: str | os.PathLike[str] | dd.DataFrame | Rows,
    target: str,
    *,
    weights: str | None = None,
    sample_rows: int | None = None,
    batch_rows: int | None = None,
    work: str | Path | None = None,
    resume: bool = True,
    client: Client | str | None = None,
    keep_knockoffs: str | Path | None = None,
) -> KnockoffSelector:
    """Fit a selector to a table of any number of rows, here or on a cluster.

    Parameters
    ----------
    selector : KnockoffSelector
        Its options are used as by ``fit``, and it becomes fitted; ``table_`` and ``knockoffs_`` are of the sample. The
        target and the weights stay in memory, 8 bytes a row each.
    path : path or dask DataFrame
        A parquet file, a folder of them, or a csv or tsv file. Of a dask DataFrame the partitions are the batches.
    target : str
        Column to be explained.
    weights : str, optional
        Column of sample weights.
    sample_rows : int, optional
        Rows, drawn at random, on which P^X is fitted, the verdict is given and a model of y is chosen; by default
        100,000, or fewer where there are many columns. Of fewer than 50 a column the covariance of P^X is not taken
        from them but from all rows, where P^X is told by one.
    batch_rows : int, optional
        Rows of a batch; by default some four million cells. The draw depends on it. Not of a dask DataFrame.
    work : path, optional
        Folder in which the state is kept, so that a run that was stopped goes on; removed at the end.
    resume : bool
        False does not go on with a stopped run.
    client : distributed.Client or str, optional
        Cluster whose workers work on the batches, or its scheduler's address. They must have the same version of this
        package, and find the files under the same path. P^X and the model of y are fitted here.
    keep_knockoffs : path, optional
        Folder for the knockoffs of all rows (of the first draw), one parquet file a batch, which is made; without it
        they are not kept.

    Returns
    -------
    KnockoffSelector
        The selector itself.
    """
    if selector.knockoffs is not None:
        raise InputError("knockoffs were brought along: they are not read in batches. Leave them out.")
    if selector.n_knockoffs != 1:
        raise InputError(f"n_knockoffs={selector.n_knockoffs}: a table in batches takes one knockoff of each feature.")
    rows = open_table(path, [target, *([weights] if weights else []), *(selector.drop or [])])
    features = feature_names(rows, target, weights, selector.drop)
    values, row_weights = target_and_weights(rows, target, weights)
    size = default_sample(len(rows), len(features)) if sample_rows is None else min(int(sample_rows), len(rows))
    if size < MIN_ROWS:
        raise InputError(f"sample_rows={sample_rows}: P^X needs {MIN_ROWS} rows or more.")
    rng = as_generator(selector.random_state)
    sampled = np.arange(len(rows))
    if size < len(rows):
        sampled = np.sort(rng.spawn(1)[0].choice(len(rows), size, replace=False))
    source = selector._source()
    if selector.dependent == "drop":
        raise InputError(f"dependent={selector.dependent!r}: not of a table in batches. Name the columns in drop.")
    frame, kinds, groups = rows.take(features, sampled), selector.kinds, selector.groups
    table, notes = read_features(source, frame, kinds=kinds, groups=groups, min_rows=MIN_ROWS)
    y = target_of_rows(values, row_weights, sampled, table, task_for(selector.task, selector.estimator))
    y = replace(y, name=target)
    seen = y.at(sampled)
    check_classes(y, seen)
    selector._generator = deepcopy(rng)
    streams = Streams(*rng.spawn(4))
    plan = selector._plan(table, seen, notes, n_rows=None)
    said = plan.notes | dict(plan.choice.notes) | {"stream": _words(len(rows), size, plan.method)}
    with showing(bool(selector.verbose)), worthwhile_threads(table.X.size):
        if plan.method == "conditional_test":
            again = as_generator(deepcopy(selector._generator))
            selection = selector._test(table, seen, source, replace(plan, notes=said), again)
        else:
            stage("fitting P^X")
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                settled = source(table, rng=streams.fit, n_jobs=selector.n_jobs)
            more = size < len(rows) and wants_more_rows(source, settled, table)
            warn_again(told, more_rows=more)
            starts = rows.starts(len(features), batch_rows)
            job = _Job(rows, table.names, table, y, settled, sampled, starts)
            blocks, resumed = None, False
            if work is not None:
                resumed = resume and (Path(work) / JOURNAL).is_file()
                fingerprint = _fingerprint(selector, job, target, weights, streams, keep_knockoffs)
                blocks = open_blocks(Path(work), fingerprint, suffix=".npz", resume=resume, ours=OURS)
            with connect(client, rows) as cluster:
                how = _How(blocks, cluster, place_for_knockoffs(keep_knockoffs, table, resumed))
                job = _by_all_rows(source, job, how, selector.n_jobs) if more else job
                selection = _select(selector, job, plan, seen, streams, how, said)
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
    """The rows, and what is known of them before the batches."""

    rows: Rows
    features: tuple[str, ...]
    table: Table
    target: Target
    settled: FittedSampler
    sampled: NDArray[np.intp]
    starts: NDArray[np.intp]

    @property
    def n_batches(self) -> int:
        return len(self.starts) - 1

    @property
    def whole(self) -> bool:
        """Whether the sample is the whole table."""
        return len(self.sampled) == len(self.rows)

    def work(self) -> Work:
        """Return what all batches share, before there are draws."""
        fills = fills_cells(self.settled.model)
        return Work(self.rows.label, self.table.columns, self.table.feature_of, self.settled.sampler, fills)

    def batch(self, number: int, X_tilde: NDArray | None = None) -> Batch:
        """Batch with its target; X_tilde are the knockoffs of the sample, where those of all rows are kept."""
        start, stop = self.starts[number : number + 2]
        first, last = np.searchsorted(self.sampled, [start, stop])
        sampled = self.sampled[first:last]
        rest = np.setdiff1d(np.arange(start, stop), sampled, assume_unique=True)
        kept = None if X_tilde is None else X_tilde[first:last]
        return Batch(number, int(start), sampled - start, self.target.at(rest), kept)


def _select(
    selector: KnockoffSelector,
    job: _Job,
    plan: Plan,
    seen: Target,
    streams: Streams,
    how: _How,
    notes: Mapping[str, str],
) -> Selection:
    """Sample first, then the batches, then W."""
    work = job.work()
    draws: list[StreamedDraw] = []
    firsts: list[RowSum | None] = []
    moved: list[NDArray[np.bool_]] = []
    pairs: list[Pair] = []
    for rng in streams.draws(plan.promise.n_draws):
        draw_stream, swap_stream, score_stream = rng.spawn(3)
        knockoffs, rest = stream_at(draw_stream, 0).spawn(2)
        pair = work.draw(job.table.X, knockoffs)
        known = work.seen(pair, seen)
        S = swap_stream.random(known.n_features) < 0.5
        swapped = known.swap(S)
        statistic = settle_statistic(
            plan.choice.statistic, swapped, seen, rng=score_stream, n_jobs=selector.n_jobs, whole=job.whole
        )
        firsts.append(statistic.of(swapped, seen, rest) if isinstance(statistic, LassoSum) else None)
        moved.append(~known.copied)
        draws.append(StreamedDraw(draw_stream, S, statistic))
        pairs += [] if pairs else [pair]  # of the first draw alone
    total = Part(tuple(firsts), tuple(moved), np.zeros(len(job.table.columns), dtype=np.intp))
    work = replace(work, draws=tuple(draws), keep=how.keep)
    if not job.whole and (how.keep or any(not isinstance(draw.statistic, SampleScores) for draw in draws)):
        summed = _add_batches(job, work, _wanted(job, draws, streams), how, pairs[0].X_tilde)
        total = total if summed is None else total + summed
    elif how.keep is not None:
        everything = Batch(0, 0, job.sampled, job.target, pairs[0].X_tilde)
        how.keep.write(everything, np.zeros(len(job.rows), dtype=bool), None)
    scores = [_finish(*one) for one in zip(draws, total.totals, total.moved, strict=True)]
    W = np.stack([plan.rule(one.Z, one.Z_tilde) for one in scores])
    said = {**notes, **job.settled.notes, **draws[0].statistic.notes, **_of_labels(job, total.n_unknown)}
    scored = total.totals[0]
    if isinstance(scored, ScoreSum):
        said["rows"] = f"the model of the target is scored on {scored.weight:,.0f} rows outside of the sample"
    return Selection(
        feature_names=job.table.feature_names,
        fdr=plan.promise.fdr,
        method="knockoffs",
        offset=plan.promise.offset,
        pair=pairs[0],
        feature_model=job.settled.model,
        scores=mean_of(scores),
        draws=W,
        verdict=judge(pairs[0], job.table, streams.verdict, Budget()) if selector.verdict else None,
        notes=said,
        **decide(W, plan.promise),
    )


def _finish(draw: StreamedDraw, total: Any, moved: NDArray[np.bool_]) -> Scores:
    """Scores of a draw, swapped back."""
    statistic = draw.statistic
    scores = statistic.found if isinstance(statistic, SampleScores) else statistic.scores(total)
    return scores.swap(draw.S).tie(~moved)


@dataclass(frozen=True)
class _How:
    """Where the batches are worked on, and what is kept of them."""

    blocks: Blocks | None = None
    client: Client | None = None
    keep: Keep | None = None


def _by_all_rows(source: KnockoffSource, job: _Job, how: _How, n_jobs: int | None) -> _Job:
    """Job whose P^X has the covariance of all rows."""
    model = job.settled.model
    assert isinstance(source, Fitted) and isinstance(model, ByMoments)
    stage("moments of all rows")
    folds = folds_for(len(job.rows), model.coordinates(job.table.X[:1]).shape[1])
    work = MomentWork(job.rows.label, job.table.columns, model, folds)
    total = _add_batches(job, work, range(job.n_batches), replace(how, keep=None), key=MOMENTS)
    assert total is not None and isinstance(total.totals[0], FoldGrams)
    grams = total.totals[0].plain
    parts = [np.array(part) for part in zip(*((g.rows, g.mean, g.scatter) for g in grams), strict=True)]
    settled = settle_by_moments(source, job.settled, job.table, *parts, n_jobs=n_jobs)
    return replace(job, settled=settled)


def _add_batches(
    job: _Job,
    work: Work | MomentWork,
    wanted: Sequence[int],
    how: _How,
    X_tilde: NDArray | None = None,
    key: str = STATE,
) -> Part | None:
    """Add up the batches, in their order, from where the journal stands; here, or by the workers of a cluster."""
    kept = None if how.keep is None else X_tilde
    order = list(wanted)
    if how.keep is not None:  # knockoffs of the others are drawn and kept, no more
        order += sorted(set(range(job.n_batches)) - set(wanted))
    tower: Tower[Part] = Tower()
    if how.blocks is not None:
        tower = how.blocks.find(key, partial(read_state, readers=work.readers)) or tower
    last, n = time.monotonic(), len(wanted)
    left = order[tower.done :]
    batches = (job.batch(number, kept) for number in left)
    if how.client is None:
        found = _here(job, work, left, batches, tower.done, n)
        total = len(left)
    else:
        found, total = on_cluster(how.client, job.rows, job.features, work, left, batches, tower.done, n, job.starts)
    for part, size, level in track(found, "batches of rows", total=total):
        tower = tower.put(part, size, level)
        if how.blocks is not None and time.monotonic() - last >= BETWEEN:
            how.blocks.keep(key, partial(write_state, tower=tower))
            last = time.monotonic()
    return tower.total()


def _here(
    job: _Job, work: Work | MomentWork, numbers: Sequence[int], batches: Iterator[Batch], done: int, n: int
) -> Iterator[tuple[Part, int, int]]:
    """Summands of batches, one after another; from number ``n`` on they are drawn and not scored."""
    for k, (_, frame) in enumerate(_frames(job, numbers), start=done):
        yield work.part(frame, next(batches), scored=k < n), 1, 0


def _wanted(job: _Job, draws: Sequence[StreamedDraw], streams: Streams) -> list[int]:
    """Batches that are read: all for sums of products, as many as give enough rows, at random, for other scores."""
    n = job.n_batches
    if all(isinstance(draw.statistic, SampleScores) for draw in draws):
        return []
    needed = -(-MOST_SCORED * n // len(job.rows))
    if needed >= n or any(draw.statistic.every_row for draw in draws):
        return list(range(n))
    return sorted(streams.test.choice(n, needed, replace=False).tolist())


def _frames(job: _Job, wanted: Sequence[int]) -> Iterator[tuple[int, Frame]]:
    """Numbers and frames of some batches."""
    yield from zip(wanted, job.rows.frames(job.features, job.starts, wanted), strict=True)


# ---- the journal -------------------------------------------------------------------------------------------------


def _fingerprint(
    selector: KnockoffSelector, job: _Job, target: str, weights: str | None, streams: Streams, keep: str | Path | None
) -> dict[str, Json]:
    """Write down what must be the same for a stopped run to go on."""
    options = {name: repr(value) for name, value in selector.get_params(deep=False).items() if name != "n_jobs"}
    state = json.dumps(streams.draw.bit_generator.state, default=str)
    return {
        "target": [target, weights],
        "options": options,
        "rows": [len(job.sampled), hashlib.sha256(job.starts.tobytes()).hexdigest()],
        "kept knockoffs": str(keep),
        "random": hashlib.sha256(state.encode()).hexdigest(),
        "files": job.rows.fingerprint(),
    }


# ---- words --------------------------------------------------------------------------------------------------------


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
