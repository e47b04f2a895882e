"""One list of options: the selector, the commands and the record have them all, with the same defaults."""

import inspect

import pytest
from typer.testing import CliRunner

from knockoffs.cli.app import app
from knockoffs.defaults import DEFAULT_FDR
from knockoffs.features import FAMILIES
from knockoffs.options import NOT_RECORDED, OPTIONS, Parameters, options_of, selector_arguments
from knockoffs.record.reading import PARAMETERS
from knockoffs.selector import KnockoffSelector

CALLED_OTHERWISE = {"seed": "random_state", "jobs": "n_jobs"}
OF_THE_DATA = {"drop", "knockoffs"}  # taken from the table or read from a file before the selector is made
OF_PYTHON = {"if_empty", "verbose"}  # what the commands have no choice of


def parameters_of_the_selector():
    found = dict(inspect.signature(KnockoffSelector.__init__).parameters)
    del found["self"]
    return found


def test_names_are_given_once():
    assert len({option.name for option in OPTIONS}) == len(OPTIONS)
    for face in ("select", "path", "sample", "check", "ghost"):
        flags = [option.written for option in options_of(face).values()]
        assert len(set(flags)) == len(flags)


def test_the_options_of_the_selector_are_its_parameters_with_the_same_defaults():
    parameters, listed = parameters_of_the_selector(), options_of("selector")
    called = {name: option.parameter or name for name, option in listed.items()}
    assert {name: parameter for name, parameter in called.items() if name != parameter} == CALLED_OTHERWISE
    assert set(called.values()) == set(parameters)
    for name, option in listed.items():
        if name != "seed":  # a program gives the same answer twice; an object asks for fresh entropy unless told
            assert parameters[called[name]].default == option.default, name
    assert parameters["random_state"].default is None and listed["seed"].default == 0
    assert f"[default: {DEFAULT_FDR}]" in listed["fdr"].help  # None: then a level too small only warns


def test_every_recorded_option_reaches_the_selector():
    """Values of their own come out under the selector's names; the data are handed over by themselves."""
    marked = {name: object() for name in options_of("select")}
    handed = selector_arguments(marked)
    listed = options_of("selector")
    expected = {listed[name].parameter or name: marked[name] for name in set(listed) - OF_THE_DATA - OF_PYTHON}
    assert handed == expected
    assert set(handed) | OF_THE_DATA | OF_PYTHON == set(parameters_of_the_selector())
    rest = {"target", "weights", "report", "report_paths", "stream", "sample_rows", "scheduler", "keep_knockoffs"}
    assert {name for name in marked if name not in listed} == rest


def test_options_of_python_alone_are_named():
    assert {option.name for option in OPTIONS if option.where == ("selector",)} == OF_PYTHON


def test_what_is_recorded_is_what_the_answer_depends_on():
    assert set(PARAMETERS) == set(options_of("select") | options_of("ghost")) - set(NOT_RECORDED)
    assert set(NOT_RECORDED) == {"jobs", "report", "report_paths", "scheduler", "keep_knockoffs"}


@pytest.mark.parametrize("command", ["select", "test", "path", "sample", "check", "ghost"])
def test_the_help_of_a_command_names_every_flag(command):
    text = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    words = set(text.replace("/", " ").replace(",", " ").split())
    for option in options_of(command).values():
        assert option.written in words, option.name
        if option.kind is bool:
            assert f"--no-{option.written[2:]}" in words


def test_defaults_are_values_that_may_be_asked_for():
    for option in OPTIONS:
        if option.known is not None and option.default is not None:
            assert option.default in list(option.known()), option.name


SAME = {"latent", "lasso_coefficient_difference"}  # other names of "auto" and "coefficients"


@pytest.mark.parametrize("name", ["feature_model", "estimator", "importance", "loss", "rows", "rule", "level", "task"])
def test_the_help_of_an_option_names_everything_that_may_be_given(name):
    option = next(option for option in OPTIONS if option.name == name)
    known = list(FAMILIES if option.known is None else option.known())
    if name == "task":
        known = ["regression", "classification", "count", "ordinal"]  # binary, multiclass and numeric mean the same
    said = option.help.replace("-", "_")
    assert [word for word in known if word not in SAME and word not in said] == []


def test_a_default_is_what_the_record_may_hold():
    for name, option in options_of("select").items():
        if name in PARAMETERS and name not in ("target", "drop"):
            assert PARAMETERS[name](option.default), name


def test_the_typed_parameters_are_the_options_of_the_commands():
    """Their names, their kinds, and None where that is the default, or what --knockoffs make of the feature model."""
    typed = {name: hint.__forward_arg__ for name, hint in Parameters.__annotations__.items()}
    listed = {option.name: option for option in OPTIONS if set(option.where) != {"selector"}}
    assert typed.keys() == listed.keys()
    special = {"kinds": "Kinds", "target": "str", "drop": "list[str]", "feature_model": "str | None"}
    for name, option in listed.items():
        plain = "dict[str, Json]" if option.kind is dict else option.kind.__name__
        assert typed[name] == special.get(name, plain if option.default is not None else f"{plain} | None"), name
