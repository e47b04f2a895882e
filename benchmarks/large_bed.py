"""Knockoffs of a chromosome of many people: time and memory of ``knockoffs sample`` on a .bed, by the number of jobs.

    python benchmarks/large_bed.py FOLDER                     # 50,000 people x 20,000 SNPs, one job and two
    python benchmarks/large_bed.py FOLDER --people 5000 --jobs 1
    python benchmarks/large_bed.py FOLDER --people 20000 --snps 5000 --jobs 1 --select ' --estimator lasso --no-verdict'

With --select a selection is measured instead, with these options, for a trait of 100 causal SNPs.

The genotypes are drawn from a mosaic of ten ancestral haplotypes with the parameters of fastPHASE's files of one
chromosome (--fastphase PREFIX), laid end to end until there are SNPs enough; without it from made-up parameters. 2,000
people are drawn and repeated until there are enough: what is measured does not mind. The file of genotypes is made once
(about 250 MB), the knockoffs are removed after each run. Prints people, SNPs, jobs,
wall-clock and CPU seconds, nanoseconds of CPU time a cell, and the largest memory of the process, and writes them to
results/large_bed.csv.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import shlex
import subprocess
import sys
import time
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  (threads are set first)

from knockoffs.features.fastphase import read_fastphase  # noqa: E402
from knockoffs.features.hmm.mosaic import GenotypeModel, Mosaic  # noqa: E402
from knockoffs.table.plink import read_bed  # noqa: E402

RESULTS = Path(__file__).resolve().parent / "results" / "large_bed.csv"
CODES = np.array([3, 2, 0], np.uint8)  # of 0, 1, 2 copies of allele 1, in pairs of bits
DRAWN = 2000  # people that differ; a multiple of 4


def long_mosaic(prefix: str | None, p: int) -> Mosaic:
    """Parameters of p SNPs: those of a chromosome again and again, or made up."""
    rng = np.random.default_rng(0)
    if prefix is None:
        return Mosaic(rng.exponential(0.05, p), np.full((p, 10), 0.1), rng.beta(0.3, 0.6, size=(p, 10)))
    one = read_fastphase(prefix)
    times = -(-p // len(one.r))
    theta = np.clip(np.tile(one.theta, (times, 1))[:p], 0.001, 0.999)
    return Mosaic(np.tile(one.r, times)[:p], np.tile(one.alpha, (times, 1))[:p], theta)


def write_genotypes(bed: Path, mosaic: Mosaic, n: int) -> None:
    """Write a .bed with .bim and .fam, and the files of fastPHASE beside it."""
    p, rng, model = len(mosaic.r), np.random.default_rng(1), GenotypeModel(mosaic)
    codes = CODES[model.sample(min(DRAWN, n), rng)].reshape(-1, 4, p)
    some = (codes[:, 0] | codes[:, 1] << 2 | codes[:, 2] << 4 | codes[:, 3] << 6).T
    with bed.open("wb") as file:
        file.write(b"\x6c\x1b\x01")
        for snp in some:
            file.write(np.resize(snp, n // 4).tobytes())
    bed.with_suffix(".bim").write_text("".join(f"1\trs{j}\t0\t{1000 * j}\tA\tC\n" for j in range(p)))
    bed.with_suffix(".fam").write_text("".join(f"{i} {i} 0 0 0 -9\n" for i in range(n)))
    for ending, block in (("rhat", mosaic.r[:, None]), ("alphahat", mosaic.alpha), ("thetahat", mosaic.theta)):
        lines = (" ".join(map(repr, row)) + "\n" for row in block.tolist())
        Path(f"{bed.with_suffix('')}_{ending}.txt").write_text("> start 0\n" + "".join(lines))
    Path(f"{bed.with_suffix('')}_origchars").write_text(f"{p}\n" + "2\t10\n" * p)


def write_trait(bed: Path, n: int, p: int, n_causal: int = 100) -> Path:
    """Write a phenotype file with a trait of causal SNPs; effects are .3, the noise has a standard deviation of 2."""
    rng, path = np.random.default_rng(2), bed.with_suffix(".tab")
    trait = 2 * rng.standard_normal(n)
    for j in np.sort(rng.choice(p, min(n_causal, p // 20), replace=False)):
        trait += rng.choice([-0.3, 0.3]) * read_bed(bed, columns=slice(int(j), int(j) + 1))[0][:, 0]
    path.write_text("FID IID trait\n" + "".join(f"{i} {i} {value:.5f}\n" for i, value in enumerate(trait)))
    return path


def sample_call(bed: Path, jobs: int, rows_at_once: int) -> list[object]:
    """Arguments that draw knockoffs of a file."""
    out = ["--fastphase", bed.with_suffix(""), "--out", bed.with_name("knockoffs.bed"), "--force"]
    return ["sample", bed, *out, "--seed", "0", "--jobs", jobs, "--rows-at-once", rows_at_once]


def select_call(bed: Path, jobs: int, phenotype: Path, options: str) -> list[object]:
    """Arguments that select SNPs."""
    model = f"prefix={bed.with_suffix('')}"
    given = ["--phenotype", phenotype, "--target", "trait", "--feature-model-option", model, "--jobs", jobs]
    return ["select", bed, *given, *shlex.split(options)]


def measure(arguments: list[object]) -> tuple[float, float, float]:
    """Wall-clock seconds, CPU seconds and gigabytes of one run of the command, in a process of its own."""
    call = [sys.executable, "-m", "knockoffs", *arguments]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    child = subprocess.Popen([str(word) for word in call])
    _, status, used = os.wait4(child.pid, 0)
    seconds = time.monotonic() - start
    if status:
        raise SystemExit(f"it ended with status {status}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu, used.ru_maxrss / 2**20


def main() -> None:
    """Make the genotypes where they are not there, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--people", type=int, default=50_000, help="a multiple of 4")
    parser.add_argument("--snps", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, nargs="*", default=(1, 2))
    parser.add_argument("--rows-at-once", type=int, default=4096)
    parser.add_argument("--fastphase", help="prefix of parameter files")
    parser.add_argument("--select", help="options of a selection, perhaps none: ''")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    bed = options.folder / f"genotypes_{options.people}_{options.snps}.bed"
    if not bed.exists():
        start = time.monotonic()
        write_genotypes(bed, long_mosaic(options.fastphase, options.snps), options.people)
        print(f"wrote {bed} in {time.monotonic() - start:.0f} s", flush=True)
    cells, rows = options.people * options.snps, []
    trait = None if options.select is None else write_trait(bed, options.people, options.snps)
    for jobs in options.jobs:
        if trait is None:
            seconds, cpu, memory = measure(sample_call(bed, jobs, options.rows_at_once))
            for ending in (".bed", ".bim", ".fam"):
                bed.with_name("knockoffs.bed").with_suffix(ending).unlink()
        else:
            seconds, cpu, memory = measure(select_call(bed, jobs, trait, options.select))
        row = {"people": options.people, "snps": options.snps, "jobs": jobs, "rows_at_once": options.rows_at_once}
        row |= {"seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1)}
        row |= {"ns_a_cell": round(1e9 * cpu / cells, 1), "gigabytes": round(memory, 2)}
        rows.append(row)
        print(row, flush=True)
    options.out.parent.mkdir(exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
