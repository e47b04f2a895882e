"""EM for Gaussian mixtures: each step against its definition, the search against mixtures that are known."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.cluster import kmeans_plusplus

from knockoffs.errors import InputError
from knockoffs.features import em
from knockoffs.features.em import _Path, admissible, em_steps, run_em, search_mixture
from knockoffs.features.em_starts import LLOYD_STEPS, _halves, clusters_start, merged_start, seem_normal, split_start
from knockoffs.features.em_steps import NEGLIGIBLE, PRECISION, RIDGE, ROWS_AT_ONCE, Fitted, Mixture, mixture_of
from knockoffs.features.order import HELD_OUT
from knockoffs.simulate import simulate_three_components
from knockoffs.simulate.mixtures import draw_mixture, sample_mixture


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


def test_the_optimum_is_that_of_scikit_learn(rng):
    from sklearn.mixture import GaussianMixture

    Z = draw(1500, 5, 3, rng)
    start = clusters_start(Z, 3, rng)
    theirs = GaussianMixture(
        3,
        tol=1e-12,
        max_iter=3000,
        weights_init=start.weights,
        means_init=start.means,
        precisions_init=np.linalg.inv(start.covariances),
    ).fit(Z)
    ours, trace = em_steps(Z, start, theirs.n_iter_ + 50)
    assert trace[-1] / len(Z) == pytest.approx(theirs.score(Z), abs=1e-9)
    np.testing.assert_allclose(ours.weights, theirs.weights_, atol=1e-6)
    np.testing.assert_allclose(ours.means, theirs.means_, atol=1e-6)
    np.testing.assert_allclose(ours.covariances, theirs.covariances_, atol=1e-6)


def test_the_stopping_rule_leaves_little_of_a_parameter():
    """What run_em leaves to gain is at most ten times what it says: Aitken's estimate is one of a rate."""
    for seed in range(5):
        generator = np.random.default_rng(seed)
        Z = draw(1000, 4, 3, generator)
        stopped = run_em(Z, clusters_start(Z, 3, generator))
        _, trace = em_steps(Z, stopped.mixture, 500)
        assert trace[0] == pytest.approx(stopped.log_likelihood)
        assert trace[-1] - trace[0] < 10 * PRECISION * stopped.mixture.n_parameters


def test_em_that_is_not_finished_says_so(rng):
    Z = draw(500, 4, 3, rng)
    stopped = run_em(Z, start_of(Z, 3, rng), max_steps=2)
    assert not stopped.mixture.converged
    assert stopped.log_likelihood == pytest.approx(stopped.mixture.log_density(Z).sum())


def test_single_precision_is_near_enough_to_find_starts(rng):
    Z = draw(3000, 20, 4, rng)
    start = clusters_start(Z, 4, rng)
    double, single = em_steps(Z, start, 10), em_steps(Z.astype(np.float32), start, 10)
    np.testing.assert_allclose(single[1], double[1], rtol=1e-5)
    np.testing.assert_allclose(single[0].covariances, double[0].covariances, atol=1e-3)
    assert single[0].covariances.dtype == np.float64


def test_a_merged_pair_has_the_moments_of_both(rng):
    Z = draw(900, 3, 3, rng)
    r = rng.dirichlet(np.ones(3), size=900)
    merged = [mixture_of(Z, np.column_stack([r[:, k], 1 - r[:, k]])) for k in range(3)]
    found = merged_start(mixture_of(Z, r))
    one = next(m for m in merged if np.isclose(m.weights[0], found.weights[0]))  # the component that was kept
    np.testing.assert_allclose(found.means, one.means, atol=1e-10)
    np.testing.assert_allclose(found.covariances, one.covariances, atol=2 * RIDGE)


def test_the_pair_that_is_merged_is_the_nearest():
    mixture = Mixture(np.full(3, 1 / 3), np.array([[0.0, 0], [9, 9], [1, 0]]), np.stack([np.eye(2)] * 3))
    np.testing.assert_allclose(np.sort(merged_start(mixture).means[:, 0]), [0.5, 9])


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
    split = split_start(Z, mixture_of(Z, np.ones((2000, 1))), 12)
    right = (split.posterior(Z)[:, 0] > 0.5) == (np.arange(2000) < 1000)
    assert max(right.mean(), 1 - right.mean()) > 0.9


