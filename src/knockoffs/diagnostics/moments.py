"""Pairs of columns: whether a feature is linked to the others as its knockoff is.

With D_i = s(x_i) - s(x_tilde_i) and M_j = (s(x_j) + s(x_tilde_j)) / 2 for scores s of the columns:

- D_i M_j changes its sign when feature i is swapped, and only then: x_i x_j against x_tilde_i x_tilde_j;
- D_i D_j changes its sign when one of the two features is swapped: x_i x_j against x_i x_tilde_j.

Together they are all second moments of the scores of (X, X_tilde). D_i D_j of one feature's own columns never changes
its sign, so it is left out. Four sums join the bent links, of where one column lies with how far out another does,
weighted by the correlation of M, which no swap changes: many weak ones are seen that way. (Straight links are left to
single pairs: a covariance that is shrunk because rows are few understates all of them a little, and such sums would
call every one of those fits broken.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.diagnostics.scores import RankScores
from knockoffs.diagnostics.sign_tests import Check, critical_value, either, sign_sums, studentise, worst_columns
from knockoffs.errors import name_some
from knockoffs.sampling.pair import Pair

CLEAR_LINK = 3.0  # standard errors from which a correlation of M is a clear link


def check_moments(pair: Pair, scores: RankScores, names: Sequence[str], rng: Generator) -> Check:
    """Compare the links of x_i and of x_tilde_i with every other column, by the scores of the pair."""
    owner = pair.feature_of[scores.column_of]
    single, cross = pair_sums(scores, owner)
    joint = joint_sums(scores, owner, rng)
    n_pairs = single.size + int(np.triu(owner[:, None] != owner).sum())
    strongest = np.maximum(single.max(axis=1, initial=0.0), cross.max(axis=1, initial=0.0))
    per_column = np.zeros(pair.n_columns)
    np.maximum.at(per_column, scores.column_of, strongest)
    worst = worst_columns(per_column, names, critical_value(n_pairs))
    p, t = either((per_column.max(), n_pairs), (np.abs(joint).max(), len(joint)))
    effect = t / np.sqrt(len(pair))
    if p > 0.05:
        sentence = "Knockoffs are linked to the other columns as their features are, as far as pairs can show."
    elif worst:
        sentence = f"Knockoffs are linked to other columns differently from their features: {name_some(worst)}."
    else:
        sentence = "Knockoffs are linked to each other differently from their features: bent a little in many pairs."
    return Check("pairs", p, float(t), float(effect), worst, sentence)


def pair_sums(scores: RankScores, owner: NDArray[np.intp]) -> tuple[NDArray, NDArray]:
    """|t| of D_i M_j and of D_i D_j, shape (k, k) each; D_i D_j is 0 within a feature."""
    D, M = scores.difference, scores.middle
    with_middle, with_own = D.T @ M, D.T @ D
    D2, M2 = np.square(D, out=D), np.square(M, out=M)  # in place: each is as large as the scores
    single = np.abs(studentise(with_middle, D2.T @ M2))
    cross = np.abs(studentise(with_own, D2.T @ D2))
    return single, np.where(owner[:, None] == owner, 0.0, cross)


def joint_sums(scores: RankScores, owner: NDArray[np.intp], rng: Generator) -> NDArray:
    """Bent links together, shape (4,): under the swap of every feature and of a random half S; all links, clear ones.

    sum_ij C_ij D_i M_j changes its sign with the swap of all features, and the sum of C_ij D_i D_j over i in S and j
    not in S with that of S, for any C that no swap changes.
    """
    D, M = scores.difference, scores.middle
    size = np.sqrt((M**2).sum(axis=0))
    bent = (owner[:, None] != owner) & (scores.far_out[:, None] != scores.far_out)
    C = studentise(M.T @ M, np.outer(size, size) ** 2) * bent
    in_S = (rng.permutation(owner.max() + 1) % 2 == 0)[owner]
    terms = []
    for weights in (C, np.where(np.abs(C) > CLEAR_LINK / np.sqrt(len(M)), C, 0.0)):
        terms.append(np.einsum("ni,ni->n", D @ weights, M))
        terms.append(np.einsum("ni,ni->n", D[:, in_S] @ weights[np.ix_(in_S, ~in_S)], D[:, ~in_S]))
    return sign_sums(np.column_stack(terms))
