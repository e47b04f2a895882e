"""Every figure of the paper at a tiny size: the columns of its table, its nulls, and a picture that opens."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
imread = pytest.importorskip("matplotlib.image").imread

from paper.repetitions import FIVE, Prepared, Training, score_network, statistics  # noqa: E402
from paper.runner import Context, mean_and_error, read_table, write_table  # noqa: E402

from paper import __main__, discovery, fdr, fig1, fig2, fig3, repetitions, robustness, schematic  # noqa: E402

TRAINING = Training(n_classes=3, hidden=(16, 16), epochs=3)
SYNTHETIC = fig3.Synthetic(n=300, d=8, n_non_nulls=4, n_components=(2, 3), repetitions=2, training=TRAINING)
RATES = {"target_fdr", "power", "power_se", "fdr", "fdr_se", "repetitions"}


@pytest.fixture
def context(tmp_path):
    return Context(device="cpu", n_jobs=1)


def made(module, config, context, tmp_path):
    """Table of a figure whose picture opens."""
    table = module.run(config, np.random.default_rng(0), context)
    module.plot(table).savefig(tmp_path / "figure.png")
    image = imread(tmp_path / "figure.png")
    assert image.shape[0] > 300 and image.shape[1] > 300 and image[..., :3].std() > 0.01
    return table


def test_figure_1(tmp_path, context):
    other = fig1.Setting("argmax", n=200, n_components=1, n_classes=2, epochs=1)
    sizes = dict(n=300, d=6, n_non_nulls=3, n_components=2, repetitions=2)
    config = fig1.Config(
        **sizes, training=replace(TRAINING, permutation_path=True), search=(other,), search_repetitions=2
    )
    table = made(fig1, config, context, tmp_path)
    assert {row["score"] for row in table if row["panel"] == "a"} == {"lasso", "swap_integral"}
    assert {row["score"] for row in table if row["panel"] == "b"} == set(fig1.PANEL_B)
    assert set(table[0]) == RATES | {"panel", "score"}
    assert {row["setting"] for row in table if row["panel"] == "search"} == {str(other)}
    path = [row for row in table if row["panel"] == "c"]
    assert len(path) == 6 * 21 and len({row["feature"] for row in path if row["non_null"]}) == 3
    assert all(row["W"] == 0 for row in path if row["lam"] == 0)


def test_figure_2(tmp_path, context):
    table = made(fig2, fig2.Config(n=500, repetitions=2), context, tmp_path)
    features = [row for row in table if row["kind"] == "feature"]
    assert len(features) == 60 and [row["non_null"] for row in features[:30]] == [True] * 10 + [False] * 20
    assert all(row["W"] == pytest.approx(row["Z"] - row["Z_tilde"]) for row in features)
    summary = [row for row in table if row["kind"] == "summary"]
    assert [row["paper_fdr"] for row in summary] == [0.1823, 0.5565] and set(summary[0]) >= RATES


def test_figure_3_on_mixtures_and_the_fdr_figure_share_their_runs(tmp_path, context, monkeypatch):
    context = replace(context, kept=tmp_path / "kept")
    config = fig3.Config(SYNTHETIC, fig3.RealData(names=()))
    table = made(fig3, config, context, tmp_path)
    assert set(table[0]) == RATES | {"panel", "setting", "n_components", "score", "accuracy"}
    assert {row["panel"] for row in table} == {"a", "b"} and {row["score"] for row in table} == set(fig3.SCORES)
    monkeypatch.setattr(repetitions, "score_network", None)  # no network is trained again
    rates = made(fdr, SYNTHETIC, context, tmp_path)
    assert [row["fdr"] for row in rates] == [row["fdr"] for row in table]
    assert set(rates[0]) == RATES | {"n_components", "score", "controlled"}


def test_figure_3_and_discovery_on_real_data(tmp_path, context, data_folder):
    context = replace(context, data_folder=data_folder)
    bank = dict(names=("bank",), n_rows=300, n_components={"bank": (1, 2)})
    real = fig3.RealData(**bank, n_non_nulls={"bank": 3}, repetitions=2, training=TRAINING)
    table = made(fig3, fig3.Config(replace(SYNTHETIC, n_components=()), real), context, tmp_path)
    assert {row["panel"] for row in table} == {"d"} and table[0]["setting"] == "Bank Marketing"
    config = discovery.Config(**bank, draws=2, training=replace(TRAINING, n_classes=2))
    table = made(discovery, config, context, tmp_path)
    assert [row["feature"] for row in table] == list(discovery.PAPER["bank"]) and all(row["in_paper"] for row in table)
    assert all(0 <= row["selected_share"] <= 1 for row in table)


def test_data_that_are_not_there_are_left_out(tmp_path, context, capsys):
    context = replace(context, data_folder=tmp_path, verbose=1)
    assert fig3.real_scores(fig3.RealData(repetitions=1), np.random.default_rng(0), context) == {}
    assert "bank is left out" in capsys.readouterr().err


def test_robustness(tmp_path, context):
    config = robustness.Config(n=400, degrees_of_freedom=(3.0, np.inf), n_components=(1, 2), repetitions=2)
    table = made(robustness, config, context, tmp_path)
    assert set(table[0]) == RATES | {"degrees_of_freedom", "n_components"} and len(table) == 4


def test_schematic_by_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(schematic, "QUICK", schematic.Config(n=200, hidden=(16,), epochs=5, grid=10))
    __main__.main(["schematic", "--quick", "--device", "cpu", "--jobs", "1", "--seed", "3"])
    folder = tmp_path / "build" / "paper"
    record = json.loads((folder / "schematic.json").read_text())
    assert record["seed"] == 3 and record["settings"]["n"] == 200 and record["versions"]["numpy"] == np.__version__
    assert "![Appendix E: why permuting misleads](schematic.png)" in (folder / "README.md").read_text()
    table = read_table(folder / "schematic.csv")
    assert len([row for row in table if row["kind"] == "grid"]) == 100
    points = {row["move"]: row for row in table if row["kind"] == "point"}
    here = points["as it is"]
    assert points["swapped feature"]["x"] == points["swapped feature"]["x_tilde"] == here["x_tilde"]
    assert points["permuted knockoff"]["x"] == here["x"] != points["permuted feature"]["x"]


def test_scores_are_swapped_back():
    # the label is the sign of feature 0; in every repetition, whatever was swapped, feature 0 is more important than
    # its knockoff. Without swapping back this fails with probability 1 - 2^-6
    training = Training(n_classes=2, hidden=(16,), epochs=60, permutation_path=True)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, X_tilde = rng.standard_normal((2, 400, 3))
        data = Prepared(X, X_tilde, (X[:, 0] > 0).astype(int), np.array([True, False, False]))
        found = score_network(data, training, np.random.default_rng(100 + seed), "cpu")
        for score in (*FIVE, "swap_log_loss", "permutation_integral"):
            W = statistics(found[score][None])[0]
            assert W.shape == (3,) and W[0] > 0 and W.argmax() == 0, score
        assert found["accuracy"] > 0.9


def test_far_rows_get_a_component_with_a_floor():
    # two pairs of equal far rows: EM gives each pair a component, whose covariance is singular
    rng = np.random.default_rng(0)
    X = np.vstack([rng.standard_normal((200, 3)), np.full((2, 3), 1e4), np.full((2, 3), -1e4)])
    model = repetitions.fit_mixture(X, 3, np.random.default_rng(1))
    assert model.n_components == 3 and all(np.linalg.eigvalsh(law.covariance)[0] > 0 for law in model.laws)


def test_a_table_to_csv_and_back(tmp_path):
    table = [{"a": 1, "b": 0.25, "c": "x"}, {"a": 2, "c": "y", "d": True}]
    write_table(tmp_path / "t.csv", table)
    assert (tmp_path / "t.csv").read_text().splitlines() == ["a,b,c,d", "1,0.25,x,", "2,,y,1"]
    assert read_table(tmp_path / "t.csv") == [{"a": 1, "b": 0.25, "c": "x"}, {"a": 2, "c": "y", "d": 1}]


def test_mean_and_error_by_hand():
    assert mean_and_error([1, 2, 3]) == (2.0, pytest.approx(1 / np.sqrt(3)))
    assert np.isnan(mean_and_error([1.0])[1])
