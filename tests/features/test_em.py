"""EM for Gaussian mixtures: each step against its definition, the search against mixtures that are known."""

import numpy as np
import pytest
from paper.mixtures import draw_mixture, sample_mixture, simulate_three_components
from scipy.stats import multivariate_normal

from knockoffs.errors import InputError
from knockoffs.features import mixture_path
from knockoffs.features.covariance import NEGLIGIBLE, ROWS_AT_ONCE
from knockoffs.features.em import (
    RIDGE,
    Mixture,
    admissible,
    clusters_start,
    em_steps,
    mixture_of,
    run_em,
    split_start,
)
from knockoffs.features.mixture_path import search_mixture


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def draw(n, d, n_components, rng):
    return standardised(sample_mixture(draw_mixture(n_components, d, rng=rng), n, rng=rng)[0])


def start_of(Z, n_components, rng):
    return mixture_of(Z, rng.dirichlet(np.ones(n_components), size=len(Z)))


def responsibilities(Z, mixture):
    parts = zip(mixture.weights, mixture.means, mixture.covariances, strict=True)
    joint = np.column_stack([w * multivariate_normal(m, S).pdf(Z) for w, m, S in parts])
    return joint / joint.sum(axis=1, keepdims=True), np.log(joint.sum(axis=1))


def test_e_step_is_bayes_rule(rng):
    Z = draw(ROWS_AT_ONCE + 500, 4, 3, rng)  # more than one block
    mixture = start_of(Z, 3, rng)
    expected, log_density = responsibilities(Z, mixture)
    np.testing.assert_allclose(mixture.posterior(Z), expected, rtol=1e-9)
    np.testing.assert_allclose(mixture.log_density(Z), log_density, rtol=1e-9)


def test_m_step_is_weighted_moments(rng):
    Z = draw(ROWS_AT_ONCE + 500, 4, 3, rng)
    start = clusters_start(Z, 3, rng)
    r, log_density = responsibilities(Z, start)
    assert ((r > 1e-6) & (r < 1e-3)).any()  # small ones count
    after, trace = em_steps(Z, start, 1)
    assert trace[0] == pytest.approx(log_density.sum())
    np.testing.assert_allclose(after.weights, r.mean(axis=0), rtol=1e-9)
    for k in range(3):
        np.testing.assert_allclose(after.means[k], np.average(Z, axis=0, weights=r[:, k]), rtol=1e-9)
        expected = np.cov(Z.T, aweights=r[:, k], bias=True) + RIDGE * np.eye(4)
        np.testing.assert_allclose(after.covariances[k], expected, rtol=1e-8, atol=1e-12)


def test_rows_that_are_left_out_of_a_component_do_not_count(rng):
    """Two clusters 100 apart: each row's other responsibility is far under what is left out."""
    Z = rng.standard_normal((600, 3))
    Z[:200] += 100
    start = mixture_of(Z, np.eye(2)[(np.arange(600) < 200).astype(int)])
    assert (start.posterior(Z).min(axis=1) < NEGLIGIBLE).all()
    after, _ = em_steps(Z, start, 1)
    np.testing.assert_allclose(after.means, [Z[200:].mean(axis=0), Z[:200].mean(axis=0)], rtol=1e-12)
    np.testing.assert_allclose(after.covariances[1], np.cov(Z[:200].T, bias=True) + RIDGE * np.eye(3), rtol=1e-9)


