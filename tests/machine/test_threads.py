"""Threads by what the work is worth and the machine gives."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import knockoffs
from knockoffs.machine import threads


def pools():
    import sklearn.ensemble  # noqa: F401 - loads the OpenMP that boosting uses

    return {(pool["user_api"], pool["filepath"]): pool["num_threads"] for pool in threadpool_info()}


def test_a_small_table_gets_one_thread_and_the_setting_comes_back():
    before = pools()
    with threads.worthwhile_threads(1000) as n:
        assert n == 1
        assert set(pools().values()) == {1} and {api for api, _ in pools()} >= {"blas", "openmp"}
    assert pools() == before


def test_never_more_than_there_were(monkeypatch):
    """In a worker, or where a user has set OMP_NUM_THREADS, a large table does not get all cores."""
    monkeypatch.setattr(threads, "available_cores", lambda: 64)
    monkeypatch.setattr(threads, "_running_elsewhere", lambda: 0)
    with threadpool_limits(limits=1):
        before = pools()
        with threads.worthwhile_threads(threads.SMALL) as n:
            assert n == 1 and pools() == before


def test_linear_algebra_has_one_thread_always(monkeypatch):
    """Its last bits depend on the number, so that the answer would depend on cores, load and n_jobs."""
    monkeypatch.setattr(threads, "free_cores", lambda: 2)
    with threadpool_limits(limits=2), threads.worthwhile_threads(threads.SMALL) as n:
        assert n == 2
        assert {count for (api, _), count in pools().items() if api == "blas"} == {1}


def test_a_large_table_gets_the_cores_that_are_free(monkeypatch):
    pools()
    monkeypatch.setattr(threads, "available_cores", lambda: 4)
    monkeypatch.setattr(threads.os, "cpu_count", lambda: 8)
    for elsewhere, free in ((0, 4), (2, 3), (6, 1), (100, 1)):  # half of what runs is taken to run on our half
        monkeypatch.setattr(threads, "_running_elsewhere", lambda count=elsewhere: count)
        assert threads.free_cores() == free


def test_what_runs_elsewhere_is_counted_without_our_own_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "PROC", tmp_path)
    (tmp_path / "loadavg").write_text("11.03 11.17 9.18 7/151 511\n")
    for task, state in enumerate("RRS"):
        (tmp_path / "self" / "task" / str(task)).mkdir(parents=True)
        (tmp_path / "self" / "task" / str(task) / "stat").write_text(f"12 (a) R b) {state} 1 2 3\n")
    assert threads._running_elsewhere() == 5


FILES = {  # of both versions, in the group itself and around it
    "2": ("0::/", {"cpu.max": "{quota} 100000"}),
    "2, around": ("0::/a/b", {"cpu.max": "{quota} 100000", "a/cpu.max": "max 100000", "a/b/other": ""}),
    "1": ("3:memory:/x\n2:cpu,cpuacct:/a", {"cpu,cpuacct/a/cpu.cfs_quota_us": "{quota}",
                                            "cpu,cpuacct/a/cpu.cfs_period_us": "100000"}),
    "1, around": ("1:cpu:/docker/abc", {"cpu/cpu.cfs_quota_us": "{quota}", "cpu/cpu.cfs_period_us": "100000"}),
}  # fmt: skip


@pytest.mark.parametrize("version", FILES)
@pytest.mark.parametrize(
    ("quota", "expected"), [("50000", 1), ("250000", 2), ("max", 64), ("-1", 64), ("nonsense", 64)]
)
def test_the_quota_of_a_container_counts(version, quota, expected, tmp_path, monkeypatch):
    place, files = FILES[version]
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text(place + "\n")
    for name, content in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content.format(quota=quota))
    monkeypatch.setattr(threads, "PROC", tmp_path)
    monkeypatch.setattr(threads, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    if quota == "-1" and version.startswith("2"):
        pytest.skip("version 2 says max")
    assert threads.available_cores() == expected


def test_without_any_of_it_all_cores_are_free(tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "PROC", tmp_path / "nowhere")
    assert threads._running_elsewhere() == 0
    assert threads.free_cores() == threads.available_cores() >= 1


def test_a_function_of_a_table():
    @threads.threads_by_table
    def seen(X, *, more):
        return more, set(pools().values())

    for table in (np.zeros((3, 4)), [[1, 2]], knockoffs.read_table(np.eye(4))):
        assert seen(table, more=5) == (5, {1})
    assert seen.__name__ == "seen"
