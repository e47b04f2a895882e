"""Columns given the others, against the algebra of joint densities."""

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.features.gaussian import fit_gaussian, gaussian_features


def test_a_column_that_is_not_there_is_refused(rng):
    X = rng.normal(size=(50, 2))
    with pytest.raises(InputError, match="j=2: X has columns 0 to 1"):
        fit_gaussian(X).conditional(2, X, rng, 1)


def test_a_conditional_is_exact_in_far_tails():
    model = gaussian_features([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    _, means, _ = model.resampler(np.array([[1e6, -1e6]]), np.random.default_rng(0)).law(np.array([0]))
    assert means[0, 0, 0] == pytest.approx(-5e5)
