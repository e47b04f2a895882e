"""False discoveries of fixed designs."""

import numpy as np
import pytest
from tests.features.test_fixed import centred, design

from knockoffs import KnockoffSelector
from knockoffs.filter import false_discovery_proportion


@pytest.mark.parametrize("n", [100, 60])
def test_false_discoveries_of_a_design_that_is_no_sample(n):
    """The rows are the same in all 100 data sets, and the noise is drawn; 40 columns, 10 of them matter.

    The mean FDP is at most q + 4 standard errors: one false failure in 30,000 if the FDR is q. With 60 rows 22 are
    added. Knockoffs that are independent of X (the fault that is planted) have an FDR above .5.
    """
    q, X = 0.2, design(n, 40)
    signal = (centred(X) / X.std(axis=0))[:, ::4] @ np.full(10, 2.0)
    true = np.arange(40) % 4 == 0
    fdp = []
    for seed in range(100):
        y = signal + np.random.default_rng([9, seed]).standard_normal(n)
        options = {"feature_model": "fixed", "estimator": "lasso", "method": "knockoffs", "verdict": False}
        found = KnockoffSelector(q, **options, random_state=seed).fit(X, y)
        fdp.append(false_discovery_proportion(found.selection_.selected, true))
    assert np.mean(fdp) <= q + 4 * np.std(fdp) / 10
