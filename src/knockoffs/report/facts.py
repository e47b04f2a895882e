"""Facts: everything that a page tells, gathered from a selection and what it was made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from knockoffs.importance.paths.lambda_path import LambdaPath
from knockoffs.plots.knockoffs import rank_correlations
from knockoffs.plots.style import LONGEST
from knockoffs.record import DataFile
from knockoffs.report.formatting import number, shorten_names
from knockoffs.response.cox import held_out_concordance, martingale_residuals
from knockoffs.selection import Selection
from knockoffs.table.columns import Column, design
from knockoffs.table.table import Table
from knockoffs.table.target import Target

MOST_ROWS = 200  # features in the table; selection.csv has all


@dataclass(frozen=True)
class Facts:
    """What a page is made from."""

    selection: Selection
    table: Table | None = None
    target: Target | None = None
    called: str | None = None  # what the target is called
    parameters: Mapping[str, object] | None = None  # options of the command that made it, as they are recorded
    data: DataFile | None = None
    python: str | None = None  # Python lines that make it again, where no command does
    versions: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    path: LambdaPath | None = None

    @property
    def order(self) -> NDArray[np.intp]:
        """Features, the surest first."""
        return self.selection.surest_first

    @cached_property
    def long_names(self) -> tuple[str, ...]:
        """Names that have to be shortened where they stand in sentences."""
        columns = () if self.table is None else self.table.names
        return tuple(name for name in dict.fromkeys((*self.selection.feature_names, *columns)) if len(name) > LONGEST)

    def sentence(self, words: str) -> str:
        """Words in which names of features are short."""
        return shorten_names(words, self.long_names)

    def columns_of(self, feature: int) -> list[int]:
        """Columns that a feature owns."""
        return np.flatnonzero(self.selection.pair.feature_of == feature).tolist()

    def column(self, j: int) -> Column:
        """Return column j, by its name at least."""
        if self.table is not None:
            return self.table.columns[j]
        return Column(self.selection.feature_names[int(self.selection.pair.feature_of[j])])

    @cached_property
    def cells(self) -> dict[str, list[str]]:
        """Table of the features that are listed, by column: name, whether it is selected, and numbers to be read."""
        selection, evidence, rows = self.selection, self.selection.evidence, self.order[:MOST_ROWS]
        groups = [one for one in selection.discoveries or () if len(one.features) > 1]
        group_of = {name: str(one) for one in groups for name in one.features}
        names = [selection.feature_names[j] for j in rows]
        chosen = [
            group_of.get(name, "yes") if selection.selected[j] else "" for j, name in zip(rows, names, strict=True)
        ]

        def written(values: NDArray) -> list[str]:
            return [number(float(values[j])) for j in rows]

        found = {"feature": names, "selected" if selection.discoveries is None else "discovery": chosen}
        if selection.scores is not None or not np.isnan(selection.W).all():
            found["W"] = written(selection.W)
        if selection.p_values is not None:
            found["p-value"] = written(selection.p_values)
        if evidence is not None:
            found["e-value"] = written(evidence.e_values)
            found["frequency"] = [f"{100 * evidence.frequencies[j]:.0f} %" for j in rows]
        found["q-value" if evidence is None else "level"] = written(selection.q_values)
        slopes = None if selection.scores is None else selection.scores.slopes
        if slopes is not None:  # coefficients given all the others, in standard deviations
            found["in the model"] = [arrow(float(slopes[0][j])) for j in rows]
        if self.directions:
            found["with the target"] = [self.directions.get(int(j), "") for j in rows]
        return found

    @cached_property
    def directions(self) -> dict[int, str]:
        """Direction in which each of the first features goes with the target, by the correlation of ranks.

        It is marginal: what a feature does given the others may differ, and for a feature of several columns or of
        labels without an order there is none.
        """
        target, pair = self.target, self.selection.pair
        if target is None or target.kind == "classes" or not len(pair):
            return {}
        values = martingale_residuals(target.values) if target.kind == "survival" else _as_numbers(target.values)
        X = pair.X if target.observed is None else pair.X[target.observed]
        if values is None or len(X) != len(values):
            return {}
        owned = {int(j): self.columns_of(j) for j in self.order[:MOST_ROWS]}
        alone = {j: own[0] for j, own in owned.items() if len(own) == 1 and self.column(own[0]).kind != "nominal"}
        links = rank_correlations(np.asarray(X[:, list(alone.values())], dtype=float), values)
        return {j: arrow(float(r), ".2f") for j, r in zip(alone, links, strict=True)}

    @property
    def concordance(self) -> float | None:
        """Held-out concordance of a Cox model of all features and covariates with a survival time; None for others."""
        if self.target is None or self.table is None or self.target.kind != "survival" or not len(self.selection.pair):
            return None
        X = design(self.table.columns)(np.asarray(self.selection.pair.X[self.target.known_rows], dtype=float))
        return held_out_concordance(X, self.target.values)

    @property
    def high_label(self) -> str | None:
        """What the larger of two labels of the target is called."""
        if self.target is None or self.target.kind != "binary":
            return None
        return str(np.unique(self.target.values)[-1])


def arrow(value: float, written: str = ".2g") -> str:
    """Up or down, and by how much; nothing where there is no direction.

    >>> arrow(0.123), arrow(-2.0), arrow(-0.001, ".2f"), arrow(float("nan"))
    ('↑ +0.12', '↓ −2', '0', '')
    """
    if np.isnan(value):
        return ""
    said = f"{value:+{written}}"
    return "0" if float(said) == 0 else f"{'↑' if value > 0 else '↓'} {said}".replace("-", "−")


def _as_numbers(values: NDArray) -> NDArray | None:
    """Values of the target as numbers; the larger of two labels is 1."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        levels, codes = np.unique(np.asarray(values).astype(str), return_inverse=True)
        return codes.astype(float) if len(levels) == 2 else None
