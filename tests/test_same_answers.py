"""The answers of 21 settings are those that were stored: a change that means to change nothing does so.

Each setting returns numbers; stored/answers.json holds those of an earlier version, to the last digit. On another
machine the last digits differ, so the test allows for a millionth; ``python tests/test_same_answers.py`` says whether
they are identical to the last bit, and ``python tests/test_same_answers.py --store`` stores them anew, which belongs
into a commit of its own that says why they changed.
"""

import contextlib
import io
import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn

STORED = Path(__file__).parent / "stored" / "answers.json"


def numbers(n=200, d=12, seed=0, k=4):
    """Table of correlated Gaussian columns and a response of the first k."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.7 * rng.standard_normal((n, 1))
    return X, X[:, :k] @ np.linspace(1.0, 0.4, k) + rng.standard_normal(n)


def labels(n=300, seed=1):
    rng = np.random.default_rng(seed)
    K = rng.integers(2, size=n)
    cells = [np.where(rng.random(n) < 0.25 + 0.5 * K, "yes", "no") for _ in range(8)]
    X = np.array(cells, dtype=object).T
    return X, np.where((X[:, 0] == "yes").astype(int) + (X[:, 1] == "yes") + rng.random(n) > 1.3, "sick", "well")


def fit(X, y, sample_weight=None, **options):
    from knockoffs import KnockoffSelector

    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector = KnockoffSelector(
            **({"fdr": 0.3, "random_state": 7, "method": "knockoffs", "verdict": False} | options)
        ).fit(X, y, **weights)
    return [*selector.W_.tolist(), float(selector.threshold_)]


def gaussian():
    return fit(*numbers(), feature_model="gaussian", estimator="lasso")


def mixture():
    X, y = numbers(n=300, d=6, k=3)
    X[:150] += 4.0
    return fit(X, y > 0, feature_model="mixture", feature_model_options={"n_components": [1, 2]}, estimator="logistic")


def best():
    X, y = numbers(n=250)
    return fit(X, np.sign(X[:, 0] * X[:, 1]) * (1 + X[:, 2] ** 2), feature_model="gaussian")


def classes():
    X, y = numbers()
    return fit(X, np.digitize(y, [-1, 1]), feature_model="gaussian", estimator="lasso")


def naive_bayes():
    return fit(*labels(), feature_model="naive_bayes", feature_model_options={"n_classes": 2}, estimator="lasso")


def network():
    return fit(*labels(), feature_model="network", estimator="lasso")


def hmm():
    X, y = numbers(n=150, d=11)
    options = {"n_states": 2}
    return fit(X, y, feature_model="hmm", feature_model_options=options, estimator="lasso")


def lda():
    rng = np.random.default_rng(5)
    X = rng.poisson(1.0 + 2.0 * rng.dirichlet(np.ones(12), size=120) * 12)
    y = X[:, 0] + X[:, 1] + rng.standard_normal(120)
    return fit(X, y, feature_model="lda", feature_model_options={"n_topics": 2}, estimator="lasso")


def forest():
    X, y = numbers()
    return fit(
        X,
        y > 0,
        feature_model="gaussian",
        estimator="forest",
        importance="swap_integral",
        importance_options={"loss": "accuracy"},
    )


def boosting():
    return fit(*numbers(), feature_model="gaussian", estimator="boosting")


def permutation():
    X, y = numbers()
    scoring = {"rule": "signed_maximum", "n_fits": 2, "n_folds": 3}
    options = {"importance": "permutation", "importance_options": scoring, "offset": 0}
    return fit(X, y, feature_model="gaussian", estimator="forest", **options)


def groups():
    return fit(*numbers(), feature_model="gaussian", estimator="lasso", groups=np.repeat(np.arange(6), 2))


def weights():
    X, y = numbers()
    return fit(X, y, feature_model="gaussian", estimator="lasso", sample_weight=np.arange(len(y)) % 3)


def brought():
    X, y = numbers()
    return fit(X, y, knockoffs=np.random.default_rng(3).permuted(X, axis=0), estimator="lasso")


def covariance():
    X, y = numbers()
    return fit(X, y, feature_model=np.cov(X.T), feature_model_options={"diagonal": "mvr"}, estimator="linear")


def neural():
    pytest.importorskip("torch")
    X, y = numbers(n=120, d=5)
    return fit(X, y > 0, feature_model="gaussian", estimator="neural", importance="gradient")


def command_line(*arguments):
    from knockoffs.cli.app import main

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            assert end.code == 0, arguments


def write_csv(folder):
    X, y = numbers(n=150)
    path = folder / "table.csv"
    names = [f"x{j}" for j in range(X.shape[1])] + ["y"]
    np.savetxt(path, np.column_stack([X, y]), fmt="%.17g", delimiter=",", header=",".join(names), comments="")
    return path


def select_csv(folder):
    table = write_csv(folder)
    options = [
        "--fdr",
        0.3,
        "--seed",
        3,
        "--feature-model",
        "gaussian",
        "--estimator",
        "lasso",
        "--method",
        "knockoffs",
        "--no-verdict",
        "--out",
        folder / "out",
    ]
    command_line("select", table, "--target", "y", *options)
    content = json.loads((folder / "out" / "selection.json").read_text())
    return [*(feature["W"] for feature in content["features"]), float(content["threshold"])]


def select_parquet(folder):
    """Few columns for the level, so that they are tested by default: p-values."""
    pl = pytest.importorskip("polars")
    table = folder / "table.parquet"
    pl.read_csv(write_csv(folder)).write_parquet(table)
    options = ["--fdr", 0.3, "--feature-model", "gaussian", "--no-verdict", "--out", folder / "out"]
    command_line("select", table, "--target", "y", *options)
    content = json.loads((folder / "out" / "selection.json").read_text())
    return [feature["p_value"] for feature in content["features"]]


def lambda_path(folder):
    options = ["--column", "x0", "--feature-model", "gaussian", "--estimator", "forest", "--points", 5]
    command_line("path", write_csv(folder), "--target", "y", *options, "--out", folder / "path.csv")
    return np.loadtxt(folder / "path.csv", delimiter=",", skiprows=1, usecols=2).tolist()


def sample_csv(folder):
    command_line("sample", write_csv(folder), "--feature-model", "gaussian", "--out", folder / "knockoffs.csv")
    return np.loadtxt(folder / "knockoffs.csv", delimiter=",", skiprows=1)[:5].ravel().tolist()


def plink(folder):
    pytest.importorskip("bed_reader")
    from bed_reader import to_bed

    from knockoffs.features.fastphase import GenotypeModel, Mosaic
    from knockoffs.features.genotypes import sample_knockoffs_bed
    from knockoffs.table.plink import read_bed

    rng = np.random.default_rng(2)
    mosaic = Mosaic(np.full(8, 0.3), rng.dirichlet(np.ones(3), size=8), rng.uniform(0.1, 0.9, size=(8, 3)))
    to_bed(folder / "in.bed", rng.integers(3, size=(20, 8)).astype(float))
    sample_knockoffs_bed(folder / "in.bed", folder / "out.bed", GenotypeModel(mosaic), rng=np.random.default_rng(4))
    return read_bed(folder / "out.bed")[0].ravel().tolist()


IN_MEMORY = (gaussian, mixture, best, classes, naive_bayes, network, hmm, lda, forest, boosting, permutation, groups)
IN_MEMORY += (weights, brought, covariance, neural)
WITH_FILES = (select_csv, select_parquet, lambda_path, sample_csv, plink)
SETTINGS = {setting.__name__: setting for setting in (*IN_MEMORY, *WITH_FILES)}


def answer(name, folder):
    return SETTINGS[name](folder) if SETTINGS[name] in WITH_FILES else SETTINGS[name]()


@pytest.mark.parametrize("name", SETTINGS)
def test_the_answer_is_the_stored_one(name, tmp_path):
    if name in ("best", "boosting") and sklearn.__version__.startswith("1.8."):
        pytest.skip("stored with scikit-learn 1.9, whose boosting grows other trees")
    stored = np.array(json.loads(STORED.read_text())[name], dtype=float)
    np.testing.assert_allclose(answer(name, tmp_path), stored, rtol=1e-6, atol=1e-9)


def main(store):
    found = {}
    for name in SETTINGS:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = [repr(float(value)) for value in answer(name, Path(folder))]
    if store:
        STORED.write_text(json.dumps(found, indent=0) + "\n")
        return
    stored = json.loads(STORED.read_text())
    for name, values in found.items():
        print(f"{name:<15} {'identical' if values == stored[name] else 'DIFFERENT'}")


if __name__ == "__main__":
    main("--store" in sys.argv)
