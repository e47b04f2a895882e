"""A made-up table as tables come: numbers, counts, grades, labels and empty cells; which columns matter is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import poisson

from knockoffs.errors import require

MATTER = (
    *("age", "smokes", "weight", "pressure", "glucose", "crp", "exercise", "sleep", "visits", "stress", "creatinine"),
    *("vitamin_d", "education", "ward"),
)
SPARE = ("sex", "height", "pulse", "cholesterol", "hdl", "triglycerides", "alcohol", "income", "region", "drugs")
SKEWED = ("weight", "glucose", "crp", "exercise", "creatinine", "vitamin_d")  # matter by their logarithms
LABS = ("glucose", "crp", "creatinine", "vitamin_d", "cholesterol", "hdl", "triglycerides", "income")


def make_patients(n: int, rng: Generator, *, missing: float = 0.08) -> tuple[Any, NDArray]:
    """Table of n made-up patients, a pandas data frame, and the days until they recovered.

    The columns are monotone functions of correlated normal numbers, as the latent model of the features has it. The
    days depend on the columns ``MATTER``, as they were before cells went missing, and on no other.

    Parameters
    ----------
    missing : float
        Share of the cells of ``LABS`` that are empty, completely at random.

    Returns
    -------
    X : pandas.DataFrame, shape (n, 24)
    y : array, shape (n,)
    """
    require("pandas", "simulated patients")
    import pandas as pd

    names = sorted((*MATTER, *SPARE))
    factors = rng.normal(size=(n, 3)) @ rng.normal(scale=0.6, size=(3, len(names)))  # what the columns have in common
    L = factors + rng.normal(size=factors.shape)
    latent = dict(zip(names, (L / L.std(axis=0)).T, strict=True))

    def steps(name: str, labels: list[Any], shares: list[float]) -> NDArray:
        """Labels in the order of the latent number, with these shares."""
        return np.asarray(labels, dtype=object)[np.searchsorted(np.cumsum(shares)[:-1], ndtr(latent[name]))]

    def number(name: str, centre: float, spread: float, digits: int = 1) -> NDArray:
        return np.round(centre + spread * latent[name], digits)

    def skewed(name: str, typical: float, spread: float = 0.6) -> NDArray:
        return np.round(typical * np.exp(spread * latent[name]), 2)

    def count(name: str, mean: float) -> NDArray:
        return poisson.ppf(ndtr(latent[name]), mean).astype(int)

    columns = {
        "age": np.clip(number("age", 55, 14, 0), 18, 95).astype(int),
        "sex": steps("sex", ["female", "male"], [0.5, 0.5]),
        "height": number("height", 171, 9, 0),
        "weight": skewed("weight", 76, 0.18),
        "smokes": pd.Categorical(
            steps("smokes", ["never", "former", "now"], [0.5, 0.3, 0.2]), ["never", "former", "now"], ordered=True
        ),
        "alcohol": pd.Categorical(
            steps("alcohol", ["none", "some", "much"], [0.3, 0.5, 0.2]), ["none", "some", "much"], ordered=True
        ),
        "region": steps("region", ["north", "south", "east", "west"], [0.25] * 4),
        "education": steps("education", [1, 2, 3, 4, 5], [0.1, 0.2, 0.3, 0.25, 0.15]).astype(int),
        "stress": steps("stress", [1, 2, 3, 4, 5], [0.2] * 5).astype(int),
        "ward": steps("ward", [False, True], [0.6, 0.4]).astype(bool),
        "visits": count("visits", 2.0),
        "drugs": count("drugs", 1.2),
        "income": skewed("income", 31000),
        "exercise": skewed("exercise", 2.5, 0.8),
        "sleep": number("sleep", 7, 1.1),
        "pulse": number("pulse", 71, 9, 0),
        "pressure": number("pressure", 131, 15, 0),
        "cholesterol": number("cholesterol", 5.2, 1.0, 2),
        "hdl": skewed("hdl", 1.3, 0.25),
        "triglycerides": skewed("triglycerides", 1.4, 0.5),
        "glucose": skewed("glucose", 5.4, 0.2),
        "creatinine": skewed("creatinine", 78, 0.25),
        "crp": skewed("crp", 2.0, 1.0),
        "vitamin_d": skewed("vitamin_d", 52, 0.4),
    }
    X = pd.DataFrame(columns)
    effects = [1.5 * (-1) ** k * _score(X[name]) for k, name in enumerate(MATTER)]
    days = 40 + np.sum(effects, axis=0) + 3 * rng.normal(size=n)
    for name in LABS:
        X.loc[rng.random(n) < missing, name] = np.nan
    return X, np.round(days, 1)


def _score(column: Any) -> NDArray:
    """Column as a number with mean 0 and variance 1: codes of labels, logarithms of skewed columns."""
    coded = column.cat.codes if column.dtype == "category" else column
    values = np.log(coded) if column.name in SKEWED else np.asarray(coded, dtype=float)
    return np.asarray((values - values.mean()) / values.std())
