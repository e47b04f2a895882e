"""Batches on a real cluster of several processes: the answer of one process to the last bit, when a worker dies too."""

import os
import signal

import joblib
import numpy as np
import pandas as pd
import pytest
from tests.refusals import refuses

from knockoffs.selector import KnockoffSelector
from knockoffs.streaming.rest import Part
from knockoffs.streaming.stream import fit_streamed

dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")

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
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        yield client


def test_the_same_to_the_last_bit_with_one_worker_dying(folder, client, monkeypatch):
    """A worker with batches in its hands gets SIGKILL after the first sum has come."""
    expected = fit(folder, batch_rows=BATCH).W_
    before, add, killed = client.run(os.getpid), Part.__add__, []

    def kill_once(first, second):
        if not killed:
            worker = max(client.processing().items(), key=lambda one: len(one[1]))[0]
            killed.append(before[worker])
            os.kill(before[worker], signal.SIGKILL)
        return add(first, second)

    monkeypatch.setattr(Part, "__add__", kill_once)
    with joblib.parallel_config("dask"):
        found = fit(folder, batch_rows=BATCH).W_
    np.testing.assert_array_equal(found, expected)
    client.wait_for_workers(2, timeout=600)
    assert killed and killed[0] not in client.run(os.getpid).values()
    assert (expected != 0).sum() > 5


def test_knockoffs_of_all_rows_are_kept(folder, client, tmp_path):
    """Drawn here, or by the workers: the same, and those of the sample are the selector's."""
    here = fit(folder, batch_rows=150, keep_knockoffs=tmp_path / "here")
    with joblib.parallel_config("dask"):
        fit(folder, batch_rows=150, keep_knockoffs=tmp_path / "there")
    kept = [pd.read_parquet(tmp_path / name) for name in ("here", "there")]
    pd.testing.assert_frame_equal(*kept)
    assert kept[0].shape == (N, D) and (kept[0] != numbers().drop(columns="y")).all(axis=None)
    sampled = np.sort(np.random.default_rng(3).spawn(1)[0].choice(N, SAMPLED, replace=False))
    np.testing.assert_array_equal(kept[0].iloc[sampled], here.knockoffs_)
    refuses("not empty", fit, folder, keep_knockoffs=tmp_path / "here")


def test_a_dask_frame_is_refused_with_the_line_that_writes_it(folder):
    frame = pytest.importorskip("dask.dataframe").read_parquet(folder)
    for call in (lambda: fit(frame), lambda: KnockoffSelector().fit(frame, frame["y"])):
        refuses(r"frame\.to_parquet\(folder\)", call)
