"""FDR with a mixture fitted by EM and sized by AIC; the same check must fail for one Gaussian."""

import numpy as np
import pytest
from joblib import Parallel, delayed
from paper.mixtures import simulate_three_components
from sklearn.linear_model import LogisticRegression
from tests.guarantees.runs import FDR, holds

from knockoffs.features.source import knockoff_source
from knockoffs.filter import false_discovery_proportion, power
from knockoffs.importance.coefficients import coefficient_magnitude
from knockoffs.importance.statistic import ModelScore
from knockoffs.procedure import select_features

RUNS = 60


def run_once(seed, knockoffs):
    """FDP and power of one run of the design of section 5.1 of the paper."""
    rng = np.random.default_rng(seed)
    data = simulate_three_components(3000, rng=rng)
    X = data.X / data.X.std(axis=0)
    selection = select_features(
        X,
        data.y,
        knockoffs=knockoffs,
        statistic=ModelScore(LogisticRegression(C=0.01, max_iter=1000), coefficient_magnitude),
        fdr=FDR,
        rng=rng,
    )
    selected = selection.selected
    return false_discovery_proportion(selected, data.non_nulls), power(selected, data.non_nulls)


def run_all(knockoffs, seed):
    runs = Parallel(n_jobs=2)(delayed(run_once)(1000 * seed + i, knockoffs) for i in range(RUNS))
    return np.array(runs)


@pytest.mark.filterwarnings("ignore")
def test_a_fitted_mixture_holds_the_fdr(seed):
    runs = run_all(knockoff_source("mixture", {"n_components": range(1, 6)}), seed)
    print(f"mixture: FDR {runs[:, 0].mean():.3f} +- {runs[:, 0].std() / RUNS**0.5:.3f}, power {runs[:, 1].mean():.3f}")
    assert holds(runs[:, 0])
    assert runs[:, 1].mean() > 0.8


@pytest.mark.filterwarnings("ignore")
def test_one_gaussian_does_not(seed):
    runs = run_all(knockoff_source("gaussian"), seed)
    print(f"one Gaussian: FDR {runs[:, 0].mean():.3f} +- {runs[:, 0].std() / RUNS**0.5:.3f}")
    assert not holds(runs[:, 0])
