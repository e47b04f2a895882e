from dataclasses import replace

import numpy as np
import pytest

from knockoffs.experiments import column_designs
from knockoffs.experiments.column_designs import DESIGNS, Config, Design, covariance, naive_pair, oracle_pair, simulate
from knockoffs.experiments.runner import Context


@pytest.mark.parametrize("name", DESIGNS)
def test_every_design_is_what_its_name_says(name, rng):
    design = DESIGNS[name]
    data = simulate(design, rng)
    assert data.table.X.shape == (design.n, len(design.kinds))
    if design.cut_by_neighbour:
        missing = np.isnan(data.table.X)
        assert not missing[:, 0::2].any()
        assert np.nanmin(np.where(missing[:, 1], data.table.X[:, 0], np.inf)) > np.max(data.table.X[~missing[:, 1], 0])
    assert np.isnan(data.table.X).mean() == pytest.approx(design.missing, abs=0.03)
    assert np.linalg.eigvalsh(covariance(design))[0] > 0
    said = {kind: kind for kind in ("count", "binary", "ordinal", "nominal")}
    said |= {"band": "ordinal", "unordered_band": "nominal"}
    for kind, found in zip(design.kinds, data.table.kinds, strict=True):
        assert found == said.get(kind, found)
    shown = column_designs.with_indicators(data.table)
    assert [k == "nominal" for k in shown.kinds] == ["band" in k or k == "nominal" for k in design.kinds]


@pytest.mark.parametrize("kind", [kind for kind in column_designs.WRITE])
def test_the_oracle_is_exchangeable(kind):
    # means and covariances of (X, X_tilde) before and after a swap of half the columns, five standard errors: with 78
    # moments the test fails by chance less than once in 10,000 times
    design = Design((kind,) * 4, n=20_000)
    data = simulate(design, np.random.default_rng(0))
    pair = oracle_pair(design, data, np.random.default_rng(1))[1]
    moved = pair.swap(np.array([True, False, True, False]))
    U, V = (np.tanh(p.stacked) for p in (pair, moved))  # bounded, so that four moments are enough
    first, second = ((A[:, :, None] * A[:, None, :]).reshape(len(A), -1) for A in (U, V))
    for a, b in ((U, V), (first, second)):
        error = (a - b).std(axis=0) / np.sqrt(len(a))
        assert (np.abs((a - b).mean(axis=0)) <= 5 * error + 1e-12).all()
    assert not np.array_equal(pair.X, pair.X_tilde)


def test_the_naive_treatment_leaves_the_support():
    design = Design(("nominal", "binary", "log_normal") * 3)
    table, pair = naive_pair(design, simulate(design, np.random.default_rng(0)), np.random.default_rng(1))
    assert len(table.feature_names) == 9
    assert pair.X.shape[1] == 12  # two indicators for three levels
    assert pair.X_tilde.min() < 0  # where log-normal columns have no values


def test_rows_and_what_is_kept(tmp_path):
    config = Config(("20 binary columns",), repetitions=2)
    context = Context(n_jobs=1, chunks=tmp_path)
    rows = column_designs.run(config, np.random.default_rng(0), context)
    assert len(rows) == 3 * 2 * 2
    assert all(row["repetitions"] == 2 for row in rows)
    assert column_designs.run(replace(config, minutes=0.0), np.random.default_rng(0), context) == rows
    column_designs.write_page(rows, tmp_path / "page.md")
    assert "| 20 binary columns | 500 | 20 | 0.0 % | 20 binary |" in (tmp_path / "page.md").read_text()
    assert column_designs.plot(rows).axes


def test_no_time_no_rows():
    config = Config(("20 binary columns",), repetitions=2, minutes=0.0)
    assert column_designs.run(config, np.random.default_rng(0), Context(n_jobs=1)) == []
