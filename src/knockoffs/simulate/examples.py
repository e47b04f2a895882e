"""Example tables: one of simulated patients, and two real ones that scikit-learn brings along."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Columns = dict[str, NDArray]


@dataclass(frozen=True)
class Example:
    """An example table.

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
    make: Callable[[], Columns]


def patients() -> Columns:
    """Table of the README: 1,000 simulated patients, labels as text, which is all that a csv file can hold."""
    from knockoffs.simulate.patients import make_patients

    X, y = make_patients(1000, np.random.default_rng(0))
    columns = {name: X[name].astype(object) if X[name].dtype == "category" else X[name] for name in X.columns}
    return {**{name: np.asarray(values) for name, values in columns.items()}, "days": y}


def diabetes() -> Columns:
    """Diabetes data of scikit-learn: ten columns under their names, and the target."""
    from sklearn.datasets import load_diabetes

    data = load_diabetes(scaled=False)
    blood = ("cholesterol", "ldl", "hdl", "cholesterol / hdl", "log triglycerides", "glucose")  # s1 to s6 there
    names = (*(str(name) for name in data.feature_names[:4]), *blood)
    return {**dict(zip(names, data.data.T, strict=True)), "progression": data.target}


def wine() -> Columns:
    """Wine data of scikit-learn: thirteen measurements, and the cultivar as text."""
    from sklearn.datasets import load_wine

    data = load_wine()
    columns = {str(name).replace("_", " "): x for name, x in zip(data.feature_names, data.data.T, strict=True)}
    cultivars = np.array([f"cultivar {k + 1}" for k in data.target], dtype=object)
    return {**columns, "cultivar": cultivars}


EXAMPLES = {
    "diabetes": Example(
        "diabetes.csv", "progression", "442 patients, ten measurements, progression of diabetes after a year.", diabetes
    ),
    "wine": Example("wine.csv", "cultivar", "178 wines of three cultivars, thirteen chemical measurements.", wine),
    "patients": Example(
        "patients.csv",
        "days",
        "1,000 simulated patients: numbers, counts, grades, labels and empty cells; 14 of 24 columns matter.",
        patients,
    ),
}
