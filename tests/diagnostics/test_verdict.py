"""The verdict: its words, what it names, what it says, and that it never needs more than X and X_tilde."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from knockoffs.diagnostics.sign_tests import Check
from knockoffs.diagnostics.verdict import Budget, combine, cross_fitted_pair, failing, some_columns, verdict
from knockoffs.errors import InputError
from knockoffs.features.gaussian import gaussian_features
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import NetworkSampler

N, D = 600, 8
NAMES = [f"x{j}" for j in range(D)]
COVARIANCE = 0.5 ** np.abs(np.subtract.outer(np.arange(D), np.arange(D)))


def gaussian_rows(rng, n=N):
    return rng.standard_normal((n, D)) @ np.linalg.cholesky(COVARIANCE).T


def valid(X, rng):
    return NetworkSampler(gaussian_features(np.zeros(D), COVARIANCE).as_network()).sample(X, rng)


def judge(pair, rng, **options):
    return verdict(pair, names=NAMES, rng=rng, **options)


def test_valid_knockoffs_are_good(rng):
    """A false alarm in less than one of twenty seeds, by the bound; measured: one in hundreds."""
    found = judge(valid(gaussian_rows(rng), rng), rng)
    assert (found.word, found.failed, found.rows, found.remedies, found.twins) == ("good", (), (), (), ())
    assert found.say() == f"The knockoffs look good: no check failed (p = {found.p_value:.2g})."
    few = judge(valid(gaussian_rows(rng, 100), rng), rng)
    assert "In 100 rows only gross faults can be seen." in few.say()


def test_one_wrong_column_is_named_with_its_remedy(rng):
    pair = valid(gaussian_rows(rng), rng)
    X, X_tilde = pair.X.copy(), pair.X_tilde.copy()
    X[:, 3] = np.exp(1.5 * X[:, 3])  # its knockoff stays Gaussian
    found = judge(Pair(X, X_tilde, pair.feature_of), rng)
    assert found.word == "broken"
    assert found.columns[0] == "x3"
    margins = next(check for check in found.checks if check.name == "margins")
    assert margins.columns == ("x3",)
    assert "'x3'" in margins.sentence
    remedy = next(remedy for remedy in found.remedies if remedy.action == "transformation")
    assert remedy.columns == ("x3",)


def test_zeros_and_ones_ask_for_another_kind(rng):
    pair = valid(gaussian_rows(rng), rng)
    X = pair.X.copy()
    X[:, 2] = X[:, 2] > 0
    found = judge(Pair(X, pair.X_tilde, pair.feature_of), rng)
    assert found.word == "broken"
    support = found.checks[0]
    assert support.columns == ("x2",)
    assert "'x2' has 2 different values in 600 rows, and 100% of its knockoffs none of them" in support.sentence
    assert [remedy.columns for remedy in found.remedies if remedy.action == "other_kind"] == [("x2",)]
    assert "x2" not in [name for r in found.remedies if r.action == "transformation" for name in r.columns]
    assert found.rows == ()


def test_rounded_numbers_are_no_fault(rng):
    """One decimal: about 60 values, none of which holds a tenth of the rows."""
    pair = valid(gaussian_rows(rng), rng)
    found = judge(Pair(pair.X.round(1), pair.X_tilde, pair.feature_of), rng)
    assert found.word == "good"


def test_labels_are_held_to_their_values_whatever_their_share(rng):
    X, X_tilde = (rng.integers(40, size=(N, 1)).astype(float) for _ in range(2))
    assert verdict(Pair(X, X_tilde, np.zeros(1, int)), names=["a"], kinds=["nominal"], rng=rng).word == "good"
    strange = Pair(X, X_tilde + 0.5 * rng.random((N, 1)), np.zeros(1, int))
    found = verdict(strange, names=["a"], kinds=["nominal"], rng=rng)
    assert found.checks[0].p_value < 1e-10
    assert found.checks[0].effect > 0.9


@pytest.mark.parametrize("fault", ["permuted columns", "permuted rows", "noise", "scaled"])
def test_faults_are_broken(fault, rng):
    X = gaussian_rows(rng)
    X_tilde = {
        "permuted columns": rng.permuted(X, axis=0),
        "permuted rows": rng.permutation(X),
        "noise": X + 0.5 * rng.standard_normal(X.shape),
        "scaled": 1.5 * valid(X, rng).X_tilde,
    }[fault]
    found = judge(Pair(X, X_tilde, np.arange(D)), rng)
    assert found.word == "broken"
    assert "the level is not guaranteed" in found.say()
    assert found.rows == ()  # P^X is blamed, not the rows


def test_rows_that_depend_are_said(rng):
    X = gaussian_rows(rng, N // 2)
    twice = rng.permutation(np.vstack([X, X]))
    found = judge(valid(twice, rng), rng)
    assert found.word == "broken"
    assert any("300 of 600 rows are copies of an earlier row, which" in sentence for sentence in found.rows)
    assert {check.name for check in found.failed} <= {"repeated rows", "neighbouring rows"}
    assert [remedy.action for remedy in found.remedies] == ["thin_rows"]
    assert "rows seem to depend on each other" in found.say()
    for i in range(1, len(twice)):
        twice[i] = 0.8 * twice[i - 1] + 0.6 * rng.standard_normal(D) @ np.linalg.cholesky(COVARIANCE).T
    found = judge(valid(twice, rng), rng)
    assert any("lag-one correlation 0." in sentence for sentence in found.rows)


def test_a_sorted_table_is_at_most_doubtful(rng):
    X = gaussian_rows(rng)
    found = judge(valid(X[np.argsort(X[:, 0])], rng), rng)
    assert found.word in ("good", "doubtful")
    assert not any(check.name != "order of rows" for check in found.failed)


def test_twins_are_named_and_do_not_count(rng):
    X = gaussian_rows(rng)
    X[:, 1] = X[:, 0] + 0.01 * rng.standard_normal(N)
    S = np.cov(X.T)
    pair = NetworkSampler(gaussian_features(X.mean(axis=0), S).as_network()).sample(X, rng)
    found = judge(pair, rng)
    assert found.word == "good"
    assert {name for twin in found.twins for name in twin.columns} == {"x0", "x1"}
    assert all(twin.correlation > 0.95 for twin in found.twins)
    assert [(remedy.action, remedy.columns) for remedy in found.remedies] == [("group", ("x0", "x1"))]
    assert "unlikely to be selected" in found.say()


def test_a_constant_column_is_no_twin(rng):
    pair = valid(gaussian_rows(rng), rng)
    X, X_tilde = pair.X.copy(), pair.X_tilde.copy()
    X[:, 5] = X_tilde[:, 5] = 3.0
    assert judge(Pair(X, X_tilde, pair.feature_of), rng).twins == ()


def test_features_of_several_columns_are_swapped_whole(rng):
    """One-hot columns: products within a feature are no coins, and are not counted."""
    labels, labels_tilde = rng.integers(3, size=(2, N))
    X, X_tilde = np.eye(3)[labels], np.eye(3)[labels_tilde]
    found = verdict(Pair(X, X_tilde, np.zeros(3, int)), names=["colour"], rng=rng)
    assert found.word != "broken"  # at most one seed in a hundred
    assert {check.name: check.p_value for check in found.checks}["pairs"] > 0.05


def test_the_verdict_goes_to_json(rng):
    found = judge(Pair(gaussian_rows(rng), gaussian_rows(rng), np.arange(D)), rng)
    stored = json.loads(json.dumps(found.to_dict()))
    assert stored["word"] == found.word == "broken"
    assert set(stored) == {
        "word",
        "sentence",
        "trial",
        "n_rows",
        "p_value",
        "columns",
        "checks",
        "twins",
        "rows",
        "remedies",
    }
    assert [check["name"] for check in stored["checks"]] == [check.name for check in found.checks]


def test_the_same_seed_gives_the_same_verdict(rng):
    pair = valid(gaussian_rows(rng), rng)
    first, second = (judge(pair, np.random.default_rng(5)) for _ in range(2))
    assert first == second


def test_held_out_rows_are_judged_in_place_of_the_others(rng):
    good = valid(gaussian_rows(rng), rng)
    bad = Pair(good.X, 2 * good.X_tilde, good.feature_of)
    assert judge(good, rng, held_out_pair=bad).word == "broken"
    assert judge(bad, rng, held_out_pair=good).checks[1].p_value > 0.05


def test_the_budget_bounds_rows_and_columns(rng):
    pair = valid(gaussian_rows(rng), rng)
    found = judge(pair, rng, budget=Budget(rows=200, columns=3, classifier_rows=100))
    assert found.n_rows == 200
    assert "n = 66" in found.checks[3].sentence  # two blocks of three
    columns, owners = some_columns(Pair(pair.X, pair.X_tilde, np.array([0, 0, 1, 1, 2, 2, 3, 3])), 5, rng)
    assert len(columns) == 4
    assert owners.tolist() == [0, 0, 1, 1]
    assert (columns[1::2] - columns[::2] == 1).all()


def test_codes_and_truth_values_are_numbers(rng):
    X, X_tilde = rng.random((2, N, D)) < 0.5
    assert judge(Pair(X, X_tilde, np.arange(D)), rng).word == "good"
    counts, counts_tilde = rng.poisson(3, size=(2, N, D)).astype(np.uint8)
    assert judge(Pair(counts, counts_tilde, np.arange(D)), rng).word == "good"


def check(name="margins", p=1.0, effect=0.5):
    return Check(name, p, 0.0, effect, (), "")


def test_words():
    others = [check(f"other {i}") for i in range(6)]
    assert combine([check(p=0.05), *others]) == ("good", pytest.approx(0.35))
    assert combine([check(p=0.005), *others]) == ("doubtful", pytest.approx(0.035))
    assert combine([check(p=0.001), *others])[0] == "broken"
    assert combine([check(p=1e-9, effect=0.05), *others])[0] == "doubtful"  # sure, and too small to matter
    assert combine([check("order of rows", p=1e-9), *others])[0] == "doubtful"
    assert combine([check("neighbouring rows", p=1e-9, effect=0.15), *others])[0] == "doubtful"


def test_rows_are_blamed_only_where_p_x_is_not():
    near, repeats, margins = check("neighbouring rows", 0.0), check("repeated rows", 0.0), check("margins", 0.0)
    assert failing([near, repeats], rows_repeat=False) == (near, repeats)
    assert failing([near, repeats, margins], rows_repeat=False) == (margins,)
    assert failing([near, repeats, margins], rows_repeat=True) == (repeats, margins)
    vague = check("pairs", 0.0)  # many weak links, and no column by itself
    clear = Check("pairs", 0.0, 9.0, 0.5, ("a", "b"), "")
    assert failing([near, vague], rows_repeat=False) == (near,)
    assert failing([near, clear], rows_repeat=False) == (clear,)
    assert failing([vague], rows_repeat=False) == (vague,)


@dataclass(frozen=True)
class Remembering:
    """Knockoffs that say which rows P^X was fitted on."""

    fitted: np.ndarray

    feature_of = np.arange(1)

    def sample(self, X, rng):
        return Pair(X, np.isin(X, self.fitted) * 1.0, self.feature_of)


def test_cross_fitted_knockoffs_come_from_a_model_that_has_not_seen_their_row(rng):
    X = rng.permutation(53.0 * np.arange(53))[:, None]
    pair = cross_fitted_pair(lambda rows, stream: Remembering(rows), X, rng, n_folds=4)
    np.testing.assert_array_equal(pair.X, X)
    assert not pair.X_tilde.any()
    with pytest.raises(InputError, match="n_folds=1: expected 2 or more, and no more than the 53 rows"):
        cross_fitted_pair(lambda rows, stream: Remembering(rows), X, rng, n_folds=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["a"]}, "names has 1 entries: expected 8, one for each column"),
        ({"kinds": ["binary"]}, "kinds has 1 entries: expected 8"),
        ({"held_out_pair": Pair(np.zeros((9, 2)), np.zeros((9, 2)), np.arange(2))}, "has 2 columns: pair has 8"),
    ],
)
def test_what_does_not_fit_is_refused(options, message, rng):
    pair = Pair(np.zeros((20, D)), np.zeros((20, D)), np.arange(D))
    with pytest.raises(InputError, match=message):
        verdict(pair, **{"names": NAMES, "rng": rng, **options})


def test_too_few_rows_are_refused(rng):
    with pytest.raises(InputError, match="the pair has 5 rows: nothing can be checked with fewer than 6"):
        judge(Pair(np.zeros((5, D)), np.zeros((5, D)), np.arange(D)), rng)
    assert judge(valid(gaussian_rows(rng, 6), rng), rng).word == "good"
    with pytest.raises(InputError, match=r"X has shape \(20, 8\), its knockoffs \(19, 8\)"):
        judge(Pair(np.zeros((20, D)), np.zeros((19, D)), np.arange(D)), rng)
