"""Random models with hidden chains, and their exact laws by enumeration."""

from functools import reduce
from itertools import product

import numpy as np

from knockoffs.features.hmm.model import HiddenMarkov
from knockoffs.features.hmm.mosaic import Mosaic


def every(size, length):
    """All rows of ``length`` codes below ``size``."""
    return np.array(list(product(range(size), repeat=length)))


def random_rows(rng, zeros, *shape):
    """Random probability vectors along the last axis; with zeros, about a third of the entries is zero."""
    table = rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])
    if zeros:
        table[rng.random(shape) < 0.35] = 0.0
        table[..., 0] += np.where(table.sum(axis=-1) == 0, 1.0, 0.0)
    return table / table.sum(axis=-1, keepdims=True)


def random_model(rng, p, K, M, zeros=False):
    parts = random_rows(rng, zeros, K), random_rows(rng, zeros, p - 1, K, K), random_rows(rng, zeros, p, K, M)
    return HiddenMarkov(*parts)


def random_mosaic(rng, p, K, zeros=False):
    alpha, theta, r = rng.dirichlet(np.ones(K), size=p), rng.random((p, K)), rng.exponential(size=p)
    if zeros:
        theta = np.where(rng.random(theta.shape) < 0.4, np.round(theta), theta)
        r[rng.random(p) < 0.3] = 0.0
    return Mosaic(r, alpha, theta)


def hidden_laws(model, **how):
    """All hidden configurations, their probabilities, the kernel between them, and the conjugate of X below them."""
    nodes = {node.name: node.conjugate for node in model.as_network(**how).nodes}
    emissions, chain = nodes.pop("X"), model.as_network().nodes[0].conjugate  # whose log_conditional is the chain's law
    h = every(len(chain.start), chain.n_steps)
    S = len(h)
    kernels = [
        np.exp(conjugate.log_kernel(np.tile(h, (S, 1)), np.repeat(h, S, axis=0), {})).reshape(S, S)
        for conjugate in nodes.values()
    ]
    laws = [np.exp(chain.log_conditional(h, {}))] * len(nodes)
    places = every(S, len(nodes)).T
    hidden = {name: h[place] for name, place in zip(nodes, places, strict=True)}
    return hidden, reduce(np.kron, laws), reduce(np.kron, kernels), emissions


def joint_law(model, base, Q=None, **how):
    """All x, and P(x, x_tilde): P(h) P(x | h) Q(h_tilde | h) P(x_tilde | h_tilde), summed over h and h_tilde."""
    hidden, P, own, emissions = hidden_laws(model, **how)
    x = every(base, next(iter(hidden.values())).shape[1])
    each = {name: np.repeat(value, len(x), axis=0) for name, value in hidden.items()}
    E = np.exp(emissions.log_conditional(np.tile(x, (len(P), 1)), each)).reshape(len(P), len(x))
    kernel = np.where(P[:, None] > 0, own if Q is None else Q, 0.0)  # from an impossible h nothing is drawn
    return x, E.T @ (P[:, None] * kernel) @ E
