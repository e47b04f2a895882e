"""Selections made by hand: a page is a function of them, so that no model has to be fitted to test it."""

import numpy as np
import pytest

from knockoffs.conditional_tests.p_values import adjust_p_values
from knockoffs.diagnostics.comparison import verdict
from knockoffs.filter import knockoff_filter, knockoff_threshold, q_values
from knockoffs.filter.e_values import combine_draws
from knockoffs.importance.scores import Scores
from knockoffs.sampling.pair import Pair
from knockoffs.selection import Selection

# tags, quotes, braces of templates, marks that turn the direction of writing, control characters, formulas, halves
HOSTILE = (
    "<script>window.ran=1</script>",
    "</script><script>window.ran=2</script>",
    '"><img src=x onerror=window.ran=3>',
    "'><svg/onload=window.ran=4>",
    "</style><style>body{display:none}</style>",
    "{{constructor.constructor('window.ran=5')()}}",
    "${window.ran=6}",
    "<!--",
    "]]>",
    "&lt;b&gt; &amp; &#x3c;",
    "javascript:window.ran=7",
    '=HYPERLINK("http://example.com","x")',
    "@import url(http://example.com/x.css)",
    "\u202eleft-to-right\u2066",
    "nul\x00bell\x07escape\x1b[31m",
    "line\nbreak\r\ttab\u2028\u2029",
    "half\ud800",
    "$\\frac{1}{2}$ _x^2",
    "",
    " ",
    "شمال",
    "n" * 10_000,
    "w ide " * 2_000,
)


def make_selection(names, W, fdr=0.2, *, rng, n=80, offset=1, judged=True, draws=None, level="fixed", p_values=None):
    """Selection from W, from the W of several draws, or from p-values."""
    d = len(names)
    X = rng.standard_normal((n, d))
    pair = Pair(X, 0.4 * X + rng.standard_normal((n, d)) * np.sqrt(1 - 0.16), np.arange(d))
    few = Pair(pair.X[:, :6], pair.X_tilde[:, :6], np.arange(min(d, 6)))
    found = verdict(few, names=names[:6], rng=rng) if judged else None
    common = dict(
        feature_names=tuple(names),
        fdr=fdr,
        pair=pair,
        feature_model=None,
        notes={"feature_model": "P^X is a guess"},
        verdict=found,
    )
    if p_values is not None:
        q = adjust_p_values(p_values)
        return Selection(
            **common, method="conditional_test", selected=q <= fdr, q_values=q, W=np.full(d, np.nan), p_values=p_values
        )
    if draws is not None:
        joined = combine_draws(draws, fdr, how=level)
        mean = draws.mean(axis=0)
        return Selection(
            **common,
            method="knockoffs",
            selected=joined.selected,
            q_values=joined.levels,
            W=mean,
            scores=Scores(mean, 0 * mean),
            draws=draws,
            evidence=joined,
        )
    W = np.asarray(W, dtype=float)
    return Selection(
        **common,
        method="knockoffs",
        selected=knockoff_filter(W, fdr, offset=offset),
        q_values=q_values(W, offset=offset),
        W=W,
        scores=Scores(W, np.zeros(d)),
        draws=W[None],
        threshold=knockoff_threshold(W, fdr, offset=offset),
        offset=offset,
    )


def plain_W(d, rng, n_strong=10):
    """W of some strong features and many fair coins."""
    W = rng.standard_normal(d) * 0.3
    W[:n_strong] = 2 + rng.random(n_strong)
    return W


@pytest.fixture
def selection(rng):
    return make_selection([f"x{j}" for j in range(40)], plain_W(40, rng), rng=rng)


@pytest.fixture
def make(rng):
    """Make selections by hand; see ``make_selection``."""
    return lambda names, W=None, **options: make_selection(names, W, rng=rng, **options)


@pytest.fixture
def hostile():
    return HOSTILE
