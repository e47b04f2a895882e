"""Exact checks of samplers and filters, ours and the peers': no simulation, every answer is right or wrong.

    PYTHONPATH=src python -m benchmarks.arena.checks --all checks.csv
    python -m benchmarks.arena.checks knockpy        # in the environment of that peer; one line of JSON a check

The covariance that a sampler implies comes from its own affine map X_tilde = X A + c + Z B: with the normal numbers Z
held fixed, two tables give A; with Z a multiple of the identity, B'B. Filters are compared with the definition of the
threshold, written as a loop, on W with ties and zeros. Samplers of Markov chains take no numbers of ours: knockoffs of
every row that a short chain can be are drawn many times, and the laws of (X, X_tilde) and of its swaps are compared
within five standard errors of the draws, which fails by chance less than once in 1,000 runs.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.arena.designs import Data
from benchmarks.arena.methods import PEERS, call

P = 6  # columns of the sampler's check
Q = 0.2
Found = tuple[bool, str]
Draw = Callable[[NDArray, NDArray, NDArray], NDArray]  # (X, Sigma, Z) -> X_tilde, Z the normal numbers to use


class NotOffered(Exception):
    """A contender has no such part: T-Rex and Boruta draw no knockoffs, Boruta takes no level."""


def part(parts: dict[str, Any], who: str) -> Any:
    """Part of a contender."""
    if who not in parts:
        raise NotOffered
    return parts[who]


# Samplers


class Fixed:
    """A generator whose normal numbers are given."""

    def __init__(self, Z: NDArray):
        self.Z = Z

    def standard_normal(self, size: Any = None, dtype: Any = None, out: NDArray | None = None) -> NDArray:
        """Give the numbers, in the shape asked for."""
        if out is None:
            return self.Z.reshape(size).copy()
        out[:] = self.Z.reshape(out.shape)
        return out


def ours_draw(X: NDArray, Sigma: NDArray, Z: NDArray) -> NDArray:
    from knockoffs.features.gaussian import gaussian_features
    from knockoffs.sampling.sampler import sample_knockoffs

    network = gaussian_features(np.zeros(len(Sigma)), Sigma).as_network()
    return sample_knockoffs(network, X, Fixed(Z))  # type: ignore[arg-type]


def knockpy_draw(X: NDArray, Sigma: NDArray, Z: NDArray) -> NDArray:
    from knockpy import knockoffs

    np.random.seed(0)  # noqa: NPY002  the solver of D goes through the columns at random
    sampler = knockoffs.GaussianSampler(X=X, mu=np.zeros(len(Sigma)), Sigma=Sigma)
    real = np.random.randn
    np.random.randn = lambda *shape: Z.reshape(shape)  # type: ignore[assignment]
    try:
        return sampler.sample_knockoffs()
    finally:
        np.random.randn = real


def hidimstat_draw(X: NDArray, Sigma: NDArray, Z: NDArray) -> NDArray:
    from hidimstat.samplers import gaussian_knockoffs
    from sklearn.base import BaseEstimator

    class Known(BaseEstimator):
        def fit(self, X: NDArray) -> Known:
            self.covariance_, self.n_features_in_ = Sigma, X.shape[1]
            return self

    both = np.vstack([X, -X])  # the sampler centres by the mean of its table: this one has mean 0
    sampler = gaussian_knockoffs.GaussianKnockoffs(cov_estimator=Known()).fit(both)
    real = gaussian_knockoffs.check_random_state
    gaussian_knockoffs.check_random_state = lambda seed: Fixed(np.vstack([Z, Z]))
    try:
        return sampler.sample()[0][: len(X)]
    finally:
        gaussian_knockoffs.check_random_state = real


def implied_covariance(draw: Draw) -> Found:
    """Joint covariance of (X, X_tilde) against what exchangeability asks of it."""
    Sigma = 0.7 ** np.abs(np.subtract.outer(np.arange(P), np.arange(P)))
    Z, zero, eye = np.sqrt(P) * np.eye(P), np.zeros((P, P)), np.eye(P)
    noise = draw(zero, Sigma, Z)
    A = draw(eye, Sigma, Z) - noise
    own = A.T @ Sigma @ A + noise.T @ noise / P
    across = Sigma @ A
    off = ~np.eye(P, dtype=bool)
    wrong = max(float(np.abs(own - Sigma).max()), float(np.abs(across - Sigma)[off].max()))
    return wrong < 1e-6, f"largest error of the implied covariance {wrong:.1e}"


INITIAL = np.array([0.6, 0.4])
TRANSITIONS = np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.4, 0.6], [0.1, 0.9]]])  # of a chain with three sites
SITES = 3


def ours_chain(X: NDArray, seed: int) -> NDArray:
    from knockoffs.sampling.conjugates.markov_chain import MarkovChain
    from knockoffs.sampling.network import BayesianNetwork, Node
    from knockoffs.sampling.sampler import sample_knockoffs

    network = BayesianNetwork((Node("X", (), MarkovChain(INITIAL, TRANSITIONS), columns=range(SITES)),))
    return sample_knockoffs(network, X, np.random.default_rng(seed))


def snpknock_chain(X: NDArray, seed: int) -> NDArray:
    from SNPknock import knockoffDMC

    return np.asarray(knockoffDMC(INITIAL, TRANSITIONS, seed=seed).sample(X.astype(int)))


def swaps_of_a_chain(draw: Callable[[NDArray, int], NDArray], n_draws: int = 20_000) -> Found:
    """Law of (X, X_tilde) against its swaps: X is enumerated with its probabilities, X_tilde drawn given every X."""
    rows = np.stack(np.meshgrid(*[[0, 1]] * SITES, indexing="ij"), axis=-1).reshape(-1, SITES)
    P = INITIAL[rows[:, 0]].copy()
    for j in range(SITES - 1):
        P *= TRANSITIONS[j, rows[:, j], rows[:, j + 1]]
    drawn = np.asarray(draw(np.repeat(rows, n_draws, axis=0), 1)).astype(int).reshape(len(rows), n_draws, SITES)
    codes = drawn @ 2 ** np.arange(SITES)[::-1]
    Q = np.stack([np.bincount(own, minlength=len(rows)) / n_draws for own in codes])
    joint, variance = P[:, None] * Q, P[:, None] ** 2 * Q * (1 - Q) / n_draws
    here = np.arange(len(rows))
    worst = 0.0
    for mask in range(1, 2**SITES):  # the coordinates that are swapped, as bits of the codes
        x, x_tilde = np.meshgrid(here, here, indexing="ij")
        other = (x & ~mask | x_tilde & mask, x_tilde & ~mask | x & mask)
        gap, error = np.abs(joint - joint[other]), np.sqrt(variance + variance[other])
        worst = max(worst, float((gap / np.maximum(error, 1e-12)).max()))
    return worst < 5, f"largest gap {worst:.1f} standard errors"


# Filters


def definition(W: NDArray, q: float) -> NDArray[np.bool_]:
    """Knockoff+ by its definition: the smallest t among |W| > 0 at which the estimate is at most q."""
    for t in np.sort(np.unique(np.abs(W[W != 0]))):
        if (1 + np.sum(W <= -t)) / max(np.sum(W >= t), 1) <= q:
            return np.asarray(W >= t)
    return np.zeros(len(W), dtype=bool)


def tied_threshold(select: Callable[[NDArray, float], NDArray]) -> Found:
    """Compare selections on 2000 random W with ties and zeros with the definition."""
    rng = np.random.default_rng(0)
    unlike = too_many = 0
    for _ in range(2000):
        W = rng.integers(-2, 6, rng.integers(5, 40)).astype(float)
        mine, right = np.asarray(select(W, Q)).astype(bool), definition(W, Q)
        unlike += not np.array_equal(mine, right)
        if mine.any():
            least = W[mine].min()
            too_many += (1 + np.sum(W <= -least)) / mine.sum() > Q + 1e-12
    return unlike == 0, f"{unlike} of 2000 unlike the definition, {too_many} above the level"


def zeros_stay_out(select: Callable[[NDArray, float], NDArray]) -> Found:
    """W = 0 says nothing and may not be selected."""
    W = np.concatenate([np.arange(1.0, 31.0), np.zeros(3)])
    chosen = np.asarray(select(W, Q)).astype(bool)[30:].sum()
    return chosen == 0, f"{chosen} of 3 zeros selected"


def mixed_ties(select: Callable[[NDArray, float], NDArray]) -> Found:
    """Ten of +1 and ten of -1: nothing may be selected."""
    chosen = np.asarray(select(np.repeat([1.0, -1.0], 10), 0.1)).astype(bool).sum()
    return chosen == 0, f"{chosen} selected"


def ours_filter(W: NDArray, q: float) -> NDArray:
    from knockoffs.filter import knockoff_filter

    return knockoff_filter(W, q)


def knockpy_filter(W: NDArray, q: float) -> NDArray:
    from knockpy.knockoff_filter import KnockoffFilter

    return KnockoffFilter.make_selections(SimpleNamespace(), W, q)  # type: ignore[arg-type]


def hidimstat_filter(W: NDArray, q: float) -> NDArray:
    from hidimstat.knockoffs import ModelXKnockoff

    fitted = ModelXKnockoff()
    fitted.importances_ = W[None]
    return fitted.fdr_selection(q)


# Whole procedures


def table(seed: int, n: int = 200, d: int = 20) -> Data:
    """Draw a table with ten clear effects, from a stream that no contender's seed gives."""
    rng = np.random.default_rng([2026, 11, seed])
    X = rng.standard_normal((n, d))
    return Data(X, X[:, :10].sum(axis=1) + rng.standard_normal(n), np.arange(d) < 10)


