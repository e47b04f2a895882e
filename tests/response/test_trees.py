import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.response import make_boosting, make_forest


def test_counts_are_boosted_by_their_deviance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = rng.poisson(np.exp(X[:, 0]))
    model = make_boosting("count", max_iter=30).fit(X, y)
    assert model.loss == "poisson" and (model.predict(X) > 0).all()
    assert make_boosting("regression").loss == "squared_error"
    assert make_boosting("count", loss="squared_error").loss == "squared_error"
    assert type(make_forest("count")).__name__ == "RandomForestRegressor"


def test_unknown_task():
    with pytest.raises(InputError, match="task='clasification' is not known. Did you mean 'classification'"):
        make_forest("clasification")


def test_a_split_of_a_wide_forest_is_chosen_among_few_columns():
    """Of up to 300 columns the forest is scikit-learn's; of 2000 five folds of 200 trees took 80 seconds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12))
    y = X[:, 0] + rng.normal(size=60)
    ours = make_forest("regression", random_state=0, n_estimators=10)
    every = make_forest("regression", random_state=0, n_estimators=10, max_features=1.0)
    np.testing.assert_array_equal(ours.fit(X, y).predict(X), every.fit(X, y).predict(X))
    assert ours.fit(rng.normal(size=(60, 2000)), y).estimators_[0].max_features_ == 300
