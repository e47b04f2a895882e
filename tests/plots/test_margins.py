import numpy as np
import pytest

from knockoffs.plots.knockoffs import MOST_BARS, margin, strongest_pairs
from knockoffs.table.columns import Column


def test_a_continuous_column_has_intervals_that_hold_every_row(rng):
    x = rng.standard_normal(1000)
    x[0] = 1e6  # a stray value does not press the rest flat
    found = margin(x, rng.permutation(x), Column("x"))
    assert found.edges[-1] < 100
    assert np.allclose(found.shares.sum(axis=1), 1)
    assert np.allclose(found.shares[0], found.shares[1])


def test_labels_keep_their_names_and_the_rare_ones_are_joined(rng):
    codes = rng.integers(0, 30, 2000).astype(float)
    column = Column("x", "string", tuple(f"l{k}" for k in range(30)), "nominal")
    found = margin(codes, codes, column)
    assert len(found.labels) == MOST_BARS and found.labels[-1] == "others"
    assert np.allclose(found.shares.sum(axis=1), 1)
    assert found.nearness == "agreement 1.00"
    often = f"l{np.bincount(codes.astype(int)).argmax()}"
    assert found.labels[0] == often


def test_the_nearest_columns_are_found_by_ranks(rng):
    x = rng.standard_normal(500)
    X = np.column_stack([x, rng.standard_normal(500), np.exp(3 * x), np.ones(500), -x + rng.standard_normal(500)])
    assert strongest_pairs(X, 0) == [2, 4]
    assert strongest_pairs(X[:, :1], 0) == []


def test_whole_numbers_are_counted_alike_in_every_interval():
    x = np.repeat(np.arange(20, 81), 10).astype(float)
    found = margin(x, x[::-1], Column("x"))
    widths = np.diff(found.edges)
    assert (widths == widths[0]).all() and widths[0] == int(widths[0])
    assert (found.edges % 1 == 0.5).all()
    assert found.shares.sum(axis=1).tolist() == pytest.approx([1, 1])
    inner = found.shares[0, 1:-1]
    assert inner.max() == pytest.approx(inner.min())  # even shares stay even


def test_grades_of_many_steps_are_drawn_as_numbers(rng):
    x = np.round(np.clip(rng.normal(7, 1.2, 600), 3.3, 10), 1)  # hours of sleep, to a tenth
    found = margin(x, rng.permutation(x), Column("x", "number", None, "ordinal"))
    assert found.labels is None and found.shares.sum(axis=1).tolist() == pytest.approx([1, 1])
    per_bar = np.diff(found.edges) / 0.1
    assert per_bar == pytest.approx(np.full(len(per_bar), per_bar[0])) and per_bar[0] == pytest.approx(
        round(per_bar[0])
    )
    few = margin(np.round(x), np.round(x), Column("x", "number", None, "ordinal"))
    assert few.edges is None and few.labels[0] in "3456"


def test_even_shares_stay_even_whatever_the_steps():
    x = np.repeat(np.arange(0, 6.1, 0.1), 7)
    inner = margin(x, x[::-1], Column("x")).shares[0, 1:-1]
    assert inner.max() == pytest.approx(inner.min())
