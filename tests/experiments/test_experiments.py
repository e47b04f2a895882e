"""Every experiment at a tiny size: the columns of its table, which features are null, and a figure that opens."""

import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from knockoffs.experiments import (
    discovery,
    empirical_fdr,
    importance_scores,
    need_for_mixtures,
    power,
    repetitions,
    robustness,
    schematic,
)
from knockoffs.experiments.repetitions import FIVE, Prepared, Training, score_batch, statistics
from knockoffs.experiments.runner import Context, figure_contents

DATA = Path(os.environ.get("KNOCKOFFS_DATA") or Path(__file__).parents[3] / "shared" / "data")
needs_data = pytest.mark.skipif(not (DATA / "bank").is_dir(), reason="the data folder is not there")
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
TRAINING = Training(n_classes=3, hidden=(16, 16), epochs=3)
SYNTHETIC = power.Synthetic(n=300, d=8, n_non_nulls=4, n_components=(2, 3), repetitions=2, training=TRAINING)
RATES = {"target_fdr", "power", "power_se", "fdr", "fdr_se", "repetitions"}


@pytest.fixture
def context(tmp_path):
    return Context(device="cpu", n_jobs=1, chunks=tmp_path / "chunks", data_folder=DATA)


def opens(tmp_path, figure):
    contents = figure_contents(figure)
    (tmp_path / "figure.png").write_bytes(contents[".png"])
    image = imread(tmp_path / "figure.png")
    assert image.shape[0] > 300 and image.shape[1] > 300 and image[..., :3].std() > 0.01
    assert "<svg" in contents[".svg"][:2000].decode()
    return True


@needs_torch
def test_figure_1(tmp_path, context):
    training = replace(TRAINING, permutation_path=True)
    other = importance_scores.Setting("argmax", n=200, n_components=1, n_classes=2, epochs=1)
    sizes = dict(n=300, d=6, n_non_nulls=3, n_components=2, repetitions=2, training=training)
    config = importance_scores.Config(**sizes, search=(other,), search_repetitions=2)
    table = importance_scores.run(config, np.random.default_rng(0), context)
    assert {row["score"] for row in table if row["panel"] == "a"} == {"lasso", "swap_integral"}
    assert {row["score"] for row in table if row["panel"] == "b"} == set(importance_scores.PANEL_B)
    assert set(table[0]) == RATES | {"panel", "score"}
    assert {row["setting"] for row in table if row["panel"] == "search"} == {
        "argmax, n = 200, 1 components with spread 3, 2 classes, 1 epochs"
    }
    path = [row for row in table if row["panel"] == "c"]
    assert len(path) == 6 * 21 and len({row["feature"] for row in path if row["non_null"]}) == 3
    assert all(row["W"] == 0 for row in path if row["lam"] == 0)
    assert opens(tmp_path, importance_scores.plot(table))


def test_figure_2(tmp_path, context):
    config = need_for_mixtures.Config(n=500, repetitions=2)
    table = need_for_mixtures.run(config, np.random.default_rng(0), context)
    features = [row for row in table if row["kind"] == "feature"]
    assert len(features) == 60 and [row["non_null"] for row in features[:30]] == [True] * 10 + [False] * 20
    assert all(row["W"] == pytest.approx(row["Z"] - row["Z_tilde"]) for row in features)
    summary = [row for row in table if row["kind"] == "summary"]
    assert [row["paper_fdr"] for row in summary] == [0.1823, 0.5565] and set(summary[0]) >= RATES
    assert opens(tmp_path, need_for_mixtures.plot(table))


@needs_torch
def test_figure_3_on_mixtures_and_the_fdr_figure_share_their_runs(tmp_path, context):
    config = power.Config(SYNTHETIC, power.RealData(names=()))
    table = power.run(config, np.random.default_rng(0), context)
    assert set(table[0]) == RATES | {"panel", "setting", "n_components", "score", "accuracy"}
    assert {row["panel"] for row in table} == {"a", "b"} and {row["score"] for row in table} == set(power.SCORES)
    assert opens(tmp_path, power.plot(table))
    kept = sorted(path.name for path in context.chunks.iterdir())
    rates = empirical_fdr.run(empirical_fdr.Config(SYNTHETIC), np.random.default_rng(0), context)
    assert sorted(path.name for path in context.chunks.iterdir()) == kept
    assert [row["fdr"] for row in rates] == [row["fdr"] for row in table]
    assert set(rates[0]) == RATES | {"n_components", "score", "controlled"}
    assert opens(tmp_path, empirical_fdr.plot(rates))


@needs_torch
def test_the_result_does_not_depend_on_what_was_kept_or_on_the_number_of_jobs(tmp_path, context):
    config = replace(SYNTHETIC, n_components=(2,))
    first = power.synthetic_scores(config, np.random.default_rng(0), context)[2]
    again = power.synthetic_scores(config, np.random.default_rng(0), context)[2]
    anew = power.synthetic_scores(config, np.random.default_rng(0), Context(device="cpu", n_jobs=2))[2]
    for score in power.SCORES:
        np.testing.assert_array_equal(first[score], again[score])
        np.testing.assert_allclose(first[score], anew[score], rtol=1e-5, atol=1e-6)


@needs_torch
def test_the_way_to_the_gpu_gives_the_same(monkeypatch):
    config = replace(SYNTHETIC, n_components=(2,))
    context = Context(device="cpu", n_jobs=1)
    on_cores = power.synthetic_scores(config, np.random.default_rng(0), context)[2]
    monkeypatch.setattr(repetitions, "_on_cpu", lambda device: False)
    on_gpu = power.synthetic_scores(config, np.random.default_rng(0), context)[2]
    for score in power.SCORES:
        np.testing.assert_allclose(on_cores[score], on_gpu[score], rtol=1e-5, atol=1e-6)