def test_the_radius_tells_a_wide_component_from_a_narrow_one(rng):
    Z = standardised(rng.standard_normal((2000, 8)) * np.where(np.arange(2000) < 1000, 3, 1)[:, None])
    agree = [(mask == (np.arange(2000) < 1000)).mean() for mask in _halves(Z, mixture_of(Z, np.ones((2000, 1))))]
    assert max(agree) > 0.95  # directions get half of the rows right


def test_steps_of_lloyd_that_would_move_no_row_are_spared(rng):
    """The start is the one of all the steps, bit for bit; clusters 8 apart settle at once, a single cloud does not."""
    for apart in (8.0, 0.0):
        Z = rng.standard_normal((1500, 4))
        Z[500:1000, 0] += apart
        Z[1000:, 1] += apart
        seed = int(rng.integers(2**31))
        found = clusters_start(Z, 3, np.random.default_rng(seed))
        centres, _ = kmeans_plusplus(Z, 3, random_state=int(np.random.default_rng(seed).integers(2**31)))
        for _ in range(LLOYD_STEPS):
            nearest = (Z @ centres.T - 0.5 * (centres**2).sum(axis=1)).argmax(axis=1)
            members = np.eye(3)[nearest]
            centres = members.T @ Z / members.sum(axis=0)[:, None]
        np.testing.assert_array_equal(found.means, mixture_of(Z, members).means)


def far_apart(n, d, n_clusters, rng):
    """Clusters 20 apart, each on an axis of its own, and the cluster of each row."""
    K = np.arange(n) % n_clusters
    centres = 20 * np.eye(n_clusters, d)
    return rng.standard_normal((n, d)) + centres[K], K


@pytest.mark.parametrize("share", [1, 4])
def test_a_component_that_holds_two_clusters_does_not_seem_normal(share, rng):
    """Of equal size they are told by the kurtosis; where one is a quarter of the other, by the skewness alone."""
    Z, K = far_apart(12_000, 5, 4, rng)
    kept = (K != 1) | (np.arange(12_000) % (4 * share) < 4)
    Z, K = Z[kept], K[kept]
    assert seem_normal(Z, mixture_of(Z, np.eye(4)[K]), K)
    joined = np.maximum(K - 1, 0)
    assert not seem_normal(Z, mixture_of(Z, np.eye(3)[joined]), joined)


def test_what_few_rows_cannot_tell_does_not_seem_normal(rng):
    Z, K = far_apart(400, 5, 4, rng)
    assert not seem_normal(Z, mixture_of(Z, np.eye(4)[K]), K)


def test_where_clusters_lie_apart_and_fit_other_starts_are_spared(rng, monkeypatch):
    Z, K = far_apart(6000, 5, 3, rng)
    monkeypatch.setattr("knockoffs.features.em.split_start", lambda *args: pytest.fail("it was split"))
    mixture, _ = search_mixture(standardised(Z), [3], criterion="aic", rng=np.random.default_rng(0))
    assert mixture.converged
    owner = mixture.posterior(standardised(Z)).argmax(axis=1)
    assert len(set(zip(owner, K, strict=True))) == 3  # a component for each cluster


@pytest.mark.parametrize(
    ("case", "fits"),
    [
        ("right", True),
        ("two in one", False),
        ("one cut in two", False),
        ("nearer", False),
        ("not normal", False),
        ("not at its end", False),
    ],
)
def test_a_mixture_fits_at_its_end_where_rows_are_sure_and_components_normal(case, fits, rng):
    Z, K = far_apart(6000, 5, 4, rng)
    if case == "two in one":
        K = np.minimum(K, 2)
    elif case == "one cut in two":
        K = np.where((K == 0) & (Z[:, 4] > 0), 4, K)
    elif case == "nearer":
        Z[K == 0, 0] -= 15  # some rows between two clusters may be of either
        Z[K == 1, 1] -= 20
    elif case == "not normal":
        Z[:, 4] = np.exp(Z[:, 4])
    trace = np.array([0.0, 1e4, 2e4, 3e4]) if case == "not at its end" else np.zeros(4)
    assert _Path(Z, criterion="aic").fits(mixture_of(Z, np.eye(K.max() + 1)[K]), trace) == fits


def test_a_component_of_few_rows_is_not_split(rng):
    Z = rng.standard_normal((30, 4))
    assert split_start(Z, mixture_of(Z, np.ones((30, 1))), 16) is None


