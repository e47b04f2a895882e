import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from knockoffs.datasets import bank, bankruptcy, files, hiv, load_bank, load_bankruptcy, load_hiv, load_nhanes
from knockoffs.datasets.dataset import DataSet, fill_median, normal_scores
from knockoffs.datasets.nhanes import nhanes_labels
from knockoffs.errors import InputError

DATA = Path(os.environ.get("KNOCKOFFS_DATA") or Path(__file__).parents[3] / "shared" / "data")
needs_data = pytest.mark.skipif(not (DATA / "bank").is_dir(), reason="the data folder is not there")


@needs_data
def test_bank():
    data = load_bank(data_folder=DATA)
    assert data.X.shape == (41_188, 10) and data.y.sum() == 4_640
    assert data.feature_names[3] == "pdays" and data.X[0, 3] == 999
    assert data.columns["job"][0] == "housemaid" and not np.isnan(data.X).any()
    full = load_bank("full", data_folder=DATA)
    assert full.X.shape == (45_211, 7) and full.y.sum() == 5_289


@needs_data
@pytest.mark.parametrize(("year", "shape", "bankrupt"), [(1, (7_027, 64), 271), (3, (10_503, 64), 495)])
def test_bankruptcy(year, shape, bankrupt):
    data = load_bankruptcy(year, data_folder=DATA)
    assert data.X.shape == shape and data.y.sum() == bankrupt
    assert not np.isnan(data.X).any() and np.abs(data.X).max() < 5
    columns = files.read_csv(DATA / "polish_bankruptcy" / f"{year}year.csv.gz")
    assert files.content_sha256(columns) == bankruptcy.CONTENT[year]


@needs_data
def test_hiv():
    data = load_hiv("APV", data_folder=DATA)
    assert data.X.shape[0] == 767 and np.all(data.X.sum(axis=0) >= 3) and set(np.unique(data.X)) == {0.0, 1.0}
    assert data.y[0] == pytest.approx(np.log(2.3))
    assert len(np.unique(data.X, axis=1).T) == data.X.shape[1]
    assert 0 < hiv.treatment_selected(data).sum() < data.X.shape[1]


@needs_data
@pytest.mark.parametrize("group", ["PI", "NRTI"])
def test_the_panel_of_an_hiv_data_set_is_that_of_its_drug(group):
    for drug in hiv.DRUGS[group][:2]:
        data = load_hiv(drug, data_folder=DATA)
        on = hiv.treatment_selected(data)
        known = {int(name[1:].split(".")[0]) for name, there in zip(data.feature_names, on, strict=True) if there}
        assert known <= set(hiv.TSM_POSITIONS[group]) and len(known) > 15


def test_other_data_have_no_panel():
    data = DataSet("bank", np.zeros((2, 1)), np.zeros(2), ("P10.A",))
    with pytest.raises(InputError, match="'bank' is not an HIV data set"):
        hiv.treatment_selected(data)


@needs_data
def test_nhanes():
    data = load_nhanes(data_folder=DATA)
    assert data.X.shape[1] == 74 and len(data.y) == data.X.shape[0] <= 9_228
    assert not np.isnan(data.X).any() and "RIDAGEYR" in data.feature_names
    assert set(np.unique(data.y)) == {0, 1}
    assert nhanes_labels(DATA)["RIDAGEYR"] == "Age in years at screening"
    assert set(data.feature_names) <= set(nhanes_labels(DATA))


def test_absent_data_give_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(InputError, match="bank/bank-additional-full.csv.gz is not in"):
        load_bank(data_folder=tmp_path)
    with pytest.raises(InputError, match="nhanes_2017_2020_adults.csv.gz is not in .*P_"):
        load_nhanes(data_folder=tmp_path, download=True)


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_bank_from_its_source_is_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    version = bank.VERSIONS["full"]
    header = ";".join(f'"{name}"' for name in (*version.features, "y"))
    source = zipped({version.archive: zipped({version.member: f'{header}\n1;2;3;4;5;6;7;"yes"\n'})})
    monkeypatch.setattr(bank, "fetch_bytes", lambda url: source)
    with pytest.raises(InputError, match="bank-full.csv has sha256"):
        load_bank("full", data_folder=tmp_path, download=True)
    monkeypatch.setattr(bank, "check_sha256", lambda content, sha256, what: content)
    data = load_bank("full", data_folder=tmp_path, download=True)
    np.testing.assert_array_equal(data.X, [[1, 2, 3, 4, 5, 6, 7]])
    assert list(data.y) == [1]


def test_bankruptcy_from_its_source_is_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = zipped({"3year.arff": "@attribute Attr1 numeric\n@attribute class {0,1}\n@data\n1.0,0\n"})
    monkeypatch.setattr(bankruptcy, "fetch_bytes", lambda url: source)
    with pytest.raises(InputError, match="3year.arff has content sha256"):
        load_bankruptcy(data_folder=tmp_path, download=True)


def test_hiv_from_its_source_is_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = "SeqID\t" + "\t".join(hiv.DRUGS["PI"]) + "\tP1\n7" + "\t1.0" * 7 + "\tA\n"
    monkeypatch.setattr(hiv, "fetch_bytes", lambda url: text.encode())
    with pytest.raises(InputError, match="PI_DATA.txt has content sha256"):
        load_hiv(data_folder=tmp_path, download=True)


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda: load_bank("ful"), "Did you mean 'full'"),
        (lambda: load_bankruptcy(2), "use 3"),
        (lambda: load_bankruptcy(scale="rank"), "scale='rank'"),
        (lambda: load_hiv("XYZ"), "drug='XYZ'"),
        (lambda: load_nhanes(scale="z"), "scale='z'"),
    ],
)
def test_unknown_options(load, message):
    with pytest.raises(InputError, match=message):
        load()


def test_normal_scores_are_monotone_and_keep_missing():
    X = np.array([[5.0, 1.0], [np.nan, 1.0], [1e9, 2.0], [-3.0, np.nan]])
    scores = normal_scores(X)
    assert np.isnan(scores[1, 0]) and np.isnan(scores[3, 1])
    assert scores[3, 0] < scores[0, 0] < scores[2, 0] and scores[0, 1] == scores[1, 1] < scores[2, 1]
    assert scores[0, 0] == pytest.approx(0.0)
    np.testing.assert_array_equal(fill_median(X)[:, 0], [5.0, 5.0, 1e9, -3.0])
