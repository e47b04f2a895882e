"""Definition 3.1, checked exactly: of a conjugate by its log densities, of a small discrete network by enumeration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError
from knockoffs.sampling.network import BayesianNetwork, Conjugate
from knockoffs.sampling.pair import check_features, swap

MOST_SWAPS = 2**12  # sets of features that are swapped; of more features single ones, which generate all sets


def check_definition(
    conjugate: Conjugate,
    u: ArrayLike,
    u_tilde: ArrayLike | None = None,
    blanket: Mapping[str, ArrayLike] | None = None,
    *,
    observed: bool = True,
    feature_of: ArrayLike | None = None,
    sums_to_one: bool = False,
    tolerance: float = 1e-9,
) -> float:
    """Check that log P(u | v) + log Q(u_tilde | u, v) stays the same when u and u_tilde change places.

    For an observed node every set of features is swapped, for a hidden one the whole node. Both methods of the
    conjugate that are compared are its own, so the check is exact, whatever the law; that they tell the truth about
    ``sample`` is for another test (frequencies of draws).

    Parameters
    ----------
    conjugate : Conjugate
    u : array, shape (m, k) or (m,)
        Values of the node.
    u_tilde : array like u, optional
        Values of the knockoff, row by row. Left out, every row of u is paired with every other, and u must be closed
        under swaps: all the values of a discrete node, for instance.
    blanket : mapping of name to array, optional
        The Markov blanket. Arrays of one row, shape (1, ...), are the same for all pairs; others have a row for each
        pair, and go with ``u_tilde``.
    observed : bool
        Whether the node is observed, and each of its features exchangeable on its own.
    feature_of : array of int, shape (k,), optional
        The feature of each coordinate; one coordinate a feature if left out.
    sums_to_one : bool
        Whether u holds all values of the node, so that P(u | v) and every Q(. | u, v) must sum to one.
    tolerance : float
        Largest change allowed, relative to the size of the log probabilities.

    Returns
    -------
    float
        The largest change that was found.

    Raises
    ------
    InputError
        With the swap and the values at which the Definition fails.

    >>> from knockoffs.sampling.conjugates.markov_chain import MarkovChain
    >>> chain = MarkovChain(np.array([0.5, 0.5]), np.array([[[0.9, 0.1], [0.3, 0.7]]]))
    >>> bool(check_definition(chain, [[0, 0], [0, 1], [1, 0], [1, 1]], sums_to_one=True) < 1e-12)
    True
    """
    a = np.asarray(u)
    if u_tilde is None:
        left, right = np.repeat(a, len(a), axis=0), np.tile(a, (len(a), *[1] * (a.ndim - 1)))
    else:
        left, right = a, np.asarray(u_tilde)
        if left.shape != right.shape:
            raise InputError(f"u has shape {left.shape} and u_tilde {right.shape}: they must agree.")
    given = {}
    for name, value in (blanket or {}).items():
        rows = np.asarray(value)
        if len(rows) not in (1, len(left)):
            raise InputError(
                f"blanket[{name!r}] has {len(rows)} rows: expected one, or one for each of {len(left)} pairs."
            )
        given[name] = np.broadcast_to(rows, (len(left), *rows.shape[1:]))

    def phi(u: NDArray, u_tilde: NDArray) -> NDArray:
        law = np.asarray(conjugate.log_conditional(u, given))
        kernel = np.asarray(conjugate.log_kernel(u_tilde, u, given))
        if law.shape != (len(u),) or kernel.shape != (len(u),):
            raise InputError(f"log_conditional has shape {law.shape}, log_kernel {kernel.shape}: expected ({len(u)},).")
        # where P(u | v) = 0 nothing is drawn, and the kernel need not be defined
        return np.where(law == -np.inf, -np.inf, law + np.where(law == -np.inf, 0.0, kernel))

    before, worst = phi(left, right), 0.0
    if np.isnan(before).any():
        raise InputError(f"log P + log Q is NaN at {_write(left, right, int(np.argmax(np.isnan(before))))}.")
    if sums_to_one:
        _check_sums(conjugate, a, left, right, given, before)
    for S in _swaps(a, observed, feature_of):
        after = phi(*(swap(left, right, S) if observed else (right, left)))
        with np.errstate(invalid="ignore"):
            change = np.abs(after - before) / np.maximum(1.0, np.abs(before))
        change = np.where(after == before, 0.0, change)  # both -inf
        row = int(np.argmax(np.nan_to_num(change, nan=np.inf, posinf=np.inf)))
        if not change[row] <= tolerance:
            what = f"of coordinates {np.flatnonzero(S).tolist()}" if observed else "of the whole node"
            raise InputError(
                f"Definition 3.1 fails under the swap {what}: log P + log Q is {before[row]:.6g} before and "
                f"{after[row]:.6g} after it, at {_write(left, right, row)}."
            )
        worst = max(worst, float(change.max()))
    return worst


def _swaps(u: NDArray, observed: bool, feature_of: ArrayLike | None) -> list[NDArray[np.bool_]]:
    """List the coordinates to swap: unions of features, or one swap of all."""
    if not observed:
        return [np.ones(1, dtype=bool)]
    if u.ndim != 2:
        raise InputError(f"u has shape {u.shape}: an observed node has values of shape (m, k).")
    features = check_features(None if feature_of is None else np.asarray(feature_of), u.shape[1])
    n_features = int(features.max()) + 1
    if 2**n_features <= MOST_SWAPS:
        chosen = np.array(list(product([False, True], repeat=n_features)))
    else:
        chosen = np.eye(n_features, dtype=bool)
    return list(chosen[:, features])


def _check_sums(
    conjugate: Conjugate, u: NDArray, left: NDArray, right: NDArray, given: Mapping[str, NDArray], before: NDArray
) -> None:
    if len(left) != len(u) ** 2 or any(len(np.unique(v, axis=0)) > 1 for v in given.values()):
        raise InputError("sums_to_one needs all pairs of the values in u, and one blanket for all of them.")
    P = np.exp(conjugate.log_conditional(u, {name: value[: len(u)] for name, value in given.items()}))
    if abs(P.sum() - 1) > 1e-9:
        raise InputError(f"P(u | v) sums to {P.sum():.9g} over the {len(u)} values of u.")
    of_u = np.exp(before).reshape(len(u), len(u)).sum(axis=1)
    row = int(np.argmax(np.abs(of_u - P)))
    if abs(of_u[row] - P[row]) > 1e-9:
        raise InputError(f"Q(. | u, v) sums to {of_u[row] / P[row]:.9g} at u = {u[row].tolist()}.")


def _write(u: NDArray, u_tilde: NDArray, row: int) -> str:
    return f"u = {u[row].tolist()}, u_tilde = {u_tilde[row].tolist()}"


LogJoint = Callable[[dict[str, NDArray]], NDArray]


def enumerate_knockoffs(
    network: BayesianNetwork, states: Mapping[str, ArrayLike], log_joint: LogJoint
) -> tuple[NDArray, NDArray]:
    """Values of X, shape (m, n_columns), and the exact law of (X, X_tilde), shape (m, m), that is sampled from.

    P(x, x_tilde) = sum over h, h_tilde of P(x) P(h | x) prod_i Q_i(u_tilde_i | u_i, blanket), in which the blanket
    holds the new values of the nodes visited before, as in Algorithm 1. Every Q_i is the node's own ``log_kernel``.

    Parameters
    ----------
    states : mapping of name to array
        All values of every node: shape (m, k) for an observed node, which must be closed under swaps of its features,
        (m,) or (m, k) for a hidden one.
    log_joint : callable
        ``values -> (n,)``, log P(x) + log P(h | x) with the P(h | x) that ``sample_hidden`` draws from.
    """
    names = [node.name for node in network.nodes]
    tables = [np.asarray(states[name]) for name in names]
    index = np.array(list(product(*(range(len(table)) for table in tables))))
    rows, rows_tilde = (block.ravel() for block in np.mgrid[: len(index), : len(index)])
    values = {name: table[index[rows, i]] for i, (name, table) in enumerate(zip(names, tables, strict=True))}
    new = {name: table[index[rows_tilde, i]] for i, (name, table) in enumerate(zip(names, tables, strict=True))}
    log_law = log_joint(values)
    for node in network.nodes:
        alive = log_law > -np.inf  # kernels need not be defined where nothing can happen
        rows, rows_tilde, log_law = rows[alive], rows_tilde[alive], log_law[alive]
        values = {name: value[alive] for name, value in values.items()}
        new = {name: value[alive] for name, value in new.items()}
        blanket = network.blanket(node, values)  # visited nodes hold their new values
        log_law = log_law + node.conjugate.log_kernel(new[node.name], values[node.name], blanket)
        values[node.name] = new[node.name]
    observed = [i for i, node in enumerate(network.nodes) if node.observed]
    seen, of_row = np.unique(index[:, observed], axis=0, return_inverse=True)
    of_row = of_row.ravel()  # NumPy 2.0.0 has it as a column
    law = np.zeros((len(seen), len(seen)))
    np.add.at(law, (of_row[rows], of_row[rows_tilde]), np.exp(log_law))
    X = network.write({names[i]: tables[i][seen[:, c]] for c, i in enumerate(observed)}, np.dtype(float))
    return X, law


def worst_swap(X: NDArray, law: NDArray, feature_of: NDArray[np.intp]) -> float:
    """Largest change of the law of (X, X_tilde) under a swap of any set of features.

    Swaps of single features generate all the others, but the change of each set is measured.
    """
    n_features = int(feature_of.max()) + 1
    codes = np.stack(
        [np.unique(X[:, feature_of == j], axis=0, return_inverse=True)[1].ravel() for j in range(n_features)], axis=1
    )
    radix = np.cumprod([1, *(codes.max(axis=0) + 1)])
    place = np.full(radix[-1], -1)
    place[codes @ radix[:-1]] = np.arange(len(X))
    worst = 0.0
    for S in product([0, 1], repeat=n_features):
        moved, kept = codes @ (radix[:-1] * S), codes @ (radix[:-1] * (1 - np.array(S)))
        mixed = place[kept[:, None] + moved[None, :]]  # X[a] with the features in S taken from X[b]
        worst = max(worst, float(np.abs(law[mixed, mixed.T] - law).max()))
    return worst
