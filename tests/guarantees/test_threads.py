"""The answer of boosting does not depend on its threads; slow, because threads wait for one another on busy cores."""

import numpy as np

from knockoffs import KnockoffSelector
from knockoffs.machine import parallel


def test_the_answer_does_not_depend_on_the_threads(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 12))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(150)
    options = {"feature_model": "gaussian", "estimator": "boosting", "method": "knockoffs", "verdict": False}
    options |= {"random_state": 0}
    one = KnockoffSelector(0.3, **options).fit(X, y).W_
    monkeypatch.setattr(parallel, "SMALL", 0)
    np.testing.assert_allclose(KnockoffSelector(0.3, **options).fit(X, y).W_, one, rtol=1e-6, atol=1e-12)
