"""PLINK in and out: names survive, missing calls stay missing, and a stopped run ends as one that was not."""

import numpy as np
import pytest

pytest.importorskip("bed_reader")
from bed_reader import open_bed, to_bed
from tests.fastphase import write_fastphase
from tests.refusals import refuses

from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.features import genotypes as drawing
from knockoffs.features.fastphase import GenotypeModel, Mosaic
from knockoffs.features.gaussian import gaussian_features
from knockoffs.table import plink


def mosaic(rng, p, K=3):
    return Mosaic(rng.exponential(0.1, size=p), rng.dirichlet(np.ones(K), size=p), rng.uniform(0.05, 0.95, (p, K)))


@pytest.fixture
def genotypes(tmp_path):
    """150 people, 7 SNPs on chromosome 1 and 5 on chromosome 2, a tenth of the calls missing."""
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(150, 12)).astype(np.int8)
    X[rng.random(X.shape) < 0.1] = plink.MISSING
    properties = {
        "fid": [f"family{i}" for i in range(150)],
        "iid": [f"person{i}" for i in range(150)],
        "chromosome": ["1"] * 7 + ["2"] * 5,
        "sid": [f"rs{j}" for j in range(12)],
        "cm_position": [0.1 * j for j in range(12)],
        "bp_position": list(range(100, 112)),
        "allele_1": list("ACGTACGTACGT"),
        "allele_2": list("CCCCCCCCCCCA"),
    }
    to_bed(tmp_path / "in.bed", X, properties=properties)
    models = {"1": GenotypeModel(mosaic(rng, 7)), "2": GenotypeModel(mosaic(rng, 5))}
    return tmp_path / "in.bed", X, models


def run(genotypes, out, seed=1, **options):
    bed, _, models = genotypes
    return drawing.sample_knockoffs_bed(
        bed, out, models, rng=np.random.default_rng(seed), **({"rows_at_once": 40} | options)
    )


def test_names_and_missing_calls_survive(genotypes, tmp_path):
    bed, X, _ = genotypes
    out = run(genotypes, tmp_path / "out.bed")
    for ending in (".bim", ".fam"):
        assert out.with_suffix(ending).read_bytes() == bed.with_suffix(ending).read_bytes()
    X_tilde, names = plink.read_bed(out)
    assert ((X_tilde == plink.MISSING) == (X == plink.MISSING)).all()
    assert set(np.unique(X_tilde)) == {plink.MISSING, 0, 1, 2}
    assert (X_tilde != X).any() and names[3] == "rs3"
    with open_bed(out) as file:
        assert file.iid[7] == "person7" and file.allele_1[1] == "C"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{stem}{ending}" for stem in ("in", "out") for ending in (".bed", ".bim", ".fam")
    )


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_stopped_run_leaves_nothing_and_can_be_run_again(genotypes, tmp_path, monkeypatch, n_jobs):
    draw, calls, before = drawing.sample_knockoffs, [], sorted(tmp_path.iterdir())

    def dies(*arguments):
        calls.append(1)
        if len(calls) == 5:
            raise OSError("disk full")
        return draw(*arguments)

    monkeypatch.setattr(drawing, "sample_knockoffs", dies)
    with pytest.raises(OSError, match="disk full"):
        run(genotypes, tmp_path / "out.bed", n_jobs=n_jobs)
    assert sorted(tmp_path.iterdir()) == before
    run(genotypes, tmp_path / "out.bed")


@pytest.mark.parametrize("n_jobs", [2, 3, 20])
def test_the_file_does_not_depend_on_the_number_of_jobs(genotypes, tmp_path, n_jobs):
    """Eight blocks: with 20 jobs threads share the rows of each too."""
    one, several = run(genotypes, tmp_path / "one.bed"), run(genotypes, tmp_path / "more.bed", n_jobs=n_jobs)
    assert one.read_bytes() == several.read_bytes()


