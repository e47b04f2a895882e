"""HIV-1 drug resistance (Rhee et al., 2006), mutations of the virus and resistance to a drug."""

from __future__ import annotations

import os
import re

import numpy as np

from knockoffs.datasets.dataset import DataSet
from knockoffs.datasets.files import Columns, as_arrays, as_numbers, content_sha256, fetch_bytes, parse_csv, read_table
from knockoffs.errors import InputError, unknown_option

URL = "https://hivdb.stanford.edu/pages/published_analysis/genophenoPNAS2006/DATA/{}_DATA.txt"
CONTENT = {
    "PI": "d194606356a0017fd36eddff84a6032b4b0138572776951e1bd5be0ef0bdd6f5",
    "NRTI": "dca1c761bcdc73a280913fe89d278818583e8c86f452ea33f771569aa143c57a",
}
DRUGS = {
    "PI": ("APV", "ATV", "IDV", "LPV", "NFV", "RTV", "SQV"),
    "NRTI": ("3TC", "ABC", "AZT", "D4T", "DDI", "TDF"),
}
# positions of the treatment-selected mutation panels (Rhee et al., 2005): the proxy truth of the knockoff papers
TSM_POSITIONS = {
    "PI": (
        10,
        11,
        20,
        23,
        24,
        30,
        32,
        33,
        34,
        35,
        43,
        46,
        47,
        48,
        50,
        53,
        54,
        55,
        58,
        66,
        67,
        71,
        73,
        74,
        76,
        79,
        82,
        84,
        85,
        88,
        89,
        90,
        92,
        95,
    ),
    "NRTI": (
        41,
        43,
        44,
        62,
        65,
        67,
        69,
        70,
        74,
        75,
        77,
        98,
        115,
        116,
        151,
        184,
        203,
        208,
        210,
        215,
        218,
        219,
        223,
        228,
    ),
}


def load_hiv(
    drug: str = "APV",
    *,
    min_count: int = 3,
    data_folder: str | os.PathLike[str] | None = None,
    download: bool = False,
) -> DataSet:
    """Mutations of HIV-1 isolates (0/1 columns) and the log fold resistance to one drug.

    Isolates not tested with the drug are dropped, then mutations seen fewer than ``min_count`` times, then
    columns equal to an earlier one.

    Parameters
    ----------
    drug : str
        A protease inhibitor (APV, ATV, IDV, LPV, NFV, RTV, SQV) or a nucleoside RT inhibitor (3TC, ABC, AZT, D4T,
        DDI, TDF).
    min_count : int
    data_folder : path, optional
        Folder that holds ``hiv/``; None takes the environment variable KNOCKOFFS_DATA.
    download : bool
        Whether the table may be fetched from the Stanford HIV Drug Resistance Database when it is not there.
    """
    known = {name: group for group, names in DRUGS.items() for name in names}
    if drug not in known:
        raise unknown_option("drug", drug, known)
    group = known[drug]
    columns = read_table(
        f"hiv/{group}.csv.gz",
        data_folder=data_folder,
        download=download,
        fetch=lambda: _fetch(group),
        source=URL.format(group),
    )
    names = [name for name in columns if name not in DRUGS[group]]
    fold, X = as_numbers(columns, [drug])[:, 0], as_numbers(columns, names)
    tested = ~np.isnan(fold)
    X = X[tested]
    often = np.flatnonzero(X.sum(axis=0) >= min_count)
    _, first = np.unique(X[:, often], axis=1, return_index=True)
    kept = often[np.sort(first)]
    notes = (
        f"{int((~tested).sum())} isolates not tested with {drug} were dropped.",
        f"{len(names) - len(often)} mutations seen fewer than {min_count} times were dropped.",
        f"{len(often) - len(kept)} columns equal to an earlier one were dropped.",
    )
    features = tuple(names[j] for j in kept)
    return DataSet(f"hiv ({drug})", X[:, kept], np.log(fold[tested]), features, notes, as_arrays(columns))


def treatment_selected(data: DataSet) -> np.ndarray:
    """Which features of an HIV data set lie at a position of its class's treatment-selected panel, shape (d,).

    The class of the drug is read from the data: a position counts in the protease for a protease inhibitor, in the
    reverse transcriptase for a nucleoside RT inhibitor.
    """
    return np.isin(positions_of(data), TSM_POSITIONS[drug_class(data)])


def drug_class(data: DataSet) -> str:
    """PI or NRTI: whose drugs the source of the data holds."""
    found = [group for group, drugs in DRUGS.items() if set(drugs) <= set(data.columns)]
    if len(found) != 1:
        raise InputError(f"{data.name!r} is not an HIV data set: use the answer of load_hiv, with its columns.")
    return found[0]


def positions_of(data: DataSet) -> np.ndarray:
    """Position of each feature's mutation in the enzyme, shape (d,)."""
    return np.array([int(name[1:].partition(".")[0]) for name in data.feature_names])


def _fetch(group: str) -> Columns:
    columns = mutation_table(fetch_bytes(URL.format(group)).decode("latin-1"), DRUGS[group])
    got = content_sha256(columns)
    if got != CONTENT[group]:
        raise InputError(f"{group}_DATA.txt has content sha256 {got}, expected {CONTENT[group]}: the source changed.")
    return columns


def mutation_table(text: str, drugs: tuple[str, ...]) -> Columns:
    r"""0/1 columns ``P<position>.<amino acid>`` from the database's text, one column a position.

    A cell is "-" (as the reference), "." (not sequenced) or the letters seen there; rows with anything else are
    flagged as faulty there and dropped.

    >>> mutation_table("SeqID\tAPV\tP1\tP2\n7\t2.5\t-\tAV\n8\tNA\tK\t*\n9\tNA\t.\tA\n", ("APV",))
    {'APV': ['2.5', ''], 'P2.A': ['1', '1'], 'P2.V': ['1', '0']}
    """
    source = parse_csv(text, delimiter="\t")
    positions = [name for name in source if re.fullmatch(r"P\d+", name)]
    valid = [
        i
        for i, cells in enumerate(zip(*(source[name] for name in positions), strict=True))
        if all(re.fullmatch(r"\.|-|[A-Zid]+", cell) for cell in cells)
    ]
    table = {drug: ["" if source[drug][i] == "NA" else source[drug][i] for i in valid] for drug in drugs}
    for letter in [*map(chr, range(ord("A"), ord("Z") + 1)), "i", "d"]:
        for name in positions:
            cells = ["1" if letter in source[name][i] else "0" for i in valid]
            if "1" in cells:
                table[f"{name}.{letter}"] = cells
    return table
