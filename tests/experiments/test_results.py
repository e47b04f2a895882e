"""Results of an experiment are written together, and over nothing that is not an experiment's."""

import json

import pytest

from knockoffs.errors import InputError, MissingPackageError
from knockoffs.experiments import EXPERIMENTS, STUDIES, run_experiment
from knockoffs.experiments.results import ENDINGS, check_results, write_results

RECORD = {"experiment": "fig2", "settings": {"n": 3}}
CONTENTS = {".csv": b"a\n1\n", ".png": b"png", ".svg": b"svg"}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_of_theirs_is_overwritten_with_force_only(tmp_path, ending):
    theirs = tmp_path / f"fig2{ending}"
    theirs.write_text("[1]")
    with pytest.raises(InputError, match=f"fig2{ending} is there already: .* --force"):
        run_experiment("fig2", quick=True, out=tmp_path, log=lambda line: None)
    assert theirs.read_text() == "[1]" and list(tmp_path.iterdir()) == [theirs]
    check_results(tmp_path, "fig2", force=True)


@pytest.mark.parametrize("ending", CONTENTS)
def test_our_own_are_replaced_as_long_as_they_are_as_we_wrote_them(tmp_path, ending):
    write_results(tmp_path, "fig2", RECORD, CONTENTS)
    check_results(tmp_path, "fig2")
    with pytest.raises(InputError, match="fig2.json is there already"):  # the record of another experiment
        (tmp_path / "fig2.json").write_text((tmp_path / "fig2.json").read_text().replace('"fig2"', '"fig1"'))
        check_results(tmp_path, "fig2")
    write_results(tmp_path, "fig2", RECORD, CONTENTS)
    with (tmp_path / f"fig2{ending}").open("ab") as file:
        file.write(b"a note of theirs")
    with pytest.raises(InputError, match=f"fig2{ending} is there already"):
        check_results(tmp_path, "fig2")


def test_results_of_an_older_version_are_replaced(tmp_path):
    (tmp_path / "fig2.json").write_text(json.dumps(RECORD))
    (tmp_path / "fig2.csv").write_text("a\n1\n")
    check_results(tmp_path, "fig2")


def test_all_are_checked_before_the_first_is_run(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "schematic.csv").write_text("theirs")  # the last of all
    with pytest.raises(InputError, match="schematic.csv is there already"):
        run_experiment("all", quick=True, out=tmp_path, log=lambda line: None)
    assert [path.name for path in tmp_path.iterdir()] == ["schematic.csv"]


@pytest.mark.parametrize("name", [*EXPERIMENTS, *STUDIES])
def test_the_packages_that_are_needed_are_known(name, tmp_path, monkeypatch):
    """A module that asks for PyTorch or pandas at work says so beforehand."""
    import importlib
    import sys

    module = importlib.import_module((EXPERIMENTS | STUDIES)[name])
    for package in getattr(module, "PACKAGES", ()):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingPackageError, match=rf"{name}: its numbers need .*pip install 'knockoffs\["):
            run_experiment(name, quick=True, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
