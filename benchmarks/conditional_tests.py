"""Power of the conditional randomization test against knockoffs on small tables, P^X known: one line a design.

    PYTHONPATH=src python benchmarks/conditional_tests.py --repeats 50 --jobs 16

X is AR(1) with correlation 0.5, n rows, d columns, k of them non-null. "linear" is a sum of features; "shapes" a sum of
features that are squared, cut at 1, or multiplied in pairs. Knockoffs have the default model of y; "post hoc" is the
level chosen after looking, with its mean, from ``--draws`` draws.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from dataclasses import dataclass

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  (threads are set first)
from joblib import Parallel, delayed  # noqa: E402
from scipy.linalg import toeplitz  # noqa: E402

from knockoffs.defaults import choose  # noqa: E402
from knockoffs.features.gaussian import gaussian_features  # noqa: E402
from knockoffs.filter import false_discovery_proportion, knockoff_filter, power  # noqa: E402
from knockoffs.filter.evidence import combine_draws  # noqa: E402
from knockoffs.procedure import select_features  # noqa: E402
from knockoffs.testing.conditional import conditional_tests  # noqa: E402

DESIGNS = [(8, 3), (15, 3), (15, 6), (30, 3), (30, 10), (60, 10)]


@dataclass(frozen=True)
class GaussianConditional:
    """N(0, covariance), one feature given the others."""

    covariance: np.ndarray

    def conditional(self, j, X, rng, n_draws):
        """Draw X_j given the other columns, shape (n_draws, n)."""
        rest = np.delete(np.arange(len(self.covariance)), j)
        slope = np.linalg.solve(self.covariance[np.ix_(rest, rest)], self.covariance[rest, j])
        scale = np.sqrt(self.covariance[j, j] - self.covariance[j, rest] @ slope)
        return X[:, rest] @ slope + scale * rng.standard_normal((n_draws, len(X)))


def make_y(X, truth, shape, size, rng):
    terms = X[:, truth]
    if shape == "shapes":
        kinds = [(x**2 - 1) / np.sqrt(2) if i % 3 == 0 else 2.5 * ((x > 1) - 0.16) for i, x in enumerate(terms.T)]
        for i in range(2, len(truth), 3):  # every third in a product with the one before it
            kinds[i] = terms[:, i] * terms[:, i - 1]
        terms = np.column_stack(kinds)
    return size * terms.sum(axis=1) + rng.normal(size=len(X))


def one(d, k, shape, n, size, fdr, n_draws, seed):
    rng = np.random.default_rng([d, k, len(shape), n, seed])
    covariance = toeplitz(0.5 ** np.arange(d))
    X = rng.normal(size=(n, d)) @ np.linalg.cholesky(covariance).T
    truth = rng.choice(d, size=k, replace=False)
    non_nulls = np.isin(np.arange(d), truth)
    y = make_y(X, truth, shape, size, rng)
    start = time.process_time()
    tested = conditional_tests(GaussianConditional(covariance), X, y, kind="number", fdr=fdr, rng=rng)
    seconds = time.process_time() - start
    model, choice = gaussian_features(np.zeros(d), covariance), choose(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        W = [
            select_features(
                X,
                y,
                feature_model=model,
                estimator=choice.estimator,
                importance=choice.importance,
                evaluation=choice.evaluation,
                fdr=fdr,
                rng=stream,
            ).W
            for stream in rng.spawn(n_draws)
        ]
    after = combine_draws(W, fdr, how="post_hoc")
    found = {"test": tested.selected, "knockoffs": knockoff_filter(W[0], fdr), "post hoc": after.selected}
    scores = [(power(s, non_nulls), false_discovery_proportion(s, non_nulls)) for s in found.values()]
    return np.array([*np.ravel(scores), after.stated, seconds, time.process_time() - start - seconds])


def main() -> None:
    """Print one line a design."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--size", type=float, default=0.25)
    parser.add_argument("--fdr", type=float, default=0.1)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--largest", type=int, default=60, help="most columns")
    options = parser.parse_args()
    print("  d   k  shape   test power fdp | knockoffs power fdp | post hoc power fdp stated | seconds test, knockoffs")
    for d, k in DESIGNS:
        for shape in ("linear", "shapes") if d <= options.largest else ():
            jobs = [
                delayed(one)(d, k, shape, options.rows, options.size, options.fdr, options.draws, seed)
                for seed in range(options.repeats)
            ]
            table = np.array(Parallel(n_jobs=options.jobs)(jobs))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a mean of no stated level is NaN
                mean = np.nanmean(table, axis=0)
            print(
                f"{d:3d} {k:3d}  {shape:7s} {mean[0]:5.2f} {mean[1]:5.2f} | {mean[2]:5.2f} {mean[3]:5.2f} | "
                f"{mean[4]:5.2f} {mean[5]:5.2f} {mean[6]:5.2f} | {mean[7]:5.1f} {mean[8]:5.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
