"""Columns that others determine by any function are found and left out, and columns that a copula knows stay."""

import re

import numpy as np
import pandas as pd
import pytest

from knockoffs import KnockoffSelector
from knockoffs.errors import KnockoffWarning
from knockoffs.features.source import knockoff_source, read_features
from knockoffs.table.derived import find_derived, warn_of_leaks, warn_of_steps
from knockoffs.table.table import read_table


def columns(n):
    """Columns that have nothing to do with one another: normal, skewed, counts and labels."""
    rng = np.random.default_rng(n)
    numbers = {f"normal {i}": rng.standard_normal(n) for i in range(3)}
    skewed = {f"skewed {i}": rng.lognormal(0, 1, n) for i in range(3)}
    counts = {"count": rng.poisson(6.0, n) + 1, "label": rng.choice(list("abcde"), n)}
    return pd.DataFrame(numbers | skewed | counts)


DERIVED = {
    "square": ("normal 0", lambda t: t["normal 0"] ** 2),
    "square of a count": ("count", lambda t: (t["count"] - 7) ** 2),
    "product": ("normal 0, normal 1", lambda t: t["normal 0"] * t["normal 1"]),
    "ratio": ("skewed 0, skewed 1", lambda t: t["skewed 0"] / t["skewed 1"]),
    "product of skewed": ("count, skewed 1", lambda t: t["skewed 1"] * t["count"]),
    "rounded sum of three": (
        "skewed 0, skewed 1, skewed 2",
        lambda t: (t["skewed 0"] + t["skewed 1"] + t["skewed 2"]).round(1),
    ),
    "difference": ("skewed 0, skewed 1", lambda t: (t["skewed 0"] - t["skewed 1"]).round(2)),
    "bins": ("normal 2", lambda t: pd.cut(t["normal 2"], [-9, -1, 0, 1, 9], labels=False)),
    "dummy": ("label", lambda t: (t["label"] == "b") * 1.0),
}


# the edges of bins are not sure enough with 200 rows
@pytest.mark.parametrize(
    ("made", "n"),
    [(made, n) for made in DERIVED for n in (200, 2000) if (made, n) != ("bins", 200)] + [("ratio", 20_000)],
)
def test_functions_of_other_columns_are_found_with_what_they_are_made_of(made, n):
    sources, function = DERIVED[made]
    table = columns(n)
    table["derived"] = function(table)
    table = read_table(table)
    found = {table.names[j]: ", ".join(sorted(table.names[k] for k in of)) for j, of in find_derived(table).items()}
    assert found == {"derived": sources}


def auto_regression(rng, n, d):
    noise = rng.standard_normal((n, d))
    X = noise.copy()
    for j in range(1, d):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(0.19) * noise[:, j]
    return X


def factors(rng, n, d):
    return rng.standard_normal((n, 2)) @ rng.standard_normal((2, d)) + 0.25 * rng.standard_normal((n, d))


@pytest.mark.parametrize("make", [lambda rng, n, d: rng.standard_normal((n, d)), auto_regression, factors])
def test_what_a_copula_knows_stays(make):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        assert find_derived(read_table(make(rng, 150 + 100 * seed, 8))) == {}
        assert find_derived(read_table(np.exp(make(rng, 400, 8)))) == {}  # in any margins


def test_a_warning_says_what_is_left_out_and_the_user_can_keep_it():
    table = columns(500).assign(area=lambda t: t["skewed 0"] * t["skewed 1"])
    with pytest.warns(KnockoffWarning, match="'area' of 'skewed 0', 'skewed 1'"):
        kept, notes = read_features(knockoff_source("auto"), table, dependent="auto")
    assert "area" not in kept.names and "'area'" in notes["derived"]
    assert "area" in read_features(knockoff_source("auto"), table, dependent="refuse")[0].names


def test_columns_of_one_feature_stay_together():
    table = read_table(columns(500).assign(square=lambda t: t["normal 0"] ** 2))
    assert find_derived(table.with_groups({"both": ["normal 0", "square"]})) == {}


def test_an_identifier_is_no_source():
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(25), 40)
    of_person = rng.standard_normal((25, 3))[person]  # each is as good as the number of the person
    assert find_derived(read_table(np.column_stack([person, of_person, rng.standard_normal(1000)]))) == {}


def test_long_chains_of_functions_come_down_to_the_columns_that_are_kept():
    """Each column of a spectrum is a function of the eight before it: there are 8 ** 50 ways down."""
    table = read_table(np.random.default_rng(0).standard_normal((20, 60)))
    kept = table.without_determined({j: np.arange(max(0, j - 8), j) for j in range(59, 1, -1)})
    assert kept.names == ("x0", "x1") and {one.sources for one in kept.derived} == {("x0", "x1")}


