"""False discoveries of a table in batches: P^X from a sample of the rows, W from all of them.

    python benchmarks/streamed_fdr.py gaussian     # 50 Gaussian columns, a linear target, up to 20 million rows
    python benchmarks/streamed_fdr.py bent         # 40 bent columns, a bent target almost without noise, real knockoffs

Of Gaussian columns no rows are made: the sums of products of [X, X_tilde] and y, given a P^X whose covariance is itself
that of so many rows, are drawn as a Wishart matrix. Of bent columns rows are made, and P^X is the default one; eight
targets share its fit and its knockoffs. Each row of the results is printed when it is there, and all are written to
results/streamed_fdr_WHAT.csv: mean FDP, its standard error (of bent columns by fits of P^X), power, how often seven
columns or more were false, and how often W of one that does not matter was above and below zero. Level 0.1, lasso.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from large_table import effects
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr

from knockoffs.features.gaussian import gaussian_features
from knockoffs.features.source import knockoff_source
from knockoffs.filter import knockoff_filter
from knockoffs.response.gram import FoldGrams, Gram, total
from knockoffs.response.gram_lasso import fit_lasso
from knockoffs.streaming.rest import settle_by_moments, wants_more_rows
from knockoffs.table.table import read_table

RESULTS = Path(__file__).resolve().parent / "results"
LEVEL, BATCH = 0.1, 20_000


def correlations(name: str, d: int) -> NDArray:
    """0.6^|i-j|, or 0.5 everywhere."""
    if name == "chain":
        return 0.6 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    return np.full((d, d), 0.5) + 0.5 * np.eye(d)


def counts(W: NDArray, matters: NDArray[np.bool_]) -> tuple[float, float, float, float, float]:
    """FDP, power, whether there are seven false discoveries or more, and W of the nulls above and below zero."""
    selected = np.zeros(len(W), dtype=bool)
    selected[knockoff_filter(W, LEVEL)] = True
    false = (selected & ~matters).sum()
    power = (selected & matters).sum() / matters.sum()
    return false / max(selected.sum(), 1), power, false >= 7, (W[~matters] > 0).sum(), (W[~matters] < 0).sum()


# ---- Gaussian columns --------------------------------------------------------------------------------------------


def wishart(L: NDArray, n: int, rng: Generator) -> NDArray:
    """Draw the centred products of n rows of N(0, L L^T), by Bartlett's triangle."""
    A = np.tril(rng.standard_normal(L.shape), -1)
    A[np.diag_indices(len(L))] = np.sqrt(rng.chisquare(n - 1 - np.arange(len(L))))
    return L @ A @ A.T @ L.T


