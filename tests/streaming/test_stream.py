"""A table in batches: the same answer as in memory, wherever its rows lie and whoever works on them."""

import joblib
import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression
from tests.refusals import refuses

from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.features.covariance import PLENTY
from knockoffs.features.gaussian import fit_gaussian
from knockoffs.features.source import knockoff_source
from knockoffs.importance.accuracy_drop import swap_score
from knockoffs.importance.coefficients import coefficient_magnitude
from knockoffs.importance.statistic import ModelScore
from knockoffs.procedure import Streams
from knockoffs.response.linear import LassoPathCV
from knockoffs.sampling.pair import Pair
from knockoffs.seeds import stream_at
from knockoffs.selector import KnockoffSelector
from knockoffs.streaming.rest import Part
from knockoffs.streaming.statistic import ModelSum
from knockoffs.streaming.stream import fit_streamed
from knockoffs.table.stream import open_rows
from knockoffs.table.table import read_table
from knockoffs.table.target import Target, as_target

N, D, SAMPLED, BATCH = 900, 12, 300, 100


def numbers(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) @ (np.eye(D) + 0.2) + np.arange(D)
    y = (X - X.mean(0))[:, :6].sum(axis=1) + 2 * rng.standard_normal(n)
    return pl.DataFrame(X, schema=[f"x{j}" for j in range(D)]).with_columns(y=pl.Series(y))


def selector(**options):
    common = {"fdr": 0.2, "feature_model": "gaussian", "estimator": "lasso", "verdict": False, "random_state": 3}
    return KnockoffSelector(**{**common, **options})


def fit(path, target="y", *, options=None, **more):
    return fit_streamed(
        selector(**(options or {})), path, target, **{"sample_rows": SAMPLED, "batch_rows": BATCH, **more}
    )


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.parquet"
    numbers().write_parquet(path, row_group_size=70)
    return path


def in_memory(frame, sampled_rows=SAMPLED, at=stream_at):
    """W of all rows at once, the knockoffs of every batch drawn from its own stream."""
    X, y = frame.drop("y").to_numpy(), frame["y"].to_numpy()
    n = len(y)
    rng = np.random.default_rng(3)
    sampled = np.sort(rng.spawn(1)[0].choice(n, sampled_rows, replace=False))
    streams = Streams(*rng.spawn(4))
    fitted = X[sampled] if sampled_rows >= PLENTY * D else X  # a small sample leaves the covariance to all rows
    sampler = knockoff_source("gaussian")(read_table(fitted), rng=streams.fit).sampler
    draw, _, score, batches = streams.draw.spawn(1)[0].spawn(4)
    parts = [(sampled, draw, score.spawn(3)[2])]
    for k, start in enumerate(range(0, n, BATCH)):
        rows = np.setdiff1d(np.arange(start, min(start + BATCH, n)), sampled)
        parts.append((rows, *at(batches, k).spawn(2)))
    drawn = [(rows, sampler.sample(X[rows], a).X_tilde, b.integers(5, size=len(rows))) for rows, a, b in parts]
    rows, X_tilde, fold_of = (np.concatenate(part) for part in zip(*drawn, strict=True))
    model = LassoPathCV(folds=fold_of).fit(np.hstack([X[rows], X_tilde]), y[rows])
    scores = coefficient_magnitude(model, X[rows], X_tilde, y[rows], feature_of=np.arange(X.shape[1]))
    return scores.Z - scores.Z_tilde


@pytest.mark.parametrize("sampled", [SAMPLED, PLENTY * D + 5])
def test_the_same_as_in_memory(table, sampled):
    found = fit(table, sample_rows=sampled).W_
    np.testing.assert_allclose(found, in_memory(pl.read_parquet(table), sampled), atol=1e-10)
    assert (found != 0).sum() > 5


@pytest.mark.parametrize("options", [{}, {"estimator": "boosting"}, {"n_draws": 2, "level": "post_hoc"}])
def test_a_sample_of_all_rows_has_the_answer_of_fit(table, options):
    frame = pl.read_parquet(table)
    expected = selector(method="knockoffs", **options).fit(frame.drop("y"), frame["y"]).selection_
    found = fit(table, sample_rows=N, options=options).selection_
    np.testing.assert_array_equal(found.draws, expected.draws)
    np.testing.assert_array_equal(found.X_tilde, expected.X_tilde)


