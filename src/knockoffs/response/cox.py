"""Cox regression with an L1 penalty: the partial likelihood with Efron's ties, as a ``Likelihood`` of the path.

A survival time is one signed number, as in xgboost: t if the event was seen at t, -t if the row was censored at t.
Rows that are seen from a later time on (left truncation) have a second column, the time of entry.
"""

from __future__ import annotations

from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from knockoffs.errors import InputError
from knockoffs.response.l1_path import assign_folds, check_path, make_design
from knockoffs.response.likelihood import LikelihoodSet
from knockoffs.response.linear import PenaltyPath, read_rows, with_penalties
from knockoffs.table.target_kind import split_times

SMALLEST_RISK = 1e-300  # of a risk set: its logarithm is taken


class CoxLoss:
    """Minus the partial log-likelihood with Efron's ties of rows with weights (a ``Likelihood`` of one output).

    Its targets Y are 1 for an event and 0 for a censored row. The mean of a row is the number of events expected of it
    (exp(eta) times Breslow's hazard up to its time), so Y less the mean are the martingale residuals. A constant added
    to eta changes nothing: the intercept stays at 0. A row is at risk after its entry and up to its time; rows of
    weight 0 are in no risk set.
    """

    def __init__(self, y: NDArray, weights: NDArray) -> None:
        time, event, entry = split_times(y)
        self.weights = weights
        self.event = event & (weights > 0)
        times, self.group, self.ties = np.unique(time[self.event], return_inverse=True, return_counts=True)
        ends = [time] if entry is None else [time, entry]  # a risk set: rows that have not left, less those not there
        self.orders = [np.argsort(end, kind="stable") for end in ends]
        self.firsts = [np.searchsorted(end[order], times) for end, order in zip(ends, self.orders, strict=True)]
        self.passed = [np.searchsorted(times, end, side="right") for end in ends]  # times of events up to these
        self.mean_weight = np.bincount(self.group, weights[self.event], len(times)) / self.ties
        # Efron: of d tied events the l-th sees the risk set without l / d of their own risk
        self.term = np.repeat(np.arange(len(times)), self.ties)
        self.starts = np.cumsum(self.ties) - self.ties
        self.share = (np.arange(len(self.term)) - self.starts[self.term]) / self.ties[self.term]
        self.in_order = np.flatnonzero(self.event)[np.argsort(self.group, kind="stable")]  # events, time by time

    def _risks(self, eta: NDArray) -> tuple[NDArray, NDArray, float]:
        """Weighted risk of each row, of the risk set of each term, and what was subtracted from eta."""
        top = float(eta.max(initial=0.0))
        risk = self.weights * np.exp(eta - top)
        return risk, np.maximum(self._of_terms(risk), SMALLEST_RISK), top

    def _of_terms(self, values: NDArray) -> NDArray:
        """Totals of values, shape (n, ...), over the risk set of each term."""
        at_risk = np.cumsum(values[self.orders[0][::-1]], axis=0)[len(values) - 1 - self.firsts[0]]
        if len(self.orders) > 1:  # of the last risk sets, after the last entry, nothing is subtracted
            entered = np.cumsum(values[self.orders[1][::-1]], axis=0)
            some = self.firsts[1] < len(values)
            at_risk[some] -= entered[len(values) - 1 - self.firsts[1][some]]
        if len(self.term) == len(self.ties):  # no ties
            return at_risk
        tied = np.add.reduceat(values[self.in_order], self.starts, axis=0)
        share = self.share.reshape(-1, *[1] * (values.ndim - 1))
        return at_risk[self.term] - share * tied[self.term]

    def row_loss(self, Y: NDArray, eta: NDArray) -> NDArray:
        """Loss of every row, shape (n,): of an event the mean of its time's logarithms, less eta; else 0."""
        _, A, top = self._risks(eta[0])
        loss = np.zeros(eta.shape[1])
        logs = np.bincount(self.term, np.log(A), len(self.ties)) / self.ties
        loss[self.event] = logs[self.group] + top - eta[0, self.event]
        return loss

    def floor(self, Y: NDArray) -> NDArray:
        """Return zeros: an event can be certain."""
        return np.zeros(Y.shape[1])

    def mean(self, eta: NDArray) -> NDArray:
        """Events expected of each row up to its time, shape (1, n)."""
        _, A, top = self._risks(eta[0])
        hazard = self.mean_weight * np.bincount(self.term, 1 / A, len(self.ties))
        own = self.mean_weight * np.bincount(self.term, self.share / A, len(self.ties))
        up_to = np.append(0.0, np.cumsum(hazard))
        total = up_to[self.passed[0]]
        total[self.event] -= own[self.group]
        if len(self.passed) > 1:
            total -= up_to[self.passed[1]]
        return (np.exp(eta[0] - top) * total)[None]

    def null_intercept(self, Y: NDArray, weights: NDArray) -> NDArray:
        """Return zero: there is no intercept."""
        return np.zeros(1)

    def hessian(self, X: list[NDArray], M: NDArray, weights: NDArray, eta: NDArray) -> NDArray:
        """X' diag(weights * mean) X less the outer products of the means of the risk sets; 0 for the intercept."""
        columns = X[0].copy()
        columns[:, 0] = 0.0
        risk, A, _ = self._risks(eta[0])
        V = columns * np.sqrt(self.weights * M[0])[:, None]
        means = self._of_terms(risk[:, None] * columns) * (np.sqrt(self.mean_weight)[self.term] / A)[:, None]
        return V.T @ V - means.T @ means