def test_groups_of_snps_are_drawn_as_one(genotypes, tmp_path):
    """As the network with those groups draws them from the same stream; a group apart is several stretches."""
    bed, X, models = genotypes
    groups = {"a": ["rs0", "rs1", "rs2"], "b": ["rs5", "rs6", "rs7", "rs8"], "c": ["rs3", "rs9"]}
    out = run(genotypes, tmp_path / "out.bed", groups=groups, rows_at_once=150)
    streams = np.random.default_rng(1).spawn(2)
    owners = {"1": [0, 0, 0, 1, 2, 3, 3], "2": [0, 0, 1, 2, 3]}
    expected = [
        drawing.sample_knockoffs(model.as_network(feature_of=owners[name]), X[:, columns], stream)
        for (name, model), columns, stream in zip(models.items(), (slice(7), slice(7, 12)), streams, strict=True)
    ]
    np.testing.assert_array_equal(plink.read_bed(out)[0], np.hstack(expected))
    alone = run(genotypes, tmp_path / "alone.bed", rows_at_once=150)
    assert alone.read_bytes() != out.read_bytes()
    refuses("has no column 'rs99'", run, genotypes, tmp_path / "o.bed", groups={"rs99": "a"})
    law = gaussian_features(np.zeros(12), np.eye(12))
    with pytest.raises(InputError, match="MixtureFeatures does not draw groups of neighbours"):
        drawing.sample_knockoffs_bed(bed, tmp_path / "o.bed", law, groups=groups, rng=np.random.default_rng())


def test_one_model_for_all_snps(genotypes, tmp_path):
    bed, X, _ = genotypes
    model = GenotypeModel(mosaic(np.random.default_rng(3), 12))
    out = drawing.sample_knockoffs_bed(bed, tmp_path / "out.bed", model, rng=np.random.default_rng(0))
    assert plink.read_bed(out)[0].shape == X.shape
    part, names = plink.read_bed(out, rows=slice(10, 20), columns=slice(2, 4))
    assert part.shape == (10, 2) and list(names) == ["rs2", "rs3"]


def test_errors(genotypes, tmp_path):
    bed, _, models = genotypes
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="no model for chromosomes '2'"):
        drawing.sample_knockoffs_bed(bed, tmp_path / "o.bed", {"1": models["1"]}, rng=rng)
    with pytest.raises(InputError, match="chromosome 2 has 5 SNPs, and its model 7"):
        drawing.sample_knockoffs_bed(bed, tmp_path / "o.bed", {"1": models["1"], "2": models["1"]}, rng=rng)
    refuses("must end in .bed", drawing.sample_knockoffs_bed, bed, tmp_path / "o.txt", models, rng=rng)
    refuses("missing: .bed, .bim, .fam", plink.read_bed, tmp_path / "nothing.bed")
    certain = Mosaic(np.zeros(5), np.full((5, 2), 0.5), np.zeros((5, 2)))
    with pytest.raises(InputError, match="chromosome 2, rows counted from person 0: row .* is impossible"):
        drawing.sample_knockoffs_bed(bed, tmp_path / "o.bed", models | {"2": GenotypeModel(certain)}, rng=rng)
    refuses("chromosome 1 do not lie together", drawing.chromosome_columns, np.array(["1", "2", "1"]))


def command(*arguments, status=0):
    from knockoffs.cli import app as cli

    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in arguments])
    assert ended.value.code == status


