"""Genotypes, phenotypes and covariates of the same people: matched by FID and IID, faults named in one sentence."""

import gzip

import numpy as np
import pytest
from tests.refusals import refuses

from knockoffs.errors import InputError
from knockoffs.table.plink import find_beds, read_partitions, read_study

to_bed = pytest.importorskip("bed_reader").to_bed
PEOPLE = [("f1", "a"), ("f1", "b"), ("f2", "a"), ("f3", "c"), ("f4", "d"), ("f5", "e")]


def write_bed(path, chromosome="1", people=PEOPLE, snps=("rs1", "rs2"), seed=0):
    X = np.random.default_rng(seed).integers(0, 3, size=(len(people), len(snps))).astype(np.int8)
    X[0, 0] = -127
    about = {"fid": [f for f, _ in people], "iid": [i for _, i in people], "sid": list(snps)}
    about |= {"chromosome": [chromosome] * len(snps), "bp_position": 100 * np.arange(len(snps)) + 7}
    to_bed(path, X, properties=about)
    return X


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def phenotype(folder, *lines):
    body = lines or ("f3 c 1.5 2", "f1 a 0.5 1", "f2 a 2.5 1", "f1 b -9 1", "f9 z 4 1", "f5 e NA 2")
    return write(folder / "pheno.tab", "FID IID trait sex", *body)


def test_people_are_matched_by_both_names_in_the_order_of_the_fam(tmp_path):
    X = write_bed(tmp_path / "chr1.bed")
    more = write_bed(tmp_path / "chr2.bed", "2", snps=("rs3",), seed=1)
    study = read_study([tmp_path / "chr*.bed"], phenotype(tmp_path), "trait", ["sex"])
    assert study.y.tolist() == [0.5, 2.5, 1.5]  # f1 a, f2 a, f3 c
    assert study.table["sex"].to_list() == [1.0, 1.0, 2.0] and study.covariates == ("sex",)
    assert study.snps == ["rs1", "rs2", "rs3"] and study.chromosomes.tolist() == ["1", "1", "2"]
    assert study.positions.tolist() == [7, 107, 7]
    expected = np.hstack([X, more])[[0, 2, 3]].astype(float)
    expected[0] = [np.nan, expected[0, 1], np.nan]
    np.testing.assert_array_equal(study.table[study.snps].to_numpy(), expected)
    assert study.notes == ("3 people of 6 left out: no value of 'trait'",)


def test_a_study_without_room_is_refused_before_genotypes_are_read(tmp_path, monkeypatch):
    write_bed(tmp_path / "chr1.bed")
    monkeypatch.setattr("knockoffs.table.memory.available_memory", lambda: 100.0)
    monkeypatch.setattr("knockoffs.table.plink.Genotypes.read", None)
    message = "a selection from 3 rows of 2 columns needs .* select chromosome by chromosome, or from fewer SNPs"
    refuses(message, read_study, [tmp_path / "chr1.bed"], phenotype(tmp_path), "trait")


def test_covariates_come_from_files_and_from_columns(tmp_path):
    write_bed(tmp_path / "chr1.bed")
    cov = write(tmp_path / "cov.csv", "#FID,IID,age,town", "f1,a,30,Rome", "f3,c,40,Paris", "f2,a,NA,Rome")
    study = read_study([tmp_path / "chr1.bed"], phenotype(tmp_path), "trait", [str(cov)])
    assert study.covariates == ("age", "town") and study.y.tolist() == [0.5, 1.5]
    assert study.table["town"].to_list() == ["Rome", "Paris"]
    assert "1 person of 6 left out: no value of a covariate" in study.notes
    study = read_study([tmp_path / "chr1.bed"], phenotype(tmp_path), "trait", [str(cov), "town,sex"])
    assert study.covariates == ("town", "sex") and study.y.tolist() == [0.5, 2.5, 1.5]


