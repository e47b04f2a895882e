from itertools import product

import numpy as np
import pytest
from scipy import stats
from tests.binary import binary
from tests.refusals import refuses

from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.features.class_conditional import CategoricalColumn, GaussianColumn, PoissonColumn
from knockoffs.features.naive_bayes import NaiveBayes, fit_naive_bayes
from knockoffs.sampling.categorical import normalise_log_weights
from knockoffs.sampling.definition import enumerate_knockoffs, worst_swap
from knockoffs.sampling.sampler import sample_knockoffs


def random_discrete(rng, zeros):
    n_classes = int(rng.integers(1, 4))
    weights = rng.dirichlet(np.ones(n_classes))
    tables = []
    for n_states in rng.integers(2, 4, size=2):
        table = rng.dirichlet(np.ones(n_states), size=n_classes)
        table = np.where(rng.random(table.shape) < zeros, 0.0, table)
        table[:, 0] += table.sum(axis=1) == 0
        tables.append(table / table.sum(axis=1, keepdims=True))
    p = np.where(rng.random((n_classes, 1)) < zeros, 1.0, rng.random((n_classes, 1)))
    return NaiveBayes(weights, (CategoricalColumn((0, 2), tuple(tables)), binary((1,), p)))


def states_of(model):
    out = {"K": np.arange(len(model.weights))}
    for node, group in zip(model.as_network().observed, model.children, strict=True):
        out[node.name] = np.array(list(product(*(range(table.shape[1]) for table in group.tables))))
    return out


@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_law_is_exchangeable_exactly(zeros):
    rng = np.random.default_rng(0)
    for _ in range(50):
        model = random_discrete(rng, zeros)
        network = model.as_network()

        def log_joint(values, model=model, network=network):  # P(x) by hand, P(K | x) of the family
            X = network.write(values, np.dtype(float))
            P = np.tile(model.weights, (len(X), 1))
            for group in model.children:
                for j, column in enumerate(group.columns):
                    P *= group.tables[j][:, X[:, column].astype(int)].T
            out = np.full(len(X), -np.inf)
            seen = P.sum(axis=1) > 0
            log_posterior, _ = normalise_log_weights(model.log_weights(X[seen]))
            out[seen] = np.log(P[seen].sum(axis=1)) + log_posterior[np.arange(seen.sum()), values["K"][seen]]
            return out

        X, law = enumerate_knockoffs(network, states_of(model), log_joint)
        assert law.sum() == pytest.approx(1, abs=1e-12)
        assert worst_swap(X, law, network.feature_of) < 1e-12


def mixed_model():
    return NaiveBayes(
        np.array([0.3, 0.7]),
        (
            CategoricalColumn((0,), (np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]),)),
            binary((1, 4), np.array([[0.2, 0.9], [0.7, 0.4]])),
            GaussianColumn((2,), np.array([[0.0], [3.0]]), np.array([[1.0], [4.0]])),
            PoissonColumn((3,), np.array([[1.0], [6.0]])),
        ),
    )


def test_log_weights_of_mixed_columns_against_scipy():
    model = mixed_model()
    X = model.sample(50, np.random.default_rng(1))
    expected = np.empty((50, 2))
    for k in (0, 1):
        expected[:, k] = np.log(model.weights[k])
        expected[:, k] += np.log(model.children[0].tables[0][k][X[:, 0].astype(int)])
        expected[:, k] += (
            stats.bernoulli([table[k, 1] for table in model.children[1].tables]).logpmf(X[:, [1, 4]]).sum(axis=1)
        )
        expected[:, k] += stats.norm(model.children[2].mean[k, 0], [1.0, 2.0][k]).logpdf(X[:, 2])
        expected[:, k] += stats.poisson(model.children[3].rate[k, 0]).logpmf(X[:, 3])
    assert model.log_weights(X) == pytest.approx(expected, rel=1e-12)


