"""Fixed designs: Gram identities, sufficiency and flip-sign exactly; rows that are added; what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Lasso
from tests.refusals import refuses

from knockoffs import KnockoffSelector
from knockoffs.errors import InputError
from knockoffs.features.fixed import fixed_design
from knockoffs.features.source import knockoff_source, refuse_fixed
from knockoffs.importance.coefficients import coefficient_magnitude
from knockoffs.response.linear import LassoPathAIC
from knockoffs.table.target import Target


def design(n, p, seed=0):
    """Columns far from Gaussian and from zero, in different units, correlated; not one row like another."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n, p)) @ (np.eye(p) + 0.5 * rng.standard_normal((p, p)))
    return X * np.geomspace(1e-3, 1e3, p) + 7


def centred(X):
    return X - X.mean(axis=0)


# n >= 2p + intercept and covariates: no rows are added
CASES = {
    "plain": (60, 20, (), None, 0),
    "just enough rows": (41, 20, (), None, 0),
    "covariates": (60, 20, (3, 7), None, 0),
    "groups": (60, 20, (), np.repeat(np.arange(5), 4), 0),
    "rows added": (50, 30, (), None, 12),
    "rows added beside covariates": (50, 30, (0, 1), None, 10),
    "one row to spare": (32, 30, (), None, 30),
}


@pytest.mark.parametrize("case", CASES)
def test_no_swap_changes_the_gram_matrix(case):
    """X_tilde'X_tilde = X'X and X'X_tilde = X'X - D, centred, D zero outside of the features' own blocks."""
    n, p, covariates, feature_of, n_added = CASES[case]
    X = design(n, p)
    fixed = fixed_design(X, covariates=covariates, feature_of=feature_of)
    pair = fixed.sample(X, np.random.default_rng(1))
    assert fixed.n_added == n_added and len(pair) == n + n_added
    A, B = centred(pair.X), centred(pair.X_tilde)
    unit = np.sqrt((A**2).sum(axis=0))
    G, H, cross = (part / unit / unit[:, None] for part in (A.T @ A, B.T @ B, A.T @ B))
    np.testing.assert_allclose(H, G, atol=1e-10)
    D, owner = G - cross, pair.feature_of
    np.testing.assert_allclose(D[owner[:, None] != owner], 0, atol=1e-10)
    np.testing.assert_array_equal(pair.X_tilde[:, list(covariates)], pair.X[:, list(covariates)])
    tested = np.setdiff1d(np.arange(p), covariates)
    assert np.linalg.eigvalsh(D[np.ix_(tested, tested)]).min() > 1e-8  # and the knockoffs are no copies
    # y may have any mean: the knockoffs have the means of X in the rows of y and in those that were added
    np.testing.assert_allclose(pair.X_tilde[:n].mean(axis=0), X.mean(axis=0), rtol=1e-9)
    np.testing.assert_array_equal(pair.X[:n], X)


def scored(XX, y):
    p = XX.shape[1] // 2
    model = LassoPathAIC().fit(XX, y)
    found = coefficient_magnitude(model, XX[:, :p], XX[:, p:], y, feature_of=np.arange(p))
    return np.concatenate([found.Z, found.Z_tilde])


def example(n=90, p=20):
    X = design(n, p)
    pair = fixed_design(X).sample(X, np.random.default_rng(1))
    rng = np.random.default_rng(2)
    y = centred(X)[:, :6] @ (1 / X[:, :6].std(axis=0)) + rng.standard_normal(n)
    return pair, y


def test_the_score_is_a_function_of_products_alone():
    """Sufficiency: a rotation of the rows that keeps the intercept keeps every score."""
    pair, y = example()
    n = len(y)
    one = np.full((n, 1), 1 / np.sqrt(n))
    basis = np.linalg.qr(np.hstack([one, np.random.default_rng(3).standard_normal((n, n - 1))]))[0][:, 1:]
    turn = basis @ np.linalg.qr(np.random.default_rng(4).standard_normal((n - 1, n - 1)))[0] @ basis.T + one @ one.T
    np.testing.assert_allclose(turn @ turn.T, np.eye(n), atol=1e-12)
    scores = scored(pair.stacked, y)
    assert (scores > 0).sum() >= 6
    np.testing.assert_allclose(scored(turn @ pair.stacked, turn @ y), scores, atol=1e-8)


def test_swaps_swap_the_scores():
    pair, y = example()
    S = np.arange(20) % 3 == 0
    Z, Z_tilde = np.split(scored(pair.stacked, y), 2)
    swapped = np.split(scored(pair.swap(S).stacked, y), 2)
    np.testing.assert_allclose(swapped[0], np.where(S, Z_tilde, Z), atol=1e-8)
    np.testing.assert_allclose(swapped[1], np.where(S, Z, Z_tilde), atol=1e-8)


def test_the_penalty_has_the_smallest_corrected_aic():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    X = centred(X) / X.std(axis=0)
    y = X[:, 0] - 0.3 * X[:, 1] + rng.standard_normal(40)
    y = (y - y.mean()) / y.std()
    top = np.abs(X.T @ y).max() / 40
    aic = []
    for alpha in np.geomspace(top, 1e-3 * top, 100):
        coef = Lasso(alpha, tol=1e-12, max_iter=100_000).fit(X, y).coef_
        k = np.sum(coef != 0)
        aic.append((40 * np.log(np.mean((y - X @ coef) ** 2)) + 2 * 40 * k / (40 - k - 1), alpha))
    assert LassoPathAIC().fit(X, y).alpha_ == pytest.approx(min(aic)[1], rel=1e-9)


