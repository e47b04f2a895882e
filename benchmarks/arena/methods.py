"""Who competes, each as its documentation calls it: a function of a table and levels to the columns it selects.

Our own package with its defaults, or with options: ``selector:estimator=forest,importance=swap``. Peers are imported
when they are called, from wherever the path finds them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.arena.designs import Data
from benchmarks.arena.oracle import CORRELATIONS, draw_exact

Selections = list[NDArray[np.bool_]]  # one for each level
Method = Callable[[Data, Sequence[float], int], Selections]
LABELS = np.array(["blue", "green", "red"])


def selector(data: Data, levels: Sequence[float], seed: int, **options: Any) -> Selections:
    """Select by ``KnockoffSelector``, without the verdict, which changes no selection; nominal columns as labels."""
    from knockoffs import KnockoffSelector
    from knockoffs.filter import knockoff_filter

    asked = {"fdr": min(levels), "random_state": seed, "method": "knockoffs", "verdict": False} | options  # W is read
    fitted = KnockoffSelector(**asked).fit(frame(data), data.y)
    if not options:
        _drawn[:] = [(data, seed, fitted.knockoffs_)]
    return [knockoff_filter(fitted.W_, q) for q in levels]


def as_it_comes(data: Data, levels: Sequence[float], seed: int) -> Selections:
    """Select by ``KnockoffSelector`` with nothing said, verdict included: by tests where columns are few."""
    from knockoffs import KnockoffSelector

    return [KnockoffSelector(fdr=q, random_state=seed).fit(frame(data), data.y).get_support() for q in levels]


_drawn: list[tuple[Data, int, Any]] = []  # the knockoffs of the last table that the defaults were called on


def model_of_y(data: Data, levels: Sequence[float], seed: int, estimator: str) -> Selections:
    """Select with one model of y; on the knockoffs of the defaults if those were called just before on this table.

    They are the same knockoffs in either case: a seed gives P^X and the draw streams of their own.
    """
    kept = [knockoffs for table, own, knockoffs in _drawn if table is data and own == seed]
    return selector(data, levels, seed, estimator=estimator, **({"knockoffs": kept[0]} if kept else {}))


def oracle(data: Data, levels: Sequence[float], seed: int) -> Selections:
    """Select with knockoffs of the law that the table was drawn from, and the default model of y."""
    return selector(data, levels, seed, knockoffs=draw_exact(data.features, data.X, np.random.default_rng(seed)))


def frame(data: Data) -> Any:
    """Table as a user would hold it: the array, or a data frame where there are labels."""
    if not data.nominal:
        return data.X
    import pandas as pd

    columns = {f"x{j}": LABELS[x.astype(int)] if j in data.nominal else x for j, x in enumerate(np.asarray(data.X).T)}
    return pd.DataFrame(columns)


def knockpy(data: Data, levels: Sequence[float], seed: int) -> Selections:
    """Gaussian knockoffs by MVR, cross-validated lasso: the defaults of knockpy."""
    from knockpy.knockoff_filter import KnockoffFilter

    np.random.seed(seed)  # noqa: NPY002  knockpy draws from the global state
    fitted = KnockoffFilter()
    fitted.forward(X=data.X, y=data.y.astype(float), fdr=min(levels))
    return [fitted.make_selections(fitted.W, q) > 0 for q in levels]


def hidimstat(data: Data, levels: Sequence[float], seed: int) -> Selections:
    """Equicorrelated Gaussian knockoffs and LassoCV: the defaults of hidimstat."""
    from hidimstat.knockoffs import ModelXKnockoff

    fitted = ModelXKnockoff(random_state=seed)
    fitted.fit_importance(data.X, data.y.astype(float))
    return [np.asarray(fitted.fdr_selection(q)) > 0 for q in levels]


def boruta(data: Data, levels: Sequence[float], seed: int, grown: bool = False) -> Selections:
    """Boruta around a forest of depth 5, as its documentation has it; it takes no level.

    Grown: the same trees by ``forest.py``, which on a GPU takes a second where scikit-learn takes a minute.
    """
    from boruta import BorutaPy
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    from benchmarks.arena.forest import Forest

    theirs = RandomForestClassifier if data.classes else RandomForestRegressor
    forest = Forest(max_depth=5, classes=data.classes) if grown else theirs(max_depth=5, n_jobs=1)
    fitted = BorutaPy(forest, n_estimators="auto", random_state=seed)
    fitted.fit(data.X, data.y)
    return [np.asarray(fitted.support_, dtype=bool)] * len(levels)


def trex(data: Data, levels: Sequence[float], seed: int) -> Selections:
    """T-Rex selector with its defaults, once for every level."""
    from trexselector import trex as select

    d = data.X.shape[1]
    found = [select(data.X, data.y.astype(float), tFDR=q, seed=seed, verbose=False) for q in levels]
    return [np.isin(np.arange(d), np.asarray(one["selected_var"], dtype=int)) for one in found]


METHODS: dict[str, Method] = {
    "default": selector,
    "as_it_comes": as_it_comes,
    "lasso": partial(model_of_y, estimator="lasso"),
    "boosting": partial(model_of_y, estimator="boosting"),
    "oracle": oracle,
    "forest": partial(selector, estimator="forest"),
    "gaussian": partial(selector, feature_model="gaussian"),
    "gaussian_lasso": partial(selector, feature_model="gaussian", estimator="lasso"),
    "knockpy": knockpy,
    "hidimstat": hidimstat,
    "boruta": boruta,
    "boruta_grown": partial(boruta, grown=True),
    "trex": trex,
}
PEERS = ("knockpy", "hidimstat", "boruta", "trex")


def find(name: str) -> Method:
    """Find a method by its name, or the selector with the options after a colon.

    >>> find("selector:estimator=lasso,n_draws=3").keywords
    {'estimator': 'lasso', 'n_draws': 3}
    """
    if not name.startswith("selector:"):
        return METHODS[name]
    pairs = (part.split("=", 1) for part in name.removeprefix("selector:").split(",") if part)
    return partial(selector, **{key: _value(text) for key, text in pairs})


def _value(text: str) -> Any:
    named = {"True": True, "False": False, "None": None}
    if text in named:
        return named[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def able(name: str, features: str) -> bool:
    """Whether a method takes tables of a law of features: the oracle those whose knockoffs are known."""
    return name != "oracle" or features in CORRELATIONS


def call(name: str, data: Data, levels: Sequence[float], seed: int) -> Selections:
    """Run a method, its warnings unheard."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [np.asarray(chosen, dtype=bool) for chosen in find(name)(data, levels, seed)]
