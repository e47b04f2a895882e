"""Batches on a real cluster of several processes: the answer of one process to the last bit, when a worker dies too."""

import os
import signal

import numpy as np
import pandas as pd
import pytest

from knockoffs.estimator import KnockoffSelector
from knockoffs.sums import cluster as on_dask
from knockoffs.sums.stream import fit_streamed

distributed = pytest.importorskip("distributed")

N, D, SAMPLED, BATCH = 900, 12, 300, 20


def numbers():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) @ (np.eye(D) + 0.2) + np.arange(D)
    y = (X - X.mean(0))[:, :6].sum(axis=1) + 2 * rng.standard_normal(N)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(D)]).assign(y=y)


def fit(path, target="y", *, options=None, **more):
    common = {"fdr": 0.2, "feature_model": "gaussian", "estimator": "lasso", "verdict": False, "random_state": 3}
    selector = KnockoffSelector(**{**common, **(options or {})})
    return fit_streamed(selector, path, target, **{"sample_rows": SAMPLED, **more})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    frame = numbers()
    for k, (start, stop) in enumerate([(0, 333), (333, 650), (650, N)]):
        frame[start:stop].to_parquet(folder / f"part{k}.parquet", row_group_size=70, index=False)
    return folder


@pytest.fixture(scope="module")
def client():
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        yield client


def test_the_same_to_the_last_bit_with_one_worker_dying(folder, client, monkeypatch):
    """A worker with batches in its hands gets SIGKILL after the first sum has come."""
    expected = fit(folder, batch_rows=BATCH).W_
    before, result, killed = client.run(os.getpid), on_dask._result, []

    def kill_once(*run):
        found = result(*run)
        if not killed:
            worker = max(client.processing().items(), key=lambda one: len(one[1]))[0]
            killed.append(before[worker])
            os.kill(before[worker], signal.SIGKILL)
        return found

    monkeypatch.setattr(on_dask, "_result", kill_once)
    np.testing.assert_array_equal(fit(folder, batch_rows=BATCH, client=client).W_, expected)
    client.wait_for_workers(2, timeout=60)
    assert killed and killed[0] not in client.run(os.getpid).values()
    assert (expected != 0).sum() > 5


def test_a_sum_in_the_order_of_arrival_is_seen(folder, client, monkeypatch):
    """The planted fault: a batch twice, another not at all."""
    expected = fit(folder, batch_rows=BATCH).W_
    run = on_dask._run

    def wrong(work, rows, features, starts, batches, first, n):
        return run(work, rows, features, starts, [*batches[:-1], batches[0]], first, n)

    monkeypatch.setattr(on_dask, "_run", wrong)
    assert np.abs(fit(folder, batch_rows=BATCH, client=client).W_ - expected).max() > 1e-4
