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
