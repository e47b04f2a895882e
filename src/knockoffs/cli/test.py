"""``knockoffs test``: a p-value for every feature."""

from __future__ import annotations

from dataclasses import replace

from knockoffs.cli.program import Force, OutFolder, TableFile, command
from knockoffs.cli.select import select_and_show
from knockoffs.options import Options


@command("test")
def test(table: TableFile, options: Options, out: OutFolder = None, force: Force = False) -> None:
    """Give every feature a p-value.

    Each feature is resampled given all the others, many times.

    \b
    knockoffs test table.csv --target y
    knockoffs test table.csv --target y --fdr 0.05 --out results
    """
    select_and_show(table, replace(options, method="conditional_test"), out, force)