class CoxSet(LikelihoodSet):
    """A partial likelihood on the rows with positive weight (a ``TrainingSet``).

    The loss of held-out rows is that of all rows less that of the training rows (van Houwelingen et al., 2006).
    """

    def __init__(self, X: NDArray, y: NDArray, weights: NDArray, rows: slice, row_weights: NDArray) -> None:
        event = split_times(y)[1].astype(float)[None]
        super().__init__(CoxLoss(y, weights), X, event, weights, rows, row_weights)
        self.train = CoxLoss(y, np.where(weights > 0, row_weights, 0.0))
        self.whole = CoxLoss(y, row_weights)

    def held_out_loss(self, eta: NDArray, losses: NDArray) -> float:
        """Loss of all rows less that of the training rows."""
        return sum(
            sign * float(part.weights @ part.row_loss(self.Y, eta))
            for sign, part in ((1, self.whole), (-1, self.train))
        )


class CoxPathCV(PenaltyPath):
    """L1-penalised Cox regression, with the penalty of the smallest cross-validated partial likelihood deviance.

    It minimises minus the log partial likelihood / n + alpha |b|_1 for columns of variance 1; ``coef_`` has logarithms
    of hazard ratios, for one unit of each column. Ties are Efron's. Equal columns share their coefficient. Events are
    spread evenly over the folds. Parameters are those of ``LassoPathCV``.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> time = rng.exponential(np.exp(-X[:, 0]))
    >>> model = CoxPathCV(alpha=0.2).fit(X, np.where(time < 2, time, -2.0))
    >>> (model.coef_ != 0).tolist()
    [True, False, False]
    """

    log_hazard = True  # coefficients have no unit of y

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to X, shape (n, n_columns), and signed times y, (n,) or (n, 2): negative where a row is censored."""
        check_path(self.alpha, self.n_alphas, self.alpha_ratio, positive=True)
        XX, yy, weights, folds = read_rows(self, X, y, sample_weight, y_numeric=True, multi_output=True)
        event = split_times(yy)[1].astype(np.intp)
        if not event.any():
            raise InputError("y has no event: all rows are censored (negative), so there is nothing to predict.")
        design = make_design(XX, weights, self._folds(folds, len(yy), event))
        y, Y = yy[design.order], event[design.order].astype(float)[None]
        loss = CoxLoss(y, design.weights / design.weights.sum())
        beta, _ = self._maximise(loss, design, Y, partial(CoxSet, design.X, y))
        self.coef_ = design.spread(beta)[0]
        self.mean_ = design.mean
        return self

    def predict(self, X: ArrayLike) -> NDArray:
        """Log-hazard of the rows of X, less that of the mean row."""
        check_is_fitted(self)
        return (validate_data(self, X, reset=False, dtype=np.float64) - self.mean_) @ self.coef_


def expected_events(y: NDArray, log_hazard: NDArray | None = None, weights: NDArray | None = None) -> NDArray:
    """Events expected of each row up to its time, shape (n,), at a log-hazard, by default the same for all rows."""
    eta = np.zeros(len(y)) if log_hazard is None else log_hazard
    return CoxLoss(y, np.ones(len(y)) if weights is None else weights).mean(eta[None])[0]


def martingale_residuals(y: NDArray, log_hazard: NDArray | None = None) -> NDArray:
    """Events less those expected of each row, shape (n,), at a log-hazard, by default the same for all rows.

    >>> martingale_residuals(np.array([1.0, -2.0, 3.0])).round(3).tolist()
    [0.667, -0.333, -0.333]
    """
    return split_times(y)[1] - expected_events(y, log_hazard)


def partial_likelihood_loss(y: NDArray, log_hazard: NDArray) -> NDArray:
    """Share of each row in minus the log partial likelihood of these rows, shape (n,); 0 for a censored row."""
    return CoxLoss(y, np.ones(len(y))).row_loss(y, log_hazard[None])


def concordance(y: NDArray, log_hazard: NDArray, rows_at_once: int = 1000) -> float:
    """Share of comparable pairs in which the row with the earlier event has the larger log-hazard (Harrell's C).

    A row is compared with all rows at risk at its event and without an event at that time; equal hazards count half.

    >>> concordance(np.array([1.0, 2.0, -3.0]), np.array([1.0, 0.0, 2.0]))
    0.3333333333333333
    """
    time, event, entry = split_times(y)
    events, agree, pairs = np.flatnonzero(event), 0.0, 0
    for some in np.split(events, range(rows_at_once, len(events), rows_at_once)):
        t, own = time[some, None], log_hazard[some, None]
        later = (time > t) | ((time == t) & ~event)
        if entry is not None:
            later &= entry < t
        agree += (later & (own > log_hazard)).sum() + 0.5 * (later & (own == log_hazard)).sum()
        pairs += int(later.sum())
    return float(agree / pairs) if pairs else np.nan


def held_out_concordance(X: NDArray, y: NDArray, n_folds: int = 5) -> float:
    """Concordance of an L1-penalised Cox model on rows it was not fitted on, averaged over folds by their events."""
    event = split_times(y)[1]
    fold_of = assign_folds(n_folds, len(y), np.random.default_rng(0), event.astype(np.intp))
    found = []
    for fold, model in enumerate(with_penalties(CoxPathCV(), X, y, fold_of)):
        held = fold_of == fold
        found.append(concordance(y[held], clone(model).fit(X[~held], y[~held]).predict(X[held])))
    weights = np.bincount(fold_of, event, len(found))
    known = ~np.isnan(found) & (weights > 0)
    return float(np.average(np.array(found)[known], weights=weights[known])) if known.any() else np.nan
