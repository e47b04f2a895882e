"""Simulation: features, labels and the truth about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Simulation:
    """A table whose non-null features are known.

    Attributes
    ----------
    X : array, shape (n, d)
    y : array, shape (n,)
    non_nulls : array of bool, shape (d,)
        True for the features y depends on given the others.
    parameters : object
        What X was drawn from (a ``MixtureParameters``), or None for features that were given.
    """

    X: NDArray
    y: NDArray
    non_nulls: NDArray[np.bool_]
    parameters: Any = None
