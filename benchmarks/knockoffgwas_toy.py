"""The toy data of KnockoffGWAS at its seven resolutions, beside the discoveries that are stored with it.

    python benchmarks/knockoffgwas_toy.py FOLDER              # the folder of the toy data; five draws of each
    python benchmarks/knockoffgwas_toy.py FOLDER --draws 1 --resolutions 0 6

1,000 artificial people, 1,000 SNPs on each of two chromosomes, sampled from a hidden Markov model that is known; y has
40 causal SNPs. Resolution 0 is SNPs, 6 the coarsest groups. Knockoffs are group knockoffs of that model, drawn from
genotypes (phase unknown) or from the phased haplotypes, which KnockoffGWAS itself has used; the statistic is a
cross-validated lasso, sum of |coefficients| over a group, at level 0.1.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import time
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  (threads are set first)

from knockoffs import KnockoffSelector  # noqa: E402
from knockoffs.errors import KnockoffWarning  # noqa: E402
from knockoffs.features.fastphase import read_fastphase  # noqa: E402
from knockoffs.features.hidden_markov.mosaic import GenotypeModel, HaplotypeModel, Mosaic  # noqa: E402
from knockoffs.sampling.sampler import sample_knockoffs  # noqa: E402

RESULTS = Path(__file__).resolve().parent / "results" / "knockoffgwas_toy.csv"
CHROMOSOMES = (21, 22)
STORED = (10, 15, 30, 24, 20, 15, 0)  # discoveries that come with the toy data
STORED_TRUE = (9, 15, 27, 24, 20, 15, 0)  # of these, with a causal SNP


def both_chromosomes(folder):
    """One mosaic of both: the chain forgets everything between them."""
    parts = [read_fastphase(folder / f"hmm_chr{c}") for c in CHROMOSOMES]
    r = np.concatenate([parts[0].r, [50.0], parts[1].r[1:]])  # exp(-50) = 2e-22 stay
    return Mosaic(r, np.vstack([part.alpha for part in parts]), np.vstack([part.theta for part in parts]))


def read_words(path):
    """Words of a text file, row by row, without its header."""
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else path.open()
    with opened as file:
        return [line.split() for line in file][1:]


def read_toy(folder):
    """Haplotypes (2000, 2000), y (1000,), groups at each resolution (7, 2000), and which SNPs are causal (2000,)."""
    H = np.hstack([np.load(folder / f"haplotypes_chr{c}.npz")["H"] for c in CHROMOSOMES])
    y = np.array([float(row[3]) for row in read_words(folder / "phenotypes.tab")])
    causal = {row[1] for row in read_words(folder / "causal.txt")}
    labels, snps = [], []
    for c in CHROMOSOMES:
        for row in read_words(folder / f"partitions_chr{c}.txt.gz"):
            snps.append(row[0])
            labels.append([f"{c}:{group}" for group in row[1:]])
    return H, y, np.array(labels).T, np.array([snp in causal for snp in snps])


def select(mosaic, H, y, labels, phased, seed):
    """Names of the groups that are selected: group knockoffs of the known model, lasso, level 0.1."""
    X = (H[::2] + H[1::2]).astype(float)
    source = {"feature_model": GenotypeModel(mosaic)}
    if phased:
        runs = np.concatenate([[0], np.cumsum(labels[1:] != labels[:-1])])
        network = HaplotypeModel(mosaic).as_network(feature_of=runs)
        H_tilde = sample_knockoffs(network, H, np.random.default_rng([seed, 1]))
        source = {"knockoffs": (H_tilde[::2] + H_tilde[1::2]).astype(float)}
    options = {"estimator": "lasso", "method": "knockoffs", "verdict": False, "random_state": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KnockoffWarning)
        selector = KnockoffSelector(0.1, groups=list(labels), **source, **options).fit(X, y)
    groups = selector.table_.groups
    return [groups.columns(g) for g in np.flatnonzero(selector.selection_.selected)]


def main():
    """Run every resolution and write one row for each, way of drawing and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--resolutions", type=int, nargs="*", default=range(7))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    H, y, labels, causal = read_toy(options.folder)
    mosaic = both_chromosomes(options.folder)
    options.out.parent.mkdir(exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = None
        for draw in range(options.draws):
            for resolution in options.resolutions:
                for phased in (False, True):
                    start = time.process_time()
                    chosen = select(mosaic, H, y, labels[resolution], phased, draw)
                    row = {
                        "resolution": resolution,
                        "n_groups": len(set(labels[resolution])),
                        "knockoffs": "haplotypes" if phased else "genotypes",
                        "draw": draw,
                        "discoveries": len(chosen),
                        "with_causal_snp": sum(bool(causal[columns].any()) for columns in chosen),
                        "causal_snps_covered": int(sum(causal[columns].sum() for columns in chosen)),
                        "stored": STORED[resolution],
                        "stored_with_causal_snp": STORED_TRUE[resolution],
                        "cpu_seconds": round(time.process_time() - start, 1),
                    }
                    writer = writer or csv.DictWriter(file, list(row))
                    if file.tell() == 0:
                        writer.writeheader()
                    writer.writerow(row)
                    file.flush()
                    print(*row.values(), sep=", ", flush=True)


if __name__ == "__main__":
    main()
