"""fastPHASE models: the structured samplers against the enumerated posterior, what they emit, files."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from tests.features.hmm.chains import hidden_laws, random_mosaic
from tests.refusals import refuses

from knockoffs.errors import InputError
from knockoffs.features.fastphase import read_fastphase
from knockoffs.features.hmm.mosaic import GenotypeModel, HaplotypeModel, Mosaic
from knockoffs.features.posterior import forward_backward
from knockoffs.sampling.sampler import sample_knockoffs

DATA = Path(os.environ.get("KNOCKOFFS_DATA", Path(__file__).parents[3].parent / "shared" / "data")) / "genotypes"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the genotype data are not there (KNOCKOFFS_DATA)")


@pytest.mark.parametrize(
    ("family", "row"),
    [
        (HaplotypeModel, [1, 0, 1]),
        (HaplotypeModel, [0, 9, 1]),
        (GenotypeModel, [0, 1, 2]),
        (GenotypeModel, [1, 1, 1]),
        (GenotypeModel, [2, -9, 1]),
    ],
)
def test_the_posterior_sampler_follows_the_enumerated_posterior(family, row, monkeypatch):
    """Frequencies of the hidden chains, 100,000 draws: 5 standard errors (false alarm 3e-5 in all); shows 0.008.

    Cells with fewer than ten draws have tails that are not normal: eight draws more are allowed.
    """
    monkeypatch.setattr(forward_backward, "segment_length", lambda *_: 2)  # a chain of three sites in two segments
    rng = np.random.default_rng(row[0] + 10)
    model = family(random_mosaic(rng, 3, 2))
    hidden, P, _, X = hidden_laws(model)
    p = P * np.exp(X.log_conditional(np.repeat([row], len(P), axis=0), hidden))
    p /= p.sum()
    n = 100_000
    drawn = model.as_network().draw_hidden(np.repeat([row], n, axis=0), rng)
    codes = np.hstack([drawn[name] for name in hidden]) @ (2 ** np.arange(3 * len(hidden))[::-1])
    frequency = np.bincount(codes, minlength=len(p)) / n
    assert (np.abs(frequency - p) <= 5 * np.sqrt(p * (1 - p) / n) + 8 / n).all()


def test_impossible_and_unknown_alleles_are_named():
    mosaic = Mosaic(np.zeros(3), np.full((3, 2), 0.5), np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]))
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="row 1, site 2: X = 0 is impossible under the model"):
        sample_knockoffs(HaplotypeModel(mosaic).as_network(), np.array([[0, 0, 0], [1, 1, 0]]), rng)
    with pytest.raises(InputError, match="row 0, site 1: X = 2 is impossible under the model"):
        sample_knockoffs(GenotypeModel(mosaic).as_network(), np.array([[0, 2, 0]]), rng)
    with pytest.raises(InputError, match="row 0, site 1: 3 is not a known genotype; known are 0, ..., 2"):
        sample_knockoffs(GenotypeModel(mosaic).as_network(), np.array([[0, 3, 0]]), rng)
    with pytest.raises(InputError, match="row 0, site 0: 2 is not a known allele"):
        sample_knockoffs(HaplotypeModel(mosaic).as_network(), np.array([[2, 0, 0]]), rng)


def test_bad_parameters_are_named():
    good = np.zeros(2), np.full((2, 2), 0.5), np.full((2, 2), 0.5)
    refuses(r"expected \(p,\), \(p, K\) and \(p, K\)", Mosaic, np.zeros(3), *good[1:])
    refuses(r"alpha\[0\] adds up to 0.8", Mosaic, good[0], np.full((2, 2), 0.4), good[2])
    refuses(r"theta\[0, 0\] = 1.5 is not a probability", Mosaic, *good[:2], np.full((2, 2), 1.5))
    refuses(r"r\[1\] = -1: a rate", Mosaic, np.array([0.0, -1.0]), *good[1:])
    refuses("hidden_knockoff='none' is not known", GenotypeModel(Mosaic(*good)).as_network, hidden_knockoff="none")


def write_fastphase(folder, origchars="2\n2\t10\n2\t01\n", alpha_rows=2):
    with gzip.open(folder / "x_rhat.txt.gz", "wt") as file:
        file.write("> start 0\n1.0\n0.5\n> start 1\n1.0\n0.25\n")
    (folder / "x_alphahat.txt").write_text("> start 0\n" + "0.25 0.75\n" * alpha_rows)
    (folder / "x_thetahat.txt").write_text("> start 0\n0.1 0.2\n0.3 0.4\n")
    (folder / "x_origchars").write_text(origchars)
    return folder / "x"


def test_files_are_read_and_alleles_turned(tmp_path):
    mosaic = read_fastphase(write_fastphase(tmp_path))
    np.testing.assert_allclose(mosaic.theta, [[0.1, 0.2], [0.7, 0.6]])
    np.testing.assert_allclose(mosaic.chain.jump, [1 - np.exp(-0.5)])
    refuses("start=1: .*alphahat.txt holds 1 starts", read_fastphase, tmp_path / "x", start=1)
    refuses("rhat 2, alphahat 3, thetahat 2, origchars 2", read_fastphase, write_fastphase(tmp_path, alpha_rows=3))
    with pytest.raises(InputError, match="site 1: 'AC' is not coded 0 and 1"):
        read_fastphase(write_fastphase(tmp_path, origchars="2\n2\t10\n2\tAC\n"))
    refuses("no such file", read_fastphase, tmp_path / "y")


@needs_data
def test_real_haplotypes_and_their_model_agree():
    """Allele frequencies of the toy haplotypes against the generating model: within 0.05, r above 0.99."""
    folder = DATA / "knockoffgwas_toy"
    mosaic = read_fastphase(folder / "hmm_chr21")
    H = np.load(folder / "haplotypes_chr21.npz")["H"]
    law, expected = mosaic.alpha[0], []
    for j in range(len(mosaic.r)):
        law = law if j == 0 else law * (1 - mosaic.chain.jump[j - 1]) + mosaic.chain.jump[j - 1] * mosaic.alpha[j]
        expected.append(law @ mosaic.theta[j])
    assert np.abs(H.mean(axis=0) - expected).max() < 0.05
    assert np.corrcoef(H.mean(axis=0), expected)[0, 1] > 0.99
    X = (H[0::2] + H[1::2]).astype(np.int8)
    X_tilde = sample_knockoffs(GenotypeModel(mosaic).as_network(), X, np.random.default_rng(0))
    assert X_tilde.dtype == np.int8
    assert np.abs(X.mean(axis=0) - X_tilde.mean(axis=0)).max() < 0.15  # 5 se of a difference with sd 0.7, n = 1000


@needs_data
def test_the_example_files_of_snpknock_are_read():
    mosaic = read_fastphase(DATA / "snpknock_fastphase" / "genotypes")
    assert mosaic.theta.shape == (2462, 10)
