"""Knockoffs of Markov chains, hidden Markov models, haplotypes and genotypes against SNPknock 0.8.3, in one run.

    benchmarks/setup_snpknock.sh
    python benchmarks/hmm.py                     # the table of times: CPU nanoseconds per row and site, one thread
    python benchmarks/hmm.py --quality DATA      # correlation, FDP and power on the toy genotypes under DATA

SNPknock runs in its own environment under .benchmarks/snpknock, on the same data, by this same file (--peer).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  (threads are set first)

ROOT = Path(__file__).resolve().parents[1]
PEER = ROOT / ".benchmarks" / "snpknock" / "bin" / "python"
CASES = [
    ("chain", 10),
    ("chain", 20),
    ("hmm", 10),
    ("hmm", 20),
    ("hmm", 50),
    ("haplotypes", 10),
    ("haplotypes", 20),
    ("genotypes", 10),
    ("genotypes", 20),
]


def make_case(kind, K, n, p, rng):
    """Parameters and rows of one case: what a chain with mixed transitions, or a mosaic with jumps, would give."""
    if kind in ("chain", "hmm"):
        initial, step = rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K), size=(p - 1, K))
        H = np.empty((n, p), dtype=np.int64)
        for j in range(p):
            law = np.tile(initial, (n, 1)) if j == 0 else step[j - 1][H[:, j - 1]]
            H[:, j] = (law.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)
        if kind == "chain":
            return {"initial": initial, "transitions": step, "X": H}
        table = rng.dirichlet(np.ones(3), size=(p, K))
        X = (table[np.arange(p), H].cumsum(axis=2)[..., :-1] < rng.random((n, p, 1))).sum(axis=2)
        return {"initial": initial, "transitions": step, "emissions": table, "X": X}
    alpha, theta, r = rng.dirichlet(np.ones(K), size=p), rng.beta(0.3, 0.3, size=(p, K)), rng.exponential(0.02, size=p)
    chains = []
    for _ in range(1 if kind == "haplotypes" else 2):
        H = np.empty((n, p), dtype=np.int64)
        for j in range(p):
            fresh = (alpha[j].cumsum()[:-1] < rng.random((n, 1))).sum(axis=1)
            H[:, j] = fresh if j == 0 else np.where(rng.random(n) < np.exp(-r[j]), H[:, j - 1], fresh)
        chains.append(rng.random((n, p)) < theta[np.arange(p), H])
    return {"r": r, "alpha": alpha, "theta": theta, "X": np.sum(chains, axis=0).astype(np.int64)}


def best_of(work, repeats):
    """Smallest CPU time of several runs, after one that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def ours(kind, case):
    from knockoffs.features.hmm import HiddenMarkov
    from knockoffs.features.hmm.mosaic import GenotypeModel, HaplotypeModel, Mosaic
    from knockoffs.sampling.conjugates.markov_chain import MarkovChain
    from knockoffs.sampling.network import BayesianNetwork, Node
    from knockoffs.sampling.sampler import sample_knockoffs

    if kind == "chain":
        chain = MarkovChain(case["initial"], case["transitions"])
        network = BayesianNetwork((Node("X", (), chain, columns=range(case["X"].shape[1])),))
    elif kind == "hmm":
        network = HiddenMarkov(case["initial"], case["transitions"], case["emissions"]).as_network()
    else:
        family = {"haplotypes": HaplotypeModel, "genotypes": GenotypeModel}[kind]
        network = family(Mosaic(case["r"], case["alpha"], case["theta"])).as_network()
    return lambda rng: sample_knockoffs(network, case["X"], rng)


def theirs(kind, case):
    import SNPknock

    if kind == "chain":
        return SNPknock.knockoffDMC(case["initial"], case["transitions"]).sample
    if kind == "hmm":
        return SNPknock.knockoffHMM(
            case["initial"], case["transitions"], case["emissions"].transpose(0, 2, 1).copy()
        ).sample
    family = {"haplotypes": SNPknock.knockoffHaplotypes, "genotypes": SNPknock.knockoffGenotypes}[kind]
    return family(case["r"], case["alpha"], case["theta"]).sample


def peer_main(kind, path, out, repeats, seed):
    """In SNPknock's environment: read a case, time it or draw from it."""
    with np.load(path) as stored:
        case = dict(stored)
    if out:
        import SNPknock

        family = {"haplotypes": SNPknock.knockoffHaplotypes, "genotypes": SNPknock.knockoffGenotypes}[kind]
        generator = family(case["r"], case["alpha"], case["theta"], seed=seed)
        np.save(out, np.stack([generator.sample(case["X"]) for _ in range(repeats)]).astype(np.int8))
        return
    draw = theirs(kind, case)
    print(best_of(lambda: draw(case["X"]), repeats))


