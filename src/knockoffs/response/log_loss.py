"""The likelihood of classes: logistic regression, binary and multinomial.

The multinomial penalty is on each coefficient, not on a column's group of them: that is the model scikit-learn's
saga fits, it needs no second kernel, and summed over classes the penalty of a column is a norm all the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from knockoffs.response.l1_path import PathDesign
from knockoffs.response.likelihood import solve_exactly


def indicator(codes: NDArray[np.intp], n_classes: int) -> NDArray:
    """Classes as targets, shape (n_outputs, n): one row for two classes, one row for each of more.

    >>> indicator(np.array([0, 1, 1]), 2)
    array([[0., 1., 1.]])
    """
    if n_classes == 2:
        return (codes == 1).astype(float)[None]
    return (codes == np.arange(n_classes)[:, None]).astype(float)


def log_softmax(eta: NDArray) -> NDArray:
    """Log-probabilities of the classes along the first axis (scipy's is slow on small arrays)."""
    eta = eta - eta.max(axis=0)
    return eta - np.log(np.exp(eta).sum(axis=0))


def probabilities(eta: NDArray) -> NDArray:
    """Probabilities of the outputs from their linear predictors, shape (n_outputs, n)."""
    return expit(eta) if len(eta) == 1 else np.exp(log_softmax(eta))


def row_loss(Y: NDArray, eta: NDArray) -> NDArray:
    """Log-loss of every row, shape (n,)."""
    if len(eta) == 1:
        return np.logaddexp(0.0, eta[0]) - Y[0] * eta[0]
    return -(Y * log_softmax(eta)).sum(axis=0)


def null_probabilities(Y: NDArray, weights: NDArray) -> NDArray:
    """Weighted shares of the outputs, shape (n_outputs, 1)."""
    return (Y @ weights / weights.sum())[:, None]


def hessian(X: list[NDArray], P: NDArray, weights: NDArray, eta: NDArray) -> NDArray:
    """Hessian of the weighted log-loss, for output k with the columns X[k]; outputs one after another.

    With p the softmax it is diag(p) - pp' between outputs: a block for each output less one product for all.
    """
    if len(X) == 1:
        V = X[0] * np.sqrt(weights * P[0] * (1 - P[0]))[:, None]
        return V.T @ V
    V = np.hstack([x * (np.sqrt(weights) * p)[:, None] for x, p in zip(X, P, strict=True)])
    H = -(V.T @ V)
    start = 0
    for x, p in zip(X, P, strict=True):
        stop = start + x.shape[1]
        v = x * np.sqrt(weights * p)[:, None]
        H[start:stop, start:stop] += v.T @ v
        start = stop
    return H


class LogLoss:
    """Log-loss of classes coded by ``indicator`` (a ``Likelihood``)."""

    row_loss = staticmethod(row_loss)
    mean = staticmethod(probabilities)
    hessian = staticmethod(hessian)

    def floor(self, Y: NDArray) -> NDArray:
        """Return zeros: a class can be certain."""
        return np.zeros(Y.shape[1])

    def null_intercept(self, Y: NDArray, weights: NDArray) -> NDArray:
        """Log-odds of two classes, logarithms of the shares of more."""
        share = np.clip(null_probabilities(Y, weights)[:, 0], 1e-12, 1 - 1e-12)  # the user's own folds can lose a class
        return np.log(share) - np.log1p(-share) if len(Y) == 1 else np.log(share)


def l1_logistic_at(design: PathDesign, Y: NDArray, alpha: float, columns: NDArray[np.intp]) -> tuple[NDArray, NDArray]:
    """Exact L1-logistic coefficients of the standardised columns, (n_outputs, d), and intercepts, (n_outputs,).

    ``columns`` is a first guess of the working set; more join until the optimality conditions hold.
    """
    beta, intercept = solve_exactly(LogLoss(), design, Y, alpha, columns)
    if len(Y) > 1:
        # Softmax does not change if all classes of a column move together. With an even number of classes the
        # penalty need not fix that move either: the median at zero is a choice that treats all classes alike.
        beta, intercept = beta - np.median(beta, axis=0), intercept - intercept.mean()
    return beta, intercept
