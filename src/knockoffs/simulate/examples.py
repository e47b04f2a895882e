"""Example tables: houses and patients that are made up, so that the answer is known, and one of scikit-learn's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Columns = dict[str, NDArray]


@dataclass(frozen=True)
class Example:
    """An example table."""

    file: str  # its name
    target: str  # column to be explained
    about: str  # one sentence
    make: Callable[[], Columns]  # () -> columns by name


PRICED_BY = ("area", "garden", "built", "condition", "km to centre")  # columns that the price of a house depends on


def houses(n: int = 500, seed: int = 0) -> Columns:
    """Table of made-up houses; the price depends on ``PRICED_BY`` and chance, the others go with these."""
    rng = np.random.default_rng(seed)
    size, place, care = rng.standard_normal((3, n))

    def chance(scale: float) -> NDArray:
        return scale * rng.standard_normal(n)

    area = np.round(110 * np.exp(0.3 * size)).astype(int)
    built = np.round(1975 + 14 * care + chance(14)).clip(1880, 2024).astype(int)
    centre = np.round(9 * np.exp(-0.5 * place + chance(0.3)), 1)
    fuels = np.array(["oil", "gas", "heat pump"], dtype=object)
    columns = {
        "area": area,
        "area by agent": np.round(area * np.exp(chance(0.04))).astype(int),
        "rooms": np.round(1 + area / 28 + chance(0.7)).clip(1).astype(int),
        "bathrooms": np.round(area / 90 + chance(0.4)).clip(1).astype(int),
        "garden": np.round(300 * np.exp(0.3 * size - 0.2 * place + chance(0.5))).astype(int),
        "built": built,
        "condition": np.digitize(care + chance(0.8), [-1.5, -0.5, 0.5, 1.5]) + 1,
        "heating": fuels[np.digitize((built - 1975) / 20 + chance(0.8), [-0.5, 0.8])],
        "km to centre": centre,
        "minutes by bus": np.round(8 + 2.5 * centre + chance(4)).clip(3).astype(int),
        "km to school": np.round(0.5 + 0.2 * centre * np.exp(chance(0.4)), 1),
        "income nearby": np.round(38 * np.exp(0.2 * place + chance(0.15)), 1),
        "floor": rng.integers(0, 5, n),
    }
    worth = 1.1 * np.log(area) + 0.12 * np.log(columns["garden"]) + 0.004 * (built - 1975)
    worth += 0.07 * columns["condition"] - 0.22 * np.log(centre) + chance(0.12)
    return {**columns, "price": np.round(3.2 * np.exp(worth)).astype(int)}


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


EXAMPLES = {
    "houses": Example(
        "houses.csv",
        "price",
        "500 made-up houses. The price depends on area, garden, built, condition and km to centre; the other eight "
        "columns are only correlated with these.",
        houses,
    ),
    "diabetes": Example(
        "diabetes.csv", "progression", "442 patients, ten measurements, progression of diabetes after a year.", diabetes
    ),
    "patients": Example(
        "patients.csv",
        "days",
        "1,000 made-up patients: numbers, counts, grades, labels and empty cells; 14 of 24 columns matter.",
        patients,
    ),
}
