"""Facts: everything that a page tells, gathered from a selection and what it was made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from knockoffs.importance.paths.lambda_path import LambdaPath
from knockoffs.record import DataFile
from knockoffs.report.formatting import LONGEST, number, shorten_names
from knockoffs.response.cox import held_out_concordance, martingale_residuals
from knockoffs.selection import Selection
from knockoffs.table.columns import Column, design
from knockoffs.table.table import Table
from knockoffs.table.target import Target

MOST_ROWS = 200  # features in the table; selection.csv has all


@dataclass(frozen=True)
class Facts:
    """What a page is made from.

    Parameters
    ----------
    selection : Selection
    table : Table, optional
        Its columns, with their kinds and missing cells.
    target : Target, optional
        For the direction in which features go with it.
    called : str, optional
        What the target is called.
    parameters : mapping, optional
        Options of the command that made it, as they are recorded.
    data : mapping, optional
        Name, SHA-256, rows and columns of the data file.
    python : str, optional
        Python lines that make it again, where no command does.
    versions : mapping
    warnings : sequence of str
    path : LambdaPath, optional
        W along lambda.
    """

    selection: Selection
    table: Table | None = None
    target: Target | None = None
    called: str | None = None
    parameters: Mapping[str, object] | None = None
    data: DataFile | None = None
    python: str | None = None
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
        owner = int(self.selection.pair.feature_of[j])
        return Column(self.selection.feature_names[owner])

    @cached_property
    def headings(self) -> dict[str, str]:
        """Columns of the table of features: what they hold, and what they are called."""
        selection = self.selection
        words = {"name": "feature", "selected": "selected" if selection.discoveries is None else "discovery"}
        if selection.scores is not None or not np.isnan(selection.W).all():
            words["W"] = "W"
        if selection.p_values is not None:
            words["p"] = "p-value"
        if selection.evidence is not None:
            words |= {"e": "e-value", "frequency": "frequency"}
        words["q"] = "q-value" if selection.evidence is None else "level"
        if self.effects is not None:
            words["effect"] = "in the model"
        if self.directions:
            words["direction"] = "with the target"
        return words

    @property
    def effects(self) -> NDArray | None:
        """Coefficient of each feature given all the others, in standard deviations, where the model has one."""
        scores = self.selection.scores
        return None if scores is None or scores.slopes is None else scores.slopes[0]

    def cells(self, feature: int) -> list[str]:
        """Cells of a feature after its name and whether it is selected, as they are read."""
        selection, evidence = self.selection, self.selection.evidence
        values: dict[str, str] = {
            "W": number(float(selection.W[feature])),
            "q": number(float(selection.q_values[feature])),
        }
        if selection.p_values is not None:
            values["p"] = number(float(selection.p_values[feature]))
        if evidence is not None:
            values["e"] = number(float(evidence.e_values[feature]))
            values["frequency"] = f"{100 * float(evidence.frequencies[feature]):.0f} %"
        if self.effects is not None:
            values["effect"] = arrow(float(self.effects[feature]))
        if "direction" in self.headings:
            values["direction"] = self.directions.get(int(feature), "")
        return [values[key] for key in self.headings if key in values]

    @cached_property
    def directions(self) -> dict[int, str]:
        """Direction in which each of the first features goes with the target, by the correlation of ranks.

        It is marginal: what a feature does given the others may differ, and for a feature of several columns or of
        labels without an order there is none.
        """
        target, pair = self.target, self.selection.pair
        if target is None or target.kind == "classes":
            return {}
        values = martingale_residuals(target.values) if target.kind == "survival" else _as_numbers(target.values)
        rows: slice | NDArray = slice(None) if target.observed is None else target.observed
        if values is None or len(pair) == 0 or len(pair.X[rows]) != len(values):
            return {}
        found = {}
        for feature in self.order[:MOST_ROWS].tolist():
            columns = self.columns_of(feature)
            if len(columns) == 1 and self.column(columns[0]).kind != "nominal":
                found[feature] = direction(np.asarray(pair.X[rows, columns[0]], dtype=float), values)
        return found

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

    >>> arrow(0.123), arrow(-2.0), arrow(0.0), arrow(float("nan"))
    ('↑ +0.12', '↓ −2', '0', '')
    """
    if np.isnan(value):
        return ""
    return "0" if value == 0 else f"{'↑' if value > 0 else '↓'} {value:+{written}}".replace("-", "−")


def direction(x: NDArray, y: NDArray) -> str:
    """Say whether y rises or falls with x, by the correlation of ranks.

    >>> direction(np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 3, 5])), direction(np.ones(4), np.arange(4.0))
    ('↑ +1.00', '')
    """
    from scipy.stats import rankdata

    a, b = (rankdata(v) - (len(v) + 1) / 2 for v in (x, y))
    scale = np.sqrt((a**2).sum() * (b**2).sum())
    if not scale > 0:
        return ""
    r = float((a * b).sum() / scale)
    return f"{'↑' if r > 0 else '↓'} {r:+.2f}".replace("-", "−")


def _as_numbers(values: NDArray) -> NDArray | None:
    """Values of the target as numbers; the larger of two labels is 1."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        levels, codes = np.unique(np.asarray(values).astype(str), return_inverse=True)
        return codes.astype(float) if len(levels) == 2 else None
