"""Survival times as they come: two columns, a structured array, (time, event); what is said and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.table.table import read_table
from knockoffs.table.target import as_target
from knockoffs.table.target_kind import split_times

TIME, EVENT = np.array([5.0, 3.0, 8.0, 1.0, 4.0, 2.0]), np.array([1, 0, 1, 1, 0, 1])
SIGNED = [5.0, -3.0, 8.0, 1.0, -4.0, 2.0]
ENTRY = TIME / 2
TABLE = read_table(1 + np.arange(12.0).reshape(6, 2) % 5)


def structured(names=("status", "futime"), kinds=(bool, float)):
    array = np.empty(6, dtype=list(zip(names, kinds, strict=True)))
    array[names[0]], array[names[1]] = EVENT, TIME
    return array


@pytest.mark.parametrize(
    "y",
    [
        (TIME, EVENT),
        (list(TIME), EVENT == 1),
        (pd.Series(TIME), pd.Series(EVENT)),
        pd.DataFrame({"days": TIME, "dead": EVENT}),
        pd.DataFrame({"dead": EVENT == 1, "days": TIME.astype(int)}),
        pl.DataFrame({"days": TIME, "dead": EVENT == 1}),
        structured(),
        structured(("event", "time"), (float, float)),
    ],
)
def test_every_format_is_read(y):
    target = as_target(y, TABLE)
    assert target.kind == target.task == "survival" and target.values.tolist() == SIGNED
    assert target.note == "y is a survival time between 1 and 8: 4 events, 2 censored rows."
    assert as_target(y, TABLE, task="survival").values.tolist() == SIGNED


def test_signed_numbers_are_times_if_that_is_said():
    assert as_target(SIGNED, TABLE, task="survival").values.tolist() == SIGNED
    assert as_target(np.column_stack([TIME, EVENT]), TABLE, task="survival").values.tolist() == SIGNED
    assert as_target(SIGNED, TABLE).kind == "number"


@pytest.mark.parametrize("y", [(TIME, EVENT, ENTRY), pd.DataFrame({"from": ENTRY, "to": TIME, "event": EVENT})])
def test_times_of_entry(y):
    target = as_target(y, TABLE)
    np.testing.assert_array_equal(target.values, np.column_stack([SIGNED, ENTRY]))
    assert target.note.endswith("2 censored rows, each row from its entry on.")
    time, event, entry = split_times(target.rows(np.array([0, 1])).values)
    assert time.tolist() == [5, 3] and event.tolist() == [True, False] and entry.tolist() == [2.5, 1.5]


def test_rows_without_a_time_or_an_event_are_left_out():
    y = (np.where(np.arange(6) == 0, np.nan, TIME), pd.Series([1, 0, 1, 1, None, 1]))
    target = as_target(y, TABLE)
    assert target.values.tolist() == [-3.0, 8.0, 1.0, 2.0] and "2 rows are left out" in target.note


def test_a_time_of_zero_is_before_all_others():
    assert as_target((TIME - 1, EVENT), TABLE).values.tolist() == [4.0, -2.0, 7.0, 0.5, -3.0, 1.0]


def test_all_rows_may_have_events():
    assert (as_target((TIME, np.ones(6, bool)), TABLE).values > 0).all()


def test_codes_of_r_are_read_and_said():
    with pytest.warns(KnockoffWarning, match="2 is taken for the event"):
        assert as_target((TIME, EVENT + 1), TABLE).values.tolist() == SIGNED


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ((TIME, EVENT * 3), "'event' has the values 0, 3. An event is 1"),
        ((pd.Series(TIME, name="days"), pd.Series(40 + EVENT, name="age")), "'age' has the values 40, 41. An event"),
        ((pl.Series("days", TIME), pl.Series("kind", [0, 1, 2, 0, 1, 2])), "or --event kind=2."),
        ((TIME, np.zeros(6)), "y has no event: 'event' is 0 in every row"),
        ((-TIME, EVENT), "'time' is -5 in row 0. Times are finite and not negative"),
        ((TIME[:5], EVENT[:5]), "'time' has 5 values and X has 6 rows"),
        ((TIME, EVENT, TIME + 1), "row 0 enters at 6 ('entry') and leaves at 5"),
        ((TIME, ["dead", "alive"] * 3), "column 'event' holds labels, for instance 'alive'"),
        (pd.DataFrame({"a": TIME, "b": TIME}), "y should be a 1d array"),
        (
            pd.DataFrame({"days": 10 + TIME, "status": [0, 1, 2, 0, 2, 1]}),
            "for instance y=(time, table['status'] == 2) or --event status=2.",
        ),
        (pd.DataFrame({"a": EVENT, "b": EVENT}), "'a' and 'b' are 0 or 1"),
        (pd.DataFrame({"a": TIME, "b": TIME[::-1], "e": EVENT}), "neither of 'a' and 'b' is the later"),
        ((TABLE.X[:, 0] + 0, EVENT), "equals y in every row"),
    ],
)
def test_refused(y, message):
    with pytest.raises(InputError) as refused:
        as_target(y, TABLE)
    assert message in str(refused.value)


def test_a_column_of_many_values_is_no_event():
    frame = pd.DataFrame({"days": np.arange(1.0, 31), "age": np.arange(40.0, 70), "x": np.arange(30) % 7})
    with pytest.raises(InputError, match="'age' has 30 different values, from 40 to 69. An event is 1 .* Name the col"):
        as_target((frame["days"], frame["age"]), read_table(frame[["x"]]))


def test_a_column_that_says_the_event_or_the_time_in_other_words_is_warned_of():
    rng = np.random.default_rng(0)
    time, event = rng.exponential(size=60), rng.integers(2, size=60)
    table = read_table(pd.DataFrame({"censored": 1 - event, "weeks": time / 7, "x": rng.normal(size=60)}))
    with pytest.warns(KnockoffWarning) as said:
        as_target((time, event), table)
    assert [str(one.message).partition(" determine")[0] for one in said] == [
        "the time of y and 'weeks'",
        "the event of y and 'censored'",
    ]


def test_a_time_among_the_features_is_refused():
    frame = pd.DataFrame({"days": TIME, "x": range(6), "dead": EVENT})
    with pytest.raises(InputError, match="y is called 'days', and X has a column 'days' too"):
        as_target(frame[["days", "dead"]], read_table(frame[["days", "x"]]))


@pytest.mark.parametrize(
    "called",
    [
        "time",
        "Days",
        "futime",
        "survival_months",
        "time_to_event",
        "follow_up",
        "T",
        "diff_days",
        "lenfol",
        "time_on_study",
    ],
)
def test_a_lone_event_beside_its_time_is_asked_about(called):
    rng = np.random.default_rng(0)
    table = read_table(pd.DataFrame({"age": rng.normal(size=40), called: rng.exponential(size=40)}))
    with pytest.warns(KnockoffWarning, match=f"--time {called} --event died"):
        as_target(pd.Series(rng.permutation([0, 1] * 20), name="died"), table)


def test_of_several_times_the_one_named_after_the_event_is_asked_about():
    rng = np.random.default_rng(0)
    table = read_table(pd.DataFrame(rng.exponential(size=(40, 2)), columns=["time.to.transplant", "time.to.cmv"]))
    with pytest.warns(KnockoffWarning, match="--time time.to.cmv --event cmv"):
        as_target(pd.Series(rng.permutation([0, 1] * 20), name="cmv"), table)


@pytest.mark.parametrize("called", ["times_seen", "length", "holidays", "sometime"])
def test_other_columns_are_no_times(called, recwarn):
    rng = np.random.default_rng(0)
    table = read_table(pd.DataFrame({"age": rng.normal(size=40), called: rng.exponential(size=40)}))
    as_target(rng.permutation([0, 1] * 20), table)
    assert not recwarn.list


@pytest.mark.parametrize("name, called", [("smoker", "T"), ("smoker", "time_on_study"), ("died", "age_in_years")])
def test_a_name_that_may_be_a_time_is_asked_about_beside_an_event_alone(name, called, recwarn):
    rng = np.random.default_rng(0)
    table = read_table(pd.DataFrame({"x": rng.normal(size=40), called: rng.exponential(size=40)}))
    as_target(pd.Series(rng.permutation([0, 1] * 20), name=name), table)
    assert not recwarn.list
