"""Jobs: their processes tell how far they are, end for real, and leave nothing."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import work_of_tests as work

from knockoffs.app import jobs as jobs_module
from knockoffs.app.jobs import Job, Jobs
from knockoffs.errors import InputError

SOURCE = Path(jobs_module.__file__).resolve().parents[2]
posix = pytest.mark.skipif(os.name == "nt", reason="groups of processes are of POSIX")


@pytest.fixture
def jobs(tmp_path):
    made = Jobs(tmp_path / "jobs", parallel_map=2, most_waiting=1, most_kept=3)
    yield made
    made.close()


def until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def ended(job):
    until(lambda: job.state in jobs_module.ENDED)
    return job


def alive(pid):
    """Whether a process is there and at work; one that nobody has taken note of yet is not."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(") ")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_job_gives_back_what_its_function_does(jobs):
    job = ended(jobs.add(work.echo, ["\u202e<b>", 1.5, None], about={}))
    assert (job.state, job.result, job.error) == ("done", ["\u202e<b>", 1.5, None], "")
    assert job.step == "second" and job.folder.is_dir()
    assert not job.process.is_alive()


@pytest.mark.parametrize(
    "function, arguments, state, words",
    [
        (work.refuse, (), "failed", "column 'x' is no feature: drop it."),
        (work.fault, (), "failed", "this is a fault of the program, not of the table: KeyError: 'no such key'"),
        (work.no_json, (), "failed", "this is a fault of the program, not of the table: TypeError: "),
        (work.vanish, ("exit",), "killed", "the process of this job ended without an answer (exit code 3)."),
        pytest.param(work.vanish, ("kill",), "killed", "ended from outside (SIGKILL), as a system", marks=posix),
    ],
)
def test_a_job_that_fails_says_how_and_leaves_nothing(jobs, function, arguments, state, words):
    job = ended(jobs.add(function, *arguments, about={}))
    assert job.state == state and words in job.error
    assert not job.folder.exists()


@posix
def test_cancel_ends_the_process_and_those_that_it_has_started(jobs):
    job = jobs.add(work.endless, about={})
    until(lambda: (job.folder / "half").exists() and (job.folder / "half").read_text())
    helper, process = int((job.folder / "half").read_text()), job.process
    until(lambda: job.done)
    assert alive(helper) and process.is_alive() and job.view()["left"] > 0
    jobs.cancel(job.name)
    ended(job)
    assert job.state == "cancelled" and not process.is_alive()
    until(lambda: not alive(helper))
    assert not job.folder.exists()
    jobs.cancel(job.name)  # nothing happens
    assert job.state == "cancelled"


def test_a_job_that_is_cancelled_before_it_runs_never_runs(jobs):
    jobs.parallel_map = 0
    job = jobs.add(work.echo, 1, about={})
    assert job.state == "waiting" and job.view()["seconds"] == 0
    jobs.cancel(job.name)
    assert job.state == "cancelled" and job.process is None


def test_a_job_can_be_cancelled_while_its_process_starts(jobs):
    job = jobs.add(work.endless, about={})
    jobs.cancel(job.name)
    assert ended(job).state == "cancelled" and not job.process.is_alive()


def test_two_run_at_once_one_waits_and_the_next_is_refused(jobs):
    first, second, third = (jobs.add(work.endless, about={}) for _ in range(3))
    assert [job.state for job in (first, second, third)] == ["running", "running", "waiting"]
    with pytest.raises(InputError, match="1 jobs are waiting already"):
        jobs.add(work.echo, 1, about={})
    jobs.cancel(first.name)
    until(lambda: third.state == "running")
    assert second.state == "running"


def test_old_jobs_are_forgotten_with_their_files(jobs):
    listed = [ended(jobs.add(work.echo, k, about={})) for k in range(5)]
    jobs.add(work.echo, 5, about={})
    assert [jobs.get(job.name) is None for job in listed] == [True, True, False, False, False]
    assert not listed[0].folder.exists() and listed[4].folder.exists()


def test_close_ends_all_and_takes_no_more(jobs):
    listed = [jobs.add(work.endless, about={}) for _ in range(3)]
    jobs.close()
    assert {job.state for job in listed} == {"cancelled"}
    assert not any(job.process is not None and job.process.is_alive() for job in listed)
    with pytest.raises(InputError, match="stopping"):
        jobs.add(work.echo, 1, about={})


def test_the_estimate_is_of_the_step_and_starts_anew_with_it():
    job = Job("j", Path(), {}, (), state="running", started=100.0, since=100.0)
    jobs_module._advance(job, {"step": "draws", "done": 0, "total": 4})
    job.since = 110.0
    assert job.view(112.0)["left"] is None
    jobs_module._advance(job, {"step": "draws", "done": 1, "total": 4})
    assert job.since == 110.0
    told = job.view(115.0)
    assert (told["left"], told["seconds"], told["done"], told["total"]) == (15.0, 15.0, 1, 4)
    jobs_module._advance(job, {"step": "verdict", "done": None, "total": None})
    assert job.since > 115.0 and job.view(1e9)["left"] is None


@posix
def test_processes_end_when_the_app_is_killed_outright(tmp_path):
    script = tmp_path / "app.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys, time
            from pathlib import Path
            sys.path.insert(0, sys.argv[2])
            import work_of_tests as work
            from knockoffs.app.jobs import Jobs

            if __name__ == "__main__":
                job = Jobs(Path(sys.argv[1]), at_once=1).add(work.endless, about={})
                while not (job.folder / "half").exists() or not (job.folder / "half").read_text():
                    time.sleep(0.05)
                print(job.process.pid, (job.folder / "half").read_text(), flush=True)
                time.sleep(1000)
            """
        )
    )
    command = [sys.executable, str(script), str(tmp_path / "jobs"), str(Path(__file__).parent)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(SOURCE)}
    ) as app:
        pids = [int(word) for word in app.stdout.readline().split()]
        assert len(pids) == 2 and all(map(alive, pids))
        app.kill()
        until(lambda: not any(map(alive, pids)))