def gaussian_table(Sigma: NDArray, beta: NDArray, n: int, m: int, rng: Generator) -> NDArray:
    """W of n rows whose P^X has the covariance of m others; m = 0 for the true one."""
    d = len(Sigma)
    law = gaussian_features(np.zeros(d), wishart(np.linalg.cholesky(Sigma), m, rng) / m if m else Sigma).laws[0]
    slope = np.linalg.solve(law.covariance, law.D).T
    M = np.vstack([np.eye(d), np.eye(d) - slope, beta])  # X, the mean of X_tilde given X, and that of y
    joint = M @ Sigma @ M.T
    joint[d:-1, d:-1] += 2 * law.D - slope @ law.D
    joint[-1, -1] += 1
    L = np.linalg.cholesky(joint)
    grams = tuple(Gram(n / 5, n / 5, np.zeros(2 * d + 1), wishart(L, n // 5, rng)) for _ in range(5))
    Z = np.abs(fit_lasso(FoldGrams(grams)).coef[0])
    return Z[:d] - Z[d:]


def gaussian() -> Iterator[dict[str, object]]:
    """Twenty effects of some standard errors at random places; or those of large_table.py, where it says 0.004."""
    d, runs = 50, 300
    cases = [("chain", "4", n, m) for n in (200_000, 1_000_000, 4_000_000) for m in (0, 2_000, 20_000, 100_000)]
    cases += [("chain", "50", n, 20_000) for n in (200_000, 1_000_000, 4_000_000)]
    cases += [("equal", effect, 4_000_000, m) for effect in ("4", "500") for m in (0, 20_000)]
    cases += [("chain", "0.004", n, m) for n in (1_000_000, 2_000_000, 5_000_000, 20_000_000) for m in (0, 20_000)]
    for name, effect, n, m in cases:
        Sigma, found, start = correlations(name, d), [], time.process_time()
        size = float(effect) * np.sqrt(np.diagonal(np.linalg.inv(Sigma)) / n)
        for run in range(runs):
            rng = np.random.default_rng([run, n, m])
            beta = np.zeros(d)
            if effect == "0.004":
                beta += effects()
            else:
                here = rng.choice(d, 20, replace=False)
                beta[here] = rng.choice([-1, 1], 20) * size[here]
            found.append(counts(gaussian_table(Sigma, beta, n, m, rng), beta != 0))
        yield row(name, n, m or "true", np.array(found), 1, start) | {"effect": effect}


# ---- bent columns ------------------------------------------------------------------------------------------------

D, MATTER, TARGETS, FITS = 40, 12, 8, 4
BENDS = (
    lambda z: np.exp(0.6 * z),
    ndtr,
    lambda z: np.sinh(z) / 1.5,
    lambda z: np.abs(z + 1.5) ** 1.5 * np.sign(z + 1.5),
)


def bent_rows(n: int, L: NDArray, rng: Generator) -> NDArray:
    """Rows of Gaussians, every column bent."""
    Z = rng.standard_normal((n, D)) @ L.T
    return np.column_stack([BENDS[j % 4](Z[:, j]) for j in range(D)])


def bent_fit(n: int, m: int, all_rows: bool, seed: int) -> list[tuple[float, ...]]:
    """Return the counts of eight targets, sums of twelve smooth hinges, with knockoffs of one fit to m rows."""
    rng = np.random.default_rng([seed, n, m])
    L = np.linalg.cholesky(correlations("equal", D))
    some = bent_rows(200_000, L, rng)
    centre, unit = some.mean(axis=0), some.std(axis=0)
    matter = [rng.choice(D, MATTER, replace=False) for _ in range(TARGETS)]
    table, source = read_table(bent_rows(m, L, rng)), knockoff_source("auto")
    settled = source(table, rng=rng)
    if all_rows and wants_more_rows(source, settled, table):
        parts = (settled.model.coordinates(bent_rows(BATCH, L, rng)) for _ in range(n // BATCH))
        gram = total([Gram.of(part[:, :-1], part[:, -1]) for part in parts])
        moments = (np.array([gram.rows]), gram.mean[None], gram.scatter[None])
        settled = settle_by_moments(source, settled, table, *moments)
    folds = [Gram.empty(2 * D + TARGETS - 1) for _ in range(5)]
    for batch in range(n // BATCH):
        X = bent_rows(BATCH, L, rng)
        hinges = 0.3 * np.log1p(np.exp(3 * ((X - centre) / unit - 0.5)))
        Y = [hinges[:, here].sum(axis=1) + 0.1 * rng.standard_normal(BATCH) for here in matter]
        V = np.column_stack([X, settled.sampler.sample(X, rng).X_tilde, *Y])
        folds[batch % 5] += Gram.of(V[:, :-1], V[:, -1])
    found = []
    for t, here in enumerate(matter):
        at = np.append(np.arange(2 * D), 2 * D + t)
        grams = tuple(Gram(g.rows, g.weight, g.mean[at], g.scatter[np.ix_(at, at)]) for g in folds)
        deviations = total(grams).deviations[:-1]
        Z = np.abs(fit_lasso(FoldGrams(grams)).coef[0])
        W = (Z[:D] - Z[D:]) * np.hypot(deviations[:D], deviations[D:])
        found.append(counts(W, np.isin(np.arange(D), here)))
    return found


def bent() -> Iterator[dict[str, object]]:
    """Smaller and smaller samples of a million rows, and the smallest with the covariance of all rows."""
    for m, all_rows in ((20_000, False), (5_000, False), (2_000, False), (1_000, False), (1_000, True)):
        start = time.process_time()
        found = np.array([one for seed in range(FITS) for one in bent_fit(1_000_000, m, all_rows, seed)])
        yield row("bent", 1_000_000, f"{m}, then all" if all_rows else m, found, TARGETS, start)


def row(name: str, n: int, sample: object, found: NDArray, together: int, start: float) -> dict[str, object]:
    """Means over tables; the standard error by groups of so many that share a fit."""
    fdp, power, seven, up, down = found.T
    groups = fdp.reshape(-1, together).mean(axis=1)
    return {
        "columns": name,
        "rows": n,
        "sample": sample,
        "tables": len(fdp),
        "fdr": round(float(fdp.mean()), 3),
        "standard_error": round(float(groups.std(ddof=1)) / len(groups) ** 0.5, 3),
        "power": round(float(power.mean()), 2),
        "seven_or_more": round(float(seven.mean()), 3),
        "up": int(up.sum()),
        "down": int(down.sum()),
        "cpu_seconds": round(time.process_time() - start),
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("gaussian", "bent"))
    what = parser.parse_args().what
    warnings.simplefilter("ignore")
    rows = []
    for one in (gaussian if what == "gaussian" else bent)():
        rows.append(one)
        print(one, flush=True)
        with (RESULTS / f"streamed_fdr_{what}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
