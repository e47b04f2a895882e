"""Tables to try, which come with the package and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import polars as pl


@dataclass(frozen=True)
class Example:
    """A table to try.

    Parameters
    ----------
    file : str
        Its name.
    target : str
        Column to be explained.
    about : str
        One sentence.
    make : callable
        () -> columns by name.
    """

    file: str
    target: str
    about: str
    make: Callable[[], pl.DataFrame]


def _patients() -> pl.DataFrame:
    """Table of the README, as a csv file has it."""
    from knockoffs.simulate.patients import make_patients

    X, y = make_patients(1000, np.random.default_rng(0))
    columns = {name: X[name].astype(object) if X[name].dtype == "category" else X[name] for name in X.columns}
    return pl.DataFrame({**{name: np.asarray(values) for name, values in columns.items()}, "days": y})


def diabetes() -> pl.DataFrame:
    """Ten columns of the diabetes data that scikit-learn brings along, by their names, and the target."""
    from sklearn.datasets import load_diabetes

    data = load_diabetes(scaled=False)
    blood = ("cholesterol", "ldl", "hdl", "cholesterol / hdl", "log triglycerides", "glucose")  # s1 to s6 there
    names = (*(str(name) for name in data.feature_names[:4]), *blood)
    return pl.DataFrame({**dict(zip(names, data.data.T, strict=True)), "progression": data.target})


def _tumours() -> pl.DataFrame:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    columns = dict(zip(map(str, data.feature_names), data.data.T, strict=True))
    return pl.DataFrame({**columns, "diagnosis": np.asarray(data.target_names)[data.target].astype(object)})


EXAMPLES = {
    "patients": Example(
        "patients.csv",
        "days",
        "1,000 made-up patients: numbers, counts, grades, labels and empty cells; 14 of 24 columns matter.",
        _patients,
    ),
    "diabetes": Example(
        "diabetes.csv", "progression", "442 patients, ten measurements, the course of diabetes one year on.", diabetes
    ),
    "tumours": Example(
        "tumours.csv", "diagnosis", "569 breast tumours, thirty measurements that overlap, malign or benign.", _tumours
    ),
}


def examples() -> list[dict[str, str]]:
    """Tables to try that can be made here."""
    here = [key for key in EXAMPLES if key != "patients" or find_spec("pandas") is not None]
    return [{"key": key, "file": EXAMPLES[key].file, "about": EXAMPLES[key].about} for key in here]
