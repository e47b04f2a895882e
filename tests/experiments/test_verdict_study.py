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
    from knockoffs.validity.verdict import verdict

    pair = CASES["gaussian_true"](60, rng)
    assert tuple(check.name for check in verdict(pair, names=range(30), rng=rng).checks) == CHECKS


def test_the_excess_grows_with_the_bend():
    config = verdict_excess.Config((400,), (0.0, 0.8), repetitions=2, selections=20)
    table = verdict_excess.run(config, np.random.default_rng(0), Context(n_jobs=1))
    assert table[0]["fdr"] < 0.2 < table[1]["fdr"]
    assert table[1]["broken"] == 1.0
    assert verdict_excess.plot(table).axes
