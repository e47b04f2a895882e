"""VCF in: calls by hand, a .bed that bed-reader reads as the same, and files that are refused in a sentence."""

import gzip

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.table import vcf as reading
from knockoffs.table.plink import MISSING
from knockoffs.table.vcf import read_vcf, vcf_to_bed

HEAD = "##fileformat=VCFv4.2\n##source=us\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tann\tbob\tcid\n"


def line(calls, *, chromosome="1", position="100", name="rs1", alleles=("A", "C"), form="GT"):
    return "\t".join([chromosome, position, name, *alleles, ".", "PASS", ".", form, *calls]) + "\n"


GOOD = (
    line(["0|0", "0/1", "1|1"])
    + line(["./.", "1|.", "1/0"], position="200", name="rs2")
    + line(["7:0|1:x", ".:.", "3:1|1"], position="300", name=".", alleles=("AT", "<DEL>"), form="DP:GT:XX")
)
COUNTS = np.array([[0, MISSING, 1], [1, MISSING, MISSING], [2, 1, 2]])


def write(folder, body=GOOD, head=HEAD, name="s.vcf"):
    content = (head + body).encode() if isinstance(body, str) else head.encode() + body
    (folder / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    return folder / name


@pytest.mark.parametrize("name", ["s.vcf", "s.vcf.gz"])
def test_calls_are_those_of_the_file(tmp_path, name):
    G, names = read_vcf(write(tmp_path, name=name))
    np.testing.assert_array_equal(G, COUNTS)
    assert names.tolist() == ["rs1", "rs2", "1:300:AT:<DEL>"] and G.dtype == np.int8


def test_lines_may_end_as_they_do_on_windows(tmp_path):
    G, _ = read_vcf(write(tmp_path, GOOD.replace("\n", "\r\n") + "\r\n", HEAD.replace("\n", "\r\n")))
    np.testing.assert_array_equal(G, COUNTS)


def test_haplotypes_are_given_where_all_calls_are_phased(tmp_path):
    body = line(["0|1", "1|0", "."]) + line(["1|1", "0|0", "0|1"], position="7", name="b")
    H, _ = read_vcf(write(tmp_path, body), haplotypes=True)
    np.testing.assert_array_equal(H.T, [[0, 1, 1, 0, MISSING, MISSING], [1, 1, 0, 0, 0, 1]])
    with pytest.raises(InputError, match="rs1 has calls that are not phased"):
        read_vcf(write(tmp_path), haplotypes=True)


def test_the_short_way_and_the_long_way_agree():
    """Calls of three characters are read as one array; the same with something behind them one by one."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        calls = [f"{a}{s}{b}" for a, s, b in zip(*(rng.choice(list(w), 9) for w in ("01.", "/|", "01.")), strict=True)]
        short = reading.read_calls("\t".join(calls).encode(), 9, 0, "")
        long = reading.read_calls("\t".join(f"{call}:5" for call in calls).encode(), 9, 0, "")
        np.testing.assert_array_equal(short[0], long[0])
        assert short[1] == long[1]


@pytest.mark.parametrize("n", [1, 4, 7])
def test_the_bed_holds_the_same_calls(tmp_path, n):
    pytest.importorskip("bed_reader")
    from knockoffs.table.plink import open_genotypes

    rng = np.random.default_rng(n)
    people = [f"p{i}" for i in range(n)]
    calls = rng.choice(["0/0", "0|1", "1/1", "./."], size=(20, n))
    body = "".join(line(row, chromosome=str(1 + j // 10), position=str(j), name=f"s{j}") for j, row in enumerate(calls))
    vcf = write(tmp_path, body, HEAD.replace("ann\tbob\tcid", "\t".join(people)), "s.vcf.gz")
    assert vcf_to_bed(vcf, tmp_path / "s.bed") == (n, 20)
    expected, names = read_vcf(vcf)
    genotypes = open_genotypes(tmp_path / "s.bed")
    np.testing.assert_array_equal(genotypes.read(slice(None), slice(None)), expected)
    assert genotypes.snps.tolist() == names.tolist() and genotypes.chromosomes[-1] == "2"
    from bed_reader import open_bed

    with open_bed(tmp_path / "s.bed") as file:
        assert file.iid.tolist() == people and file.allele_1[0] == "C" and file.allele_2[0] == "A"
    with pytest.raises(InputError, match="s.bed is there already"):
        vcf_to_bed(vcf, tmp_path / "s.bed")


def test_lines_of_several_alleles_are_refused_or_left_out(tmp_path):
    vcf = write(tmp_path, GOOD + line(["0/2", "1/1", "0/0"], name="rs9", alleles=("A", "C,G")))
    with pytest.raises(InputError, match=r"line 7 has several alternative alleles, 'C,G': split them .bcftools norm"):
        read_vcf(vcf)
    assert read_vcf(vcf, biallelic=True)[0].shape == (3, 3)


BAD = {
    "foreign": (b"PAR1", "", "no VCF file: it begins with 'PAR1'"),
    "bcf": (b"BCF\x02\x02", "", "this is a BCF file. .* bcftools view -Oz"),
    "empty": (b"", "", "the file ends before the line #CHROM"),
    "no sites": (b"", HEAD, "the file holds no SNP"),
    "no people": (b"", HEAD.replace("\tann\tbob\tcid", ""), "line 3 names no people"),
    "twice": (b"", HEAD.replace("bob", "ann"), "line 3 names a person .* twice"),
    "no format": (b"", HEAD.replace("\tFORMAT", ""), "line 3 must be #CHROM"),
    "few people": (line(["0/0", "0/1"]), HEAD, "line 4 has calls of 2 people, and the head names 3"),
    "haploid": (line(["0", "0/1", "1"]), HEAD, "line 4, person 1: the call '0' is not of two alleles .* Haploid"),
    "third allele": (line(["0/2", "0/1", "1/1"]), HEAD, "person 1: the call '0/2'"),
    "position": (line(["0/0"] * 3, position="here"), HEAD, "line 4 has the position 'here'"),
    "no gt": (line(["3"] * 3, form="DP"), HEAD, "line 4 has no calls: its FORMAT is 'DP'"),
    "short": ("1\t2\t3\n", HEAD, "line 4 has 3 cells"),
    "space": (line(["0/0"] * 3, name="a b"), HEAD, "empty chromosome, name or allele"),
    "same name": (line(["0/0"] * 3) * 2, HEAD, "line 5: a SNP called 'rs1' was there before"),
    "no text": (b"\xff\xfe" * 9 + b"\t" * 12, HEAD, "line 4 is no text"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_a_sentence(tmp_path, case):
    body, head, message = BAD[case]
    vcf = write(tmp_path, body, head)
    for read in (read_vcf, lambda path: vcf_to_bed(path, tmp_path / "o.bed")):
        with pytest.raises(InputError, match=message):
            read(vcf)
    assert [path.name for path in tmp_path.iterdir()] == ["s.vcf"]  # nothing half-made is left


def test_a_file_that_is_cut_off_and_lines_that_do_not_end(tmp_path, monkeypatch):
    whole = gzip.compress((HEAD + GOOD).encode())
    (tmp_path / "s.vcf.gz").write_bytes(whole[:-12])
    with pytest.raises(InputError, match="cannot be unpacked"):
        read_vcf(tmp_path / "s.vcf.gz")
    with pytest.raises(InputError, match="there is no such file"):
        read_vcf(tmp_path / "none.vcf")
    monkeypatch.setattr(reading, "LONGEST", 200)
    with pytest.raises(InputError, match="line 4 has more than 200 bytes"):
        read_vcf(write(tmp_path, "1" * 300))


def test_on_the_command_line(tmp_path, capsys):
    from knockoffs.cli.app import main

    vcf = write(tmp_path)
    for out, status, message in (("s.bed", 0, "3 people, 3 SNPs"), ("s.bed", 1, "there already"), ("s.x", 1, ".bed")):
        with pytest.raises(SystemExit) as ended:
            main(["convert", str(vcf), "--out", str(tmp_path / out)])
        assert ended.value.code == status
        assert message in capsys.readouterr().err
