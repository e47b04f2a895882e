"""Knockoffs of groups through representatives: the law they have, exactly, and which columns represent."""

from itertools import chain, combinations

import numpy as np
import pytest
from tests.refusals import refuses

from knockoffs import KnockoffSelector
from knockoffs.errors import InputError
from knockoffs.sampling.diagonal import solve_checked
from knockoffs.sampling.diagonal.representatives import representatives, solve_through

OWNERS = np.array([0, 0, 1, 0, 2, 1, 1, 3])
CHOSEN = np.array([0, 2, 4, 5, 7])  # one of three, two of three, and the single columns


@pytest.fixture
def S(rng):
    A = rng.standard_normal((8, 10))
    return A @ A.T / 10 + 0.1 * np.eye(8)


def joint(S, D):
    """Covariance of (X, X_tilde)."""
    return np.block([[S, S - D], [S - D, S]])


def swapped(G, groups):
    """The same with the columns of some groups and of their knockoffs exchanged."""
    d = len(OWNERS)
    order = np.arange(2 * d)
    columns = np.flatnonzero(np.isin(OWNERS, groups))
    order[columns], order[columns + d] = columns + d, columns
    return G[np.ix_(order, order)]


def test_every_swap_of_groups_leaves_the_law(S):
    S_new, D = solve_through(S, OWNERS, CHOSEN, "maximum_entropy")
    G = joint(S_new, D)
    assert np.linalg.eigvalsh(G)[0] > 0 and np.linalg.eigvalsh(D)[0] > 0
    for groups in chain.from_iterable(combinations(range(4), k) for k in range(5)):
        np.testing.assert_allclose(swapped(G, groups), G, atol=1e-12)


def test_the_law_is_that_of_the_two_steps(S):
    """Representatives first, then the others by their regressions on them: the covariance, term by term."""
    S_new, D = solve_through(S, OWNERS, CHOSEN, "mvr")
    S_R = S[np.ix_(CHOSEN, CHOSEN)]
    D_R = solve_checked(S_R, "mvr", np.unique(OWNERS[CHOSEN], return_inverse=True)[1])
    r = len(CHOSEN)
    parts = joint(S_R, D_R)  # of (X_R, X_tilde_R)
    maps, noise = np.zeros((16, 2 * r)), np.zeros((16, 16))
    for side in (0, 1):
        for j in range(8):
            if j in CHOSEN:
                maps[8 * side + j, r * side + np.flatnonzero(CHOSEN == j)[0]] = 1
        for g in range(4):
            own = [j for j in CHOSEN if OWNERS[j] == g]
            rest = [j for j in range(8) if OWNERS[j] == g and j not in CHOSEN]
            for j in rest:
                slope = np.linalg.lstsq(S[np.ix_(own, own)], S[own, j], rcond=None)[0]
                maps[8 * side + j, [r * side + np.flatnonzero(CHOSEN == k)[0] for k in own]] = slope
            for j in rest:
                for k in rest:
                    given = S[j, k] - S[j, own] @ np.linalg.inv(S[np.ix_(own, own)]) @ S[own, k]
                    noise[8 * side + j, 8 * side + k] = given
    np.testing.assert_allclose(joint(S_new, D), maps @ parts @ maps.T + noise, atol=1e-10)


def r_squared(S, j, given):
    """Share of the variance of j that others explain."""
    return S[j, given] @ np.linalg.solve(S[np.ix_(given, given)], S[given, j]) / S[j, j]


def test_a_share_of_what_is_shared_with_others(S):
    """As few as reach the share, added in the order of ``n`` = 1, 2, ...; by regressions one by one."""
    for share in (0.3, 0.6, 0.9, 1.0):
        chosen = representatives(S, OWNERS, share=share)
        for g in range(4):
            columns = np.flatnonzero(OWNERS == g)
            outside = np.flatnonzero(OWNERS != g).tolist()
            for n in range(1, len(columns) + 1):
                own = [j for j in representatives(S, OWNERS, n) if OWNERS[j] == g]
                rest = [j for j in columns if j not in own]
                inner = sum(r_squared(S, j, own) for j in rest)
                if inner >= share * sum(r_squared(S, j, own + outside) for j in rest) - 1e-12:
                    break
            assert [j for j in chosen if OWNERS[j] == g] == own
    refuses("above 0", representatives, S, OWNERS, share=0.0)


