"""The default selector, which tests small tables by conditional draws, passes scikit-learn's own checks."""

import warnings

from sklearn.utils.estimator_checks import check_estimator

from knockoffs.estimator import KnockoffSelector


def test_scikit_learns_own_checks_pass_by_default():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows and columns
        results = check_estimator(KnockoffSelector(), on_fail=None, on_skip=None)
    assert not {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
