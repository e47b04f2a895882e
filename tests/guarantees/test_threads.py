"""The answer of boosting does not depend on its threads; slow, because threads wait for one another on busy cores."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import knockoffs
from knockoffs import KnockoffSelector
from knockoffs.machine import threads

SOURCE = Path(knockoffs.__file__).resolve().parents[1]


def test_the_answer_does_not_depend_on_the_threads(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 12))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(150)
    options = {"feature_model": "gaussian", "estimator": "boosting", "method": "knockoffs", "verdict": False}
    options |= {"random_state": 0}
    one = KnockoffSelector(0.3, **options).fit(X, y).W_
    monkeypatch.setattr(threads, "SMALL", 0)
    np.testing.assert_allclose(KnockoffSelector(0.3, **options).fit(X, y).W_, one, rtol=1e-6, atol=1e-12)


def test_a_small_fit_costs_no_more_with_many_threads():
    """CPU seconds with eight threads allowed are those with one, also on busy cores."""
    code = (
        "import time, warnings; warnings.simplefilter('ignore'); import numpy as np\n"
        "from knockoffs import KnockoffSelector\n"
        "X = np.random.default_rng(0).standard_normal((400, 30)); y = X[:, 0] * X[:, 1] + X[:, 2:8].sum(axis=1)\n"
        "KnockoffSelector(0.2, random_state=0).fit(X[:150], y[:150])\n"
        "start = time.process_time(); KnockoffSelector(0.2, random_state=0).fit(X, y)\n"
        "print(time.process_time() - start)"
    )
    seconds = {}
    for n in ("1", "8"):
        environment = os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": n, "OPENBLAS_NUM_THREADS": n}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300
        )
        seconds[n] = float(done.stdout)
    assert seconds["8"] < 2 * seconds["1"] + 0.5
