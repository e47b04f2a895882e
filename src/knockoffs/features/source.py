"""Where knockoffs come from: a family that is fitted, or what given.py holds, from whatever stands for P^X.

A source is a value; called with a table it gives the sampler, without a look at y.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator

from knockoffs.errors import ColumnsError, InputError, name_columns, name_some
from knockoffs.features import FAMILIES, Family, FeatureModel, family_of
from knockoffs.features.beside import COVARIATES, by_sites, fit_beside
from knockoffs.registry import check_options, find, imported
from knockoffs.sampling.sampler import KnockoffSampler, NetworkSampler
from knockoffs.table.auto_groups import runs
from knockoffs.table.coding import code_whole_numbers
from knockoffs.table.derived import drop_derived
from knockoffs.table.redundancy import (
    DEPENDENT,
    drop_constant,
    drop_dependent,
    refuse_determined,
    warn_of_constant,
    warn_of_dependent,
    warn_of_functions,
)
from knockoffs.table.table import Table, read_table
from knockoffs.table.types import Kinds


@dataclass(frozen=True)
class FittedSampler:
    """P^X settled for a table: the sampler of its knockoffs, the law it rests on, and what to say of it."""

    sampler: KnockoffSampler
    model: FeatureModel | None = None
    notes: Mapping[str, str] = field(default_factory=dict)


class KnockoffSource(Protocol):
    """How P^X is settled for a table."""

    def read(self, X: object, *, kinds: Kinds = None, argument: str = "X", min_rows: int = 1) -> Table:
        """Read a table as this source takes it, and refuse what it cannot use."""
        ...

    def __call__(self, table: Table, *, rng: Generator, n_jobs: int | None = None) -> FittedSampler:
        """Settle P^X for the table."""
        ...


@dataclass(frozen=True)
class Fitted:
    """A family that is fitted to the table."""

    family: Family
    options: Mapping[str, object] = field(default_factory=dict)  # of its fit

    def read(
        self, X: object, *, kinds: Kinds = None, argument: str = "X", min_rows: int = 1, beside: Sequence[str] = ()
    ) -> Table:
        """Labels as codes for families that take them; whole numbers too, where all columns are labels.

        Columns ``beside`` are covariates that are no part of P^X, and may hold labels in any case.
        """
        takes = self.family.takes
        table = read_table(X, kinds=kinds, argument=argument, min_rows=min_rows)
        check_takes(table, takes, argument, beside)
        if "codes" in takes or ("alike" in takes and has_labels(table, beside)):
            table = code_whole_numbers(table)
            refuse_numbers(table, argument)
        return replace(table, ordered=True) if "order" in takes else table

    def __call__(self, table: Table, *, rng: Generator, n_jobs: int | None = None) -> FittedSampler:
        """Fit the family; errors about columns get the columns' names."""
        again = partial(self, rng=rng, n_jobs=n_jobs)
        if table.covariates and by_sites(self):
            return settled(fit_beside(again, table, table.covariate_columns, COVARIATES))
        constant = warn_of_constant(table)
        if constant.size == len(table.columns):
            raise InputError("every column of X is constant: there is nothing to select from.")
        if constant.size and not {"constant", "fixed"} & set(self.family.takes):
            return settled(fit_beside(again, table, constant, ""), table=table)
        handed = self.handed(table)
        try:
            model = imported(self.family.fit)(table.X, rng=rng, n_jobs=n_jobs, **handed)
        except ColumnsError as error:
            raise error.named(table.names) from None
        except InputError:
            raise
        except (TypeError, ValueError, AttributeError) as error:
            if not self.options:
                raise
            options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
            raise InputError(f"the feature model could not be fitted with {options}: {error}") from error
        return settled(model, self.how(n_jobs), table)

    @property
    def names_columns(self) -> bool:
        """Whether the fit rests on columns by their names or places, so that none may be left out."""
        return "every" in self.family.takes or "parents" in self.options

    def how(self, n_jobs: int | None) -> dict[str, object]:
        """Options of execution."""
        threads = {"n_jobs": n_jobs} if "n_jobs" in self.family.how else {}
        return threads | {name: value for name, value in self.options.items() if name in self.family.how}

    def handed(self, table: Table) -> dict[str, Any]:
        """Options of the user, and what the family asks for of the table."""
        takes = self.family.takes
        handed = {name: value for name, value in self.options.items() if name not in self.family.how}
        if "groups" in takes and table.grouped:
            handed["feature_of"] = table.feature_of
        if "names" in takes:
            handed["names"] = table.names
        if "fixed" in takes:
            handed["covariates"] = table.covariate_columns
        if "kinds" in takes:
            handed["kinds"] = [column.kind for column in table.columns]
        if "alike" in takes and has_labels(table) and handed.setdefault("emissions", "discrete") != "discrete":
            raise InputError(f"emissions={handed['emissions']!r}, and X holds labels: use 'discrete'.")
        return handed