@pytest.mark.parametrize("d", [5, 20, 40])
def test_five_components_are_five(d):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        mixture, values = search_mixture(draw(3000, d, 5, rng), range(1, 11), criterion="aic", rng=rng)
        assert mixture.n_components == 5 == min(values, key=values.get)
        assert list(values) == [1, 2, 3, 4, 5, 6, 7]  # two that are worse end the search
        assert (np.diff(mixture.weights) <= 0).all()


def test_the_three_components_of_the_paper_are_three():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        Z = standardised(simulate_three_components(3000, rng=rng).X)
        assert search_mixture(Z, range(1, 11), criterion="aic", rng=rng)[0].n_components == 3


@pytest.mark.parametrize(("n", "d"), [(3000, 10), (20_000, 20), (3000, 60), (500, 3)])
def test_one_gaussian_is_one_component(n, d):
    """AIC alone takes four to six components at 3000 x 10 and 20,000 x 20: the best place for some hundred rows
    gains up to 2.3 a parameter, and AIC pays 2."""
    C = 0.5 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    for seed in range(2):
        rng = np.random.default_rng(seed)
        Z = standardised(rng.multivariate_normal(np.zeros(d), C, size=n))
        mixture, values = search_mixture(Z, range(1, 7), criterion="aic", rng=rng)
        assert mixture.n_components == 1 and np.isfinite(values[1])


@pytest.mark.parametrize(("gain", "value"), [(1.9, "worse"), (2.5, "not comparable"), (3.1, "better")])
def test_aic_does_not_pay_for_the_best_place_of_a_needless_component(gain, value, rng):
    """Twice the log-likelihood a parameter: AIC asks for 2; between 2 and 3 the gain may be that of a search."""
    Z = rng.standard_normal((400, 3))
    path = _Path(Z, criterion="aic")
    one = path.visit(1, mixture_of(Z, np.ones((400, 1))))
    two = mixture_of(Z, np.full((400, 2), 0.5))
    extra = two.n_parameters - one.n_parameters
    found = path._value(2, Fitted(two, path.log_likelihoods[1] + gain * extra / 2))
    expected = {"worse": path.values[1] + 0.1 * extra, "not comparable": np.inf, "better": path.values[1] - 1.1 * extra}
    assert found == pytest.approx(expected[value])


def test_the_criterion_is_no_worse_than_that_of_scikit_learn():
    from sklearn.mixture import GaussianMixture

    for seed in range(2):
        rng = np.random.default_rng(seed)
        Z = draw(2000, 15, 4, rng)
        _, values = search_mixture(Z, range(1, 6), criterion="aic", rng=rng)
        theirs = min(GaussianMixture(k, n_init=3, max_iter=500, random_state=seed).fit(Z).aic(Z) for k in range(1, 6))
        assert min(values.values()) <= theirs + 1


def test_the_criterion_is_that_of_all_rows(rng):
    """Starts are found on a sample; AIC and BIC are those of the mixture that is returned, on every row."""
    Z = draw(6000, 3, 2, rng)  # more than SEARCH_ROWS
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


def test_numbers_that_were_not_asked_for_are_passed_over(rng):
    Z = draw(2000, 5, 4, rng)
    mixture, values = search_mixture(Z, [2, 4], criterion="aic", rng=rng)
    assert mixture.n_components == 4 and list(values) == [2, 4]
    single, none = search_mixture(Z, [4], criterion="aic", rng=rng)
    assert single.n_components == 4 and none == {}


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


@pytest.mark.parametrize(
    ("spread", "chosen"), [(0.0, 3), (0.9, 3), (1.1, 2)], ids=["sure", "just told apart", "just not told apart"]
)
def test_held_out_rows_choose_the_smallest_mixture_they_do_not_tell_from_the_best(spread, chosen):
    """100 rows prefer three components to two by 0.2 on average: the standard error is 0.1 times the spread."""
    path = _Path(np.zeros((4, 1)), criterion="held_out", held_out=np.zeros((100, 1)))
    signs = np.tile([-1.0, 1.0], 50)
    path.densities = {1: np.full(100, -1.0), 2: np.zeros(100), 3: 0.2 + spread * signs, 4: np.full(100, 0.1)}
    path.values = {k: -2 * float(density.sum()) for k, density in path.densities.items()}
    assert path.best == chosen
    path.values[2] = np.inf  # not to be chosen: a component of it has too few rows
    assert path.best == 3


