"""``knockoffs demo``: a first selection, on a table that scikit-learn brings along."""

from __future__ import annotations

from typing import Annotated

import typer

from knockoffs.cli.checks import prepare_call
from knockoffs.cli.output import put
from knockoffs.cli.program import Force, Jobs, OutFolder, Seed, app
from knockoffs.errors import name_some
from knockoffs.options import Options


@app.command()
def demo(
    fdr: Annotated[float, typer.Option(metavar="NUMBER", help="Target false discovery rate.")] = 0.1,
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
    put(f"\n{about_lipids(record.selected)} On your own table: knockoffs select TABLE --target COLUMN")


def about_lipids(chosen: list[str]) -> str:
    """Sentences on the columns of the diabetes data that cannot matter given the others, and on those selected anyway.

    >>> about_lipids(["bmi", "ldl"]).split(". ")[-1]
    'Here ldl is one of the false discoveries that the level allows: try another --seed.'
    """
    known = (
        "The target is the progression of diabetes after one year. LDL was computed from cholesterol, HDL and "
        "triglycerides, so any three of these four columns determine the last, and none can matter given the others."
    )
    false = [name for name in chosen if name in ("cholesterol", "ldl", "hdl", "log triglycerides")]
    if not false:
        return f"{known} P^X has found that; a linear regression is sure of the triglycerides."
    are = f"{false[0]} is one" if len(false) == 1 else f"{name_some(false)} are some"
    return f"{known} Here {are} of the false discoveries that the level allows: try another --seed."