def selected(who: str, data: Data, seed: int = 0) -> NDArray[np.bool_]:
    if who == "snpknock":
        raise NotOffered
    return call("default" if who == "ours" else who, data, (Q,), seed)[0]


def answer(who: str) -> NDArray:
    """Ask a contender, with a seed; knockpy, which takes none, without (its method here sets the global state)."""
    if who == "knockpy":
        return knockpy_refit((table(0),), None)
    return snpknock_chain(np.tile([[0, 1, 0]], (200, 1)), 1) if who == "snpknock" else selected(who, table(0))


def same_seed(who: str) -> Found:
    """Ask twice with the same seed from two global states."""
    answers = []
    for state in (4, 5):
        np.random.seed(state)  # noqa: NPY002
        answers.append(answer(who))
    alike = bool(np.array_equal(*answers))
    return alike, "the same" if alike else "differs: no seed but the global state" if who == "knockpy" else "differs"


def global_state(who: str) -> Found:
    """NumPy's global random state is left alone."""
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # type: ignore[index,union-attr]  # noqa: NPY002
    answer(who)
    kept = bool(np.array_equal(before, np.random.get_state()[1]))  # type: ignore[index]  # noqa: NPY002
    return kept, "untouched" if kept else "changed"


def units_of_y(who: str) -> Found:
    """Y in other units, or with the other sign, gives the same selection."""
    data, said = table(0), []
    first = selected(who, data)
    for name, y in (("1e-6 y", 1e-6 * data.y), ("-y", -data.y)):
        try:
            other = selected(who, Data(data.X, y, data.non_nulls))
        except Exception as problem:
            said.append(f"{name}: {type(problem).__name__}")
            continue
        if not np.array_equal(other, first):
            said.append(f"{name}: {other.sum()} instead of {first.sum()}")
    return not said, "; ".join(said) or f"{first.sum()} each time"


