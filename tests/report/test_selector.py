"""The selector and the command write the page; a notebook shows the answer."""

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from knockoffs import KnockoffSelector
from knockoffs.cli.app import main
from knockoffs.errors import KnockoffWarning


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 15))
    y = X[:, :6].sum(axis=1) + rng.standard_normal(300)
    options = {"method": "knockoffs", "feature_model": "gaussian", "estimator": "lasso"}
    return KnockoffSelector(fdr=0.2, **options, random_state=0).fit(X, y), X, y


def test_the_selector_writes_its_report_with_paths(fitted, tmp_path):
    selector, _, _ = fitted
    selector.report(tmp_path / "report.html", paths=True)
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Lambda paths" in html and "with the target" in html
    assert "KnockoffSelector(estimator=&#39;lasso&#39;" in html
    with pytest.raises(NotFittedError):
        KnockoffSelector().report(tmp_path / "other.html")


def test_a_notebook_shows_the_answer(fitted):
    selector, _, _ = fitted
    html = selector._repr_mimebundle_()["text/html"]
    assert html == selector._repr_html_() == selector.selection_._repr_html_()
    n = int(selector.selection_.selected.sum())
    assert f"<strong>{n} of 15 features selected</strong>" in html and n >= 5
    assert len(re.findall("<tr>", html)) >= n
    unfitted = KnockoffSelector(fdr=0.3)._repr_mimebundle_()["text/html"]
    assert "KnockoffSelector" in unfitted and "selected</strong>" not in unfitted


def test_the_command_writes_the_report_and_its_command_makes_it_again(fitted, tmp_path, monkeypatch, capsys):
    _, X, y = fitted
    names = [f"<b>x{j}" for j in range(15)]
    rows = [",".join([*names, "y"]), *(",".join(f"{v:.6f}" for v in (*row, t)) for row, t in zip(X, y, strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    monkeypatch.chdir(tmp_path)
    call = ["select", "t.csv", "--target", "y", "--fdr", "0.2", "--method", "knockoffs", "--no-verdict"]
    call += ["--feature-model", "gaussian", "--estimator", "lasso"]
    assert run([*call, "--report", "report.html"]) == 0
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<b>x" not in html and "&lt;b&gt;x0" in html
    assert "knockoffs " + " ".join(call) in html
    assert "SHA-256" in html and "wrote report.html" in capsys.readouterr().err
    assert "Lambda paths" not in html
    assert run([*call, "--report", "paths.html", "--report-paths"]) == 0
    assert "Lambda paths" in (tmp_path / "paths.html").read_text(encoding="utf-8")
    assert "lambda paths" not in capsys.readouterr().err
    tested = [part for part in call if part not in ("--method", "knockoffs")]
    assert run([*tested, "--report", "tested.html", "--report-paths"]) == 0
    assert "no lambda paths, because features were tested: use --method knockoffs" in capsys.readouterr().err
    assert "Lambda paths" not in (tmp_path / "tested.html").read_text(encoding="utf-8")
    (tmp_path / "mine.html").write_text("mine")
    for place, word in (("mine.html", "--force"), ("t.csv", ".html"), ("no/r.html", "no such folder")):
        assert run([*call, "--report", place]) == 1
        said = capsys.readouterr().err
        assert word in said and "reading" not in said
    assert (tmp_path / "mine.html").read_text() == "mine"
    assert run([*call, "--report", "mine.html", "--force"]) == 0
    assert (tmp_path / "mine.html").read_bytes() == (tmp_path / "report.html").read_bytes()


def run(arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


def test_a_report_of_tests_is_written_without_the_paths_that_were_asked_for(tmp_path, rng):
    X = rng.normal(size=(60, 4))
    tested = KnockoffSelector(feature_model="gaussian", estimator="lasso", verdict=False, random_state=0)
    tested.fit(X, X[:, 0] + rng.normal(size=60))
    with pytest.warns(KnockoffWarning, match="no lambda paths, because features were tested"):
        tested.report(tmp_path / "report.html", paths=True)
    assert "p-value" in (tmp_path / "report.html").read_text(encoding="utf-8")