def test_a_bed_on_the_command_line(genotypes, tmp_path, capsys):
    """By the files of each chromosome it is the draw of the same models and seed."""
    bed, _, models = genotypes
    for name, model in models.items():
        write_fastphase(tmp_path / f"chr{name}", model.mosaic)
    options = ("--fastphase", tmp_path / "chr{}", "--seed", 1, "--rows-at-once", 40)
    command("sample", bed, *options, "--out", tmp_path / "cli.bed")
    drawn, _ = plink.read_bed(tmp_path / "cli.bed")
    expected, _ = plink.read_bed(run(genotypes, tmp_path / "out.bed", seed=1))
    np.testing.assert_array_equal(drawn, expected)
    (tmp_path / "groups.csv").write_text("column,group\nrs0,a\nrs1,a\n")
    command("sample", bed, *options, "--groups", tmp_path / "groups.csv", "--jobs", 2, "--out", tmp_path / "g.bed")
    grouped = run(genotypes, tmp_path / "grouped.bed", groups={"a": ["rs0", "rs1"]})
    assert (tmp_path / "g.bed").read_bytes() == grouped.read_bytes() != (tmp_path / "cli.bed").read_bytes()
    command("sample", bed, *options, "--feature-model", "fastphase", "--out", tmp_path)
    assert (tmp_path / "in.knockoffs.bed").read_bytes() == (tmp_path / "cli.bed").read_bytes()
    capsys.readouterr()
    for wrong, message in [
        (("--out", tmp_path / "o.bed"), "--fastphase PREFIX is needed"),
        ((*options, "--out", tmp_path / "o.bed", "--feature-model", "hmm"), "--fastphase is for"),
        (("--out", tmp_path / "o.bed", "--feature-model", "hmm"), "genotypes of a .bed file need fastphase"),
        ((*options, "--out", tmp_path / "o.bed", "--drop", "rs1"), "--drop is for tables"),
        ((*options, "--out", tmp_path / "o.bed", "--groups", "auto"), "--groups auto is for tables"),
    ]:
        command("sample", bed, *wrong, status=2)
        assert message in capsys.readouterr().err
    command("sample", bed, "--fastphase", tmp_path / "chr1", "--out", tmp_path / "o.bed", status=1)
    assert "the .bed has 12 SNPs, and its model 7" in capsys.readouterr().err


def test_a_table_of_genotypes_on_the_command_line(tmp_path, capsys):
    import polars as pl

    rng = np.random.default_rng(4)
    write_fastphase(tmp_path / "sites", mosaic(rng, 5))
    counts = pl.DataFrame(rng.integers(3, size=(60, 5)), schema=[*"abcde"])
    counts.with_columns(y=rng.integers(2, size=60)).write_csv(tmp_path / "table.csv")
    shared = ("sample", tmp_path / "table.csv", "--fastphase", tmp_path / "sites", "--out", tmp_path / "k.csv")
    command(*shared, "--drop", "y")
    knockoffs = pl.read_csv(tmp_path / "k.csv")
    assert knockoffs.schema == counts.schema and set(knockoffs.to_numpy().ravel()) == {0, 1, 2}
    command(*shared, "--force", status=1)
    assert "the files hold 5 sites, and X has 6 columns" in capsys.readouterr().err
    option = ("--feature-model", "fastphase", "--feature-model-option", f"prefix={tmp_path / 'sites'}")
    command("select", tmp_path / "table.csv", "--target", "y", "--fdr", 0.5, *option, "--out", tmp_path)
    from knockoffs.record.reading import read_selection

    assert len(read_selection(tmp_path / "selection.json").data["files"]) == 4


def test_files_of_the_other_allele_are_told(tmp_path):
    """Frequencies of 40 SNPs in 500 people have standard errors of 0.02; those of the other allele are 1 minus them."""
    rng = np.random.default_rng(5)
    model = GenotypeModel(mosaic(rng, 40))
    X = rng.binomial(2, model.mosaic.frequencies(), size=(500, 40)).astype(np.int8)
    to_bed(tmp_path / "in.bed", X)
    write_fastphase(tmp_path / "right", model.mosaic)
    drawing.fastphase_models(tmp_path / "in.bed", tmp_path / "right")  # a warning would be an error here
    other = Mosaic(model.mosaic.r, model.mosaic.alpha, 1 - model.mosaic.theta)
    write_fastphase(tmp_path / "wrong", other)
    with pytest.warns(KnockoffWarning, match="have correlation -0.9.*count the other allele"):
        drawing.fastphase_models(tmp_path / "in.bed", tmp_path / "wrong")


