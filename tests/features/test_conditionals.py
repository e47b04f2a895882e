"""Columns given the others, against the algebra of joint densities."""

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.features.gaussian import fit_gaussian, gaussian_features


def test_fixed_columns_are_drawn_as_they_are_and_places_are_those_of_the_table(rng):
    X = np.column_stack([np.full(50, 3.0), rng.normal(size=(50, 2))])
    model = fit_gaussian(X)
    assert (model.conditional(0, X, rng, 3) == 3).all()
    alone = fit_gaussian(X[:, 1:])
    same = alone.conditional(1, X[:, 1:], np.random.default_rng(0), 3)
    np.testing.assert_allclose(model.conditional(2, X, np.random.default_rng(0), 3), same)
    with pytest.raises(InputError, match="j=3: X has columns 0 to 2"):
        model.conditional(3, X, rng, 1)


def test_a_conditional_is_exact_in_far_tails():
    model = gaussian_features([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    _, means, _ = model.given_others(np.array([[1e6, -1e6]])).law(np.array([0]))
    assert means[0, 0, 0] == pytest.approx(-5e5)
