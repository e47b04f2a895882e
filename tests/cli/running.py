"""The program in this process, or in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from knockoffs.cli import app as cli

SOURCE = Path(cli.__file__).resolve().parents[2]


def run(*arguments, status=0):
    """Run the program in this process."""
    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in arguments])
    assert ended.value.code == status


def run_apart(*arguments, env=None, **options):
    """Run the program in a process of its own; its output is caught unless ``options`` say otherwise."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"} | (env or {})
    command = [sys.executable, "-m", "knockoffs.cli.app", *map(str, arguments)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    return subprocess.run(command, env=environment, timeout=600, **options)
