"""Real tables beside those of the paper: HIV-1 drug resistance (Rhee et al., 2006) and newswire stories (Reuters R8).

In the data folder (see ``paper/data.py``): ``hiv/PI.csv.gz`` and ``hiv/NRTI.csv.gz``, one 0/1 column
``P<position>.<amino acid>`` a mutation and one column a drug, from https://hivdb.stanford.edu; ``text/r8_counts.npz``,
the counts of Reuters-21578 R8 by A. Cardoso-Cachopo as a sparse matrix with ``vocab``, ``label`` and ``label_names``.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from paper.data import Folder, read_csv

DRUGS = {
    "PI": ("APV", "ATV", "IDV", "LPV", "NFV", "RTV", "SQV"),
    "NRTI": ("3TC", "ABC", "AZT", "D4T", "DDI", "TDF"),
}
# positions of the treatment-selected mutation panels (Rhee et al., 2005): the proxy truth of the knockoff papers
_PI = "10 11 20 23 24 30 32 33 34 35 43 46 47 48 50 53 54 55 58 66 67 71 73 74 76 79 82 84 85 88 89 90 92 95"
_NRTI = "41 43 44 62 65 67 69 70 74 75 77 98 115 116 151 184 203 208 210 215 218 219 223 228"
TSM_POSITIONS = {"PI": tuple(map(int, _PI.split())), "NRTI": tuple(map(int, _NRTI.split()))}


def load_hiv(drug: str, folder: Folder = None, *, min_count: int = 3) -> tuple[pd.DataFrame, NDArray]:
    """Mutations of the isolates tested with a drug (0/1 columns), and the log fold resistance to it.

    Mutations seen fewer than ``min_count`` times are left out, and columns equal to an earlier one.
    """
    group = class_of(drug)
    table = read_csv(f"hiv/{group}.csv.gz", folder).dropna(subset=[drug])
    X = table.drop(columns=list(DRUGS[group]))
    X = X.loc[:, X.sum() >= min_count]
    return X.loc[:, ~X.T.duplicated()], np.log(table[drug].to_numpy(float))


def class_of(drug: str) -> str:
    """PI or NRTI."""
    return next(group for group, names in DRUGS.items() if drug in names)


def positions_of(X: pd.DataFrame) -> NDArray[np.intp]:
    """Position of each mutation in the enzyme, shape (d,)."""
    return np.array([int(name[1:].partition(".")[0]) for name in X.columns])


def load_newswire(n_words: int, folder: Folder = None) -> tuple[pd.DataFrame, NDArray]:
    """Return counts of the words that most stories have, and the class of each story that has any of them."""
    from scipy.sparse import csr_array

    path = Path(folder or os.environ.get("KNOCKOFFS_DATA") or ".") / "text" / "r8_counts.npz"
    with np.load(path, allow_pickle=False) as file:
        counts = csr_array((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
        words, label = file["vocab"], file["label_names"][file["label"]]
    stories = np.bincount(counts.indices, minlength=counts.shape[1])
    frequent = np.sort(np.argsort(-stories, kind="stable")[:n_words])
    X = counts[:, frequent].astype(np.int32).toarray()
    full = X.sum(axis=1) > 0
    return pd.DataFrame(X[full], columns=words[frequent].astype(str)), label[full]
