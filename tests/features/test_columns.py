"""Columns without a law of their own: constants, copies, sums, and the smallest set to leave out."""

import numpy as np
from tests.refusals import refuses

from knockoffs.features.gaussian import free_columns
from knockoffs.table.redundancy import dependent_columns, standardise


def found(X):
    return {j: of.tolist() for j, of in dependent_columns(standardise(X)[0]).items()}


def test_standardised_columns_keep_their_digits_and_x_its_values(rng):
    X = rng.normal(size=(100, 3)) * [1e-200, 1.0, 1e200] + [0, 1e6, 0]
    before = X.copy()
    Z, centre, scale = standardise(X)
    assert (X == before).all()
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(Z.std(axis=0), 1, rtol=1e-9)
    np.testing.assert_allclose(centre + scale * Z, X, rtol=1e-12)


def test_every_relation_is_found_at_once_and_later_columns_go(rng):
    X = rng.normal(size=(200, 6))
    X = np.column_stack([X, 2 * X[:, 0] - X[:, 2], 1e6 * X[:, 1] + 3, X[:, 3] + X[:, 4] + X[:, 5]])
    assert found(X) == {6: [0, 2], 7: [1], 8: [3, 4, 5]}
    assert found(X[:, ::-1]).keys() == {5, 7, 8}


def test_a_chain_of_relations_drops_as_many_as_the_rank_asks_for(rng):
    """A full set of indicators, its sums, and a copy: rank 8 of 12 columns, whatever their order."""
    labels = rng.integers(4, size=300)
    X = np.column_stack([np.eye(4)[labels], rng.normal(size=(300, 5))])
    X = np.column_stack([X, X[:, 0] + X[:, 1], -X[:, 5], X[:, 4] - X[:, 8]])
    rank = np.linalg.matrix_rank(X - X.mean(axis=0))
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(12)
        assert len(found(X[:, order])) == 12 - rank == 4
    assert found(X) == {3: [0, 1, 2], 9: [0, 1], 10: [5], 11: [4, 8]}


def test_innocent_columns_are_not_named(rng):
    """64 columns with a common factor (correlations 0.9999) and one sum: weights of a plain fit name most of them."""
    X = rng.normal(size=(2000, 1)) + 1e-2 * rng.normal(size=(2000, 63))
    X = np.column_stack([X, X[:, 3] + X[:, 40]])
    assert found(X) == {63: [3, 40]}


def test_a_column_near_the_sum_is_not_taken_for_a_part_of_it(rng):
    X = rng.normal(size=(300, 3))
    X = np.column_stack([X, X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=300), X[:, 0] + X[:, 1]])
    assert found(X) == {4: [0, 1]}


def test_near_collinear_columns_are_free(rng):
    X = rng.normal(size=(300, 10))
    near = np.column_stack([X, X.sum(axis=1) + 1e-4 * rng.normal(size=300)])
    assert found(near) == {}
    assert found(np.column_stack([X, X.sum(axis=1) + 1e-7 * rng.normal(size=300)])) != {}


def test_with_few_rows_only_copies_count(rng):
    X = rng.normal(size=(10, 20))
    assert found(np.column_stack([X, -X[:, 1], 5 * X[:, 1] + 1, X[:, 0] + X[:, 1]])) == {20: [1], 21: [1]}


def test_bad_tables_are_refused(rng):
    refuses("X has 2 rows", free_columns, rng.normal(size=(2, 2)))
    refuses("columns '0', '1' are constant", free_columns, np.ones((5, 2)))
