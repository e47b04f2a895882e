"""Damaged files of every kind end in an answer or in an error of ours; some hundred, in the slow tests thousands."""

import contextlib
import gzip
import sys
import warnings
from collections import Counter

import numpy as np
import polars as pl
import pytest
from tests.fastphase import write_fastphase

from knockoffs import Mosaic
from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.record import SelectionRecord, write_selection
from knockoffs.record.reading import read_selection
from knockoffs.table.files import read_table_file, write_table_file
from knockoffs.table.groups import as_groups, read_groups
from knockoffs.table.table import read_table

N = 60  # of each kind
WORDS = [*',;"=-{}[]: ', "'", "\t", "\n", "\r\n", "\0"]
WORDS += ["NA", "nan", "inf", "1e999", "null", "true", "1_0", "٣", "9" * 30]
TOKENS = [*(word.encode() for word in WORDS), b"\xff\xfe", b"\xe9", b"\x6c\x1b"]


def mutate(content, rng):
    """Up to three changes: of single bytes, and in half of the files also cut out, doubled, put in, the end cut off."""
    content = bytearray(content)
    only = rng.random() < 0.5
    for _ in range(rng.integers(1, 4)):
        i = int(rng.integers(len(content) + 1))
        j = min(len(content), i + int(rng.integers(1, 40)))
        match 3 if only else int(rng.integers(6)):
            case 0:
                content[i:j] = b""
            case 1:
                content[i:i] = content[i:j]
            case 2:
                content[i:i] = TOKENS[rng.integers(len(TOKENS))]
            case 3:
                content[i : i + 1] = bytes([rng.integers(256)])
            case 4:
                content[i:j] = TOKENS[rng.integers(len(TOKENS))]
            case 5:
                del content[max(i, len(content) // 2) :]
    return bytes(content)


NETWORK = """network weather {
}
variable rain {
  type discrete [ 2 ] { yes, no };
}
variable grass {
  type discrete [ 3 ] { wet, damp, dry };
}
probability ( rain ) {
  table 0.25, 0.75;
}
probability ( grass | rain ) {
  (yes) 0.7, 0.2, 0.1;
  (no) 0.1, 0.3, 0.6;
}
"""


@pytest.fixture(scope="session")
def good(tmp_path_factory):
    """A whole file of each kind, in a folder of its own."""
    folder = tmp_path_factory.mktemp("good")
    rng = np.random.default_rng(0)
    columns = {
        "age": rng.integers(20, 80, 12).tolist(),
        "dose, mg": rng.standard_normal(12).tolist(),
        "sex": ["f", "m", "x"] * 4,
        "sick": [True, False] * 6,
        "=odd": ["a,b", 'c "d"', "e\nf"] * 4,
    }
    write_table_file(columns, folder / "t.csv")
    pl.DataFrame(columns).write_parquet(folder / "t.parquet")
    (folder / "e.csv").write_text("a;b;c\n" + "1,5;2;x\n" * 6)
    (folder / "u.csv").write_bytes("ä,b\n1,é\n2,x\n".encode("utf-16"))
    feature = {"name": "a", "selected": True, "W": 1.0, "q_value": 0.1, "Z": 1.0, "Z_tilde": 0.0}
    parameters = {"target": "y", "drop": ["b"], "seed": 0, "fdr": 0.1, "feature_model_options": {"diagonal": "mvr"}}
    data = {"file": "t.csv", "sha256": "0" * 64, "n_rows": 12, "n_columns": 6, "files": {"k.csv": "1" * 64}}
    record = SelectionRecord(parameters, data, {"numpy": "2"}, {"task": "x"}, "Nothing.", np.inf, [feature] * 3)
    write_selection(record, folder)
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes(), mtime=0))
    write_table_file(columns, folder / "t.tsv")
    (folder / "n.bif").write_text(NETWORK)
    (folder / "n.bif.gz").write_bytes(gzip.compress(NETWORK.encode(), mtime=0))
    (folder / "groups.csv").write_text('column,group\nage,1\n"dose, mg",1\nsex,body\nsick,body\n')
    mosaic = Mosaic(rng.uniform(0.1, 1, 6), np.full((6, 2), 0.5), rng.uniform(0.2, 0.8, (6, 2)))
    write_fastphase(folder / "fp", mosaic)
    try:
        from bed_reader import to_bed
    except ImportError:
        return folder
    to_bed(folder / "g.bed", rng.integers(3, size=(9, 7)).astype(np.int8), num_threads=1)
    return folder


def read_any(path):
    """Read a file as its name says, and all of it."""
    if path.name == "selection.json":
        read_selection(path)
    elif ".bif" in path.name:
        from knockoffs.features.network import read_network

        read_network(path).sample(3, np.random.default_rng(0))
    elif path.name == "groups.csv":
        as_groups(read_groups(path), ["age", "dose, mg", "sex", "sick"])
    elif path.name.startswith("fp_"):
        from knockoffs.features.fastphase import read_fastphase

        read_fastphase(path.parent / "fp")
    elif path.suffix in (".bed", ".bim", ".fam"):
        from knockoffs.table.plink import read_bed

        read_bed(path.with_suffix(".bed"))
    else:
        frame = read_table_file(path)
        with contextlib.suppress(InputError):  # what is no table of features is refused by name
            read_table(frame)


def outcomes(good, folder, name, n, rng):
    """Count what becomes of n damaged files: an answer, or an error of ours; anything else ends the test."""
    counts = Counter()
    for beside in [path for path in good.iterdir() if path.name[:2] in ("g.", "fp") and path.name[:2] == name[:2]]:
        (folder / beside.name).write_bytes(beside.read_bytes())
    for _ in range(n):
        content = mutate((good / name).read_bytes(), rng)
        (folder / name).write_bytes(content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", KnockoffWarning)
                read_any(folder / name)
            counts["answers"] += 1
        except InputError as error:
            assert str(error), content
            counts["own errors"] += 1
        except BaseException as error:
            raise AssertionError(f"{name}: {type(error).__name__} from {content!r}") from error
    return counts


FILES = ["t.csv", "e.csv", "u.csv", "t.tsv", "t.csv.gz", "t.parquet", "selection.json", "groups.csv", "n.bif"]
FILES += ["n.bif.gz", "fp_rhat.txt", "fp_alphahat.txt", "fp_thetahat.txt", "fp_origchars", "g.bed", "g.bim", "g.fam"]


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_end_in_answers_or_in_errors_of_ours(good, tmp_path, name, rng):
    if name.startswith("g."):
        pytest.importorskip("bed_reader")
    counts = outcomes(good, tmp_path, name, N, rng)
    assert counts["own errors"] > 0  # the damage was damage
    print(name, dict(counts), file=sys.stderr)
