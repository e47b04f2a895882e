"""P^X by a name, a file, a network, a covariance or a fitted family: from what was asked for to what can be fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some
from knockoffs.registry import accepted_options, check_options, load
from knockoffs.sampling.network import BayesianNetwork
from knockoffs.table.table import Table, as_table, code_whole_numbers

DEFAULT_FEATURE_MODEL = "mixture"


@dataclass(frozen=True)
class GivenNetwork:
    """P^X that was written down as a Bayesian network."""

    network: BayesianNetwork

    def as_network(self) -> BayesianNetwork:
        """Return the network itself."""
        return self.network


def takes_labels(feature_model: Any) -> bool:
    """Whether a family, its fit or a fitted one, takes columns of labels, as codes: they are marked so."""
    return isinstance(feature_model, BayesianNetwork) or bool(_mark(feature_model, "takes_labels"))


def _mark(feature_model: Any, name: str) -> Any:
    function = feature_model.func if isinstance(feature_model, partial) else feature_model
    return getattr(function, name, None)


def load_feature_model(feature_model: Any) -> Any:
    """Family of a name, the network of a .bif file, or what was passed in."""
    if not isinstance(feature_model, str):
        return feature_model
    if feature_model.lower().endswith((".bif", ".bif.gz")):
        from knockoffs.features.discrete_network import read_network

        if not Path(feature_model).is_file():
            raise InputError(f"feature_model={feature_model!r}: there is no such file.")
        return read_network(feature_model)
    from knockoffs.features import FAMILIES

    return load(FAMILIES, "feature_model", feature_model)


def read_features(X: Any, feature_model: Any, *, argument: str = "X", min_rows: int = 1) -> Table:
    """Check a table and read it as a family wants it: labels as codes for those that take them.

    A fitted network has names for its states, and the labels get its codes.
    """
    states = getattr(feature_model, "states", None)
    levels = states if isinstance(states, Mapping) else None
    table = as_table(X, labels=takes_labels(feature_model), levels=levels, argument=argument, min_rows=min_rows)
    if hasattr(feature_model, "observing"):
        from knockoffs.features.discrete_network.columns import code_by_state

        return code_by_state(table, feature_model)
    one_kind = "emissions" in accepted_options(feature_model)  # a chain's sites hold all labels, or all numbers
    if not (_mark(feature_model, "takes_only_labels") or (one_kind and _has_labels(table))):
        return table
    coded = code_whole_numbers(table)
    _refuse_numbers(coded, argument)
    return coded


def _has_labels(table: Table) -> bool:
    return any(column.levels is not None for column in table.columns)


def _refuse_numbers(table: Table, argument: str) -> None:
    """Refuse columns that have no levels where every column must have them."""
    numbers = [j for j, column in enumerate(table.columns) if column.levels is None]
    if numbers:
        names, example = name_some(table.names[j] for j in numbers), table.X[0, numbers[0]]
        raise InputError(
            f"{argument} has columns of numbers, {names} (for instance {example:g}), and this feature model takes them "
            "as labels, at most 100 in a column, where any column holds labels: cut the numbers into classes, drop the "
            "columns, or use naive-bayes, which takes both."
        )


def feature_model_for(
    feature_model: Any,
    table: Table,
    options: Mapping[str, Any] | None = None,
    feature_of: NDArray[np.intp] | None = None,
) -> Any:
    """P^X as the procedure wants it: fitted, or a function that fits it.

    Parameters
    ----------
    feature_model : str, FeatureModel, BayesianNetwork, callable, or array of shape (n_columns, n_columns)
        A name in ``FAMILIES``; a fitted P^X; a network; how to fit one; or a covariance, which makes the features
        Gaussian around their means.
    table : Table
    options : mapping, optional
        Options of the fit, for instance ``{"diagonal": "mvr"}``.
    feature_of : array of int, shape (n_columns,), optional
        Feature of each column.
    """
    if _is_matrix(feature_model):
        return _from_covariance(feature_model, table, dict(options or {}), feature_of)
    feature_model = load_feature_model(feature_model)
    if isinstance(feature_model, BayesianNetwork):
        feature_model = GivenNetwork(feature_model)
    if hasattr(feature_model, "as_network") and not isinstance(feature_model, type):
        if options:
            raise InputError("feature_model_options are for a family that is yet to be fitted; this one is fitted.")
        if hasattr(feature_model, "observing"):
            from knockoffs.features.discrete_network.columns import observe_columns

            feature_model = observe_columns(feature_model, table.names, named=table.named)
        _check_width(feature_model.as_network().n_columns, table)
        return feature_model
    if not callable(feature_model):
        raise InputError(
            f"feature_model={feature_model!r} ({type(feature_model).__name__}): pass a name, a fitted P^X with "
            "as_network, a function that fits one, or a covariance matrix."
        )
    bound = check_options(feature_model, options, "feature_model_options")
    accepted = accepted_options(feature_model)
    if "kinds" in accepted and "kinds" not in bound and any(c.levels for c in table.columns):
        bound["kinds"] = _kinds(table)
    if "emissions" in accepted and _has_labels(table) and bound.setdefault("emissions", "discrete") != "discrete":
        raise InputError(f"emissions={bound['emissions']!r}, and X holds labels: use 'discrete'.")
    if "names" in accepted and "names" not in bound:
        bound["names"] = table.names
    return partial(feature_model, **bound) if bound else feature_model


def _is_matrix(feature_model: Any) -> bool:
    return isinstance(feature_model, np.ndarray | list) or hasattr(feature_model, "iloc")


def _from_covariance(covariance: Any, table: Table, options: dict[str, Any], feature_of: Any) -> Any:
    from knockoffs.features.gaussian import gaussian_features

    names = getattr(covariance, "columns", None)
    if names is not None and table.named and tuple(map(str, names)) != table.names:
        raise InputError("feature_model is a covariance whose columns are not those of X, in the order of X.")
    values = np.asarray(covariance, dtype=float)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise InputError(f"feature_model is a covariance of shape {values.shape}: expected a square matrix.")
    _check_width(len(values), table)
    check_options(gaussian_features, options, "feature_model_options")
    return gaussian_features(table.X.mean(axis=0), values, feature_of=feature_of, **options)


def _check_width(n_columns: int, table: Table) -> None:
    if n_columns != len(table.columns):
        raise InputError(f"feature_model has {n_columns} columns and X has {len(table.columns)}: they must agree.")


def _kinds(table: Table) -> list[str]:
    """Law of each column given the class: labels are categories, numbers what they look like."""
    from knockoffs.features.support import infer_kind

    kind = {True: "binary", False: "nominal"}
    return [
        kind[len(column.levels) <= 2] if column.levels else infer_kind(values)
        for column, values in zip(table.columns, table.X.T, strict=True)
    ]
