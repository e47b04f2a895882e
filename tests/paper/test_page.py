"""The page of the paper is written from the stored tables."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from paper.page import introduction, write_page  # noqa: E402
from paper.page_sections import SECTIONS  # noqa: E402
from paper.runner import write_table  # noqa: E402

PAPER = Path(__file__).parents[2] / "paper"


def test_what_has_not_been_run_is_said(tmp_path):
    write_page(tmp_path, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert text.count("Not run yet") == len(SECTIONS) and "python -m paper fig2" in text


def test_numbers_come_from_the_table(tmp_path):
    summary = {"kind": "summary", "target_fdr": 0.2, "fdr_se": 0.01, "power": 0.9, "power_se": 0.02, "repetitions": 40}
    rows = [
        summary | {"model": "mixture", "fdr": 0.1234, "paper_fdr": 0.1823},
        summary | {"model": "one", "fdr": 0.3, "paper_fdr": 0.5565},
    ]
    write_table(tmp_path / "fig2.csv", rows)
    record = {"experiment": "fig2", "quick": True, "seed": 1, "settings": {"n": 3000, "C": 0.01}}
    record |= {"seconds": {"wall": 90}, "versions": {"device": "cpu", "cpu_count": "2"}}
    (tmp_path / "fig2.json").write_text(json.dumps(record))
    write_page(tmp_path, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert "| mixture | 0.1823 | 0.123 ± 0.010 | 0.900 ± 0.020 |" in text and "1.5 minutes on cpu" in text
    assert "mixture: **agrees**" in text and "one Gaussian:\n  **does not agree**" in text
    assert "quick size" in "".join(introduction(tmp_path))


def test_the_page_is_that_of_the_stored_tables():
    written = PAPER / "README.check.md"
    try:
        write_page(PAPER / "results", written)
        assert written.read_text() == (PAPER / "README.md").read_text(), "run python -m paper"
    finally:
        written.unlink(missing_ok=True)
