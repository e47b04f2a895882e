"""Other models of the features are tried until the knockoffs look good, and what was used is said."""

import numpy as np
import pytest

from knockoffs import KnockoffSelector
from knockoffs.defaults import repairs
from knockoffs.features.source import knockoff_source
from knockoffs.validity.repair import Repaired


@pytest.fixture
def skewed():
    rng = np.random.default_rng(0)
    X = np.exp(rng.standard_normal((600, 6)) + 0.8 * rng.standard_normal((600, 1)))
    return X, X[:, 0] + rng.standard_normal(600)


@pytest.mark.filterwarnings("ignore")
def test_a_gaussian_of_skewed_columns_gives_way_to_a_model_of_any_table(skewed):
    source = Repaired(repairs(knockoff_source("gaussian")))
    table = source.read(skewed[0])
    settled = source(table, rng=np.random.default_rng(1))
    assert "as asked for: broken; auto: good" in settled.notes["repair"]
    assert "'auto' is used" in settled.notes["repair"]
    assert type(settled.model).__name__ == "LatentFeatures"


@pytest.mark.filterwarnings("ignore")
def test_what_looks_good_is_kept_and_y_is_not_looked_at(skewed):
    X, y = skewed
    options = {"repair": True, "fdr": 0.4, "method": "knockoffs", "estimator": "lasso", "random_state": 3}
    first = KnockoffSelector(**options).fit(np.log(X), y)
    assert first.selection_.notes["repair"].startswith(
        "of the models of the features that were tried (as asked for: good)"
    )
    other = KnockoffSelector(**options).fit(np.log(X), -y[::-1])
    np.testing.assert_array_equal(first.knockoffs_, other.knockoffs_)


@pytest.mark.filterwarnings("ignore")
def test_where_nothing_helps_it_says_so():
    rng = np.random.default_rng(2)
    X = np.repeat(rng.standard_normal((150, 5)), 2, axis=0)  # every row twice
    source = Repaired({"as asked for": knockoff_source("gaussian"), "mixture": knockoff_source("mixture")})
    settled = source(source.read(X), rng=np.random.default_rng(1))
    assert "none of them looks good" in settled.notes["repair"]
