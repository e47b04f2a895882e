"""Threads by what the work is worth and the machine gives."""

import pytest
from threadpoolctl import threadpool_info

from knockoffs.machine import threads


def openmp_threads():
    import sklearn.ensemble  # noqa: F401 - loads the OpenMP that boosting uses

    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp"}


def test_a_small_table_gets_one_thread_and_the_setting_comes_back():
    before = openmp_threads()
    with threads.worthwhile_threads(1000) as n:
        assert n == 1
        assert openmp_threads() == {1}
    assert openmp_threads() == before


def test_a_large_table_gets_the_cores_that_there_are():
    with threads.worthwhile_threads(threads.SMALL) as n:
        assert n == threads.available_cores()


@pytest.mark.parametrize(("written", "expected"), [("50000 100000", 1), ("200000 100000", 2), ("max 100000", 64)])
def test_the_quota_of_a_container_counts(written, expected, monkeypatch):
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.setattr(threads.Path, "read_text", lambda self: written)
    assert threads.available_cores() == expected
