"""The answers of many settings are those that were stored: a change that means to change nothing does so.

Each setting returns numbers. stored/answers.json holds those of an earlier version, to the last digit, and the machine
that computed them. On that machine the test allows for 1e-11: compiled loops are inlined or not according to what was
in the cache when their caller was compiled, and the last bits follow. Elsewhere the test allows for a millionth.
Everything runs on one thread, because linear algebra depends on their number.

``python tests/test_same_answers.py`` says of each setting whether it is identical to the last bit, followed by names
only of those. ``--store`` stores all of them anew, or those named after it. That belongs into a commit of its own that
says why they changed.
"""

import argparse
import contextlib
import csv
import hashlib
import io
import json
import math
import platform
import re
import runpy
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from unittest import mock

import llvmlite.binding
import numba
import numpy as np
import pytest
import scipy
import sklearn
import sklearn.ensemble  # noqa: F401  # loads OpenMP, so that its threads can be limited
from threadpoolctl import threadpool_info, threadpool_limits

STORED = Path(__file__).parent / "stored" / "answers.json"
CPU = Path("/proc/cpuinfo")
BOOSTED = ("best", "boosting", "conditional_boosting", "streamed_draws")  # answers of scikit-learn's trees
SAME_TREES = sklearn.__version__.startswith(
    "1.9."
)  # labels of trials are drawn from boosted trees, and one look at knockoffs takes them
WORDS = ("good", "doubtful", "broken")
KINDS = ("continuous", "count", "ordinal", "binary", "nominal")


def machine():
    """What the last bits depend on: processor, versions, and the kernels that BLAS has chosen."""
    lines = CPU.read_text().splitlines() if CPU.exists() else []
    told = dict(re.split(r"\s*:\s*", line, maxsplit=1) for line in lines if ":" in line)
    cpu = [told[name] for name in ("model name", "cpu family", "model") if name in told]
    blas = {
        f"{library['internal_api']} {library['version']} {library.get('architecture')}"
        for library in threadpool_info()
        if library["user_api"] == "blas" and re.search("numpy|scipy", library["filepath"])
    }
    versions = {module.__name__: module.__version__ for module in (np, scipy, sklearn, numba)}
    host = llvmlite.binding  # compiled loops use what the processor has, which its name does not say
    features = host.get_host_cpu_name() + " " + str(host.get_host_cpu_features().flatten())
    compiled = hashlib.sha256(features.encode()).hexdigest()[:12]
    return {"cpu": ", ".join(cpu) or platform.processor(), "compiled": compiled, "blas": sorted(blas), **versions}


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


