"""How boosted trees grow: values in bins, sums of a node's rows in every bin, and the cut that gains the most.

As in scikit-learn's histogram gradient boosting, to the order of its sums: columns that cut rows alike differ in the
last bits, and these decide which is cut.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knockoffs.machine.compiled import njit

AT_ONCE = 2**18  # cells that are sorted at a time
LEAST_CURVATURE = 1e-3  # of a leaf
SQUARED, POISSON, LOG_LOSS = 0, 1, 2


def into_bins(XX: NDArray, most: int) -> tuple[NDArray, NDArray[np.int64], NDArray[np.uint8]]:
    """Upper ends of the bins of each column, how many bins it has, and the bin of each cell, shape (n_columns, n).

    Bins are the values themselves where a column has no more than ``most``, and else quantiles: the inverse of the
    empirical distribution function, averaged at its steps.
    """
    n, n_columns = XX.shape
    place = n * (np.linspace(0, 100, num=most + 1)[1:-1] / 100) - 1
    low = np.floor(place).astype(np.int64)
    at_step, width = np.where(place == low, 0.5, 1.0), 1 << (most - 1).bit_length()
    ends, n_bins = np.full((n_columns, width), np.inf), np.ones(n_columns, dtype=np.int64)
    cells = np.empty((n_columns, n), dtype=np.uint8)
    for start in range(0, n_columns, some := max(1, AT_ONCE // n)):
        part = slice(start, start + some)
        V = np.ascontiguousarray(XX[:, part].T, dtype=float)
        _end(np.sort(V, axis=1), low, at_step, ends[part], n_bins[part])
        _bin(V, ends[part], cells[part])
    return ends, n_bins, cells


@njit(cache=True, nogil=True)
def _end(ordered: NDArray, low: NDArray[np.int64], at_step: NDArray, ends: NDArray, n_bins: NDArray[np.int64]) -> None:
    """Upper ends of the bins, where the last and what is left over stay infinite, and how many bins there are."""
    (n_columns, n), most = ordered.shape, len(low) + 1
    for j in range(n_columns):
        v, count = ordered[j], 1
        for i in range(1, n):
            if v[i] > v[i - 1]:
                if count < most:
                    ends[j, count - 1] = (v[i - 1] + v[i]) / 2
                count += 1
                if count > most:
                    break
        if count > most:
            count = 1
            ends[j] = np.inf
            for at in range(most - 1):
                under, over = v[max(low[at], 0)], v[min(low[at] + 1, n - 1)]
                end = over - (over - under) * (1 - at_step[at])
                if count == 1 or end > ends[j, count - 2]:
                    ends[j, count - 1] = end
                    count += 1
        n_bins[j] = count


@njit(cache=True, nogil=True)
def _bin(V: NDArray, ends: NDArray, cells: NDArray[np.uint8]) -> None:
    """Bin of every value: the first whose upper end is not below it, by halving."""
    for j in range(V.shape[0]):
        of_column = ends[j]
        for i in range(V.shape[1]):
            v, at, half = V[j, i], 0, len(of_column) // 2
            while half > 0:
                at += half if v > of_column[at + half - 1] else 0
                half //= 2
            cells[j, i] = at


@njit(cache=True, nogil=True)
def boost(
    codes: NDArray[np.uint8],
    n_bins: NDArray[np.int64],
    Y: NDArray,
    total: NDArray,
    loss: int,
    n_stages: int,
    n_leaves: int,
    fewest: int,
    ridge: float,
    rate: float,
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray, NDArray[np.int64]]:
    """Grow the trees of all stages, one for each output: columns, bins, left children, values, numbers of nodes.

    Rows of a node are a stretch of ``rows``. The numbers of rows, sums of gradients and of curvatures of every bin are
    in a slot, which its larger child takes over, less what the smaller one has. The right child follows the left one.
    """
    n_columns, n = codes.shape
    n_outputs, widest, constant = Y.shape[1], n_bins.max(), loss == SQUARED
    n_trees, most_nodes = n_stages * n_outputs, 2 * n_leaves - 1
    column = np.full((n_trees, most_nodes), -1, dtype=np.int32)
    bin_of = np.zeros((n_trees, most_nodes), dtype=np.int64)
    child = np.zeros((n_trees, most_nodes), dtype=np.int64)
    value = np.zeros((n_trees, most_nodes))
    n_nodes = np.ones(n_trees, dtype=np.int64)
    g, h = np.empty((n_outputs, n), dtype=np.float32), np.ones((n_outputs, n), dtype=np.float32)
    sums = np.empty((n_leaves, 2 if constant else 3, n_columns, widest))  # rows, gradients, curvatures
    rows, others = np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.uint32)
    start, stop = np.empty(most_nodes, dtype=np.int64), np.empty(most_nodes, dtype=np.int64)
    sum_g, sum_h = np.empty(most_nodes), np.empty(most_nodes)
    slot, gain = np.empty(most_nodes, dtype=np.int64), np.empty(most_nodes)
    left_g, left_h = np.empty(most_nodes), np.empty(most_nodes)
    for tree in range(n_trees):
        k = tree % n_outputs
        if k == 0:
            _slopes(loss, Y, total, g, h)
        for i in range(n):
            rows[i] = i
        start[0], stop[0], slot[0], gain[0] = 0, n, 0, -1.0
        _fill(codes, n_bins, g[k], h[k], rows, sums[0], constant)
        sum_g[0] = sums[0, 1, 0, : n_bins[0]].sum()
        sum_h[0] = sums[0, 0 if constant else 2, 0, : n_bins[0]].sum()
        if n >= 2 * fewest:
            gain[0], column[tree, 0], bin_of[tree, 0], left_g[0], left_h[0] = _best(
                sums[0], n_bins, n, sum_g[0], sum_h[0], 0.0, fewest, ridge
            )
        ends = 1
        while ends < n_leaves:
            node = int(gain[: n_nodes[tree]].argmax())
            if gain[node] <= 0:
                break
            gain[node] = -1.0
            left = n_nodes[tree]
            right = left + 1
            n_nodes[tree] += 2
            ends += 1
            child[tree, node] = left
            at = start[node] + _part(
                rows[start[node] : stop[node]], others, codes[column[tree, node]], bin_of[tree, node]
            )
            start[left], stop[left], start[right], stop[right] = start[node], at, at, stop[node]
            sum_g[left], sum_h[left] = left_g[node], left_h[node]
            sum_g[right], sum_h[right] = sum_g[node] - left_g[node], sum_h[node] - left_h[node]
            gain[left] = gain[right] = -1.0
            for one in (left, right):
                value[tree, one] = -sum_g[one] / (sum_h[one] + ridge + 1e-15)
            n_left, n_right = at - start[node], stop[node] - at
            if ends == n_leaves or (n_left < 2 * fewest and n_right < 2 * fewest):
                continue
            small, large = (left, right) if n_left < n_right else (right, left)
            slot[large], slot[small] = slot[node], ends - 1
            of_large, of_small = sums[slot[large]], sums[slot[small]]
            _fill(codes, n_bins, g[k], h[k], rows[start[small] : stop[small]], of_small, constant)
            for what in range(len(of_large)):
                for j in range(n_columns):
                    for at_bin in range(n_bins[j]):
                        of_large[what, j, at_bin] -= of_small[what, j, at_bin]
            for one in (left, right):
                n_one = stop[one] - start[one]
                if n_one >= 2 * fewest:
                    gain[one], column[tree, one], bin_of[tree, one], left_g[one], left_h[one] = _best(
                        sums[slot[one]], n_bins, n_one, sum_g[one], sum_h[one], value[tree, one], fewest, ridge
                    )
        for node in range(n_nodes[tree]):
            if child[tree, node]:
                continue
            column[tree, node] = -1
            value[tree, node] *= rate
            for place in range(start[node], stop[node]):
                total[rows[place], k] += value[tree, node]
    return column, bin_of, child, value, n_nodes


@njit(cache=True, nogil=True)
def _part(rows: NDArray[np.uint32], others: NDArray[np.uint32], cells: NDArray[np.uint8], last: int) -> int:
    """Put the rows of the left side first, in their order, and count them."""
    n_left = n_right = 0
    for row in rows:
        if cells[row] <= last:
            rows[n_left] = row
            n_left += 1
        else:
            others[n_right] = row
            n_right += 1
    rows[n_left:] = others[:n_right]
    return n_left


@njit(cache=True, nogil=True)
def _slopes(loss: int, Y: NDArray, total: NDArray, g: NDArray, h: NDArray) -> None:
    """First and second derivatives of the loss, in single precision, shape (n_outputs, n)."""
    n, n_outputs = Y.shape
    if loss == SQUARED:
        for i in range(n):
            g[0, i] = total[i, 0] - Y[i, 0]
    elif loss == POISSON:
        for i in range(n):
            mean = np.exp(total[i, 0])
            g[0, i], h[0, i] = mean - Y[i, 0], mean
    elif n_outputs == 1:
        for i in range(n):
            p = 1 / (1 + np.exp(-total[i, 0]))
            g[0, i], h[0, i] = p - Y[i, 0], p * (1 - p)
    else:
        for i in range(n):
            highest = total[i].max()
            sum_of_odds = 0.0
            for k in range(n_outputs):
                sum_of_odds += np.exp(total[i, k] - highest)
            for k in range(n_outputs):
                p = np.exp(total[i, k] - highest) / sum_of_odds
                g[k, i], h[k, i] = p - Y[i, k], p * (1 - p)


@njit(cache=True, nogil=True)
def _fill(
    codes: NDArray[np.uint8],
    n_bins: NDArray[np.int64],
    g: NDArray,
    h: NDArray,
    rows: NDArray[np.uint32],
    sums: NDArray,
    constant: bool,
) -> None:
    """Add up rows, gradients and curvatures of every bin of every column, over the rows given."""
    for j in range(len(codes)):
        cells, N, G = codes[j], sums[0, j], sums[1, j]
        N[: n_bins[j]] = 0.0
        G[: n_bins[j]] = 0.0
        if constant:  # all curvatures are 1: their sums are numbers of rows
            for row in rows:
                at = cells[row]
                N[at] += 1
                G[at] += g[row]
        else:
            H = sums[2, j]
            H[: n_bins[j]] = 0.0
            for row in rows:
                at = cells[row]
                N[at] += 1
                G[at] += g[row]
                H[at] += h[row]


@njit(cache=True, nogil=True)
def _best(
    sums: NDArray,
    n_bins: NDArray[np.int64],
    n: int,
    sum_g: float,
    sum_h: float,
    value: float,
    fewest: int,
    ridge: float,
) -> tuple[float, int, int, float, float]:
    """Best cut of a node: its gain, or -1, the column, the last bin of the left side, and the sums of that side."""
    best, column, last, best_g, best_h = 0.0, -1, 0, 0.0, 0.0
    before = sum_g * value
    for j in range(len(n_bins)):
        N, G, H = sums[0, j], sums[1, j], sums[2 if len(sums) == 3 else 0, j]
        left_n = left_g = left_h = 0.0
        for at in range(n_bins[j] - 1):
            if N[at] == 0:  # as the bin before
                continue
            left_n += N[at]
            left_g += G[at]
            left_h += H[at]
            if left_n < fewest or left_h < LEAST_CURVATURE:
                continue
            right_g, right_h = sum_g - left_g, sum_h - left_h
            if n - left_n < fewest or right_h < LEAST_CURVATURE:
                break
            # as scikit-learn writes it: columns that cut the rows alike differ in the last bits, which decide
            gain = before + left_g * (left_g / (left_h + ridge + 1e-15))
            gain += right_g * (right_g / (right_h + ridge + 1e-15))
            if gain > best:
                best, column, last, best_g, best_h = gain, j, at, left_g, left_h
    return (best if column >= 0 else -1.0), column, last, best_g, best_h
