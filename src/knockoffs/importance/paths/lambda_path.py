"""The lambda path: a column moves from its values through its fake's and beyond, and W is followed (Figure 1c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, require
from knockoffs.importance.losses import LossLike, resolve_loss
from knockoffs.importance.paths.follow import MEMORY, path_losses
from knockoffs.importance.paths.moves import N_LAMS, Fake, both_halves, check_lams, faked_tables
from knockoffs.importance.scores import Scores
from knockoffs.sampling.pair import check_features

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class LambdaPath:
    """W along lambda (Figure 1c of the paper).

    Attributes
    ----------
    lams : array, shape (n_lams,)
    W : array, shape (n_features, n_lams)
        Z - Z_tilde with the columns moved to each lam.
    non_nulls : array of bool, shape (n_features,), optional
        The truth, where it is known.
    feature_names : tuple of str
    loss : str
        Name of the loss that was followed.
    """

    lams: NDArray
    W: NDArray
    non_nulls: NDArray[np.bool_] | None
    feature_names: tuple[str, ...]
    loss: str

    @property
    def colours(self) -> list[str]:
        """Red for non-nulls and grey for nulls, as in the paper; grey-blue where the truth is not known."""
        if self.non_nulls is None:
            return ["#4c72b0"] * len(self.W)
        return ["#c44e52" if true else "#999999" for true in self.non_nulls]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the path of every feature on matplotlib axes (made if not given), nulls first."""
        if ax is None:
            require("matplotlib", "plots")
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        truth = np.zeros(len(self.W), dtype=bool) if self.non_nulls is None else self.non_nulls
        labelled: set[str] = set()
        for feature in np.argsort(truth, kind="stable"):
            colour = self.colours[feature]
            kind = "" if self.non_nulls is None else ("non-null" if truth[feature] else "null")
            label = kind if kind and kind not in labelled else None
            labelled.add(kind)
            ax.plot(self.lams, self.W[feature], color=colour, linewidth=1.2, label=label)
        ax.axhline(0.0, color="black", linewidth=0.6)
        ax.set_xlabel("lambda")
        ax.set_ylabel(f"W ({self.loss.replace('_', ' ')})")
        if self.non_nulls is not None:
            ax.legend(frameon=False)
        return ax


def lambda_path(
    model: object,
    X: NDArray,
    X_tilde: NDArray,
    y: NDArray,
    *,
    rng: Generator,
    fake: Fake | None = None,
    lams: ArrayLike | None = None,
    loss: LossLike = None,
    feature_of: ArrayLike | None = None,
    non_nulls: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    sample_weight: ArrayLike | None = None,
    memory: float = MEMORY,
    n_jobs: int | None = None,
) -> LambdaPath:
    """W as a function of lambda, the paper's lambda path, for every feature.

    Parameters
    ----------
    model : object
        Fitted on ``np.hstack([X, X_tilde])``.
    X, X_tilde : array, shape (n, n_columns)
    y : array, shape (n,)
    rng : numpy.random.Generator
        For fakes that are drawn (permuted); swapped columns draw nothing.
    fake : callable, optional
        ``swapped`` (the default) or ``permuted`` of ``knockoffs.importance.accuracy_drop``, or another.
    lams : array-like, optional
        21 points from 0 to 10 if left out.
    loss : str, Loss or callable, optional
    feature_of : array-like of int, shape (n_columns,), optional
    non_nulls : array-like of bool, shape (n_features,), optional
        Which features are not null, if that is known: colours the plot.
    feature_names : sequence of str, optional
    sample_weight : array-like, shape (n,), optional
    memory, n_jobs
        See ``path_losses``.

    Returns
    -------
    LambdaPath
    """
    if fake is None:
        from knockoffs.importance.accuracy_drop import swapped

        fake = swapped
    owners = check_features(feature_of, X.shape[1])
    m = int(owners.max()) + 1
    grid = check_lams(np.linspace(0.0, 10.0, N_LAMS) if lams is None else lams)
    truth = None if non_nulls is None else _check_length("non_nulls", np.asarray(non_nulls, dtype=bool), m)
    names = tuple(f"x{j}" for j in range(m)) if feature_names is None else tuple(feature_names)
    _check_length("feature_names", np.asarray(names), m)
    XX, XX_fake = faked_tables(X, X_tilde, fake, rng)
    path = path_losses(
        model,
        XX,
        XX_fake,
        y,
        loss,
        feature_of2=both_halves(owners),
        sample_weight=sample_weight,
        memory=memory,
        n_jobs=n_jobs,
    )
    losses = path.at(grid)
    return LambdaPath(grid, losses[:m] - losses[m:], truth, names, resolve_loss(loss, model).name)


def path_scores(
    model: object,
    X: NDArray,
    X_tilde: NDArray,
    y: NDArray,
    *,
    feature_of: NDArray[np.intp],
    rng: Generator,
    sample_weight: NDArray | None = None,
    fake: Fake | None = None,
    lams: ArrayLike | None = None,
    loss: LossLike = None,
) -> Scores:
    """W along lambda as scores of shape (n_features, n_lams), so that folds, fits and draws average it as any score."""
    path = lambda_path(
        model,
        X,
        X_tilde,
        y,
        rng=rng,
        fake=fake,
        lams=lams,
        loss=loss,
        feature_of=feature_of,
        sample_weight=sample_weight,
    )
    return Scores(path.W, np.zeros_like(path.W))


def _check_length(argument: str, values: NDArray, n_features: int) -> NDArray:
    if values.shape != (n_features,):
        raise InputError(f"{argument} has shape {values.shape}: expected one entry for each of {n_features} features.")
    return values
