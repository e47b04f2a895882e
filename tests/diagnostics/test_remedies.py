import numpy as np

from knockoffs.diagnostics.near_duplicates import Twin
from knockoffs.diagnostics.remedies import find_remedies
from knockoffs.diagnostics.sign_tests import Check
from knockoffs.sampling.pair import Pair

NAMES = ("a", "b", "c", "d", "e")
KINDS = ("continuous", "count", "continuous", "continuous", "continuous")


def failed(name, *columns):
    return Check(name, 0.0, 9.0, 0.5, columns, "")


def actions(failing, twins=(), X=None):
    X = np.random.default_rng(0).standard_normal((50, 5)) if X is None else X
    found = find_remedies(failing, twins, Pair(X, X, np.arange(5)), NAMES, KINDS)
    return [(remedy.action, remedy.columns) for remedy in found]


def test_nothing_failed_nothing_to_do():
    assert actions([]) == []


def test_each_failure_has_its_remedy_and_a_column_one_remedy():
    failing = [failed("support", "b", "c"), failed("margins", "c", "a"), failed("pairs", "d")]
    assert actions(failing) == [
        ("other_kind", ("b", "c")),
        ("transformation", ("a",)),
        ("more_classes", ()),
        ("fewer_columns", ("d",)),
    ]
    assert actions([failed("margins", "b")]) == [("more_classes", ())]  # counts are not transformed
    assert actions([failed("classifier")]) == [("more_classes", ())]
    assert actions([failed("order of rows", "a")]) == [("thin_rows", ())]


def test_twins_are_grouped_with_what_they_resemble_and_groups_joined(rng):
    X = rng.standard_normal((200, 5))
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    X[:, 2] = X[:, 1] + 0.1 * X[:, 2]
    twins = (Twin(("a",), 0.99), Twin(("c",), 0.98), Twin(("e",), 0.97))
    assert actions([], twins, X) == [("group", ("a", "b", "c")), ("drop_column", ("e",))]