@needs_data
@needs_torch
def test_figure_3_on_real_data(tmp_path, context):
    real = power.RealData(
        names=("bank",),
        n_rows=300,
        n_non_nulls={"bank": 3},
        n_components={"bank": (1, 2)},
        repetitions=2,
        training=TRAINING,
    )
    table = power.run(power.Config(replace(SYNTHETIC, n_components=()), real), np.random.default_rng(0), context)
    assert {row["panel"] for row in table} == {"d"} and table[0]["setting"] == "Bank Marketing"
    assert opens(tmp_path, power.plot(table))


@needs_torch
def test_data_that_are_not_there_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    lines = []
    context = Context(device="cpu", n_jobs=1, data_folder=tmp_path, log=lines.append)
    assert power.real_scores(power.RealData(repetitions=1), np.random.default_rng(0), context) == {}
    assert "bank is left out" in lines[0]


def test_robustness(tmp_path, context):
    config = robustness.Config(n=400, degrees_of_freedom=(3.0, np.inf), n_components=(1, 2), repetitions=2)
    table = robustness.run(config, np.random.default_rng(0), context)
    assert set(table[0]) == RATES | {"degrees_of_freedom", "n_components"} and len(table) == 4
    assert opens(tmp_path, robustness.plot(table))


@needs_data
@needs_torch
def test_discovery(tmp_path, context):
    config = discovery.Config(
        names=("bank",), n_rows=300, n_components={"bank": (2,)}, draws=2, training=replace(TRAINING, n_classes=2)
    )
    table = discovery.run(config, np.random.default_rng(0), context)
    assert [row["feature"] for row in table] == list(discovery.PAPER["bank"]) and all(row["in_paper"] for row in table)
    assert all(0 <= row["selected_share"] <= 1 for row in table)
    assert opens(tmp_path, discovery.plot(table))


@needs_torch
def test_schematic(tmp_path, context):
    config = schematic.Config(n=200, hidden=(16,), epochs=5, grid=10)
    table = schematic.run(config, np.random.default_rng(0), context)
    assert len([row for row in table if row["kind"] == "grid"]) == 100
    points = {row["move"]: row for row in table if row["kind"] == "point"}
    here = points["as it is"]
    assert points["swapped feature"]["x"] == points["swapped feature"]["x_tilde"] == here["x_tilde"]
    assert points["permuted knockoff"]["x"] == here["x"] != points["permuted feature"]["x"]
    assert opens(tmp_path, schematic.plot(table))


@needs_torch
def test_scores_are_swapped_back():
    # the label is the sign of feature 0; in every repetition, whatever was swapped, feature 0 is more important than
    # its knockoff. Without swapping back this fails with probability 1 - 2^-6
    batch = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, X_tilde = rng.standard_normal((2, 400, 3))
        batch.append(Prepared(X, X_tilde, (X[:, 0] > 0).astype(int), np.array([True, False, False])))
    training = Training(n_classes=2, hidden=(16,), epochs=60, permutation_path=True)
    arrays = score_batch(batch, training, [np.random.default_rng(100 + seed) for seed in range(6)], "cpu")
    for score in (*FIVE, "swap_log_loss", "permutation_integral"):
        W = statistics(arrays[score])
        assert W.shape == (6, 3) and np.all(W[:, 0] > 0) and np.all(W.argmax(axis=1) == 0), score
    assert np.all(arrays["accuracy"] > 0.9)


def test_mixture_is_fitted_again_after_a_failure(monkeypatch):
    from knockoffs.errors import InputError

    calls = []
    fit = repetitions.fit_gaussian_mixture

    def fails_once(X, **options):
        calls.append(options["n_starts"])
        if len(calls) == 1:
            raise InputError("a component of two rows")
        return fit(X, **options)

    monkeypatch.setattr(repetitions, "fit_gaussian_mixture", fails_once)
    X = np.random.default_rng(0).standard_normal((100, 2))
    model, n_warnings = repetitions.fit_mixture(X, 1, np.random.default_rng(1))
    assert model.n_components == 1 and calls == [3, 4] and n_warnings == 0


def test_far_rows_get_a_component_with_a_floor():
    # two pairs of equal far rows: EM gives each pair a component, whose covariance is singular
    rng = np.random.default_rng(0)
    X = np.vstack([rng.standard_normal((200, 3)), np.full((2, 3), 1e4), np.full((2, 3), -1e4)])
    model, _ = repetitions.fit_mixture(X, 3, np.random.default_rng(1))
    assert model.n_components == 3 and all(np.linalg.eigvalsh(law.covariance)[0] > 0 for law in model.laws)


@needs_data
@needs_torch
def test_discovery_uses_the_mixture_of_figure_3(context):
    options = dict(names=("bank",), n_rows=200, n_components={"bank": (1, 2)})
    real = power.RealData(**options, n_non_nulls={"bank": 3}, repetitions=1, training=TRAINING)
    power.real_scores(real, np.random.default_rng(0).spawn(2)[1], context)
    kept = [path.name for path in context.chunks.iterdir() if "mixture" in path.name]
    config = discovery.Config(**options, draws=1, training=replace(TRAINING, n_classes=2))
    discovery.run(config, np.random.default_rng(0), context)
    assert [path.name for path in context.chunks.iterdir() if "mixture" in path.name] == kept and len(kept) == 1
