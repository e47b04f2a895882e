"""Columns that are functions of another one are named, where rows can show it."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest

from knockoffs import KnockoffSelector
from knockoffs.errors import KnockoffWarning
from knockoffs.table.redundancy import find_functions, warn_of_functions
from knockoffs.table.table import read_table

N = 2000
RNG = np.random.default_rng(7)
MONTH = RNG.integers(1, 13, N)
AGE = RNG.uniform(20, 80, N)
TOWN = RNG.choice(["Bern", "Biel", "Chur", "Genf", "Lugano", "Sion"], N)
CHILDREN = RNG.poisson(1.0, N)
SEX = RNG.choice(["f", "m"], N)
SOME = RNG.choice(N, 95, replace=False)
ANY_ORDER = dict(zip(range(1, 13), RNG.permutation(12) // 3, strict=True))
FUNCTIONS = {
    "quarter of a month": (MONTH, (MONTH - 1) // 3),
    "season of a month, in no order of it": (MONTH, np.vectorize(ANY_ORDER.get)(MONTH)),
    "labels of labels": (TOWN, np.where(np.isin(TOWN, ["Bern", "Biel", "Chur"]), "north", "south")),
    "a band of years": (AGE // 1, pd.cut(AGE // 1, [0, 30, 45, 60, 90], labels=["d", "a", "c", "b"]).astype(str)),
    "a flag of a count": (CHILDREN, CHILDREN > 0),
    "with gaps at the same places": (np.where(AGE < 25, np.nan, MONTH), np.where(AGE < 25, np.nan, MONTH // 4)),
}
NO_FUNCTIONS = {
    "but for one row": (MONTH, np.where(np.arange(N) == 1500, 0, (MONTH - 1) // 3)),
    "a band of a number whose values are not seen again": (AGE, np.floor(AGE / 10)),
    "what a file is sorted by, and a number that rises in it": (np.sort(AGE), np.arange(N) // 500),
    "other gaps": (np.where(AGE < 25, np.nan, MONTH), MONTH // 4),
    "a gap is no value": (np.where(SEX == "f", RNG.random(N) < 0.3, np.nan), SEX),
    "each value seen a few times": (np.arange(N) // 4, np.repeat(RNG.random(N // 4) < 0.5, 4)),
    "one row of the rare value": (MONTH, np.arange(N) == 9),
    "nothing to do with it": (MONTH, RNG.integers(0, 4, N)),
    "zeros that go together": (
        np.where(np.isin(np.arange(N), SOME), RNG.lognormal(8, 1, N).round(2), 0.0),
        np.isin(np.arange(N), SOME[:60]),
    ),
}


def table_of(a, b):
    other = np.random.default_rng(1).standard_normal((2, len(a)))
    return read_table(pd.DataFrame({"other": other[0], "a": a, "between": other[1], "b": b}))


@pytest.mark.parametrize(("fine", "coarse"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions_are_found_in_either_order(fine, coarse):
    assert find_functions(table_of(fine, coarse)).tolist() == [[1, 3]]
    assert find_functions(table_of(coarse, fine)).tolist() == [[3, 1]]


@pytest.mark.parametrize(("fine", "coarse"), NO_FUNCTIONS.values(), ids=NO_FUNCTIONS)
def test_what_rows_do_not_show_is_no_function(fine, coarse):
    assert not len(find_functions(table_of(fine, coarse))) and not len(find_functions(table_of(coarse, fine)))


def test_a_row_that_was_not_looked_at_is_checked():
    month = np.resize(np.arange(12), 20_000)
    quarter = month // 3
    assert len(find_functions(table_of(month, quarter)))
    for row in (0, 1, 2, 19_998):  # one in four is looked at
        assert not len(find_functions(table_of(month, np.where(np.arange(20_000) == row, 9, quarter))))


def test_chance_does_not_make_functions():
    # 90 tables of 30 rare flags, counts and numbers, and none is found: a chance of exp(-30) for every pair
    rng = np.random.default_rng(0)
    for n in (60, 200, 800):
        for _ in range(30):
            flags = rng.random((n, 12)) < rng.choice([0.01, 0.05, 0.5], 12)
            counts = rng.poisson(rng.choice([0.1, 1.0, 5.0], 12), (n, 12))
            X = np.column_stack([flags, counts, rng.standard_normal((n, 6))])
            assert not len(find_functions(read_table(X)))


def people(n=1500, seed=0):
    """Fifty people seen thirty times each: their number determines sex, town and year of birth, and that the decade."""
    rng = np.random.default_rng(seed)
    who = rng.permutation(np.arange(n) % 50)
    sex, town, born = rng.integers(0, 2, 50), rng.integers(0, 4, 50), rng.integers(1940, 2000, 50)
    frame = pd.DataFrame(rng.standard_normal((n, 8)), columns=[f"z{j}" for j in range(8)])
    frame = frame.assign(person=[f"p{k}" for k in who], sex=sex[who], town=np.array(list("abcd"))[town[who]])
    frame = frame.assign(born=born[who], decade=born[who] // 10 * 10)
    return frame, frame["z0"].to_numpy() + 0.5 * rng.standard_normal(n)


def fit(frame, y, **options):
    options = {"estimator": "lasso", "verdict": False, "method": "knockoffs", "random_state": 0, **options}
    return KnockoffSelector(0.3, feature_model_options={"n_classes": 1}, **options).fit(frame, y)


@pytest.mark.parametrize(("dependent", "others", "width"), [("auto", "", 12), ("refuse", ", 'decade'", 13)])
def test_a_selection_names_them_and_keeps_what_a_person_determines(dependent, others, width):
    frame, y = people()
    with pytest.warns(KnockoffWarning) as said:
        selector = fit(frame, y, dependent=dependent)
    messages = [str(one.message) for one in said]
    assert any(one.startswith(f"'sex', 'town', 'born'{others} are functions of 'person'") for one in messages)
    assert any("'decade' of 'born'" in one for one in messages) == (dependent == "auto")
    assert len(selector.W_) == width and "of 'person'" in selector.selection_.notes["functions"]


def test_without_the_finer_column_or_as_one_feature_nothing_is_said():
    frame, y = people()
    with warnings.catch_warnings():
        warnings.simplefilter("error", KnockoffWarning)
        fit(frame.drop(columns=["person", "decade"]), y)
        fit(frame.drop(columns="person"), y, groups={"years": ["born", "decade"]})


def test_a_wide_table_takes_no_square_of_its_columns():
    table = read_table(np.random.default_rng(0).standard_normal((6, 20_000)))
    tracemalloc.start()
    assert warn_of_functions(table) == {}
    assert tracemalloc.get_traced_memory()[1] < 50e6  # a boolean for each pair is 400 MB
    tracemalloc.stop()
