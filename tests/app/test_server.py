"""Tables, jobs and files over the wire."""

import gzip
import json
import os
import time

import pytest
import work_of_tests
from client import TABLE

from knockoffs.app.desk import OFFERED, file_name, parameters_of
from knockoffs.app.estimate import STEPS
from knockoffs.errors import InputError
from knockoffs.options import Options

pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'knockoffs[app]'")
posix = pytest.mark.skipif(os.name == "nt", reason="SIGKILL is of POSIX")


def test_a_table_is_sent_looked_at_selected_from_and_its_files_fetched(client):
    table = client.table()
    assert table["look"]["state"] == "done" and table["table"]["n_rows"] == 30 and table["target"] is None
    columns = table["table"]["columns"]
    assert [c["name"] for c in columns] == ["a", "b", "label", "y"]
    assert [c["kind"] for c in columns] == ["continuous", "continuous", "nominal", "binary"]
    assert columns[2]["may"] == ["nominal", "ordinal"] and columns[2]["levels"] == ["h", "l", "m"]
    answer = client.run(table, drop=[1], kinds={"2": [1, 2, 0], "0": "ordinal"}, options={"seed": 7, "n_draws": 3})
    assert answer.status == 201
    job = client.job(answer.json()["id"], "done")
    given = job["result"]["parameters"]
    assert given["target"] == "y" and given["drop"] == ["b"] and given["fdr"] == 0.1
    assert given["kinds"] == {"label": ["l", "m", "h"], "a": "ordinal"}
    assert given["seed"] == 7 and given["n_draws"] == 3 and given["task"] is None
    assert set(given) == set(Options().recorded("select"))
    assert "--draws 3" in job["about"]["command"] and "n_draws=3" in job["about"]["python"]
    for name in ("report.html", "selection.json", "selection.csv"):
        fetched = client.get(f"jobs/{job['id']}/{name}?download")
        assert fetched.body.decode() == f"{name} of y"
        assert fetched.headers["content-disposition"] == f'attachment; filename="{name}"'
        assert fetched.headers["content-security-policy"] == "sandbox"
    report = client.get(f"jobs/{job['id']}/report.html")
    assert report.headers["content-type"] == "text/html; charset=utf-8" and "content-disposition" not in report.headers
    assert report.headers["content-security-policy"] == "sandbox allow-scripts; frame-ancestors 'self'"
    assert client.get(f"tables/{table['id']}/file").body.decode() == TABLE
    assert [one["id"] for one in client.get("jobs").json()] == [job["id"]]


def test_two_jobs_run_at_once_and_one_is_cancelled(client):
    table = client.table()
    first, second = (client.run(table, target=1).json()["id"] for _ in range(2))  # they do not end by themselves
    client.job(first, "running"), client.job(second, "running")
    third = client.run(table).json()["id"]
    assert client.get(f"jobs/{third}").json()["state"] == "waiting"
    progress = client.until(f"jobs/{first}", lambda job: job["done"])
    assert progress["step"] == "waiting" and progress["total"] == 10_000 and progress["left"] > 1
    process = client.desk.selections.get(first).process
    assert client.post(f"jobs/{first}/cancel").status == 200
    assert client.job(first, "cancelled")["error"] == "" and not process.is_alive()
    assert client.job(third, "done")["result"]["selected"] == 1
    assert client.get(f"jobs/{second}").json()["state"] == "running"
    assert client.get(f"jobs/{first}/report.html").status == 404


@posix
def test_a_killed_worker_is_told_as_such_and_the_others_go_on(client):
    table = client.table()
    killed, other = client.run(table, target=0).json()["id"], client.run(table).json()["id"]
    assert "ended from outside (SIGKILL)" in client.job(killed, "killed")["error"]
    assert client.job(other, "done")
    assert client.get("about").status == 200


def test_a_run_is_guessed_by_its_size_and_then_by_the_last_one_of_its_table(client):
    table, other = client.table(), client.table()
    first = client.job(client.run(table).json()["id"], "done")
    assert list(first["about"]["guess"]) == list(STEPS) and first["in_all"] is None
    second = client.run(table).json()["about"]
    assert list(second["guess"]) == [STEPS[0], STEPS[3]]  # the steps that the work of the tests tells of
    assert 0 < sum(second["guess"].values()) <= first["seconds"] + 0.1
    assert client.run(other).json()["about"]["guess"] == first["about"]["guess"]
    assert client.run(table, options={"n_draws": 3}).json()["about"]["guess"] != second["guess"]