def mixed(n=200, seed=2):
    """Frame of 14 columns: numbers, counts, grades, truth values and labels that share a factor; and a number."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    L = rng.standard_normal((n, 14)) + 0.7 * rng.standard_normal((n, 1))
    columns = {f"number{j}": L[:, j] for j in range(5)}
    columns |= {f"count{j}": rng.poisson(np.exp(0.4 * L[:, 5 + j])) for j in range(3)}
    columns |= {f"grade{j}": np.digitize(L[:, 8 + j], [-1, 0, 1]) + 1 for j in range(2)}
    columns |= {f"flag{j}": L[:, 10 + j] > 0.3 for j in range(2)}
    labels = np.array(["blue", "green", "red"])
    columns |= {f"label{j}": labels[np.digitize(L[:, 12 + j], [-0.6, 0.6])] for j in range(2)}
    y = L[:, [0, 1, 5, 8, 10, 12]].sum(axis=1) + rng.standard_normal(n)
    return pd.DataFrame(columns), y


def fit_selector(X, y, sample_weight=None, **options):
    from knockoffs import KnockoffSelector

    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KnockoffSelector(**options).fit(X, y, **weights)


def fit(X, y, sample_weight=None, **options):
    """W and the threshold."""
    common = {"fdr": 0.3, "random_state": 7, "method": "knockoffs", "verdict": False}
    selector = fit_selector(X, y, sample_weight, **(common | options))
    return [*selector.W_.tolist(), float(selector.threshold_)]


def whole(selector):
    """All that a fit has found: W or p-values, threshold, q-values, sums of the knockoffs, and the verdict."""
    values = selector.W_ if selector.p_values_ is None else selector.p_values_
    drawn = selector.selection_.pair.X_tilde
    sums = [math.fsum(column) for column in np.asarray(drawn, dtype=float).T]  # exact: memory order does not matter
    found = [*values.tolist(), float(selector.threshold_), *selector.q_values_.tolist(), *sums]
    if selector.verdict_ is not None:
        trial, p_value = selector.verdict_.trial, selector.verdict_.p_value
        rate = np.nan if not SAME_TREES else p_value if trial is None else trial.rate
        found += [WORDS.index(selector.verdict_.word), rate]
    return found


def by_default(X, y, **options):
    """All answers of the default P^X, the default model of y and the default method, with the verdict."""
    return whole(fit_selector(X, y, **({"fdr": 0.3, "random_state": 7} | options)))


def by_knockoffs(X, y, **options):
    """All answers of knockoffs with the default P^X and model of y, where the default method would be tests."""
    return by_default(X, y, **{"method": "knockoffs"} | options)


# ---- settings in memory ----------------------------------------------------------------------------------------------

GAUSSIAN = {"feature_model": "gaussian"}
LASSO = {"estimator": "lasso"}


def words(n=250):
    """Fourteen columns of four labels each that share a hidden class, and a number."""
    rng = np.random.default_rng(3)
    K = rng.integers(2, size=n)
    C = np.where(rng.random((n, 14)) < 0.6, K[:, None], rng.integers(4, size=(n, 14)))
    names = np.array(["ash", "birch", "cedar", "elm"])
    return names[C].astype(object), (C[:, :5] == 0).sum(axis=1) + rng.standard_normal(n)


def missing():
    X, y = mixed()
    return X.mask(np.random.default_rng(4).random(X.shape) < 0.08), y


def three_classes():
    """Four columns whose means depend on the class, as those of iris do: tested."""
    X = np.random.default_rng(5).standard_normal((120, 4))
    X += np.repeat(np.arange(3), 40)[:, None] * [2.0, 1.0, 0.5, 0.0]
    return X.round(1), np.repeat(["setosa", "versicolor", "virginica"], 40)


def clusters():
    """Three clear clusters of rows: a hidden class."""
    X, y = numbers(n=240, d=14, k=6)
    return X + 5.0 * np.random.default_rng(6).standard_normal((3, 14))[np.arange(240) % 3], y


def two_clusters(n):
    X, y = numbers(n=n, d=6, k=3)
    X[: n // 2] += 4.0
    return X, y


def counts():
    rng = np.random.default_rng(7)
    L = rng.standard_normal((200, 14)) + 0.7 * rng.standard_normal((200, 1))
    X = np.column_stack([rng.poisson(np.exp(0.5 * L[:, :8])), np.digitize(L[:, 8:], [-1, -0.3, 0.3, 1])])
    return X, rng.poisson(np.exp(0.4 * L[:, [0, 1, 2, 8, 9]].mean(axis=1)))


def dependent():
    """One column twice, and one that is the sum of two others."""
    X, y = numbers(n=150, d=14, k=6)
    return np.column_stack([X, 2.0 * X[:, 0], X[:, 1] + X[:, 2]]), y


def nearly_alike():
    """Fourteen pairs of columns that say nearly the same."""
    X, y = numbers(n=150, d=14, k=6)
    return np.column_stack([X, X + 0.1 * np.random.default_rng(8).standard_normal(X.shape)]), y


def with_target(data, change):
    """The same table with another target."""
    X, y = data
    return X, change(X, y)


def with_table(data, change):
    """Another table with the same target."""
    X, y = data
    return change(X), y


def positive(X, y):
    return y > 0


def polars_frame(X):
    pl = pytest.importorskip("polars")
    return pl.DataFrame({name: X[name].tolist() for name in X})


def ghost():
    from scipy.linalg import toeplitz

    from knockoffs import select_ghost

    S, noise = toeplitz(0.5 ** np.arange(30)), np.random.default_rng(9).standard_normal(30)
    z = np.sqrt(2000) * S @ np.where(np.arange(30) % 3 == 0, 0.12, 0.0) + np.linalg.cholesky(S) @ noise
    one = select_ghost(z, S, 2000, fdr=0.2, rng=np.random.default_rng(1))
    two = select_ghost(z, S, 2000, fdr=0.2, shrink=0.1, n_draws=2, rng=np.random.default_rng(1))
    return [*one.W, one.threshold, *one.q_values, *two.W, *two.q_values]


def with_gaps():
    X, y = numbers(n=120, d=8)
    X[np.random.default_rng(10).random(X.shape) < 0.05] = np.nan
    return X, y


def topics():
    rng = np.random.default_rng(5)
    X = rng.poisson(1.0 + 2.0 * rng.dirichlet(np.ones(12), size=120) * 12)
    return X, X[:, 0] + X[:, 1] + rng.standard_normal(120)


def neural():
    torch = pytest.importorskip("torch")
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        data = with_target(numbers(n=120, d=5), positive)
        return fit(*data, **GAUSSIAN, estimator="neural", importance="gradient")
    finally:
        torch.set_num_threads(n_threads)


def of_family(data, name, **options):
    return fit(*data, feature_model=name, feature_model_options=options, **LASSO)


def scored(data, importance, estimator, offset=1, **options):
    how = {"importance": importance, "importance_options": options, "offset": offset}
    return fit(*data, **GAUSSIAN, estimator=estimator, **how)


IN_MEMORY = {
    "gaussian": lambda: fit(*numbers(), **GAUSSIAN, **LASSO),
    "mixture": lambda: fit(
        *with_target(two_clusters(300), positive),
        feature_model="mixture",
        feature_model_options={"n_components": [1, 2]},
        estimator="logistic",
    ),
    "best": lambda: fit(
        *with_target(numbers(n=250), lambda X, y: np.sign(X[:, 0] * X[:, 1]) * (1 + X[:, 2] ** 2)), **GAUSSIAN
    ),
    "classes": lambda: fit(*with_target(numbers(), lambda X, y: np.digitize(y, [-1, 1])), **GAUSSIAN, **LASSO),
    "naive_bayes": lambda: of_family(labels(), "naive_bayes", n_classes=2),
    "network": lambda: of_family(labels(), "network"),
    "hmm": lambda: of_family(numbers(n=150, d=11), "hmm", n_states=2),
    "lda": lambda: of_family(topics(), "lda", n_topics=2),
    "forest": lambda: scored(with_target(numbers(), positive), "swap_integral", "forest", loss="accuracy"),
    "boosting": lambda: fit(*numbers(), **GAUSSIAN, estimator="boosting"),
    "permutation": lambda: scored(
        numbers(), "permutation", "forest", offset=0, rule="signed_maximum", n_fits=2, n_folds=3
    ),
    "groups": lambda: fit(*numbers(), **GAUSSIAN, **LASSO, groups=np.repeat(np.arange(6), 2)),
    "weights": lambda: fit(*numbers(), sample_weight=np.arange(200) % 3, **GAUSSIAN, **LASSO),
    "brought": lambda: fit(*numbers(), knockoffs=np.random.default_rng(3).permuted(numbers()[0], axis=0), **LASSO),
    "covariance": lambda: fit(
        *numbers(), feature_model=np.cov(numbers()[0].T), feature_model_options={"diagonal": "mvr"}, estimator="linear"
    ),
    "neural": neural,
    "default_numbers": lambda: by_knockoffs(*numbers(d=16, k=6)),
    "default_few_columns": lambda: by_default(*numbers(n=120, d=6, k=3)),
    "default_labels": lambda: by_knockoffs(*words()),
    "default_mixed": lambda: by_knockoffs(*mixed()),
    "default_missing": lambda: by_knockoffs(*missing()),
    "default_three_classes": lambda: by_default(*three_classes()),
    "default_two_classes": lambda: by_knockoffs(*with_target(numbers(n=160, d=14, k=6), positive)),
    "default_few_rows": lambda: by_default(*numbers(n=60, d=8, k=3)),
    "default_wide": lambda: by_default(*numbers(n=80, d=120, k=10)),
    "default_clusters": lambda: by_knockoffs(*clusters()),
    "default_counts": lambda: by_knockoffs(*counts()),
    "default_skewed": lambda: by_knockoffs(*map(np.sinh, numbers(n=200, d=14, k=6))),
    "default_dependent": lambda: by_knockoffs(*dependent()),
    "default_frame": lambda: by_default(*with_table(mixed(n=150), polars_frame), method="knockoffs"),
    "conditional_numbers": lambda: by_default(*numbers(n=150, d=8, k=3), method="conditional_test", **LASSO),
    "conditional_mixed": lambda: by_default(
        *with_table(with_target(mixed(n=150), positive), lambda X: X.iloc[:, [0, 1, 5, 8, 10, 12]]),
        method="conditional_test",
    ),
    "conditional_boosting": lambda: by_default(
        *with_target(numbers(n=150, d=5), lambda X, y: X[:, 0] * X[:, 1]),
        method="conditional_test",
        estimator="boosting",
        **GAUSSIAN,
    ),
    "groups_explicit": lambda: by_knockoffs(*numbers(n=150, d=28, k=8), groups=np.repeat(np.arange(14), 2).tolist()),
    "groups_auto": lambda: by_knockoffs(*nearly_alike(), groups="auto"),
    "draws": lambda: by_knockoffs(*numbers(n=150, d=14, k=6), n_draws=3, **LASSO),
    "several_knockoffs": lambda: by_default(*numbers(d=14, k=6), n_knockoffs=3, method="knockoffs", **LASSO),
    "several_knockoffs_of_labels": lambda: by_default(
        *labels(),
        n_knockoffs=3,
        method="knockoffs",
        feature_model="naive_bayes",
        feature_model_options={"n_classes": 2},
        **LASSO,
    ),
    "post_hoc": lambda: by_default(*numbers(n=150, d=14, k=2), level="post_hoc", fdr=0.1, method="knockoffs", **LASSO),
    "ghost": ghost,
    "mixture_by_default": lambda: of_family(two_clusters(200), "mixture"),
    "naive_bayes_mixed": lambda: of_family(mixed(), "naive_bayes", n_classes=[1, 2, 3]),
    "hmm_labels": lambda: of_family(labels(), "hmm", n_states=2),
    "hmm_missing": lambda: of_family(with_gaps(), "hmm", n_states=2),
    "held_out": lambda: scored(with_target(numbers(), positive), "swap", "logistic", loss="brier", rows="held_out"),
    "ridge": lambda: scored(numbers(), "permutation_integral", "ridge", rows="cross_fitted", n_folds=3),
    # a Gaussian law of skewed columns: the knockoffs are distinguishable from the features
    "verdict_broken": lambda: by_knockoffs(*with_table(numbers(n=300, d=14, k=6), np.exp), **GAUSSIAN, **LASSO),
}

# ---- settings with files ---------------------------------------------------------------------------------------------


def command_line(*arguments):
    """Run ``python -m knockoffs`` in this process; what it prints."""
    out = io.StringIO()
    sys.modules.pop("knockoffs.__main__", None)  # which another test may have imported
    with (
        mock.patch.object(sys, "argv", ["knockoffs", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        try:
            runpy.run_module("knockoffs", run_name="__main__")
        except SystemExit as end:
            assert end.code in (0, None), arguments
    return out.getvalue()


def recorded(folder):
    """Numbers of the record that select, test, ghost and rerun write."""
    content = json.loads((folder / "selection.json").read_text())
    keys = ("p_value", "q_value") if content["method"] == "conditional_test" else ("W", "q_value")
    return [float(feature[key]) for key in keys for feature in content["features"]]


def write_csv(folder):
    X, y = numbers(n=150)
    path = folder / "table.csv"
    names = [f"x{j}" for j in range(X.shape[1])] + ["y"]
    np.savetxt(path, np.column_stack([X, y]), fmt="%.17g", delimiter=",", header=",".join(names), comments="")
    return path


def select_csv(folder):
    options = ["--fdr", 0.3, "--seed", 3, "--feature-model", "gaussian", "--estimator", "lasso"]
    options += ["--method", "knockoffs", "--no-verdict", "--out", folder / "out"]
    command_line("select", write_csv(folder), "--target", "y", *options)
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


def path_of(file, *, fake, points, feature_model="auto", estimator):
    """W along lambda, from the table on."""
    from knockoffs.defaults import choose
    from knockoffs.draws import follow_lambda
    from knockoffs.features.source import knockoff_source, read_features
    from knockoffs.importance.accuracy_drop import FAKES
    from knockoffs.seeds import as_generator
    from knockoffs.table.files import read_table_file
    from knockoffs.table.target import as_target

    frame, source = read_table_file(file), knockoff_source(feature_model)
    table, _ = read_features(source, frame.drop("y"), min_rows=5)
    target = as_target(frame["y"], table)
    statistic = choose(target, estimator=estimator, importance="swap").statistic
    sampler = source(table, rng=as_generator(0).spawn(4)[0]).sampler
    lams, rng = np.linspace(0, 10, points), as_generator(0)
    path = follow_lambda(sampler, table, target, statistic, lams=lams, fake=FAKES[fake], rng=rng)
    return path.W.ravel().tolist()


def lambda_path(folder):
    return path_of(write_csv(folder), fake="swapped", points=5, feature_model="gaussian", estimator="forest")


def sample_csv(folder):
    command_line("sample", write_csv(folder), "--feature-model", "gaussian", "--out", folder / "knockoffs.csv")
    return np.loadtxt(folder / "knockoffs.csv", delimiter=",", skiprows=1)[:5].ravel().tolist()


def write_mixed(folder):
    X, y = mixed(n=150)
    path = folder / "mixed.csv"
    X.assign(y=y).to_csv(path, index=False)
    return path


def select_mixed(folder):
    """A selection of the default P^X with the verdict."""
    command_line("select", write_mixed(folder), "--target", "y", "--fdr", 0.3, "--out", folder / "out")
    return recorded(folder / "out")


def select_in_batches(folder):
    options = ["--fdr", 0.3, "--stream", "always", "--sample-rows", 100, "--method", "knockoffs"]
    command_line("select", write_csv(folder), "--target", "y", *options, "--out", folder / "out")
    return recorded(folder / "out")


def conditional_csv(folder):
    options = ["--fdr", 0.2, "--estimator", "lasso", "--no-verdict", "--out", folder / "out"]
    command_line("test", write_csv(folder), "--target", "y", *options)
    return recorded(folder / "out")


def rerun_csv(folder):
    select_csv(folder)
    told = command_line("rerun", folder / "out" / "selection.json", folder / "table.csv", "--out", folder / "again")
    return [*recorded(folder / "again"), float("identical" in told)]


def path_permuted(folder):
    return path_of(write_mixed(folder), fake="permuted", points=4, estimator="lasso")


def sample_mixed(folder):
    """Numbers of some rows, and how often each label was drawn."""
    command_line("sample", write_mixed(folder), "--drop", "y", "--seed", 5, "--out", folder / "knockoffs.csv")
    with (folder / "knockoffs.csv").open(newline="") as file:
        drawn = list(csv.DictReader(file))
    values = [float(row[name]) for row in drawn[:10] for name in row if name.startswith(("number", "count", "grade"))]
    counts = {name: Counter(row[name] for row in drawn) for name in ("flag0", "flag1", "label0", "label1")}
    return [*values, *(counts[name][cell] for name in counts for cell in sorted(counts[name]))]


def check_csv(folder):
    """The kind of every column and the word of the verdict, by the default P^X and by one that is wrong for counts."""
    table, found = write_mixed(folder), []
    for options in ([], ["--feature-model", "gaussian", "--drop", "label0", "--drop", "label1"]):
        lines = command_line("check", table, "--drop", "y", *options).splitlines()
        of_columns = [line.split(":")[0] for line in lines if re.match(r"'[a-z]+\d'", line)]
        found += [next(k for k, kind in enumerate(KINDS) if kind in line.split()) for line in of_columns]
        found += [next(w for w, word in enumerate(WORDS) if re.search(rf"\b{word}\b", "\n".join(lines)))]
    return found


def ghost_csv(folder):
    X, y = numbers(n=400, d=15, k=6)
    S = np.corrcoef(X.T)
    z = X.T @ y / np.sqrt(400 * (X**2).sum(axis=0) / 400 * y.var())
    names = [f"snp{j}" for j in range(15)]
    (folder / "z.csv").write_text("\n".join(["name,z", *map("{},{!r}".format, names, z.tolist())]) + "\n")
    np.save(folder / "R.npy", S)
    options = ["--correlation", folder / "R.npy", "--n", 400, "--fdr", 0.3, "--out", folder / "out"]
    command_line("ghost", "--z", folder / "z.csv", *options)
    return recorded(folder / "out")


def streamed(path, **options):
    from knockoffs import KnockoffSelector, fit_streamed

    selector = KnockoffSelector(**({"fdr": 0.3, "random_state": 7, "method": "knockoffs"} | options))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return whole(fit_streamed(selector, path, "y", sample_rows=100, batch_rows=40))


def streamed_csv(folder):
    return streamed(write_csv(folder), feature_model="gaussian", estimator="lasso")


def streamed_parquet(folder):
    """The default P^X and the default model of y, of all kinds of columns."""
    pl = pytest.importorskip("polars")
    table = folder / "table.parquet"
    pl.read_csv(write_mixed(folder)).write_parquet(table)
    return streamed(table)


def streamed_draws(folder):
    return streamed(write_csv(folder), n_draws=2, estimator="boosting", verdict=False)


def mosaic():
    from knockoffs import Mosaic

    rng = np.random.default_rng(2)
    return Mosaic(np.full(8, 0.3), rng.dirichlet(np.ones(3), size=8), rng.uniform(0.1, 0.9, size=(8, 3))), rng


def fastphase(folder):
    """Genotypes, by the files that fastPHASE writes."""
    law, rng = mosaic()
    for name, values in (("rhat", law.r[:, None]), ("alphahat", law.alpha), ("thetahat", law.theta)):
        rows = "\n".join(" ".join(map(repr, row)) for row in values.tolist())
        (folder / f"law_{name}.txt").write_text(f"> start 0\n{rows}\n")
    (folder / "law_origchars").write_text("8\n" + "2\t10\n" * 8)
    X = rng.binomial(2, law.theta.mean(axis=1), size=(150, 8))
    y = X[:, :3].sum(axis=1) + rng.standard_normal(150)
    options = {"prefix": str(folder / "law")}
    return fit(X, y, feature_model="fastphase", feature_model_options=options, estimator="lasso")


def plink(folder):
    bed_reader = pytest.importorskip("bed_reader")
    from knockoffs import GenotypeModel, sample_knockoffs_bed

    law, rng = mosaic()
    bed_reader.to_bed(folder / "in.bed", rng.integers(3, size=(20, 8)).astype(float))
    sample_knockoffs_bed(folder / "in.bed", folder / "out.bed", GenotypeModel(law), rng=np.random.default_rng(4))
    with bed_reader.open_bed(folder / "out.bed") as bed:
        return bed.read().ravel().tolist()


def bif(folder):
    """A Bayesian network that is given: one cause of seven columns."""
    kinds = "  type discrete [ 2 ] { no, yes };\n"
    text = "network cause {\n}\n" + "".join(f"variable x{j} {{\n{kinds}}}\n" for j in range(8))
    text += "probability ( x0 ) {\n  table 0.5, 0.5;\n}\n"
    for j in range(1, 8):
        text += f"probability ( x{j} | x0 ) {{\n  (no) 0.75, 0.25;\n  (yes) 0.25, 0.75;\n}}\n"
    (folder / "cause.bif").write_text(text)
    X, y = labels()
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(8)])
    return fit(frame, y, feature_model=str(folder / "cause.bif"), estimator="lasso")


WITH_FILES = (select_csv, select_parquet, lambda_path, sample_csv, plink, select_mixed, select_in_batches)
WITH_FILES += (conditional_csv, rerun_csv, path_permuted, sample_mixed, check_csv, ghost_csv)
WITH_FILES += (streamed_csv, streamed_parquet, streamed_draws, fastphase, bif)
SETTINGS = IN_MEMORY | {setting.__name__: setting for setting in WITH_FILES}


def answer(name, folder):
    """Answer of a setting, each number as it is written to the last digit."""
    with threadpool_limits(1):
        found = IN_MEMORY[name]() if name in IN_MEMORY else SETTINGS[name](folder)
    return [repr(float(value) + 0.0) for value in found]  # no minus before a zero


@pytest.mark.parametrize("name", SETTINGS)
def test_the_answer_is_the_stored_one(name, tmp_path):
    content = json.loads(STORED.read_text())
    here, stored = machine() == content["machine"], content["answers"][name]
    if name in BOOSTED and not SAME_TREES:
        pytest.skip("stored with scikit-learn 1.9; boosting of other versions grows other trees")
    found = answer(name, tmp_path)
    allowed = {"rtol": 1e-11, "atol": 1e-13} if here else {"rtol": 1e-6, "atol": 1e-9}
    values, expected = np.array(found, dtype=float), np.array(stored, dtype=float)
    if not SAME_TREES:
        expected[np.isnan(values)] = np.nan
    np.testing.assert_allclose(values, expected, **allowed)


def test_stored_are_the_settings():
    assert list(json.loads(STORED.read_text())["answers"]) == list(SETTINGS)


def main():
    parser = argparse.ArgumentParser(description="Compare answers with those that are stored.")
    parser.add_argument("--store", action="store_true", help="store them anew")
    parser.add_argument("names", nargs="*", metavar="SETTING", help="some of the settings; all by default")
    given = parser.parse_args()
    unknown = set(given.names) - set(SETTINGS)
    if unknown:
        parser.error(f"no such settings: {sorted(unknown)}. There are {list(SETTINGS)}.")
    content = json.loads(STORED.read_text())
    stored = content["answers"]
    if machine() != content["machine"]:
        if given.store and given.names:
            parser.error("the others were stored on another machine. Store all of them.")
        print(f"stored on another machine, so the last bits may differ: {content['machine']}, here {machine()}")
    for name in given.names or SETTINGS:
        with tempfile.TemporaryDirectory() as folder:
            found = answer(name, Path(folder))
        print(f"{name:<30} {'identical' if found == stored.get(name) else 'DIFFERENT'}", flush=True)
        if given.store:
            stored[name] = found
    if given.store:
        stored = {name: stored[name] for name in SETTINGS if name in stored}
        STORED.write_text(json.dumps({"machine": machine(), "answers": stored}, indent=0) + "\n")


if __name__ == "__main__":
    main()
