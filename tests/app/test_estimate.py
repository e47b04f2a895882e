"""What is left of a run: guessed by the table, corrected by the steps that are over, and it shrinks."""

import numpy as np
import pytest

from knockoffs.app.estimate import INSIDE, STEPS, guess_steps, left_in_all
from knockoffs.app.jobs import Job, _advance


def told(truth, guessed, every=0.5):
    """What is told of a run over time, whose steps take what truth says; and what is left in truth."""
    told, rest, took = [], [], {}
    for step, seconds in truth.items():
        for spent in np.arange(0.0, seconds, every):
            told.append(left_in_all(guessed, took, step, spent, None))
            rest.append(sum(truth.values()) - sum(took.values()) - spent)
        took[step] = seconds
    return np.array(told), np.array(rest)


@pytest.mark.parametrize("slower", [1.0, 0.5, 3.0])
def test_what_is_left_shrinks_and_comes_near_the_truth(slower):
    guessed = guess_steps(20_000, 60, {})
    truth = {step: slower * seconds for step, seconds in guessed.items()}
    left, rest = told(truth, guessed)
    jumps = np.diff(left)
    ends = np.cumsum([len(np.arange(0.0, seconds, 0.5)) for seconds in truth.values()])[:-1] - 1
    assert (np.delete(jumps, ends) <= 1e-9).all()  # within a step it never grows
    late = slice(ends[1] + 1, None)  # once P^X is fitted
    assert (np.abs(left[late] - rest[late]) <= 0.3 * rest[late] + 0.3).all()


def test_a_guess_that_was_right_stays_right():
    guessed = dict(zip(STEPS, (2.0, 10.0, 1.0, 6.0, 4.0, 1.0), strict=True))
    left, rest = told(guessed, guessed)
    np.testing.assert_allclose(left, rest, atol=0.051)  # tenths of a second


def test_the_loop_of_a_step_is_worth_more_than_the_guess():
    guessed = dict(zip(STEPS, (2.0, 10.0, 1.0, 6.0, 4.0, 1.0), strict=True))
    took = {STEPS[0]: 2.0, STEPS[1]: 10.0, STEPS[2]: 1.0}
    assert left_in_all(guessed, took, STEPS[3], 3.0, 60.0) == 60 + 4 + 1
    assert left_in_all(guessed, took, "starting", 3.0, 60.0) is None


def test_guesses_grow_with_the_table_and_the_draws():
    sums = [sum(guess_steps(n, d, {}).values()) for n, d in ((100, 10), (1000, 10), (1000, 100), (100_000, 100))]
    assert sums == sorted(sums)
    once, often = guess_steps(1000, 20, {"n_draws": 1}), guess_steps(1000, 20, {"n_draws": 10})
    assert often[STEPS[3]] == pytest.approx(10 * once[STEPS[3]]) and often[STEPS[1]] == once[STEPS[1]]


def test_a_job_counts_the_time_of_loops_to_the_step_they_stand_in(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("knockoffs.app.jobs.time.monotonic", lambda: now[0])
    guessed = dict(zip(STEPS, (2.0, 10.0, 1.0, 6.0, 4.0, 1.0), strict=True))
    job = Job("name", tmp_path, {"guess": guessed}, (), state="running", started=99.0)
    for seconds, step, done, total in (
        (0, STEPS[0], None, None),
        (1, STEPS[1], None, None),
        (3, "stochastic EM of P^X", 1, 10),  # inside of the fit, which is not as long as it
        (7, STEPS[2], None, None),
        (1, next(iter(INSIDE)), 1, 4),
    ):
        now[0] += seconds
        _advance(job, {"step": step, "done": done, "total": total})
        if step == "stochastic EM of P^X":
            assert job.view()["in_all"] == 7 + 1 + 6 + 4 + 1
    assert job.took == {STEPS[0]: 2.0, STEPS[1]: 10.0, STEPS[2]: 1.0} and job.part == STEPS[3]
    now[0] += 2
    assert job.view()["left"] == 2 * 3 and job.view()["in_all"] == 6 + 4 + 1
