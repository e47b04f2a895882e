import json
import zipfile

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.experiments import EXPERIMENTS, STUDIES, run_experiment, runner
from knockoffs.experiments.runner import Context, fingerprint, mean_and_error


def test_finished_work_is_found_again(tmp_path):
    context = Context(chunks=tmp_path)
    calls = []

    def compute():
        calls.append(1)
        return {"a": np.arange(3)}

    first, again = context.once("key", compute), context.once("key", compute)
    np.testing.assert_array_equal(first["a"], again["a"])
    assert len(calls) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["key.npz"]


def test_a_write_that_fails_leaves_nothing_in_its_place(tmp_path):
    def write(file):
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.write_whole(tmp_path / "a.npz", write)
    assert not (tmp_path / "a.npz").exists()


def test_nothing_is_kept_without_a_folder():
    assert Context().once("key", lambda: {"a": np.ones(1)})["a"] == 1
    assert Context().find("key") is None


def test_fingerprint_knows_seed_place_and_data():
    one, two = (np.random.default_rng(seed) for seed in (1, 2))
    assert fingerprint(one) == fingerprint(np.random.default_rng(1)) != fingerprint(two)
    assert fingerprint(one.spawn(1)[0]) != fingerprint(one)
    assert fingerprint(np.zeros(3)) == fingerprint(np.zeros(3)) != fingerprint(np.ones(3))


def test_fingerprint_does_not_change_when_a_generator_spawns():
    rng = np.random.default_rng(0)
    before = fingerprint(rng)
    rng.spawn(3)
    assert fingerprint(rng) == before


def test_table_to_csv_and_back(tmp_path):
    table = [{"a": 1, "b": 0.25, "c": "x"}, {"a": 2, "c": "y", "d": True}]
    runner.write_table(tmp_path / "t.csv", table)
    assert (tmp_path / "t.csv").read_text().splitlines() == ["a,b,c,d", "1,0.25,x,", "2,,y,1"]
    assert runner.read_table(tmp_path / "t.csv") == [{"a": 1, "b": 0.25, "c": "x"}, {"a": 2, "c": "y", "d": 1}]


def test_mean_and_error_by_hand():
    assert mean_and_error([1, 2, 3]) == (2.0, pytest.approx(1 / np.sqrt(3)))
    assert np.isnan(mean_and_error([1.0])[1])


def test_unknown_experiment():
    with pytest.raises(InputError, match="Did you mean 'fig2'"):
        run_experiment("fig22")


def test_every_experiment_has_its_parts():
    import importlib

    for module in map(importlib.import_module, (EXPERIMENTS | STUDIES).values()):
        assert callable(module.run) and callable(module.plot)
        assert type(module.CONFIG) is type(module.QUICK)


def test_an_experiment_writes_table_figure_record_and_archive(tmp_path, monkeypatch):
    from knockoffs.experiments import need_for_mixtures

    monkeypatch.setattr(need_for_mixtures, "QUICK", need_for_mixtures.Config(n=400, repetitions=2))
    lines = []
    options = dict(quick=True, device="cpu", out=tmp_path, seed=3, n_jobs=1, log=lines.append)
    tables = run_experiment("fig2", archive=tmp_path / "all.zip", **options)
    assert tables == [tmp_path / "fig2.csv"]
    record = json.loads((tmp_path / "fig2.json").read_text())
    assert record["seed"] == 3 and record["settings"]["repetitions"] == 2 and record["quick"] is True
    assert record["seconds"]["wall"] >= 0 and record["versions"]["numpy"] == np.__version__
    names = {"fig2.csv", "fig2.json", "fig2.png", "fig2.svg"}
    assert set(zipfile.ZipFile(tmp_path / "all.zip").namelist()) == names
    before = (tmp_path / "fig2.csv").read_bytes()
    run_experiment("fig2", **options)
    assert (tmp_path / "fig2.csv").read_bytes() == before
    assert sum("repetitions on the CPU" in line for line in lines) == 1


def test_command_line_of_the_module(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    from knockoffs.experiments import __main__, schematic

    monkeypatch.setattr(schematic, "QUICK", schematic.Config(n=60, hidden=(8,), epochs=1, grid=5))
    __main__.main(["schematic", "--quick", "--device", "cpu", "--out", str(tmp_path), "--n-jobs", "1"])
    assert (tmp_path / "schematic.csv").is_file() and "schematic: done" in capsys.readouterr().err


def test_a_run_is_not_lost_for_want_of_a_figure(tmp_path, monkeypatch):
    from knockoffs.experiments import need_for_mixtures

    def no_figure(table):
        raise ModuleNotFoundError("No module named 'matplotlib'")

    monkeypatch.setattr(need_for_mixtures, "QUICK", need_for_mixtures.Config(n=400, repetitions=2))
    monkeypatch.setattr(need_for_mixtures, "plot", no_figure)
    lines = []
    run_experiment("fig2", quick=True, device="cpu", out=tmp_path, n_jobs=1, log=lines.append)
    assert (tmp_path / "fig2.csv").is_file() and (tmp_path / "fig2.json").is_file()
    assert any("no figure" in line for line in lines)
