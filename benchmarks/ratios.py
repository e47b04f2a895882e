"""CPU time of the core against plain NumPy in the same run: a machine that is slow is slow for both.

    PYTHONPATH=src python -m benchmarks.ratios

A ratio is the median of nine pairs of CPU times of one thread, work and reference in turn. The usual ratios are those
of a quiet machine; on busy cores the largest of 90 was 1.2 times the usual one.
"""

import time
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from knockoffs.features.gaussian import gaussian_features
from knockoffs.features.gaussian_mixture import gaussian_mixture_features
from knockoffs.filter import knockoff_filter
from knockoffs.response.linear import LassoPathCV
from knockoffs.sampling.diagonal import solve_diagonal
from knockoffs.sampling.sampler import sample_knockoffs

PAIRS = 9


def ratio(work, reference, pairs=PAIRS):
    """Median of CPU time of work over that of the reference; both are called once before."""
    with threadpool_limits(1):
        work(), reference()
        found = []
        for _ in range(pairs):
            times = []
            for call in (work, reference):
                start = time.process_time()
                call()
                times.append(time.process_time() - start)
            found.append(times[0] / times[1])
    return float(np.median(found))


def times(count, call):
    for _ in range(count):
        call()


def correlations(p):
    return 0.5 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))


def gaussian_draw():
    p, rng = 200, np.random.default_rng(0)
    S = correlations(p)
    law = gaussian_features(np.zeros(p), S)
    network = law.as_network()
    X = rng.standard_normal((2000, p))
    D = solve_diagonal(S)
    slope = np.linalg.solve(S, D)
    factor = np.linalg.cholesky(2 * D - D @ slope)

    def plain():
        return X - X @ slope + rng.standard_normal(X.shape) @ factor.T

    return lambda: sample_knockoffs(network, X, rng), plain


def mixture_draw():
    p, rng = 60, np.random.default_rng(0)
    Sigmas = np.stack([correlations(p)] * 3)
    network = gaussian_mixture_features(np.full(3, 1 / 3), rng.standard_normal((3, p)), Sigmas).as_network()
    X = rng.standard_normal((4000, p))
    factor = np.linalg.cholesky(Sigmas[0])

    def plain():  # three densities, one draw
        for _ in range(3):
            (np.linalg.solve(factor, X.T) ** 2).sum(axis=0)
        return X @ factor + rng.standard_normal(X.shape) @ factor.T

    return lambda: sample_knockoffs(network, X, rng), plain


def diagonal():
    S = correlations(150)
    return partial(solve_diagonal, S), partial(np.linalg.eigh, S)


def lasso():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 200))
    y = X[:, :10].sum(axis=1) + rng.standard_normal(500)

    def plain():
        return times(10, lambda: X.T @ X)

    return lambda: LassoPathCV(random_state=0).fit(X, y), plain


def threshold():
    W = np.random.default_rng(0).standard_normal(100_000) + 0.5
    return partial(knockoff_filter, W, 0.1), partial(np.argsort, W)


# name: (work and reference, the usual ratio)
PATHS = {
    "gaussian_draw": (gaussian_draw, 0.88),
    "mixture_draw": (mixture_draw, 0.68),
    "diagonal": (diagonal, 2.45),
    "lasso": (lasso, 3.6),
    "threshold": (threshold, 4.5),
}


def main():
    for name, (make, usual) in PATHS.items():
        print(f"{name:15} {ratio(*make()):6.2f} times NumPy (usual {usual:.2f})", flush=True)


if __name__ == "__main__":
    main()