def fills_cells(model: object) -> bool:
    """Whether a fitted P^X draws missing cells, as it says by ``fills_missing``."""
    return bool(getattr(model, "fills_missing", False))


def in_order(model: object) -> bool:
    """Whether P^X is a chain along the columns, whose knockoffs can be drawn for groups of neighbours."""
    return bool(getattr(model, "groups_of_neighbours", False))


def settled(model: Any, how: Mapping[str, object] | None = None, table: Table | None = None) -> FittedSampler:
    """Sampler of a fitted P^X, and its own words about itself, with the columns' names.

    A chain is told the groups of the table, for they belong to how it is copied and not to its law.
    """
    if not (hasattr(model, "as_network") or hasattr(model, "as_sampler")):
        raise InputError(
            f"the fit of the feature model returned {type(model).__name__}: expected a law with as_network(), or a "
            "BayesianNetwork."
        )
    how, names = dict(how or {}), None if table is None else table.names
    if table is not None and table.grouped and in_order(model):
        how["feature_of"] = runs(table.feature_of)
    direct = hasattr(model, "as_sampler")  # what is no network over X brings its own sampler
    sampler = (
        model.as_sampler(**how) if direct else NetworkSampler(model.as_network(**how), getattr(model, "fill", None))
    )
    notes = {"feature_model": model.say(names)} if hasattr(model, "say") else {}
    return FittedSampler(sampler, model, notes)


def read_features(
    source: KnockoffSource,
    X: object,
    *,
    kinds: Kinds = None,
    groups: object = None,
    covariates: Sequence[str] | None = (),
    dependent: str = "refuse",
    every_column: bool = False,
    argument: str = "X",
    min_rows: int = 1,
) -> tuple[Table, dict[str, str]]:
    """Table as a source takes it, with its groups, without constant columns and, if asked for, without dependent ones.

    ``kinds``, ``groups``, ``covariates`` and ``dependent`` are as in ``KnockoffSelector``. With ``every_column``
    constant columns are kept, because knockoffs of every column are wanted. Errors call the table by ``argument``. The
    notes say how groups were found, how many cells are missing, and which columns were dropped.
    """
    find(dict.fromkeys(DEPENDENT), "dependent", dependent)
    beside: dict[str, Any] = {}
    if covariates and isinstance(source, Fitted) and by_sites(source):
        beside["beside"] = [covariates] if isinstance(covariates, str) else covariates
    table = source.read(X, kinds=kinds, argument=argument, min_rows=min_rows, **beside)
    table = table.with_covariates(covariates).with_groups(groups)
    notes = {"groups": table.groups.note} if table.groups is not None and table.groups.note else {}
    notes |= table.missing_note()
    if table.covariates:
        within = "in the model of y" if by_sites(source) else "in P^X and in the model of y"
        notes["covariates"] = (
            f"{name_some(table.covariates)}: {within}, where a penalty treats them as other "
            "columns; not tested, and without knockoffs in the model of y"
        )
    if isinstance(source, Fitted) and not (every_column or source.names_columns):
        table, constant = drop_constant(table)
        notes |= constant
    free = isinstance(source, Fitted) and "free" in source.family.takes
    if dependent == "refuse" or (dependent == "auto" and not free):
        refuse_determined(table)
        if free:
            warn_of_dependent(table)
            notes |= warn_of_functions(table)
        return table, notes
    if not isinstance(source, Fitted):
        raise InputError(
            f"dependent={dependent!r} is for a feature model that is fitted to {argument}; this one, or the knockoffs, "
            "came with all columns: drop the dependent ones from both."
        )
    table, dropped = drop_dependent(table, dependent)
    if not free:
        return table, notes | dropped
    table, derived = drop_derived(table, dependent)
    return table, notes | dropped | derived | warn_of_functions(table)


