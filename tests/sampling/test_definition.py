"""check_definition sees what is wrong, says where, and passes what is right."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from tests.refusals import refuses

from knockoffs.errors import InputError
from knockoffs.sampling.definition import check_definition
from knockoffs.sampling.network import Identity

PAIRS = np.array(list(product(range(2), repeat=2)))
TABLE = np.array([[0.4, 0.1], [0.2, 0.3]])


@dataclass(frozen=True)
class Redraw:
    """The whole pair drawn again: reversible, hence right for a hidden node and wrong for an observed one."""

    table: np.ndarray = None
    kernel: np.ndarray = None

    def log_conditional(self, u, blanket):
        return np.log(TABLE[u[:, 0], u[:, 1]])

    def log_kernel(self, u_tilde, u, blanket):
        return self.log_conditional(u_tilde, blanket)


@dataclass(frozen=True)
class Smoothed(Redraw):
    """A kernel for a slightly other law."""

    def log_kernel(self, u_tilde, u, blanket):
        return np.log(0.999 * np.exp(self.log_conditional(u_tilde, blanket)) + 0.001 / 4)


@dataclass(frozen=True)
class Unnormalised(Redraw):
    def log_kernel(self, u_tilde, u, blanket):
        return self.log_conditional(u_tilde, blanket) + 0.1


def test_a_node_drawn_as_a_whole_is_right_for_hidden_nodes_only():
    assert check_definition(Redraw(), PAIRS, observed=False, sums_to_one=True) < 1e-12
    assert check_definition(Redraw(), PAIRS, feature_of=[0, 0]) < 1e-12  # or where the pair is one feature
    refuses(r"fails under the swap of coordinates \[1\].* at u = \[", check_definition, Redraw(), PAIRS)


def test_a_kernel_of_another_law_is_seen():
    refuses("fails under the swap of the whole node", check_definition, Smoothed(), PAIRS, observed=False)


def test_sums_are_checked_where_all_values_are_there():
    assert check_definition(Unnormalised(), PAIRS, observed=False) < 1e-12  # symmetric, and no probability
    refuses(r"Q\(. \| u, v\) sums to 1.105", check_definition, Unnormalised(), PAIRS, observed=False, sums_to_one=True)
    refuses("P.u . v. sums to 0.7", check_definition, Redraw(), PAIRS[[0, 3]], observed=False, sums_to_one=True)


def test_many_features_are_swapped_one_by_one():
    rng = np.random.default_rng(0)
    u = rng.integers(2, size=(5, 40))
    assert check_definition(Identity(), u, u) == 0.0
    assert check_definition(Identity(), u, 1 - u) == 0.0  # impossible before and after


def test_shapes_are_named():
    refuses(r"u has shape \(4,\): an observed node has values of shape", check_definition, Identity(), np.arange(4))
    with pytest.raises(InputError, match=r"blanket\['K'\] has 3 rows: expected one, or one for each of 16 pairs"):
        check_definition(Identity(), PAIRS, blanket={"K": np.zeros(3)})
    refuses(r"u has shape \(4, 2\) and u_tilde \(3, 2\)", check_definition, Identity(), PAIRS, PAIRS[:3])
