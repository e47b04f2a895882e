"""Time our S-matrices, draws, lasso statistic and pipeline against the peers', all in one run.

Everything is CPU time of one thread, the best of a few. The data are made here and handed over as files, so that all
see the same numbers; every contender runs in a process, and every peer in an environment, of its own. Run by
``make bench``; ``python benchmarks/core.py diagonal draw lasso pipeline`` runs parts of it. Results are merged into
``benchmarks/results/core.json``.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cholesky, toeplitz

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "benchmarks" / "peers"
RESULTS = ROOT / "benchmarks" / "results" / "core.json"
ENVIRONMENTS = ROOT / ".benchmarks"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
Row = dict[str, Any]


def run(contender: str, task: str, data: Path, *, repeats: int = 3, **options: object) -> tuple[float, Any] | str:
    """CPU seconds of one task by one contender, and the array it gave; or what went wrong."""
    own = contender in ("ours", "plain")
    python = sys.executable if own else str(ENVIRONMENTS / contender / "bin" / "python")
    environment = os.environ | dict.fromkeys(THREADS, "1")
    environment["PYTHONPATH"] = str(ROOT / "src") if own else ""
    environment["LD_LIBRARY_PATH"] = str(ENVIRONMENTS / contender / "blas")  # for DSDP: see setup_peers.sh
    result = data / "result.npy"
    message = {"task": task, "data": str(data), "result": str(result), "repeats": repeats, **options}
    done = subprocess.run(
        [python, "-W", "ignore", str(PEERS / f"run_{contender}.py")],
        input=json.dumps(message),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["no message"])[-1]
    return json.loads(done.stdout.strip().splitlines()[-1])["seconds"], np.load(result)


def measure(row: str, contender: str, judge: Any, outcome: tuple[float, Any] | str) -> Row:
    """One line of the table."""
    if isinstance(outcome, str):
        line: Row = {"row": row, "contender": contender, "error": outcome}
    else:
        line = {"row": row, "contender": contender, "seconds": round(outcome[0], 4), "note": judge(outcome[1])}
    print(markdown([line]), flush=True)
    return line


def draw_rows(n: int, Sigma: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows of N(0, Sigma)."""
    return rng.standard_normal((n, len(Sigma))) @ cholesky(Sigma, lower=True).T


