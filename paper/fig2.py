"""Figure 2: importance scores, W and the empirical FDR, with knockoffs of a mixture and of one Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs import knockoff_filter, knockoff_threshold, sample_knockoffs, swap
from paper.figures import NON_NULL, letter, new_figure
from paper.mixtures import simulate_three_components
from paper.repetitions import fit_mixture
from paper.runner import Context, Table, fdr_and_power

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_STARTS = 5  # of EM: from a single start one fit of the first 38 ended in a component of three far rows
MODELS = {3: "mixture of three Gaussians", 1: "one Gaussian"}


@dataclass(frozen=True)
class Config:
    """Settings; the paper gives d, the groups, the number of runs and the level.

    Parameters
    ----------
    n : int
        Rows.
    repetitions : int
        The paper has 40.
    target_fdr : float
    C : float
        Inverse strength of the ridge penalty of the logistic regression on standardised columns. A penalty is
        what gives correlated nulls a share of the coefficients, as in the paper's figure.
    """

    n: int = 3000
    repetitions: int = 100
    target_fdr: float = 0.2
    C: float = 0.01


CONFIG = Config()
QUICK = Config(repetitions=40)


def logistic_coefficients(XX: NDArray, y: NDArray, C: float) -> NDArray:
    """Absolute coefficients of a ridge logistic regression on standardised columns."""
    from sklearn.linear_model import LogisticRegression

    standardised = (XX - XX.mean(axis=0)) / XX.std(axis=0)
    return np.abs(LogisticRegression(C=C, max_iter=1000).fit(standardised, y).coef_[0])


def importance_of(
    X: NDArray, y: NDArray, n_components: int, C: float, rng: Generator, *, n_starts: int = N_STARTS
) -> NDArray:
    """Z and Z_tilde, shape (2 d,), with knockoffs from a mixture fitted by EM."""
    fit_rng, draw_rng, swap_rng = rng.spawn(3)
    model = fit_mixture(X, n_components, fit_rng, n_starts=n_starts)
    X_tilde = sample_knockoffs(model.as_network(), X, draw_rng)
    S = swap_rng.random(X.shape[1]) < 0.5
    Z, Z_tilde = np.split(logistic_coefficients(np.hstack(swap(X, X_tilde, S)), y, C), 2)
    return np.hstack([np.where(S, Z_tilde, Z), np.where(S, Z, Z_tilde)])


def repeat(config: Config, rng: Generator) -> NDArray:
    """One repetition: Z and Z_tilde for each model, shape (2, 60)."""
    data_rng, *fit_rngs = rng.spawn(1 + len(MODELS))
    data = simulate_three_components(config.n, rng=data_rng)
    return np.stack([importance_of(data.X, data.y, k, config.C, r) for k, r in zip(MODELS, fit_rngs, strict=True)])


def run(config: Config, rng: Generator, context: Context) -> Table:
    """Rows: a summary of each model over the repetitions, and Z, Z_tilde and W of every feature in the first one."""
    rngs = rng.spawn(config.repetitions)
    Z = np.stack(context.repeat(repeat, [(config, r) for r in rngs]))  # (R, model, 60)
    d = Z.shape[2] // 2
    non_nulls = np.arange(d) < 10
    table: Table = []
    for m, model in enumerate(MODELS.values()):
        W = Z[:, m, :d] - Z[:, m, d:]
        selected = [knockoff_filter(w, config.target_fdr) for w in W]
        summary = {"model": model, "kind": "summary", "target_fdr": config.target_fdr}
        summary |= fdr_and_power(selected, [non_nulls] * len(W))
        table.append(summary | {"paper_fdr": (0.1823, 0.5565)[m]})
        for j in range(d):
            group = ("non-null", "correlated null", "independent null")[j // 10]
            row = {"model": model, "kind": "feature", "feature": j, "group": group, "non_null": bool(non_nulls[j])}
            row |= {"Z": Z[0, m, j], "Z_tilde": Z[0, m, d + j], "W": W[0, j], "selected": bool(selected[0][j])}
            table.append(row | {"threshold": knockoff_threshold(W[0], config.target_fdr)})
    return table


def plot(table: Table) -> Figure:
    """Draw importance scores of the 60 features and W of the 30, for both models, non-nulls in red."""
    figure = new_figure(9, 5.5)
    for row, (name, model) in enumerate(zip("ab", MODELS.values(), strict=True)):
        features = [r for r in table if r["kind"] == "feature" and r["model"] == model]
        summary = next(r for r in table if r["kind"] == "summary" and r["model"] == model)
        d = len(features)
        colours = [NON_NULL if r["non_null"] else "black" for r in features]
        left, right = figure.add_subplot(2, 2, 2 * row + 1), figure.add_subplot(2, 2, 2 * row + 2)
        left.scatter(range(d), [r["Z"] for r in features], c=colours, s=14)
        left.scatter(range(d, 2 * d), [r["Z_tilde"] for r in features], c="black", s=14, marker="x", linewidths=1)
        left.axvline(d - 0.5, color="0.7", linewidth=0.8)
        left.set(xlabel="feature (0-29), knockoff (30-59)", ylabel="importance score Z")
        letter(left, name, model)
        right.scatter(range(d), [r["W"] for r in features], c=colours, s=14)
        right.axhline(0, color="0.7", linewidth=0.8)
        threshold = float(features[0]["threshold"])
        if np.isfinite(threshold):
            right.axhline(threshold, color="#0072B2", linestyle="--", linewidth=1, label="threshold")
            right.legend(fontsize=8, loc="upper right")
        right.set(xlabel="feature", ylabel="feature statistic W")
        right.set_title(
            f"empirical FDR {summary['fdr']:.3f} ± {summary['fdr_se']:.3f} at {summary['target_fdr']:g}"
            f" ({summary['repetitions']} runs)",
            fontsize=10,
        )
    return figure
