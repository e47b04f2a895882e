"""Work at the same time goes to the backend that the user chose, and gives the same answer there."""

import ast
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from joblib._parallel_backends import ThreadingBackend

import knockoffs
from knockoffs.machine import parallel
from knockoffs.machine.parallel import in_place, parallel_map
from knockoffs.selector import KnockoffSelector

cloudpickle = pytest.importorskip("cloudpickle")

SOURCE = Path(knockoffs.__file__).parent


class Elsewhere(ThreadingBackend):
    """A backend that works on copies, as other processes do, and counts what it is handed."""

    supports_sharedmem = False
    handed: list[int] = []

    def submit(self, func, callback=None):
        self.handed.append(1)
        return super().submit(cloudpickle.loads(cloudpickle.dumps(func)), callback)

    def apply_async(self, func, callback=None):  # its name before joblib 1.5
        self.handed.append(1)
        return super().apply_async(cloudpickle.loads(cloudpickle.dumps(func)), callback)


class OneByOne(Elsewhere):
    """One that cannot give its results as they come."""

    supports_return_generator = False


@pytest.fixture(params=[Elsewhere, OneByOne])
def elsewhere(request):
    joblib.register_parallel_backend("elsewhere", request.param)
    Elsewhere.handed.clear()
    yield Elsewhere.handed
    joblib.parallel.BACKENDS.pop("elsewhere")


def table(n=150, d=21):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X[:, 1], X[:, 2] = rng.poisson(2, n), X[:, 2] > 0
    return X, X[:, :6].sum(axis=1) + rng.standard_normal(n)


CALLS = {
    "draws": {"n_draws": 3, "feature_model": "gaussian", "estimator": "lasso", "level": "post_hoc"},
    "folds": {
        "importance_options": {"rows": "cross_fitted"},
        "feature_model": "gaussian",
        "estimator": "ridge",
        "importance": "swap",
    },
    "candidates": {"estimator": "best", "feature_model": "gaussian"},
    "classes": {"feature_model": "mixture", "estimator": "lasso"},
    "chains": {"feature_model": "auto", "estimator": "lasso"},
    "tests": {"method": "conditional_test", "feature_model": "gaussian", "estimator": "lasso"},
}


@pytest.mark.parametrize("call", CALLS)
def test_the_backend_of_the_user_is_used_and_the_answer_is_the_same(call, elsewhere, request):
    if call not in ("draws", "chains") and "OneByOne" in request.node.name:
        pytest.skip("the same as the draws")
    X, y = table(d=6 if call in ("candidates", "tests") else 21)
    options = {"fdr": 0.5, "random_state": 0, "verdict": False, "method": "knockoffs", **CALLS[call]}
    here = KnockoffSelector(**options).fit(X, y)
    with joblib.parallel_config("elsewhere", n_jobs=2):
        there = KnockoffSelector(**options).fit(X, y)
    assert elsewhere, "the backend was handed nothing"
    found = [one.W_ if one.p_values_ is None else one.p_values_ for one in (here, there)]
    np.testing.assert_array_equal(*found)


def test_work_in_place_is_done_here(elsewhere):
    """Copies that others write into would be lost: the planted fault is the same work handed out."""
    values = np.zeros(4)

    def write(j):
        values[j] = j + 1

    tasks = [joblib.delayed(write)(j) for j in range(4)]
    with joblib.parallel_config("elsewhere", n_jobs=2):
        list(parallel_map(tasks, None))
        np.testing.assert_array_equal(values, 0)
        in_place(tasks, 2)
    np.testing.assert_array_equal(values, [1, 2, 3, 4])


def test_large_tasks_are_made_only_when_a_worker_is_near():
    """At most two for each worker wait: the memory of batches is bounded, however quick they are."""
    done, ahead = [], []

    def tasks():
        for k in range(200):
            ahead.append(k - len(done))
            yield joblib.delayed(done.append)(k)

    list(parallel_map(tasks(), 2, threads=True, large=True))
    assert len(done) == 200 and max(ahead) <= 2 * 2 + 2  # those at work, beside those that wait


LONG = """
import os, time
from joblib import delayed
from knockoffs.machine.parallel import parallel_map
def work(k):
    os.write(1, b"at work\\n")
    time.sleep(600)
list(parallel_map((delayed(work)(k) for k in range(4)), 2))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_their_parent(how):
    """Soon; a worker of joblib waits for other work for five minutes."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE.parent)}
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", LONG], env=environment, text=True, **quiet) as parent:
        started = [parent.stdout.readline() for _ in range(2)]
        workers = children(parent.pid)
        parent.send_signal(how)
    assert started == ["at work\n"] * 2
    until = time.monotonic() + 1200
    while any(map(runs, workers)) and time.monotonic() < until:
        time.sleep(0.1)
    assert len(workers) >= 2 and not any(map(runs, workers))


def test_a_worker_whose_caller_is_gone_does_not_begin(monkeypatch):
    """The program was killed while its workers started: they would do the task, and wait for somebody to take it."""
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(parallel, "current_process", lambda: SimpleNamespace(name="LokyProcess-1"))
    parallel._elsewhere(-1, pow, (2, 3), {})
    assert ended == [1]


def status(pid):
    return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()


def children(pid):
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                found += [int(place.name)] if int(status(place.name)[1]) == pid else []
    return found


def runs(pid):
    with contextlib.suppress(OSError):
        return status(pid)[0] != "Z"
    return False


def test_nobody_else_starts_parallel_work():
    """So that nobody chooses a backend in the user's place."""
    users = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Parallel":
                users.add(path.relative_to(SOURCE).as_posix())
    assert users == {"machine/parallel.py"}
