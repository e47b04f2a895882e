"""A table comes in: numbers, names, kinds of columns, and everything that is checked before the work starts.

Arrays, lists, pandas and polars frames all become one `Table`, whose ``X`` is an array of floats; `Table.decode`
turns an array of the same columns back into the format that came in. Everything a user can get wrong about the
data is refused here, in one pass, so that the rest of the package trusts what it is handed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, count, unknown_option
from knockoffs.table.auto_groups import auto_groups
from knockoffs.table.cells import Problem
from knockoffs.table.column_checks import (
    suspicious_columns,
    warn_of_indexes,
    warn_of_lost_digits,
    warn_of_rows,
    warn_of_stand_ins,
    warn_of_words,
    without_index,
)
from knockoffs.table.columns import Column, design, overrule, recognise_kinds
from knockoffs.table.decoding import decimals_of, decode_array, decode_frame
from knockoffs.table.frames import SomeColumns, is_frame, keep_columns, open_frame, read_columns, table_array
from knockoffs.table.groups import Groups, as_groups, cuts, number_groups, prune
from knockoffs.table.moments import MOMENTS, to_units, unit_of
from knockoffs.table.types import Kinds

MIN_ROWS = 5  # one row for each fold of the cross-validated models


class InputTypeError(InputError, TypeError):
    """A value that is neither a number nor a label."""


@dataclass(frozen=True)
class Derived:
    """A column that others determine: no feature, but a model of y may use it where its sources are given."""

    column: Column
    values: NDArray[np.float64]  # shape (n,)
    sources: tuple[str, ...]  # columns of the table that determine it


@dataclass(frozen=True)
class Table:
    """A table that was read and checked.

    Parameters
    ----------
    X : array of float, shape (n, n_columns)
        Numbers, days where a column holds dates, and codes 0, 1, ... where it holds labels. NaN where a cell is
        missing; infinity is refused.
    columns : tuple of Column
    named : bool
        Whether the names came with the table; a plain array gets x0, x1, ...
    native : object
        What came in; its format, dtypes and index are those that `decode` restores.
    groups : Groups, optional
        Which columns are one feature, where a feature has several.
    ordered : bool
        Whether the columns follow each other, as sites of a chromosome do: automatic groups are then of neighbours.
    covariates : tuple of str
        Columns that are part of P^X and of the model of y, and no features.
    derived : tuple of Derived
        Columns that are left out because others determine them.
    """

    X: NDArray[np.float64]
    columns: tuple[Column, ...]
    named: bool = False
    native: Any = field(default=None, repr=False)
    groups: Groups | None = None
    ordered: bool = False
    covariates: tuple[str, ...] = ()
    derived: tuple[Derived, ...] = ()

    def __len__(self) -> int:
        return len(self.X)

    @property
    def grouped(self) -> bool:
        """Whether a feature owns several columns."""
        return self.groups is not None

    @cached_property
    def feature_of(self) -> NDArray[np.intp]:
        """Feature that owns each column, shape (n_columns,); covariates are numbered after the last feature."""
        owner = np.arange(len(self.columns)) if self.groups is None else self.groups.feature_of
        return np.argsort(self._features_first)[owner] if self.covariates else owner

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name of each feature: its column's, or its group's; covariates are none."""
        names = self.names if self.groups is None else self.groups.names
        if not self.covariates:
            return names
        return tuple(names[owner] for owner in self._features_first[: len(names) - len(self.covariates)])

    @cached_property
    def covariate_columns(self) -> NDArray[np.intp]:
        """Places of the covariates among the columns."""
        return np.flatnonzero([name in self.covariates for name in self.names])

    @property
    def _features_first(self) -> NDArray[np.intp]:
        """Columns or groups in their order, covariates last."""
        owner = np.arange(len(self.columns)) if self.groups is None else self.groups.feature_of
        last = np.zeros(int(owner.max()) + 1, dtype=bool)
        last[owner[self.covariate_columns]] = True
        return np.argsort(last, kind="stable")

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """What the columns hold: "continuous", "count", "ordinal", "binary" or "nominal"."""
        return tuple(column.kind for column in self.columns)

    @cached_property
    def missing(self) -> bool:
        """Whether any cell is missing."""
        return bool(np.isnan(self.X.sum())) and bool(np.isnan(self.X).any())

    def missing_note(self) -> dict[str, str]:
        """Note on the cells that are missing and will be drawn, under "missing"; empty if none is."""
        if not self.missing:
            return {}
        n = sum(column.n_missing for column in self.columns)
        said = (
            f"{count(n, 'cell is', 'cells are')} missing ({n / self.X.size:.2g} of all) and drawn from P^X given the "
        )
        said += "other cells of their row: the completed columns are tested, and cells must be missing at random."
        return {"missing": said}

    def with_groups(self, groups: object) -> Table:
        """Table some of whose columns are one feature; "auto" joins those whose knockoffs would be twins.

        >>> read_table([[1, 2, 3], [2, 2, 1], [2, 1, 1]]).with_groups({"pair": ["x0", "x1"]}).feature_names
        ('pair', 'x2')
        """
        if groups is None:
            return self
        if isinstance(groups, str) and groups == "auto":
            return replace(self, groups=auto_groups(self.correlation(), self.names, ordered=self.ordered))
        found = as_groups(groups, self.names)
        for j in self.covariate_columns:
            if (found.feature_of == found.feature_of[j]).sum() > 1:
                group = found.names[found.feature_of[j]]
                raise InputError(
                    f"covariates: {self.names[j]!r} is in the group {group!r}, and a covariate is no part of a "
                    "feature. Take it out of groups or of covariates."
                )
        if found.tree is not None:
            found = replace(found, tree=prune(found.tree, set(self.names) - set(self.covariates)))
        return replace(self, groups=found)

    def correlation(self, *, shrunk: float = 0.01) -> NDArray[np.float64]:
        """Correlations of the normal scores of the columns, missing cells at their mean; covariates have none.

        They are ``shrunk`` a little towards none, so that columns that determine one another have an inverse.
        """
        from scipy.stats import norm, rankdata

        scores, alone = np.zeros(self.X.shape), self.covariate_columns
        for j, x in enumerate(self.X.T):
            seen = ~np.isnan(x)
            if seen.any():
                scores[seen, j] = norm.ppf((rankdata(x[seen]) - 0.5) / seen.sum())
        scores -= scores.mean(axis=0)
        sd = scores.std(axis=0)
        scores /= np.where(sd > 0, sd, 1.0)
        found: NDArray[np.float64] = (1 - shrunk) * scores.T @ scores / len(scores)
        np.fill_diagonal(found, 1.0)
        found[alone], found[:, alone] = 0.0, 0.0
        found[alone, alone] = 1.0
        return found

    def coarser_groups(self, *, cut: float = 0.8, most_columns: int = 2000) -> tuple[Groups, ...]:
        """Coarser partitions of the columns, the finest first: those of its groups, or one that joins near copies.

        Near copies have an average |correlation| of ``cut``; they are looked for where no groups were given and there
        are at most ``most_columns``.

        >>> x, z = np.random.default_rng(0).standard_normal((2, 40))
        >>> read_table(np.column_stack([x, z, x**3])).coarser_groups()[0].feature_of
        array([0, 1, 0])
        """
        if self.groups is None:
            R = self.correlation() if len(self.columns) <= most_columns else np.eye(1)
            if np.abs(R - np.eye(len(R))).max() < cut:
                return ()
            return (auto_groups(R, self.names, cut=cut, ordered=self.ordered),)
        if self.groups.tree is None:
            labels = [part.tolist() for part in self.groups.coarser]
        else:
            group_of = [{name: g for g, part in enumerate(parts) for name in part} for parts in cuts(self.groups.tree)]
            labels = [[found.get(name) for name in self.names] for found in group_of]  # covariates are in none
        return tuple(number_groups(part, self.names) for part in labels)

    def with_covariates(self, names: Sequence[str] | None) -> Table:
        """Table some of whose columns are covariates; it has no groups yet.

        >>> read_table([[1, 2, 3], [2, 2, 1], [2, 1, 1]]).with_covariates(["x1"]).feature_names
        ('x0', 'x2')
        """
        listed = dict.fromkeys([names] if isinstance(names, str) else [str(name) for name in names or ()])
        for name in listed:
            if name not in self.names:
                raise unknown_option("covariates", name, self.names)
        return replace(self, covariates=tuple(name for name in self.names if name in listed)).demand_features()

    def demand_features(self) -> Table:
        """Table itself, if a column is left to test."""
        if self.covariates and len(self.covariates) == len(self.columns):
            raise InputError("covariates: no column is left to test. Leave out those that are features.")
        return self

    def keep(self, kept: NDArray[np.bool_]) -> Table:
        """Table of some of the columns, under their names; a group keeps those of its columns that stay."""
        columns = tuple(column for column, stays in zip(self.columns, kept, strict=True) if stays)
        groups = None if self.groups is None else self.groups.keep(kept)
        native = None if self.native is None else keep_columns(self.native, kept)
        covariates = tuple(column.name for column in columns if column.name in self.covariates)
        some = replace(self, X=self.X[:, kept], columns=columns, native=native, groups=groups, covariates=covariates)
        return some.demand_features()

    def without(self, names: Sequence[str]) -> Table:
        """Table without some of its columns.

        >>> read_table([[1, 2, 3], [2, 2, 1], [2, 1, 1]]).without(["x1"]).names
        ('x0', 'x2')
        """
        return self.keep(np.array([name not in names for name in self.names]))

    def without_determined(self, relations: Mapping[int, NDArray[np.intp]]) -> Table:
        """Table without columns that others determine, which it keeps aside for models of y.

        >>> table = read_table([[1, 1, 2], [2, 4, 4], [3, 9, 6]])
        >>> table = table.without_determined({2: np.array([1]), 1: np.array([0])})
        >>> table.names, [(one.column.name, one.sources) for one in table.derived]
        (('x0',), [('x2', ('x0',)), ('x1', ('x0',))])
        """
        made_of = {self.names[j]: [self.names[k] for k in sources] for j, sources in relations.items()}
        aside = [(self.columns[j], self.X[:, j], made_of[self.names[j]]) for j in relations]
        aside += [(one.column, one.values, list(one.sources)) for one in self.derived]

        def kept_sources(names: Sequence[str]) -> set[str]:
            met = dict.fromkeys(names)  # each once: many columns may be functions of many that are functions again
            for name in (queue := list(met)):
                new = [source for source in made_of.get(name, ()) if source not in met]
                met.update(dict.fromkeys(new))
                queue += new
            return {name for name in met if name not in made_of}

        derived = tuple(Derived(column, x, tuple(sorted(kept_sources(names)))) for column, x, names in aside)
        return replace(self.without(list(made_of)), derived=derived)

    def derived_without(self, columns: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return derived columns that do not depend on some columns, as a model of y takes them, without gaps."""
        away = {self.names[j] for j in columns}
        some = [one for one in self.derived if away.isdisjoint(one.sources)]
        if not some:
            return np.empty((len(self), 0))
        X = np.column_stack([one.values for one in some])
        labels = np.array([one.column.kind == "nominal" for one in some])  # a missing label has no indicator
        return design([one.column for one in some])(np.where(np.isnan(X) & ~labels, np.nanmedian(X, axis=0), X))

    def rows(self, which: NDArray | slice) -> Table:
        """Take some of the rows; ``decode`` then gives back no index."""
        derived = tuple(replace(one, values=one.values[which]) for one in self.derived)
        return replace(self, X=self.X[which], derived=derived)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def decode(self, X: NDArray) -> Any:
        """X, shape (n, n_columns), in the format that came in: an array, or a frame with its names, dtypes and index.

        A column of integers stays one where its values are whole numbers, and becomes a column of floats otherwise.
        Dates and durations that were whole days, hours, minutes or seconds stay so, and numbers with decimals get no
        more of them than the column has. NaN is a missing cell again.

        >>> table = read_table([[1.5, "yes"], [2.5, "no"]])
        >>> table.X.tolist()
        [[1.5, 1.0], [2.5, 0.0]]
        >>> table.decode(table.X).tolist()
        [[1.5, 'yes'], [2.5, 'no']]
        """
        X = self._in_own_units(X)
        decode = decode_frame if is_frame(self.native) else decode_array
        return decode(self.native, self.columns, X)

    def _in_own_units(self, X: NDArray) -> NDArray:
        """Round dates and durations to the unit that they came in, numbers to their decimals: so should knockoffs."""
        rounded = {}
        for j, column in enumerate(self.columns):
            if column.dtype in MOMENTS and column.levels is None:
                rounded[j] = to_units(X[:, j], unit_of(self.X[:, j]))
            elif column.dtype == "number" and column.levels is None and (decimals := decimals_of(self.X[:, j])):
                rounded[j] = np.round(X[:, j], decimals)
        X = X.copy() if rounded else X
        for j, values in rounded.items():
            X[:, j] = values
        return X


def read_table(X: object, *, kinds: Kinds = None, argument: str = "X", min_rows: int = 1) -> Table:
    """Read a table: numbers, labels, booleans, dates, missing cells, and the kind of every column.

    Parameters
    ----------
    X : array, masked array, list of rows, pandas or polars DataFrame, shape (n, n_columns); or a Table
        Missing cells may be NaN, None, pandas' NA or NaT, polars' null or masked.
    kinds : mapping of column names to kinds, optional
        Overrules what was recognised: "continuous", "count", "ordinal", "binary" or "nominal", or a list of a
        column's labels in their order, which is ordinal.
    argument : str
        What to call the table in errors.
    min_rows : int
        Fewest rows that will do.

    Raises
    ------
    InputError
        For columns that cannot be used, all of them in one error: identifiers and free text, amounts as text, labels
        among numbers, infinity, too few cells. And for what is no table.

    Warns
    -----
    KnockoffWarning
        For words that are taken as missing cells, numbers so far from zero that digits are lost, an index that is left
        out, a column that counts the rows, and rows without any value.

    >>> table = read_table([[1.5, "yes"], [2.5, "no"], [None, "yes"], [0.5, "no"]])
    >>> table.X.tolist()
    [[1.5, 1.0], [2.5, 0.0], [nan, 1.0], [0.5, 0.0]]
    >>> [column.kind for column in table.columns]
    ['continuous', 'binary']
    """
    if isinstance(X, Table):
        return _with_kinds(X, kinds, argument)
    if is_frame(X):
        X = without_index(X, argument)
    raw = read_columns(X, argument)
    _check_shape(raw.X, argument, min_rows)
    columns = recognise_kinds(raw.X, raw.columns)
    refuse([*raw.problems, *suspicious_columns(raw, columns, kinds or {})], argument)
    warn_of_words(raw, argument)
    warn_of_indexes(raw, argument)
    warn_of_stand_ins(raw, argument)
    warn_of_lost_digits(raw, argument)
    warn_of_rows(raw.X, argument)
    native = X.values if isinstance(X, SomeColumns) else X
    return _with_kinds(Table(raw.X, columns, raw.named, native), kinds, argument)


def _with_kinds(table: Table, kinds: Kinds, argument: str) -> Table:
    if not kinds:
        return table
    X, columns = overrule(table.X, table.columns, kinds, argument)
    return replace(table, X=X, columns=columns)


def unusable_columns(X: object) -> dict[str, str]:
    """Say what is wrong with the columns of a table that cannot be used, by name."""
    raw = read_columns(X, "the table")
    problems = [*raw.problems, *suspicious_columns(raw, recognise_kinds(raw.X, raw.columns), {})]
    return {one.name: f"column {one.name!r} of the table {one.what}: {one.remedy}." for one in problems}


def refuse(problems: Sequence[Problem], argument: str, most: int = 10) -> None:
    """Raise one error for all columns that cannot be used."""
    if not problems:
        return
    error = InputTypeError if any(problem.foreign for problem in problems) else InputError
    names = [problem.name for problem in problems]
    if len(problems) == 1:
        lines = [f"column {names[0]!r} of {argument} {problems[0].what}: {problems[0].remedy}."]
    else:
        lines = [f"{argument} has {len(problems)} columns that cannot be used as they are:"]
        lines += [f"  {problem.name!r} {problem.what}: {problem.remedy}." for problem in problems[:most]]
        lines += [f"  and {len(problems) - most} more."] if len(problems) > most else []
    remedy = [f"To leave {'it' if len(names) == 1 else 'them'} out: drop={names!r}, or --drop on the command line."]
    raise error("\n".join(lines + remedy * (len(names) <= 5 * most)))


def _check_shape(X: NDArray, argument: str, min_rows: int) -> None:
    n, p = X.shape
    if p == 0:
        raise InputError(f"{argument} has 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required.")
    if n < min_rows:
        raise InputError(f"{argument} has n_samples={n} rows: at least {min_rows} are needed.")


# ---- columns that a user leaves out, before the table is read --------------------------------------------------------
def without_columns(X: object, names: Sequence[str] | None) -> object:
    """X without some of its columns, which are not looked at; the others keep their names."""
    if names is None or not len(names):
        return X
    listed = dict.fromkeys([names] if isinstance(names, str) else [str(name) for name in names])
    columns = names_of(X)
    known = set(columns)
    for name in listed:
        if name not in known:
            raise unknown_option("drop", name, columns)
    kept = np.array([name not in listed for name in columns])
    if not kept.any():
        raise InputError("drop: no column is left. Leave out those that are features.")
    if isinstance(X, Table):
        return X.keep(kept)
    some = keep_columns(X.values if isinstance(X, SomeColumns) else X, kept)
    if not isinstance(some, np.ndarray):
        return some
    return SomeColumns(some, tuple(name for name in columns if name not in listed))


def names_of(X: object) -> list[str]:
    """Names of the columns of a table as it came; x0, x1, ... of an array."""
    if isinstance(X, Table | SomeColumns):
        return list(X.names)
    if is_frame(X):
        return list(open_frame(X).columns)
    return [f"x{j}" for j in range(table_array(X, "X").shape[1])]


def columns_of(features: NDArray[np.bool_], table: Table, names: Sequence[str]) -> NDArray[np.bool_]:
    """Columns of X, as it came with all its names, that belong to some features of the table, and its covariates."""
    kept = np.append(features, np.ones(len(table.covariates), dtype=bool))  # covariates are numbered last
    return np.isin(names, np.array(table.names)[kept[table.feature_of]])
