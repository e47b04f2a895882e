"""A record is read only if every field has its type, and every edit of it is refused or told."""

import copy
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.refusals import refuses

from knockoffs.errors import InputError
from knockoffs.options import Options
from knockoffs.record import FILES, check_selection_place, is_selection, is_selection_csv, write_selection
from knockoffs.record.comparing import differences
from knockoffs.record.reading import PARAMETERS, read_selection
from knockoffs.table.files import read_table_file

STORED = Path(__file__).parent.parent / "stored" / "selection_format_1.json"
WAYS = {
    "knockoffs": {"method": "knockoffs"},
    "draws": {"method": "knockoffs", "n_draws": 3, "fdr": 0.3, "verdict": False},
    "post_hoc": {"level": "post_hoc", "fdr": 0.05, "verdict": False},
    "tests": {"method": "conditional_test", "verdict": False},
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return select_and_write(tmp_path_factory.mktemp("record"), WAYS["knockoffs"])


def select_and_write(folder, more):
    """Folder of a selection, and the record that was written."""
    from knockoffs.cli.select import run_selection

    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    pl.DataFrame(X, schema=["=a", *"bcdef"]).with_columns(y=X[:, :4].sum(axis=1)).write_csv(folder / "t.csv")
    options = {"target": "y", "fdr": 0.3, "feature_model": "gaussian", "estimator": "lasso", **more}
    record = run_selection(folder / "t.csv", Options(**options))
    write_selection(record, folder)
    return folder, record


def test_a_record_comes_back_as_it_was_written(written):
    folder, record = written
    back = read_selection(folder / "selection.json")
    assert back == record
    assert differences(back, record) == ([], [])
    assert is_selection(folder / FILES[0]) and is_selection_csv(folder / FILES[1])


def test_a_seed_of_any_length_comes_back(tmp_path):
    """As NumPy's SeedSequence draws them, of 128 bits."""
    folder, record = select_and_write(tmp_path, {"seed": 2**127 + 1})
    assert read_selection(folder / "selection.json") == record


@pytest.mark.parametrize("way", WAYS)
def test_every_kind_of_selection_comes_back(way, tmp_path):
    """With what it found: W of one draw, e-values of several, p-values; written twice into one folder."""
    folder, record = select_and_write(tmp_path, WAYS[way])
    back = read_selection(folder / "selection.json")
    assert back == record and not back.edited
    assert is_selection(folder / FILES[0]) and is_selection_csv(folder / FILES[1])
    check_selection_place(folder)  # its own files may be replaced
    check_csv(folder, record)
    keys = set(record.features[0]) - {"name", "selected", "q_value"}
    draws = {"W", "Z", "Z_tilde", "e_value", "frequency"}
    assert (
        keys
        == {
            "knockoffs": {"W", "Z", "Z_tilde"},
            "draws": draws,
            "post_hoc": draws,
            "tests": {"p_value", "score", "discovery"},
        }[way]
    )
    assert (record.threshold is None) == (way != "knockoffs")
    assert record.method == ("conditional_test" if way == "tests" else "knockoffs")
    assert (record.discoveries is None) == (way != "tests")
    found = [name for one in record.discoveries or () for name in one["features"]]
    assert way != "tests" or sorted(found) == sorted(record.selected)
    assert (record.verdict is None) == (way != "knockoffs")
    assert [column["name"] for column in record.columns] == record.names


def test_a_selection_of_an_earlier_version_is_read():
    """Written before there were draws, tests, verdicts and kinds, and when rows= was called evaluation=."""
    record = read_selection(STORED)
    assert not record.edited
    assert record.selected == [*"abcd"] and record.threshold == pytest.approx(0.49958, abs=1e-5)
    assert record.parameters["importance_options"] == {"rows": "held-out"}
    assert record.parameters["method"] == "knockoffs" and record.parameters["verdict"] is False
    assert (record.method, record.verdict, record.columns, record.warnings) == ("knockoffs", None, [], [])
    assert set(record.parameters) <= set(PARAMETERS)


def test_options_of_an_earlier_version_are_read_as_those_of_this_one():
    """Written when options of the score and of the feature model were parameters of their own."""
    record = read_selection(STORED.with_name("selection_format_2.json"))
    assert not record.edited
    assert set(record.parameters) <= set(PARAMETERS)
    options = Options.of(record.parameters)
    assert options.importance_options == {
        "loss": "absolute-error",
        "rows": "held-out",
        "n_folds": 3,
        "n_fits": 2,
        "rule": "signed-maximum",
    }
    assert (options.fdr, options.groups, options.stream) == (0.3, "groups.csv", "never")


@pytest.mark.parametrize("gone", ["repair", "representatives"])
def test_what_this_version_lacks_cannot_be_run_again(tmp_path, gone):
    content = json.loads(STORED.with_name("selection_format_2.json").read_text())
    content["parameters"][gone] = True
    (tmp_path / "selection.json").write_text(json.dumps(content))
    refuses(f"made with {gone}, .* Use the version that wrote it, 0.2.0", read_selection, tmp_path / "selection.json")


def test_a_default_p_x_of_an_earlier_version_is_the_mixture(tmp_path):
    content = json.loads(STORED.read_text())
    del content["parameters"]["feature_model"]
    (tmp_path / "selection.json").write_text(json.dumps(content))
    assert read_selection(tmp_path / "selection.json").parameters["feature_model"] == "mixture"


def check_csv(folder, record):
    frame = read_table_file(folder / "selection.csv")
    place = {name: i for i, name in enumerate(frame["name"].to_list())}
    assert sorted(place) == sorted(record.names)
    for feature in record.features:
        for key, value in feature.items():
            assert frame[key][place[feature["name"]]] == (None if value == "" else value)


def leaves(value, path=()):
    """Paths to every value in a json document."""
    if isinstance(value, dict | list):
        yield path
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*path, key))
    else:
        yield path


