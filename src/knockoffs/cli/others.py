"""The command convert, which is about to leave."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knockoffs.cli.output import say
from knockoffs.cli.program import Force, app
from knockoffs.progress import stage


@app.command()
def convert(
    vcf: Annotated[Path, typer.Argument(metavar="VCF", help="Genotypes: .vcf, plain or packed by gzip.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The .bed to be written, with .bim and .fam beside it.")],
    biallelic: Annotated[
        bool, typer.Option("--biallelic", help="Leave out lines with several alternative alleles.")
    ] = False,
    force: Force = False,
) -> None:
    """Write the genotypes of a VCF file as PLINK's .bed.

    \b
    knockoffs convert chr21.vcf.gz --out chr21.bed
    """
    from knockoffs.table.vcf import vcf_to_bed

    stage("reading the calls")
    people, snps = vcf_to_bed(vcf, out, biallelic=biallelic, force=force)
    say(f"wrote {out}, with .bim and .fam beside it: {people} people, {snps} SNPs")
