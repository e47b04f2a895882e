"""The verdict: its words, what it names, what it says, and that it never needs more than X and X_tilde."""

import json

import numpy as np
import pytest

from knockoffs.diagnostics.comparison import combine, some_columns, verdict
from knockoffs.diagnostics.sign_tests import Check
from knockoffs.diagnostics.verdict import Outcomes, Verdict
from knockoffs.errors import InputError
from knockoffs.features.gaussian import gaussian_features
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import NetworkSampler
from knockoffs.trials.remedies import Remedy

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


def test_one_wrong_column_is_named(rng):
    pair = valid(gaussian_rows(rng), rng)
    X, X_tilde = pair.X.copy(), pair.X_tilde.copy()
    X[:, 3] = np.exp(1.5 * X[:, 3])  # its knockoff stays Gaussian
    found = judge(Pair(X, X_tilde, pair.feature_of), rng)
    assert found.word == "broken"
    assert found.columns[0] == "x3"
    margins = next(check for check in found.checks if check.name == "margins")
    assert margins.columns == ("x3",)
    assert "'x3'" in margins.sentence


def test_zeros_and_ones_have_values_that_their_knockoffs_lack(rng):
    pair = valid(gaussian_rows(rng), rng)
    X = pair.X.copy()
    X[:, 2] = X[:, 2] > 0
    found = judge(Pair(X, pair.X_tilde, pair.feature_of), rng)
    assert found.word == "broken"
    support = found.checks[0]
    assert support.columns == ("x2",)
    assert "'x2' has 2 different values in 600 rows, and 100% of its knockoffs none of them" in support.sentence


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


def test_a_sorted_table_is_good(rng):
    X = gaussian_rows(rng)
    assert judge(valid(X[np.argsort(X[:, 0])], rng), rng).word == "good"


def test_twins_are_named_and_do_not_count(rng):
    X = gaussian_rows(rng)
    X[:, 1] = X[:, 0] + 0.01 * rng.standard_normal(N)
    S = np.cov(X.T)
    pair = NetworkSampler(gaussian_features(X.mean(axis=0), S).as_network()).sample(X, rng)
    found = judge(pair, rng)
    assert found.word == "good"
    assert {name for twin in found.twins for name in twin.columns} == {"x0", "x1"}
    assert all(twin.correlation > 0.95 for twin in found.twins)
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
        "row_trial",
        "remedies",
    }
    assert [check["name"] for check in stored["checks"]] == [check.name for check in found.checks]


def test_the_budget_bounds_rows_and_columns(rng):
    pair = valid(gaussian_rows(rng), rng)
    found = judge(pair, rng, most_rows=200, most_columns=3, most_rows_of_trees=100)
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
    others = [check(f"other {i}") for i in range(3)]
    assert combine([check(p=0.05), *others]) == ("good", pytest.approx(0.2), ())
    assert combine([check(p=0.01), *others])[:2] == ("doubtful", pytest.approx(0.04))
    assert combine([check(p=0.001), *others])[0] == "broken"
    assert combine([check(p=1e-9, effect=0.05), *others])[0] == "doubtful"  # sure, and too small to matter
    surest = check("pairs", 1e-9)
    assert combine([check(p=0.001), surest, *others[:2]])[2] == (surest, check(p=0.001))


TRIAL = Outcomes(np.repeat([1.0, 0.0], [40, 60])).judge(0.1, ["a"] * 100)
GOOD = Outcomes(np.repeat([1.0, 0.0], [8, 92])).judge(0.1, ["a"] * 100)


def test_what_was_not_tried_is_not_advised():
    found = Verdict("broken", 500, TRIAL)
    assert "knockoffs check TABLE --target TARGET" in found.next_step
    assert found.say().count("What to do") == 1


def test_the_column_that_the_trial_named_comes_before_its_rows():
    """Rows that depend on each other and cost nothing more are the second piece of advice."""
    named = Outcomes(np.repeat([1.0, 0.0], [40, 60])).judge(0.1, ["water"] * 100)
    rows = ("12 of 500 rows equal an earlier row.", "Drop the copies.")
    found = Verdict("broken", 500, named, rows, named)
    assert found.next_step.startswith("Try remedies for 'water': knockoffs check")
    assert found.next_step.endswith("Second, the rows: Drop the copies.") and found.say().count("Drop the copies") == 2
    tried = Verdict("broken", 500, named, rows, named, remedies=(Remedy({"drop": ["water"]}, GOOD),))
    assert tried.next_step.startswith("Use drop=['water'] (--drop water)")
    vain = Verdict("broken", 500, named, rows, named, remedies=(Remedy({"drop": ["salt"]}, named),))
    assert vain.next_step.startswith("No remedy that was tried is good. Trust 'water' least")
    less = Outcomes(np.repeat([1.0, 0.0], [30, 70])).judge(0.1, ["water"] * 100)
    half = Verdict("broken", 500, named, remedies=(Remedy({"drop": ["salt"]}, less),))
    assert "is good. The nearest is drop=['salt'] (--drop salt): broken, 30 %" in half.next_step
    costly = Verdict("broken", 500, GOOD, rows, named)
    assert costly.rows_cost and costly.next_step == "Drop the copies."


def test_a_good_remedy_is_advised_before_a_lower_rate_of_few_trials():
    few = Outcomes(np.repeat([1.0, 0.0], [8, 12])).judge(0.1, ["a"] * 20)
    many = Outcomes(np.repeat([1.0, 0.0], [16, 84]), 4.0).judge(0.1, ["a"] * 100)
    found = Verdict("broken", 500, TRIAL, remedies=(Remedy({"drop": ["a"]}, few), Remedy({"drop": ["b"]}, many)))
    assert many.word == "good" and found.next_step.startswith("Use drop=['b']")


def test_the_best_of_what_was_tried_is_advised_with_its_rate():
    tried = (Remedy({"feature_model": "mixture"}, TRIAL),)
    assert "No remedy that was tried is good" in Verdict("broken", 500, TRIAL, remedies=tried).next_step
    tried += (Remedy({"drop": ["b"]}, GOOD),)
    found = Verdict("broken", 500, TRIAL, remedies=tried)
    assert found.next_step == f"Use drop=['b'] (--drop b): {GOOD.brief}."
    assert "  as it is                 broken, 40 % (32.3 to 48.2 %)\n" in found.say()
    assert "  feature_model='mixture'  broken, 40 % (32.3 to 48.2 %)  --feature-model mixture\n" in found.say()


def test_rows_are_blamed_where_their_trial_is_worse():
    found = Verdict("broken", 500, GOOD, ("Rows follow.", "Name it in order= (--order)."), TRIAL)
    assert found.rows_cost and found.headline.startswith(
        "On this table, columns that do not matter were picked in 40 %"
    )
    assert found.headline.endswith("Rows depend on one another. If rows were independent, it would be 8 %.")
    assert "Rows follow." in found.say() and found.next_step == "Name it in order= (--order)."
    harmless = Verdict("good", 500, GOOD, ("Rows follow.", "Name it in order= (--order)."), GOOD)
    assert not harmless.rows_cost and "picked in 8 %" in harmless.headline and "Rows follow." in harmless.say()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["a"]}, "names has 1 entries: expected 8, one for each column"),
        ({"kinds": ["binary"]}, "kinds has 1 entries: expected 8"),
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
