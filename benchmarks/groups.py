"""Groups of columns: time of the full blocks of D, and power and FDP of groups against single columns.

    python benchmarks/groups.py                  # all three tables, as csv files under benchmarks/results
    python benchmarks/groups.py --quick          # a few draws of each
    python benchmarks/groups.py --only ar        # one of: times, ar, smooth

ar: n = 1000, p = 200, AR(1) 0.9, ten signals of +-0.25, noise N(0, 1), groups by average linkage cut at |correlation|
0.5, the setting in which Knockoffs.jl has a power of .737 with groups and five knockoffs, .270 without. The law of X is
known. smooth: the design of "When knockoffs fail" (arXiv 2407.06892): white noise (50, 50, 100) of scale 5 smoothed
by a Gaussian filter and reshaped to 500 x 500, 50 signals of equal size, signal-to-noise ratio 10; the law is fitted.
Its rows depend on each other (correlation 0.85 ten rows apart). Statistics: sum, largest and length of the lasso's
coefficients in a group, and the group's contribution to the prediction of a lasso and of a ridge regression.

Power is the share of groups with a signal that are selected, FDP the share of selected groups without one.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  (threads are set first)
from scipy.linalg import toeplitz  # noqa: E402
from scipy.ndimage import gaussian_filter  # noqa: E402

from knockoffs.features.covariance import estimate_covariance  # noqa: E402
from knockoffs.filter import filter_statistics, several_statistics  # noqa: E402
from knockoffs.response.linear import LassoPathCV  # noqa: E402
from knockoffs.response.plain import RidgePathCV  # noqa: E402
from knockoffs.sampling.conjugates.gaussian import GaussianLaw, several_of  # noqa: E402
from knockoffs.sampling.diagonal import solve_diagonal  # noqa: E402
from knockoffs.table.auto_groups import auto_groups  # noqa: E402

RESULTS = Path(__file__).resolve().parent / "results"
METHODS = ("maximum_entropy", "mvr", "sdp")


def group_scores(coefficients, feature_of):
    """Ways to make one number of the coefficients of a group's columns, shape (m,) each."""
    size = np.abs(coefficients)
    largest = np.zeros(feature_of.max() + 1)
    np.maximum.at(largest, feature_of, size)
    square = np.bincount(feature_of, weights=size**2)
    return {"sum": np.bincount(feature_of, weights=size), "largest": largest, "length": np.sqrt(square)}


def fit_scores(copies, y, feature_of, rng):
    """Scores of the groups and of each copy, {statistic: (1 + m, n_groups)}: a lasso on [X, X_1, ..., X_m]."""
    X = np.hstack(copies)
    lasso, ridge = LassoPathCV(random_state=rng).fit(X, y), RidgePathCV().fit(X, y)
    each = [group_scores(part, feature_of) for part in np.split(lasso.coef_ * X.std(axis=0), len(copies))]
    found = {name: np.array([scores[name] for scores in each]) for name in each[0]}
    pooled = np.mean([np.cov(copy, rowvar=False) for copy in copies], axis=0)
    for name, model in (("lasso part", lasso), ("ridge part", ridge)):
        found[name] = np.array([group_parts(b, pooled, feature_of) for b in np.split(model.coef_, len(copies))])
    return found


def group_parts(coefficients, covariance, feature_of):
    """Compute the standard deviation of each group's part of a linear prediction, shape (m,)."""
    parts = []
    for g in range(feature_of.max() + 1):
        columns = np.flatnonzero(feature_of == g)
        b = coefficients[columns]
        parts.append(np.sqrt(max(b @ covariance[np.ix_(columns, columns)] @ b, 0.0)))
    return np.array(parts)


def select(Z, fdr, offset):
    """Select groups from scores (1 + m, n_groups)."""
    return filter_statistics(several_statistics(Z), fdr, offset, len(Z) - 1).selected


def several_copies(X, Sigma, D, m, rng, feature_of, method):
    """Draw m knockoffs, every pair with Cov = Sigma - D; for one D is given, for several it is solved."""
    if m == 1:
        return [GaussianLaw(np.zeros(len(Sigma)), Sigma, D).sample(X, rng)]
    D = solve_diagonal(Sigma, method, feature_of)
    return several_of(GaussianLaw(np.zeros(len(Sigma)), Sigma, D), m).sample(X, rng)


def result_rows(Z, feature_of, signals, label):
    """Power and FDP at every statistic, level and offset."""
    true = np.zeros(feature_of.max() + 1, dtype=bool)
    true[feature_of[signals]] = True
    for statistic, scores in Z.items():
        for fdr in (0.05, 0.1, 0.2):
            for offset in (1, 0):
                chosen = select(scores, fdr, offset)
                power = (chosen & true).sum() / true.sum()
                fdp = (chosen & ~true).sum() / max(1, chosen.sum())
                yield {**label, "statistic": statistic, "fdr": fdr, "offset": offset, "power": power, "fdp": fdp}


