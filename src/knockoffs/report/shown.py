"""A fitted selector, to look at and to send: its words, its pictures, its page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from knockoffs.importance.paths.lambda_path import LambdaPath
from knockoffs.progress import showing
from knockoffs.selection import Selection

if TYPE_CHECKING:
    from knockoffs.table.table import Table


class Shown:
    """What a selector that has been fitted can show; it needs ``selection_``, ``table_`` and ``verbose``."""

    selection_: Selection
    table_: Table
    verbose: bool

    def explain(self) -> str:
        """Say in one paragraph what was selected and what it means, or why nothing was and what would help."""
        check_is_fitted(self)
        return self.selection_.explain()

    def plot(self, ax: object = None) -> Any:
        """Draw W of the features with the largest |W|, and the threshold; returns the axes (matplotlib)."""
        from knockoffs.plots.features import plot_features

        check_is_fitted(self)
        return plot_features(self.selection_, ax=ax)

    def plot_paths(self, features: Sequence[str] | None = None, *, ax: object = None, **options: Any) -> Any:
        """Draw W along lambda, for some features by name; the model of y is fitted again, P^X and knockoffs are not."""
        from knockoffs.plots.paths import plot_paths

        check_is_fitted(self)
        return plot_paths(self.lambda_path(**options), self.selection_, features=features, ax=ax)

    def plot_knockoffs(self, column: str, ax: object = None) -> Any:
        """Draw a column beside its knockoff: their margins, and their links to the columns nearest to it."""
        from knockoffs.plots.knockoffs import plot_knockoffs

        check_is_fitted(self)
        return plot_knockoffs(self.selection_, self.table_, column, ax=ax)

    def plot_stability(self, ax: object = None) -> Any:
        """Draw how often the features are selected over the draws, with their e-values."""
        from knockoffs.plots.stability import plot_stability

        check_is_fitted(self)
        return plot_stability(self.selection_, ax=ax)

    def plot_verdict(self, ax: object = None) -> Any:
        """Draw the checks of the knockoffs with their p-values, and the columns that are worst."""
        from knockoffs.plots.verdict import plot_verdict

        check_is_fitted(self)
        return plot_verdict(self.selection_, ax=ax)

    def lambda_path(self, lams: Any = None, *, fake: str = "swapped") -> LambdaPath:
        """W of every feature along lambda, for the knockoffs of the (first) draw; at 1 it is that of the score Swap."""
        from knockoffs.plots.paths import follow_selector

        check_is_fitted(self)
        with showing(bool(self.verbose)):
            return follow_selector(self, lams, fake)

    def report(self, path: str | os.PathLike[str], *, paths: bool = False, force: bool = False) -> None:
        """Write the answer as a page, one file that opens in any browser without a network.

        Parameters
        ----------
        path : str or path
            Ends in .html. An earlier report is replaced; another file only with ``force``.
        paths : bool
            Whether lambda paths are followed for it, which fits the model of y again.
        force : bool
        """
        from knockoffs.report.provenance import python_of
        from knockoffs.report.write import check_report_place, facts_of, write_report

        check_is_fitted(self)
        check_report_place(path, force=force)
        followed = self.lambda_path() if paths else None
        write_report(facts_of(self, python=python_of(self), path=followed), path, force=force)

    def _html_repr(self) -> str:
        """Return what a notebook shows: the answer of a fitted selector, else its parameters, as scikit-learn does."""
        from sklearn.utils import estimator_html_repr

        from knockoffs.report.notebook import answer_html

        return answer_html(self.selection_) if hasattr(self, "selection_") else estimator_html_repr(self)
