"""Columns of every kind, simulated, as designs of the arena: the default beside the oracle and a naive treatment.

    PYTHONPATH=src python -m benchmarks.arena.quality --suite columns --methods lasso,oracle_lasso,naive --jobs 16

Every design is X_j = g_j(L_j) with L Gaussian, or two scales of it. L is known to the simulation: knockoffs L_tilde by
the true law and X_tilde = g(L_tilde) are exact, whatever g is. The oracle uses those. What was measured:
``benchmarks/designs.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import poisson
from scipy.stats import t as student

from benchmarks.arena.designs import Data, generator, normal
from benchmarks.labels import LABELS, draw_truth

RHO = 0.7  # correlations of L are RHO^|i - j|, unless a design says otherwise
N_LEVELS = 3  # of a nominal column, each a coordinate of L, of which the largest wins
SHARE_MISSING = 0.2
CUT = 0.6  # quantile of a column above which its neighbour is missing: a fifth of all cells
STRENGTH = {"linear": 7.0, "curved": 16.0}

Write = Callable[[NDArray], NDArray]  # coordinates of one column, shape (n, m), to its cells, shape (n,)


@dataclass(frozen=True)
class Columns:
    """Law of one simulated table.

    Parameters
    ----------
    kinds : tuple of str
        Keys of ``WRITE``, one for each column.
    n : int
    n_non_nulls : int
    scales : tuple of float
        Rows are multiplied by one of them, at random.
    missing : float
        Share of cells that are missing, completely at random.
    cut_by_neighbour : bool
        Every second column is missing where the one before it is among its largest; y depends on the others alone.
    strength : float
        Of the labels, in units of those of the other designs.
    rho : float
        Correlation of neighbouring coordinates of L.
    """

    kinds: tuple[str, ...]
    n: int = 500
    n_non_nulls: int = 10
    scales: tuple[float, ...] = (1.0,)
    missing: float = 0.0
    cut_by_neighbour: bool = False
    strength: float = 1.0
    rho: float = RHO

    @property
    def column_of(self) -> NDArray[np.intp]:
        """Column of each coordinate of L."""
        return np.repeat(np.arange(len(self.kinds)), [N_LEVELS if kind == "nominal" else 1 for kind in self.kinds])

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [f"{kind} {j}" for j, kind in enumerate(self.kinds)]


def _first(write: Callable[[NDArray], NDArray]) -> Write:
    return lambda L: write(L[:, 0])


LEVELS = np.array(["red", "green", "blue"])
BANDS = np.array(["low", "middle", "high"])  # in their order, which is not that of the alphabet
WRITE: dict[str, Write] = {
    "gaussian": _first(lambda z: z),
    "log_normal": _first(np.exp),
    "t5": _first(lambda z: student.ppf(ndtr(z), 5)),
    "count": _first(lambda z: poisson.ppf(ndtr(z), 2.0)),
    "binary": _first(lambda z: (z > 0.5).astype(float)),
    "ordinal": _first(lambda z: np.searchsorted([-1.5, -0.5, 0.5, 1.2], z).astype(float)),
    "zero_inflated": _first(lambda z: np.maximum(np.exp(z) - 1, 0.0)),
    "nominal": lambda L: LEVELS[np.argmax(L, axis=1)],
}
ALL_KINDS = tuple(WRITE)
WRITE |= dict.fromkeys(("band", "unordered_band"), _first(lambda z: BANDS[np.searchsorted([-0.7, 0.7], z)]))
TABLES: dict[str, Columns] = {
    **{f"20 {kind.replace('_', '-')} columns": Columns((kind,) * 20) for kind in ALL_KINDS if kind != "gaussian"},
    "20 columns, two scales": Columns(("gaussian",) * 20, scales=(1.0, 4.0)),
    "20 columns of all kinds": Columns((ALL_KINDS * 3)[:20]),
    "20 columns, a fifth missing": Columns(("gaussian",) * 20, missing=SHARE_MISSING),
    "20 of all kinds, a fifth missing": Columns((ALL_KINDS * 3)[:20], missing=SHARE_MISSING),
    "n = 400, p = 200": Columns(("gaussian",) * 200, n=400, n_non_nulls=30),
    "n = 300, p = 500": Columns(("gaussian",) * 500, n=300, n_non_nulls=30),
}
# ten of 40 columns matter, and much: here a wrong P^X shows
STRONG = partial(Columns, n=1000, strength=1.8)
TABLES |= {
    "40 log-normal columns": STRONG(("log_normal",) * 40),
    "20 nominal, 20 Gaussian": STRONG(("nominal", "gaussian") * 20),
    "40 columns of all kinds": STRONG(ALL_KINDS * 5),
    "40 columns, missing by a neighbour": STRONG(("gaussian",) * 40, missing=SHARE_MISSING, cut_by_neighbour=True),
}
# two of three columns are bands of a number, as text: in their order, and as labels without one
BANDED = partial(Columns, n=2000, n_non_nulls=8, strength=3.0, rho=0.8)
TABLES |= {
    f"27 {name}, 13 Gaussian": BANDED(((kind, "gaussian", kind) * 14)[:40])
    for kind, name in (("band", "bands"), ("unordered_band", "bands without an order"))
}
DESIGNS = tuple(f"{name}, {labels}" for name in TABLES for labels in LABELS)


def covariance(law: Columns) -> NDArray:
    """Of L: rho^|i - j| between columns, none between the coordinates of different levels."""
    column = law.column_of
    level = np.concatenate([np.arange(np.sum(column == j)) for j in range(len(law.kinds))])
    apart = np.abs(np.subtract.outer(column, column))
    return np.where(np.equal.outer(level, level), law.rho**apart, 0.0)


def write(law: Columns, L: NDArray) -> pd.DataFrame:
    """Columns X_j = g_j(L_j)."""
    cells = [WRITE[kind](L[:, law.column_of == j]) for j, kind in enumerate(law.kinds)]
    return pd.DataFrame(dict(zip(law.names, cells, strict=True)))


def draw(design: str, repetition: int) -> Data:
    """One table of a design, with its labels."""
    name, labels = design.rsplit(", ", 1)
    law, rng = TABLES[name], generator(design, repetition)
    L = normal(covariance(law), law.n, rng)
    scale = rng.choice(np.array(law.scales), (law.n, 1))
    frame = write(law, L * scale)
    hidden = rng.random(frame.shape) < law.missing
    if law.cut_by_neighbour:
        hidden[:, 0::2] = False
        hidden[:, 1::2] = frame.iloc[:, 0::2] > frame.iloc[:, 0::2].quantile(CUT)
    frame = frame.mask(hidden)
    truth = draw_truth(frame, rng, law.n_non_nulls, most_missing=0.0 if law.cut_by_neighbour else 1.0)
    y = LABELS[labels](frame, truth, rng, strength=STRENGTH[labels] * law.strength)
    order = {name: BANDS.tolist() for name, kind in zip(law.names, law.kinds, strict=True) if kind == "band"}
    known = not law.missing or set(law.kinds) == {"gaussian"}  # else no oracle: labels are missing
    exact = partial(exact_options, law, L, scale) if known else None
    return Data(frame, y, truth, classes=labels == "curved", kinds=order or None, exact=exact)


def exact_options(law: Columns, L: NDArray, scale: NDArray, rng: Generator) -> dict[str, Any]:
    """Options of a selector that knows P^X: X_tilde = g(L_tilde), or the true law where cells are missing.

    y depends on X alone, so X_tilde knows no more of it than X does, though it was made from the true L.
    """
    from knockoffs import gaussian_features, sample_knockoffs
    from knockoffs.features.latent.margins import Affine
    from knockoffs.features.latent.model import latent_features

    S, d = covariance(law), len(law.kinds)
    if law.missing:
        return {"feature_model": latent_features([Affine()] * d, [1.0], np.zeros((1, d)), S[None])}
    own = law.column_of if len(S) > d else None
    features = gaussian_features(np.zeros(len(S)), S, feature_of=own)
    return {"knockoffs": write(law, sample_knockoffs(features.as_network(), L, rng) * scale)}