def ar_draw(draw, methods, copies):
    """One draw of the AR design, for each choice of D and number of copies."""
    n, p = 1000, 200
    rng = np.random.default_rng([1, draw])
    Sigma = toeplitz(0.9 ** np.arange(p))
    X = rng.standard_normal((n, p)) @ np.linalg.cholesky(Sigma).T
    signals = rng.choice(p, 10, replace=False)
    y = X[:, signals] @ rng.choice([-0.25, 0.25], 10) + rng.standard_normal(n)
    grouped = auto_groups(np.corrcoef(X, rowvar=False), cut=0.5).feature_of
    roomy = auto_groups(np.corrcoef(X, rowvar=False)).feature_of
    for groups, feature_of in (("none", np.arange(p)), ("cut 0.5", grouped), ("auto", roomy)):
        for method in methods:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                D = solve_diagonal(Sigma, method, feature_of)
            for m in copies:
                if m > 1 and method != "maximum_entropy":
                    continue
                stream = np.random.default_rng([2, draw])
                copied = several_copies(X, Sigma, D, m, stream, feature_of, method)
                Z = fit_scores([X, *copied], y, feature_of, stream)
                label = dict(draw=draw, groups=groups, n_groups=feature_of.max() + 1, method=method)
                yield from result_rows(Z, feature_of, signals, {**label, "copies": m})


def smooth_draw(draw, sigma, cases):
    """One draw of the smoothed design, for each way to make the groups."""
    rng = np.random.default_rng([3, draw])
    X = gaussian_filter(5 * rng.standard_normal((50, 50, 100)), sigma).reshape(500, 500)
    signals = rng.choice(500, 50, replace=False)
    signal = X[:, signals].sum(axis=1)
    y = signal + rng.standard_normal(500) * signal.std() / np.sqrt(10)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    Sigma = estimate_law(X)
    for groups, options in cases.items():
        feature_of = np.arange(500) if options is None else auto_groups(Sigma, **options).feature_of
        D = solve_diagonal(Sigma, "maximum_entropy", feature_of)
        stream = np.random.default_rng([4, draw])
        Z = fit_scores([X, *several_copies(X, Sigma, D, 1, stream, feature_of, None)], y, feature_of, stream)
        label = dict(draw=draw, sigma=sigma, groups=groups, n_groups=feature_of.max() + 1)
        label["largest"] = np.bincount(feature_of).max()
        yield from result_rows(Z, feature_of, signals, label)


def estimate_law(X):
    """Covariance as the Gaussian family fits it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimate_covariance(X, what="the Gaussian")[1]


def times(sizes):
    """CPU seconds of D: AR(1) 0.9 and the sample covariance of 2 p rows of it."""
    for p in sizes:
        Sigma = toeplitz(0.9 ** np.arange(p))
        rows = np.random.default_rng(p).standard_normal((2 * p, p)) @ np.linalg.cholesky(Sigma).T
        for law, S in (("ar 0.9", Sigma), ("sample", np.cov(rows, rowvar=False))):
            for size in (1, 5, 10):
                for method in METHODS:
                    start = time.process_time()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        solve_diagonal(S, method, np.arange(p) // size)
                    seconds = round(time.process_time() - start, 3)
                    yield dict(p=p, law=law, size=size, method=method, seconds=seconds)


def write(name, rows):
    """Write rows as a csv file, and print them."""
    rows = list(rows)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print(*row.values(), sep=", ")


def means(rows, keys):
    """Mean power and FDP over draws, with the standard error of the power."""
    draws = {}
    for row in rows:
        draws.setdefault(tuple(row[key] for key in keys), []).append((row["power"], row["fdp"], row["n_groups"]))
    for key, values in draws.items():
        power, fdp, n_groups = np.array(values).T
        yield {
            **dict(zip(keys, key, strict=True)),
            "draws": len(power),
            "n_groups": round(n_groups.mean(), 1),
            "power": round(power.mean(), 3),
            "error": round(power.std() / np.sqrt(len(power)), 3),
            "fdr_found": round(fdp.mean(), 3),
        }


def main():
    """Run the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=["times", "ar", "smooth"])
    parser.add_argument("--draws", type=int)
    options = parser.parse_args()
    if options.only in (None, "times"):
        write("groups_times", times((100,) if options.quick else (200, 500)))
    if options.only in (None, "ar"):
        draws = options.draws or (2 if options.quick else 30)
        copies = (1,) if options.quick else (1, 5)
        rows = (row for i in range(draws) for row in ar_draw(i, METHODS, copies))
        write("groups_ar", means(rows, ["groups", "method", "copies", "statistic", "fdr", "offset"]))
    if options.only in (None, "smooth"):
        draws = options.draws or (2 if options.quick else 10)
        cases = {
            "none": None,
            "auto": {},
            "cut 0.5": {"cut": 0.5},
            "cut 0.2": {"cut": 0.2},
        }
        rows = (row for i in range(draws) for row in smooth_draw(i, 1.25, cases))
        write("groups_smooth", means(rows, ["sigma", "groups", "statistic", "fdr", "offset"]))


if __name__ == "__main__":
    main()