def explained(R, group, chosen):
    """Share of the group's variance that the chosen columns explain."""
    B = R[np.ix_(chosen, chosen)]
    C = R[np.ix_(chosen, group)]
    return np.trace(C.T @ np.linalg.solve(B, C)) / len(group)


def test_representatives_explain_the_most():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((9, 12))
    R = A @ A.T
    R = R / np.sqrt(np.outer(np.diagonal(R), np.diagonal(R)))
    feature_of = np.array([0, 1, 0, 1, 0, 2, 1, 0, 1])
    first = representatives(R, feature_of)
    assert feature_of[first].tolist() in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0])
    for g in (0, 1):
        group = np.flatnonzero(feature_of == g)
        best = max(group, key=lambda j: explained(R, group, [j]))
        assert best in first
        # the second is the best one to add to the first
        two = [j for j in representatives(R, feature_of, 2) if feature_of[j] == g]
        assert best in two and len(two) == 2
        assert explained(R, group, two) == pytest.approx(
            max(explained(R, group, [best, j]) for j in group if j != best)
        )
    assert representatives(R, feature_of, 10).tolist() == list(range(9))
    refuses("at least one", representatives, R, feature_of, 0)


# Where a user meets them


@pytest.fixture
def smooth(rng):
    """Twelve groups of five columns, alike within a group and linked to the next one; groups 0, 2, ... matter."""
    n, S = 400, 0.4 ** np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    centres = rng.standard_normal((n, 12)) @ np.linalg.cholesky(S).T
    X = np.repeat(centres, 5, axis=1) + 0.4 * rng.standard_normal((n, 60))
    return X, centres[:, ::2].sum(axis=1) + 0.5 * rng.standard_normal(n), np.arange(60) // 5


@pytest.mark.parametrize("law", ["gaussian", "mixture", "auto", "covariance"])
def test_a_selection_through_representatives(smooth, law):
    X, y, groups = smooth
    model = np.cov(X.T) if law == "covariance" else law
    options = {"n_components": 1} if law == "mixture" else {"n_classes": 1} if law == "auto" else {}
    selector = KnockoffSelector(
        0.2,
        feature_model=model,
        feature_model_options={**options, "representatives": True},
        groups=groups,
        estimator="lasso",
        method="knockoffs",
        verdict=False,
    ).fit(X, y)
    assert "only through representatives" in selector.selection_.notes["representatives"]
    assert len(selector.W_) == 12 and selector.W_[::2].min() > np.abs(selector.W_[1::2]).max()
    law = getattr(selector.feature_model_, "mixture", selector.feature_model_)
    law = law.laws[0]
    precision = np.linalg.inv(law.covariance)
    size = np.sqrt(np.diagonal(precision))
    linked = np.abs(precision / size / size[:, None])[groups[:, None] != groups] > 1e-6
    assert 0 < linked.mean() < 0.2  # of all pairs of columns in different groups


def test_representatives_are_refused_where_they_mean_nothing(smooth):
    X, y, groups = smooth
    options = {"feature_model_options": {"representatives": True}}
    refuses("needs groups of columns", KnockoffSelector(0.2, feature_model="gaussian", **options).fit, X, y)
    with pytest.raises(InputError, match="feature_model_options='representatives' is not known"):
        KnockoffSelector(0.2, feature_model="naive_bayes", groups=groups, **options).fit(X, y)
    with pytest.raises(InputError, match="expected True or False"):
        KnockoffSelector(0.2, groups=groups, feature_model_options={"representatives": 0.5}).fit(X, y)
