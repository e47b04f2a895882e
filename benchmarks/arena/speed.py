"""CPU seconds and memory of this package and its peers on the same work, in one run, each of them in turn.

    PYTHONPATH=src python -m benchmarks.arena.speed --out speed.csv [--parts diagonal,draw] [--rounds 2]

The data are made here and handed over as files, so that all see the same numbers. Every contender runs in a process of
its own, and every peer in its own environment (``benchmarks/setup_peers.sh``) or, with ``--peers FOLDER``, by this very
Python with that folder on its path. The rounds go through the contenders in turn; a time is the best of all
calls, CPU time of one thread; memory is what the process took beyond what it held before the first call.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cholesky, toeplitz

from knockoffs.conditional_tests.choice import few_for_knockoffs

ROOT = Path(__file__).resolve().parents[2]
RUNNERS = ROOT / "benchmarks" / "peers"
ENVIRONMENTS = ROOT / ".benchmarks"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
FIELDS = ("date", "part", "row", "who", "seconds", "memory", "note", "error")
DATA_SEED = (2026, 11)  # no seed that a contender is given: hidimstat's knockoffs would be made of X's own numbers
LIMIT = 400.0  # seconds of wall clock for one process
Row = dict[str, Any]
Judge = Callable[[np.ndarray], str]


@dataclass(frozen=True)
class Entry:
    """One contender in a row: who runs (a file of benchmarks/peers), its label, the task and the task's options."""

    who: str
    label: str
    task: str
    options: dict[str, Any] = field(default_factory=dict)
    rounds: int | None = None  # fewer than asked for, where it is slow


@dataclass(frozen=True)
class Contest:
    """The same work for several contenders."""

    row: str
    entries: tuple[Entry, ...]
    judge: Judge = lambda result: ""


def run(entry: Entry, data: Path, peers: Path | None) -> Row:
    """Seconds and memory of one process, and the array it gave; or what went wrong."""
    own = entry.who in ("ours", "plain")
    python = sys.executable if own or peers else str(ENVIRONMENTS / entry.who / "bin" / "python")
    alone = ENVIRONMENTS / "ours" / "bin" / "python"  # without what our tests need, as the peers are
    if own and entry.task == "imports" and alone.exists():
        python = str(alone)
    if not Path(python).exists():
        return {"error": "does not install here"}
    environment = os.environ | dict.fromkeys(THREADS, "1")
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode: a first round writes ours
    path = [str(ROOT), str(ROOT / "src")] if own else [str(ROOT), *([str(peers)] if peers else [])]
    environment["PYTHONPATH"] = os.pathsep.join(path)
    environment["LD_LIBRARY_PATH"] = str(ENVIRONMENTS / entry.who / "blas")  # for DSDP: see setup_peers.sh
    result = data / "result.npy"
    message = {"task": entry.task, "data": str(data), "result": str(result), "repeats": 2, **entry.options}
    command = [python, "-W", "ignore", str(RUNNERS / f"run_{entry.who}.py")]
    try:
        done = subprocess.run(
            command,
            input=json.dumps(message),
            capture_output=True,
            text=True,
            env=environment,
            check=False,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"more than {LIMIT:.0f} s"}
    if done.returncode != 0:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1][:200]}
    return json.loads(done.stdout.strip().splitlines()[-1]) | {"result": np.load(result)}


def hold(contest: Contest, data: Path, *, rounds: int, peers: Path | None) -> Iterator[Row]:
    """Run the rounds of a contest, contenders in turn; one row for each with its best time."""
    seen: list[list[Row]] = [[] for _ in contest.entries]
    for turn in range(rounds):
        for k, entry in enumerate(contest.entries):
            failed = bool(seen[k]) and "error" in seen[k][-1]
            if not failed and turn < (entry.rounds or rounds):
                seen[k].append(run(entry, data, peers))
    for entry, runs in zip(contest.entries, seen, strict=True):
        line: Row = {"row": contest.row, "who": entry.label}
        good = [one for one in runs if "error" not in one]
        if good:
            line["seconds"] = round(min(one["seconds"] for one in good), 4)
            line["memory"] = round(min(one["memory"] for one in good), 1)
            line["note"] = contest.judge(good[-1]["result"])
        else:
            line["error"] = runs[-1]["error"]
        yield line