def test_a_model_of_y_sees_a_derived_column_unless_a_source_of_it_is_tested():
    rng = np.random.default_rng(0)
    table = columns(400).assign(square=lambda t: t["normal 0"] ** 2, ratio=lambda t: t["skewed 0"] / t["skewed 1"])
    table.loc[:9, "ratio"] = np.nan
    with pytest.warns(KnockoffWarning, match="functions of other columns"):
        kept, _ = read_features(knockoff_source("auto"), table, dependent="auto")
    names = list(kept.names)
    shown = {name: kept.derived_without(np.array([names.index(name)])) for name in names}
    assert {name for name, X in shown.items() if X.shape[1] == 1} == {"normal 0", "skewed 0", "skewed 1"}
    assert all(np.isfinite(X).all() for X in shown.values())
    np.testing.assert_array_equal(shown["normal 0"][10:, 0], table["ratio"][10:])
    np.testing.assert_array_equal(kept.rows(slice(50)).derived_without(np.array([0]))[10:, 0], table["ratio"][10:50])
    y = 2 * table["square"] + rng.standard_normal(400)
    with pytest.warns(KnockoffWarning, match="functions of other columns"):
        found = KnockoffSelector(verdict=False).fit(table, y)
    assert [str(one) for one in found.discoveries_] == ["normal 0"]


# ---- the target among the features -----------------------------------------------------------------------------------


def leaks(X, y, kind="number"):
    warn_of_leaks(y, kind, read_table(X), np.ones(len(y), dtype=bool))


@pytest.mark.parametrize("signs", [(1, 1, 0), (1, -1, 0), (1, 1, -1)])
def test_a_sum_or_difference_of_columns_is_named(signs, rng):
    X = rng.normal(50, [3.0, 2.5, 2.0, 9.0], (200, 4))
    y = X[:, :3] @ np.array(signs) + 0.001 * rng.standard_normal(200)
    names = [f"x{j}" for j in range(3) if signs[j]]
    with pytest.warns(KnockoffWarning, match="drop=") as caught:
        leaks(X, y)
    assert all(name in str(caught[0].message) for name in names) and "x3" not in str(caught[0].message)


def test_a_strong_signal_is_no_leak(rng):
    """Warnings are errors: none comes where noise is a twentieth of y, or where coefficients are those of no sum."""
    X = rng.standard_normal((400, 5))
    leaks(X, X[:, 0] + 0.05 * rng.standard_normal(400))
    leaks(X, X @ np.array([1.0, 2.0, 0.5, 0.0, 0.0]))
    leaks(X, (X[:, 0] > 0).astype(float), kind="binary")


def steps(X, y, kind="number"):
    warn_of_steps(y, kind, read_table(X), np.ones(len(y), dtype=bool))


def test_a_column_that_is_y_cut_at_values_is_named_with_what_drops_it(rng):
    """Labels, yes or no, grades up or down, with missing cells; and y a count whose values stay whole."""
    y = rng.standard_normal(200)
    low, grade = y < -0.5, -np.digitize(y, [-1.0, 0.0, 0.3]).astype(float)
    grade[rng.random(200) < 0.2] = np.nan
    word = np.array(["small", "middle", "large"])[np.digitize(y, [-0.3, 0.9])]
    other = pd.DataFrame({"x": rng.standard_normal(200), "z": rng.integers(2, size=200)})
    for name, column in {"low": low, "grade": grade, "word": word}.items():
        with pytest.warns(KnockoffWarning, match=re.escape(f"each value of '{name}' has a range") + ".*drop="):
            steps(other.assign(**{name: column}), y)
    visits = rng.poisson(2.0, 200).astype(float)
    with pytest.warns(KnockoffWarning, match=re.escape("use drop=['any']")):
        steps(other.assign(any=visits > 0), visits, "count")
    with pytest.warns(KnockoffWarning, match=re.escape("drop=['any']")):
        KnockoffSelector(random_state=0, verdict=False).fit(other.assign(any=y > 1.0), y)


@pytest.mark.filterwarnings("error")
def test_a_column_that_overlaps_in_y_is_no_step(rng):
    """One cell that overlaps, a value that splits equal y, few of the largest by chance, copied rows, or a class."""
    y = rng.standard_normal(200)
    nearly = (y > 0).astype(float)
    nearly[np.argmax(y)] = 0.0
    rare = (y >= np.sort(y)[-2]).astype(float)
    halves = np.round(y)
    steps(pd.DataFrame({"nearly": nearly, "rare": rare, "x": rng.standard_normal(200)}), y)
    steps(pd.DataFrame({"split": (np.argsort(np.argsort(halves, kind="stable")) > 100) * 1.0, "rare": rare}), halves)
    steps(pd.DataFrame({"rare": rare, "x": rng.standard_normal(200)}).loc[np.repeat(np.arange(200), 5)], y.repeat(5))
    steps(pd.DataFrame({"cut": (y > 0) * 1.0, "rare": rare}), (y > 0.2).astype(float), "binary")