def ask_peer(kind, case, repeats, out="", seed=123):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.npz"
        np.savez(path, **case)
        target = str(Path(folder) / "out.npy") if out else ""
        command = [str(PEER), __file__, "--peer", kind, str(path), target, str(repeats), str(seed)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return np.load(target) if out else float(done.stdout.split()[-1])


def times(n, p, repeats):
    print(f"CPU nanoseconds per row and site, one thread, best of {repeats}; n = {n}, p = {p}\n")
    print("| model | K | knockoffs | SNPknock 0.8.3 | times faster |\n|---|---|---|---|---|")
    for kind, K in CASES:
        case = make_case(kind, K, n, p, np.random.default_rng(0))
        draw, rng = ours(kind, case), np.random.default_rng(1)
        mine = best_of(lambda draw=draw, rng=rng: draw(rng), 2 * repeats) / (n * p) * 1e9
        peer = ask_peer(kind, case, repeats) / (n * p) * 1e9 if PEER.exists() else float("nan")
        print(f"| {kind} | {K} | {mine:.0f} | {peer:.0f} | {peer / mine:.1f} |", flush=True)


def toy(data):
    """Genotypes, models and causal SNPs of the two toy chromosomes, and the phenotype."""
    from bed_reader import open_bed

    from knockoffs.features.fastphase import read_fastphase

    folder = Path(data) / "genotypes" / "knockoffgwas_toy"
    causal = {line.split()[1] for line in (folder / "causal.txt").read_text().splitlines()[1:]}
    y = np.array([float(line.split()[3]) for line in (folder / "phenotypes.tab").read_text().splitlines()[1:]])
    parts = []
    for chromosome in (21, 22):
        with open_bed(folder / f"example_chr{chromosome}.bed") as bed:
            X, names = bed.read(dtype="int8", num_threads=1), bed.sid
        mosaic = read_fastphase(folder / f"hmm_chr{chromosome}")
        parts.append((X, mosaic, np.isin(names, list(causal))))
    return parts, y


def lasso_W(X, X_tilde, y, rng):
    """Lasso coefficient difference in units of the column's own scale; each pair in a random order."""
    from knockoffs.response.linear import LassoPathCV

    flip = rng.random(X.shape[1]) < 0.5
    both = np.hstack([np.where(flip, X_tilde, X), np.where(flip, X, X_tilde)]).astype(float)
    size = np.abs(LassoPathCV(random_state=rng).fit(both, y).coef_) * both.std(axis=0)
    W = size[: X.shape[1]] - size[X.shape[1] :]
    return np.where(flip, -W, W)


def clusters_of(X, threshold):
    """Cluster of every SNP, by single linkage where |r| > threshold, without a look at y."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    R = np.zeros((X.shape[1], X.shape[1]))
    seen = np.flatnonzero(X.std(axis=0) > 0)
    R[np.ix_(seen, seen)] = np.abs(np.corrcoef(X[:, seen].T.astype(float)))
    np.fill_diagonal(R, 1.0)
    return fcluster(linkage(squareform(1 - R, checks=False), "single"), 1 - threshold, "distance") - 1


def quality(data, draws, fdr):
    from knockoffs.features.hmm.mosaic import GenotypeModel
    from knockoffs.filter import false_discovery_proportion, knockoff_filter, power
    from knockoffs.sampling.sampler import sample_knockoffs

    parts, y = toy(data)
    X = np.hstack([part[0] for part in parts])
    rng = np.random.default_rng(0)
    made = {}
    for kind in ("copy", "posterior"):
        networks = [GenotypeModel(mosaic).as_network(hidden_knockoff=kind) for _, mosaic, _ in parts]
        made[f"knockoffs, {kind}"] = [
            np.hstack([sample_knockoffs(network, part[0], rng) for network, part in zip(networks, parts, strict=True)])
            for _ in range(draws)
        ]
    if PEER.exists():
        peer = [
            ask_peer("genotypes", {"r": m.r, "alpha": m.alpha, "theta": m.theta, "X": G.astype(np.int64)}, draws, "npy")
            for G, m, _ in parts
        ]
        made["SNPknock"] = list(np.concatenate(peer, axis=2))
    causal = np.concatenate([part[2] for part in parts])
    first = clusters_of(parts[0][0], 0.5)
    cluster = np.concatenate([first, first.max() + 1 + clusters_of(parts[1][0], 0.5)])
    truth = {"SNPs": causal, "clusters": np.bincount(cluster, causal) > 0}
    held, of = truth["clusters"].sum(), cluster.max() + 1
    print(f"{causal.sum()} causal SNPs of {len(causal)}; {held} of {of} clusters of SNPs")
    print(f"(|r| > 0.5) hold one. Lasso coefficient difference, fdr {fdr}, {draws} draws of the knockoffs, one y.\n")
    print("| knockoffs | features | mean correlation of X_j and X_tilde_j | FDP, mean (each draw) | power |")
    print("|---|---|---|---|---|")
    for name, X_tildes in made.items():
        correlation = np.mean([mean_correlation(X, X_tilde) for X_tilde in X_tildes])
        Ws = [lasso_W(X, X_tilde, y, rng) for X_tilde in X_tildes]
        for features, non_nulls in truth.items():
            sums = Ws if features == "SNPs" else [np.bincount(cluster, W) for W in Ws]
            selected = [knockoff_filter(W, fdr) for W in sums]
            fdps = [false_discovery_proportion(chosen, non_nulls) for chosen in selected]
            powers = [power(chosen, non_nulls) for chosen in selected]
            each = " ".join(f"{value:.2f}" for value in fdps)
            row = f"{correlation:.4f} | {np.mean(fdps):.3f} ({each}) | {np.mean(powers):.3f} |"
            print(f"| {name} | {features} | {row}", flush=True)


def mean_correlation(X, X_tilde):
    both = [(x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12) for x in (X, X_tilde)]
    varies = (X.std(axis=0) > 0) & (X_tilde.std(axis=0) > 0)
    return (both[0] * both[1]).mean(axis=0)[varies].mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--sites", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quality", metavar="DATA", help="folder of the real data")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--fdr", type=float, default=0.2)
    arguments = parser.parse_args()
    if not PEER.exists():
        print(
            f"SNPknock is not there: run {Path(__file__).with_name('setup_snpknock.sh').name} first.", file=sys.stderr
        )
    if arguments.quality:
        quality(arguments.quality, arguments.draws, arguments.fdr)
    else:
        times(arguments.rows, arguments.sites, arguments.repeats)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--peer":
        peer_main(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]), int(sys.argv[6]))
    else:
        main()
