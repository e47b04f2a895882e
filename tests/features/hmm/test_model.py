"""Hidden Markov models: the posterior sampler against the enumerated posterior, evidence, missing cells, the fit."""

import numpy as np
import pytest
from tests.features.hmm.chains import every, random_model, random_rows
from tests.refusals import refuses

from knockoffs.errors import InputError
from knockoffs.features.hmm.emissions import DiscreteEmissions, GaussianEmissions
from knockoffs.features.hmm.fit import fit_hidden_markov
from knockoffs.features.hmm.model import HiddenMarkov, from_hmmlearn, log_likelihood, sample_states
from knockoffs.features.posterior import forward_backward
from knockoffs.sampling.conjugates.markov_chain import MarkovChain
from knockoffs.sampling.sampler import sample_knockoffs


def test_the_posterior_sampler_with_gaussian_emissions():
    """Shares of the eight paths, one cell missing; 200,000 draws, 5 standard errors: false alarm 5e-6, shows 0.006."""
    rng = np.random.default_rng(3)
    emissions = GaussianEmissions(rng.normal(size=(3, 2)), rng.uniform(0.5, 2, size=(3, 2)))
    model = HiddenMarkov(random_rows(rng, False, 2), random_rows(rng, False, 2, 2, 2), emissions)
    row = np.array([[0.3, np.nan, -1.0]])
    h = every(2, 3)
    X = model.as_network().nodes[1].conjugate
    log_weight = MarkovChain(model.initial, model.transitions).log_conditional(h, {})
    weight = np.exp(log_weight + X.log_conditional(np.repeat(row, 8, axis=0), {"H": h}))
    assert np.log(weight.sum()) == pytest.approx(log_likelihood(model, row)[0], abs=1e-12)
    n = 200_000
    frequency = np.bincount(sample_states(model, np.repeat(row, n, axis=0), rng) @ [4, 2, 1], minlength=8) / n
    p = weight / weight.sum()
    assert (np.abs(frequency - p) <= 5 * np.sqrt(p * (1 - p) / n)).all()


def test_short_segments_change_nothing():
    """Filtering a segment again on the way back gives the same numbers, hence the same draw, bit by bit."""
    rng = np.random.default_rng(4)
    model = random_model(rng, 23, 3, 4, False)
    X = model.emissions.draw(rng.integers(3, size=(100, 23)).astype(np.uint8), rng)
    likelihood = model.emissions._likelihood
    key = rng.integers(2**64, size=2, dtype=np.uint64)
    draws = []
    for segment in (2, 3, 5, 22, 23, 40):
        H = np.empty(X.shape, np.uint8)
        forward_backward.sample_states(X, model.initial[None], model.transitions, likelihood, key, 0, segment, H)
        draws.append(H)
    assert all((H == draws[0]).all() for H in draws)


