"""Products of small tables, one for each row, and their elimination: the arithmetic of discrete networks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Factor:
    """A non-negative table over some variables, the same one for all the rows of a group.

    Rows with the same evidence share a table, so work and memory grow with the number of distinct tables.
    """

    scope: tuple[int, ...]  # the variables, one for each axis of the table after the first
    table: NDArray  # shape (n_groups, ...)
    group: NDArray[np.intp]  # shape (n,): the table of each row

    def rows(self, chosen: slice) -> Factor:
        """Return the factor of some of the rows."""
        return Factor(self.scope, self.table, self.group[chosen])

    def at(self, values: Mapping[int, NDArray], n_free: int = 0) -> NDArray:
        """Entries at the values of the first variables, the last ``n_free`` left free: shape (n, ...)."""
        fixed = self.scope[: len(self.scope) - n_free]
        return self.table[(self.group, *(values[variable] for variable in fixed))]


def restrict(scope: Sequence[int], table: NDArray, values: Mapping[int, NDArray], n: int) -> Factor:
    """Fix some variables of a table, whose axes are ``scope``, at the values of n rows; others are left aside."""
    fixed = [axis for axis, variable in enumerate(scope) if variable in values]
    free = [axis for axis in range(len(scope)) if axis not in fixed]
    rest = tuple(scope[axis] for axis in free)
    if not fixed:
        return Factor(rest, table[None], np.zeros(n, dtype=np.intp))
    flat = np.ravel_multi_index([values[scope[axis]] for axis in fixed], [table.shape[axis] for axis in fixed])
    seen, group = np.unique(flat, return_inverse=True)
    stacked = table.transpose(fixed + free).reshape(-1, *(table.shape[axis] for axis in free))
    return Factor(rest, stacked[seen], group)


LOG_SMALLEST = -600.0  # exp(-745) is the smallest float


def multiply(factors: Sequence[Factor], last: int) -> tuple[Factor, NDArray]:
    """Product of factors, with the variable ``last`` on the last axis, and the log of what each of its tables lacks.

    That is zero, unless so many factors or so small ones come together that their product could leave the range of
    floats (a label above a thousand columns): it is then added up in logs, and its largest entry taken out.
    """
    names = {variable for factor in factors for variable in factor.scope}
    scope = (*sorted(names - {last}), last)
    size = {v: m for f in factors for v, m in zip(f.scope, f.table.shape[1:], strict=True)}
    smallest = (np.log(factor.table.min(where=factor.table > 0, initial=1.0)) for factor in factors)
    in_logs = sum(smallest) < LOG_SMALLEST
    group = np.zeros(len(factors[0].group), dtype=np.intp)
    table = np.full((1, *(size[variable] for variable in scope)), 0.0 if in_logs else 1.0)
    for factor in factors:  # one table for each combination of groups that occurs
        seen, group = np.unique(group * len(factor.table) + factor.group, return_inverse=True)
        order = sorted(range(len(factor.scope)), key=lambda axis: scope.index(factor.scope[axis]))
        shape = [size[variable] if variable in factor.scope else 1 for variable in scope]
        other = factor.table.transpose(0, *(axis + 1 for axis in order)).reshape(-1, *shape)
        so_far = table if len(seen) == len(table) else table[seen // len(factor.table)]
        table = so_far + log(other)[seen % len(other)] if in_logs else so_far * other[seen % len(other)]
    if not in_logs:
        return Factor(scope, table, group), np.zeros(len(table))
    top = table.reshape(len(table), -1).max(axis=1)
    level = np.where(top > -np.inf, top, 0.0).reshape(-1, *[1] * len(scope))
    return Factor(scope, np.exp(table - level), group), level.ravel()


def log(table: NDArray) -> NDArray:
    """Logarithms, -inf for zeros."""
    with np.errstate(divide="ignore"):
        return np.log(table)


def sum_out(factors: Iterable[Factor], order: Sequence[int]) -> list[Factor]:
    """Sum some variables out of a product of factors: the factors of what is left, up to a number for each row."""
    pool = list(factors)
    for variable in order:
        product, _ = multiply([factor for factor in pool if variable in factor.scope], variable)
        pool = [factor for factor in pool if variable not in factor.scope]
        pool.append(Factor(product.scope[:-1], product.table.sum(axis=-1), product.group))
    return pool


def eliminate(factors: Iterable[Factor], order: Sequence[int], n: int) -> tuple[list[Factor], NDArray]:
    """Sum the variables out of a product of factors, one after the other.

    The steps are, for each variable of ``order``, the product it was summed out of, itself on the last axis:
    proportional to its law given the variables eliminated later. The other answer, shape (n,), is the log of the sum
    of the product over all the variables.
    """
    pool, steps, log_total = list(factors), [], np.zeros(n)
    for variable in order:
        product, log_lack = multiply([factor for factor in pool if variable in factor.scope], variable)
        message, log_scale = rescale(product.table.sum(axis=-1))
        log_total += (log_lack + log_scale)[product.group]
        pool = [factor for factor in pool if variable not in factor.scope]
        pool.append(Factor(product.scope[:-1], message, product.group))
        steps.append(product)
    for factor in pool:  # nothing is left in their scopes
        log_total += log(factor.table)[factor.group]
    return steps, log_total


def rescale(table: NDArray) -> tuple[NDArray, NDArray]:
    """Divide each group's table by its largest entry, and return the log of it too (-inf for a table of zeros)."""
    top = table.reshape(len(table), -1).max(axis=1)
    return table / np.where(top > 0, top, 1.0).reshape(-1, *[1] * (table.ndim - 1)), log(top)


def elimination_order(
    scopes: Iterable[Sequence[int]], n_states: Mapping[int, int], keep: Collection[int] = ()
) -> tuple[list[int], int]:
    """Order to eliminate the variables in, by fewest fill-in edges, and the entries of the largest table it makes.

    Variables without ``n_states`` are taken as fixed; those to ``keep`` stay, and count in the size of the tables.

    >>> elimination_order([(0, 1), (1, 2), (2, 3)], {0: 2, 1: 2, 2: 2, 3: 2})
    ([0, 1, 2, 3], 4)
    """
    neighbours: dict[int, set[int]] = {variable: set() for variable in n_states}
    for scope in scopes:
        inside = [variable for variable in scope if variable in neighbours]
        for variable in inside:
            neighbours[variable].update(other for other in inside if other != variable)
    order, largest = [], 1
    fill = {variable: _fill_in(variable, neighbours) for variable in neighbours if variable not in keep}
    while fill:
        variable = min(fill, key=lambda v: (fill[v], len(neighbours[v]), v))
        around = neighbours.pop(variable)
        filled = fill.pop(variable)
        size = n_states[variable]
        for other in around:
            size *= n_states[other]  # Python integers: no overflow
            neighbours[other] |= around - {other}
            neighbours[other].discard(variable)
        # without new edges, only the neighbours' counts change: they lose the variable
        for other in around | {far for near in around if filled for far in neighbours[near]}:
            if other in fill:
                fill[other] = _fill_in(other, neighbours)
        largest = max(largest, size)
        order.append(variable)
    return order, largest


def _fill_in(variable: int, neighbours: Mapping[int, set[int]]) -> int:
    around = neighbours[variable]
    return sum(len(around - neighbours[other]) - 1 for other in around) // 2


ENTRIES_AT_ONCE = 2**22  # of one table over all its groups: 32 MiB


def row_blocks(n: int, largest: int) -> list[slice]:
    """Blocks of rows whose tables fit in memory even if no two rows share one."""
    size = max(1, ENTRIES_AT_ONCE // largest)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