def test_weights_and_groups_are_columns_by_their_numbers(client):
    table = client.table()
    job = client.job(client.run(table, weights=1, groups={"0": "left, =1", "2": "left, =1"}).json()["id"], "done")
    given = job["result"]["parameters"]
    assert given["weights"] == "b" and given["groups"] == job["about"]["groups"]
    assert client.get(f"jobs/{job['id']}/{given['groups']}").body == b'column,group\na,"left, =1"\nlabel,"left, =1"\n'
    assert job["about"]["command"].endswith(f"--target y --weights b --fdr 0.1 --groups {given['groups']}")
    assert client.job(client.run(table, groups="auto").json()["id"], "done")["result"]["parameters"]["groups"] == "auto"
    for wrong in ({"weights": 3}, {"weights": 9}, {"groups": "x"}, {"groups": {"0": ""}}, {"groups": {"0": "a\nb"}}):
        assert client.run(table, **wrong).status == 400
    assert client.get(f"jobs/{job['id']}/groups-00000000.csv").status == 404


def test_a_refusal_of_the_work_is_told_in_its_words(client):
    job = client.run(client.table(), target=2).json()["id"]
    assert client.job(job, "failed")["error"] == "the label <b>cannot</b> be explained."


@pytest.mark.parametrize(
    "content, name, words",
    [
        (b"", "t.csv", "the file is empty"),
        (b"a,b\n1,2,3\n", "t.csv", "t.csv"),
        (b"a,a\n1,2\n", "t.csv", "two columns of the same name"),
        (b"\xff\xfe\x00garbage", "t.csv", ""),
        (b"a,b\n\x00\x01\x02", "t.csv", ""),
        (b"not gzip", "t.csv.gz", "gz"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0)[:-6], "t.csv.gz", "gz"),
        (b"PAR1 no parquet PAR1", "t.parquet", "parquet"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_a_sentence(client, content, name, words):
    table = client.table(content, name)
    assert table["look"]["state"] == "failed" and words in table["look"]["error"]
    assert "fault of the program" not in table["look"]["error"] and table["table"] is None
    assert table["look"]["error"].startswith(f"{name}: ")  # and not where it is
    answer = client.run(table)
    assert answer.status == 400 and "drop it again" in answer.json()["error"]


@pytest.mark.parametrize("name", ["t.exe", "", "..", "csv/", "t.csv/x", "report.html", "%00", "t.xlsx"])
def test_other_files_are_not_taken(client, name):
    answer = client.post(f"tables?name={name}", TABLE)
    assert answer.status == 400 and ".parquet" in answer.json()["error"]
    assert not (client.desk.folder / "tables").exists()


@pytest.mark.parametrize(
    "name, kept",
    [
        ("../../etc/passwd.csv", "passwd.csv"),
        ("..\\..\\x.csv", "x.csv"),
        ("--help.csv", "help.csv"),
        ("<img src=x>.csv", "_img src=x_.csv"),
        ("a\u202evsc.csv", "a_vsc.csv"),
        ("a\x00\n.csv", "a__.csv"),
        ("é" * 300 + ".csv.gz", "é" * 50 + ".csv.gz"),
        ("csv", "table.csv"),
    ],
)
def test_a_name_of_a_file_is_no_more_than_a_name(name, kept):
    assert file_name(name) == kept


BAD_QUESTIONS = [
    ({"target": None}, "choose the target"),
    ({"target": 4}, "names no column"),
    ({"target": -1}, "names no column"),
    ({"target": True}, "names no column"),
    ({"target": "y"}, "names no column"),
    ({"fdr": None}, "between 0 and 1"),
    ({"fdr": "0.1"}, "between 0 and 1"),
    ({"fdr": True}, "between 0 and 1"),
    ({"drop": "a"}, "drop is a list"),
    ({"drop": [9]}, "drop names no column"),
    ({"kinds": ["count"]}, "kinds a kind by column"),
    ({"kinds": {"0": "odd"}}, "cannot be"),
    ({"kinds": {"2": [0, 1]}}, "cannot be"),
    ({"kinds": {"2": [0, 1, 1]}}, "cannot be"),
    ({"kinds": {"0": [0]}}, "cannot be"),
    ({"options": {"knockoffs": "/etc/passwd"}}, "option='knockoffs' is not known"),
    ({"options": {"groups": "/etc/passwd"}}, "not known"),
    ({"options": {"feature_model": "/etc/x.bif"}}, "feature_model cannot be"),
    ({"options": {"feature_model": "fastphase"}}, "feature_model cannot be"),
    ({"options": {"estimator": "os.system"}}, "estimator cannot be"),
    ({"options": {"seed": -1}}, "seed cannot be"),
    ({"options": {"seed": 1.5}}, "seed cannot be"),
    ({"options": {"n_draws": None}}, "n_draws cannot be"),
    ({"table": "none"}, "drop it again"),
    ({"table": None}, "drop it again"),
]


def test_a_question_that_cannot_be_understood_is_refused(client):
    table = client.table()
    for asked, words in BAD_QUESTIONS:
        answer = client.post("jobs", js={"table": table["id"], "target": 3, "fdr": 0.1, **asked})
        assert answer.status == 400 and words in answer.json()["error"], asked
    assert client.get("jobs").json() == []


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b"\xff", b"[" * 100_000, b'{"table": "' + b"x" * 50_000 + b'"}'])
def test_what_is_no_question_is_refused(client, body):
    assert client.post("jobs", body).status == 400


