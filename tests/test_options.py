"""One list of options: the selector, the commands and the record have them all, with the same defaults."""

import inspect

import pytest
from typer.testing import CliRunner

from knockoffs.cli.app import app
from knockoffs.defaults import DEFAULT_FDR
from knockoffs.errors import InputError
from knockoffs.options import ImportanceOptions, Options, importance_options, listed, options_of
from knockoffs.record.reading import PARAMETERS, fits
from knockoffs.selector import KnockoffSelector

FACES = ("select", "test", "sample", "check", "ghost")
OF_THE_DATA = {"drop", "knockoffs", "verbose"}  # taken from the table or a file, or not on the command line
MOST_PARAMETERS = 27


def parameters_of_the_selector():
    found = dict(inspect.signature(KnockoffSelector.__init__).parameters)
    del found["self"]
    return found


def test_flags_differ():
    for face in FACES:
        flags = [option.written for option in options_of(face).values()]
        assert len(set(flags)) == len(flags)


def test_every_option_belongs_to_a_known_face():
    for source in (Options, ImportanceOptions):
        for option in listed(source):
            assert option.faces and set(option.faces) <= {"selector", *FACES}, option.name


def test_the_options_of_the_selector_are_its_parameters_with_the_same_defaults():
    parameters, options = parameters_of_the_selector(), options_of("selector")
    assert {option.called for option in options.values()} == set(parameters)
    assert len(parameters) <= MOST_PARAMETERS
    for name, option in options.items():
        assert parameters[option.called].default == option.default, name
    assert f"[default: {DEFAULT_FDR}]" in options["fdr"].help  # None: then a level too small only warns


def test_every_option_reaches_the_selector():
    marked = {option.name: object() for option in listed()}
    handed = Options(**marked).selector_arguments()
    expected = {o.called: marked[name] for name, o in options_of("selector").items() if name not in OF_THE_DATA}
    assert handed == expected


def test_the_record_holds_what_the_answer_depends_on():
    record = Options(target="y", drop=("a", "b"), fdr=0.2, jobs=3, report="r.html").recorded("select")
    assert set(options_of("select")) - set(record) == {"jobs", "report", "report_paths", "keep_knockoffs"}
    assert record["drop"] == ["a", "b"] and record["fdr"] == 0.2
    assert Options.of(record) == Options(target="y", drop=("a", "b"), fdr=0.2)
    assert set(PARAMETERS) == set(record) | set(Options().recorded("ghost"))


def test_tests_have_the_options_of_select_without_those_of_knockoffs():
    lacking = {"weights", "method", "n_draws", "n_knockoffs", "level", "offset", "knockoffs", "importance"}
    lacking |= {"importance_options", "keep_knockoffs", "report_paths", "environments", "min_environments"}
    assert set(options_of("select")) - set(options_of("test")) == lacking


@pytest.mark.parametrize("command", FACES)
def test_the_help_of_a_command_names_every_flag(command):
    text = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    words = set(text.replace("/", " ").replace(",", " ").split())
    for option in options_of(command).values():
        assert option.written in words, option.name
        if option.kind is bool:
            assert f"--no-{option.written[2:]}" in words


def test_defaults_are_values_that_may_be_asked_for():
    for option in (*listed(), *listed(ImportanceOptions)):
        if option.choices is not None and option.default is not None:
            assert option.default in list(option.choices()), option.name


SAME = {"latent", "lasso_coefficient_difference"}  # other names of "auto" and "coefficients"
SAME |= {"binary", "multiclass", "numeric"}  # other words for tasks


@pytest.mark.parametrize(
    "option", [o for o in (*listed(), *listed(ImportanceOptions)) if o.choices], ids=lambda o: o.name
)
def test_the_help_of_an_option_names_everything_that_may_be_given(option):
    said = option.help.replace("-", "_")
    assert [word for word in option.choices() if word not in SAME and word not in said] == []


@pytest.mark.parametrize("option", (*listed(), *listed(ImportanceOptions)), ids=lambda o: o.name)
def test_a_help_is_one_sentence(option):
    said = option.help.partition("  [default")[0]
    assert said.endswith(".") and ". " not in said


def test_a_default_is_what_the_record_may_hold():
    for name, value in (Options(target="y").recorded("select") | Options().recorded("ghost")).items():
        assert fits(value, PARAMETERS[name]), name


def test_importance_options_are_checked_by_name_and_value():
    given = importance_options({"loss": "log-loss", "n-folds": 3, "rows": None})
    assert given == ImportanceOptions(loss="log-loss", n_folds=3)
    assert importance_options(None) == ImportanceOptions()
    assert importance_options({"loss": max}).loss is max
    for options, message in [
        ({"los": "accuracy"}, "importance_options='los' is not known. Did you mean 'loss'?"),
        ({"loss": "accurcy"}, "importance_options: loss='accurcy' is not known. Did you mean 'accuracy'?"),
        ({"rows": 3}, "importance_options: rows=3: expected one of 'in_sample'"),
        ({"n_folds": 1}, "importance_options: n_folds=1: expected a whole number of at least 2"),
        ({"n_fits": "x"}, "importance_options: n_fits='x': expected a whole number of at least 1"),
        ({"n_fits": True}, "importance_options: n_fits=True: expected a whole number of at least 1"),
    ]:
        with pytest.raises(InputError) as refused:
            importance_options(options)
        assert str(refused.value).startswith(message)
    with pytest.raises(InputError, match="--importance-option='n_fits' is not known"):
        importance_options({"n_fits": 2}, "ghost", "--importance-option")