def test_far_and_narrow_components_keep_their_digits(rng):
    """Sums around the mean before the step: squares of 1e6 would leave a variance of 1e-6 four digits in float64."""
    Z = np.r_[1e3 + 1e-2 * rng.standard_normal((500, 2)), rng.standard_normal((500, 2))]
    after, _ = em_steps(Z, mixture_of(Z, np.eye(2)[(np.arange(1000) < 500).astype(int)]), 2)
    expected = np.cov(Z[:500].T, bias=True) + RIDGE * np.eye(2)
    np.testing.assert_allclose(after.covariances[1], expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("d", [1, 3, 12])
def test_the_likelihood_never_falls(d, rng):
    Z = draw(700, d, 3, rng)
    _, trace = em_steps(Z, start_of(Z, 4, rng), 80)
    assert (np.diff(trace) > -1e-6).all()  # the ridge may cost the square of 1e-6 a step
    assert trace[-1] > trace[0]


def test_the_stopping_rule_leaves_little_of_a_parameter():
    """What run_em leaves to gain is at most ten times what it says: Aitken's estimate is one of a rate."""
    for seed in range(5):
        generator = np.random.default_rng(seed)
        Z = draw(1000, 4, 3, generator)
        stopped, log_likelihood = run_em(Z, clusters_start(Z, 3, generator), precision=5e-3)
        _, trace = em_steps(Z, stopped, 500)
        assert trace[0] == pytest.approx(log_likelihood)
        assert trace[-1] - trace[0] < 10 * 5e-3 * stopped.n_parameters


def test_em_that_is_not_finished_says_so(rng):
    Z = draw(500, 4, 3, rng)
    stopped, log_likelihood = run_em(Z, start_of(Z, 3, rng), max_steps=2)
    assert not stopped.converged
    assert log_likelihood == pytest.approx(stopped.log_density(Z).sum())


def test_single_precision_is_near_enough_to_find_starts(rng):
    Z = draw(3000, 20, 4, rng)
    start = clusters_start(Z, 4, rng)
    double, single = em_steps(Z, start, 10), em_steps(Z.astype(np.float32), start, 10)
    np.testing.assert_allclose(single[1], double[1], rtol=1e-5)
    np.testing.assert_allclose(single[0].covariances, double[0].covariances, atol=1e-3)
    assert single[0].covariances.dtype == np.float64


@pytest.mark.parametrize("kind", ["apart", "scale", "hidden"])
def test_a_split_finds_two_components(kind, rng):
    """Two clusters apart; a narrow one inside a wide one; and two that only a direction of little variance tells."""
    A, B = rng.standard_normal((2, 1000, 6))
    if kind == "apart":
        A += 3
    elif kind == "scale":
        A *= 5
    else:
        A[:, 0] = 10 * A[:, 1] + 0.1 * A[:, 0] + 0.5
        B[:, 0] = 10 * B[:, 1] + 0.1 * B[:, 0] - 0.5
    Z = standardised(np.r_[A, B])
    assert split_start(Z, mixture_of(Z, np.ones((2000, 1))), 1001) is None  # too few rows to split
    split = split_start(Z, mixture_of(Z, np.ones((2000, 1))), 12)
    right = (split.posterior(Z)[:, 0] > 0.5) == (np.arange(2000) < 1000)
    assert max(right.mean(), 1 - right.mean()) > 0.9


@pytest.mark.parametrize("d", [5, 40])
def test_five_components_are_five(d):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        mixture, values = search_mixture(draw(3000, d, 5, rng), range(1, 11), criterion="held_out", rng=rng)
        assert mixture.n_components == 5 == min(values, key=values.get)
        assert list(values) == [1, 2, 3, 4, 5, 6, 7]  # two that are worse end the search
        assert (np.diff(mixture.weights) <= 0).all()


def test_the_three_components_of_the_paper_are_three():
    for seed in range(2):
        rng = np.random.default_rng(seed)
        Z = standardised(simulate_three_components(3000, rng=rng).X)
        assert search_mixture(Z, range(1, 11), criterion="aic", rng=rng)[0].n_components == 3


def test_the_criterion_is_that_of_all_rows(rng):
    """Starts are found on a sample; AIC and BIC are those of the mixture that is returned, on every row."""
    Z = draw(6000, 3, 2, rng)  # more than starts are found on
    for criterion, price in (("aic", 2.0), ("bic", np.log(6000))):
        mixture, values = search_mixture(Z, [1, 2, 3], criterion=criterion, rng=rng)
        value = price * mixture.n_parameters - 2 * mixture.log_density(Z).sum()
        assert values[mixture.n_components] == pytest.approx(value, rel=1e-12)
    assert Mixture(np.ones(2) / 2, np.zeros((2, 3)), np.stack([np.eye(3)] * 2)).n_parameters == 1 + 6 + 12


def test_order_of_columns_and_jobs_do_not_matter(seed):
    Z = draw(5000, 6, 3, np.random.default_rng(seed))
    order = np.array([3, 0, 5, 1, 4, 2])

    def search(Z, n_jobs=None):
        return search_mixture(Z, range(1, 6), criterion="aic", rng=np.random.default_rng(seed), n_jobs=n_jobs)

    plain, values = search(Z)
    parallel, same = search(Z, n_jobs=2)
    assert same == values and (parallel.covariances == plain.covariances).all()
    turned, near = search(np.ascontiguousarray(Z[:, order]))
    assert near.keys() == values.keys()
    np.testing.assert_allclose(turned.means, plain.means[:, order], atol=1e-4)
    np.testing.assert_allclose(turned.covariances, plain.covariances[:, order][:, :, order], atol=1e-4)


def test_components_of_few_rows_or_no_spread_are_not_admissible():
    def mixture(weight, variance):
        S = np.stack([np.eye(2), np.diag([1, variance + RIDGE])])
        return Mixture(np.array([1 - weight, weight]), np.zeros((2, 2)), S)

    assert admissible(mixture(0.04, 1.0), 100)
    assert not admissible(mixture(0.039, 1.0), 100)
    assert not admissible(mixture(0.5, 0.9e-4), 100)
    assert admissible(mixture(0.5, 1.1e-4), 100)


def test_an_unknown_criterion_is_refused(rng):
    with pytest.raises(InputError, match="criterion='aicc' is not known"):
        search_mixture(rng.standard_normal((50, 2)), [1, 2], criterion="aicc", rng=rng)


@pytest.mark.parametrize(("n", "d"), [(3000, 10), (10_000, 20), (3000, 60), (500, 3)])
def test_one_gaussian_is_one_component(n, d):
    """AIC would take four to six components at 3000 x 10: the best place for a hundred rows gains more than it asks."""
    C = 0.5 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    for seed in range(2):
        rng = np.random.default_rng(seed)
        Z = standardised(rng.multivariate_normal(np.zeros(d), C, size=n))
        mixture, values = search_mixture(Z, range(1, 7), criterion="held_out", rng=rng)
        assert mixture.n_components == 1 and np.isfinite(values[1])


def test_held_out_rows_judge_a_mixture_as_it_is_used(rng):
    """Two clear components, and a use that would flatten any second one: one is chosen, else two."""
    Z = rng.permutation(np.concatenate([rng.normal(-4, 1, (300, 2)), rng.normal(4, 1, (300, 2))]))

    def flatten(rows, mixture):
        assert len(rows) == 450  # a quarter is held out, and is not among them
        wide = mixture.covariances * (1 if mixture.n_components == 1 else 1e6)
        return Mixture(mixture.weights, mixture.means, wide)

    search = {"criterion": "held_out", "rng": rng}
    assert search_mixture(Z, [1, 2], **search)[0].n_components == 2
    assert search_mixture(Z, [1, 2], settle=flatten, **search)[0].n_components == 1


def test_no_start_knows_the_rows_that_will_judge_it(monkeypatch, rng):
    """Found on all rows, a needless split in 50 dimensions would be kept by the rows that it was fitted to."""
    Z = rng.standard_normal((1000, 50))
    seen = counted(monkeypatch, mixture_path, "split_start")
    assert search_mixture(Z, range(1, 4), criterion="held_out", rng=rng)[0].n_components == 1
    assert {len(rows) for rows, *_ in seen} == {750}
    leaking = [lambda make=make: mixture_path.Fold(Z, make().held) for make in mixture_path.folds_of(Z)]
    path = mixture_path.MixturePath(Z, folds=leaking)
    path.walk(range(1, 4), rng)
    assert path.best > 1


def test_a_row_off_a_near_relation_does_not_hide_the_classes(monkeypatch):
    """Two classes, in each of which one column determines another but for a thousandth; one row is off by 3."""
    rng = np.random.default_rng(0)
    x, K = rng.normal(size=(2000, 2)), rng.random(2000) < 0.5
    Z = standardised(np.column_stack([x, np.where(K, 1, -1) * x[:, 0] + 1e-3 * rng.normal(size=2000)]))

    def chosen(rows):
        found, _ = search_mixture(rows, range(1, 4), criterion="held_out", rng=np.random.default_rng(1))
        return found.n_components

    assert chosen(Z) == 2
    Z[0, 2] += 3.0
    assert chosen(Z) == 2
    monkeypatch.setattr("knockoffs.features.mixture_path.bounded", lambda log_density, Z: log_density)
    assert chosen(Z) == 1


def counted(monkeypatch, module, name):
    """List that grows by the arguments of every call."""
    calls, function = [], getattr(module, name)

    def wrapped(*arguments, **options):
        calls.append(arguments)
        return function(*arguments, **options)

    monkeypatch.setattr(module, name, wrapped)
    return calls


def test_em_goes_on_only_where_the_first_fold_does_not_prefer_a_smaller_mixture(monkeypatch, rng):
    """Under one Gaussian two components are behind by many standard errors."""
    ends = counted(monkeypatch, mixture_path, "run_em")
    found, values = search_mixture(rng.standard_normal((1000, 20)), range(1, 6), criterion="held_out", rng=rng)
    assert found.n_components == 1
    assert values.keys() == {1, 2, 3} and np.isinf([values[2], values[3]]).all()  # two that are worse are enough
    assert not ends
    Z = rng.standard_normal((1000, 20))
    Z[::2] += 2.0
    found, _ = search_mixture(standardised(Z), range(1, 3), criterion="held_out", rng=rng)
    assert found.n_components == 2
    assert [len(rows) for rows, _ in ends] == [750] * 4 + [1000]  # the folds, and all rows
