"""A random forest for Boruta, which fits one a hundred times a table: scikit-learn's trees, on a GPU if there is one.

With scikit-learn a table takes a minute. The trees here are the same (``tests/benchmarks/test_arena_forest.py``
compares them one by one), grown by ``forest.c``: by CuPy on a GPU, or by the C compiler on the CPU.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

SOURCE = Path(__file__).with_name("forest.c")
NODES, SIDES, ROWS = 16, 4, 4096  # as in the source


class Forest(BaseEstimator):
    """Importances of a forest of trees of depth 5, as ``RandomForestClassifier`` or ``RandomForestRegressor``."""

    def __init__(self, n_estimators: int = 100, max_depth: int = 5, classes: bool = False, random_state: Any = None):
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.classes = classes
        self.random_state = random_state

    def fit(self, X: NDArray, y: NDArray) -> Forest:
        """Grow the trees on rows drawn with replacement."""
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        n, d = X.shape
        rows = rng.integers(n, size=(self.n_estimators, n)) + n * np.arange(self.n_estimators)[:, None]
        counts = np.bincount(rows.ravel(), minlength=self.n_estimators * n).reshape(self.n_estimators, n)
        tried = max(1, int(np.sqrt(d))) if self.classes else d
        found = importances(X, y, counts, self.max_depth, tried, self.classes, rng)
        own = found[found.sum(axis=1) > 0]
        mean = (own / own.sum(axis=1, keepdims=True)).mean(axis=0) if len(own) else np.zeros(d)
        self.feature_importances_ = mean / mean.sum() if mean.any() else mean
        return self


def importances(
    X: NDArray, y: NDArray, counts: NDArray, depth: int, tried: int, classes: bool, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Grow trees, each on the rows that it drew (how often each): what the cuts in every column explain."""
    xp = _array_module()
    n, d = X.shape
    trees = len(counts)
    Y = (y[:, None] == np.unique(y)).astype(float) if classes else (y - np.mean(y))[:, None].astype(float)
    if n > ROWS or Y.shape[1] > SIDES or 2 ** (depth - 1) > NODES or counts.max() > 255:
        raise ValueError(f"at most {ROWS} rows, {SIDES} classes and a depth of {1 + NODES.bit_length() - 1}")
    values = xp.ascontiguousarray(xp.asarray(X, dtype=xp.float32))
    order = xp.argsort(values, axis=0)
    sorted_values = xp.ascontiguousarray(xp.take_along_axis(values, order, axis=0))
    out = xp.zeros((trees, d))
    arrays = (
        xp.ascontiguousarray(order.astype(xp.uint16)),
        sorted_values,
        values,
        xp.ascontiguousarray(xp.asarray(Y)),
        xp.ascontiguousarray(xp.asarray(counts.astype(np.uint8))),
        xp.asarray(rng.integers(2**63, size=trees, dtype=np.uint64)),
        xp.empty((trees, NODES, d)),
        xp.empty((trees, NODES, d), dtype=xp.float32),
        out,
    )
    numbers = (n, d, Y.shape[1], tried, depth)
    if xp is np:
        grow = _compiled().grow
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
        for tree in range(trees):
            grow(*pointers, *numbers, tree)
        return out
    _kernel(xp)((trees,), (128,), (*arrays, *(np.int32(number) for number in numbers)))
    return np.asarray(xp.asnumpy(out))


@cache
def _array_module() -> Any:
    """CuPy where it finds a GPU, NumPy elsewhere."""
    try:
        import cupy  # type: ignore[import-not-found, unused-ignore]

        return cupy if cupy.cuda.runtime.getDeviceCount() else np
    except Exception:  # not there, or without a driver
        return np


@cache
def _kernel(cupy: Any) -> Any:
    return cupy.RawKernel(SOURCE.read_text(), "grow")


@cache
def _compiled() -> Any:
    """Source for the CPU, by the C compiler."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "forest.so"
        subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", "-o", library, SOURCE], check=True)
        return ctypes.CDLL(str(library))
