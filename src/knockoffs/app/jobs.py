"""Jobs: each in a process of its own, so many at once, told how far it is, ended for real when it is cancelled.

What runs in the process stands in ``worker``; it speaks by JSON through a pipe. A process that is gone without its last
word was ended from outside, and the job says so.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypedDict

from knockoffs.app.estimate import INSIDE, left_in_all
from knockoffs.app.worker import work
from knockoffs.errors import InputError

ENDED = ("done", "failed", "cancelled", "killed")
PATIENCE = 10.0  # seconds until a process that was told to end must be gone


class About(TypedDict, total=False):
    """What is told of a job besides how far it is."""

    file: str
    table: str
    target: str
    fdr: float | None
    groups: str | None
    asked: str
    guess: dict[str, float]
    command: str
    python: str


class Step(TypedDict):
    """How far a process says that it is."""

    step: str
    done: int | None
    total: int | None


@dataclass
class Job:
    """One piece of work, and how far it is.

    Parameters
    ----------
    name : str
        By which it is asked for.
    folder : Path
        Its own: what it writes, also for a short time.
    about : mapping
        What is told of it besides how far it is; ``about["guess"]``, seconds by step, lets it tell what is left in all.
    state : {"waiting", "running", "done", "failed", "cancelled", "killed"}
    step, done, total
        What is being done, and how many of how many of it; None where that is not known.
    part, took
        Step of the guess that is going on, since ``part_since``; seconds of those that are over.
    error : str
        Why there is no result.
    result : object
        What the work gave back, as JSON has it.
    """

    name: str
    folder: Path
    about: About
    call: tuple[object, ...] = field(repr=False)
    state: str = "waiting"
    step: str = "waiting for its turn"
    done: int | None = None
    total: int | None = None
    error: str = ""
    result: Any = None
    started: float = 0.0
    ended: float = 0.0
    since: float = 0.0
    part: str = ""
    part_since: float = 0.0
    took: dict[str, float] = field(default_factory=dict)
    process: BaseProcess | None = field(default=None, repr=False)
    told_to_end: bool = False

    def view(self, now: float | None = None) -> dict[str, object]:
        """Tell how far it is: seconds it has run, and about how many are left of this step and in all."""
        now = time.monotonic() if now is None else now
        running = self.state == "running"
        took = 0.0 if self.state == "waiting" else (now if running else self.ended) - self.started
        told: dict[str, object] = {
            "id": self.name,
            "state": self.state,
            "step": self.step,
            "done": self.done,
            "total": self.total,
        }
        left = seconds_left(self.done, self.total, now - self.since) if running else None
        told |= {"seconds": round(took, 1), "left": left, "in_all": self._left_in_all(now, left) if running else None}
        return {**told, "error": self.error, "about": dict(self.about)}

    def _left_in_all(self, now: float, left: float | None) -> float | None:
        known = left if INSIDE.get(self.step, self.step) == self.part else None  # of a loop inside a step: not of it
        return left_in_all(self.about.get("guess", {}), self.took, self.part, now - self.part_since, known)


def seconds_left(done: int | None, total: int | None, spent: float) -> float | None:
    """About how many seconds are left of a step, if what is left takes as long as what is done.

    >>> seconds_left(2, 10, 3.0), seconds_left(0, 10, 3.0), seconds_left(3, None, 1.0)
    (12.0, None, None)
    """
    if not done or total is None or done > total:
        return None
    return round(spent / done * (total - done), 1)


class Jobs:
    """Jobs of one kind: so many run at once, others wait for their turn, and too many are refused.

    Parameters
    ----------
    folder : Path
        Where each gets a folder of its own.
    at_once : int
        How many run at a time.
    most_waiting : int
        How many may wait.
    most_kept : int
        How many that have ended are remembered, with their files.
    when_done : callable, optional
        Is handed every job that has its result.
    """

    def __init__(
        self,
        folder: Path,
        *,
        parallel_map: int,
        most_waiting: int = 20,
        most_kept: int = 50,
        when_done: Callable[[Job], None] | None = None,
    ) -> None:
        self.folder, self.parallel_map, self.most_waiting, self.most_kept = (
            folder,
            parallel_map,
            most_waiting,
            most_kept,
        )
        self.when_done = when_done
        self._jobs: dict[str, Job] = {}
        self._lock = threading.RLock()
        self._watchers: list[threading.Thread] = []
        self._closed = False

    def add(self, function: Callable[..., object], *arguments: object, about: About) -> Job:
        """Start a call of a function, or let it wait; it is handed the job's folder first.

        The function must be importable by its name, and its result must be JSON.
        """
        with self._lock:
            if self._closed:
                raise InputError("the app is stopping.")
            if sum(job.state == "waiting" for job in self._jobs.values()) >= self.most_waiting:
                raise InputError(f"{self.most_waiting} jobs are waiting already: let one finish, or cancel one.")
            name = secrets.token_hex(8)
            job = Job(name, self.folder / name, about, (function, *arguments))
            job.folder.mkdir(parents=True)
            self._jobs[name] = job
            self._forget()
            self._start_next()
            return job

    def get(self, name: str) -> Job | None:
        """Job of a name, if there is one."""
        return self._jobs.get(name)

    def all(self) -> list[Job]:
        """All jobs, the oldest first."""
        with self._lock:
            return list(self._jobs.values())

    def cancel(self, name: str) -> None:
        """End a job: its process, and the processes that it has started."""
        with self._lock:
            job = self._jobs[name]
            if job.state == "waiting":
                self._settle(job, "cancelled")
            elif job.state == "running":
                job.told_to_end = True
                assert job.process is not None  # it runs
                _kill(job.process)

    def close(self) -> None:
        """End all jobs and wait until their processes are gone."""
        with self._lock:
            self._closed = True
            for name in list(self._jobs):
                self.cancel(name)
        for watcher in self._watchers:
            watcher.join(PATIENCE)

    # ---- one job ------------------------------------------------------------------------------------------------

    def _start_next(self) -> None:
        running = sum(job.state == "running" for job in self._jobs.values())
        for job in self._jobs.values():
            if running >= self.parallel_map or self._closed:
                return
            if job.state == "waiting":
                self._start(job)
                running += 1

    def _start(self, job: Job) -> None:
        context = get_context("spawn")  # a fork of a process with threads may hang
        ours, theirs = context.Pipe(duplex=False)
        job.process = context.Process(target=work, args=(theirs, str(job.folder), *job.call), daemon=True)
        job.state, job.step, job.started = "running", "starting", time.monotonic()
        job.since = job.started
        try:
            job.process.start()
        except OSError as error:
            self._settle(job, "failed", f"no process could be started: {error}.")
            return
        finally:
            theirs.close()  # or its end would never be seen
        self._watchers = [watcher for watcher in self._watchers if watcher.is_alive()]
        watcher = threading.Thread(target=self._watch, args=(job, ours), daemon=True)
        self._watchers.append(watcher)
        watcher.start()

    def _watch(self, job: Job, pipe: Connection) -> None:
        """Listen to a process until it is gone."""
        last: dict[str, Any] = {}
        process = job.process
        assert process is not None  # it was started
        with suppress(EOFError, OSError), pipe:
            while True:
                message = json.loads(pipe.recv_bytes())
                if "step" in message:
                    with self._lock:
                        _advance(job, message)
                else:
                    last = message
        process.join()
        if "result" in last and self.when_done is not None:
            try:
                self.when_done(job)
            except OSError as error:
                last["kept"] = f"its files could not be kept: {error.strerror or error}."
        with self._lock:
            if "result" in last:
                job.result = last["result"]
                self._settle(job, "done", last.get("kept", ""))
            elif "error" in last:
                self._settle(job, "failed", last["error"])
            elif job.told_to_end:
                self._settle(job, "cancelled")
            else:
                self._settle(job, "killed", how_it_ended(process.exitcode))

    def _settle(self, job: Job, state: str, error: str = "") -> None:
        job.state, job.error, job.ended = state, error, time.monotonic()
        if job.part:
            job.took[job.part] = job.took.get(job.part, 0.0) + job.ended - job.part_since
        job.started = job.started or job.ended
        if state != "done":
            shutil.rmtree(job.folder, ignore_errors=True)
        self._start_next()

    def _forget(self) -> None:
        """Remove the oldest that have ended, where they are too many."""
        ended = [name for name, job in self._jobs.items() if job.state in ENDED]
        for name in ended[: max(len(ended) - self.most_kept, 0)]:
            shutil.rmtree(self._jobs.pop(name).folder, ignore_errors=True)


def _advance(job: Job, message: Step) -> None:
    """Note how far a job is; the clock of a step starts when it does."""
    now, part = time.monotonic(), INSIDE.get(message["step"], message["step"])
    if part in job.about.get("guess", {}) and part != job.part:
        if job.part:
            job.took[job.part] = job.took.get(job.part, 0.0) + now - job.part_since
        job.part, job.part_since = part, now if job.part else job.started
    if message["step"] != job.step or (message["done"] or 0) < (job.done or 0):
        job.since = now
    job.step, job.done, job.total = message["step"], message["done"], message["total"]


def how_it_ended(code: int | None) -> str:
    """Say how a process ended that did not say so itself.

    >>> how_it_ended(-9)
    'the process of this job was ended from outside (SIGKILL), as a system does that has run out of memory.'
    """
    if code is not None and code < 0:
        with suppress(ValueError):
            name = signal.Signals(-code).name
            reason = ", as a system does that has run out of memory" if name == "SIGKILL" else ""
            return f"the process of this job was ended from outside ({name}){reason}."
    return f"the process of this job ended without an answer (exit code {code})."


def _kill(process: BaseProcess) -> None:
    """End a process and those that it has started, which are of its group."""
    if process.exitcode is not None or process.pid is None:
        return
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):  # it may not have made its group yet
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