def knockoff_source(feature_model: Any, options: Mapping[str, object] | None = None) -> KnockoffSource:
    """Source of knockoffs from a family's name, a fitted model, a network, a covariance or given knockoffs.

    Parameters
    ----------
    feature_model : str, Family, FeatureModel, BayesianNetwork, callable, or array of shape (n_columns, n_columns)
        A name in ``FAMILIES``; the .bif file of a network; a fitted P^X; a network; how to fit one; or a covariance,
        which makes the features Gaussian around their means.
    options : mapping, optional
        Options of the fit, for instance ``{"diagonal": "mvr"}``.
    """
    from knockoffs.features.given import Covariance, GivenModel

    if isinstance(feature_model, np.ndarray | list) or hasattr(feature_model, "iloc"):
        return Covariance(feature_model, check_options(options, ("diagonal",), "feature_model_options"))
    if isinstance(feature_model, str):
        if not is_network_file(feature_model):
            return _fitted(find(FAMILIES, "feature_model", feature_model), options)
        feature_model = _read_network(feature_model)
    can_sample = hasattr(feature_model, "as_network") or hasattr(feature_model, "as_sampler")
    if can_sample and not isinstance(feature_model, type):
        if options:
            where = "give them where this one is made, as in gaussian_features(mean, covariance, diagonal='sdp')"
            raise InputError(f"feature_model_options are for a family that is yet to be fitted: {where}.")
        return GivenModel(feature_model)
    if not (callable(feature_model) or isinstance(feature_model, Family)):
        raise InputError(
            f"feature_model={reprlib.repr(feature_model)} ({type(feature_model).__name__}): pass a name, a fitted P^X "
            "with as_network, a function that fits one, a covariance matrix, or gaussian_features(mean, covariance)."
        )
    return _fitted(family_of(feature_model), options)


def _fitted(family: Family, options: Mapping[str, object] | None) -> Fitted:
    """Source of a family that is fitted, its options checked by name."""
    if family.options is None:  # a function of the user, which checks them itself
        return Fitted(family, check_options(options, None, "feature_model_options"))
    return Fitted(family, check_options(options, (*family.options, *family.how), "feature_model_options"))


def is_network_file(feature_model: str) -> bool:
    """Whether P^X is named by the file of a Bayesian network."""
    return feature_model.lower().endswith((".bif", ".bif.gz"))


def _read_network(path: str) -> FeatureModel:
    from knockoffs.features.network import read_network

    if not Path(path).is_file():
        raise InputError(f"feature_model={path!r}: there is no such file.")
    return read_network(path)


# What a source takes of a table


def check_takes(table: Table, takes: tuple[str, ...], argument: str, beside: Sequence[str] = ()) -> None:
    """Refuse columns that a family cannot model, by name, and say which can; labels ``beside`` its columns are fine."""
    if "labels" not in takes:
        plain = ("boolean", "number", "integer")
        labels = [c for c in table.columns if c.levels is not None and c.dtype not in plain and c.name not in beside]
        if labels:
            example = next(iter(labels[0].levels or ("",)))
            raise InputError(
                f"{argument} holds labels, not numbers, in {name_columns([c.name for c in labels])}, for instance "
                f"{example!r} in column {labels[0].name!r}. This feature model could not convert string to "
                f"float: use one that takes labels ({_families_that_take('labels')}), or drop the columns."
            )
    if "missing" not in takes and table.missing:
        empty = np.isnan(table.X)
        i, j = (int(k) for k in np.argwhere(empty)[0])
        bad = [table.names[int(k)] for k in np.flatnonzero(empty.any(axis=0))]
        raise InputError(
            f"{argument} contains NaN in {name_columns(bad)}, the first in row {i}, column {table.names[j]!r}: use a "
            f"feature model that takes missing cells ({_families_that_take('missing')}), or drop or impute these "
            "values before the selection; fill them in by a model of the features, not of the target."
        )


def _families_that_take(word: str) -> str:
    return ", ".join(repr(name) for name, family in FAMILIES.items() if word in family.takes) or "none yet"


def has_labels(table: Table, beside: Sequence[str] = ()) -> bool:
    """Whether any column holds labels, other than those ``beside`` P^X."""
    return any(column.levels is not None and column.name not in beside for column in table.columns)


def refuse_numbers(table: Table, argument: str) -> None:
    """Refuse columns that have no levels where every column must have them."""
    numbers = [j for j, column in enumerate(table.columns) if column.levels is None]
    if numbers:
        names, example = name_some(table.names[j] for j in numbers), table.X[0, numbers[0]]
        raise InputError(
            f"{argument} has columns of numbers, {names} (for instance {example:g}), and this feature model takes them "
            "as labels, at most 100 in a column, where any column holds labels: cut the numbers into classes, drop the "
            "columns, or use naive-bayes, which takes both."
        )


def check_width(n_columns: int, table: Table) -> None:
    """Refuse a table of another width than a given P^X."""
    if n_columns != len(table.columns):
        raise InputError(f"feature_model has {n_columns} columns and X has {len(table.columns)}: they must agree.")


def is_fixed(source: object) -> bool:
    """Whether a source of knockoffs takes the rows for a fixed design."""
    return "fixed" in getattr(getattr(source, "family", None), "takes", ())


def refuse_fixed(source: object) -> None:
    """Refuse a fixed design where nothing is selected."""
    if is_fixed(source):
        raise InputError(
            "feature_model='fixed' is for selections: its knockoffs are compared with X in a linear model of y alone. "
            "Use feature_model='gaussian'."
        )