@pytest.mark.parametrize("make", ["discrete", "gaussian"])
def test_a_long_chain_survives(make):
    """20,000 sites: finite, and the hidden states still follow X at the far end."""
    rng = np.random.default_rng(5)
    p, K, n = 20_000, 2, 3
    H = (np.arange(p) // 50 % 2).astype(np.uint8)[None].repeat(n, axis=0)
    if make == "discrete":
        emissions = DiscreteEmissions(np.tile([[0.9, 0.1], [0.1, 0.9]], (p, 1, 1)))
    else:
        emissions = GaussianEmissions(np.tile([0.0, 500.0], (p, 1)), np.ones((p, K)))
    model = HiddenMarkov(np.full(K, 0.5), np.tile([[0.98, 0.02], [0.02, 0.98]], (p - 1, 1, 1)), emissions)
    X = emissions.draw(H, rng).astype(float)
    if make == "gaussian":
        assert np.isfinite(log_likelihood(model, X)).all()
    assert (sample_states(model, X, rng)[:, -1000:] == H[:, -1000:]).mean() > 0.9
    X_tilde = sample_knockoffs(model.as_network(), X, rng)
    assert np.isfinite(X_tilde).all() and (X_tilde != X).any()


def simulate(rng, n, p, K, M):
    """Rows of a sticky chain with distinct emissions."""
    transitions = np.tile(0.85 * np.eye(K) + 0.15 / K, (p - 1, 1, 1))
    table = random_rows(rng, False, p, K, M) * 0.2
    table[:, np.arange(K), np.arange(K) % M] += 0.8
    model = HiddenMarkov(np.full(K, 1 / K), transitions, table)
    H = np.empty((n, p), dtype=np.uint8)
    H[:, 0] = rng.integers(K, size=n)
    for j in range(1, p):
        H[:, j] = np.where(rng.random(n) < 0.85, H[:, j - 1], rng.integers(K, size=n))
    return model, model.emissions.draw(H, rng).astype(float), H


def test_fit_finds_the_model():
    """K by AIC, and the likelihood of fresh rows within 0.05 of the truth's (a wrong K loses 0.3 or more)."""
    rng = np.random.default_rng(8)
    model, X, _ = simulate(rng, 1500, 10, 2, 3)
    X[rng.random(X.shape) < 0.03] = np.nan
    fitted = fit_hidden_markov(X[:1000], rng=rng, n_states=(1, 2, 3), n_starts=2)
    assert len(fitted.initial) == 2
    assert log_likelihood(fitted, X[1000:]).mean() > log_likelihood(model, X[1000:]).mean() - 0.05
    one = fit_hidden_markov(X[:1000], rng=rng, n_states=1)
    assert log_likelihood(one, X[1000:]).mean() < log_likelihood(model, X[1000:]).mean() - 0.3


@pytest.mark.parametrize("shared", ["transitions", "all", "none"])
@pytest.mark.parametrize("emissions", ["discrete", "gaussian"])
def test_each_round_of_the_fit_gains(shared, emissions, monkeypatch):
    """Without a prior, expectation and maximisation never lowers the likelihood."""
    from knockoffs.features.hmm import fit as module

    rng = np.random.default_rng(9)
    _, X, H = simulate(rng, 150, 5, 2, 3)
    if emissions == "gaussian":
        X = H * 2.0 + rng.standard_normal(H.shape)
    values, expect = [], module._expect
    monkeypatch.setattr(module, "_expect", lambda *a: values.append(expect(*a)) or values[-1])
    fit_hidden_markov(
        X, rng=rng, n_states=2, n_starts=1, shared=shared, emissions=emissions, pseudocount=0.0, tol=0.0, max_iter=15
    )
    gains = np.diff([value[3] for value in values])
    assert len(gains) > 3 and gains.min() > -1e-8


def test_fit_is_the_same_whatever_n_jobs(jobs_are_threads):
    _, X, _ = simulate(np.random.default_rng(10), 60, 4, 2, 2)
    fits = [
        fit_hidden_markov(X, rng=np.random.default_rng(0), n_states=(1, 2), n_starts=2, n_jobs=n_jobs, max_iter=5)
        for n_jobs in (1, 2)
    ]
    assert (fits[0].transitions == fits[1].transitions).all()
    assert (fits[0].emissions.table == fits[1].emissions.table).all()


@pytest.mark.parametrize("shared", ["transitions", "all"])
def test_the_fit_does_not_mind_units(shared):
    """Columns times 1e-9 or 1e9, and far from zero: the same model in those units."""
    rng = np.random.default_rng(13)
    _, _, H = simulate(rng, 200, 4, 2, 2)
    X = 2.0 * H + rng.standard_normal(H.shape)
    options = {"n_states": 2, "n_starts": 1, "shared": shared, "max_iter": 20}
    base = fit_hidden_markov(X, rng=np.random.default_rng(0), **options)
    for unit, offset in [(1e-9, 0.0), (1e9, 0.0), (1.0, 1e6)]:
        other = fit_hidden_markov(unit * X + offset, rng=np.random.default_rng(0), **options)
        np.testing.assert_allclose((other.emissions.means - offset) / unit, base.emissions.means, atol=1e-6)
        np.testing.assert_allclose(other.emissions.sds / unit, base.emissions.sds, atol=1e-6)


@pytest.mark.filterwarnings("default")
def test_hmmlearn_models():
    hmm = pytest.importorskip("hmmlearn.hmm")
    rng = np.random.default_rng(11)
    X = rng.integers(3, size=(40, 6))
    categorical = hmm.CategoricalHMM(n_components=2, random_state=0, n_iter=3).fit(X.reshape(-1, 1), [6] * 40)
    model = from_hmmlearn(categorical, 6)
    assert log_likelihood(model, X).sum() == pytest.approx(categorical.score(X.reshape(-1, 1), [6] * 40))
    Y = rng.standard_normal((40, 6))
    for kind in ("diag", "full", "spherical", "tied"):
        gaussian = hmm.GaussianHMM(n_components=2, covariance_type=kind, random_state=0, n_iter=3)
        gaussian.fit(Y.reshape(-1, 1), [6] * 40)
        value = log_likelihood(from_hmmlearn(gaussian, 6), Y).sum()
        assert value == pytest.approx(gaussian.score(Y.reshape(-1, 1), [6] * 40))


def test_errors_name_the_place():
    rng = np.random.default_rng(12)
    initial, transitions = np.array([1.0, 0.0]), np.tile(np.eye(2), (2, 1, 1))
    table = np.tile(np.eye(2), (3, 1, 1))
    bad = table.copy()
    bad[2, 1, 1] = 0.5
    refuses(r"emissions\[2, 1\] adds up to 0.5, not to 1", HiddenMarkov, initial, transitions, bad)
    with pytest.raises(InputError, match="emissions are for 2 sites and 2 states: the chain has 3 and 2"):
        HiddenMarkov(initial, transitions, table[:2])
    refuses(r"expected \(p, K, M\)", HiddenMarkov, initial, transitions, table[0])
    refuses("site 1, state 0: mean 0 and sd -1", GaussianEmissions, np.zeros((2, 1)), np.array([[1.0], [-1.0]]))
    model = HiddenMarkov(initial, transitions, table)
    refuses("Did you mean 'copy'", model.as_network, hidden_knockoff="copi")
    with pytest.raises(InputError, match="row 0, site 1: -1 is not a known symbol"):
        sample_knockoffs(model.as_network(), np.array([[0, -1, 0]]), rng)
    with pytest.raises(InputError, match="row 1, site 2: X = 1 is impossible under the model"):
        sample_knockoffs(model.as_network(), np.array([[0, 0, 0], [0, 0, 1]]), rng)
    with pytest.raises(InputError, match="row 0, site 1: 2 is not a known symbol; known are 0, ..., 1"):
        sample_knockoffs(model.as_network(), np.array([[0, 2, 0]]), rng)
    refuses("row 0, site 1: 9 is not a known symbol", sample_knockoffs, model.as_network(), np.array([[0, 9, 0]]), rng)
    refuses("the network has 3 columns", sample_knockoffs, model.as_network(), np.zeros((2, 4)), rng)
    gaussian = HiddenMarkov(initial, transitions, GaussianEmissions(np.zeros((3, 2)), np.ones((3, 2))))
    refuses("row 0, site 1: X is infinite", sample_knockoffs, gaussian.as_network(), np.array([[0, np.inf, 0]]), rng)
    refuses("columns '1' are constant", fit_hidden_markov, np.array([[0.3, 0.5], [1.2, 0.5]]), rng=rng)
    refuses("row 1, site 0: X is infinite", fit_hidden_markov, np.array([[0.3, 0.5], [np.inf, 0.5]]), rng=rng)
    refuses("site 1 is missing in every row", fit_hidden_markov, np.array([[0, np.nan], [1, np.nan]]), rng=rng)
    with pytest.raises(InputError, match="X holds 2,000 different values, too many for symbols"):
        fit_hidden_markov(np.arange(2000.0).reshape(1000, 2), rng=rng, emissions="discrete")
    with pytest.raises(InputError, match="shared='transition' is not known. Did you mean 'transitions'"):
        fit_hidden_markov(np.zeros((3, 3)), rng=rng, shared="transition")


def gaussian_model(rng, p, K, zeros):
    emissions = GaussianEmissions(rng.normal(0, 2, (p, K)), rng.uniform(0.5, 2, (p, K)))
    return HiddenMarkov(random_rows(rng, zeros, K), random_rows(rng, zeros, p - 1, K, K), emissions)


def log_joint_of_paths(model, x):
    """All h, and log P(h, x) written out, for one row."""
    p, K = model.emissions.shape
    h = every(K, p)
    with np.errstate(divide="ignore"):
        chain = np.log(model.initial)[h[:, 0]] + sum(
            np.log(model.transitions[j])[h[:, j], h[:, j + 1]] for j in range(p - 1)
        )
    mean, sd = model.emissions.means[np.arange(p), h], model.emissions.sds[np.arange(p), h]
    return h, chain + (-0.5 * ((x - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)).sum(axis=1)


def test_rows_worked_in_logs_have_the_law_of_paths_written_out(monkeypatch):
    """Shares of the paths within 5 standard errors, a cell missing; an error of 0.03 in a share is 10 of them."""
    rng, n = np.random.default_rng(3), 20_000
    model = gaussian_model(rng, 3, 2, zeros=False)
    x = np.array([0.3, np.nan, -0.8])
    X = np.tile(x, (n, 1))
    evidence = log_likelihood(model, X[:5])
    monkeypatch.setattr("knockoffs.features.hmm.model.far_rows", lambda model, X: np.arange(len(X)))
    np.testing.assert_allclose(log_likelihood(model, X[:5]), evidence, rtol=1e-12)
    h, terms = log_joint_of_paths(model, np.nan_to_num(x, nan=model.emissions.means[1, 0]))
    density = -0.5 * ((model.emissions.means[1, 0] - model.emissions.means[1]) / model.emissions.sds[1]) ** 2
    log_joint = terms - (density - np.log(model.emissions.sds[1] * np.sqrt(2 * np.pi)))[h[:, 1]]  # a gap tells nothing
    law = np.exp(log_joint - np.logaddexp.reduce(log_joint))
    assert np.logaddexp.reduce(log_joint) == pytest.approx(evidence[0], rel=1e-12)
    drawn = np.bincount(sample_states(model, X, rng) @ [4, 2, 1], minlength=8) / n
    assert (np.abs(drawn - law[np.argsort(h @ [4, 2, 1])]) <= 5 * np.sqrt(0.25 / n)).all()


@pytest.mark.parametrize(
    ("row", "states"),
    [
        ([0.0, 60.0, 0.0], [0, 0, 0]),  # 60 sd from the only state that can be reached, and on the mean of another
        ([10.0, 100.0, 30.0], [1, 1, 1]),  # the first cell makes state 1 a matter of exp(-750), the second needs it
        ([1e5, 1e5, 1e5], [1, 1, 1]),
    ],
)
def test_cells_far_from_every_state_that_can_be_reached(row, states):
    """Two states that never change, or one that the chain cannot start in: what is improbable is not impossible."""
    initial = np.array([1.0, 0.0]) if states[0] == 0 else np.array([0.5, 0.5])
    emissions = GaussianEmissions(np.tile([0.0, 60.0], (3, 1)), np.tile([1.0, 1.25], (3, 1)))
    model = HiddenMarkov(initial, np.tile(np.eye(2), (2, 1, 1)), emissions)
    X = np.array([[0.5, np.nan, 0.0], row, [-0.5, 0.0, 1.0]])
    h, log_joint = log_joint_of_paths(model, X[1])
    assert h[log_joint.argmax()].tolist() == states
    assert np.exp(np.sort(log_joint)[-2] - log_joint.max()) < 1e-20
    H = sample_states(model, X, np.random.default_rng(0))
    assert H.tolist() == [[0, 0, 0], states, [0, 0, 0]]
    assert log_likelihood(model, X)[1] == pytest.approx(np.logaddexp.reduce(log_joint), rel=1e-12)
    assert np.isfinite(sample_knockoffs(model.as_network(), X[1:2], np.random.default_rng(0))).all()


def test_whole_numbers_with_a_gaussian_law_are_refused():
    model = gaussian_model(np.random.default_rng(0), 3, 2, zeros=False)
    with pytest.raises(InputError, match="dtype int64.*cut to whole numbers"):
        sample_knockoffs(model.as_network(), np.array([[1, 2, 3]]), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("criterion", "gain", "chosen"), [("aic", 1.1, 2), ("aic", 0.9, 1), ("bic", 1.1, 2), ("bic", 0.9, 1)]
)
def test_a_state_more_must_gain_its_price(criterion, gain, chosen, monkeypatch):
    """-2 log likelihood + 2 or log n for each parameter: one more state is taken if it gains just more than that."""
    from knockoffs.features.hmm import fit as module

    X = np.random.default_rng(16).integers(3, size=(50, 4)).astype(float)
    parameters = {K: K - 1 + K * (K - 1) + 4 * K * 2 for K in (1, 2)}  # start, one matrix, 4 sites of 3 symbols
    price = {"aic": 2.0, "bic": np.log(50)}[criterion]
    fits = {
        K: module._start(module._Data.read(X, True, "transitions", 0.1), K, np.random.default_rng(0)) for K in (1, 2)
    }
    value = {1: -100.0, 2: -100.0 + gain * price / 2 * (parameters[2] - parameters[1])}
    monkeypatch.setattr(module, "_fit_once", lambda data, K, *rest: (fits[K], value[K]))
    model = fit_hidden_markov(X, rng=np.random.default_rng(0), n_states=(1, 2), criterion=criterion)
    assert len(model.initial) == chosen


@pytest.mark.parametrize(
    "options", [{"n_starts": 0}, {"max_iter": 0}, {"pseudocount": -0.5}, {"pseudocount": np.nan}, {"n_states": 2.5}]
)
def test_options_that_leave_nothing_to_fit_are_refused(options):
    X = np.random.default_rng(0).integers(3, size=(20, 4))
    refuses(f"{next(iter(options))}=", fit_hidden_markov, X, rng=np.random.default_rng(0), **{"n_states": 2} | options)


def test_expected_starts_steps_and_moments_against_enumeration():
    """What a round of the fit adds up, written out over all paths of every row; and the round with its prior."""
    from knockoffs.features.hmm import fit as module

    rng = np.random.default_rng(17)
    model = random_model(rng, 4, 2, 3, False)
    X = rng.integers(3, size=(12, 4)).astype(float)
    X[0, 1] = X[3, 3] = np.nan
    h, table = every(2, 4), model.emissions.table
    P_h = np.exp(MarkovChain(model.initial, model.transitions).log_conditional(h, {}))
    starts, steps, moments, value = np.zeros(2), np.zeros((3, 2, 2)), np.zeros((4, 2, 3)), 0.0
    for x in X:
        cells = [np.ones(len(h)) if np.isnan(x[j]) else table[j, h[:, j], int(x[j])] for j in range(4)]
        joint = P_h * np.prod(cells, axis=0)
        value += np.log(joint.sum())
        for path, p in zip(h, joint / joint.sum(), strict=True):
            starts[path[0]] += p
            for j in range(3):
                steps[j, path[j], path[j + 1]] += p
            for j in np.flatnonzero(~np.isnan(x)):
                moments[j, path[j], int(x[j])] += p
    for shared in ("none", "transitions"):
        data = module._Data(X, 3, shared, 0.3)
        found = module._expect(data, model)
        for got, expected in zip(found, (starts, steps, moments, value), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-10)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_start", lambda data, K, rng: model)
            after, _ = module._fit_once(data, 2, 1, 1e-4, rng)
        counted = steps if shared == "none" else np.broadcast_to(steps.sum(axis=0), steps.shape)
        np.testing.assert_allclose(after.initial, (starts + 0.3) / (starts + 0.3).sum(), rtol=1e-10)
        np.testing.assert_allclose(
            after.transitions, (counted + 0.3) / (counted + 0.3).sum(axis=2, keepdims=True), rtol=1e-10
        )
        column = np.stack([(X == m).sum(axis=0) for m in range(3)], axis=1) / (~np.isnan(X)).sum(axis=0)[:, None]
        cells = moments + 0.3 * column[:, None, :]
        np.testing.assert_allclose(after.emissions.table, cells / cells.sum(axis=2, keepdims=True), rtol=1e-10)


def test_many_symbols_that_are_a_little_unlikely_add_up():
    """500 symbols make state 1 a matter of exp(-1099), the 510 after them make it the likelier one by 9^10."""
    model = HiddenMarkov(
        np.array([0.5, 0.5]), np.tile(np.eye(2), (1009, 1, 1)), np.tile([[0.9, 0.1], [0.1, 0.9]], (1010, 1, 1))
    )
    X = np.array([[0] * 500 + [1] * 510, [0] * 510 + [1] * 500, [1] * 505 + [0] * 505])
    likelihood = model.emissions._likelihood.copy()
    H = np.stack([sample_states(model, X, np.random.default_rng(seed)) for seed in range(20)])
    assert (H[:, 0] == 1).all() and (H[:, 1] == 0).all()
    assert {tuple(row) for row in H[:, 2]} == {(0,) * 1010, (1,) * 1010}  # evens; 20 draws are alike twice in 10^6
    each = np.log(0.5) + 500 * np.log(0.09) + np.array([10, 10, 5]) * np.log(0.9)
    other = np.log(0.5) + 500 * np.log(0.09) + np.array([10, 10, 5]) * np.log(0.1)
    each[2], other[2] = each[2] + 5 * np.log(0.1), other[2] + 5 * np.log(0.9)
    np.testing.assert_allclose(log_likelihood(model, X), np.logaddexp(each, other), rtol=1e-12)
    assert (model.emissions._likelihood == likelihood).all()


@pytest.mark.parametrize("kind", ["discrete", "gaussian"])
def test_one_site_is_a_mixture(kind):
    emissions = DiscreteEmissions(np.array([[[0.9, 0.1], [0.2, 0.8]]]))
    if kind == "gaussian":
        emissions = GaussianEmissions(np.array([[0.0, 5.0]]), np.ones((1, 2)))
    model = HiddenMarkov(np.array([0.3, 0.7]), np.zeros((0, 2, 2)), emissions)
    X = model.sample(5, np.random.default_rng(0))
    assert sample_knockoffs(model.as_network(), X, np.random.default_rng(1)).shape == (5, 1)
    law = model.initial * np.exp(emissions.log_likelihood(X)[0])
    np.testing.assert_allclose(model.log_density(X), np.log(law.sum(axis=1)), rtol=1e-12)


def test_a_symbol_of_a_state_that_scaling_loses_is_possible():
    """State 1 is a matter of exp(-2245) before the last symbol, which it alone can emit."""
    table = np.tile([[0.9, 0.1, 0.0], [0.01, 0.98, 0.01]], (500, 1, 1))
    model = HiddenMarkov(np.array([0.5, 0.5]), np.tile(np.eye(2), (499, 1, 1)), table)
    X = np.zeros((2, 500), dtype=int)
    X[0, -1] = 2
    H = sample_states(model, X, np.random.default_rng(0))
    assert (H[0] == 1).all() and (H[1] == 0).all()
