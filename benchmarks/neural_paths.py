"""Neural networks along lambda paths: correctness, speed and memory on one device.

Run from the root of the repository::

    PYTHONPATH=src python benchmarks/neural_paths.py --device cuda
    PYTHONPATH=src python benchmarks/neural_paths.py --device cpu --rows 20000
    PYTHONPATH=src python benchmarks/neural_paths.py --device cpu --peer .benchmarks/knockpy/bin/python

Prints one line a measurement: first whether path losses equal plain predictions (float32 on the device, and a float64
reference on the CPU for a few columns), then the time of all path losses (device synchronised, training
excluded), the time of training and saliency, and the largest memory used. ``--tf32`` repeats the path losses
with TF32 and says how far they move. ``--peer`` also times knockpy's Swap Integral of DeepPINK, on as many rows and
columns; its network has one layer of 100 and its grid ten points to lambda = 5. The exit status is 1 if a check of
correctness fails.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from knockoffs import NeuralClassifier
from knockoffs.importance.paths.follow import path_losses
from knockoffs.importance.saliency import gradient_saliency, integrated_gradients
from knockoffs.response.torch_model import choose_device

PEER = """
import json, sys, time
import numpy as np
from knockpy.knockoff_stats import DeepPinkStatistic

data = np.load(sys.argv[1])
X, X_tilde, y = data["X"], data["X_tilde"], data["y"]
statistic = DeepPinkStatistic()
statistic.fit(X, X_tilde, y, train_kwargs={"verbose": False, "num_epochs": 5})
start = time.process_time()
statistic.swap_path_feature_importances(np.concatenate([X, X_tilde], axis=1), y)
print(json.dumps(time.process_time() - start))
"""

LAMS = np.linspace(0, 10, 21)
LOSSES = ("accuracy", "log_loss")


def timed(device: torch.device, work: Callable[[], Any], repeats: int = 1) -> tuple[float, float, Any]:
    """Wall and CPU seconds of the fastest of some runs, and the result of the last."""
    best = (np.inf, np.inf)
    result = None
    for _ in range(repeats):
        synchronise(device)
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        synchronise(device)
        best = min(best, (time.perf_counter() - wall, time.process_time() - cpu))
    return *best, result


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak(device: torch.device) -> str:
    if device.type == "cuda":
        used = torch.cuda.max_memory_allocated(device) / 2**20
        torch.cuda.reset_peak_memory_stats(device)
        return f"{used:.0f} MiB on the device"
    import resource

    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MiB resident, the largest so far"


def problem(n: int, columns: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cubic labels of five columns: [X, X_tilde] (n, 2d), its fake (each half the other) and y (n,)."""
    XX = np.random.default_rng(seed).standard_normal((n, columns))
    score = XX[:, 0] * XX[:, 1] * XX[:, 2] + XX[:, 3] ** 2 + XX[:, 4]
    return XX, np.roll(XX, columns // 2, axis=1), np.argsort(np.argsort(score)) * n_classes // n


def check(found: dict, model: NeuralClassifier, XX: np.ndarray, fake: np.ndarray, y: np.ndarray) -> bool:
    """Compare path losses with plain predictions on a few columns and lambdas."""
    worst = dict.fromkeys(LOSSES, 0.0)
    for j in (0, 3, XX.shape[1] // 2, XX.shape[1] - 1):
        for at in (0, 1, 2, 20):
            moved = XX.copy()
            moved[:, j] += LAMS[at] * (fake - XX)[:, j]
            true = model.predict_proba(moved)[np.arange(len(y)), y]
            expected = {"accuracy": 1 - model.score(moved, y), "log_loss": -np.log(true.clip(1e-15)).mean()}
            for loss in LOSSES:
                gap = abs(found[loss][j, at] - expected[loss]) / max(1, abs(expected[loss]))
                worst[loss] = max(worst[loss], gap)
    right = worst["log_loss"] < 1e-5 and worst["accuracy"] <= 2 / len(XX) + 1e-12  # a tie may fall either way
    print(f"check     path losses against predictions: {worst} {'ok' if right else 'WRONG'}")
    return right


def paths(device: torch.device, n: int, epochs: int, tf32: bool) -> bool:
    """All 200 columns, 21 lambdas, 4 x 100 units."""
    XX, fake, y = problem(n, 200, 10, seed=0)
    model = NeuralClassifier(epochs=epochs, patience=None, random_state=0, device=device)
    model.fit(XX[:200], y[:200])  # kernels are loaded once
    wall, cpu, _ = timed(device, lambda: model.fit(XX, y))
    print(f"training  n={n} 200 columns 4x100, {epochs} epochs: {wall:.2f} s wall, {cpu:.2f} s CPU; {peak(device)}")
    found = {}
    for loss in LOSSES:
        path = path_losses(model, XX, fake, y, loss)
        wall, cpu, found[loss] = timed(device, lambda path=path: path.at(LAMS), 1 if device.type == "cpu" else 2)
        print(f"paths     21 lambdas, {loss}: {wall:.3f} s wall, {cpu:.2f} s CPU; {peak(device)}")
    if tf32 and device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = True
        wall, _, rough = timed(device, lambda: path.at(LAMS), 2)
        torch.backends.cuda.matmul.allow_tf32 = False
        print(f"tf32      {wall:.3f} s wall; largest change of a mean loss {np.abs(rough - found[loss]).max():.1e}")
    options = {"feature_of": np.arange(100), "rng": np.random.default_rng(0)}
    for score in (gradient_saliency, integrated_gradients):
        wall, _, _ = timed(device, lambda score=score: score(model, XX[:, :100], XX[:, 100:], y, **options))
        print(f"saliency  {score.__name__}: {wall:.3f} s wall; {peak(device)}")
    return check(found, model, XX, fake, y)


def peer(python: str, n: int, columns: int = 200) -> None:
    """CPU time of knockpy's Swap Integral of DeepPINK."""
    XX, _, y = problem(n, columns, 2, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "data.npz"
        np.savez(table, X=XX[:, : columns // 2], X_tilde=XX[:, columns // 2 :], y=y.astype(float))
        done = subprocess.run(
            [python, "-W", "ignore", "-c", PEER, str(table)],
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": ""},
            check=False,
        )
    if done.returncode:
        print(f"knockpy   failed: {done.stderr.strip().splitlines()[-1]}")
        return
    seconds = json.loads(done.stdout.strip().splitlines()[-1])
    print(f"knockpy   n={n} {columns} columns, DeepPINK Swap Integral on ten points: {seconds:.1f} s CPU")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--rows", type=int, help="rows of the path benchmark; 20000 on a GPU, 2000 on a CPU")
    parser.add_argument("--epochs", type=int, default=5, help="epochs of training")
    parser.add_argument("--peer", help="Python of an environment with knockpy and PyTorch")
    parser.add_argument("--tf32", action="store_true", help="also measure with TF32")
    options = parser.parse_args()
    device = choose_device(options.device)
    gpu = device.type == "cuda"
    name = torch.cuda.get_device_name(device) if gpu else f"{platform.machine()}, {torch.get_num_threads()} threads"
    print(f"device    {name}; torch {torch.__version__}, numpy {np.__version__}, python {platform.python_version()}")
    rows = options.rows or (20_000 if gpu else 2_000)
    right = paths(device, rows, options.epochs, options.tf32)
    if options.peer:
        peer(options.peer, rows)
    print("all checks passed" if right else "A CHECK FAILED")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
