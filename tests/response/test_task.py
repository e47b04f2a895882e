import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.response.task import describe, infer_task, kind_of


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (["a", "b", "a"], "binary"),
        (["a", "b", "c"], "multiclass"),
        ([True, False, True], "binary"),
        (np.array([True, False], dtype=object), "binary"),
        (np.array(["a", "b", "c"], dtype=object), "multiclass"),
        ([0, 1, 1], "binary"),
        ([-1.0, 1.0], "binary"),
        ([0.5, 1.0], "regression"),
        (np.repeat(np.arange(10), 5), "multiclass"),
        (np.repeat(np.arange(11), 50), "regression"),
        (np.arange(8), "regression"),  # eight distinct values in eight rows
        (np.array([1, 2, 3], dtype=object), "regression"),
        (np.repeat([1.0, 2.0, 3.0], 20), "multiclass"),
    ],
)
def test_what_a_user_expects(y, task):
    assert infer_task(y) == task


def test_categories():
    pd = pytest.importorskip("pandas")
    assert infer_task(pd.Series(["x", "y", "x"], dtype="category")) == "binary"
    with pytest.raises(InputError, match="1 rows, the first is row 1"):
        infer_task(pd.Series(["x", None, "x"]))


def test_overridden():
    assert infer_task([0, 1, 1], "regression") == "regression"
    assert infer_task(np.arange(8), "classification") == "multiclass"
    with pytest.raises(InputError, match="3 distinct values"):
        infer_task([0, 1, 2], "binary")
    with pytest.raises(InputError, match="holds labels"):
        infer_task(["a", "b"], "regression")
    with pytest.raises(InputError, match="Did you mean 'regression'"):
        infer_task([0, 1], "regresion")


@pytest.mark.parametrize("y", [[1.0, np.nan, 2.0], [1.0, np.inf, 2.0], [1, None, 2], ["a", float("nan"), "b"]])
def test_missing(y):
    with pytest.raises(InputError, match="row 1"):
        infer_task(np.array(y, dtype=object if None in y or "a" in y else float))


@pytest.mark.parametrize("y", [["a", "a"], [3, 3, 3], [2.5, 2.5], []])
def test_one_value(y):
    with pytest.raises(InputError, match="one value only"):
        infer_task(y)


def test_in_words():
    assert describe([3, 4, 4], "binary") == "y has two classes, 3 (1 row) and 4 (2 rows)"
    assert describe(list("abcdef"), "multiclass") == "y has 6 classes: 'a', 'b', 'c', 'd', 'e', ..."
    assert kind_of("numeric") == "regression" and kind_of("binary") == "classification"
