"""Columns and nodes are matched by name and label, or refused: never by place where there are names."""

import numpy as np
import pandas as pd
import pytest

from knockoffs.errors import InputError
from knockoffs.features.network import DiscreteNetwork
from knockoffs.features.network.model import observe_columns
from knockoffs.features.source import knockoff_source

PARENTS = {"smoke": (), "ill": ("smoke",)}
TABLES = {"smoke": [0.1, 0.9], "ill": [[0.8, 0.2], [0.05, 0.95]]}
NUMBERS = DiscreteNetwork(PARENTS, TABLES, states={"smoke": ("1", "0"), "ill": ("1", "0")})
WORDS = DiscreteNetwork(PARENTS, TABLES, states={"smoke": ("yes", "no"), "ill": ("yes", "no")})


def knockoffs(model, X, seed=0):
    source = knockoff_source(model)
    table = source.read(X)
    sampler = source(table, rng=np.random.default_rng(seed)).sampler
    return table.decode(sampler.sample(table.X, np.random.default_rng(seed)).X_tilde)


@pytest.mark.parametrize("kind", [int, float, str, bool])
def test_states_called_by_numbers_are_matched_by_them(kind):
    """State "1" is the first, and 1 in the table: P(1) is .1 in X and in the knockoffs, not .9 (5 errors of .007)."""
    names = ("True", "False") if kind is bool else ("1", "0")
    model = DiscreteNetwork(PARENTS, TABLES, states={"smoke": names, "ill": names})
    codes = model.sample(2000, np.random.default_rng(1))
    frame = pd.DataFrame(1 - codes, columns=["smoke", "ill"]).astype(kind)
    drawn = knockoffs(model, frame)
    assert list(drawn.dtypes) == list(frame.dtypes)
    share = (drawn["smoke"].astype(str).str[:1].isin(["1", "T"])).mean()
    assert share == pytest.approx(0.1, abs=0.035)


def test_a_plain_array_is_matched_by_the_names_of_states_too():
    X = 1 - NUMBERS.sample(2000, np.random.default_rng(1))
    assert knockoffs(NUMBERS, X)[:, 0].mean() == pytest.approx(0.1, abs=0.035)
    with pytest.raises(InputError, match=r"row 3: 2 is no state of 'smoke' \(1, 0\)"):
        knockoffs(NUMBERS, np.array([[0, 0], [1, 1], [0, 0], [2, 0]]))


def test_numbers_for_states_with_other_names_are_refused_in_a_named_table():
    with pytest.raises(InputError, match=r"column 'smoke' of X holds numbers \(for instance 1\).*called 'yes', 'no'"):
        knockoffs(WORDS, pd.DataFrame({"smoke": [1, 0], "ill": ["yes", "no"]}))
    assert knockoffs(WORDS, np.array([[0, 1], [1, 1]])).shape == (2, 2)  # codes, as the network's own sample gives them


def test_a_network_without_a_column_of_the_table_is_refused():
    """Used by place it would give P(yes) of other nodes."""
    with pytest.raises(InputError, match="columns 'a', 'b' of X are no nodes of the network, which has 'smoke', 'ill'"):
        knockoffs(WORDS, pd.DataFrame({"a": ["yes", "no"], "b": ["yes", "no"]}))
    assert observe_columns(WORDS, ("x0", "x1"), named=False) is WORDS
    assert observe_columns(WORDS, ("ill",)).observed == ("ill",)
    assert observe_columns(WORDS, ("smoke", "ill")) is WORDS


def test_a_large_network_is_written_down_shortly():
    assert repr(WORDS) == "DiscreteNetwork(2 nodes, 2 observed)"