# Data


def draw_rows(n: int, Sigma: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows of N(0, Sigma)."""
    return rng.standard_normal((n, len(Sigma))) @ cholesky(Sigma, lower=True).T


def respond(X: np.ndarray, n_signals: int, amplitude: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """y, linear in a few columns, and which they are."""
    non_nulls = np.zeros(X.shape[1], dtype=bool)
    non_nulls[rng.choice(X.shape[1], n_signals, replace=False)] = True
    beta = non_nulls * amplitude * rng.choice([-1.0, 1.0], X.shape[1]) / np.sqrt(len(X))
    return X @ beta + rng.standard_normal(len(X)), non_nulls


def save(data: Path, **arrays: np.ndarray) -> None:
    """Write arrays for the contenders."""
    for name, array in arrays.items():
        np.save(data / f"{name}.npy", array)


def found(non_nulls: np.ndarray) -> Judge:
    """Power and false discoveries of a selection."""
    from knockoffs.filter import false_discovery_proportion, power

    def judge(selected: np.ndarray) -> str:
        chosen = np.asarray(selected).astype(bool)
        return f"power {power(chosen, non_nulls):.2f}, FDP {false_discovery_proportion(chosen, non_nulls):.2f}"

    return judge


# Parts


def diagonal(data: Path, rng: np.random.Generator) -> Iterator[Contest]:
    """Matrix D at AR(1) 0.5: times, and each method's own objective."""
    for p in (500, 1000):
        Sigma = toeplitz(0.5 ** np.arange(p))
        save(data, **{f"ar1_{p}": Sigma})
        for method in ("maximum_entropy", "mvr", "sdp"):

            def judge(s: np.ndarray, method: str = method, Sigma: np.ndarray = Sigma) -> str:
                eigenvalues = np.linalg.eigvalsh(2 * Sigma - np.diag(s))
                name, value = {
                    "mvr": ("tr(A^-1) + sum 1/s (less)", (1 / eigenvalues).sum() + (1 / s).sum()),
                    "maximum_entropy": ("log det (more)", np.log(eigenvalues).sum() + np.log(s).sum()),
                    "sdp": ("sum s (more)", s.sum()),
                }[method]
                return f"{name} {value:.4f}, least eigenvalue {eigenvalues[0]:.0e}"

            options = {"p": p, "method": method}
            peer = Entry("knockpy", "knockpy", "diagonal", options | {"repeats": 1}, rounds=1 if p == 1000 else None)
            yield Contest(f"D by {method}, p = {p}", (Entry("ours", "ours", "diagonal", options), peer), judge)


def draw(data: Path, rng: np.random.Generator, n: int = 50_000, p: int = 500) -> Iterator[Contest]:
    """Draw knockoffs of many rows, D being given."""
    from knockoffs.sampling.diagonal import solve_diagonal

    def finite(X_tilde: np.ndarray) -> str:
        return "" if np.isfinite(X_tilde).all() else "NOT FINITE"

    Sigma = toeplitz(0.5 ** np.arange(p))
    save(data, draw_X=draw_rows(n, Sigma, rng), draw_Sigma=Sigma, draw_D=solve_diagonal(Sigma))
    entries = [Entry(who, who, "draw_gaussian") for who in ("ours", "knockpy", "plain")]
    bound = Entry("plain", "bound: normal numbers, two products", "draw_bound")
    yield Contest(f"Gaussian draw, {n} x {p}", (*entries, bound), finite)

    Sigmas = np.stack([toeplitz(rho ** np.arange(p)) for rho in (0.2, 0.5, 0.7)])
    means, K, X = 0.2 * rng.standard_normal((3, p)), rng.integers(0, 3, n), np.empty((n, p))
    for k in range(3):
        X[K == k] = means[k] + draw_rows(int((K == k).sum()), Sigmas[k], rng)
    Ds = np.stack([solve_diagonal(one) for one in Sigmas])
    save(data, mixture_X=X, mixture_weights=np.full(3, 1 / 3), mixture_means=means, mixture_Sigmas=Sigmas)
    save(data, mixture_Ds=Ds)
    entries = [Entry(who, who, "draw_mixture") for who in ("ours", "plain")]
    yield Contest(f"mixture draw, 3 components, {n} x {p}", tuple(entries), finite)


def lasso(data: Path, rng: np.random.Generator, n: int = 2000, p: int = 1000) -> Iterator[Contest]:
    """Lasso coefficient difference with a cross-validated penalty, on [X, X_tilde]."""
    from knockoffs.filter import knockoff_filter
    from knockoffs.sampling.diagonal import solve_diagonal

    Sigma = toeplitz(0.5 ** np.arange(p))
    D = solve_diagonal(Sigma)
    X = draw_rows(n, Sigma, rng)
    slope = np.linalg.solve(Sigma, D)
    X_tilde = X - X @ slope + draw_rows(n, 2 * D - D @ slope, rng)
    y, non_nulls = respond(X, 60, 4.5, rng)
    save(data, lasso_X=X, lasso_X_tilde=X_tilde, lasso_y=y)
    judge = found(non_nulls)
    entries = (
        Entry("ours", "ours (100 penalties)", "lasso_statistic"),
        Entry("knockpy", "knockpy (20 penalties)", "lasso_statistic", {"repeats": 1}, rounds=1),
        Entry("plain", "LassoCV (100 penalties, to 1 % of the largest)", "lasso_statistic", {"repeats": 1}, rounds=1),
    )
    yield Contest(f"lasso statistic, {n} x (2 x {p})", entries, lambda W: judge(knockoff_filter(W, 0.1)))


def pipeline(data: Path, rng: np.random.Generator, n: int = 1000, p: int = 500) -> Iterator[Contest]:
    """Covariance, D, knockoffs, lasso, filter: the same procedure for all."""
    X = draw_rows(n, toeplitz(0.5 ** np.arange(p)), rng)
    y, non_nulls = respond(X, 50, 4.5, rng)
    save(data, pipeline_X=X, pipeline_y=y)
    for method in ("mvr", "sdp"):
        entries = [Entry(who, who, "pipeline", {"method": method}) for who in ("ours", "knockpy")]
        if method == "mvr":
            entries.append(Entry("hidimstat", "hidimstat (equicorrelated)", "pipeline", {"repeats": 1}, rounds=1))
        yield Contest(f"pipeline with {method} and lasso, {n} x {p}", tuple(entries), found(non_nulls))


def fits(data: Path, rng: np.random.Generator, n: int = 5000, p: int = 100) -> Iterator[Contest]:
    """Fit P^X, what a draw needs included."""
    save(data, fit_X=draw_rows(n, toeplitz(0.5 ** np.arange(p)), rng))
    names = {"ours": "ours", "knockpy": "knockpy (Ledoit-Wolf, MVR)", "hidimstat": "hidimstat (Ledoit-Wolf, equi)"}
    entries = [Entry(who, label, "fit_gaussian") for who, label in names.items()]
    plain = Entry("plain", "bound: covariance and Cholesky", "fit_gaussian")
    yield Contest(f"fit of one Gaussian with its D, {n} x {p}", (*entries, plain))
    for spread, name in ((1.0, "far apart"), (0.1, "one over the other")):
        X, K = np.empty((n, 50)), rng.integers(0, 3, n)
        for k, rho in enumerate((0.2, 0.5, 0.7)):
            rows = draw_rows(int((K == k).sum()), toeplitz(rho ** np.arange(50)), rng)
            X[K == k] = spread * rng.standard_normal(50) + rows
        save(data, fit_mixture_X=X)
        entries = [
            Entry("ours", "ours (shrunk components)", "fit_mixture"),
            Entry("plain", "scikit-learn GaussianMixture, as many starts", "fit_mixture"),
        ]
        yield Contest(
            f"fit of a mixture of 3 {name}, {n} x 50", tuple(entries), lambda x: f"log density {float(x):.3f} a row"
        )
    entries = [Entry("ours", "ours", "fit_latent")]
    yield Contest(f"fit of the default P^X, {n} x 50, classes searched for", tuple(entries))


SHAPES = ((500, 30, 10), (1000, 60, 15), (300, 200, 20), (10_000, 50, 15), (2000, 300, 30))  # n, d, non-nulls


def defaults(data: Path, rng: np.random.Generator) -> Iterator[Contest]:
    """Everything left out: the table in, the selection out. The first call of two imports what the method needs."""
    for n, d, k in SHAPES:
        X = draw_rows(n, toeplitz(0.5 ** np.arange(d)), rng)
        y, non_nulls = respond(X, k, 6.0, rng)
        save(data, **{f"default_{n}_{d}_X": X, f"default_{n}_{d}_y": y})
        slow, tested = n * d > 100_000, few_for_knockoffs(d, 0.1, n)
        entries = [
            Entry(who, label, "default", {"table": f"default_{n}_{d}", "method": method, "repeats": repeats}, rounds)
            for who, label, method, repeats, rounds in (
                *([("ours", f"ours, tests of {d} features", "as_it_comes", 2, None)] if tested else []),
                ("ours", "ours, knockoffs" if tested else "ours", "selector:verdict=True", 2, None),
                ("ours", "ours, estimator lasso", "selector:estimator=lasso,verdict=True", 2, None),
                ("ours", "ours, what knockpy does: Gaussian, lasso, no verdict", "gaussian_lasso", 2, None),
                ("knockpy", "knockpy", "knockpy", 2, 1 if slow else None),
                ("hidimstat", "hidimstat", "hidimstat", 1 if slow else 2, 1),
                ("trex", "T-Rex", "trex", 2, None),
                ("boruta", "Boruta", "boruta", 1, 1),
            )
            if not (slow and who == "boruta")  # minutes
        ]
        yield Contest(f"defaults, {n} x {d}", tuple(entries), found(non_nulls))


def imports(data: Path, rng: np.random.Generator) -> Iterator[Contest]:
    """Import in a fresh process."""
    names = {"ours": "ours", "knockpy": "knockpy", "hidimstat": "hidimstat", "trex": "T-Rex", "boruta": "Boruta"}
    plain = Entry("plain", "bound: scikit-learn's SelectorMixin", "imports", {"repeats": 1})
    entries = [Entry(who, label, "imports", {"repeats": 1}) for who, label in names.items()]
    yield Contest("import of what selects", (*entries, plain))


PARTS: dict[str, Callable[[Path, np.random.Generator], Iterator[Contest]]] = {
    "imports": imports,
    "diagonal": diagonal,
    "fits": fits,
    "draw": draw,
    "lasso": lasso,
    "pipeline": pipeline,
    "defaults": defaults,
}


def main() -> None:
    """Read the command line and write rows as they come."""
    parser = argparse.ArgumentParser(description="CPU seconds and memory, this package and its peers")
    today = datetime.date.today().isoformat()
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / f"arena-{today}-speed.csv")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=60.0, help="of wall clock; what is left is left out")
    parser.add_argument("--peers", type=Path, default=None)
    parser.add_argument("--without", default="", help="contenders to leave out, for instance boruta,hidimstat")
    given = parser.parse_args()
    deadline = time.time() + 60 * given.minutes
    given.out.parent.mkdir(parents=True, exist_ok=True)
    new = not given.out.exists()
    with given.out.open("a", newline="") as file, tempfile.TemporaryDirectory() as folder:
        writer = csv.DictWriter(file, FIELDS)
        if new:
            writer.writeheader()
        for part in given.parts.split(","):
            for contest in PARTS[part](Path(folder), np.random.default_rng(DATA_SEED)):
                if time.time() > deadline:
                    return
                entries = tuple(one for one in contest.entries if one.who not in given.without.split(","))
                contest = replace(contest, entries=entries)
                for line in hold(contest, Path(folder), rounds=given.rounds, peers=given.peers):
                    writer.writerow({"date": today, "part": part, **line})
                    file.flush()
                    print(" | ".join(str(line.get(name, "")) for name in FIELDS[2:]), flush=True)


if __name__ == "__main__":
    main()