def test_draws_follow_the_model_and_keep_the_dtype_of_X():
    # 5 standard errors of 12 moments: false alarm about 1e-5; a 3 % error of a standard deviation shows.
    rng = np.random.default_rng(3)
    model = mixed_model()
    X = model.sample(100_000, rng)
    X_tilde = sample_knockoffs(model.as_network(), X, rng)
    assert X_tilde.dtype == X.dtype and X_tilde.shape == X.shape
    for power in (1, 2):
        gap = X_tilde**power - X**power
        assert (np.abs(gap.mean(axis=0)) < 5 * gap.std(axis=0) / np.sqrt(len(X))).all()
    for j, k in [(0, 3), (1, 2)]:  # exchangeability of second moments across columns
        gap = X[:, j] * X_tilde[:, k] - X[:, j] * X[:, k]
        assert abs(gap.mean()) < 5 * gap.std() / np.sqrt(len(X))


def test_fit_finds_the_classes_and_their_parameters():
    """Every number within 4.6 standard errors or more of 1500 rows: false alarm 1e-4; a class too many is seen."""
    rng = np.random.default_rng(4)
    truth = mixed_model()
    X = truth.sample(5000, rng)
    kinds = ["nominal", "binary", "continuous", "count", "binary"]
    fitted = fit_naive_bayes(X, rng=rng, kinds=kinds, n_classes=range(1, 5), criterion="bic", n_starts=3)
    assert len(fitted.weights) == 2
    order = np.argsort(fitted.weights)
    assert fitted.weights[order] == pytest.approx([0.3, 0.7], abs=0.03)
    labels, binaries = (group for group in fitted.children if isinstance(group, CategoricalColumn))
    groups = {type(group).__name__: group for group in fitted.children}
    assert groups["PoissonColumn"].rate[order, 0] == pytest.approx([1, 6], abs=0.3)
    assert groups["GaussianColumn"].mean[order, 0] == pytest.approx([0, 3], abs=0.3)
    for found, own in ((labels, truth.children[0]), (binaries, truth.children[1])):
        assert found.columns == own.columns
        for table, expected in zip(found.tables, own.tables, strict=True):
            assert table[order] == pytest.approx(expected, abs=0.06)


def test_one_class_is_the_law_of_each_column():
    X = np.array([[0, 0, 1.5, 3], [1, 2, 2.5, 9], [1, 1, 0.5, 30], [0, 1, 1.5, 1]])
    kinds = ["binary", "nominal", "continuous", "count"]
    fitted = fit_naive_bayes(X, rng=np.random.default_rng(0), n_classes=1, pseudo_count=0, kinds=kinds)
    coin, categorical, gaussian, poisson = fitted.children
    assert categorical.tables[0] == pytest.approx(np.array([[0.25, 0.5, 0.25]]))
    assert coin.tables[0] == pytest.approx(np.array([[0.5, 0.5]]))
    assert (gaussian.mean[0, 0], gaussian.variance[0, 0]) == pytest.approx((1.5, 0.5))
    assert poisson.rate == pytest.approx(np.array([[10.75]]))


def test_em_never_loses_likelihood():
    rng = np.random.default_rng(5)
    X = mixed_model().sample(300, rng)
    totals = []
    for steps in range(1, 12):
        with pytest.warns(KnockoffWarning, match="did not converge"):
            model = fit_naive_bayes(
                X, rng=np.random.default_rng(0), n_classes=3, n_starts=1, pseudo_count=0, max_iter=steps, tol=-1.0
            )
        totals.append(normalise_log_weights(model.log_weights(X))[1].sum())
    assert (np.diff(totals) > -1e-8).all()


def test_units_and_jobs_do_not_matter(jobs_are_threads):
    X = mixed_model().sample(400, np.random.default_rng(6))
    shifted = X.copy()
    shifted[:, 2] = 1e6 * X[:, 2] + 1e9
    fits = [
        fit_naive_bayes(table, rng=np.random.default_rng(0), n_classes=[2, 3], n_starts=2, n_jobs=jobs)
        for table, jobs in ((X, 1), (X, 2), (shifted, 1))
    ]
    assert np.array_equal(fits[0].weights, fits[1].weights)
    assert fits[2].weights == pytest.approx(fits[0].weights, rel=1e-4)


