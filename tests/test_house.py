"""The house: arrows between modules point down, the public names are typed, a fit checks once and copies little."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tracemalloc
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import knockoffs

ROOT = Path(__file__).parent.parent
if not (ROOT / "tools" / "house.py").is_file():
    pytest.skip("needs the source tree", allow_module_level=True)
spec = importlib.util.spec_from_file_location("house", ROOT / "tools" / "house.py")
house = importlib.util.module_from_spec(spec)
spec.loader.exec_module(house)

MOST_ANY, MOST_IGNORED = 120, 35  # the words "Any" and "type: ignore" in src: fewer is better
TWICE: set[str] = set()  # class names of two rooms
ROOMS = house.rooms()
FLOOR_OF = {name: level for level, floor in enumerate(house.FLOORS) for name in floor}


def test_every_room_has_a_floor():
    there = {house.room(module) for module in house.modules()} - {"__init__"}
    assert there == set(FLOOR_OF), "a new room at the root needs its place in FLOORS of tools/house.py"


def test_arrows_point_down():
    for name, used in ROOMS.items():
        for other in used:
            if (name, other) not in house.DOORS and name != "__init__":
                assert FLOOR_OF[other] < FLOOR_OF[name], f"{name} imports {other}, which stands above it or beside it"


def test_the_doors_that_lead_up_are_used_and_only_inside_functions():
    inside, at_import = ROOMS, house.rooms(lazy=False)
    for name, other in house.DOORS:
        assert other in inside[name] and other not in at_import[name]


def test_loops_are_compiled_in_one_way():
    """By machine/compiled.py, which needs no place to keep them; numba's own fails at import where there is none."""
    for name, path in house.modules().items():
        text = path.read_text().replace("from knockoffs.machine.compiled import njit", "")
        assert "import njit" not in text or name.endswith("machine.compiled"), name


def test_no_modules_import_one_another_in_a_circle():
    assert house.cycle(house.graph(lazy=False)) == []


@pytest.mark.parametrize(
    "room, never",
    [
        ("table", ("features", "response", "importance", "procedure")),
        ("sampling", ("features", "table", "response", "importance")),
        ("response", ("features", "sampling", "importance")),
        ("importance", ("features", "procedure")),
        ("features", ("response", "importance")),
        ("diagnostics", ("response", "importance")),
    ],
)
def test_the_halves_do_not_know_one_another(room, never):
    assert not ROOMS[room] & set(never)


def test_the_filter_knows_arrays_only():
    assert ROOMS["filter"] == {"errors"}


def test_nobody_imports_the_command_line():
    users = {name for name, used in ROOMS.items() if "cli" in used}
    assert users <= {"cli", "__main__", "app"}  # the page runs commands


def test_the_package_imports_neither_the_paper_nor_the_benchmarks():
    for name, path in house.modules().items():
        assert not re.search(r"^\s*(from|import) (paper|benchmarks)\b", path.read_text(), re.MULTILINE), name


def test_few_modules_at_the_root():
    assert len(list((ROOT / "src" / "knockoffs").glob("*.py"))) <= 13


def test_no_file_is_longer_than_one_idea():
    long = {name: path.read_text().count("\n") for name, path in house.modules().items()}
    assert long.pop("knockoffs.options") <= 500  # one list, which grows with the options
    assert {name: lines for name, lines in long.items() if lines > 450} == {}


def test_no_public_class_name_is_defined_twice():
    """One word, one idea. ``TWICE`` holds the names that are still to be told apart; it must only shrink."""
    found = {}
    for name, path in house.modules().items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(name)
    assert {name for name, places in found.items() if len(places) > 1} <= TWICE


def test_any_stands_where_nothing_else_can():
    """The word: an import counts as well. What is left are formats of the caller and objects of untyped libraries."""
    texts = [path.read_text(encoding="utf-8") for path in house.modules().values()]
    assert sum(len(re.findall(r"\bAny\b", text)) for text in texts) <= MOST_ANY
    ignored = {name: path.read_text().count("type: ignore") for name, path in house.modules().items()}
    assert sum(ignored.values()) <= MOST_IGNORED


