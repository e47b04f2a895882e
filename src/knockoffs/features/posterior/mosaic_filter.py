"""Evidence and single sites of one or two hidden chains that stay or jump, filtered together in O(K) or O(K^2) a site.

A law of the hidden states is an array (n, K) for one chain and (n, K, K) for two; each chain has an axis of its own,
and a step acts on one axis after the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some
from knockoffs.sampling.conjugates.markov_chain import JumpChain

Likelihood = Callable[[int], NDArray]  # site -> P(x_j | hidden states), shape (n, K) or (n, K, K)


def log_evidence(chain: JumpChain, likelihood: Likelihood, *, n_chains: int = 1) -> NDArray:
    """Log P(X) of every row, shape (n,)."""
    law, total = _observe(_start(chain, n_chains), likelihood(0))
    for j in range(1, len(chain.alpha)):
        law, log_scale = _observe(_step(chain, j - 1, law), likelihood(j))
        total = total + log_scale
    return total


def state_given_others(chain: JumpChain, likelihood: Likelihood, j: int, *, n_chains: int = 1) -> NDArray:
    """P(hidden states at site j | X at all other sites), shape (n, K) or (n, K, K)."""
    before = _start(chain, n_chains)
    for i in range(j):
        before = _step(chain, i, _observe(before, likelihood(i))[0])
    after: NDArray = np.ones_like(before)
    for i in range(len(chain.alpha) - 1, j, -1):
        after = _backward(chain, i, _observe(after, likelihood(i))[0])
    law, log_total = _observe(before, after)
    bad = np.flatnonzero(np.isneginf(log_total))
    if bad.size:
        raise InputError(f"rows {name_some(bad)} are impossible under the model, whatever their site {j} holds.")
    return np.broadcast_to(law, likelihood(j).shape)


def _start(chain: JumpChain, n_chains: int) -> NDArray:
    alpha = chain.alpha[0]
    return alpha[None] if n_chains == 1 else (alpha[:, None] * alpha)[None]


def _step(chain: JumpChain, j: int, law: NDArray) -> NDArray:
    """Law at site j + 1 from that at site j."""
    for axis in range(1, law.ndim):
        law = chain.forward(j, law, axis)
    return law


def _backward(chain: JumpChain, j: int, message: NDArray) -> NDArray:
    """E[message at site j | state at the site before]."""
    jump, alpha = chain.jump[j - 1], chain.alpha[j]
    for axis in range(1, message.ndim):
        landed = alpha.reshape([-1 if i == axis else 1 for i in range(message.ndim)])
        message = (1 - jump) * message + jump * (landed * message).sum(axis=axis, keepdims=True)
    return message


def _observe(law: NDArray, likelihood: NDArray) -> tuple[NDArray, NDArray]:
    """Product of the two with sum one in each row, and the log of what it was divided by."""
    law = law * likelihood
    total = law.sum(axis=tuple(range(1, law.ndim)), keepdims=True)
    with np.errstate(divide="ignore"):
        return law / np.where(total > 0, total, 1.0), np.log(total).reshape(len(total))
