"""What a fitted P^X can do: its density, its draws, and the network that its knockoffs are drawn by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.sampling.network import BayesianNetwork


class FeatureModel(Protocol):
    """A fitted P^X: a distribution. Options of sampling are arguments of ``as_network``."""

    def log_density(self, X: NDArray) -> NDArray:
        """Log density (or probability) of every row of X, shape (n,)."""
        ...

    def sample(self, n: int, rng: Generator) -> NDArray:
        """Draw n rows, shape (n, n_columns)."""
        ...

    @property
    def as_network(self) -> Callable[..., BayesianNetwork]:
        """``as_network(**how)``: the network whose observed leaves are the columns of X, built once for every ``how``.

        ``how`` are options of execution: ``n_jobs``, and what else the family names in its own signature.
        """
        ...


@runtime_checkable
class Conditional(Protocol):
    """A P^X that can draw one column given all the others, exactly."""

    def conditional(self, j: int, X: NDArray, rng: Generator, n_draws: int) -> NDArray:
        """Draws of X_j given the other columns of each row, shape (n_draws, n); column j of X is not looked at."""
        ...


@runtime_checkable
class Groupable(Protocol):
    """A P^X whose knockoffs depend on which columns are one feature, by a matrix D that is solved for them."""

    def regroup(self, feature_of: NDArray[np.intp], diagonal: str) -> FeatureModel:
        """Return the same law with knockoffs of other features, shape (n_columns,)."""
        ...


@dataclass(frozen=True)
class Prepared:
    """A law with some options of ``as_network`` settled beforehand, for callers that pass none."""

    law: FeatureModel
    how: Mapping[str, object] = field(default_factory=dict)

    def log_density(self, X: NDArray) -> NDArray:
        """Log density of the law."""
        return self.law.log_density(X)

    def sample(self, n: int, rng: Generator) -> NDArray:
        """Draw n rows of the law."""
        return self.law.sample(n, rng)

    def as_network(self, **how: object) -> BayesianNetwork:
        """Return the network of the law, by the settled options where others are not passed."""
        return self.law.as_network(**{**self.how, **how})


Law = TypeVar("Law")
How = ParamSpec("How")


def kept_per_how(
    build: Callable[Concatenate[Law, How], BayesianNetwork],
) -> Callable[Concatenate[Law, How], BayesianNetwork]:
    """``as_network`` of a frozen law whose networks are built once for every set of options, and kept with the law."""

    @wraps(build)
    def as_network(self: Law, /, *args: How.args, **how: How.kwargs) -> BayesianNetwork:
        kept = vars(self).setdefault("_networks", {})  # no field: not compared, not written down
        key = repr(sorted((name, np.asarray(value).tolist()) for name, value in how.items()))
        if key not in kept:
            kept[key] = build(self, *args, **how)
        return kept[key]

    return as_network
