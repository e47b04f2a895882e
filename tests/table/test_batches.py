"""Blocks are kept whole, found again, and folders that are not ours are left alone."""

import io

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.table.batches import JOURNAL, Blocks, open_blocks


def open_again(folder, resume=True, **fingerprint):
    return open_blocks(folder, {"seed": 1} | fingerprint, suffix=".npy", resume=resume, ours=("block_*.npy",))


def test_blocks_are_found_again_by_the_same_run_only(tmp_path):
    blocks = open_again(tmp_path / "work")
    blocks.keep("block_1", lambda file: np.save(file, np.arange(3)))
    again = open_again(tmp_path / "work")
    np.testing.assert_array_equal(again.find("block_1", np.load), [0, 1, 2])
    assert again.find("block_2", np.load) is None
    with pytest.raises(InputError, match="from another run, with other 'seed'"):
        open_again(tmp_path / "work", seed=2)
    fresh = open_again(tmp_path / "work", resume=False, seed=2)
    assert fresh.find("block_1", np.load) is None
    fresh.remove("block_*.npy")
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY", None], ids=["empty", "cut off", "half"])
def test_a_damaged_block_is_made_again(tmp_path, damage):
    whole = io.BytesIO()
    np.save(whole, np.arange(100))
    (tmp_path / "a.npy").write_bytes(whole.getvalue()[:300] if damage is None else damage)
    assert Blocks(tmp_path, ".npy").find("a", np.load) is None
    (tmp_path / "a.npz").write_bytes(b"PK no zip")
    assert Blocks(tmp_path, ".npz").find("a", np.load) is None


@pytest.mark.parametrize("resume", [True, False])
def test_a_folder_that_is_not_ours_is_not_touched(tmp_path, resume):
    theirs = tmp_path / "work"
    theirs.mkdir()
    open_again(theirs)  # an empty one will do
    (theirs / JOURNAL).unlink()
    (theirs / "thesis.txt").write_text("ten years")
    (theirs / "block_1.npy").write_text("theirs")
    with pytest.raises(InputError, match="is not the work folder of a run of knockoffs: nothing in it is touched"):
        open_again(theirs, resume=resume)
    assert {path.name for path in theirs.iterdir()} == {"thesis.txt", "block_1.npy"}
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="this is a file"):
        open_again(tmp_path / "file", resume=resume)


def test_a_file_of_theirs_in_our_folder_stays(tmp_path):
    blocks = open_again(tmp_path / "work")
    blocks.keep("block_1", lambda file: file.write(b"x"))
    (tmp_path / "work" / "notes.txt").write_text("theirs")
    blocks.remove("block_*.npy")
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000], ids=["empty", "open", "bytes", "deep"])
def test_a_damaged_journal_is_told_in_a_sentence(tmp_path, content):
    open_again(tmp_path / "work").keep("block_1", lambda file: file.write(b"x"))
    (tmp_path / "work" / JOURNAL).write_bytes(content)
    with pytest.raises(InputError, match="is damaged .* Start afresh"):
        open_again(tmp_path / "work")
    open_again(tmp_path / "work", resume=False)
    assert [path.name for path in (tmp_path / "work").iterdir()] == [JOURNAL]