def test_noise_of_the_variance_of_least_squares_is_added():
    X, y = design(50, 30), np.random.default_rng(5).standard_normal(50) + 3
    fixed = fixed_design(X, covariates=(4,))
    padded = fixed.pad(Target(y), np.random.default_rng(6)).values
    np.testing.assert_array_equal(padded[:50], y)
    left = np.linalg.lstsq(np.c_[np.ones(50), centred(X) / X.std(axis=0)], y, rcond=None)[1]
    z = (padded[50:] - y.mean()) / np.sqrt(left / (50 - 31))
    np.testing.assert_allclose(z, np.random.default_rng(6).standard_normal(fixed.n_added), rtol=1e-6)


# ---- the selector ------------------------------------------------------------------------------------------------


def table(n=200, p=30, seed=0):
    skew = np.random.default_rng(seed).exponential(size=(n, p)) * np.geomspace(1e-3, 1e3, p) + 7
    X = pd.DataFrame(skew, columns=[f"f{j}" for j in range(p)])
    noise = np.random.default_rng(seed + 1).standard_normal(n)
    return X, 3 * (X / X.std()).iloc[:, :12].sum(axis=1) + noise


@pytest.mark.parametrize("n", [200, 50])
def test_a_selection_from_a_fixed_design(n):
    X, y = table(n)
    y[3] = np.nan
    fitted = KnockoffSelector(feature_model="fixed", covariates=["f29"]).fit(X, y)
    assert {f"f{j}" for j in range(12)} <= set(fitted.selection_.selected_names)
    assert fitted.knockoffs_.shape == (n - 1, 30) and fitted.verdict_ is None
    said = fitted.selection_.explain()
    assert "y is linear in X with independent Gaussian noise" in said and "P^X" not in said
    assert ("rows were added" in said) == (n == 50)
    again = KnockoffSelector(feature_model="fixed", covariates=["f29"], estimator="linear").fit(X, y)
    assert len(again.W_) == 29


def test_a_column_that_is_constant_where_the_target_is_known_is_its_own_knockoff():
    X, y = table(100)
    late = X.assign(f0=np.r_[np.zeros(90), np.arange(10.0)])
    with pytest.warns(UserWarning, match="column 'f0' is constant: its own knockoff, never selected"):
        fitted = KnockoffSelector(feature_model="fixed").fit(late, y.where(np.arange(100) < 90))
    assert fitted.W_[0] == 0 and (fitted.W_ != 0).sum() > 10


def test_the_report_and_the_method_say_what_it_is(tmp_path):
    X, y = table()
    page = tmp_path / "report.html"
    KnockoffSelector(feature_model="fixed").fit(X, y).report(page)
    text = page.read_text(encoding="utf-8")
    assert "Fixed-X knockoffs of the features were constructed" in text and "Model-X" not in text


@pytest.mark.parametrize(
    "options, error",
    [
        ({"estimator": "boosting"}, "takes the linear models estimator='lasso' and 'linear'"),
        ({"importance": "swap"}, "takes importance='coefficients' and 'contribution'"),
        ({"importance_options": {"rows": "held_out"}}, "leave out the importance options rows and n_fits"),
        ({"method": "conditional_test"}, "has no tests: use method='knockoffs'"),
        ({"n_knockoffs": 2}, "n_knockoffs=2: these knockoffs come one for each feature"),
        ({"feature_model_options": {"n_classes": 2}}, "n_classes"),
    ],
)
def test_what_does_not_go_with_it_is_refused(options, error):
    X, y = table(100)
    refuses(error, KnockoffSelector(feature_model="fixed", **options).fit, X, y)


def test_tables_and_targets_that_are_not_of_it_are_refused():
    X, y = table(100)
    fixed = KnockoffSelector(feature_model="fixed")
    refuses("is for a number with Gaussian noise, and y is binary", fixed.fit, X, np.where(y > y.mean(), "high", "low"))
    with pytest.raises(InputError, match="and y is count. Use feature_model='auto', or task='regression'"):
        fixed.fit(X, np.random.default_rng(0).poisson(np.exp(np.linspace(0, 3, 100))))
    refuses("needs more rows than columns, and X has 31 rows and 30 columns", fixed.fit, X[:31], y[:31])
    refuses("takes no weights", fixed.fit, X, y, sample_weight=np.ones(100))
    refuses("column 'sum' is an exact combination", fixed.fit, X.assign(sum=X["f28"] + X["f29"]), y)
    refuses("X contains NaN in column 'f0'", fixed.fit, X.assign(f0=X["f0"].where(X["f0"] > X["f0"].min())), y)
    refuses("labels", fixed.fit, X.assign(f0=np.resize(["a", "b", "c"], 100)), y)
    with pytest.raises(InputError, match="is for selections"):  # as knockoffs check, path and sample say
        refuse_fixed(knockoff_source("fixed"))
