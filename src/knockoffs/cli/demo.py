"""``knockoffs demo``: a first selection, on a table whose answer is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from knockoffs.cli.checks import prepare_call
from knockoffs.cli.output import put
from knockoffs.cli.program import Force, Jobs, Seed, app
from knockoffs.options import Options


@app.command()
def demo(
    fdr: Annotated[float, typer.Option(metavar="NUMBER", help="Level of the error that is controlled.")] = 0.1,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Takes the table, the answer and the report.")] = Path(
        "knockoffs-demo"
    ),
    force: Force = False,
    jobs: Jobs = None,
) -> None:
    """Select what the price of made-up houses depends on, beside the truth.

    \b
    knockoffs demo
    knockoffs demo --out results
    """
    from tempfile import TemporaryDirectory

    from knockoffs.cli.files import check_out, check_report, deliver
    from knockoffs.cli.select import run_selection
    from knockoffs.report.figures import can_draw
    from knockoffs.simulate.examples import EXAMPLES, PRICED_BY
    from knockoffs.table.files import write_table_file
    from knockoffs.table.writer import check_output

    example = EXAMPLES["houses"]
    table, report = out / example.file, out / "report.html"
    options = Options(target=example.target, fdr=fdr, seed=seed, jobs=jobs, report=str(report))
    prepare_call(options, "select")
    check_out(out, Path(), options, force)
    out.mkdir(parents=True, exist_ok=True)
    check_report(Path(), options, force, out)
    with TemporaryDirectory() as folder:
        made = Path(folder, example.file)
        write_table_file(example.make(), made)
        content = made.read_bytes()
    check_output(table, force=force, ours=lambda path: path.read_bytes() == content)
    table.write_bytes(content)
    record = run_selection(table, options, out)
    deliver(record, out, details=False)
    put(f"\n{beside_the_truth([found['features'] for found in record.discoveries or ()], record.names, PRICED_BY)}")
    figures = "" if can_draw() else " (without figures: they need matplotlib)"
    program = program_name()
    put(
        f"\nThe report: {report.resolve()}{figures}\n\nGo on with\n"
        f"  {program} check YOUR_TABLE.csv --drop TARGET\n"
        f"  {program} select YOUR_TABLE.csv --target TARGET --report report.html\n"
        f"  {program} app"
    )


def beside_the_truth(discoveries: Sequence[Sequence[str]], names: Sequence[str], truth: Sequence[str]) -> str:
    """Lines that compare discoveries with the columns that matter.

    >>> print(beside_the_truth([["a"], ["b", "c"], ["d"]], list("abcde"), ["a", "b", "e"]))
    The table is made up, so the truth is known: 3 columns matter (a, b, e).
      a                true
      one of b, c      true, by b
      d                FALSE, which the level allows
    Found: 2 of 3. Missed: e.
    """
    from knockoffs.conditional_tests.resolution import discovery_name

    lines = [f"The table is made up, so the truth is known: {len(truth)} columns matter ({', '.join(truth)})."]
    width = max((len(discovery_name(found)) for found in discoveries), default=0) + 6
    for found in discoveries:
        right = [name for name in found if name in truth]
        by = f", by {', '.join(right)}" if len(found) > 1 else ""
        said = f"true{by}" if right else "FALSE, which the level allows"
        lines.append(f"  {discovery_name(found):<{width}}{said}")
    covered = {name for found in discoveries for name in found}
    missed = [name for name in truth if name not in covered]
    others = [name for name in names if name not in truth and name not in covered]
    end = f" Missed: {', '.join(missed)}." if missed else f" Left out, rightly: {', '.join(others)}." if others else ""
    return "\n".join([*lines, f"Found: {len(truth) - len(missed)} of {len(truth)}.{end}"])


def program_name() -> str:
    """How this program is called again: by its name, or by its place if the shell does not find it."""
    import shutil
    import sys

    from knockoffs.report.provenance import shell_word

    place = sys.argv[0]
    return shell_word(place) if Path(place).name == "knockoffs" and not shutil.which("knockoffs") else "knockoffs"
