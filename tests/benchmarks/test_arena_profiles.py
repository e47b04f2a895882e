"""Every slow path that is profiled is still there, and so are the functions that its bounds are made of."""

import numpy as np
from benchmarks.arena.profiles import checked, fit_of_features, scores


def test_every_path_runs_and_its_bound_is_work_that_it_did(rng):
    X = rng.standard_normal((400, 6))
    y = X.sum(axis=1) + rng.standard_normal(400)
    before = X.copy()
    for path in (fit_of_features(X), scores(X, y), checked(X)):
        assert not any(bound.startswith(("0 fits", "matrix products (BLAS) of 0 ")) for bound in path.bounds)
        for bound in path.bounds.values():
            bound()
        path.call()
    np.testing.assert_array_equal(X, before)