def names_of_classes(who: str) -> Found:
    """Three classes, of which ten columns tell the second from the two others: found, whatever number it is given.

    Taken for numbers, codes 0, 1, 2 have the same mean whether or not the class is the second.
    """
    rng = np.random.default_rng([2026, 11, 3])
    X = rng.standard_normal((600, 20))
    second = rng.random(600) < 1 / (1 + np.exp(-1.5 * X[:, :10].sum(axis=1)))
    y = np.where(second, 1, rng.choice([0, 2], 600))
    counts = [
        int(selected(who, Data(X, names[y], np.arange(20) < 10, classes=True))[:10].sum())
        for names in (np.array([0, 1, 2]), np.array([1, 0, 2]))
    ]
    return min(counts) >= 8, f"{counts[0]} of 10 found as class 1, {counts[1]} as class 0"


def impossible_level(who: str) -> Found:
    """Ask for an FDR of 20, which should be refused."""
    if who in ("boruta", "snpknock"):
        raise NotOffered
    data = table(0)
    try:
        chosen = call("default" if who == "ours" else who, data, (20.0,), 0)[0]
    except Exception as problem:
        return True, f"refused: {type(problem).__name__}"
    return False, f"accepted, {chosen.sum()} selected"


def second_fit(who: str) -> Found:
    """Fit an object to a second table, and compare it with a fresh one."""
    first, second = table(0), table(1)
    if who not in REFITS:
        raise NotOffered
    fresh, again = (REFITS[who](tables) for tables in ((second,), (first, second)))
    alike = bool(np.allclose(fresh, again))
    return alike, "as a fresh one" if alike else f"differs, by up to {np.abs(fresh - again).max():.2g}"


