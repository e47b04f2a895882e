"""A fitted selector, to look at and to send: its words, its pictures, its page."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from knockoffs.errors import KnockoffWarning

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from numpy.random import Generator
    from numpy.typing import ArrayLike, NDArray

    from knockoffs.importance.paths.lambda_path import LambdaPath
    from knockoffs.selection import Selection
    from knockoffs.table.table import Table
    from knockoffs.table.target import Target
    from knockoffs.table.types import Frame


class Shown:
    """What a selector that has been fitted can show; it needs what stands here."""

    selection_: Selection
    table_: Table
    target_: Target
    estimator: object
    importance_options: Mapping[str, object] | None
    n_jobs: int | None
    random_state: object
    verbose: bool
    generator_: Generator

    def __str__(self) -> str:
        """First screen of a fitted selector; else its parameters."""
        if not hasattr(self, "selection_"):
            return repr(self)
        from knockoffs.report.summary import as_text

        return as_text(self.selection_.first_screen, self.target_.name)

    def explain(self) -> str:
        """Say in one paragraph what was selected and what it means, or why nothing was and what would help."""
        check_is_fitted(self)
        return self.selection_.explain()

    def to_frame(self, of: str = "features") -> Frame:
        """Table of the features or of the discoveries, surest first, in the library of X; of an array, pandas.

        Parameters
        ----------
        of : {"features", "discoveries"}
            "features" has a row for each feature, with its p-value or W and, in the column "discovery", the group it
            was found in. "discoveries" has a row for each discovery: a feature, or a group of which one matters.
        """
        import narwhals as nw

        from knockoffs.registry import find
        from knockoffs.table.frames import is_frame

        check_is_fitted(self)
        find({"features": 1, "discoveries": 1}, "of", of)
        selection, native = self.selection_, self.table_.native
        plain = "pandas" if find_spec("pandas") else "polars"
        backend: Any = nw.get_native_namespace(native) if is_frame(native) else plain
        columns = selection.discovery_columns
        if of == "features":
            order = selection.surest_first.tolist()
            columns = {name: [values[j] for j in order] for name, values in selection.feature_columns.items()}
        return nw.from_dict(columns, backend=backend).to_native()

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the answer: W with the threshold, or tests with their p-values, discoveries first."""
        from knockoffs.plots.features import plot_features

        check_is_fitted(self)
        return plot_features(self.selection_, ax=ax)

    def plot_tree(self, ax: Axes | None = None) -> Axes:
        """Draw the tree of groups that were tested, with the discoveries in it."""
        from knockoffs.plots.tree import plot_tree

        check_is_fitted(self)
        return plot_tree(self.selection_, self.table_, ax=ax)

    def plot_effect(self, feature: str, ax: Axes | None = None) -> Axes:
        """Draw the mean prediction of y along a discovered column; a model of y is fitted on the discoveries."""
        from knockoffs.plots.effects import effect_of, effects, plot_effect

        check_is_fitted(self)
        found = effects(self.selection_, self.table_, self.target_, most=len(self.selection_.feature_names))
        return plot_effect(effect_of(found, feature), ax=ax)

    def plot_paths(
        self,
        features: Sequence[str] | None = None,
        *,
        ax: Axes | None = None,
        lams: ArrayLike | None = None,
        fake: str = "swapped",
    ) -> Axes:
        """Draw W along lambda, for some features by name; the model of y is fitted again, P^X and knockoffs are not."""
        from knockoffs.plots.paths import plot_paths

        check_is_fitted(self)
        return plot_paths(self.lambda_path(lams, fake=fake), self.selection_, features=features, fake=fake, ax=ax)

    def plot_knockoffs(self, column: str, ax: Axes | None = None) -> Axes | NDArray[np.object_]:
        """Draw a column beside its knockoff: their margins, and their links to the columns nearest to it."""
        from knockoffs.plots.knockoffs import plot_knockoffs

        check_is_fitted(self)
        return plot_knockoffs(self.selection_, self.table_, column, ax=ax)

    def plot_stability(self, ax: Axes | None = None) -> Axes:
        """Draw how often the features are selected over the draws, with their e-values."""
        from knockoffs.plots.stability import plot_stability

        check_is_fitted(self)
        return plot_stability(self.selection_, ax=ax)

    def plot_verdict(self, ax: Axes | None = None) -> Axes:
        """Draw the checks of the knockoffs with their p-values, and the columns that are worst."""
        from knockoffs.plots.verdict import plot_verdict

        check_is_fitted(self)
        return plot_verdict(self.selection_, ax=ax)

    def lambda_path(self, lams: ArrayLike | None = None, *, fake: str = "swapped") -> LambdaPath:
        """W of every feature along lambda, for the knockoffs of the (first) draw; at 1 it is that of the score Swap."""
        from knockoffs.plots.paths import follow_selector
        from knockoffs.progress import showing

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
        """
        from knockoffs.report.provenance import python_of
        from knockoffs.report.write import check_report_place, facts_of, write_report

        check_is_fitted(self)
        check_report_place(path, force=force)
        tested = self.selection_.p_values is not None
        if paths and tested:  # as may be the default of a table of few columns
            said = "the report has no lambda paths, because features were tested: method='knockoffs' has them."
            warnings.warn(said, KnockoffWarning, stacklevel=2)
        followed = self.lambda_path() if paths and not tested else None
        write_report(replace(facts_of(self), python=python_of(self), path=followed), path, force=force)

    def _html_repr(self) -> str:
        """Return what a notebook shows: the answer of a fitted selector, else its parameters, as scikit-learn does."""
        from sklearn.utils import estimator_html_repr

        from knockoffs.report.page import answer_html

        if not hasattr(self, "selection_"):
            return estimator_html_repr(self)
        return answer_html(self.selection_, self.target_.name)
