"""The false discovery rate with hidden Markov features: held with the right knockoffs, lost with wrong ones."""

import numpy as np
import pytest
from sklearn.linear_model import LassoCV
from tests.guarantees.runs import FDR, correlation_scores, holds

from knockoffs.features import Prepared
from knockoffs.features.hmm import GaussianEmissions, HiddenMarkov
from knockoffs.features.hmm.mosaic import GenotypeModel, Mosaic
from knockoffs.filter import difference, false_discovery_proportion, knockoff_filter, power
from knockoffs.sampling.sampler import sample_knockoffs

N = 60  # runs; with sd about 0.15 the standard error is 0.02, so a true FDR of 0.35 is seen


def walk(initial, transitions, n, rng):
    """Hidden chains, drawn step by step."""
    H = np.empty((n, len(transitions) + 1), dtype=np.uint8)
    for j in range(H.shape[1]):
        law = np.tile(initial, (n, 1)) if j == 0 else transitions[j - 1][H[:, j - 1]]
        H[:, j] = (law.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)
    return H


def gaussian_features(rng, hidden_knockoff):
    """120 sites, 4 sticky states, numbers that follow the state closely."""
    p, K = 120, 4
    transitions = np.tile(0.85 * np.eye(K) + 0.15 / K, (p - 1, 1, 1))
    emissions = GaussianEmissions(rng.normal(size=(p, K)), np.full((p, K), 0.7))
    model = Prepared(HiddenMarkov(np.full(K, 1 / K), transitions, emissions), {"hidden_knockoff": hidden_knockoff})
    return model, emissions.draw(walk(np.full(K, 1 / K), transitions, 300, rng), rng)


def genotype_features(rng, hidden_knockoff):
    """120 SNPs of a mosaic of 5 ancestors."""
    p, K = 120, 5
    mosaic = Mosaic(np.full(p, 0.15), rng.dirichlet(np.full(K, 5.0), size=p), rng.beta(0.5, 0.5, size=(p, K)))
    X = GenotypeModel(mosaic).sample(400, rng).astype(float)
    return Prepared(GenotypeModel(mosaic), {"hidden_knockoff": hidden_knockoff}), X


def lasso_W(X, X_tilde, y, rng):
    """Lasso coefficient difference; the pairs are swapped at random before the fit, and W swapped back."""
    flip = rng.random(X.shape[1]) < 0.5
    both = np.hstack([np.where(flip, X_tilde, X), np.where(flip, X, X_tilde)])
    scale = both.std(axis=0)
    both = (both - both.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    size = np.abs(LassoCV(alphas=15, eps=0.02, cv=3, tol=1e-2).fit(both, y).coef_)
    W = size[: X.shape[1]] - size[X.shape[1] :]
    return np.where(flip, -W, W)


def marginal_W(X, X_tilde, y, rng):
    """Difference of absolute correlations with y: a score that every null site near a signal scores well in."""
    return difference(*correlation_scores(X, X_tilde, y))


def shuffled(model, X, rng):
    """Invalid knockoffs: every column permuted on its own, so the sites forget each other."""
    return rng.permuted(X, axis=0)


def run(features, seed, *, statistic=lasso_W, knockoffs=None, hidden_knockoff="copy"):
    """FDP and power of N runs with fresh features, effects and noise."""
    fdps, powers = [], []
    for rng in np.random.default_rng(seed).spawn(N):
        model, X = features(rng, hidden_knockoff)
        non_nulls = np.zeros(X.shape[1], dtype=bool)
        non_nulls[rng.choice(X.shape[1], 20, replace=False)] = True
        signal = ((X - X.mean(axis=0)) * non_nulls) @ rng.choice([-1.0, 1.0], X.shape[1])
        y = signal + 4.0 * rng.standard_normal(len(X))
        X_tilde = (knockoffs or (lambda m, X, rng: sample_knockoffs(m.as_network(), X, rng)))(model, X, rng)
        selected = knockoff_filter(statistic(X, X_tilde, y, rng), FDR)
        fdps.append(false_discovery_proportion(selected, non_nulls))
        powers.append(power(selected, non_nulls))
    return np.array(fdps), np.array(powers)


@pytest.mark.parametrize("features", [gaussian_features, genotype_features])
@pytest.mark.parametrize("hidden_knockoff", ["copy", "posterior"])
@pytest.mark.parametrize("statistic", [lasso_W, marginal_W])
def test_fdr_is_held(features, hidden_knockoff, statistic):
    fdps, powers = run(features, 0, hidden_knockoff=hidden_knockoff, statistic=statistic)
    print(
        f"{features.__name__} {hidden_knockoff} {statistic.__name__}: FDR {fdps.mean():.3f} power {powers.mean():.3f}"
    )
    assert holds(fdps)
    assert powers.mean() > (0.3 if statistic is lasso_W else 0.0)


@pytest.mark.parametrize("features", [gaussian_features, genotype_features])
def test_the_check_fails_for_columns_shuffled_one_by_one(features):
    fdps, _ = run(features, 0, knockoffs=shuffled, statistic=marginal_W)
    print(f"{features.__name__} shuffled: FDR {fdps.mean():.3f}")
    assert not holds(fdps)
