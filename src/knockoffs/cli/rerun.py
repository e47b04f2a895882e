"""``knockoffs rerun``: the same selection again, or what differs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from knockoffs.cli.checks import prepare_call
from knockoffs.cli.output import put
from knockoffs.cli.program import Force, Jobs, OutFolder, TableFile, app
from knockoffs.errors import printable
from knockoffs.options import Options


@app.command()
def rerun(
    selection: Annotated[Path, typer.Argument(metavar="SELECTION", help="selection.json of an earlier run.")],
    table: TableFile,
    out: OutFolder = None,
    force: Force = False,
    jobs: Jobs = None,
) -> int:
    """Run a selection again and compare the answers.

    \b
    knockoffs rerun results/selection.json table.csv
    """
    from knockoffs.cli.files import check_out, deliver
    from knockoffs.record.comparing import differences
    from knockoffs.record.reading import read_selection

    old = read_selection(selection)
    face = "ghost" if old.method == "ghost" else "select"
    options = replace(Options.of(old.parameters), jobs=jobs)
    prepare_call(options, face)
    check_out(out, table, options, force, selection)
    if face == "ghost":
        from knockoffs.cli.ghost import run_ghost

        new = run_ghost(table, options)
    else:
        from knockoffs.cli.select import run_selection

        new = run_selection(table, options, out)
    answer, grounds = differences(old, new)
    deliver(new, out)
    for difference in grounds:
        put(f"Different: {printable(difference)}.")
    for difference in answer:
        put(f"Different in the answer: {printable(difference)}.")
    if not answer:
        same = "p-values" if new.method == "conditional_test" else "W, threshold"
        put(f"The answer is identical: the same {same} and selection, to the last bit.")
    return 1 if answer else 0
