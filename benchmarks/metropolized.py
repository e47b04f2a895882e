"""Laws known up to a constant: what a cell costs, how far knockoffs move, and FDR and power with chains of heavy tails.

    PYTHONPATH=src python -m benchmarks.metropolized --costs    # and knockpy's sampler beside it, if it is installed
    PYTHONPATH=src python -m benchmarks.metropolized [--quick]  # FDR and power

A chain of t steps (5 degrees of freedom, 0.5 along the chain), and an Ising model on a grid of 10 x 10.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from numpy.typing import NDArray

from benchmarks.study import run_study
from knockoffs import BayesianNetwork, KnockoffSelector, Node
from knockoffs.filter import false_discovery_proportion, power
from knockoffs.sampling.conjugates.metropolized import Metropolized

NU, RHO, SIDE = 5.0, 0.5, 10
SPREAD = np.sqrt(1 - RHO**2)


def log_t(z: NDArray) -> NDArray:
    """Log density of t, up to a constant."""
    return -(NU + 1) / 2 * np.log1p(z**2 / NU)


def step(v: NDArray, blanket: object = None) -> NDArray:
    """Log density of a step of the chain."""
    return log_t((v[:, 1] - RHO * v[:, 0]) / SPREAD)


def start(v: NDArray, blanket: object = None) -> NDArray:
    """Log density of the first two columns."""
    return log_t(v[:, 0]) + step(v)


def t_chain(p: int, scale: float = 2.0, n_candidates: int = 8) -> Metropolized:
    """Conjugate of the chain."""
    cliques = [(j, j + 1) for j in range(p - 1)]
    return Metropolized([start] + [step] * (p - 2), cliques, scale=scale, n_candidates=n_candidates)


def draw_t_chain(n: int, p: int, rng: np.random.Generator) -> NDArray:
    """Rows of the chain."""
    X = rng.standard_t(NU, size=(n, p))
    for j in range(1, p):
        X[:, j] = RHO * X[:, j - 1] + SPREAD * X[:, j]
    return X


def grid() -> list[tuple[int, int]]:
    """Edges of the grid."""
    at = np.arange(SIDE**2).reshape(SIDE, SIDE)
    across = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], axis=1)
    down = np.stack([at[:-1].ravel(), at[1:].ravel()], axis=1)
    return [(int(a), int(b)) for a, b in np.vstack([across, down])]


def draw_spins(n: int, strength: float, rng: np.random.Generator, n_sweeps: int = 60) -> NDArray:
    """Rows of the Ising model, by Gibbs sweeps."""
    X = rng.choice([-1.0, 1.0], size=(n, SIDE**2))
    near = [[a + b - j for a, b in grid() if j in (a, b)] for j in range(SIDE**2)]
    for _ in range(n_sweeps):
        for j, others in enumerate(near):
            X[:, j] = np.where(rng.random(n) < 1 / (1 + np.exp(-2 * strength * X[:, others].sum(axis=1))), 1, -1)
    return X


def told(name: str, X: NDArray, draw) -> None:
    """Print microseconds of CPU a cell, and the mean correlation of a column with its knockoff."""
    begun = time.process_time()
    X_tilde = draw()
    spent = time.process_time() - begun
    r = np.mean([np.corrcoef(X[:, j], X_tilde[:, j])[0, 1] for j in range(X.shape[1])])
    print(f"{name:40s} {1e6 * spent / X.size:6.2f} us a cell, correlation {r:.3f}", flush=True)


def costs(n: int = 500, p: int = 100) -> None:
    """Print what the samplers cost."""
    rng = np.random.default_rng(0)
    X, S = draw_t_chain(n, p, rng), draw_spins(n, 0.3, rng)
    for m in (1, 2, 4, 8, 16):
        for scale in (1.0, 2.0, 3.0):
            told(
                f"t chain, {m} candidates, scale {scale:g}", X, lambda m=m, s=scale: t_chain(p, s, m).sample(X, {}, rng)
            )
    spins = Metropolized([lambda v, _: 0.3 * v[:, 0] * v[:, 1]] * len(grid()), grid(), states=[(-1, 1)] * SIDE**2)
    told("Ising, grid 10 x 10", S, lambda: spins.sample(S, {}, rng))
    try:
        from knockpy.metro import ARTKSampler
    except ImportError:
        print("knockpy is not installed")
        return
    V = RHO ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    told("knockpy, t chain", X, lambda: ARTKSampler(X=X, Sigma=V, df_t=NU).sample_knockoffs())


def once(feature_model: str, seed: int, n: int = 400, p: int = 100) -> tuple[float, float]:
    """Share of false discoveries and power: a target that is linear in tanh of 20 columns."""
    rng = np.random.default_rng(seed)
    X = draw_t_chain(n, p, rng)
    true = np.zeros(p, dtype=bool)
    true[rng.choice(p, 20, replace=False)] = True
    y = np.tanh(X) @ np.where(true, rng.choice([-0.6, 0.6], p), 0.0) + rng.standard_normal(n)
    law = BayesianNetwork([Node("X", (), t_chain(p), range(p))]) if feature_model == "Metropolized" else feature_model
    options = {"method": "knockoffs", "estimator": "lasso", "verdict": False, "random_state": seed}
    found = KnockoffSelector(0.1, feature_model=law, **options).fit(X, y).selection_.selected
    return false_discovery_proportion(found, true), power(found, true)


if __name__ == "__main__":
    if "--costs" in sys.argv:
        costs()
    else:
        run_study("metropolized", once, {"feature_model": ["Metropolized", "gaussian", "auto"]}, __doc__)
