"""The loss along lambda paths of a tree ensemble, exactly.

Along a path one feature's columns move on lines, so a tree's output is piecewise constant in lambda, and it jumps where
a column crosses a threshold: at ``(threshold - x) / (fake - x)``. Only a node on the row's own way whose threshold the
column crosses can send the row elsewhere. For every row and feature, the jumps of all trees are collected, sorted and
added up; between two jumps the loss is constant, so its integral is a finite sum.

Leaves are added in double precision, in the order of the jumps: the losses are those of ``predict`` to rounding, except
that XGBoost itself adds in single precision (it differs by about 1e-7), and that classes equal up to rounding are a tie
here, which the first class wins as in scikit-learn, where its own rounding may settle it either way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from knockoffs.importance.losses import LOSSES, SMALLEST_MEAN, SMALLEST_PROBABILITY, Loss, check_counts, class_codes
from knockoffs.importance.paths.moves import Moves
from knockoffs.machine.compiled import njit
from knockoffs.response.cox_boosting import CoxBoosting, events_as_counts
from knockoffs.response.tree_arrays import IDENTITY, LOGARITHM, LOGISTIC, PROBABILITY, TreeArrays, tree_arrays

LOSS_CODES = {"accuracy": 0, "log_loss": 1, "brier": 2, "squared_error": 3, "poisson_deviance": 4}
LARGEST_LOG_LOSS = -np.log(SMALLEST_PROBABILITY)
TIE = 1e-10  # scores this near are a tie: sums of leaves differ by rounding according to their order


def tree_path(model: object, moves: Moves, loss: Loss) -> TreePath | None:
    """Path losses of a tree ensemble; None for another model, for another loss, or for a table with NaN."""
    if LOSSES.get(loss.name) is not loss or (loss.name not in LOSS_CODES and not isinstance(model, CoxBoosting)):
        return None
    if loss.name not in LOSS_CODES:
        # a partial likelihood is no sum over rows: the deviance that the trees were fitted by
        ratio, weights = events_as_counts(moves.y)
        moves = replace(moves, y=ratio, weights=(weights := moves.weights * weights) / weights.sum())
        loss = LOSSES["poisson_deviance"]
    trees = tree_arrays(model, moves.XX)
    if trees is None or not (np.all(np.isfinite(moves.XX)) and np.all(np.isfinite(moves.XX_fake))):
        return None
    if loss.name == "poisson_deviance":
        check_counts(moves.y)
    return TreePath(trees, moves, loss, getattr(model, "classes_", None))


@dataclass(frozen=True)
class TreePath:
    """Loss along the paths of a tree ensemble: points and integrals come from the same jumps."""

    trees: TreeArrays
    moves: Moves
    loss: Loss
    classes: NDArray | None

    def unmoved(self) -> float:
        """Mean loss of the table as it is."""
        return self._run(np.array([0.0]), 0.0, 0.0)[1]

    def at(self, lams: NDArray) -> NDArray:
        """Mean loss at each lam, shape (2m, n_lams)."""
        lams = np.asarray(lams, dtype=float)
        order = np.argsort(lams, kind="stable")
        rise, unmoved = self._run(lams[order], lams.min(), lams.max())
        losses = np.empty_like(rise)
        losses[:, order] = rise + unmoved
        return losses

    def integral(self, low: float, high: float, n_lams: int) -> NDArray:
        """Exact integral of the mean loss; n_lams is not needed."""
        rise, unmoved = self._run(np.empty(0), low, high)
        return rise[:, 0] + (high - low) * unmoved

    def _run(self, lams: NDArray, low: float, high: float) -> tuple[NDArray, float]:
        """Rise of the mean loss at ascending lams (its integral if there are none), and the mean loss unmoved."""
        trees, moves = self.trees, self.moves
        if trees.link in (IDENTITY, LOGARITHM):
            codes, y = np.zeros(len(moves.y), dtype=np.int64), moves.y.astype(float)
        else:
            assert self.classes is not None
            codes, y = class_codes(moves.y, self.classes).astype(np.int64), np.zeros(len(moves.y))
        return _path_rises(
            trees.column,
            trees.threshold,
            trees.left,
            trees.right,
            trees.value,
            trees.roots,
            trees.output,
            trees.base,
            trees.average,
            trees.link,
            trees.tie,
            np.ascontiguousarray(moves.XX),
            np.ascontiguousarray(moves.XX_fake),
            moves.feature_of2.astype(np.int32),
            moves.n_features2,
            codes,
            y,
            moves.weights,
            LOSS_CODES[self.loss.name],
            lams,
            low,
            high,
        )


@njit(cache=True, nogil=True)
def _loss_of(F, scale, link, loss, code, y, tie):  # type: ignore[no-untyped-def]
    """Loss of one row whose trees add up to F."""
    K = len(F)
    if link == IDENTITY or link == LOGARITHM:
        mean = F[0] * scale if link == IDENTITY else np.exp(F[0] * scale)
        residual = y - mean
        if loss == 4:
            mean = max(mean, SMALLEST_MEAN)
            return max(2.0 * (mean - y + (y * np.log(y / mean) if y > 0.0 else 0.0)), 0.0)
        return residual * residual
    if K == 1:
        f = F[0] * scale - 0.5 if link == PROBABILITY else F[0] * scale
        if loss == 0:
            predicted = 1 if f > TIE else (0 if f < -TIE else tie)
            return 0.0 if predicted == code else 1.0
        own = f if code == 1 else -f
        if loss == 1 and link == LOGISTIC:
            return min(np.log1p(np.exp(-own)), LARGEST_LOG_LOSS) if own > -LARGEST_LOG_LOSS else LARGEST_LOG_LOSS
        p = own + 0.5 if link == PROBABILITY else 1.0 / (1.0 + np.exp(-own))
        if loss == 1:
            return -np.log(min(max(p, SMALLEST_PROBABILITY), 1.0))
        return 2.0 * (1.0 - p) * (1.0 - p)
    best, top = 0, F[0]
    for k in range(1, K):
        if F[k] * scale > top * scale + TIE:
            best, top = k, F[k]
    if loss == 0:
        return 0.0 if best == code else 1.0
    if link == PROBABILITY:
        p = F[code] * scale
        if loss == 1:
            return -np.log(min(max(p, SMALLEST_PROBABILITY), 1.0))
        squares = 0.0
        for k in range(K):
            squares += (F[k] * scale) ** 2
        return squares + 1.0 - 2.0 * p
    total, squares = 0.0, 0.0
    for k in range(K):
        e = np.exp((F[k] - top) * scale)
        total += e
        squares += e * e
    log_p = (F[code] - top) * scale - np.log(total)
    if loss == 1:
        return min(-log_p, LARGEST_LOG_LOSS)
    return squares / (total * total) + 1.0 - 2.0 * np.exp(log_p)


@njit(cache=True, nogil=True)
def _sort_jumps(lams, jumps, n):  # type: ignore[no-untyped-def]
    """Sort the first n jumps by lambda, in place."""
    if n > 32:
        order = np.argsort(lams[:n], kind="mergesort")
        lams[:n] = lams[:n][order]
        jumps[:n] = jumps[:n][order]
        return
    for i in range(1, n):
        lam, jump = lams[i], jumps[i]
        k = i - 1
        while k >= 0 and lams[k] > lam:
            lams[k + 1] = lams[k]
            jumps[k + 1] = jumps[k]
            k -= 1
        lams[k + 1] = lam
        jumps[k + 1] = jump


@njit(cache=True, nogil=True)
def _path_rises(  # type: ignore[no-untyped-def]
    column,
    threshold,
    left,
    right,
    value,
    roots,
    output,
    base,
    average,
    link,
    tie,
    XX,
    XX_fake,
    feature_of2,
    n_features2,
    codes,
    y,
    weights,
    loss,
    lams,
    low,
    high,
):
    """Rise of the mean loss along every feature's path, (2m, n_lams); without lams its integral, one point."""
    n, n_columns = XX.shape
    n_trees, n_values, n_outputs = len(roots), value.shape[1], len(base)
    n_lams = len(lams)
    rises = np.zeros((n_features2, max(n_lams, 1)))
    unmoved = 0.0
    # a point at the end of the range belongs to it, so the last interval must reach beyond
    stop = high if n_lams == 0 else high * (1.0 + 1e-15) + 1e-300

    F0, F, end = np.empty(n_outputs), np.empty(n_outputs), np.empty(n_columns)
    seen = np.full(n_features2, -1, dtype=np.int64)  # the last walk that met the feature
    head = np.full(n_features2, -1, dtype=np.int64)  # its last jump; the others follow by `before`
    count = np.zeros(n_features2, dtype=np.int64)
    touched = np.empty(n_features2, dtype=np.int64)
    capacity = 4096
    jump_lam, jump_by = np.empty(capacity), np.empty(capacity)
    jump_from, jump_to = np.empty(capacity, dtype=np.int32), np.empty(capacity, dtype=np.int32)
    before = np.empty(capacity, dtype=np.int64)
    stack_node, stack_stop = np.empty(len(column) + 1, dtype=np.int32), np.empty(len(column) + 1)
    way = np.empty(len(column) + 1, dtype=np.int32)
    sorted_lam, sorted_jump = np.empty(capacity), np.empty(capacity, dtype=np.int64)
    walk = 0
    scale = 1.0 / n_trees if average else 1.0

    for row in range(n):
        weight = weights[row]
        if weight == 0.0:
            continue
        x, fake = XX[row], XX_fake[row]
        for c in range(n_columns):
            end[c] = x[c] + stop * (fake[c] - x[c])
        F0[:] = base
        n_jumps, n_touched = 0, 0
        for t in range(n_trees):
            walk += 1
            # the row's own way; the topmost node whose threshold a feature crosses is where that feature leaves it
            node, n_way = roots[t], 0
            while column[node] >= 0:
                c = column[node]
                goes_left = x[c] <= threshold[node]
                if goes_left != (end[c] <= threshold[node]):
                    f = feature_of2[c]
                    if seen[f] != walk:
                        seen[f] = walk
                        way[n_way] = node
                        n_way += 1
                node = left[node] if goes_left else right[node]
            own = node
            if n_values == 1:
                F0[output[t]] += value[own, 0]
            else:
                for k in range(n_values):
                    F0[k] += value[own, k]

            for i in range(n_way):
                f = feature_of2[column[way[i]]]
                stack_node[0], stack_stop[0] = way[i], stop
                n_stack, start, last = 1, low, own
                while n_stack > 0:  # intervals of lambda in ascending order, depth first
                    n_stack -= 1
                    node, until = stack_node[n_stack], stack_stop[n_stack]
                    while column[node] >= 0:
                        c = column[node]
                        cut = threshold[node]
                        if feature_of2[c] != f or fake[c] == x[c]:
                            node = left[node] if x[c] <= cut else right[node]
                            continue
                        speed = fake[c] - x[c]
                        crossing = (cut - x[c]) / speed
                        if speed > 0.0:  # x <= cut holds at the crossing itself: the change comes just after it
                            first, second = left[node], right[node]
                            crossing += abs(crossing) * 2.3e-16 + 1e-300
                        else:
                            first, second = right[node], left[node]
                        if crossing <= start:
                            node = second
                        elif crossing >= until:
                            node = first
                        else:
                            stack_node[n_stack], stack_stop[n_stack] = second, until
                            n_stack += 1
                            until = crossing
                            node = first
                    if node != last:
                        differs = False
                        for k in range(n_values):
                            if value[node, k] != value[last, k]:
                                differs = True
                        if differs:
                            if n_jumps == capacity:
                                grown = 2 * capacity
                                new_lam, new_by = np.empty(grown), np.empty(grown)
                                new_from, new_to = np.empty(grown, dtype=np.int32), np.empty(grown, dtype=np.int32)
                                new_before = np.empty(grown, dtype=np.int64)
                                new_lam[:capacity], new_by[:capacity] = jump_lam, jump_by
                                new_from[:capacity], new_to[:capacity] = jump_from, jump_to
                                new_before[:capacity] = before
                                jump_lam, jump_by, jump_from, jump_to = new_lam, new_by, new_from, new_to
                                before, capacity = new_before, grown
                                sorted_lam, sorted_jump = np.empty(grown), np.empty(grown, dtype=np.int64)
                            jump_lam[n_jumps] = start
                            if n_values == 1:
                                jump_by[n_jumps] = value[node, 0] - value[last, 0]
                                jump_to[n_jumps] = output[t]
                            else:
                                jump_from[n_jumps], jump_to[n_jumps] = last, node
                            if count[f] == 0:
                                touched[n_touched] = f
                                n_touched += 1
                            before[n_jumps] = head[f]
                            head[f] = n_jumps
                            count[f] += 1
                            n_jumps += 1
                        last = node
                    start = until

        at_rest = _loss_of(F0, scale, link, loss, codes[row], y[row], tie)
        unmoved += weight * at_rest
        for i in range(n_touched):
            f = touched[i]
            size, jump = count[f], head[f]
            for k in range(size):
                sorted_lam[size - 1 - k], sorted_jump[size - 1 - k] = jump_lam[jump], jump
                jump = before[jump]
            head[f], count[f] = -1, 0
            _sort_jumps(sorted_lam, sorted_jump, size)
            F[:] = F0
            area = 0.0
            point = 0
            while point < n_lams and lams[point] < sorted_lam[0]:
                point += 1
            for k in range(size):
                jump = sorted_jump[k]
                if n_values == 1:
                    F[jump_to[jump]] += jump_by[jump]
                else:
                    for v in range(n_values):
                        F[v] += value[jump_to[jump], v] - value[jump_from[jump], v]
                until = sorted_lam[k + 1] if k + 1 < size else stop
                if until <= sorted_lam[k] or (n_lams > 0 and (point == n_lams or lams[point] >= until)):
                    continue
                last_point = point
                while last_point < n_lams and lams[last_point] < until:
                    last_point += 1
                rise = _loss_of(F, scale, link, loss, codes[row], y[row], tie) - at_rest
                if n_lams == 0:
                    area += rise * (until - sorted_lam[k])
                for at in range(point, last_point):
                    rises[f, at] += weight * rise
                point = last_point
            if n_lams == 0:
                rises[f, 0] += weight * area
    return rises, unmoved