def test_iid_alone_will_do_if_it_is_unique(tmp_path):
    write_bed(tmp_path / "chr1.bed", people=[("1", "a"), ("1", "b"), ("2", "c")])
    pheno = write(tmp_path / "p.tab", "IID\tcase", "c\tyes", "a\tno")
    assert read_study([tmp_path / "chr1.bed"], pheno, "case").y.tolist() == ["no", "yes"]
    write_bed(tmp_path / "chr1.bed")
    refuses("the .fam: IID 'a' is there twice. Add FID to p.tab", read_study, [tmp_path / "chr1.bed"], pheno, "case")


@pytest.mark.parametrize(
    "lines, error",
    [
        (["FID IID trait", "x1 a 2", "x2 b 3"], "none of its 2 people is in the .fam: it has 'x1 a', the .fam 'f1 a'"),
        (["FID IID trait", "f1 a 2", "f1 a 3"], "the person 'f1 a' is there twice"),
        (["FID IID trait", "f1 a -9", "f1 b NA"], "nobody has 'trait': NA and -9 are missing"),
        (["family person trait", "f1 a 2"], "the header has no IID"),
        (["FID IID trait", "f1 a"], "line 2 has 2 values, and the header 3"),
        (["FID IID trait"], "expected a header with FID and IID, and a line for each person"),
        (["FID IID traits", "f1 a 1"], "target='trait' is not known. Did you mean 'traits'"),
    ],
)
def test_phenotypes_that_do_not_fit_are_refused(lines, error, tmp_path):
    write_bed(tmp_path / "chr1.bed")
    refuses(error, read_study, [tmp_path / "chr1.bed"], write(tmp_path / "p.tab", *lines), "trait")


def test_files_that_do_not_go_together_are_refused(tmp_path):
    write_bed(tmp_path / "chr1.bed")
    pheno = phenotype(tmp_path)
    refuses("no file matches", find_beds, [tmp_path / "chrom*.bed"])
    refuses("covariates='height' is not known", read_study, [tmp_path / "chr1.bed"], pheno, "trait", ["height"])
    with pytest.raises(InputError, match="the column 'sex' is in another file too"):
        read_study([tmp_path / "chr1.bed"], pheno, "trait", [str(write(tmp_path / "c.tab", "FID IID sex", "f1 a 1"))])
    write_bed(tmp_path / "chr2.bed", "2", snps=("rs1",))
    refuses("the SNP 'rs1' is there twice", read_study, [tmp_path / "chr1.bed", tmp_path / "chr2.bed"], pheno, "trait")
    write_bed(tmp_path / "chr2.bed", "2", people=PEOPLE[::-1], snps=("rs7",))
    refuses("has other people than", read_study, [tmp_path / "chr1.bed", tmp_path / "chr2.bed"], pheno, "trait")
    write_bed(tmp_path / "chr3.bed", people=[*PEOPLE[:5], PEOPLE[0]])
    refuses(r"chr3.fam: the person 'f1 a' is there twice", read_study, [tmp_path / "chr3.bed"], pheno, "trait")


def test_a_partition_is_read_by_its_resolution(tmp_path):
    for name, rows in (("1", "rs1 1 1\nrs2 2 1\n"), ("2", "rs3 1 1\n")):
        with gzip.open(tmp_path / f"part{name}.txt.gz", "wt") as file:
            file.write("SNP fine coarse\n" + rows)
    chromosomes, snps, path = np.array(["1", "1", "2"]), ["rs1", "rs2", "rs3"], str(tmp_path / "part{}.txt.gz")
    coarse, fine = ["chr1:1", "chr1:1", "chr2:1"], ["chr1:1", "chr1:2", "chr2:1"]
    assert read_partitions(path, chromosomes, snps, ["coarse"]) == [coarse]
    assert sorted(read_partitions(path, chromosomes, snps)) == [coarse, fine]
    refuses("'corse' is not known. Did you mean 'coarse'", read_partitions, path, chromosomes, snps, ["corse"])
    refuses("has no group for 1 SNP, 'rs9' for instance", read_partitions, path, np.array(["1"]), ["rs9"], ["fine"])
    with pytest.raises(InputError, match="none.txt: cannot be read as text"):
        read_partitions(str(tmp_path / "none.txt"), np.array(["1"]), ["rs9"], ["fine"])
