import csv
import re
from pathlib import Path

import numpy as np
import pytest

from knockoffs.experiments import verdict_excess, verdict_study
from knockoffs.experiments.runner import Context
from knockoffs.experiments.verdict_cases import CASES, Judged
from knockoffs.experiments.verdict_study import CHECKS, Config


def test_rates_of_the_words(tmp_path):
    config = Config(("gaussian_true",), ("plus_noise",), ((100, 2),), ((300, 2),))
    context = Context(n_jobs=1, chunks=tmp_path)
    table = verdict_study.run(config, np.random.default_rng(0), context)
    assert [(row["case"], row["n"], row["valid"]) for row in table] == [
        ("gaussian_true", 100, True),
        ("plus_noise", 300, False),
    ]
    assert table[1]["broken"] == table[1]["doubtful_or_worse"] == 1.0
    assert {f"by_{name.replace(' ', '_')}" for name in CHECKS} <= set(table[0])
    assert verdict_study.run(config, np.random.default_rng(0), context) == table
    assert verdict_study.plot(table).axes


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_a_pair(case, rng):
    made = CASES[case](150, rng)
    pair = made.pair if isinstance(made, Judged) else made
    assert len(pair) == 150
    assert pair.X.shape == pair.X_tilde.shape
    assert np.isfinite(pair.stacked).all()


def test_the_checks_are_those_of_the_verdict(rng):
    from knockoffs.diagnostics.verdict import verdict

    pair = CASES["gaussian_true"](60, rng)
    assert tuple(check.name for check in verdict(pair, names=range(30), rng=rng).checks) == CHECKS


def test_the_excess_grows_with_the_bend():
    config = verdict_excess.Config((400,), (0.0, 0.8), repetitions=2, selections=20)
    table = verdict_excess.run(config, np.random.default_rng(0), Context(n_jobs=1))
    assert table[0]["fdr"] < 0.2 < table[1]["fdr"]
    assert table[1]["broken"] == 1.0
    assert verdict_excess.plot(table).axes


def test_the_page_holds_the_numbers_of_the_study():
    root = Path(__file__).resolve().parents[2] / "docs"
    with (root / "results" / "verdict.csv").open() as file:
        rows = list(csv.DictReader(file))
    page = (root / "verdict.md").read_text()

    def count(column, valid):
        return sum(round(float(row[column]) * int(row["repetitions"])) for row in rows if row["valid"] == valid)

    n = {valid: sum(int(row["repetitions"]) for row in rows if row["valid"] == valid) for valid in "01"}
    assert f"{n['1']} data sets" in page and f"{n['1']} valid data sets and {n['0']} faulty ones" in page
    alarms, broken = count("doubtful_or_worse", "1"), count("broken", "1")
    said = f"{alarms} were called doubtful or worse ({100 * alarms / n['1']:.1f}%), {broken} of them broken"
    assert said in " ".join(page.split())
    faults = [row for row in rows if row["valid"] == "0" and row["n"] == "500"]
    shown = [f"{round(float(row['broken']) * 40)} of 40" for row in faults]
    table = page[page.index("**Faults**") : page.index("**The smallest excess")]
    assert table.count(" of 40") == len(faults) and sorted(re.findall(r"\d+ of 40", table)) == sorted(shown)