def respond(X: np.ndarray, n_signals: int, amplitude: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """y, linear in a few columns, and which they are."""
    non_nulls = np.zeros(X.shape[1], dtype=bool)
    non_nulls[rng.choice(X.shape[1], n_signals, replace=False)] = True
    beta = non_nulls * amplitude * rng.choice([-1.0, 1.0], X.shape[1]) / np.sqrt(len(X))
    return X @ beta + rng.standard_normal(len(X)), non_nulls


def diagonal(data: Path, rng: np.random.Generator) -> list[Row]:
    """Matrix D at AR(1) 0.5: times, and each method's own objective."""
    rows = []
    for p in (500, 1000):
        Sigma = toeplitz(0.5 ** np.arange(p))
        np.save(data / f"ar1_{p}.npy", Sigma)

        def judge(method: str, s: np.ndarray, Sigma: np.ndarray = Sigma) -> str:
            eigenvalues = np.linalg.eigvalsh(2 * Sigma - np.diag(s))
            objective = {
                "mvr": ("tr(A^-1) + sum 1/s, less is better", (1 / eigenvalues).sum() + (1 / s).sum()),
                "maximum_entropy": (
                    "log det A + sum log s, more is better",
                    np.log(eigenvalues).sum() + np.log(s).sum(),
                ),
                "sdp": ("sum s, more is better", s.sum()),
                "equicorrelated": ("sum s", s.sum()),
            }[method]
            return f"{objective[0]}: {objective[1]:.4f}; smallest eigenvalue of 2 Sigma - D {eigenvalues[0]:.1e}"

        for method in ("maximum_entropy", "mvr", "sdp", "equicorrelated"):
            for contender in ("ours", "knockpy") if method != "equicorrelated" else ("ours",):
                repeats = 1 if contender == "knockpy" and p == 1000 else 3
                outcome = run(contender, "diagonal", data, repeats=repeats, p=p, method=method)
                row = f"D by {method}, AR(1) 0.5, p = {p}"
                rows.append(measure(row, contender, lambda s, m=method: judge(m, s), outcome))
    return rows


def draw(data: Path, rng: np.random.Generator, n: int = 100_000, p: int = 500) -> list[Row]:
    """Draw knockoffs of many rows, D being given."""
    from knockoffs.sampling.diagonal import solve_diagonal

    def judge(X_tilde: np.ndarray) -> str:
        return "finite" if np.isfinite(X_tilde).all() else "NOT FINITE"

    Sigma = toeplitz(0.5 ** np.arange(p))
    arrays = {"draw_X": draw_rows(n, Sigma, rng), "draw_Sigma": Sigma, "draw_D": solve_diagonal(Sigma)}
    for name, array in arrays.items():
        np.save(data / f"{name}.npy", array)
    row = f"draw, Gaussian, n = {n}, p = {p}"
    contenders = [("ours", "draw_gaussian"), ("knockpy", "draw_gaussian"), ("plain", "draw_gaussian")]
    rows = [measure(row, contender, judge, run(contender, task, data)) for contender, task in contenders]
    bound = run("plain", "draw_bound", data)
    rows.append(measure(row, "bound: normal numbers and two products", judge, bound))

    Sigmas = np.stack([toeplitz(rho ** np.arange(p)) for rho in (0.2, 0.5, 0.7)])
    means = 0.2 * rng.standard_normal((3, p))
    K = rng.integers(0, 3, n)
    X = np.empty((n, p))
    for k in range(3):
        X[K == k] = means[k] + draw_rows(int((K == k).sum()), Sigmas[k], rng)
    arrays = {"X": X, "weights": np.full(3, 1 / 3), "means": means, "Sigmas": Sigmas}
    arrays["Ds"] = np.stack([solve_diagonal(Sigma) for Sigma in Sigmas])
    for name, array in arrays.items():
        np.save(data / f"mixture_{name}.npy", array)
    row = f"draw, mixture of 3, n = {n}, p = {p}"
    rows += [measure(row, contender, judge, run(contender, "draw_mixture", data)) for contender in ("ours", "plain")]
    return rows


def lasso(data: Path, rng: np.random.Generator, n: int = 2000, p: int = 1000) -> list[Row]:
    """Lasso coefficient difference with a cross-validated penalty, on [X, X_tilde]."""
    from knockoffs.filter import false_discovery_proportion, knockoff_filter, power
    from knockoffs.sampling.diagonal import solve_diagonal

    Sigma = toeplitz(0.5 ** np.arange(p))
    D = solve_diagonal(Sigma)
    X = draw_rows(n, Sigma, rng)
    slope = np.linalg.solve(Sigma, D)
    X_tilde = X - X @ slope + draw_rows(n, 2 * D - D @ slope, rng)
    y, non_nulls = respond(X, 60, 4.5, rng)
    for name, array in {"X": X, "X_tilde": X_tilde, "y": y}.items():
        np.save(data / f"lasso_{name}.npy", array)

    def judge(W: np.ndarray) -> str:
        chosen = knockoff_filter(W, 0.1)
        return f"power {power(chosen, non_nulls):.2f}, FDP {false_discovery_proportion(chosen, non_nulls):.2f}"

    row = f"lasso statistic, n = {n}, 2 x {p} columns"
    names = {
        "ours": "ours (100 penalties)",
        "knockpy": "knockpy (20 penalties)",
        "plain": "LassoCV (100 penalties, to 1 % of the largest)",
    }
    return [
        measure(row, name, judge, run(who, "lasso_statistic", data, repeats=2 if who == "ours" else 1))
        for who, name in names.items()  # ours compiles in its first call
    ]


def pipeline(data: Path, rng: np.random.Generator, n: int = 1000, p: int = 500) -> list[Row]:
    """Table in, selection out: covariance, D, knockoffs, lasso, filter."""
    from knockoffs.filter import false_discovery_proportion, power

    X = draw_rows(n, toeplitz(0.5 ** np.arange(p)), rng)
    y, non_nulls = respond(X, 50, 4.5, rng)
    np.save(data / "pipeline_X.npy", X)
    np.save(data / "pipeline_y.npy", y)

    def judge(selected: np.ndarray) -> str:
        chosen = selected.astype(bool)
        return f"power {power(chosen, non_nulls):.2f}, FDP {false_discovery_proportion(chosen, non_nulls):.2f}"

    row = f"pipeline, n = {n}, p = {p}"
    calls = [(c, m) for c in ("ours", "knockpy") for m in ("mvr", "sdp")]
    calls.insert(0, ("ours", "maximum_entropy"))
    rows = [
        measure(row, f"{contender}, {method}", judge, run(contender, "pipeline", data, repeats=2, method=method))
        for contender, method in calls
    ]
    return [*rows, measure(row, "hidimstat, equicorrelated", judge, run("hidimstat", "pipeline", data, repeats=1))]


def markdown(rows: list[Row]) -> str:
    """Lines of a Markdown table."""
    return "\n".join(
        f"| {row['row']} | {row['contender']} | {row['seconds']:.2f} | {row['note']} |"
        if "seconds" in row
        else f"| {row['row']} | {row['contender']} | - | {row['error']} |"
        for row in rows
    )


PARTS = {"diagonal": diagonal, "draw": draw, "lasso": lasso, "pipeline": pipeline}


def main(names: list[str]) -> None:
    """Run the parts named, or all, and write the results."""
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results["machine"] = {"processor": platform.machine(), "python": platform.python_version(), "threads": 1}
    print("| what | who | CPU seconds | how well |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=ENVIRONMENTS) as folder:
        for name in names or PARTS:
            results[name] = PARTS[name](Path(folder), np.random.default_rng(0))
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
