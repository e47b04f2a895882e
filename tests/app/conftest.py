"""A desk behind its guard, with work that is quick."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the processes of jobs import their work by its name

import work_of_tests  # noqa: E402
from client import PORT, TOKEN, Client  # noqa: E402


@pytest.fixture
def make_client(tmp_path):
    from knockoffs.app.desk import Desk
    from knockoffs.app.server import make_app

    made = []

    def make(select=work_of_tests.select, **options):
        desk = Desk(tmp_path / f"desk{len(made)}", select, **{"at_once": 2, **options})
        made.append(Client(desk, make_app(desk, token=TOKEN, port=PORT, most_bytes=100_000)))
        return made[-1]

    yield make
    for one in made:
        one.desk.close()


@pytest.fixture
def client(make_client):
    return make_client()