def edits(content):
    """Every field of the record taken away, and replaced by values of every type, one at a time."""
    for path in leaves(content):
        if not path or path[0] == "seal":
            continue
        changed = copy.deepcopy(content)
        place = changed
        for key in path[:-1]:
            place = place[key]
        old = place[path[-1]]
        del place[path[-1]]
        yield path, "removed", changed
        for new in (None, True, -1, 10**400, 0.123, "nan", "inf", [], {"a": 1}, f"{old}!"):
            if new == old and isinstance(new, bool) == isinstance(old, bool):  # 0 is 0.0
                continue
            changed = copy.deepcopy(content)
            place = changed
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = new
            yield path, new, changed


def test_every_edit_is_refused_in_a_sentence_or_told(written, tmp_path):
    """Over a thousand edits: with the seal, which tells any, and without it, where the fields themselves do."""
    folder, record = written
    content = json.loads((folder / "selection.json").read_text())
    unsealed = {name: value for name, value in content.items() if name != "seal"}
    path = tmp_path / "selection.json"
    counts = {"refused": 0, "told": 0}
    for place, new, changed in edits(content):
        path.write_text(json.dumps(changed))
        try:
            answer, grounds = differences(read_selection(path), record)
        except InputError as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error)
            counts["refused"] += 1
            continue
        assert any("edited" in ground for ground in grounds), (place, new)
        counts["told"] += 1
    for place, new, changed in edits(unsealed):
        if place[0] == "parameters":  # what they change is found by running them
            continue
        path.write_text(json.dumps(changed))
        try:
            answer, grounds = differences(read_selection(path), record)
        except InputError:
            continue
        # older records lack them
        lacking = ("n_rows", "n_columns", "discoveries", "first_screen")
        harmless = (place[-1] in lacking and new == "removed") or (place, new) in (
            (("columns",), []),
            (("first_screen",), None),
        )
        assert answer or grounds or harmless, (place, new)
    assert counts["refused"] > 500 and counts["told"] > 100


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "{}",
        "[" * 100_000,
        '{"format": NaN}',
        '{"a": 1, "a": 2}',
        "9" * 5000,
        "\ufffe",
        '{"format": true}',
    ],
    ids=range(11),
)
def test_what_is_no_record_is_refused(tmp_path, text):
    (tmp_path / "selection.json").write_text(text)
    refuses("selection.json: ", read_selection, tmp_path / "selection.json")
    assert not is_selection(tmp_path / "selection.json")


def test_differences_are_told_in_plain_numbers(written, tmp_path):
    folder, record = written
    content = json.loads((folder / "selection.json").read_text())
    content["features"][0]["Z"] += 1
    content["features"][1]["q_value"] = 0.01
    content["explanation"] = "All is well."
    content["notes"]["task"] = "another"
    (tmp_path / "selection.json").write_text(json.dumps(content))
    answer, grounds = differences(read_selection(tmp_path / "selection.json"), record)
    assert [line.split(":")[0] for line in answer] == [
        "Z, the most for '=a'",
        "the q-values, the most for 'b'",
    ]
    assert [line.split(":")[0] for line in grounds] == ["the explanation", "the note on task", "the record itself"]
    assert "np.float64" not in " ".join(answer)
