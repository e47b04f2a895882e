"""``knockoffs demo``: a first selection, on a table that scikit-learn brings along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from knockoffs.cli.checks import prepare_call
from knockoffs.cli.output import put
from knockoffs.cli.program import Force, Jobs, OutFolder, Seed, app
from knockoffs.errors import name_some
from knockoffs.options import Options


@app.command()
def demo(
    fdr: Annotated[float, typer.Option(metavar="NUMBER", help="Level of the error that is controlled.")] = 0.1,
    seed: Seed = 0,
    out: OutFolder = None,
    force: Force = False,
    jobs: Jobs = None,
) -> None:
    """Select what matters for the progression of diabetes.

    \b
    knockoffs demo
    knockoffs demo --out results
    """
    import hashlib

    import numpy as np
    import polars as pl

    from knockoffs.cli.files import deliver
    from knockoffs.cli.select import run_on_frame
    from knockoffs.record import DataFile, check_selection_place
    from knockoffs.simulate.examples import diabetes

    options = Options(target="progression", fdr=fdr, seed=seed, jobs=jobs)
    prepare_call(options, "select")
    if out is not None:
        check_selection_place(out, force=force)
    columns = diabetes()
    features = np.column_stack([values for name, values in columns.items() if name != "progression"])
    origin: DataFile = {"file": "diabetes, scikit-learn", "sha256": hashlib.sha256(features.tobytes()).hexdigest()}
    record = run_on_frame(pl.DataFrame(columns), options, origin)
    deliver(record, out)
    found = [found["features"] for found in record.discoveries or ()]
    put(f"\n{about_lipids(found)} On your own table: knockoffs select TABLE --target COLUMN")


def about_lipids(discoveries: Sequence[Sequence[str]]) -> str:
    """Sentences on the columns of the diabetes data that cannot matter given the others, and on those named anyway.

    >>> about_lipids([["bmi"], ["ldl"]]).split(". ")[-1]
    'Here ldl is a false discovery, which the level allows: try another --seed.'
    """
    known = (
        "The target is the progression of diabetes after one year. LDL was computed from cholesterol, HDL and "
        "triglycerides, so any three of these four columns determine the last, and none can matter given the others, "
        "while a group of them can."
    )
    lipids = ("cholesterol", "ldl", "hdl", "log triglycerides")
    false = [found[0] for found in discoveries if len(found) == 1 and found[0] in lipids]
    if not false:
        return f"{known} None is named alone; a linear regression is sure of the triglycerides."
    are = f"{false[0]} is a false discovery" if len(false) == 1 else f"{name_some(false)} are false discoveries"
    return f"{known} Here {are}, which the level allows: try another --seed."
