"""Threads by what the work is worth and the machine gives; freed memory goes back, where the system can."""

import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from knockoffs import KnockoffSelector
from knockoffs.features import source
from knockoffs.machine import parallel


def pools():
    import sklearn.ensemble  # noqa: F401 - loads the OpenMP that boosting uses

    return {(pool["user_api"], pool["filepath"]): pool["num_threads"] for pool in threadpool_info()}


def test_a_small_table_gets_one_thread_and_the_setting_comes_back():
    before = pools()
    with parallel.worthwhile_threads(1000) as n:
        assert n == 1
        assert set(pools().values()) == {1} and {api for api, _ in pools()} >= {"blas", "openmp"}
    assert pools() == before


def test_never_more_than_there_were(monkeypatch):
    """In a worker, or where a user has set OMP_NUM_THREADS, a large table does not get all cores."""
    monkeypatch.setattr(parallel, "cpu_count", lambda: 64)
    monkeypatch.setattr(parallel, "_running_elsewhere", lambda: 0)
    with threadpool_limits(limits=1):
        before = pools()
        with parallel.worthwhile_threads(parallel.SMALL) as n:
            assert n == 1 and pools() == before


def test_linear_algebra_has_one_thread_always(monkeypatch):
    """Its last bits depend on the number, so that the answer would depend on cores, load and n_jobs."""
    monkeypatch.setattr(parallel, "free_cores", lambda: 2)
    with threadpool_limits(limits=2), parallel.worthwhile_threads(parallel.SMALL) as n:
        assert n == 2
        assert {count for (api, _), count in pools().items() if api == "blas"} == {1}


def test_a_large_table_gets_the_cores_that_are_free(monkeypatch):
    pools()
    monkeypatch.setattr(parallel, "cpu_count", lambda: 4)
    monkeypatch.setattr(parallel.os, "cpu_count", lambda: 8)
    for elsewhere, free in ((0, 4), (2, 3), (6, 1), (100, 1)):  # half of what runs is taken to run on our half
        monkeypatch.setattr(parallel, "_running_elsewhere", lambda count=elsewhere: count)
        assert parallel.free_cores() == free


def test_what_runs_elsewhere_is_counted_without_our_own_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "PROC", tmp_path)
    (tmp_path / "loadavg").write_text("11.03 11.17 9.18 7/151 511\n")
    for task, state in enumerate("RRS"):
        (tmp_path / "self" / "task" / str(task)).mkdir(parents=True)
        (tmp_path / "self" / "task" / str(task) / "stat").write_text(f"12 (a) R b) {state} 1 2 3\n")
    assert parallel._running_elsewhere() == 5


def test_without_any_of_it_all_cores_are_free(tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "PROC", tmp_path / "nowhere")
    assert parallel._running_elsewhere() == 0
    assert parallel.free_cores() == parallel.cpu_count() >= 1


def test_limits_that_overlap_in_threads_are_restored_by_the_last():
    """First in, first out, as fits in a thread pool end: one thread while any of them works, then as before."""
    with threadpool_limits(limits=2):
        before = pools()
        first, second = ExitStack(), ExitStack()
        first.enter_context(parallel.one_blas_thread())
        second.enter_context(parallel.worthwhile_threads(1000))
        first.close()
        assert {count for (api, _), count in pools().items() if api == "blas"} == {1}
        second.close()
        assert pools() == before


def test_linear_algebra_has_one_thread_from_the_start_of_a_fit_and_the_answer_is_the_same(monkeypatch):
    """Columns that others determine are found before the procedure runs, by linear algebra too."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 12))
    options = {"fdr": 0.3, "estimator": "lasso", "method": "knockoffs", "verdict": False, "random_state": 0}
    seen, answers = [], []

    def read_features(*args, **kwargs):
        seen.extend(count for (api, _), count in pools().items() if api == "blas")
        return original(*args, **kwargs)

    original = source.read_features
    monkeypatch.setattr(source, "read_features", read_features)
    for limit in (1, 2):
        with threadpool_limits(limits=limit):
            answers.append(KnockoffSelector(**options).fit(X, X[:, :4].sum(axis=1)).W_)
    assert set(seen) == {1}
    np.testing.assert_array_equal(*answers)


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux" or parallel._trim() is None, reason="glibc")
def test_what_was_freed_goes_back():
    """Of 2000 blocks of 100 kB in the heap every other one is kept: the holes go back, though the top is in use."""
    blocks = [np.ones(12_500) for _ in range(2000)]
    kept = blocks[1::2]
    before = resident()
    del blocks
    parallel.trim_memory()
    assert before - resident() > 50e6
    assert len(kept) == 1000


def test_elsewhere_nothing_is_done(monkeypatch):
    monkeypatch.setattr(parallel, "_trim", lambda: None)
    parallel.trim_memory()
