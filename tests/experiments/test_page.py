import json
from pathlib import Path

from knockoffs.experiments import score_study
from knockoffs.experiments.page import introduction, write_page
from knockoffs.experiments.page_sections import SECTIONS, mean_power, verdict
from knockoffs.experiments.runner import read_table, write_table

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def test_what_has_not_been_run_is_said(tmp_path):
    write_page(tmp_path, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert text.count("Not run yet") == len(SECTIONS) and "knockoffs reproduce fig2" in text


def test_numbers_come_from_the_table(tmp_path):
    summary = {"kind": "summary", "target_fdr": 0.2, "fdr_se": 0.01, "power": 0.9, "power_se": 0.02, "repetitions": 40}
    rows = [
        summary | {"model": "mixture", "fdr": 0.1234, "paper_fdr": 0.1823},
        summary | {"model": "one", "fdr": 0.3, "paper_fdr": 0.5565},
    ]
    write_table(tmp_path / "fig2.csv", rows)
    record = {
        "experiment": "fig2",
        "quick": True,
        "seed": 1,
        "settings": {"n": 3000, "C": 0.01},
        "seconds": {"wall": 90},
    }
    record["versions"] = {"device": "cpu", "cpu_count": "2"}
    (tmp_path / "fig2.json").write_text(json.dumps(record))
    write_page(tmp_path, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert "| mixture | 0.1823 | 0.123 ± 0.010 | 0.900 ± 0.020 |" in text and "1.5 minutes on cpu" in text
    assert "mixture: **agrees**" in text and "one Gaussian:\n  **does not agree**" in text
    assert "quick size" in "".join(introduction(tmp_path))


def test_the_page_in_the_docs_is_that_of_the_stored_tables(tmp_path):
    page = RESULTS.parent / "paper_reproduced.md"
    written = RESULTS.parent / "paper_reproduced.check.md"
    try:
        write_page(RESULTS, written)
        assert written.read_text() == page.read_text()
    finally:
        written.unlink(missing_ok=True)


def test_the_table_of_scores_in_the_docs_is_that_of_the_stored_table(tmp_path):
    score_study.write_page(read_table(RESULTS / "scores.csv"), tmp_path / "scores.md")
    assert (tmp_path / "scores.md").read_text() == (RESULTS.parent / "scores_table.md").read_text()


def test_small_pieces():
    assert verdict(True) == "**agrees**"
    assert (
        mean_power(
            [{"power": 0.2, "score": "a"}, {"power": 0.4, "score": "a"}, {"power": 1.0, "score": "b"}], score="a"
        )
        == 0.30000000000000004
    )
