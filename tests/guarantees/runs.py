"""Repeated selections with a known answer: FDP and power of each, and whether the mean FDP keeps the level."""

import os
from pathlib import Path

import numpy as np
from sklearn.linear_model import lasso_path

from knockoffs.filter import difference, false_discovery_proportion, knockoff_filter, power

DATA = Path(os.environ.get("KNOCKOFFS_DATA", Path(__file__).parents[3] / "shared" / "data"))
FDR = 0.2


def lasso_scores(X, X_tilde, y, share=0.1):
    """|coefficients| at a share of the smallest penalty with no coefficient at all."""
    XX = np.hstack([X, X_tilde]).astype(float)
    XX = (XX - XX.mean(axis=0)) / np.where(XX.std(axis=0) > 0, XX.std(axis=0), 1.0)
    y = y - y.mean()
    alpha = share * np.abs(XX.T @ y).max() / len(y)
    Z = np.abs(lasso_path(XX, y, alphas=[alpha])[1][:, 0])
    return Z[: X.shape[1]], Z[X.shape[1] :]


def correlation_scores(X, X_tilde, y):
    """|correlation with y|: nulls that share a class with non-nulls score high, and their knockoffs must as well."""
    return tuple(
        np.abs((Y - Y.mean(axis=0)).T @ (y - y.mean())) / np.where(Y.std(axis=0) > 0, Y.std(axis=0), 1.0)
        for Y in (X, X_tilde)
    )


def run(draw_X, knockoffs_of, n_runs, n_non_nulls, amplitude, seed, scores=lasso_scores, signed=False):
    """FDP and power of each run; with ``signed``, half of the effects are negative."""
    out = []
    for rng in np.random.default_rng(seed).spawn(n_runs):
        X = draw_X(rng)
        non_nulls = np.zeros(X.shape[1], dtype=bool)
        non_nulls[rng.choice(X.shape[1], size=n_non_nulls, replace=False)] = True
        Z = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        signs = rng.choice([-1, 1], size=n_non_nulls) if signed else np.ones(n_non_nulls)
        y = amplitude * (Z[:, non_nulls] @ signs) / np.sqrt(len(X)) + rng.standard_normal(len(X))
        selected = knockoff_filter(difference(*scores(X, knockoffs_of(X, rng), y)), FDR)
        out.append((false_discovery_proportion(selected, non_nulls), power(selected, non_nulls)))
    fdp, found = np.array(out).T
    print(f"FDR {fdp.mean():.3f} +- {fdp.std() / np.sqrt(n_runs):.3f}, power {found.mean():.3f}")
    return fdp, found


def holds(fdp, level=FDR):
    """Mean FDP at most level + 4 standard errors: a valid procedure fails this once in 30,000."""
    return fdp.mean() <= level + 4 * fdp.std() / np.sqrt(len(fdp))
