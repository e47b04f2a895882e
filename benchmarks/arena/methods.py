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

    asked = {"fdr": min(levels), "random_state": seed, "method": "knockoffs", "verdict": False, "kinds": data.kinds}
    asked |= options  # W is read
    fitted = KnockoffSelector(**asked).fit(frame(data), data.y)
    if not options:
        _drawn[:] = [(data, seed, fitted.knockoffs_)]
    found = [knockoff_filter(fitted.W_, q) for q in levels]
    if not hasattr(data.X, "columns"):
        return found
    kept = np.isin(data.X.columns, fitted.selection_.feature_names)  # columns that say nothing new are left out
    wide = np.zeros((len(found), len(kept)), dtype=bool)
    wide[:, kept] = found
    return list(wide)


def as_it_comes(data: Data, levels: Sequence[float], seed: int) -> Selections:
    """Select by ``KnockoffSelector`` with nothing said, verdict included: by tests where columns are few."""
    from knockoffs import KnockoffSelector

    return [
        KnockoffSelector(fdr=q, kinds=data.kinds, random_state=seed).fit(frame(data), data.y).get_support()
        for q in levels
    ]


_drawn: list[tuple[Data, int, Any]] = []  # the knockoffs of the last table that the defaults were called on


def model_of_y(data: Data, levels: Sequence[float], seed: int, estimator: str) -> Selections:
    """Select with one model of y; on the knockoffs of the defaults if those were called just before on this table.

    They are the same knockoffs in either case: a seed gives P^X and the draw streams of their own.
    """
    import pandas as pd

    complete = not pd.isna(data.X).any(axis=None)  # knockoffs that are given go with complete tables
    kept = [drawn for table, own, drawn in _drawn if complete and table is data and own == seed]
    return selector(data, levels, seed, estimator=estimator, **({"knockoffs": kept[0]} if kept else {}))


def oracle(data: Data, levels: Sequence[float], seed: int, **options: Any) -> Selections:
    """Select with knockoffs of the law that the table was drawn from, and the default model of y."""
    rng = np.random.default_rng(seed)
    known = data.exact(rng) if data.exact else {"knockoffs": draw_exact(data.features, data.X, rng)}
    return selector(data, levels, seed, **known, **options)


def naive(data: Data, levels: Sequence[float], seed: int) -> Selections:
    """Select with one Gaussian and the lasso: missing cells at their mean, an indicator for each label but one."""
    import pandas as pd

    table = pd.DataFrame(frame(data))
    numeric = pd.api.types.is_numeric_dtype
    parts = [x.to_frame() if numeric(x) else pd.get_dummies(x, drop_first=True, dtype=float) for _, x in table.items()]
    owners = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
    X = np.hstack([part.fillna(part.mean()).to_numpy(float) for part in parts])
    plain = Data(X, data.y, data.non_nulls, classes=data.classes)
    groups = owners if len(owners) > len(parts) else None
    return selector(plain, levels, seed, feature_model="gaussian", estimator="lasso", groups=groups)


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
    "oracle_lasso": partial(oracle, estimator="lasso"),
    "naive": naive,
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


def able(name: str, data: Data) -> bool:
    """Whether a method takes a table: the oracle those whose knockoffs are known."""
    return not name.startswith("oracle") or data.exact is not None or data.features in CORRELATIONS


def call(name: str, data: Data, levels: Sequence[float], seed: int) -> Selections:
    """Run a method, its warnings unheard."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [np.asarray(chosen, dtype=bool) for chosen in find(name)(data, levels, seed)]
