import numpy as np
import pytest

from knockoffs.experiments.drawn_labels import LABELS, draw_truth, linear_effect, rank_effect, unit
from knockoffs.table.table import read_table


@pytest.fixture
def table(rng):
    n = 200
    labels = rng.choice(["red", "green", "blue"], n)
    columns = {f"x{j}": rng.standard_normal(n) for j in range(6)} | {"colour": labels, "count": rng.poisson(1.0, n)}
    columns["tail"] = rng.standard_t(1, n)
    columns["gaps"] = np.where(rng.random(n) < 0.3, np.nan, rng.standard_normal(n))
    return read_table(_frame(columns))


def _frame(columns):
    import polars as pl

    return pl.DataFrame(columns)


@pytest.mark.parametrize("labels", LABELS)
def test_labels_use_the_chosen_columns_and_no_other(table, labels):
    truth = np.zeros(10, dtype=bool)
    truth[[0, 3, 6, 7, 8]] = True
    y = LABELS[labels](table, truth, np.random.default_rng(1))
    moved = table.X.copy()
    moved[:, ~truth] = np.random.default_rng(2).standard_normal((200, 5))
    assert np.array_equal(y, LABELS[labels](_with(table, moved), truth, np.random.default_rng(1)))
    for j in np.flatnonzero(truth):
        other = table.X.copy()
        other[:, j] = other[::-1, j]
        assert not np.array_equal(y, LABELS[labels](_with(table, other), truth, np.random.default_rng(1)))


def test_a_column_with_many_missing_cells_is_never_chosen(table):
    assert not any(draw_truth(table, np.random.default_rng(seed))[9] for seed in range(50))
    assert draw_truth(table, np.random.default_rng(0)).sum() == 6


def test_a_missing_cell_counts_as_the_mean(table, rng):
    for effect in (linear_effect, rank_effect):
        found = effect(table, 9, rng)
        assert np.all(found[np.isnan(table.X[:, 9])] == 0)
        present = found[~np.isnan(table.X[:, 9])]
        assert present.mean() == pytest.approx(0, abs=1e-12)
        assert present.std() == pytest.approx(1)


def test_one_row_is_never_all_of_the_signal(table, rng):
    effect = linear_effect(table, 8, rng)
    assert np.abs(effect).max() < 4 < np.abs(unit(table.X[:, 8])).max()


def _with(table, X):
    from dataclasses import replace

    return replace(table, X=X)
