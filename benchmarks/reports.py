"""What a report costs beyond its selection: CPU seconds and megabytes, for three tables.

Bank marketing and NHANES as they come, and a table of 5,000 numbers that is made up:
``KNOCKOFFS_DATA=folder python benchmarks/reports.py bank nhanes wide``; ``bank_defaults`` and ``nhanes_defaults`` have
every option at its default.
"""

import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from knockoffs import KnockoffSelector, gaussian_features

# knockoffs of the default family; a report costs the same however its selection was found
ONE_CLASS = {
    "feature_model_options": {"n_classes": 1},
    "estimator": "lasso",
    "method": "knockoffs",
    "dependent": "drop",
}


def bank():
    """All 45,211 rows of 16 columns, most of them labels."""
    table = pd.read_csv(folder() / "bank" / "bank-full.csv.gz", sep=None, engine="python")
    return table.drop(columns="y"), table["y"], ONE_CLASS


def nhanes():
    """All adults, all columns that hold something, for their glycohaemoglobin."""
    table = pd.read_csv(folder() / "nhanes" / "nhanes_2017_2020_adults.csv.gz").drop(columns="SEQN")
    y = table.pop("LBXGH")
    there = table.columns[(table.notna().mean() > 0.5) & (table.nunique() > 1)]
    return table.loc[y.notna(), there], y.dropna(), ONE_CLASS


def bank_defaults():
    """Bank marketing with every option at its default."""
    X, y, _ = bank()
    return X, y, {}


def nhanes_defaults():
    """NHANES with every option at its default, but for columns that others determine."""
    X, y, _ = nhanes()
    return X, y, {"dependent": "drop"}


def wide():
    """2,000 rows of 5,000 numbers, of which 100 matter; their law is given."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 5000))
    y = X[:, :100].sum(axis=1) * 0.3 + rng.standard_normal(2000)
    law = gaussian_features(np.zeros(5000), np.eye(5000), diagonal="equicorrelated")
    return pd.DataFrame(X).add_prefix("x"), y, {"feature_model": law, "estimator": "lasso", "verdict": False}


def folder():
    return Path(os.environ["KNOCKOFFS_DATA"])


def main(names):
    """Print one row of a table for each."""
    titles = ("table", "rows", "columns", "selection, CPU s", "selected", "report, CPU s", "report, MB")
    print("| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|")
    for name in names:
        X, y, options = globals()[name]()
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            selector = KnockoffSelector(fdr=0.2, random_state=0, **options).fit(X, y)
            selected = time.process_time() - start
            with tempfile.TemporaryDirectory() as place:
                path = Path(place) / "report.html"
                start = time.process_time()
                selector.report(path)
                seconds, size = time.process_time() - start, path.stat().st_size / 1e6
        n = int(selector.selection_.selected.sum())
        cells = (name, f"{len(X):,}", f"{X.shape[1]:,}", f"{selected:.0f}", n, f"{seconds:.1f}", f"{size:.2f}")
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["bank", "nhanes", "wide"])
