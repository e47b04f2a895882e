"""The public names are there, and cost nothing until they are used."""

import pytest

import knockoffs

NEED_TORCH = ("NeuralClassifier", "NeuralRegressor", "TorchModel")


@pytest.mark.parametrize("name", knockoffs.__all__)
def test_every_public_name_is_there(name):
    if name in NEED_TORCH:
        pytest.importorskip("torch")
    assert getattr(knockoffs, name) is not None
    assert name in dir(knockoffs)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'knockoffs' has no attribute 'KnockofSelector'"):
        knockoffs.KnockofSelector  # noqa: B018
