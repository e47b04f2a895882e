"""``knockoffs select chr*.bed --phenotype``: from files of PLINK to discoveries with their places."""

import csv
import json

import numpy as np
import pytest
from tests.fastphase import write_fastphase
from typer.testing import CliRunner

from knockoffs import GenotypeModel, Mosaic
from knockoffs.cli.app import app

to_bed = pytest.importorskip("bed_reader").to_bed


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Two chromosomes of 40 SNPs, 500 people, fastPHASE's files, a trait with 14 causal SNPs, age and sex."""
    folder, rng = tmp_path_factory.mktemp("study"), np.random.default_rng(0)
    n, p, K = 500, 40, 3
    people = {"fid": [f"f{i}" for i in range(n)], "iid": [f"i{i}" for i in range(n)]}
    trait = np.zeros(n)
    for c in (1, 2):
        mosaic = Mosaic(np.full(p, 0.5), np.full((p, K), 1 / K), rng.beta(0.5, 0.5, size=(p, K)))
        X = GenotypeModel(mosaic).sample(n, rng).astype(np.int8)
        trait += X[:, ::6] @ np.resize([0.8, -0.8], 7)
        about = {
            "sid": [f"rs{c}_{j}" for j in range(p)],
            "chromosome": [str(c)] * p,
            "bp_position": np.arange(p) * 1000,
        }
        to_bed(folder / f"chr{c}.bed", X, properties=people | about)
        write_fastphase(folder / f"fp{c}", mosaic)
    age = rng.normal(50, 10, n)
    trait += 0.2 * age + rng.normal(size=n)
    order = rng.permutation(n)
    lines = [f"f{i} i{i} {-9 if i < 20 else round(trait[i], 4)} {age[i]:.2f}" for i in order]
    (folder / "pheno.tab").write_text("\n".join(["FID IID trait age", *lines]) + "\n")
    return folder


def run(*arguments, code=0):
    found = CliRunner().invoke(app, ["select", *map(str, arguments)])
    assert found.exit_code == code, found.output
    return found.output


def read(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def called(study, *options):
    shared = ["--phenotype", study / "pheno.tab", "--target", "trait", "--estimator", "lasso", "--no-verdict", *options]
    return [*shared, "--feature-model-option", f"prefix={study / 'fp{}'}"]


def test_two_chromosomes_in_one_selection(study, tmp_path):
    beds = [study / "chr1.bed", study / "chr2.bed"]
    said = run(*beds, *called(study, "--covariates", "age", "--out", tmp_path))
    assert "20 people of 500 left out: no value of 'trait'" in said
    assert "selecting from 80 SNPs of 480 people" in said
    found = read(tmp_path / "discoveries.csv")
    causal = {f"rs{c}_{j}" for c in (1, 2) for j in range(0, 40, 6)}
    names = {row["discovery"] for row in found}
    assert len(names & causal) >= 12 and {row["chromosome"] for row in found} == {"1", "2"}
    for row in found:
        assert int(row["first"]) == int(row["last"]) == 1000 * int(row["snps"].rpartition("_")[2])
    assert "<svg" in (tmp_path / "manhattan.svg").read_text()
    kept = json.loads((tmp_path / "selection.json").read_text())
    assert kept["data"]["file"] == "chr1.bed, chr2.bed" and "age" not in [one["name"] for one in kept["features"]]
    assert set(kept["data"]["files"]) == {"pheno.tab"}
    again = CliRunner().invoke(app, ["rerun", str(tmp_path / "selection.json"), str(study / "chr*.bed")])
    assert "The answer is identical" in again.output


def test_groups_of_snps_are_discoveries_with_a_stretch(study, tmp_path):
    for c in (1, 2):
        rows = "".join(f"rs{c}_{j} {j // 4}\n" for j in range(40))
        (tmp_path / f"part{c}.txt").write_text("SNP coarse\n" + rows)
    groups = ["--groups", f"{tmp_path / 'part{}.txt'}:coarse", "--covariates", "age"]
    run(study / "chr*.bed", *called(study, *groups, "--out", tmp_path / "out"))
    found = read(tmp_path / "out" / "discoveries.csv")
    assert len(found) >= 10 and {row["n_snps"] for row in found} == {"4"}
    assert all(int(row["last"]) - int(row["first"]) == 3000 for row in found)


@pytest.mark.parametrize(
    "options, law",
    [
        (["n_ancestors=3", "max_iter=20"], "fastPHASE's hidden Markov model of genotypes at 80 sites"),
        (["n_states=3", "max_iter=20", "--feature-model", "hmm"], "a hidden Markov model of symbols along 80 columns"),
    ],
)
def test_a_model_fitted_here(options, law, study):
    shared = ["--phenotype", study / "pheno.tab", "--target", "trait", "--estimator", "lasso", "--covariates", "age"]
    how = ["--feature-model-option", options[0], "--feature-model-option", *options[1:]]
    said = run(study / "chr1.bed", study / "chr2.bed", *shared, "--no-verdict", *how)
    assert "fitting a model of genotypes to chromosome 2" in said
    assert f"P^X is {law}" in " ".join(said.split())


@pytest.mark.parametrize(
    "arguments, error",
    [
        (["chr1.bed", "--target", "trait"], "a .bed file needs --phenotype"),
        (["chr1.bed", "--target", "trait", "--phenotype", "pheno.tab", "--drop", "rs1_0"], "--drop is for tables"),
        (["chr1.bed", "pheno.tab", "--target", "trait"], "2 tables: name one, or several .bed files"),
        (["pheno.tab", "--target", "trait", "--phenotype", "pheno.tab"], "--phenotype is for .bed files"),
        (
            ["chr1.bed", "--target", "trait", "--phenotype", "pheno.tab", "--feature-model", "lda"],
            "for a .bed file use fastphase; genotypes (default)",
        ),
        (
            ["chr1.bed", "--target", "trait", "--phenotype", "pheno.tab", "--feature-model", "fastphase"],
            "needs --feature-model-option prefix=PREFIX",
        ),
    ],
)
def test_calls_that_make_no_sense_are_refused(arguments, error, study, monkeypatch):
    monkeypatch.chdir(study)
    assert error in " ".join(run(*arguments, code=2).replace("│", " ").split())
