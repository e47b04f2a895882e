"""Counts, scales and classes: the rule on many shapes of whole numbers."""

import numpy as np
import pytest
from sklearn import datasets

from knockoffs.table.target_kind import infer_kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("iris", "classes"),
        ("wine", "classes"),
        ("digits", "classes"),
        ("breast_cancer", "binary"),
        ("diabetes", "number"),
    ],
)
def test_known_tables(name, kind):
    y = getattr(datasets, f"load_{name}")().target
    assert infer_kind(y) == infer_kind(y.astype(float)) == kind


SHAPES = {
    "Poisson 0.3": (lambda rng, n: rng.poisson(0.3, n), "count"),
    "Poisson 1": (lambda rng, n: rng.poisson(1.0, n), "count"),
    "Poisson 2": (lambda rng, n: rng.poisson(2.0, n), "count"),
    "Poisson 10": (lambda rng, n: rng.poisson(10.0, n), "count"),
    "log-normal means": (lambda rng, n: rng.poisson(np.exp(rng.standard_normal(n))), "count"),
    "overdispersed": (lambda rng, n: rng.negative_binomial(1, 0.25, n), "count"),
    "too many zeros": (lambda rng, n: rng.poisson(3.0, n) * (rng.random(n) < 0.5), "count"),
    "Poisson 100": (lambda rng, n: rng.poisson(100.0, n), "number"),
    "prices": (lambda rng, n: np.round(np.exp(12 + 0.4 * rng.standard_normal(n))), "number"),
    "ages": (lambda rng, n: rng.integers(18, 90, n), "number"),
    "ranks": (lambda rng, n: rng.permutation(n) + 1, "number"),
    "three classes": (lambda rng, n: rng.integers(0, 3, n), "classes"),
    "ten classes": (lambda rng, n: rng.integers(0, 10, n), "classes"),
    "three classes, one rare": (lambda rng, n: rng.choice(3, n, p=[0.1, 0.6, 0.3]), "classes"),
    "three classes, falling": (lambda rng, n: rng.choice(3, n, p=[0.8, 0.05, 0.15]), "classes"),
    "genotypes": (lambda rng, n: rng.binomial(2, 0.4, n), "classes"),
    "a bell of ratings": (lambda rng, n: rng.choice([1, 2, 3, 4, 5], n, p=[0.04, 0.2, 0.4, 0.3, 0.06]), "ordinal"),
    "happy ratings": (lambda rng, n: rng.choice([1, 2, 3, 4, 5], n, p=[0.03, 0.06, 0.11, 0.3, 0.5]), "ordinal"),
    "wine quality": (lambda rng, n: 3 + rng.choice(6, n, p=[0.006, 0.033, 0.426, 0.399, 0.124, 0.012]), "ordinal"),
    "flat ratings": (lambda rng, n: rng.integers(1, 6, n), "ordinal"),
    "ratings that people send in": (
        lambda rng, n: rng.choice([1, 2, 3, 4, 5], n, p=[0.3, 0.1, 0.05, 0.1, 0.45]),
        "ordinal",
    ),
    "five classes from 0": (lambda rng, n: rng.integers(0, 5, n), "classes"),
    "dollars": (lambda rng, n: np.round(rng.gamma(0.8, 300, n)).clip(0, 1999), "number"),
    "dollars, mostly none": (lambda rng, n: np.round(rng.gamma(1, 200, n)) * (rng.random(n) < 0.4), "number"),
    "many visits": (lambda rng, n: rng.negative_binomial(1, 0.02, n), "count"),
}


@pytest.mark.parametrize("n", [500, 5000])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name, n):
    """Of 40 draws at least 36 are told right; the least certain of these shapes was so in 98 of 100."""
    draw, kind = SHAPES[name]
    rng = np.random.default_rng([7, n])
    assert sum(infer_kind(draw(rng, n)) == kind for _ in range(40)) >= 36


def test_moving_or_mirroring_counts_makes_them_something_else():
    counts = np.random.default_rng(0).poisson(2.0, 500)
    assert infer_kind(counts) == "count"
    assert infer_kind(counts - 1) != "count"
    assert infer_kind(100 + counts) != "count"
    assert infer_kind(counts.max() - counts) != "count"
    assert infer_kind(counts / 2) == "number"