def ours_refit(tables: tuple[Data, ...]) -> NDArray:
    from knockoffs import KnockoffSelector

    selector = KnockoffSelector(fdr=Q, feature_model="gaussian", method="knockoffs", random_state=0)
    for data in tables:
        selector.fit(data.X, data.y)
    return selector.knockoffs_


def knockpy_refit(tables: tuple[Data, ...], seed: int | None = 0) -> NDArray:
    from knockpy.knockoff_filter import KnockoffFilter

    fitted = KnockoffFilter()
    for data in tables:
        if seed is not None:
            np.random.seed(seed)  # noqa: NPY002
        fitted.forward(X=data.X, y=data.y)
    return fitted.Xk


def hidimstat_refit(tables: tuple[Data, ...]) -> NDArray:
    from hidimstat.knockoffs import ModelXKnockoff

    fitted = ModelXKnockoff(random_state=0)
    for data in tables:
        fitted.fit_importance(data.X, data.y)
    return fitted.importances_[0]


def boruta_refit(tables: tuple[Data, ...]) -> NDArray:
    from boruta import BorutaPy
    from sklearn.ensemble import RandomForestRegressor

    fitted = BorutaPy(RandomForestRegressor(max_depth=5, n_jobs=1), n_estimators=20, max_iter=20, random_state=0)
    for data in tables:
        fitted.fit(data.X, data.y)
    return np.asarray(fitted.ranking_, dtype=float)


SAMPLERS: dict[str, Draw] = {"ours": ours_draw, "knockpy": knockpy_draw, "hidimstat": hidimstat_draw}
CHAINS = {"ours": ours_chain, "snpknock": snpknock_chain}
FILTERS = {"ours": ours_filter, "knockpy": knockpy_filter, "hidimstat": hidimstat_filter}
REFITS = {"ours": ours_refit, "knockpy": knockpy_refit, "hidimstat": hidimstat_refit, "boruta": boruta_refit}
CHECKS: dict[str, Callable[[str], Found]] = {
    "implied covariance of (X, X_tilde)": lambda who: implied_covariance(part(SAMPLERS, who)),
    "swaps of a Markov chain's (X, X_tilde)": lambda who: swaps_of_a_chain(part(CHAINS, who)),
    "threshold with ties and zeros": lambda who: tied_threshold(part(FILTERS, who)),
    "ten +1 and ten -1 at 0.1": lambda who: mixed_ties(part(FILTERS, who)),
    "W = 0 stays out": lambda who: zeros_stay_out(part(FILTERS, who)),
    "same seed, same answer": same_seed,
    "global random state untouched": global_state,
    "second fit of one object": second_fit,
    "units and sign of y": units_of_y,
    "names of classes": names_of_classes,
    "fdr = 20 refused": impossible_level,
}


def check(who: str) -> list[dict[str, Any]]:
    """Do every check that concerns a contender; those that do not apply are left out."""
    rows = []
    for name, one in CHECKS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                holds, detail = one(who)
        except NotOffered:
            continue
        except Exception as problem:
            holds, detail = False, f"{type(problem).__name__}: {problem}"[:120]
        rows.append({"check": name, "who": who, "holds": bool(holds), "detail": detail})
    return rows


def check_all(out: Path) -> None:
    """Let every contender check itself in its own environment, and write a csv."""
    from benchmarks.arena.speed import ENVIRONMENTS, ROOT

    rows = check("ours")
    for who in (*PEERS, "snpknock"):
        python = ENVIRONMENTS / who / "bin" / "python"
        if python.exists():
            command = [str(python), "-W", "ignore", "-m", "benchmarks.arena.checks", who]
            environment = os.environ | {"PYTHONPATH": "", "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=True)
            rows += [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, ("check", "who", "holds", "detail"))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    if sys.argv[1] == "--all":
        check_all(Path(sys.argv[2]))
    else:
        for line in check(sys.argv[1]):
            print(json.dumps(line), flush=True)
