"""
How do I write my own model of the features?
============================================

For every hour, a call centre counts twenty kinds of calls and the time until the first. All depend on how busy the hour
is, which is not recorded: busy -> calls, busy -> wait. No built-in family fits, so the model is a network of three
nodes, with a user-defined conjugate. docs/own_network.md explains every step.
"""

# %%
# The model: busy ~ Gamma, calls ~ Poisson(busy * share), wait ~ Exponential(busy).
from dataclasses import dataclass

import numpy as np
from scipy.stats import poisson

from knockoffs import BayesianNetwork, KnockoffSelector, Node, sample_knockoffs
from knockoffs.sampling.conjugates.independent import Independent
from knockoffs.sampling.network import Identity

SHAPE, RATE, SHARE = 2.0, 1.0, np.linspace(3.0, 0.5, 20)


@dataclass(frozen=True)
class PoissonCalls:
    """Given busy the calls are independent, so drawing them again is an exchangeable conjugate."""

    share: np.ndarray

    def sample(self, u, blanket, rng):
        return rng.poisson(blanket["busy"][:, None] * self.share)

    def log_conditional(self, u, blanket):
        return poisson.logpmf(u, blanket["busy"][:, None] * self.share).sum(axis=1)

    def log_kernel(self, u_tilde, u, blanket):
        return self.log_conditional(u_tilde, blanket)


def sample_hidden(X, rng):
    """Draw busy given the row, exactly: Gamma laws are conjugate to both children."""
    return {"busy": rng.gamma(SHAPE + X[:, :20].sum(axis=1) + 1, 1 / (RATE + SHARE.sum() + X[:, 20]))}


wait = Independent(
    draw=lambda blanket, n, rng: rng.exponential(1 / blanket["busy"], size=n)[:, None],
    log_prob=lambda u, blanket: np.log(blanket["busy"]) - blanket["busy"] * u[:, 0],
)
busy = Node("busy", (), Identity())
calls = Node("calls", ("busy",), PoissonCalls(SHARE), columns=range(20))
network = BayesianNetwork([busy, calls, Node("wait", ("busy",), wait, columns=[20])], sample_hidden=sample_hidden)

# %%
# A table, its knockoffs, and a selection: the number of staff depends on every second kind up to 14, and on the wait.
rng = np.random.default_rng(0)
level = rng.gamma(SHAPE, 1 / RATE, size=3000)
X = np.column_stack([rng.poisson(level[:, None] * SHARE), rng.exponential(1 / level)])
X_tilde = sample_knockoffs(network, X, rng)
staff = X[:, :16:2] @ [1, -1, 1, -1, 1, -1, 1, -1] + 5 * np.sqrt(X[:, 20]) + rng.standard_normal(len(X))
selector = KnockoffSelector(fdr=0.2, feature_model=network, random_state=0).fit(X, staff)
print("selected columns:", np.flatnonzero(selector.get_support()))

# %%
# What exchangeable means: the first two figures show the same correlation, because calls 1 and its knockoff can be
# swapped. The third shows a feature against its own knockoff, which may have any correlation.
pairs = {
    "calls 0, calls 1": (X, 1),
    "calls 0, knockoff of calls 1": (X_tilde, 1),
    "calls 0, its knockoff": (X_tilde, 0),
}
for name, (table, j) in pairs.items():
    print(f"{name}: correlation {np.corrcoef(X[:, 0], table[:, j])[0, 1]:.2f}")
try:
    import matplotlib.pyplot as plt
except ImportError:
    plt = None
if plt is not None:
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharex=True, sharey=True)
    for ax, (name, (table, j)) in zip(axes, pairs.items(), strict=True):
        jitter = rng.uniform(-0.4, 0.4, size=(2, len(X)))  # counts lie on top of each other
        ax.plot(X[:, 0] + jitter[0], table[:, j] + jitter[1], ".", markersize=2, alpha=0.4)
        ax.set(xlim=(-1, 25), ylim=(-1, 25), title=name, xlabel="calls 0")
    figure.tight_layout()
