import gzip
import inspect
import os
from pathlib import Path

import numpy as np
import pytest
from tests.refusals import refuses

from knockoffs.errors import InputError
from knockoffs.features.network import bif, read_network
from knockoffs.features.network.bif import parse_bif, read_bif

DATA = Path(os.environ.get("KNOCKOFFS_DATA", Path(__file__).parents[4] / "shared" / "data")) / "bif"
# nodes and arcs, as the repository states them
SIZES = {
    "asia": (8, 8),
    "cancer": (5, 4),
    "earthquake": (5, 4),
    "survey": (6, 6),
    "sachs": (11, 17),
    "alarm": (37, 46),
    "water": (32, 66),
    "hailfinder": (56, 66),
    "andes": (223, 338),
    "pigs": (441, 592),
    "link": (724, 1125),
}

TWO = """
network two { property author = "someone; else"; }
// a comment { with marks
variable A { type discrete [ 2 ] { yes, no }; property x; }
variable B { type discrete [3] { low, mid, "very high" }; }
probability ( B | A ) { (no) 0.2, 0.3, 0.5; (yes) 0.1 0.1 0.8; } /* commas are optional */
probability ( A ) { table 0.3, 0.7; }
"""


@pytest.mark.parametrize("name", SIZES)
def test_repository_files(name):
    path = DATA / f"{name}.bif.gz"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    read = read_bif(path)
    assert (len(read.states), sum(map(len, read.parents.values()))) == SIZES[name]
    for child, table in read.tables.items():
        assert table.shape == tuple(len(read.states[v]) for v in (*read.parents[child], child))
        assert table.sum(axis=-1) == pytest.approx(1, abs=1e-12)


def test_a_small_file():
    two = parse_bif(TWO)
    assert two.states == {"A": ("yes", "no"), "B": ("low", "mid", "very high")}
    assert two.parents == {"A": (), "B": ("A",)}
    assert two.tables["A"] == pytest.approx(np.array([0.3, 0.7]))
    assert two.tables["B"] == pytest.approx(np.array([[0.1, 0.1, 0.8], [0.2, 0.3, 0.5]]))


def test_table_and_default_of_a_child():
    head = "variable A { type discrete [ 2 ] { a, b }; } variable B { type discrete [ 2 ] { c, d }; }"
    root = "probability ( A ) { table .5 .5; }"
    whole = parse_bif(f"{head} {root} probability ( B | A ) {{ table 0.1, 0.2, 0.9, 0.8; }}")  # the child is slowest
    assert whole.tables["B"] == pytest.approx(np.array([[0.1, 0.9], [0.2, 0.8]]))
    for rows in ("(b) 1, 0; default 0.25, 0.75;", "default 0.25, 0.75; (b) 1, 0;"):  # wherever it stands
        rest = parse_bif(f"{head} {root} probability ( B | A ) {{ {rows} }}")
        assert rest.tables["B"] == pytest.approx(np.array([[0.25, 0.75], [1, 0]]))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.3, 0.7", "0.3, 0.6", r"line 7: the row of 'A' given \(\) sums to 0.9"),
        ("0.2, 0.3, 0.5", "0.2, 0.9, 0.5", r"line 6: the row of 'B' given \(A=no\) sums to 1.6"),
        ("0.2, 0.3, 0.5", "0.2, 0.3", "line 6: expected 3 probabilities, got '0.2, 0.3'"),
        ("0.3, 0.7", "-0.3, 1.3", "line 7: expected 2 probabilities"),
        ("0.3, 0.7", "nan, 0.7", "line 7: expected 2 probabilities"),
        ("0.3, 0.7", "__import__, 0.7", "line 7: expected numbers, got '__import__, 0.7'"),
        ("(no)", "(maybe)", r"line 6: 'maybe' is no state of 'A' \(yes, no\)"),
        ("(no)", "(no, no)", "line 6: 2 states for 1 parents of 'B'"),
        ("(no) 0.2, 0.3, 0.5;", "", r"line 6: the row of 'B' given \(A=no\) is missing"),
        ("( B | A )", "( B | C )", "line 6: 'C' is not a declared variable"),
        ("( B | A )", "( B | B )", "line 6: 'B' has two tables, or a parent twice"),
        ("[ 2 ]", "[ 5 ]", "line 4: variable 'A' announces 5 states and lists 2"),
        ("yes, no", "yes, yes", r"lists 2 \(1 different\)"),
        ("variable B", "variable A", "line 5: variable 'A' is declared twice"),
        ("type discrete [3]", "type continuous [3]", "line 5: expected discrete, got 'continuous'"),
        ("probability ( A )", "probably ( A )", "line 7: expected network, variable or probability, got 'probably'"),
        ("{ table 0.3, 0.7; }", "{ table 0.3, 0.7", "line 7: the file ends where } was expected"),
        ('"very high"', '"very high', "line 5: .* begins a string that does not end"),
        ("probability ( A ) { table 0.3, 0.7; }", "", "variable 'A' has no probability table"),
    ],
)
def test_broken_files_are_refused_with_the_line(old, new, message):
    assert old in TWO
    refuses(message, parse_bif, TWO.replace(old, new, 1))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("(a) 0.1, 0.9; (b) 1, 0; (a) 0.2, 0.8;", r"line 1: 'B' has two rows given \(a\)"),
        ("(a) 0.1, 0.9; table 0.1, 0.2, 0.9, 0.8;", "line 1: 'B' has a table after other rows"),
        ("table 0.1, 0.2, 0.9, 0.8; (b) 1, 0;", r"'B' has two rows given \(b\)"),
        ("table 0.1, 0.2, 0.9, 0.8; table 0.1, 0.2, 0.9, 0.8;", "'B' has a table after other rows"),
        ("default 0.5, 0.5; default 0.4, 0.6;", "'B' has two default rows"),
    ],
)
def test_rows_that_contradict_each_other_are_refused(rows, message):
    head = "variable A { type discrete [ 2 ] { a, b }; } variable B { type discrete [ 2 ] { c, d }; }"
    refuses(message, parse_bif, f"{head} probability ( A ) {{ table .5 .5; }} probability ( B | A ) {{ {rows} }}")