def test_held_out_rows_judge_a_mixture_as_it_is_used(rng):
    """Two clear components, and a use that would flatten any second one: one is chosen, else two."""
    Z = np.concatenate([rng.normal(-4, 1, (300, 2)), rng.normal(4, 1, (300, 2))])

    def flatten(rows, mixture):
        assert len(rows) == 480  # a fifth is held out, and is not among them
        wide = mixture.covariances * (1 if mixture.n_components == 1 else 1e6)
        return Mixture(mixture.weights, mixture.means, wide)

    search = {"criterion": "held_out", "rng": rng}
    assert search_mixture(Z, [1, 2], **search)[0].n_components == 2
    assert search_mixture(Z, [1, 2], settle=flatten, **search)[0].n_components == 1


def test_a_row_off_a_near_relation_does_not_hide_the_classes(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 3)) + np.where(rng.random(2000) < 0.5, 2.0, -2.0)[:, None]
    Z = np.column_stack([x, x[:, 0] + 1e-3 * rng.normal(size=2000)])
    Z /= Z.std(axis=0)

    def chosen(rows):
        found, _ = search_mixture(rows, range(1, 4), criterion="held_out", rng=np.random.default_rng(1))
        return found.n_components

    assert chosen(Z) == 2
    held_out = np.random.default_rng(1).spawn(2)[1].permutation(2000) < HELD_OUT * 2000
    Z[np.flatnonzero(held_out)[0], 3] += 3.0  # 3000 standard deviations from what the first column says
    assert chosen(Z) == 2
    monkeypatch.setattr("knockoffs.features.em.bounded", lambda log_density, Z: log_density)
    assert chosen(Z) == 1


def counted(monkeypatch, module, name):
    """List that grows by the arguments of every call."""
    calls, function = [], getattr(module, name)

    def wrapped(*arguments, **options):
        calls.append(arguments)
        return function(*arguments, **options)

    monkeypatch.setattr(module, name, wrapped)
    return calls


def test_em_goes_on_only_where_held_out_rows_do_not_prefer_a_smaller_mixture(monkeypatch, rng):
    """Under one Gaussian two components are behind by many standard errors, and a merged one is never asked for."""
    ends = counted(monkeypatch, em, "run_em")
    found, values = search_mixture(rng.standard_normal((1000, 20)), range(1, 6), criterion="held_out", rng=rng)
    assert found.n_components == 1
    assert list(values) == [1, 2, 3]  # and two rises are enough
    assert values[1] < min(values[2], values[3]) < np.inf
    assert not ends
    Z = rng.standard_normal((1000, 20))
    Z[:500] += 2.0
    found, _ = search_mixture(standardised(Z), range(1, 3), criterion="held_out", rng=rng)
    assert found.n_components == 2
    assert len(ends) == 3  # two components on the rows that starts are found on, those learned from, and all


def test_a_mixture_that_was_given_up_is_finished_before_it_is_merged(rng):
    Z = draw(600, 3, 2, rng)
    path = _Path(Z, criterion="held_out", held_out=Z[:100])
    start = start_of(Z, 3, rng)
    path.fitted = {3: start}
    assert path.finished(3) is start
    path.given_up = {3}
    assert path.finished(3).log_density(Z).sum() > start.log_density(Z).sum() + 1
    np.testing.assert_array_equal(path.finished(3).means, run_em(Z, run_em(Z, start).mixture).mixture.means)


def test_numbers_that_the_rows_cannot_hold_are_not_fitted(monkeypatch, rng):
    """Three components of 20 columns need 120 rows, and 100 are learned from: no weight is at least 0.4."""
    splits = counted(monkeypatch, em, "split_start")
    Z = rng.standard_normal((100, 20))
    found, values = search_mixture(Z, range(1, 4), criterion="aic", rng=rng)
    assert found.n_components == 1
    assert [mixture.n_components for _, mixture, _ in splits] == [1]
    assert np.isinf(values[3])
    path = _Path(Z, criterion="aic")
    path.values = {1: 1.0, 2: 0.0}
    assert not path.cannot_win(3)  # it may be merged, and then be better than the two there are
    path.values = {1: 0.0, 2: 1.0}
    assert path.cannot_win(3)
    path.Z = rng.standard_normal((120, 20))
    assert not path.cannot_win(3)
