"""Neural networks along lambda paths and in batches: correctness, speed and memory on one device.

Run from the root of the repository::

    PYTHONPATH=src python benchmarks/neural_paths.py --device cuda
    PYTHONPATH=src python benchmarks/neural_paths.py --device cpu --rows 20000
    PYTHONPATH=src python benchmarks/neural_paths.py --device cpu --peer .benchmarks/knockpy/bin/python

Prints one line a measurement: first whether path losses equal plain predictions (float32 on the device, and a float64
reference on the CPU for a few columns), then the time of all path losses (device synchronised, training
excluded), the rate of batched training and scoring, and the largest memory used. ``--tf32`` repeats the path losses
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

from knockoffs.importance.paths.batched import network_losses
from knockoffs.importance.saliency import gradient_scores, integrated_gradient_scores
from knockoffs.response.networks import outputs
from knockoffs.response.training import train_classifiers

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


def problem(R: int, n: int, columns: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cubic labels of five columns: [X, X_tilde] (R, n, 2d), its fake (each half the other) and y (R, n)."""
    rng = np.random.default_rng(seed)
    XX = rng.standard_normal((R, n, columns), dtype=np.float32)
    five = XX[:, :, :5].astype(float)
    score = five[..., 0] * five[..., 1] * five[..., 2] + five[..., 3] ** 2 + five[..., 4]
    y = np.argsort(np.argsort(score, axis=1), axis=1) * n_classes // n
    fake = np.concatenate([XX[:, :, columns // 2 :], XX[:, :, : columns // 2]], axis=2)
    return XX, fake, y


def plain_losses(network: Any, XX: np.ndarray, fake: np.ndarray, y: np.ndarray, j: int, lam: float) -> dict:
    """Losses with column j at lam, by predicting the moved table in float64 on the CPU."""
    table = XX.astype(float)
    table[:, :, j] += lam * (fake[:, :, j].astype(float) - table[:, :, j])
    logits = outputs(network, table).numpy()
    own = np.take_along_axis(logits, y[:, :, None], axis=2)[:, :, 0]
    top = logits.max(axis=2)
    total = top + np.log(np.exp(logits - top[:, :, None]).sum(axis=2))
    wrong = logits.argmax(axis=2) != y
    return {"accuracy": wrong.mean(axis=1), "log_loss": np.minimum(total - own, -np.log(1e-15)).mean(axis=1)}


def check(device: torch.device, found: dict, network: Any, XX: np.ndarray, fake: np.ndarray, y: np.ndarray) -> bool:
    """Compare path losses with plain float64 predictions on a few columns and lambdas."""
    reference = network.to(device="cpu", dtype=torch.float64)
    worst = dict.fromkeys(LOSSES, 0.0)
    for j in (0, 3, XX.shape[2] // 2, XX.shape[2] - 1):
        for at in (0, 1, 2, 20):
            expected = plain_losses(reference, XX, fake, y, j, LAMS[at])
            for loss in LOSSES:
                gap = np.abs(found[loss][:, j, at] - expected[loss]) / np.maximum(1, np.abs(expected[loss]))
                worst[loss] = max(worst[loss], float(gap.max()))
    right = worst["log_loss"] < 1e-5 and worst["accuracy"] <= 2 / XX.shape[1] + 1e-12  # a tie may fall either way
    print(f"check     path losses against float64 predictions: {worst} {'ok' if right else 'WRONG'}")
    return right


def paths(device: torch.device, n: int, tf32: bool) -> bool:
    """All 200 columns, 21 lambdas, 4 x 100 units."""
    XX, fake, y = problem(1, n, 200, 10, seed=0)
    network = train_classifiers(XX[:, :3000], y[:, :3000], 10, seeds=[0], epochs=5, device=device)
    on_device = [torch.from_numpy(values).to(device) for values in (XX, fake, y)]
    warm = 1 if device.type == "cpu" else 2
    if device.type == "cuda":
        network_losses(network, *on_device, LAMS, LOSSES)  # kernels are loaded once
    peak(device)
    right = True
    for losses in (("accuracy",), ("log_loss",), LOSSES):
        wall, cpu, found = timed(device, lambda losses=losses: network_losses(network, *on_device, LAMS, losses), warm)
        name = " and ".join(losses)
        print(
            f"paths     n={n} 200 columns 21 lambdas 4x100, {name}: {wall:.3f} s wall, {cpu:.2f} s CPU; {peak(device)}"
        )
    right &= check(device, found, network, XX, fake, y)
    if tf32 and device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = True
        wall, _, rough = timed(device, lambda: network_losses(network, *on_device, LAMS, LOSSES), warm)
        torch.backends.cuda.matmul.allow_tf32 = False
        moved = {loss: float(np.abs(rough[loss] - found[loss]).max()) for loss in LOSSES}
        print(f"tf32      {wall:.3f} s wall; largest change of a mean loss {moved}")
    return right


def batches(device: torch.device, R: int, n: int, columns: int, epochs: int) -> bool:
    """Train and score many repetitions of 4 x 100 units with 10 classes."""
    XX, fake, y = problem(R, n, columns, 10, seed=1)
    XX, fake, y = (torch.from_numpy(values).to(device) for values in (XX, fake, y))
    train_classifiers(XX[:1], y[:1], 10, seeds=[0], epochs=1, device=device)  # kernels are loaded once
    peak(device)
    label = f"R={R} n={n} 2p={columns} 10 classes 4x100"
    wall, cpu, network = timed(
        device, lambda: train_classifiers(XX, y, 10, seeds=range(R), epochs=epochs, patience=10, device=device)
    )
    ran = np.sum(~np.isnan(network.validation_loss), axis=1)
    print(
        f"training  {label}: {wall:.2f} s wall, {cpu:.2f} s CPU, {R / wall:.1f} repetitions a second "
        f"({ran.mean():.0f} epochs each on average, {ran.max()} at most of {epochs}); {peak(device)}"
    )
    wall, cpu, found = timed(device, lambda: network_losses(network, XX, fake, y, LAMS, LOSSES))
    print(f"scoring   {label}: {wall:.2f} s wall, {cpu:.2f} s CPU, {R / wall:.1f} repetitions a second; {peak(device)}")
    few = slice(0, min(R, 2))
    right = check(
        device, {loss: found[loss][few] for loss in LOSSES}, network.part(few),
        *(values[few].cpu().numpy() for values in (XX, fake, y)),
    )  # fmt: skip
    wall, _, _ = timed(device, lambda: gradient_scores(network, XX))
    steps, _, _ = timed(device, lambda: integrated_gradient_scores(network, XX, n_steps=50))
    print(f"saliency  {label}: gradient {wall:.3f} s, integrated gradients {steps:.2f} s wall; {peak(device)}")
    alone = train_classifiers(XX[:1], y[:1], 10, seeds=[0], epochs=2, device=device)
    together = train_classifiers(XX[: min(R, 4)], y[: min(R, 4)], 10, seeds=range(min(R, 4)), epochs=2, device=device)
    gap = float(np.abs(alone.validation_loss[0] - together.validation_loss[0]).max())
    right &= gap < 1e-3
    print(f"check     one repetition alone and in a batch: validation losses differ by {gap:.1e}")
    return right


def peer(python: str, n: int, columns: int = 200) -> None:
    """CPU time of knockpy's Swap Integral of DeepPINK."""
    XX, _, y = problem(1, n, columns, 2, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "data.npz"
        np.savez(table, X=XX[0, :, : columns // 2], X_tilde=XX[0, :, columns // 2 :], y=y[0].astype(float))
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
    parser.add_argument("--repetitions", type=int, help="batched repetitions; 100 on a GPU, 2 on a CPU")
    parser.add_argument("--epochs", type=int, help="most epochs of training; 100 on a GPU, 5 on a CPU")
    parser.add_argument("--large", action="store_true", help="also 100 repetitions of n=5000, 2p=600")
    parser.add_argument("--peer", help="Python of an environment with knockpy and PyTorch")
    parser.add_argument("--tf32", action="store_true", help="also measure with TF32")
    options = parser.parse_args()
    from knockoffs.response.networks import choose_device

    device = choose_device(options.device)
    gpu = device.type == "cuda"
    name = torch.cuda.get_device_name(device) if gpu else f"{platform.machine()}, {torch.get_num_threads()} threads"
    print(f"device    {name}; torch {torch.__version__}, numpy {np.__version__}, python {platform.python_version()}")
    rows = options.rows or (20_000 if gpu else 2_000)
    R = options.repetitions or (100 if gpu else 2)
    epochs = options.epochs or (100 if gpu else 5)
    right = paths(device, rows, options.tf32)
    right &= batches(device, R, 3000, 60, epochs)
    if options.large:
        right &= batches(device, R, 5000, 600, epochs)
    if options.peer:
        peer(options.peer, rows)
    print("all checks passed" if right else "A CHECK FAILED")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
