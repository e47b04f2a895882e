"""Simulated columns and real tables as designs of the arena, and the labels that are drawn for them."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from benchmarks.arena import methods, quality  # noqa: E402
from benchmarks.columns import Columns, covariance, exact_options, write  # noqa: E402
from benchmarks.labels import LABELS, draw_truth, linear_effect, rank_effect, unit  # noqa: E402

from benchmarks import columns, data, tables  # noqa: E402


@pytest.fixture
def frame(rng):
    n = 200
    cells = {f"x{j}": rng.standard_normal(n) for j in range(6)}
    cells |= {"colour": rng.choice(["red", "green", "blue"], n), "count": rng.poisson(1.0, n)}
    cells |= {"tail": rng.standard_t(1, n), "gaps": np.where(rng.random(n) < 0.3, np.nan, rng.standard_normal(n))}
    return pd.DataFrame(cells)


@pytest.mark.parametrize("labels", LABELS)
def test_labels_use_the_chosen_columns_and_no_other(frame, labels):
    truth = np.zeros(10, dtype=bool)
    truth[[0, 3, 6, 7, 8]] = True
    y = LABELS[labels](frame, truth, np.random.default_rng(1))
    for j in range(10):
        moved = frame.copy()
        moved.isetitem(j, frame.iloc[::-1, j].to_numpy())
        same = np.array_equal(y, LABELS[labels](moved, truth, np.random.default_rng(1)))
        assert same == (not truth[j])


def test_a_column_with_many_missing_cells_is_never_chosen(frame):
    assert not any(draw_truth(frame, np.random.default_rng(seed))[9] for seed in range(50))
    assert draw_truth(frame, np.random.default_rng(0)).sum() == 6


def test_a_missing_cell_counts_as_the_mean(frame, rng):
    missing = frame["gaps"].isna()
    for effect in (linear_effect, rank_effect):
        found = effect(frame["gaps"], rng)
        assert np.all(found[missing] == 0)
        assert found[~missing].mean() == pytest.approx(0, abs=1e-12) and found[~missing].std() == pytest.approx(1)


def test_one_row_is_never_all_of_the_signal(frame, rng):
    assert np.abs(linear_effect(frame["tail"], rng)).max() < 4 < np.abs(unit(frame["tail"].to_numpy())).max()


@pytest.mark.parametrize("name", columns.TABLES)
def test_every_design_is_what_its_name_says(name):
    law, drawn = columns.TABLES[name], columns.draw(f"{name}, linear", 0)
    X = drawn.X
    assert X.shape == (law.n, len(law.kinds)) and drawn.non_nulls.sum() == law.n_non_nulls
    assert X.isna().to_numpy().mean() == pytest.approx(law.missing, abs=0.03)
    if law.cut_by_neighbour:
        assert not X.iloc[:, 0::2].isna().any(axis=None)
        hidden = X.iloc[:, 1].isna()
        assert X.iloc[:, 0][hidden].min() > X.iloc[:, 0][~hidden].max()
    assert np.linalg.eigvalsh(covariance(law))[0] > 0
    pd.testing.assert_frame_equal(columns.draw(f"{name}, linear", 0).X, X)


@pytest.mark.parametrize("kind", columns.WRITE)
def test_the_oracle_is_exchangeable(kind):
    # means and products of (X, X_tilde) before and after a swap of half the columns, five standard errors: with 72
    # moments the test fails by chance less than once in 10,000 times
    law, rng = Columns((kind,) * 4, n=20_000), np.random.default_rng(0)
    L = columns.normal(covariance(law), law.n, rng)
    X, X_tilde = write(law, L), exact_options(law, L, 1.0, rng)["knockoffs"]
    codes = [table.apply(lambda x: x if x.dtype == float else x.factorize(sort=True)[0]) for table in (X, X_tilde)]
    A, B = (np.tanh(table.to_numpy(float)) for table in codes)  # bounded, so that four moments are enough
    swapped = np.array([True, False, True, False])
    U, V = np.hstack([A, B]), np.hstack([np.where(swapped, B, A), np.where(swapped, A, B)])
    products = ((M[:, :, None] * M[:, None, :]).reshape(len(M), -1) for M in (U, V))
    for a, b in ((U, V), tuple(products)):
        error = (a - b).std(axis=0) / np.sqrt(len(a))
        assert (np.abs((a - b).mean(axis=0)) <= 5 * error + 1e-12).all()
    assert not np.array_equal(A, B)


def test_the_methods_run_on_a_table_with_labels_and_missing_cells():
    design = "20 of all kinds, a fifth missing, curved"
    drawn = columns.draw(design, 0)
    assert not methods.able("oracle", drawn) and methods.able("oracle", columns.draw("20 count columns, linear", 0))
    rows = quality.one(design, 0, ("lasso", "oracle_lasso", "naive"), np.inf, 60.0, "columns")
    assert {row["method"] for row in rows} == {"lasso", "naive"} and not any(row.get("error") for row in rows)


def test_a_real_table_has_labels_drawn_from_a_quarter_of_its_columns(tmp_path, capsys, monkeypatch):
    drawn = tables.draw("breast cancer, curved", 1)
    assert drawn.X.shape == (569, 26) and drawn.non_nulls.sum() == 6 and set(drawn.y) == {0, 1}
    quality.run(
        ["wine, linear"], ["naive"], tmp_path / "q.csv", repetitions=2, minutes=1, jobs=1, limit=60, suite="tables"
    )
    assert "| wine, linear | " in quality.markdown(tmp_path / "q.csv")


def test_copies_and_constants_are_left_out(monkeypatch, rng):
    a, b = rng.standard_normal((2, 100))
    rare = np.r_[np.zeros(95), np.ones(5)]
    monkeypatch.setitem(
        tables.SOURCES, "made up", lambda: pd.DataFrame({"a": a, "b": b, "exp": np.exp(a), "rare": rare})
    )
    assert list(tables.load("made up").columns) == ["a", "b"]


def test_hiv_and_newswire(data_folder):
    X, y = data.load_hiv("APV", data_folder)
    assert len(X) == 767 and (X.sum() >= 3).all() and y[0] == pytest.approx(np.log(2.3))
    assert not X.T.duplicated().any()
    on = np.isin(data.positions_of(X), data.TSM_POSITIONS[data.class_of("APV")])
    assert 0 < on.sum() < X.shape[1]
    X, label = data.load_newswire(1000, data_folder)
    assert X.shape == (7674, 1000) and (label == "earn").sum() == 3923
    assert X.to_numpy().sum() > 0.8 * 495_226  # most of the tokens
