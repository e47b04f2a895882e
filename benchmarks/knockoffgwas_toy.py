"""The toy data of KnockoffGWAS at its seven resolutions, beside the discoveries that are stored with it.

    python benchmarks/knockoffgwas_toy.py FOLDER              # the folder of the toy data; five draws of each
    python benchmarks/knockoffgwas_toy.py FOLDER --draws 1 --resolutions 0 6
    python benchmarks/knockoffgwas_toy.py FOLDER --draws 10 --resolutions 0 1 --kept --knockoffs 5 --out five.csv
    python benchmarks/knockoffgwas_toy.py FOLDER --draws 1 --joined --level 0.2    # all resolutions in one answer

1,000 artificial people, 1,000 SNPs on each of two chromosomes, sampled from a hidden Markov model that is known; y has
40 causal SNPs. Resolution 0 is SNPs, 6 the coarsest groups. Knockoffs are group knockoffs of that model, drawn from
genotypes (phase unknown) or from the phased haplotypes, which KnockoffGWAS itself has used; the statistic is a
cross-validated lasso, sum of |coefficients| over a group, at level 0.1. With --kept the hidden chains stay as they were
drawn given the data, and only alleles are drawn anew: then there can be several knockoffs of every SNP (--knockoffs).
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
from knockoffs.cli.genotypes import nested_groups  # noqa: E402
from knockoffs.errors import KnockoffWarning  # noqa: E402
from knockoffs.features import Prepared  # noqa: E402
from knockoffs.features.fastphase import read_fastphase  # noqa: E402
from knockoffs.features.hmm.mosaic import GenotypeModel, HaplotypeModel, Mosaic  # noqa: E402
from knockoffs.sampling.pair import Pair  # noqa: E402
from knockoffs.sampling.sampler import sample_knockoffs, sample_several  # noqa: E402

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


class Phased:
    """Law of genotypes whose haplotypes are known: knockoffs of each haplotype, added up in pairs."""

    def __init__(self, network, H):
        self.network, self.H, self.feature_of = network, H, network.feature_of

    def as_sampler(self):
        """Return itself: what is drawn does not depend on the genotypes beyond their haplotypes."""
        return self

    draws_several = True

    def sample(self, X, rng, m=1):
        """X beside m knockoffs."""
        drawn = sample_knockoffs(self.network, self.H, rng)[None] if m == 1 else None
        drawn = sample_several(self.network, self.H, m, rng) if drawn is None else drawn
        return Pair.of([X, *((h[::2] + h[1::2]).astype(float) for h in drawn)], self.feature_of)


def select(mosaic, H, y, labels, phased, seed, kept, n_knockoffs):
    """Names of the groups that are selected: group knockoffs of the known model, lasso, level 0.1."""
    X = (H[::2] + H[1::2]).astype(float)
    how = {"hidden_knockoff": "posterior"} if kept else {}
    source = Prepared(GenotypeModel(mosaic), how) if kept else GenotypeModel(mosaic)
    if phased:
        how |= {} if kept else {"feature_of": np.concatenate([[0], np.cumsum(labels[1:] != labels[:-1])])}
        source = Phased(HaplotypeModel(mosaic).as_network(**how), H)
    options = {"estimator": "lasso", "method": "knockoffs", "verdict": False, "random_state": seed}
    options |= {"importance": "coefficients", "n_knockoffs": n_knockoffs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KnockoffWarning)
        selector = KnockoffSelector(0.1, feature_model=source, groups=list(labels), **options).fit(X, y)
    groups = selector.table_.groups
    return [groups.columns(g) for g in np.flatnonzero(selector.selection_.selected)]


def select_joined(mosaic, H, y, labels, level, seed):
    """SNPs of each discovery: group knockoffs of all resolutions, joined by their e-values."""
    X = (H[::2] + H[1::2]).astype(float)
    groups = nested_groups([list(one) for one in labels], [f"x{j}" for j in range(X.shape[1])])
    options = {"estimator": "lasso", "importance": "coefficients", "method": "knockoffs", "verdict": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KnockoffWarning)
        selector = KnockoffSelector(
            level, feature_model=GenotypeModel(mosaic), groups=groups, random_state=seed, **options
        ).fit(X, y)
    return [np.array([int(name[1:]) for name in found.features]) for found in selector.discoveries_]


def main():
    """Run every resolution and write one row for each, way of drawing and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--resolutions", type=int, nargs="*", default=range(7))
    parser.add_argument("--kept", action="store_true", help="keep the hidden chains")
    parser.add_argument("--knockoffs", type=int, default=1, help="knockoffs of every SNP; several with --kept")
    parser.add_argument("--joined", action="store_true", help="all resolutions in one answer, from genotypes")
    parser.add_argument("--level", type=float, default=0.1, help="of --joined")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    H, y, labels, causal = read_toy(options.folder)
    mosaic = both_chromosomes(options.folder)
    if options.joined:
        for draw in range(options.draws):
            chosen = select_joined(mosaic, H, y, labels[list(options.resolutions)], options.level, draw)
            true = sum(bool(causal[columns].any()) for columns in chosen)
            print(f"draw {draw}: {len(chosen)} discoveries, {true} with a causal SNP; SNPs {[len(c) for c in chosen]}")
        return
    options.out.parent.mkdir(exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = None
        for draw in range(options.draws):
            for resolution in options.resolutions:
                for phased in (False, True):
                    start = time.process_time()
                    chosen = select(mosaic, H, y, labels[resolution], phased, draw, options.kept, options.knockoffs)
                    row = {
                        "resolution": resolution,
                        "n_groups": len(set(labels[resolution])),
                        "knockoffs": "haplotypes" if phased else "genotypes",
                        "chain": "kept" if options.kept else "copied",
                        "n_knockoffs": options.knockoffs,
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
