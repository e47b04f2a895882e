"""Knockoffs or tests: which is taken by default."""

import pytest

from knockoffs.conditional_tests.choice import few_for_knockoffs


@pytest.mark.parametrize(
    ("fdr", "n_rows", "most"),
    [
        (0.1, 2500, 79),
        (0.1, 10_000, 40),
        (0.1, 10_001, 19),
        (0.1, None, 19),
        (0.2, 10_000, 39),
        (0.2, 10_001, 9),
        (0.2, None, 9),
        (0.05, 50, 159),
        (0.02, 10_000, 99),
        (0.01, 50, 199),
        (0.3, 50, 26),  # 8 / 0.3 = 26.7
    ],
)
def test_how_many_features_are_few_for_knockoffs(fdr, n_rows, most):
    few = [d for d in range(1, 200) if few_for_knockoffs(d, fdr, n_rows)]
    assert few == list(range(1, most + 1))
