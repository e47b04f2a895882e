import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.response.trees import make_boosting, make_forest


@pytest.mark.parametrize("make", [make_forest, make_boosting])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_defaults_fit_their_task(make, task):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] > 0) if task == "classification" else X[:, 0]
    options = {"n_estimators": 10} if make is make_forest else {"max_iter": 10}
    model = make(task, random_state=np.random.default_rng(1), n_jobs=1, **options).fit(X, y)
    assert hasattr(model, "classes_") == (task == "classification")


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