def test_bad_input():
    rng = np.random.default_rng(0)
    model = mixed_model()
    X = model.sample(10, rng)
    network = model.as_network()

    def draw_with(column, value):
        Y = X.copy()
        Y[4, column] = value
        sample_knockoffs(network, Y, rng)

    refuses("column 0 has the value 3 in row 4, and its values are 0, 1, 2", draw_with, 0, 3)
    refuses("column 4 has the value 2 in row 4, and its values are 0, 1", draw_with, 4, 2)
    refuses("column 3 has the value -1 in row 4, and it holds counts in units of 1", draw_with, 3, -1)
    refuses("column 3 has the value 0.5 in row 4", draw_with, 3, 0.5)
    refuses("rows '4' are impossible", draw_with, 2, np.nan)
    refuses("pass floats", sample_knockoffs, network, X.astype(int), rng)
    with pytest.raises(InputError, match=r"the table of column 0\[1\] adds up to 1.1"):
        CategoricalColumn((0,), (np.array([[0.5, 0.5], [0.5, 0.6]]),))
    refuses("weights adds up to 0.9", NaiveBayes, np.array([0.4, 0.5]), model.children)
    refuses("2 classes, the weights 1", NaiveBayes, np.array([1.0]), model.children)
    refuses(r"rate has shape \(2, 1\): expected \(n_classes, 2\)", PoissonColumn, (0, 1), np.ones((2, 1)))
    refuses("columns '2' of X have NaN", fit_naive_bayes, np.where(np.arange(5) == 2, np.nan, X), rng=rng)
    refuses(r"kinds='coount' is not known. Did you mean 'count'\?", fit_naive_bayes, X, rng=rng, kinds=["coount"] * 5)
    refuses("columns '2' are not of kind 'count'", fit_naive_bayes, X, rng=rng, kinds=["count"] * 5)
    with pytest.raises(InputError, match="columns '0' are constant"):
        fit_naive_bayes(np.hstack([np.ones((10, 1)), X]), rng=rng, kinds=["continuous"] * 6)
    refuses("numbers from 1 to the number of rows, 10", fit_naive_bayes, X, rng=rng, n_classes=11)
    impossible = NaiveBayes(np.array([1.0]), (binary((0,), np.array([[0.0]])),))
    refuses("rows '1' are impossible", sample_knockoffs, impossible.as_network(), np.array([[0], [1]]), rng)


def test_codes_at_the_ends_of_the_unit_interval():
    """A state of probability zero is not drawn, whatever the uniform number."""

    class Ends:
        def random(self, shape):
            return np.broadcast_to([[0.0], [1.0 - 2.0**-53]], shape)

    table = np.array([[0.0, 0.25, 0.75, 0.0]])
    assert CategoricalColumn((0,), (table,)).draw(np.zeros(2, int), Ends()).ravel().tolist() == [1, 2]
    assert binary((0,), np.array([[0.0]])).draw(np.zeros(2, int), Ends()).ravel().tolist() == [0, 0]
    assert binary((0,), np.array([[1.0]])).draw(np.zeros(2, int), Ends()).ravel().tolist() == [1, 1]


def test_parameters_are_counted():
    """One for the weights; (3 - 1) + (2 - 1), 1, 2 and 1 + 1 for the columns of each of two classes."""
    rng = np.random.default_rng(0)
    tables = tuple(rng.dirichlet(np.ones(m), size=2) for m in (3, 2))
    children = (
        CategoricalColumn((0, 1), tables),
        binary((2,), rng.random((2, 1))),
        GaussianColumn((3,), rng.standard_normal((2, 1)), np.ones((2, 1))),
        PoissonColumn((4, 5), rng.uniform(1, 2, (2, 2))),
    )
    model = NaiveBayes(np.array([0.4, 0.6]), children)
    assert model.n_parameters == 1 + 2 * (3 + 1 + 2 + 2)


def test_a_column_has_one_law_and_weights_may_be_a_list():
    one, two = binary((0,), np.array([[0.1]])), binary((1, 0), np.array([[0.1, 0.2]]))
    refuses("columns '0' are among the children twice", NaiveBayes, np.array([1.0]), (one, two))
    assert NaiveBayes([1.0], (one,)).sample(3, np.random.default_rng(0)).shape == (3, 1)
