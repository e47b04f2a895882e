"""What a caller does around a fit: frames in a pipeline, subclasses, other settings of numpy, a fit that fails."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from knockoffs import KnockoffSelector, fit_streamed, read_table
from knockoffs.errors import InputError, KnockoffWarning

N = 80
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 6))
Y = X[:, 0] + X[:, 1] + 0.3 * RNG.standard_normal(N)
FRAME = pd.DataFrame(X, columns=[*"abcdef"])
OPTIONS = {"fdr": 0.3, "estimator": "lasso", "verdict": False, "method": "knockoffs", "level": "post_hoc"}
MIXED = FRAME.assign(
    date=pd.date_range("2020", periods=N)[RNG.permutation(N)],
    zone=pd.date_range("2021", periods=N, tz="Europe/Zurich")[RNG.permutation(N)],
    lasts=pd.to_timedelta(RNG.integers(1, 900, N), unit="h"),
    label=pd.Categorical(RNG.choice([*"uvw"], N)),
    whole=pd.array([None if i % 9 == 0 else int(v) for i, v in enumerate(RNG.integers(0, 9, N))], dtype="Int64"),
)
KEPT = [*MIXED.columns[6:]]


@pytest.fixture(autouse=True)
def only_our_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", KnockoffWarning)
        yield


FRAMES = {"pandas": MIXED, "polars": pl.from_pandas(MIXED), "pyarrow": None}
FRAMES["pyarrow"] = FRAMES["polars"].to_arrow()


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_what_a_fit_takes_a_transform_takes_too(frame):
    """Dates, durations and labels are kept here as covariates, whatever is selected."""
    selector = KnockoffSelector(**OPTIONS, covariates=KEPT).fit(frame, Y)
    names = selector.get_feature_names_out().tolist()
    assert names[-len(KEPT) :] == KEPT
    array = selector.transform(frame)
    assert isinstance(array, np.ndarray) and array.shape == (N, len(names))
    out = selector.set_output(transform="pandas").transform(frame)
    assert out.columns.tolist() == names and out["date"].dtype.kind == out["lasts"].dtype.kind.upper() == "M"
    assert out["label"].tolist() == MIXED["label"].tolist()
    other = selector.set_output(transform="polars").transform(frame)
    assert other.columns == names and other["lasts"].dtype == pl.Duration


def test_sparse_columns_are_transformed():
    frame = FRAME.assign(a=pd.arrays.SparseArray(X[:, 0]), g=pd.arrays.SparseArray(np.where(X[:, 1] > 0, 0.0, X[:, 3])))
    selector = KnockoffSelector(**OPTIONS, covariates=["g"]).fit(frame, Y)
    np.testing.assert_array_equal(selector.transform(frame)[:, -1], frame["g"])
    out = selector.set_output(transform="polars").transform(frame)
    np.testing.assert_array_equal(out["g"], frame["g"])


class Narrow(KnockoffSelector):
    """Parameters of its own, and some of the selector's."""

    def __init__(self, share=0.3):
        self.share = share
        super().__init__(**OPTIONS | {"fdr": share})


class Bare(KnockoffSelector):
    """Parameters of its own, and none of the selector's."""

    def __init__(self, share=0.3):
        self.share = share


class Must(KnockoffSelector):
    """A parameter without a default."""

    def __init__(self, share):
        self.share = self.fdr = share
        self.method, self.level, self.verdict = "knockoffs", "post_hoc", False


@pytest.mark.parametrize("kind", [Narrow, Bare, Must])
def test_a_subclass_may_have_parameters_of_its_own(kind, tmp_path):
    """In all that a selector does: once only fit and transform knew the parameters that such a subclass leaves."""
    selector = clone(kind(0.2)).fit(FRAME, Y)
    assert selector.get_params() == {"share": 0.2}
    assert selector.transform(FRAME).shape == (N, selector.get_support().sum())
    selector.report(tmp_path / "r.html")
    assert f"{kind.__name__}(share=0.2).fit(X, y)" in (tmp_path / "r.html").read_text()
    if selector.p_values_ is None:
        assert selector.lambda_path([1.0]).W.shape == (6, 1)
    pl.from_pandas(FRAME).with_columns(y=pl.Series(Y)).write_parquet(tmp_path / "t.parquet")
    np.testing.assert_array_equal(fit_streamed(clone(selector), tmp_path / "t.parquet", "y").W_, selector.W_)


def test_numpy_may_be_set_to_raise():
    plain = KnockoffSelector(**OPTIONS).fit(MIXED, Y)
    with np.errstate(all="raise"):
        raising = KnockoffSelector(**OPTIONS).fit(MIXED, Y)
        assert np.geterr()["under"] == "raise"
    np.testing.assert_array_equal(raising.W_, plain.W_)


def test_an_array_of_dask_is_called_so():
    dask = pytest.importorskip("dask.array")
    with pytest.raises(InputError, match=r"X is a dask array: pass X.compute\(\)"):
        KnockoffSelector(**OPTIONS).fit(dask.from_array(X), Y)


def test_missing_cells_are_explained():
    gaps = FRAME.mask(RNG.random(FRAME.shape) < 0.1)
    n = int(gaps.isna().to_numpy().sum())
    said = KnockoffSelector(**OPTIONS).fit(gaps, Y).explain()
    assert f"{n} cells are missing ({n / gaps.size:.2g} of all) and drawn from P^X" in said
    assert "missing" not in KnockoffSelector(**OPTIONS).fit(FRAME, Y).explain()


def test_knockoffs_have_the_decimals_of_their_column():
    frame = FRAME.assign(a=FRAME["a"].round(2), b=(FRAME["b"] * 1000).round(1), c=FRAME["c"].round(2).astype(str))
    drawn = KnockoffSelector(**OPTIONS, feature_model="gaussian").fit(frame, Y).knockoffs_
    np.testing.assert_array_equal(drawn["a"], drawn["a"].round(2))
    np.testing.assert_array_equal(drawn["b"], drawn["b"].round(1))
    assert drawn["c"].str.fullmatch(r"-?\d+\.\d{1,2}").all()
    assert (drawn["d"] != drawn["d"].round(12)).any()
    table = read_table(frame)
    pd.testing.assert_frame_equal(table.decode(table.X), frame)  # what was there is unchanged