def wide(n_parents):
    names = [f"v{i}" for i in range(n_parents + 1)]
    text = "".join(f"variable {name} {{ type discrete [ 2 ] {{ a, b }}; }}" for name in names)
    roots = "".join(f"probability ( {name} ) {{ table .5 .5; }}" for name in names[1:])
    return text + roots + f"probability ( v0 | {', '.join(names[1:])} ) {{ default 0.5, 0.5; }}"


def test_many_parents_are_refused_at_once_and_the_most_that_are_taken_are_quick(tmp_path):
    """A file of 2 kB with 23 parents took minutes; the limit is met before the table is made."""
    refuses("'v0', which has 23 parents, has 16,777,216 entries; the limit is 1,048,576", parse_bif, wide(23))
    path = tmp_path / "wide.bif"
    path.write_text(wide(19))
    network = read_network(path)
    repr(network)
    with pytest.raises(TypeError):
        inspect.signature(network)  # puts the repr into its message
    assert network.sample(10, np.random.default_rng(0)).shape == (10, 20)


def test_all_tables_together_have_a_limit(monkeypatch):
    monkeypatch.setattr(bif, "MOST_ENTRIES_IN_ALL", 10)
    refuses("line 1: the tables up to that of 'v0' have 12 entries together; the limit is 10", parse_bif, wide(2))


@pytest.mark.parametrize("text", ["/* " * 200_000, "/* */ " * 200_000 + "/*", '"' + "a" * 500_000, "{" * 500_000])
def test_long_nonsense_takes_linear_time(text):
    """Half a million characters: 0.5 s, and hours if every mark were looked for from every other."""
    with pytest.raises(InputError):
        parse_bif(text)


def test_rounding_is_taken_up_to_the_tolerance():
    text = TWO.replace("0.3, 0.7", "0.3333, 0.6666")
    assert parse_bif(text).tables["A"].sum() == pytest.approx(1, abs=1e-15)
    refuses("within 1e-05", parse_bif, text, tolerance=1e-5)


def test_hostile_files(tmp_path):
    refuses("declares no variable", parse_bif, "")
    bomb = tmp_path / "bomb.bif.gz"
    with gzip.open(bomb, "wb") as file:
        for _ in range(70):
            file.write(b" " * 2**20)
    refuses("more than 67,108,864 characters", read_bif, bomb)
    broken = tmp_path / "broken.bif.gz"
    broken.write_bytes(b"not a gzip file")
    refuses("cannot read", read_bif, broken)
    refuses("cannot read", read_bif, tmp_path / "absent.bif")
    rng = np.random.default_rng(0)
    for _ in range(300):  # whatever is broken, it is our own error or a network
        characters = list(TWO)
        for place in rng.integers(0, len(TWO), size=3):
            characters[place] = str(rng.choice(list('{}()[];,|"/* 0ab\n')))
        try:
            parse_bif("".join(characters))
        except InputError:
            pass
