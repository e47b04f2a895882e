"""Every example runs, and draws a picture."""

import os
import runpy
import warnings
from pathlib import Path

import pytest

from knockoffs import KnockoffSelector

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("plot_*.py"))
LONG = ("plot_words.py",)  # the newswire stories take most of a minute: without the data folder it makes up a few


@pytest.fixture
def pyplot(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.close("all")
    yield plt
    plt.close("all")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_draws(example, pyplot, monkeypatch, request, tmp_path, capsys):
    if "erdict" not in example.read_text(encoding="utf-8"):
        monkeypatch.setitem(KnockoffSelector.__init__.__kwdefaults__, "verdict", False)
    if example.name in LONG:
        monkeypatch.setenv("KNOCKOFFS_DATA", str(tmp_path))
    elif "KNOCKOFFS_DATA" in example.read_text(encoding="utf-8"):
        monkeypatch.setenv("KNOCKOFFS_DATA", str(request.getfixturevalue("data_folder")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip()
    assert pyplot.get_fignums()
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        assert any(ax.has_data() for ax in figure.axes)
        folder = os.environ.get("KNOCKOFFS_FIGURES")  # keep the pictures, to look at them
        if folder:
            figure.savefig(Path(folder) / f"{example.stem}.png", dpi=80)


def test_the_quickstart_runs_without_the_data(pyplot, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("KNOCKOFFS_DATA", str(tmp_path))
    quickstart = next(path for path in EXAMPLES if path.stem == "plot_quickstart")
    made_up = runpy.run_path(str(quickstart), run_name="__main__")
    assert made_up["selection"].selected.any()
    assert "KNOCKOFFS_DATA" in capsys.readouterr().out


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short(example):
    assert 40 <= len(example.read_text(encoding="utf-8").splitlines()) <= 100