def test_signatures_are_read_in_one_place():
    """Commands are functions made from the list of options: the signature that typer reads is set there."""
    read = r"inspect\.signature|import .*\bsignature\b"
    users = [name for name, path in house.modules().items() if re.search(read, path.read_text())]
    assert users == ["knockoffs.cli.program"]


def test_the_stub_holds_the_public_names():
    written = (ROOT / "src" / "knockoffs" / "__init__.pyi").read_text(encoding="utf-8")
    assert written == house.stub(), "run make house"
    pytest.importorskip("torch")  # names that need it are left out without it
    named = set(re.findall(r" as (\w+)$", written, re.MULTILINE)) | {"__version__"}
    assert named == set(knockoffs.__all__)


def test_a_type_checker_sees_the_public_names(tmp_path):
    pytest.importorskip("mypy")
    said = {
        "reveal_type(knockoffs.KnockoffSelector)": 'Revealed type is "def (fdr: ',
        "knockoffs.KnockoffSelector(nonsense=3)": 'Unexpected keyword argument "nonsense"',
        "knockoffs.KnockofSelector": "has no attribute",
        "reveal_type(knockoffs.Pair(1, 2, 3).n_features)": 'incompatible type "int"',
    }
    (tmp_path / "snippet.py").write_text("\n".join(["import knockoffs", *said]) + "\n")
    command = [sys.executable, "-m", "mypy", str(tmp_path / "snippet.py")]
    environment = os.environ | {"MYPYPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    for number, words in enumerate(said.values(), start=2):
        lines = [line for line in done.stdout.splitlines() if f"snippet.py:{number}:" in line]
        assert any(words in line for line in lines), done.stdout + done.stderr


# one for each model of y, each node, each class of P^X, each draw
OF_EACH = {"check_path", "check_rows", "_check_methods", "_check_conjugate", "check_covariance", "check_swaps"}
ONCE = {"check_takes", "check_fdr", "check_offset", "check_features"}
OF_KNOCKOFFS = ONCE | {"check_antisymmetric", "check_draws"}


@pytest.mark.parametrize(
    "options, once, of_each",
    [
        (house.PLAIN, OF_KNOCKOFFS | {"check_covariance", "check_weights", "check_swaps"}, set()),
        ({}, OF_KNOCKOFFS, OF_EACH),
        (house.PLAIN | {"n_draws": 3}, OF_KNOCKOFFS, OF_EACH),
        (house.PLAIN | {"n_draws": 2, "level": "post_hoc"}, OF_KNOCKOFFS, OF_EACH),
        (house.PLAIN | {"method": "conditional_test", "resolution": "columns"}, ONCE, OF_EACH),
        (house.PLAIN | {"groups": [j // 2 for j in range(80)], "method": "knockoffs"}, OF_KNOCKOFFS, OF_EACH),
        (house.PLAIN | {"feature_model": "mixture"}, OF_KNOCKOFFS, OF_EACH),
    ],
    ids=["gaussian", "defaults", "draws", "post hoc", "tests", "groups", "mixture"],
)
def test_one_fit_checks_everything_once(options, once, of_each):
    calls = Counter()
    for code, n in house.walk_of_fit(**options | {"verdict": False}).calls.items():
        calls[code.co_name] += n
    checks = {name: n for name, n in calls.items() if name.lstrip("_").startswith("check") and name not in of_each}
    assert checks == dict.fromkeys(checks, 1)
    assert set(checks) >= once


@pytest.mark.parametrize("options", [{"feature_model": "gaussian", "estimator": "lasso"}, {"verdict": False}])
def test_a_fit_holds_at_most_six_times_the_table(options):
    """The search for classes looks at 10,000 rows, the verdict at 5,000, whatever the table: small ones take more."""
    n = 20_000
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 60)) + 0.5 * rng.standard_normal((n, 1))
    y = 0.2 * X[:, :15].sum(axis=1) + rng.standard_normal(n)
    selector = knockoffs.KnockoffSelector(random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector.fit(X[:300], y[:300])  # imports and compiles
        tracemalloc.start()
        try:
            selector.fit(X, y)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak <= 6 * X.nbytes, f"{peak / X.nbytes:.1f}"
