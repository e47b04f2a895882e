"""Reuters-21578 R8: word counts of newswire stories in eight classes (Cardoso-Cachopo, 2007)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from knockoffs.datasets.dataset import DataSet
from knockoffs.datasets.files import cache_folder
from knockoffs.errors import InputError

PATH = "text/r8_counts.npz"
SOURCE = "Reuters-21578, UCI dataset 137; stemmed version R8 by A. Cardoso-Cachopo"


def load_newswire(*, n_words: int = 500, data_folder: str | os.PathLike[str] | None = None) -> DataSet:
    """Load how often each word occurs in each story, and the class of the stories.

    Parameters
    ----------
    n_words : int
        How many words, of 17,387.
    data_folder : path, optional
        Folder that holds ``text/r8_counts.npz``; None takes the environment variable KNOCKOFFS_DATA.

    Returns
    -------
    DataSet
        X of shape (7674, n_words) less the stories without any of the words; ``notes`` says how many.
    """
    from scipy.sparse import csr_array

    folders = [Path(folder) for folder in (data_folder or os.environ.get("KNOCKOFFS_DATA"), cache_folder()) if folder]
    found = [folder / PATH for folder in folders if (folder / PATH).is_file()]
    if not found:
        looked = " and ".join(map(str, folders))
        raise InputError(f"{PATH} is not in {looked}: name its folder by data_folder= or KNOCKOFFS_DATA ({SOURCE}).")
    with np.load(found[0], allow_pickle=False) as file:
        counts = csr_array((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
        words, label = file["vocab"], file["label_names"][file["label"]]
    if not 1 <= n_words <= counts.shape[1]:
        raise InputError(f"n_words={n_words}: expected a number from 1 to {counts.shape[1]}.")
    stories = np.bincount(counts.indices, minlength=counts.shape[1])
    frequent = np.sort(np.argsort(-stories, kind="stable")[:n_words])
    X = counts[:, frequent].astype(np.int32).toarray()
    full = X.sum(axis=1) > 0
    notes = (f"the {n_words} words in most stories", f"{(~full).sum()} stories without any of them dropped")
    return DataSet("newswire", X[full], label[full], tuple(str(word) for word in words[frequent]), notes)
