"""The conjugate of a law known up to a constant: moves among candidates (Bates, Candès, Janson and Wang, 2021)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError
from knockoffs.sampling.conjugates.joint_table import MAX_JOINT_TABLE, JointTable
from knockoffs.sampling.factors import Factor
from knockoffs.sampling.network import Blanket

LogDensity = Callable[[NDArray, Blanket], NDArray]


@dataclass(frozen=True)
class Metropolized:
    """Draw each coordinate among candidates, by its law given the others and the new ones drawn so far.

    Candidates of a coordinate are drawn so that u_j could be any of them: around a point that is itself drawn around
    u_j, or all states of a discrete coordinate. Given the candidates, which of them is u has a discrete law,
    proportional to the density. Sequential conditional independent pairs of this law (``JointTable``) are exchangeable
    in every coordinate, and so are u and u_tilde. This is Metropolized knockoff sampling with several tries; with one,
    half of the coordinates or more would not move.
    """

    # ``(u, blanket) -> (n,)``, log P(u | v) up to a constant; or one function for each clique of the graph, of its
    # coordinates alone, shape (n, size of the clique), which add up to it and cost less
    log_density: LogDensity | Sequence[LogDensity]
    # cliques of coordinates that interact: for a chain (0, 1), (1, 2), ...; a coordinate is in one at least. Given its
    # neighbours a coordinate must be independent of the others
    graph: Sequence[tuple[int, ...]]
    # shape (k,): standard deviation of the candidates: about that of a coordinate given its neighbours, for large moves
    scale: ArrayLike = 1.0
    # values of each coordinate, if they are few: then these are the candidates, and nothing else is drawn
    states: Sequence[ArrayLike] | None = None
    n_candidates: int = 8  # candidates beside u_j. More move farther, and cost their square on a chain
    max_table: int = MAX_JOINT_TABLE  # see ``JointTable``: the cost grows with the width of the graph

    def __post_init__(self) -> None:
        """Refuse a graph that leaves a coordinate out, or other functions than cliques."""
        graph = tuple(tuple(int(j) for j in clique) for clique in self.graph)
        if set().union(*graph) != set(range(self._width(graph))):
            raise InputError(f"graph={list(self.graph)!r}: every coordinate 0, 1, ... must be in a clique.")
        if any(len(set(clique)) < len(clique) for clique in graph):
            raise InputError(f"graph={list(self.graph)!r}: a clique names a coordinate twice.")
        if not callable(self.log_density) and len(self.log_density) != len(graph):
            raise InputError(f"log_density has {len(self.log_density)} functions, and graph {len(graph)} cliques.")
        if not (np.asarray(self.scale, dtype=float) > 0).all() or self.n_candidates < 1:
            raise InputError(f"scale={self.scale!r}, n_candidates={self.n_candidates!r}: expected more than 0.")
        object.__setattr__(self, "graph", graph)

    @staticmethod
    def _width(graph: Sequence[tuple[int, ...]]) -> int:
        return 1 + max((max(clique, default=-1) for clique in graph), default=-1)

    def sample(self, u: NDArray, blanket: Blanket, rng: Generator) -> NDArray:
        """Draw candidates, and u_tilde among them."""
        candidates = self.candidates(u, rng)
        codes = self._codes(u, candidates)
        drawn = self.among(candidates).sample(codes, blanket, rng)
        return np.take_along_axis(candidates, drawn[..., None], axis=2)[..., 0].astype(u.dtype, copy=False)

    def candidates(self, u: NDArray, rng: Generator) -> NDArray:
        """Values that a row may take, shape (n, k, m); u is one of them in each coordinate."""
        if u.ndim != 2 or u.shape[1] != self._width(self.graph):
            raise InputError(f"u has shape {u.shape}, and the graph {self._width(self.graph)} coordinates.")
        if self.states is not None:
            m = max(len(np.ravel(own)) for own in self.states)
            padded = [np.pad(np.ravel(own).astype(float), (0, m - np.size(own)), mode="edge") for own in self.states]
            return np.broadcast_to(np.stack(padded), (len(u), *np.shape(padded)))
        spread = np.broadcast_to(np.asarray(self.scale, dtype=float), u.shape)
        # u and the candidates are alike given the centre: the square root of one half makes their distance `scale`
        centre = u + np.sqrt(0.5) * spread * rng.standard_normal(u.shape)
        others = centre[..., None] + np.sqrt(0.5) * spread[..., None] * rng.standard_normal(
            (*u.shape, self.n_candidates)
        )
        return np.concatenate([u[..., None].astype(float), others], axis=2)

    def among(self, candidates: NDArray) -> JointTable:
        """Conjugate of the codes of u among its candidates."""
        _, k, m = candidates.shape
        sizes = (m,) * k if self.states is None else tuple(np.size(own) for own in self.states)
        return JointTable(sizes, lambda blanket, rows: self._factors(candidates, sizes, blanket), self.max_table)

    def log_conditional(self, u: NDArray, blanket: Blanket) -> NDArray:
        """Log P(u | v); known of discrete coordinates alone."""
        candidates = self._all_states(u)
        return self.among(candidates).log_conditional(self._codes(u, candidates), blanket)

    def log_kernel(self, u_tilde: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
        """Log Q(u_tilde | u, v); known of discrete coordinates alone."""
        candidates = self._all_states(u)
        codes, codes_tilde = self._codes(u, candidates), self._codes(u_tilde, candidates)
        return self.among(candidates).log_kernel(codes_tilde, codes, blanket)

    def _all_states(self, u: NDArray) -> NDArray:
        if self.states is None:
            raise InputError("Metropolized: probabilities are known of discrete coordinates alone. Pass states=.")
        return self.candidates(np.asarray(u), np.random.default_rng(0))

    def _codes(self, u: NDArray, candidates: NDArray) -> NDArray[np.intp]:
        same = candidates == np.asarray(u)[..., None]
        lost = np.argwhere(~same.any(axis=2))
        if len(lost):
            row, j = lost[0]
            raise InputError(
                f"row {row}: {u[row, j]} is no state of coordinate {j}: {candidates[row, j].tolist()} are."
            )
        return same.argmax(axis=2)

    def _factors(self, candidates: NDArray, sizes: tuple[int, ...], blanket: Blanket) -> list[Factor]:
        """Tables of the cliques at the candidates, one for each row, the largest entry one."""
        n = len(candidates)
        found = []
        for scope, log_factor in self._cliques(candidates[:, :, 0]):
            shape = tuple(sizes[j] for j in scope)
            places = np.array(list(product(*map(range, shape))))
            values = np.stack([candidates[:, j, places[:, a]] for a, j in enumerate(scope)], axis=2)
            repeated = {name: np.repeat(value, len(places), axis=0) for name, value in blanket.items()}
            logs = np.asarray(log_factor(values.reshape(-1, len(scope)), repeated), dtype=float).reshape(n, *shape)
            if np.isnan(logs).any():
                raise InputError(
                    f"log_density is NaN at the coordinates {scope}: expected a number, or -inf in a clique."
                )
            top = logs.max(axis=tuple(range(1, logs.ndim)), keepdims=True)
            found.append(Factor(scope, np.exp(logs - np.where(np.isfinite(top), top, 0.0)), np.arange(n)))
        return found

    def _cliques(self, base: NDArray) -> list[tuple[tuple[int, ...], LogDensity]]:
        """Functions that add up to the log density: as given, or its differences from a row of reference."""
        if not callable(self.log_density):
            return list(zip(self.graph, self.log_density, strict=True))  # type: ignore[arg-type]
        whole = self.log_density
        subsets = {
            tuple(sorted(s))
            for clique in self.graph
            for r in range(1, len(clique) + 1)
            for s in combinations(clique, r)
        }

        def potential(scope: tuple[int, ...]) -> LogDensity:
            """Sum over subsets s of the clique of +-log P(u_s, reference elsewhere) (Hammersley and Clifford)."""

            def function(values: NDArray, blanket: Blanket) -> NDArray:
                total = np.zeros(len(values))
                reference = np.repeat(base, len(values) // len(base), axis=0).astype(float)
                for r in range(len(scope) + 1):
                    for some in combinations(range(len(scope)), r):
                        at = reference.copy()
                        at[:, [scope[a] for a in some]] = values[:, list(some)]
                        total += (-1) ** (len(scope) - r) * np.asarray(whole(at, blanket))
                return total

            return function

        return [(scope, potential(scope)) for scope in sorted(subsets)]
