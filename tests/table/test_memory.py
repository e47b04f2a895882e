"""What memory there is, asked of the machine, the control group and the process; the least counts."""

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from knockoffs import KnockoffSelector
from knockoffs.errors import InputError
from knockoffs.table import memory


def test_the_least_of_all_limits(monkeypatch):
    for machine, group, process, least in [
        (5.0, 3.0, 4.0, 3.0),
        (5.0, None, 4.0, 4.0),
        (None, None, None, float("inf")),
    ]:
        monkeypatch.setattr(memory, "_of_machine", lambda machine=machine: machine)
        monkeypatch.setattr(memory, "_of_group", lambda group=group: group)
        monkeypatch.setattr(memory, "_of_process", lambda process=process: process)
        assert memory.available_memory() == least


def test_a_limit_of_the_address_space_is_seen():
    source = str(Path(memory.__file__).parents[2])
    code = "from knockoffs.table.memory import available_memory; print(available_memory())"

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))

    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": source}, preexec_fn=limit
    )
    assert 2**20 < float(run.stdout) < 3 * 2**30


def test_what_is_too_large_is_said(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2.0**30)
    assert memory.must_stream(memory.needed_memory(1000, 10)) is None
    said = memory.must_stream(memory.needed_memory(1_000_000, 50))
    assert "3.0 GiB in memory, and 1.0 GiB are free" in said
    memory.check_memory(100_000, 50, "")
    with pytest.raises(InputError, match="1.5 GiB or more, and 1.0 GiB are free: take fewer"):
        memory.check_memory(1_000_000, 50, "take fewer")


def test_a_covariance_that_is_too_large_is_refused_before_the_work(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 60_000.0)
    X = np.random.default_rng(0).standard_normal((30, 40))
    with pytest.raises(InputError, match="a covariance of 40 columns needs 0.1 MiB or more.*'naive_bayes' or 'hmm'"):
        KnockoffSelector(0.2, feature_model="gaussian", method="knockoffs").fit(X, X[:, 0] + X[:, 1])