def test_frequencies_are_those_of_the_chain():
    """Two sites by hand: the law of the second state is 0.75 of the first's and 0.25 of a new one."""
    law = Mosaic(np.array([0, -np.log(0.75)]), np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[0.2, 0.4], [0.8, 0.0]]))
    np.testing.assert_allclose(law.frequencies(), [0.3, 0.8 * (0.75 * 0.5 + 0.25)])


# ---- bad files ------------------------------------------------------------------------------------------------


def cut(path, keep):
    path.write_bytes(path.read_bytes()[:keep])


def replace_line(path, number, line):
    lines = path.read_text().splitlines()
    lines[number - 1] = line
    path.write_text("\n".join(lines) + "\n")


BAD = {
    "truncated": (lambda f: cut(f(".bed"), 50), "in.bed has 50 bytes, and .* people .* take .*: it is cut off"),
    "empty bed": (lambda f: cut(f(".bed"), 0), "in.bed is no .bed file of PLINK: it begins with nothing"),
    "foreign": (lambda f: f(".bed").write_bytes(b"PAR1" * 99), "no .bed file of PLINK: it begins with 50 41 52"),
    "people first": (lambda f: f(".bed").write_bytes(b"\x6c\x1b\x00"), "goes person by person: .* plink --make-bed"),
    "empty bim": (lambda f: cut(f(".bim"), 0), "in.bim: the file is empty"),
    "empty fam": (lambda f: cut(f(".fam"), 0), "in.fam: the file is empty"),
    "short line": (
        lambda f: replace_line(f(".bim"), 3, "1 rs2 0 5"),
        "in.bim: line 3 has 4 values, and six are needed",
    ),
    "no position": (lambda f: replace_line(f(".bim"), 2, "1 rs1 0 here A C"), "in.bim: line 2 has .* position 'here'"),
    "short person": (lambda f: replace_line(f(".fam"), 1, "f p"), "in.fam: line 1 has 2 values"),
    "no text": (lambda f: f(".bim").write_bytes(b"\xff\xfe\x00" * 20), "in.bim: cannot be read as text"),
    "another bim": (lambda f: replace_line(f(".bim"), 1, ""), "are of another file"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_a_sentence(genotypes, tmp_path, case):
    damage, message = BAD[case]
    for ending in (".bed", ".bim", ".fam"):
        (tmp_path / f"in{ending}").write_bytes(genotypes[0].with_suffix(ending).read_bytes())
    damage(lambda ending: tmp_path / f"in{ending}")
    refuses(message, plink.read_bed, tmp_path / "in.bed")


def test_genotypes_are_not_overwritten(genotypes, tmp_path):
    bed, _, models = genotypes
    before = {ending: bed.with_suffix(ending).read_bytes() for ending in plink.ENDINGS}
    rng = np.random.default_rng(0)
    (tmp_path / "link.bed").symlink_to(bed)
    for out in (bed, tmp_path / "link.bed"):
        refuses("is what is read", drawing.sample_knockoffs_bed, bed, out, models, rng=rng, force=True)
    (tmp_path / "o.fam").write_text("theirs")
    refuses("o.fam is there already", drawing.sample_knockoffs_bed, bed, tmp_path / "o.bed", models, rng=rng)
    assert before == {ending: bed.with_suffix(ending).read_bytes() for ending in plink.ENDINGS}


def test_a_chromosome_may_have_any_name(genotypes, tmp_path):
    bed, X, models = genotypes
    for ending in plink.ENDINGS:
        (tmp_path / f"in{ending}").write_bytes(bed.with_suffix(ending).read_bytes())
    lines = (tmp_path / "in.bim").read_text().splitlines()
    (tmp_path / "in.bim").write_text(
        "\n".join(line.replace("2\t", "../../2\t", 1) if line[0] == "2" else line for line in lines)
    )
    odd = {"1": models["1"], "../../2": models["2"]}
    out = drawing.sample_knockoffs_bed(tmp_path / "in.bed", tmp_path / "out.bed", odd, rng=np.random.default_rng(0))
    assert plink.read_bed(out)[0].shape == X.shape
