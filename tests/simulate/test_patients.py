"""The made-up table: kinds of columns, empty cells, and the columns that matter."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from knockoffs.simulate.patients import LABS, MATTER, SPARE, make_patients  # noqa: E402


def test_columns_and_cells():
    X, y = make_patients(2000, np.random.default_rng(0))
    assert sorted(X.columns) == sorted((*MATTER, *SPARE))
    assert set(X.columns[X.isna().any()]) == set(LABS)
    # 16,000 cells, standard error .002: five of them
    assert abs(X[list(LABS)].isna().to_numpy().mean() - 0.08) < 0.011
    assert y.shape == (2000,)
    assert np.isfinite(y).all()


def test_the_days_depend_on_what_matters_and_on_nothing_else():
    X, y = make_patients(4000, np.random.default_rng(1), missing=0.0)
    codes = X.apply(lambda column: pd.factorize(column, sort=True)[0].astype(float))
    skewed = codes.columns[codes.nunique() > 100]
    codes[skewed] = np.log(X[skewed].astype(float))
    design = np.column_stack([np.ones(len(y)), (codes - codes.mean()) / codes.std()])
    slopes, residual = np.linalg.lstsq(design, y, rcond=None)[:2]
    error = np.sqrt(residual[0] / (len(y) - 25) * np.diagonal(np.linalg.inv(design.T @ design)))
    t = dict(zip(codes.columns, slopes[1:] / error[1:], strict=True))
    assert min(abs(t[name]) for name in MATTER) > 10
    assert (
        max(abs(t[name]) for name in SPARE) < 5
    )  # false failure about 1e-5: labels in sorted order are near the truth
