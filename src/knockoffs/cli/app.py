"""The program ``knockoffs``: it runs a command and ends with a status.

Only typer is imported at the top, so that ``knockoffs --help`` answers at once; each command imports what it needs. An
error ends in one sentence on standard error, with status 1 for data that cannot be used (``InputError``), 2 for a call
that cannot be understood (``bad_call``) and 130 after Ctrl-C.
"""

from __future__ import annotations

import sys

import typer

from knockoffs.cli import check, demo, ghost, page, rerun, sample, select  # noqa: F401  commands
from knockoffs.cli.interrupt import interrupt_once
from knockoffs.cli.output import UnprintedError, prepare_streams, say_lines
from knockoffs.cli.program import app
from knockoffs.progress import showing

STOPPED = 130  # status of a program that was ended by Ctrl-C


def main(arguments: list[str] | None = None) -> None:
    """Run the program and end it with a status."""
    prepare_streams()
    from knockoffs.errors import EXTRAS, InputError, installs, interrupts

    click_exception = typer.BadParameter.__mro__[2]  # typer brings its own copy of click, or uses the real one
    try:
        with interrupt_once(), interrupts(), showing():
            status = app(args=arguments, standalone_mode=False)
        if status == STOPPED:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
    except InputError as error:
        fail(str(error), 1)
    except click_exception as error:  # type: ignore[misc]
        fail(error.format_message(), 2)
    except (typer.Abort, KeyboardInterrupt):
        fail("stopped; unfinished files were removed, and older files are unchanged.", STOPPED)
    except UnprintedError as error:
        if str(error):  # else the reader of our output has closed it
            fail(f"standard output: {error}. The files were written.", 1)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:
        fail(f"{error.filename or 'reading or writing'}: {error.strerror or error}.", 1)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        fail(f"this needs {error.name}, which is not installed: {installs(error.name)}.", 1)
    except MemoryError:
        fail("not enough memory: use fewer rows or columns.", 1)
    sys.exit(status if isinstance(status, int) else 0)


def fail(message: str, status: int) -> None:
    """Write an error to standard error and end the program."""
    say_lines(f"knockoffs: {message}")
    sys.exit(status)


if __name__ == "__main__":
    main()
