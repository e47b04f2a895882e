"""Adapters into other packages: each runs where that package is installed, here or under .benchmarks."""

import csv
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
ADAPTERS = ROOT / "examples" / "adapters"
COMMON = """
import sys
sys.path[:0] = [{source!r}, {adapters!r}]
sys.path.append({peer!r})  # after our own packages, which the peer then uses too
import warnings
warnings.simplefilter("ignore")
import numpy as np
rng = np.random.default_rng(0)
X = rng.standard_normal((300, 20)); X[:, 3] = rng.poisson(2, 300)
y = X[:, :10] @ np.ones(10) + rng.standard_normal(300)
"""
KNOCKPY = """
from into_knockpy import knockpy_with_our_knockoffs
first, kfilter = knockpy_with_our_knockoffs(X, y, fdr=0.2)
again, other = knockpy_with_our_knockoffs(X, y, fdr=0.2)
assert first[:10].all() and first[10:].sum() <= 3, first
assert kfilter.Xk.shape == X.shape and set(kfilter.Xk[:, 3]) <= set(X[:, 3])  # counts stay counts: they are ours
assert np.array_equal(first, again) and np.array_equal(kfilter.W, other.W)
ols, _ = knockpy_with_our_knockoffs(X, y, fdr=0.2, fstat="ols", feature_model="gaussian")
assert ols[:10].all()
"""
HIDIMSTAT = """
from hidimstat.knockoffs import ModelXKnockoff
from into_hidimstat import OurKnockoffs
fitted = ModelXKnockoff(ko_generator=OurKnockoffs("gaussian"), n_repeats=2, centered=False, random_state=0)
fitted.fit_importance(X, y)
assert fitted.importances_.shape == (2, 20)
drawn = fitted.ko_generator_.sample(n_repeats=2, random_state=0)
assert drawn.shape == (2, 300, 20) and not np.array_equal(drawn[0], drawn[1])
assert np.array_equal(drawn, fitted.ko_generator_.sample(n_repeats=2, random_state=0))
counts = OurKnockoffs().fit(X).sample(random_state=1)[0]
assert set(counts[:, 3]) <= set(X[:, 3])
assert (fitted.importances_[0][:10] > np.abs(fitted.importances_[0][10:]).max()).all()
"""


def run_with(peer, code):
    """Run code by our own Python, with the peer's packages behind ours."""
    own = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folder = ROOT / ".benchmarks" / peer / "lib" / own / "site-packages"
    if find_spec(peer) is None and not (folder / peer).exists():
        pytest.skip(f"{peer} is not installed: benchmarks/setup_peers.sh {peer} puts it under .benchmarks")
    start = COMMON.format(source=str(ROOT / "src"), adapters=str(ADAPTERS), peer=str(folder))
    done = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_our_knockoffs_in_knockpy():
    run_with("knockpy", KNOCKPY)


def test_our_knockoffs_in_hidimstat():
    run_with("hidimstat", HIDIMSTAT)


def test_what_the_adapter_of_r_does(tmp_path):
    # R itself is seldom there; what its function does is done here: names, csv, the command with its options, csv
    script = (ADAPTERS / "into_r.R").read_text(encoding="utf-8")
    options = re.search(r"options <- c\((.*)\)", script).group(1)
    given = {"files[2]": str(tmp_path / "out.csv"), "feature_model": "gaussian", "seed": "3"}
    words = [word.strip() for word in options.split(",")]
    arguments = [word.strip('"') if word.startswith('"') else given[word] for word in words]
    X = np.random.default_rng(0).standard_normal((60, 4))
    with (tmp_path / "in.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[f"x{j}" for j in range(1, 5)], *X.tolist()])
    from knockoffs.__main__ import main

    with pytest.raises(SystemExit) as end:
        main(["sample", str(tmp_path / "in.csv"), *arguments])
    assert not end.value.code
    with (tmp_path / "out.csv").open(newline="") as file:
        head, *cells = list(csv.reader(file))
    assert head == ["x1", "x2", "x3", "x4"]
    drawn = np.array(cells, dtype=float)
    assert drawn.shape == X.shape and not np.array_equal(drawn, X)


def test_the_adapter_of_r_runs_in_r(tmp_path):
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    code = f'source("{ADAPTERS / "into_r.R"}"); X <- matrix(rnorm(240), 60); K <- our_knockoffs("gaussian")(X)'
    code += "; stopifnot(all(dim(K) == dim(X)), !identical(K, X))"
    subprocess.run(["Rscript", "-e", code], check=True, cwd=tmp_path)
