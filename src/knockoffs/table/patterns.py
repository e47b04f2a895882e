"""Which columns say the same: in other units, on another scale, under other labels."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

FEWEST_ORDERED = 20  # different values of a number; of fewer, two columns may have one order by chance
FINE = 10**9  # steps of the range of a number, within which few values are compared


def pattern_of(x: NDArray[np.float64], *, ordered: bool) -> bytes:
    """Key that two columns share where each determines the other.

    Parameters
    ----------
    x : array, shape (n,)
        NaN where a cell is missing: it is missing in both.
    ordered : bool
        Numbers are the same in the same or the reverse order, and few of them in other units. What is not ordered,
        labels and steps, is the same in any order.

    >>> pattern_of(np.arange(30.0), ordered=True) == pattern_of(-np.exp(np.arange(30.0)), ordered=True)
    True
    >>> pattern_of(np.array([0.0, 1, 2, 1]), ordered=False) == pattern_of(np.array([5.0, 7, 3, 7]), ordered=False)
    True
    """
    known = ~np.isnan(x)
    codes = np.full(len(x), -1, dtype=np.int64)
    if ordered:
        values, place = np.unique(x[known], return_inverse=True)  # where each comes first asks for a slower sort
        last = len(values) - 1
        if 0 < last < FEWEST_ORDERED - 1:
            place, last = np.rint(FINE * ((values - values[0]) / (values[-1] - values[0])))[place].astype(int), FINE
        height = 2 * place - last  # above the middle
        up = height[np.argmax(height != 0)] > 0 if len(height) else True  # of the first cell that is not in it
        codes[known] = place if up else last - place
    else:
        _, first, place = np.unique(x[known], return_index=True, return_inverse=True)
        codes[known] = np.argsort(np.argsort(first))[place]  # numbered as they come
    return blake2b(codes.tobytes(), person=b"order" if ordered else b"steps").digest()
