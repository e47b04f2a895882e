"""Missing cells of a chain, drawn before its knockoffs: their law by enumeration, and the way through a selection."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from knockoffs.features.hmm import HiddenMarkov
from knockoffs.features.hmm.emissions import DiscreteEmissions
from knockoffs.features.hmm.mosaic import GenotypeModel, HaplotypeModel, Mosaic
from knockoffs.features.source import settled
from knockoffs.selector import KnockoffSelector

MAKE = np.random.default_rng(0)
STEPS = np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]]])
TABLE = MAKE.dirichlet(np.ones(3), size=(3, 2))
# strongly linked sites: cells drawn without a look at those that are seen have another law
MOSAIC = Mosaic(np.array([0.0, 0.1, 0.2]), np.array([[0.4, 0.6]] * 3), np.array([[0.1, 0.9], [0.8, 0.2], [0.05, 0.7]]))
MODELS = {
    "symbols": (HiddenMarkov(np.array([0.4, 0.6]), STEPS, TABLE), [0.0, 1.0, 2.0]),
    "named symbols": (
        HiddenMarkov(np.array([0.4, 0.6]), STEPS, DiscreteEmissions(TABLE, np.array([2.0, 5.0, 7.0]))),
        [2.0, 5.0, 7.0],
    ),
    "haplotypes": (HaplotypeModel(MOSAIC), [0.0, 1.0]),
    "genotypes": (GenotypeModel(MOSAIC), [0.0, 1.0, 2.0]),
}


@pytest.mark.parametrize("name", MODELS)
def test_missing_cells_follow_their_law_given_those_that_are_seen(name):
    # 50,000 draws of at most nine values, 5 standard errors: false alarm 5e-6 for each of the four models; shows 0.01
    model, values = MODELS[name]
    row, n = np.array([np.nan, values[1], np.nan]), 50_000
    filled = model.fill(np.tile(row, (n, 1)), np.random.default_rng(1))
    assert (filled[:, 1] == values[1]).all()
    whole = np.array([[a, values[1], b] for a, b in product(values, repeat=2)])
    p = np.exp(model.log_density(whole) - model.log_density(row[None]))
    assert p.sum() == pytest.approx(1, abs=1e-10)
    seen = np.array([(filled == one).all(axis=1).mean() for one in whole])
    assert (np.abs(seen - p) < 5 * np.sqrt(p / n)).all()


@pytest.mark.parametrize("name", MODELS)
def test_a_complete_table_is_left_alone_and_nothing_is_drawn(name):
    model, _ = MODELS[name]
    rng = np.random.default_rng(3)
    X = model.sample(20, rng).astype(float)
    before = rng.bit_generator.state
    assert model.fill(X, rng) is X and rng.bit_generator.state == before


def test_a_selection_is_made_from_the_completed_table():
    rng = np.random.default_rng(4)
    p = 15
    mosaic = Mosaic(np.full(p, 0.4), np.full((p, 3), 1 / 3), rng.beta(0.5, 0.5, size=(p, 3)))
    model = GenotypeModel(mosaic)
    X = model.sample(300, rng).astype(float)
    y = X[:, ::2].sum(axis=1) + rng.normal(size=300)
    gaps = rng.random(X.shape) < 0.05
    with_gaps = pd.DataFrame(np.where(gaps, np.nan, X)).rename(columns="snp {}".format)
    selector = KnockoffSelector(0.3, feature_model=model, estimator="lasso", verdict=False).fit(with_gaps, y)
    pair = selector.selection_.pair
    assert not np.isnan(pair.stacked).any() and set(np.unique(pair.stacked)) <= {0, 1, 2}
    np.testing.assert_array_equal(pair.X[~gaps], X[~gaps])
    flagged = np.where(gaps, -127.0, X)  # as readers of .bed files write a missing call
    with pytest.warns(UserWarning, match="-127 in .* cells of column 'x0'.* make these cells empty"):
        same = KnockoffSelector(0.3, feature_model=model, estimator="lasso", verdict=False).fit(flagged, y)
    np.testing.assert_array_equal(same.W_, selector.W_)
    found = settled(model, {"hidden_knockoff": "posterior"}).sampler.sample(flagged, rng, 2)
    assert all(set(np.unique(copy)) <= {0, 1, 2} for copy in found.parts)