@pytest.mark.parametrize(
    "path",
    ["tables/x", "tables/x/file", "jobs/x", "jobs/x/report.html", "jobs/x/..%2f..%2fx", "static/../x", "pages/app.js"],
)
def test_what_is_not_there_is_not_there(client, path):
    assert client.get(path).status == 404


def test_no_other_file_of_a_job_can_be_fetched(client):
    job = client.run(client.table()).json()["id"]
    client.job(job, "done")
    (client.desk.selections.get(job).folder / "other.txt").write_text("secret")
    for name in ("other.txt", "..", ".", "../../../tables", "%2e%2e"):
        assert client.get(f"jobs/{job}/{name}").status == 404


def test_options_of_the_page_are_those_of_the_list(client):
    about = client.get("about").json()
    assert [option["name"] for option in about["options"]] == list(OFFERED)
    assert {option["name"]: option["default"] for option in about["options"]}["feature_model"] == "auto"
    assert "fastphase" not in next(o for o in about["options"] if o["name"] == "feature_model")["choices"]
    columns = [{"name": "x", "levels": None}, {"name": "y", "levels": None}]
    defaults = {option["name"]: option["default"] for option in about["options"]}
    plain = parameters_of({"target": 1, "fdr": 0.1}, columns)
    assert plain == parameters_of({"target": 1, "fdr": 0.1, "options": defaults}, columns)
    assert plain["fdr"] == 0.1 and plain["drop"] == [] and plain["kinds"] is None
    with pytest.raises(InputError):
        parameters_of({"target": 1, "fdr": 0.1, "options": {"weights": "x"}}, columns)


def test_examples_can_be_taken(client):
    keys = [example["key"] for example in client.get("about").json()["examples"]]
    assert "diabetes" in keys
    for key in keys:
        sent = client.post(f"examples/{key}").json()
        table = client.until(f"tables/{sent['id']}", lambda t: t["look"]["state"] not in ("waiting", "running"))
        assert table["look"]["error"] == "" and table["table"]["n_rows"] > 400
        assert table["target"] == len(table["table"]["columns"]) - 1
    assert client.post("examples/none").status == 400


def test_tables_do_not_pile_up(client):
    first = client.table()
    busy = client.run(first, target=1).json()["id"]
    names = [client.post("tables?name=t.csv", TABLE).json()["id"] for _ in range(14)]
    assert client.get(f"tables/{first['id']}").status == 200  # a job needs it
    assert client.get(f"tables/{names[0]}").status == 404 and client.get(f"tables/{names[-1]}").status == 200
    assert len(list((client.desk.folder / "tables").iterdir())) == 10
    client.post(f"jobs/{busy}/cancel")


def test_results_are_kept_where_that_is_asked_for(make_client, tmp_path):
    client = make_client(keep=tmp_path / "kept")
    name = client.run(client.table()).json()["id"]
    job = client.desk.selections.get(name)
    while job.state != "done":  # nobody has to ask
        time.sleep(0.05)
    kept = tmp_path / "kept" / f"t.csv-{name}"
    assert (kept / "selection.json").read_text() == "selection.json of y" and job.error == ""
    assert sorted(path.name for path in kept.iterdir()) == ["report.html", "selection.csv", "selection.json"]


def test_results_that_cannot_be_kept_are_still_there(make_client, tmp_path):
    (tmp_path / "kept").write_text("a file")
    client = make_client(keep=tmp_path / "kept")
    job = client.job(client.run(client.table()).json()["id"], "done")
    assert job["error"].startswith("its files could not be kept: ")
    assert client.get(f"jobs/{job['id']}/selection.csv").status == 200


def test_a_fault_of_the_server_is_a_sentence(client, monkeypatch):
    monkeypatch.setattr(client.desk, "run", lambda asked: {}["secret"])
    answer = client.run(client.table())
    assert answer.status == 500 and answer.json() == {"error": "This is a fault of the program: KeyError."}


def test_what_is_told_is_ascii_json_whatever_the_names(client):
    table = client.table('\u202e<b>,"a""b",y\n1,2,0\n2,1,1\n3,5,0\n4,4,1\n')
    answer = client.get(f"tables/{table['id']}")
    assert answer.body.isascii() and json.loads(answer.body)["table"]["columns"][0]["shown"] == "\\u202e<b>"


def test_the_work_of_these_tests_ends(client):
    """Endless work is endless only until the desk is closed."""
    job = client.desk.selections.add(work_of_tests.endless, about={"table": ""})
    time.sleep(0.2)
    client.desk.close()
    assert job.state == "cancelled"
