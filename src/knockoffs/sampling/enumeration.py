"""The exact law of (X, X_tilde) of a small discrete network, along the loop of Algorithm 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.sampling.network import BayesianNetwork

LogJoint = Callable[[dict[str, NDArray]], NDArray]


def enumerate_knockoffs(
    network: BayesianNetwork, states: Mapping[str, ArrayLike], log_joint: LogJoint
) -> tuple[NDArray, NDArray]:
    """Exact law of (X, X_tilde) that ``sample_knockoffs`` draws from.

    P(x, x_tilde) = sum over h, h_tilde of P(x) P(h | x) prod_i Q_i(u_tilde_i | u_i, blanket), in which the blanket
    holds the new values of the nodes visited before, as in Algorithm 1. Every Q_i is the node's own ``log_kernel``.

    Parameters
    ----------
    network : BayesianNetwork
    states : mapping of name to array
        All values of every node: shape (m, k) for an observed node, which must be closed under swaps of its features,
        (m,) or (m, k) for a hidden one.
    log_joint : callable
        ``values -> (n,)``, log P(x) + log P(h | x) with the P(h | x) that ``sample_hidden`` draws from.

    Returns
    -------
    X : array, shape (m, n_columns)
        The values X can take.
    law : array, shape (m, m)
        ``law[a, b]`` is the probability of (X, X_tilde) = (X[a], X[b]).
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
