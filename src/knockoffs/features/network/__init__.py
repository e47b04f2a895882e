"""Discrete Bayesian networks: model.py (tables), leaves.py (their knockoffs), columns.py, fit.py and bif.py."""

from knockoffs.features.network.fit import fit_discrete_network
from knockoffs.features.network.model import DiscreteNetwork, read_network

__all__ = ["DiscreteNetwork", "fit_discrete_network", "read_network"]
