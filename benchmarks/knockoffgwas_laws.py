"""The toy data of KnockoffGWAS: knockoffs of the law that it was drawn from, and of haplotypes that copy one another.

    python benchmarks/knockoffgwas_laws.py FOLDER                                   # the folder of the toy data
    python benchmarks/knockoffgwas_laws.py FOLDER --laws copying --resolutions 0 --draws 2

KnockoffGWAS takes a haplotype for a mosaic of ten others of the same data, with jumps by the genetic map (rate 1 a
centimorgan) and an allele changed once in a thousand. That law is written anew here, and simpler: twenty haplotypes
that are alike share the ten that are nearest to their mean. Each draw is scored for the trait of the toy and for three
traits that are drawn from 40 SNPs at random and explain 72 % of their variance, by a cross-validated lasso, level 0.1.

laws: exact (the chain copied over the boundaries of groups), kept (the hidden chain stays), kept5 (five knockoffs of
each, the chain stays), copying.
"""

from __future__ import annotations

import argparse
import gzip

import knockoffgwas_toy as toy_data  # sets the threads first
import numpy as np

from knockoffs.draws import swap_at_random
from knockoffs.features.hmm.mosaic import HaplotypeModel, Mosaic
from knockoffs.filter import filter_statistics, several_statistics
from knockoffs.importance.coefficients import coefficient_magnitude
from knockoffs.importance.statistic import ModelScore
from knockoffs.response.linear import LassoPathCV
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import sample_knockoffs, sample_several
from knockoffs.table.auto_groups import runs
from knockoffs.table.target import Target

K, CHANGED, RATE, TOGETHER = 10, 1e-3, 1.0, 20
EXPLAINED, N_CAUSAL = 0.72, 40
HALVES = (slice(0, 1000), slice(1000, 2000))  # chromosomes


def distances(folder):
    """Centimorgans from each SNP to the one before, shape (2000,)."""
    found = []
    for c in toy_data.CHROMOSOMES:
        with gzip.open(folder / f"genetic_map_chr{c}.txt.gz", "rt") as file:
            rows = [line.split() for line in file][1:]
        place, morgans = (np.array([float(row[k]) for row in rows]) for k in (1, 3))
        with (folder / f"example_chr{c}.bim").open() as file:
            sites = np.array([int(line.split()[3]) for line in file])
        found.append(np.r_[0, np.diff(np.interp(sites, place, morgans))].clip(0))
    return np.concatenate(found)


def copying(H, d, groups, rng):
    """Knockoffs of haplotypes that copy ten others."""
    out, left, F = np.empty_like(H), np.arange(len(H)), H.astype(np.float32)
    while len(left):
        seed = left[rng.integers(len(left))]
        near = left[np.argsort(np.abs(F[left] - F[seed]).sum(axis=1))[:TOGETHER]]
        left = np.setdiff1d(left, near)
        others = np.setdiff1d(np.arange(len(H)), np.concatenate([near, near ^ 1]))  # not of the same people
        copied = others[np.argsort(np.abs(F[others] - F[near].mean(axis=0)).sum(axis=1))[:K]]
        theta = np.where(H[copied].T == 1, 1 - CHANGED, CHANGED)
        law = HaplotypeModel(Mosaic(RATE * d, np.full(theta.shape, 1 / K), theta))
        out[near] = sample_knockoffs(law.as_network(feature_of=groups), H[near], rng)
    return out


def draw(law, mosaic, H, d, labels, rng):
    """Knockoffs of all haplotypes, one array or five."""
    if law == "copying":
        return [np.hstack([copying(H[:, c], d[c], runs(labels[c]), rng) for c in HALVES])]
    model = HaplotypeModel(mosaic)
    if law == "exact":
        return [sample_knockoffs(model.as_network(feature_of=runs(labels)), H, rng)]
    return sample_several(model.as_network(hidden_knockoff="posterior"), H, 5 if law == "kept5" else 1, rng)


def select(pair, y, rng):
    """Select groups at level 0.1."""
    swapped, place = swap_at_random(pair, rng)
    lasso = ModelScore(LassoPathCV(), coefficient_magnitude)
    scores = lasso(swapped, Target(y), rng=rng).scores.put_back(place)
    return filter_statistics(several_statistics(scores.parts), 0.1, 1, pair.m).selected


def drawn_trait(X, rng):
    """Causal SNPs (p,) and a trait (n,)."""
    true = np.zeros(X.shape[1], dtype=bool)
    true[rng.choice(X.shape[1], N_CAUSAL, replace=False)] = True
    size = rng.choice([-1, 1], N_CAUSAL) * rng.uniform(0.3, 1.8, N_CAUSAL) / X[:, true].std(axis=0)
    signal = X[:, true] @ size
    return true, signal + rng.standard_normal(len(X)) * signal.std() * np.sqrt((1 - EXPLAINED) / EXPLAINED)


def main():
    """Print law, resolution, draw, trait, discoveries, false ones, and the median correlation with the knockoffs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=toy_data.Path)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--resolutions", type=int, nargs="*", default=(0, 1))
    parser.add_argument("--laws", nargs="*", default=("exact", "copying", "kept", "kept5"))
    options = parser.parse_args()
    H, y, labels, causal = toy_data.read_toy(options.folder)
    H, d, mosaic = H.astype(np.int8), distances(options.folder), toy_data.both_chromosomes(options.folder)
    X = (H[::2] + H[1::2]).astype(float)
    for seed in range(options.draws):
        for resolution in options.resolutions:
            for law in options.laws:
                rng = np.random.default_rng([ord(law[0]), resolution, seed])
                drawn = draw(law, mosaic, H, d, labels[resolution], rng)
                parts = (X, *((h[::2] + h[1::2]).astype(float) for h in drawn))
                pair = Pair.of(parts, runs(labels[resolution]))
                r = np.median([np.corrcoef(parts[0][:, j], parts[1][:, j])[0, 1] for j in range(X.shape[1])])
                for trait in range(4):
                    true, values = drawn_trait(X, rng) if trait else (causal, y)
                    chosen = select(pair, values, rng)
                    false = int((chosen & (np.bincount(pair.feature_of, true) == 0)).sum())
                    row = (law, resolution, seed, "toy" if trait == 0 else trait, int(chosen.sum()), false, f"{r:.3f}")
                    print(*row, sep=", ", flush=True)


if __name__ == "__main__":
    main()
