import os
from pathlib import Path

import numpy as np
import pytest

from knockoffs.datasets.newswire import load_newswire
from knockoffs.errors import InputError

DATA = Path(os.environ.get("KNOCKOFFS_DATA", Path(__file__).parents[3] / "shared" / "data"))


def test_r8():
    if not (DATA / "text" / "r8_counts.npz").exists():
        pytest.skip(f"{DATA}/text is not here")
    data = load_newswire(n_words=1000, data_folder=DATA)
    assert data.X.shape == (7674, 1000)  # no story is without all of them
    file = np.load(DATA / "text" / "r8_counts.npz", allow_pickle=False)
    chosen = np.isin(file["vocab"][file["indices"]], data.feature_names)
    assert data.X.sum() == file["data"][chosen].sum()
    assert data.X.sum() > 0.8 * 495_226  # most of the tokens
    assert dict(zip(*np.unique(data.y, return_counts=True), strict=True))["earn"] == 3923
    few = load_newswire(n_words=50, data_folder=DATA)
    assert few.X.shape[1] == len(few.feature_names) == 50
    assert (few.X.sum(axis=1) > 0).all()
    with pytest.raises(InputError, match="n_words=0: expected a number from 1 to 17387"):
        load_newswire(n_words=0, data_folder=DATA)


def test_absent_file(tmp_path):
    with pytest.raises(InputError, match="r8_counts.npz is not in .*data_folder="):
        load_newswire(data_folder=tmp_path)
