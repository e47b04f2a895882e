"""The public names are few, documented and typed, and cost nothing until they are used."""

import inspect

import pytest

import knockoffs

NEED_TORCH = ("NeuralClassifier", "NeuralRegressor", "TorchModel")
MOST_NAMES = 60
NAMES = [name for name in knockoffs.__all__ if name != "__version__"]


def test_there_are_sixty_at_most():
    assert len(NAMES) <= MOST_NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there_and_documented(name):
    if name in NEED_TORCH:
        pytest.importorskip("torch")
    found = getattr(knockoffs, name)
    assert name in dir(knockoffs)
    if not isinstance(found, dict):  # the docs list the names of a registry
        assert len(inspect.getdoc(found) or "") > 20
        assert found.__doc__ is not None  # its own, not that of a base class


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_typed(name):
    if name in NEED_TORCH:
        pytest.importorskip("torch")
    found = getattr(knockoffs, name)
    if isinstance(found, dict) or getattr(found, "_is_protocol", False):
        return
    function = found.__init__ if isinstance(found, type) else found
    if not inspect.isfunction(function):  # an exception has the constructor of its base
        assert issubclass(found, Exception | Warning)
        return
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    assert [p.name for p in parameters if p.annotation is p.empty] == []
    assert "return" in function.__annotations__


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'knockoffs' has no attribute 'KnockofSelector'"):
        knockoffs.KnockofSelector  # noqa: B018
