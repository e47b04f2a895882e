"""What a release rests on agrees with itself: versions, promised Pythons, lower bounds, workflows that publish."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def workflow(path):
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    found["on"] = found.pop(True)  # YAML 1.1 takes the word on for true
    return found


def test_one_version():
    version = PROJECT["version"]
    assert re.search(rf"^version: {re.escape(version)}$", read("CITATION.cff"), re.MULTILINE)
    assert re.findall(r"^## (\S+)", read("CHANGELOG.md"), re.MULTILINE)[0] == version


def test_every_lower_bound_is_among_the_smallest_versions():
    extras = [r for name, listed in PROJECT["optional-dependencies"].items() if name not in LEFT_OUT for r in listed]
    pinned = dict(re.findall(r"^([\w-]+)==([\w.]+)", read("constraints-lowest.txt"), re.MULTILINE))
    for requirement in PROJECT["dependencies"] + extras:
        name, bound, elsewhere = re.fullmatch(
            r"([\w-]+)(?:\[\w+\])?>=([\w.]+)(; sys_platform == .*|;.*)?", requirement
        ).groups()
        if elsewhere and "==" in elsewhere:  # for another system than that of the smallest versions
            continue
        assert padded(pinned[name]) == padded(bound), requirement


LEFT_OUT = ("neural", "topics")  # extras that make lowest does not install


def padded(version):
    numbers = [int(part) for part in version.split(".")]
    return numbers + [0] * (3 - len(numbers))


def test_the_pythons_that_are_promised_are_tested():
    promised = [c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    matrix = workflow(FOLDER / "test.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == promised
    assert PROJECT["requires-python"] == f">={promised[0]}"
    systems = {*matrix["os"], *(pair["os"] for pair in matrix["include"])}
    assert systems == {"ubuntu-latest", "macos-latest", "windows-latest"}


def extras_of(target):
    """Extras that a rule of the Makefile installs."""
    return set(
        re.search(rf"^{re.escape(target)}:.*?--editable '\.\[([\w,]+)\]'", read("Makefile"), re.M | re.S)[1].split(",")
    )


def test_the_extras_that_make_test_installs_are_those_that_are_tested_elsewhere():
    jobs = workflow(FOLDER / "test.yml")["jobs"]
    asked = next(step["env"]["EXTRAS"] for step in jobs["test"]["steps"] if "EXTRAS" in step.get("env", {}))
    named = set(re.findall(r"[a-z]+", re.sub(r"\$\{\{.*?'(,\w+)' \|\| '' \}\}", r"\1", asked)))
    assert named == extras_of("$(VENV)/.development") == PROJECT["optional-dependencies"].keys() - {"topics"}
    assert extras_of("lowest") == PROJECT["optional-dependencies"].keys() - set(LEFT_OUT)


def faults(found):
    """What is wrong with a workflow, as far as can be told without running it."""
    if found.get("permissions") != {"contents": "read"}:
        yield "it may do more than read"
    for name, job in found["jobs"].items():
        needs = job.get("needs", [])
        for other in [needs] if isinstance(needs, str) else needs:
            if other not in found["jobs"]:
                yield f"{name} needs {other}, which is not there"
        if "uses" in job:
            if not (ROOT / job["uses"]).is_file():
                yield f"{name} uses {job['uses']}, which is not there"
            continue
        if "runs-on" not in job or "timeout-minutes" not in job:
            yield f"{name} has no machine, or no end"
        if "id-token" in job.get("permissions", {}) and "environment" not in job:
            yield f"{name} can publish without an environment that guards it"
        for step in job["steps"]:
            if ("uses" in step) == ("run" in step):
                yield f"{name}: a step either uses an action or runs a command"
            if "uses" in step and not re.fullmatch(r"[\w./-]+@[\w./]+", step["uses"]):
                yield f"{name}: {step['uses']} has no version"
            if "github.event" in str(step.get("run", "")):
                yield f"{name}: what an event says is pasted into a command"
            if re.search(r"secrets\.", str(step)):
                yield f"{name}: a secret is used"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_holds_together(path):
    found = workflow(path)
    assert {"name", "on", "jobs"} <= found.keys()
    assert list(faults(found)) == []
    for job in found["jobs"].values():
        for target in re.findall(r"make (\w+)", str(job.get("steps", ""))):
            assert re.search(rf"^{target}:", read("Makefile"), re.MULTILINE), f"{path.name}: make {target}"


def test_there_are_workflows():
    assert {path.name for path in WORKFLOWS} == {"test.yml", "docs.yml", "release.yml"}


def test_only_the_jobs_that_publish_can_prove_who_they_are():
    may = {
        f"{path.stem}/{name}"
        for path in WORKFLOWS
        for name, job in workflow(path)["jobs"].items()
        if "id-token" in job.get("permissions", {})
    }
    assert may == {"docs/publish", "release/publish"}