def test_knockoffs_that_are_kept_have_the_decimals_of_the_sample(tmp_path):
    """The planted fault would be those of its first rows."""
    frame = numbers().with_columns(x0=pl.col("x0").round(2))
    frame = frame.with_columns(x0=pl.when(pl.int_range(N) < N // 2).then(pl.col("x0").round(1)).otherwise("x0"))
    frame.write_parquet(tmp_path / "a.parquet")
    fit(tmp_path / "a.parquet", keep_knockoffs=tmp_path / "kept", options={"method": "knockoffs"})
    kept = pl.read_parquet(tmp_path / "kept" / "*.parquet")["x0"].to_numpy()
    assert (kept == kept.round(2)).all() and (kept != kept.round(1)).mean() > 0.5


@pytest.mark.parametrize("options", [{}, {"estimator": "boosting"}, {"n_draws": 2, "level": "post_hoc"}])
def test_workers_do_not_change_the_answer(table, options):
    """To the last bit: batches are added in their order."""
    expected = fit(table, options=options).selection_.draws
    np.testing.assert_array_equal(fit(table, options=options | {"n_jobs": 2}).selection_.draws, expected)
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend, n_jobs=2):
            np.testing.assert_array_equal(fit(table, options=options).selection_.draws, expected)


def test_a_fit_that_fails_on_the_way_leaves_nothing(table, monkeypatch):
    """Neither of this fit nor of an earlier one."""
    found = fit(table)
    before = set(vars(found)) - set(found.get_params())
    monkeypatch.setattr(Part, "__add__", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fit_streamed(found, table, "y", sample_rows=SAMPLED, batch_rows=BATCH)
    assert before and not set(vars(found)) - set(found.get_params())


def test_files_and_row_groups_do_not_matter(table, tmp_path):
    frame, expected = pl.read_parquet(table), fit(table).W_
    folder = tmp_path / "folder"
    folder.mkdir()
    for k, (start, stop) in enumerate([(0, 1), (1, 333), (333, 650), (650, N)]):
        frame[start:stop].write_parquet(folder / f"part{k}.parquet", row_group_size=(7, 50, 1000, 101)[k])
    np.testing.assert_array_equal(fit(folder).W_, expected)


@pytest.mark.parametrize("family", ["gaussian", "auto"])
def test_a_small_sample_leaves_the_covariance_to_all_rows(table, family):
    """300 rows of 12 columns would be shrunk; 900 are enough not to be, and their covariance is P^X's."""
    found = fit(table, options={"feature_model": family}).selection_
    law = found.feature_model.laws[0] if family == "gaussian" else found.feature_model.mixture.laws[0]
    X = pl.read_parquet(table).drop("y").to_numpy()
    L = X if family == "gaussian" else found.feature_model.read(X).start
    np.testing.assert_allclose(law.covariance, np.cov(L.T, bias=True), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(law.mean, L.mean(axis=0), rtol=1e-10, atol=1e-12)
    assert " 900 rows" in found.notes["feature_model"] and "shrunk" not in found.notes["feature_model"]
    assert found.pair.X.shape == (SAMPLED, D)


@pytest.mark.parametrize("family", ["gaussian", "auto"])
def test_few_rows_are_not_warned_of_where_others_tell(table, family):
    """Twenty rows of twelve columns, which are warned of where they are all there is; warnings are errors here."""
    fit(table, options={"feature_model": family}, sample_rows=20)
    few = pl.read_parquet(table)[:20]
    with pytest.warns(KnockoffWarning, match="rests on 20 rows"):
        selector(feature_model=family).fit(few.drop("y").to_pandas(), few["y"].to_numpy())
    with pytest.warns(KnockoffWarning, match="constant"):  # other warnings are passed on
        frame = pl.read_parquet(table).with_columns(x3=pl.lit(1.0))
        frame.write_parquet(table)
        fit(table, options={"feature_model": family})


def test_few_rows_in_all_are_shrunk_by_their_folds(tmp_path):
    """Of 400 rows a sample of 100 tells less than all: shrunk, and as one fit to all rows would be."""
    numbers(n=400).write_parquet(tmp_path / "few.parquet")
    found = fit(tmp_path / "few.parquet", sample_rows=100, batch_rows=400).selection_.feature_model
    X = pl.read_parquet(tmp_path / "few.parquet").drop("y").to_numpy()
    expected = fit_gaussian(X)  # which deals the rows in turn, too
    assert found.intensities == expected.intensities > (0,) and found.rows == 400
    np.testing.assert_allclose(found.laws[0].covariance, expected.laws[0].covariance, rtol=1e-9)
    np.testing.assert_allclose(found.laws[0].D, expected.laws[0].D, rtol=1e-7)


def test_what_is_not_told_by_a_covariance_is_left_to_the_sample(tmp_path):
    """Missing cells, 0/1 columns, a law that was given: P^X is as without the other rows."""
    frame = numbers()
    holes = frame.with_columns(x0=pl.when(pl.col("x1") > 1.5).then(None).otherwise(pl.col("x0")))
    halves = frame.with_columns(x0=(pl.col("x0") > 0).cast(pl.Int8))
    for k, other in enumerate((holes, halves)):
        other.write_parquet(tmp_path / f"{k}.parquet")
        found = fit(tmp_path / f"{k}.parquet", options={"feature_model": "auto"}).selection_
        assert "900" not in found.notes["feature_model"]


# ---- kinds of tables and targets -----------------------------------------------------------------------------------


def mixed(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    L = rng.standard_normal((n, 8)) @ (np.eye(8) + 0.2)
    eta = L[:, :4].sum(axis=1)
    colour = np.array(["red", "green", "blue"])[np.digitize(L[:, 4], [-0.5, 0.5])]
    frame = pl.DataFrame({f"x{j}": L[:, j] for j in range(4)} | {"colour": colour})
    frame = frame.with_columns(
        yes=pl.Series(L[:, 5] > 0),
        count=pl.Series(rng.poisson(np.exp(L[:, 6] / 2))),
        gap=pl.Series(np.where(rng.random(n) < 0.2, np.nan, L[:, 7]).astype(np.float32)).fill_nan(None),
        number=pl.Series(eta + rng.standard_normal(n)),
        binary=pl.Series(np.where(eta + rng.logistic(size=n) > 0, "yes", "no")),
        classes=pl.Series(np.array(["a", "b", "c"])[np.digitize(eta + rng.standard_normal(n), [-1, 1])]),
        counted=pl.Series(rng.poisson(np.exp(eta / 4))),
        weight=pl.Series(rng.random(n)),
    )
    return frame


TARGETS = ["number", "binary", "classes", "counted"]


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_on_a_table_of_all_kinds(tmp_path, target):
    """Near to the selection in memory: another draw of knockoffs, so W agrees as two seeds do."""
    path = tmp_path / "table.parquet"
    mixed().write_parquet(path)
    others = [name for name in (*TARGETS, "weight") if name != target]
    task = "count" if target == "counted" else None  # a sample of 500 may take it for a number
    options = {"feature_model": "auto", "drop": others, "fdr": 0.5, "method": "knockoffs", "task": task}
    found = fit(path, target, options=options, sample_rows=500)
    assert found.selection_.feature_names == ("x0", "x1", "x2", "x3", "colour", "yes", "count", "gap")
    X = mixed().drop(target, *others)
    whole = selector(feature_model="auto", fdr=0.5, method="knockoffs", task=task).fit(X, mixed()[target].to_numpy())
    assert np.corrcoef(found.W_, whole.W_)[0, 1] > 0.97
    assert (found.W_[:4] > np.abs(found.W_[4:]).max()).all()
    assert "500 of them, drawn at random" in found.selection_.notes["stream"]
    said = [one.selection_.notes["task"].partition(";")[0].rstrip(".") for one in (found, whole)]
    assert said[0] == said[1]  # of all rows, not of the sample


def test_weights_and_missing_targets(tmp_path):
    frame = numbers()
    rng = np.random.default_rng(0)
    y, w = frame["y"].to_numpy().copy(), np.where(rng.random(N) < 0.3, 0.0, 1.0)
    y[w == 0] = 1e3  # rows without weight would change everything
    y[::7] = np.nan
    frame = frame.with_columns(y=pl.Series(y), w=pl.Series(w))
    frame.write_parquet(tmp_path / "a.parquet")
    found = fit(tmp_path / "a.parquet", weights="w")
    assert found.selection_.selected[:6].sum() >= 5
    assert "129 rows are left out" in found.selection_.notes["task"]


def test_target_at_rows():
    y = np.where(np.arange(40) % 3 == 0, np.nan, np.arange(40.0))
    target = as_target(y, read_table(np.random.default_rng(0).standard_normal((40, 1))), task="regression")
    rows = np.array([2, 3, 9, 10, 38])
    found = target.at(rows)
    np.testing.assert_array_equal(found.values, [2, 10, 38])
    np.testing.assert_array_equal(found.observed, [True, False, False, True, True])


def test_labels_that_the_sample_does_not_have_are_missing_cells(tmp_path):
    frame = mixed()
    colour = frame["colour"].to_numpy().copy()
    rng = np.random.default_rng(3)
    sampled = rng.spawn(1)[0].choice(len(frame), 500, replace=False)
    odd = np.setdiff1d(np.arange(len(frame)), sampled)[:3]
    colour[odd] = "ultraviolet"
    frame.with_columns(colour=pl.Series(colour)).write_parquet(tmp_path / "a.parquet")
    drop = ["binary", "classes", "counted", "weight"]
    options = {"feature_model": "auto", "drop": drop, "fdr": 0.5, "method": "knockoffs"}
    found = fit(tmp_path / "a.parquet", "number", options=options, sample_rows=500)
    assert "'colour' (3)" in found.selection_.notes["labels"]
    with pytest.raises(InputError, match="takes no missing cells"):
        options |= {"feature_model": "naive_bayes", "drop": [*drop, "gap"], "feature_model_options": {"n_classes": 2}}
        fit(tmp_path / "a.parquet", "number", options=options, sample_rows=500)


@pytest.mark.parametrize("target", ["number", "classes"])
def test_a_model_that_is_no_lasso_is_scored_on_other_rows(tmp_path, target):
    path = tmp_path / "table.parquet"
    mixed().write_parquet(path)
    others = [name for name in (*TARGETS, "weight") if name != target]
    options = {"feature_model": "auto", "drop": others, "fdr": 0.5, "estimator": "boosting", "method": "knockoffs"}
    found = fit(path, target, options=options, sample_rows=500)
    assert "scored on 1,000 rows outside of the sample" in found.selection_.notes["rows"]
    assert found.W_[:4].min() > 0
    split = fit(path, target, options=options, sample_rows=500, batch_rows=1500)
    assert np.corrcoef(found.W_, split.W_)[0, 1] > 0.95


def test_the_best_of_two_is_chosen_on_the_sample(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 6))
    y = 3 * np.sign(X[:, 0] * X[:, 1]) + rng.standard_normal(3000)
    frame = pl.DataFrame(X, schema=[f"x{j}" for j in range(6)]).with_columns(y=pl.Series(y))
    frame.write_parquet(tmp_path / "a.parquet")
    options = {"estimator": None, "fdr": 0.5, "method": "knockoffs"}
    found = fit(tmp_path / "a.parquet", options=options, sample_rows=1000, batch_rows=700)
    assert "estimator='boosting'" in found.selection_.notes["estimator"]
    assert (found.W_[:2] > 10 * np.abs(found.W_[2:]).max()).all()


def test_where_the_sample_shows_nothing_the_lasso_asks_all_rows(tmp_path):
    """Effects of 0.1, of which 500 rows show nothing clear and 20,000 everything (t = 14); boosting saw the 500."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 6))
    y = 0.1 * X[:, :2].sum(axis=1) + rng.standard_normal(20_000)
    frame = pl.DataFrame(X, schema=[f"x{j}" for j in range(6)]).with_columns(y=pl.Series(y))
    frame.write_parquet(tmp_path / "a.parquet")
    options = {"estimator": None, "fdr": 0.5, "method": "knockoffs", "feature_model": "gaussian", "verdict": False}
    found = fit(tmp_path / "a.parquet", options=options, sample_rows=500)
    assert "estimator='lasso'" in found.selection_.notes["estimator"]
    assert (found.W_[:2] > 2 * np.abs(found.W_[2:]).max()).all()


def test_the_lasso_on_normal_scores_by_the_scores_of_the_sample(tmp_path):
    """Chosen for skewed columns, and the same as in memory with scores learned on the sample."""
    rng = np.random.default_rng(0)
    L = rng.standard_normal((3000, 12))
    y = L[:, :6].sum(axis=1) + 3 * rng.standard_normal(3000)
    frame = pl.DataFrame(np.exp(2 * L), schema=[f"x{j}" for j in range(12)]).with_columns(y=pl.Series(y))
    frame.write_parquet(tmp_path / "a.parquet")
    options = {"estimator": "best", "feature_model": "auto"}
    found = fit(tmp_path / "a.parquet", options=options, sample_rows=1000, batch_rows=700)
    assert "estimator='lasso on normal scores'" in found.selection_.notes["estimator"]
    assert "sums of products of all rows" in found.selection_.notes["statistic"]
    assert (found.W_[:6] > 3 * np.abs(found.W_[6:]).max()).all()


def test_scores_that_are_read_off_a_model_are_of_the_sample(table):
    found = fit(table, options={"estimator": "linear"})
    assert "on the sample alone" in found.selection_.notes["statistic"]


def test_batches_keep_to_knockoffs_where_a_table_in_memory_is_tested(table):
    """12 columns at 0.2 are fewer than 4 / fdr: in memory they are tested, in batches only if it was asked for."""
    frame = pl.read_parquet(table)
    in_batches, as_one = fit(table), selector().fit(frame.drop("y"), frame["y"])
    assert (in_batches.selection_.method, as_one.selection_.method) == ("knockoffs", "conditional_test")
    assert "method" not in in_batches.selection_.notes and np.isfinite(in_batches.W_).all()
    assert "900 rows are read in batches" in in_batches.selection_.notes["stream"]
    all_at_once = fit(table, sample_rows=N)  # also where the sample is all of a table that fits
    assert all_at_once.selection_.method == "knockoffs"
    asked = fit(table, options={"method": "conditional_test"})
    assert asked.selection_.method == "conditional_test" and (asked.p_values_[:6] < 0.05).all()


def test_a_fitted_selector_as_ever(table):
    found = fit(table, options={"verdict": True})
    assert found.verdict_ is not None and found.knockoffs_.shape == (SAMPLED, D)
    assert list(found.get_feature_names_out()) == [f"x{j}" for j in np.flatnonzero(found.selection_.selected)]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"target": "z"}, "target='z'"),
        ({"weights": "nothing"}, "weights='nothing'"),
        ({"weights": "y"}, "is the target"),
        ({"options": {"drop": ["u"]}}, "drop='u'"),
        ({"options": {"knockoffs": np.zeros((2, 2))}}, "knockoffs are not supported in batches"),
        ({"sample_rows": 2}, "needs 5 rows"),
    ],
)
def test_errors(table, change, message):
    refuses(message, fit, table, **change)


def test_sums_that_do_not_fit_are_refused_before(table, monkeypatch):
    monkeypatch.setattr("knockoffs.table.memory.available_memory", lambda: 10_000.0)
    refuses("a lasso of 24 columns and knockoffs needs", fit, table)


def test_errors_of_files(tmp_path):
    refuses("path is ndarray: name a file or a folder", fit, np.zeros((3, 2)))
    refuses("no such file", fit, tmp_path / "none.parquet")
    refuses("holds no parquet", fit, tmp_path)
    (tmp_path / "a.txt").write_text("x,y\n1,2\n")
    refuses("the ending says", fit, tmp_path / "a.txt")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nonsense")
    refuses("cannot be read as parquet", fit, tmp_path / "a.parquet")
    numbers().write_parquet(tmp_path / "a.parquet")
    numbers().drop("x0").write_parquet(tmp_path / "b.parquet")
    refuses("have other columns: 'x0'", fit, tmp_path)


def parts(folder, *frames):
    folder.mkdir()
    for k, frame in enumerate(frames):
        frame.write_parquet(folder / f"part{k}.parquet")
    return folder


def test_types_that_differ_between_files_are_read_as_one(tmp_path):
    """As pandas writes them: whole numbers are fractions in the file that lacks one, and nothing has no type."""
    whole = numbers().with_columns(x0=pl.col("x0").round(), x1=pl.Series([*"ab"] * (N // 2)))
    whole = whole.with_columns(x2=pl.when(pl.int_range(N) < 300).then(None).otherwise(pl.col("x2")))
    first, second = whole[:300], whole[300:]
    first = first.with_columns(pl.col("x0").cast(pl.Int16), pl.col("x1").cast(pl.Categorical), pl.lit(None).alias("x2"))
    options = {"feature_model": "auto"}
    expected = fit(parts(tmp_path / "one", whole), options=options).W_
    for name, frames in (("a", (first, second)), ("b", (first[:100], second[:0], first[100:], second))):
        assert np.array_equal(fit(parts(tmp_path / name, *frames), options=options).W_, expected)
    rounded = numbers().with_columns(pl.col("y").round())
    expected = fit(parts(tmp_path / "y", rounded)).W_
    found = fit(parts(tmp_path / "z", rounded[:300].with_columns(pl.col("y").cast(pl.Int64)), rounded[300:])).W_
    assert np.array_equal(found, expected)


def test_classes_that_each_file_numbers_for_itself(tmp_path):
    """Numbers of 8 bits are enough in each file, and not for the labels of both."""
    import pandas as pd

    for k, letter in enumerate("ab"):
        labels = pd.Categorical([f"{letter}{i % 100}" for i in range(200)])
        pd.DataFrame({"x": np.arange(200.0), "y": labels}).to_parquet(tmp_path / f"{k}.parquet")
    column = open_rows(tmp_path).column("y")
    assert column.to_list() == [f"{letter}{i % 100}" for letter in "ab" for i in range(200)]


def test_one_name_twice_in_a_file(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table([[1.0], [2.0], [3.0]], names=["x", "x", "y"]), tmp_path / "a.parquet")
    refuses("column with name 'x' has more than one occurrence", fit, tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["sample_rows", "batch_rows"])
@pytest.mark.parametrize("rows", [float("inf"), "x", -1, True, 2.5])
def test_numbers_of_rows_are_whole(table, name, rows):
    refuses(f"{name}={rows!r}: expected a whole number of at least 1", fit, table, **{name: rows})


def test_copies_that_others_keep_are_no_rows(table, tmp_path):
    """A notebook's checkpoint doubled the rows, and a stopped writer's file was read."""
    folder = parts(tmp_path / "parts", numbers())
    for aside in (".ipynb_checkpoints/part0-checkpoint", "_temporary/0/part1", "._part0"):
        (folder / aside).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{aside}.parquet").write_bytes(table.read_bytes() if "0/" in aside else b"nothing")
    with pytest.warns(KnockoffWarning, match=r"'\._part0.parquet', .* left out: names with a dot or an underscore"):
        found = fit(folder)
    assert np.array_equal(found.W_, fit(table).W_)


def test_columns_that_only_the_names_of_folders_hold_are_told(tmp_path):
    for year, frame in ((2020, numbers()[:400]), (2021, numbers()[400:])):
        (tmp_path / f"year={year}").mkdir()
        frame.write_parquet(tmp_path / f"year={year}" / "a.parquet")
    with pytest.warns(KnockoffWarning, match="'year' of the folders' names is not read"):
        rows = open_rows(tmp_path)
    assert len(rows) == N and "year" not in rows.names


def test_a_class_that_the_sample_lacks(tmp_path):
    frame = mixed().drop("number", "binary", "counted", "weight")
    classes = frame["classes"].to_numpy().copy()
    rng = np.random.default_rng(3)
    sampled = rng.spawn(1)[0].choice(len(frame), 500, replace=False)
    classes[np.setdiff1d(np.arange(len(frame)), sampled)[:2]] = "rare"
    frame.with_columns(classes=pl.Series(classes)).write_parquet(tmp_path / "a.parquet")
    refuses("class 'rare'", fit, tmp_path / "a.parquet", "classes", options={"feature_model": "auto"}, sample_rows=500)


def test_scores_of_batches_are_those_of_their_rows_together():
    """Of a model that is no lasso, with weights that differ from batch to batch."""
    rng = np.random.default_rng(0)
    X, X_tilde = rng.standard_normal((2, 90, 3))
    y, weights = X @ [1.0, -1.0, 0.5], np.repeat([0.1, 1.0, 3.0], 30) * rng.random(90)
    model = LinearRegression().fit(np.hstack([X, X_tilde]), y + 0.3 * rng.standard_normal(90))
    statistic = ModelSum(ModelScore(LinearRegression(), swap_score), model)

    def part(rows):
        return statistic.of(Pair(X[rows], X_tilde[rows], np.arange(3)), Target(y[rows], weights[rows]), rng)

    weights[30:40], weights[60:70] = 0.0, 0.0  # the last but one batch below has no rows to look at
    parts = [part(slice(a, b)) for a, b in ((0, 30), (30, 60), (60, 70), (70, 90))]
    found = statistic.scores(parts[0] + parts[1] + parts[2] + parts[3])
    whole = swap_score(model, X, X_tilde, y, feature_of=np.arange(3), rng=rng, sample_weight=weights)
    np.testing.assert_allclose(found.Z, whole.Z, rtol=1e-9)
    np.testing.assert_allclose(found.Z_tilde, whole.Z_tilde, rtol=1e-9)
    refuses("no row outside of the sample has a weight and a target", statistic.scores, parts[2])
