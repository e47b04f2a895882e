"""The one list of options: selector, command line and what is recorded are made from it, or equal to it."""

import inspect

import pytest
from typer.main import get_command

from knockoffs.commands.app import app
from knockoffs.estimator import KnockoffSelector
from knockoffs.options import NOT_RECORDED, OPTIONS, options_of, selector_arguments

PARAMETERS = inspect.signature(KnockoffSelector).parameters


def test_the_selector_has_the_options_of_the_list():
    listed = {option.parameter or option.name: option for option in options_of("selector").values()}
    assert set(listed) == set(PARAMETERS)
    # on the command line a seed is 0 unless said otherwise, in Python fresh entropy
    defaults = {name: option.default for name, option in listed.items() if name != "random_state"}
    assert defaults == {name: PARAMETERS[name].default for name in defaults}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_is_a_flag_of_its_commands(option):
    commands = get_command(app).commands
    places = [place for place in option.where if place != "selector"]
    assert set(places) <= set(commands)
    for place in places:
        flags = [flag for parameter in commands[place].params for flag in parameter.opts]
        assert option.written in flags, f"knockoffs {place} has no {option.written}"


@pytest.mark.parametrize("option", [o for o in OPTIONS if o.known is not None], ids=lambda option: option.name)
def test_the_names_that_an_option_knows_are_there(option):
    known = list(option.known())
    assert known and option.default in (None, *known)


def test_recorded_parameters_make_the_same_selector():
    recorded = {name: option.default for name, option in options_of("select").items() if name not in NOT_RECORDED}
    made = KnockoffSelector(**selector_arguments(recorded))
    expected = {name: parameter.default for name, parameter in PARAMETERS.items()} | {"random_state": 0}
    assert made.get_params(deep=False) == expected


def test_names_and_flags_stand_once():
    assert len({option.name for option in OPTIONS}) == len({option.written for option in OPTIONS}) == len(OPTIONS)
