"""Chains that follow each other as one: chromosomes, between which nothing is remembered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from knockoffs.features.hmm.emissions import DiscreteEmissions
from knockoffs.features.hmm.model import HiddenMarkov
from knockoffs.features.hmm.mosaic import Mosaic

NEVER_STAYS = 50.0  # rate of jumps between chromosomes: exp(-50) = 2e-22


def join_mosaics(parts: Sequence[Mosaic]) -> Mosaic:
    """Mosaic of all sites of the parts; ancestors that a part does not have are never jumped to.

    >>> one = Mosaic(np.ones(3), np.full((3, 2), 0.5), np.full((3, 2), 0.3))
    >>> join_mosaics([one, one]).r.tolist()
    [1.0, 1.0, 1.0, 50.0, 1.0, 1.0]
    """
    K = max(part.alpha.shape[1] for part in parts)
    r = np.concatenate([np.concatenate([[NEVER_STAYS], part.r[1:]]) for part in parts])
    r[0] = parts[0].r[0]
    alpha = np.vstack([_wider(part.alpha, K, 0.0) for part in parts])
    return Mosaic(r, alpha, np.vstack([_wider(part.theta, K, 0.5) for part in parts]))


def join_chains(parts: Sequence[HiddenMarkov]) -> HiddenMarkov:
    """Hidden Markov model of all sites of the parts, whose emissions are symbols."""
    K = max(len(part.initial) for part in parts)
    tables = [part.emissions for part in parts if isinstance(part.emissions, DiscreteEmissions)]
    known = [np.arange(one.table.shape[2]) if one.symbols is None else one.symbols for one in tables]
    symbols = np.unique(np.concatenate(known))
    transitions, emissions = [], []
    for i, (part, one, own) in enumerate(zip(parts, tables, known, strict=True)):
        start = _wider(part.initial, K, 0.0)
        if i:
            transitions.append(np.broadcast_to(start, (1, K, K)))  # whatever the last state was
        square = np.broadcast_to(start, (len(part.transitions), K, K)).copy()
        k = len(part.initial)
        square[:, :k, :k], square[:, :k, k:] = part.transitions, 0.0
        transitions.append(square)
        table = np.zeros((len(part.transitions) + 1, K, len(symbols)))
        table[:, :, 0] = 1.0  # of states that are never there
        table[:, :k] = 0.0
        table[:, :k, np.searchsorted(symbols, own)] = one.table
        emissions.append(table)
    return HiddenMarkov(
        _wider(parts[0].initial, K, 0.0), np.concatenate(transitions), DiscreteEmissions(np.vstack(emissions), symbols)
    )


def _wider(values: NDArray, K: int, fill: float) -> NDArray:
    """Add columns up to K."""
    pad = [(0, 0)] * (values.ndim - 1) + [(0, K - values.shape[-1])]
    return np.pad(values, pad, constant_values=fill)
