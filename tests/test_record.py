"""A record is read only if every field has its type, and every edit of it is refused or told."""

import copy
import json

import numpy as np
import polars as pl
import pytest

from knockoffs.errors import InputError
from knockoffs.record import FILES, differences, is_selection, is_selection_csv, read_selection, write_selection
from knockoffs.table.files import read_table_file, take_column


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Folder of a selection, and the record that was written."""
    from knockoffs.commands.work import run_selection

    folder = tmp_path_factory.mktemp("record")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    pl.DataFrame(X, schema=["=a", *"bcdef"]).with_columns(y=X[:, :4].sum(axis=1)).write_csv(folder / "t.csv")
    parameters = {"target": "y", "drop": [], "weights": None, "seed": 0, "fdr": 0.3, "feature_model": "gaussian"}
    parameters |= {"feature_model_options": None, "estimator": "lasso", "offset": 1, "rule": "difference"}
    record = run_selection(folder / "t.csv", parameters, None)
    write_selection(record, folder)
    return folder, record


def test_a_record_comes_back_as_it_was_written(written):
    folder, record = written
    back = read_selection(folder / "selection.json")
    assert back == record
    assert differences(back, record) == ([], [])
    assert is_selection(folder / FILES[0]) and is_selection_csv(folder / FILES[1])


def test_the_csv_says_what_the_json_says(written):
    folder, record = written
    frame = read_table_file(folder / "selection.csv")
    place = {name: i for i, name in enumerate(take_column(frame, "name").tolist())}
    assert sorted(place) == sorted(record.names)
    for feature in record.features:
        for key, value in feature.items():
            assert take_column(frame, key)[place[feature["name"]]] == value


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
        harmless = place[-1] in ("n_rows", "n_columns") and new == "removed"  # older records lack them
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
    with pytest.raises(InputError, match="selection.json: "):
        read_selection(tmp_path / "selection.json")
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
        "the note on task",
        "the explanation",
    ]
    assert grounds == ["the record itself: it was edited after it had been written"]
    assert "np.float64" not in " ".join(answer)
