"""Tables of the arena: what the registry promises of them."""

import numpy as np
import pytest
from benchmarks.arena import designs, methods, oracle, quality


@pytest.mark.parametrize("name", designs.DESIGNS)
def test_a_design_draws_what_it_says_and_the_same_again(name):
    design, data = designs.DESIGNS[name], designs.draw(name, 3)
    assert data.X.shape == (design.n, design.d)
    assert data.y.shape == (design.n,)
    assert np.isfinite(data.X).all() and np.isfinite(data.y).all()
    assert data.non_nulls.sum() == design.n_non_nulls
    again = designs.draw(name, 3)
    np.testing.assert_array_equal(again.X, data.X)
    np.testing.assert_array_equal(again.y, data.y)
    assert not np.array_equal(designs.draw(name, 4).X, data.X)
    if data.classes:
        assert len(np.unique(data.y)) in (2, designs.N_CLASSES)


def test_the_registry_holds_every_law_of_features_and_of_y():
    assert len(designs.DESIGNS) >= 16
    assert {design.features for design in designs.DESIGNS.values()} == set(designs.FEATURES)
    assert {design.response for design in designs.DESIGNS.values()} == set(designs.RESPONSES)


@pytest.mark.parametrize("response", designs.RESPONSES)
def test_y_does_not_look_at_nulls(response, monkeypatch):
    # the law of y is a function of the non-nulls: with the nulls replaced, and the same stream, y is the same
    shapes = {"x": designs.Design("ar", response, 0.5, n=50, d=12, n_non_nulls=6)}
    data = designs.draw("x", 0, shapes)

    def other(n, d, rng):
        X = designs.autoregressive(n, d, rng)
        return np.where(data.non_nulls, X, 7 - 3 * X)

    monkeypatch.setitem(designs.FEATURES, "ar", other)
    changed = designs.draw("x", 0, shapes)
    assert not np.array_equal(changed.X, data.X)
    np.testing.assert_array_equal(changed.y, data.y)


def test_rows_are_counted_by_hand(tmp_path, monkeypatch):
    data = designs.draw("ar_linear", 0)
    some = np.flatnonzero(data.non_nulls)[:6]
    wrong = np.flatnonzero(~data.non_nulls)[:2]

    def oracle(data, levels, seed):
        chosen = np.isin(np.arange(50), np.concatenate([some, wrong]))
        return [chosen, np.zeros(50, dtype=bool)]

    def broken(data, levels, seed):
        raise ValueError("no such luck")

    monkeypatch.setitem(methods.METHODS, "oracle", oracle)
    monkeypatch.setitem(methods.METHODS, "broken", broken)
    out = tmp_path / "quality.csv"
    call = dict(repetitions=1, minutes=1.0, jobs=1, limit=60.0)
    quality.run(["ar_linear"], ["oracle", "broken"], out, **call)
    quality.run(["ar_linear"], ["oracle", "broken"], out, **call)  # nothing is done twice
    rows = quality.read(out)
    assert [(row["method"], row["level"], row["fdp"], row["power"], row["selected"]) for row in rows[:2]] == [
        ("oracle", 0.1, 0.25, 0.4, 8.0),
        ("oracle", 0.2, 0.0, 0.0, 0.0),
    ]
    assert len(rows) == 3 and "no such luck" in rows[2]["error"]
    assert {(line["method"], line["runs"]) for line in quality.means(rows)} == {("oracle", 1), ("broken", 0)}


def test_one_model_of_y_is_the_same_on_the_kept_knockoffs_and_on_its_own(monkeypatch):
    # also: what the verdict says changes no selection, and knockoffs of another table or seed are not taken
    shapes = {"x": designs.Design("ar", "linear", 0.5, n=150, d=20, n_non_nulls=10)}
    data, levels = designs.draw("x", 0, shapes), (0.1, 0.2)
    monkeypatch.setattr(methods, "_drawn", [])
    alone = methods.call("lasso", data, levels, 1)
    assert not methods._drawn
    default = methods.call("default", data, levels, 1)
    with_verdict = methods.call("selector:verdict=True", data, levels, 1)
    kept = methods.call("lasso", data, levels, 1)
    np.testing.assert_array_equal(kept, alone)
    np.testing.assert_array_equal(default, with_verdict)
    assert alone[1].sum() > 5
    seen = []
    monkeypatch.setattr(methods, "selector", lambda *_, **options: seen.append("knockoffs" in options) or [])
    for table, seed in ((data, 1), (data, 2), (designs.draw("x", 0, shapes), 1)):
        methods.model_of_y(table, levels, seed, "lasso")
    assert seen == [True, False, False]


def test_a_method_may_have_fewer_tables(tmp_path, monkeypatch):
    for name in ("one", "other"):
        monkeypatch.setitem(methods.METHODS, name, lambda data, levels, seed: [np.zeros(50, dtype=bool)] * 2)
    call = dict(repetitions=3, minutes=1.0, jobs=1, limit=60.0)
    quality.run(["ar_linear"], ["one", "other"], tmp_path / "q.csv", fewer={"other": 1}, **call)
    counts = {(line["method"], line["runs"]) for line in quality.means(quality.read(tmp_path / "q.csv"))}
    assert counts == {("one", 3), ("other", 1)}


@pytest.mark.parametrize("features", oracle.CORRELATIONS)
def test_columns_of_the_oracle_may_be_swapped(features):
    # chances that two neighbours are both far out, with one of them swapped and with none: of 200,000 rows the standard
    # error of a difference is 0.0007 or less, so that one of ten is above 0.005 in fewer than one of 100,000 runs (at
    # most 0.0025 in 60). One width for all rows of a t shifts one of them by 0.011.
    X = designs.FEATURES[features](200_000, 6, np.random.default_rng(1))
    assert _largest_shift(X, oracle.draw_exact(features, X, np.random.default_rng(2))) < 0.005


class Unit:
    """Stands in for random numbers: one unit of noise for each row, and a width of one."""

    def standard_normal(self, shape):
        return np.eye(*shape)

    def gamma(self, shape, scale):
        return np.ones(len(scale))


@pytest.mark.parametrize("features", oracle.CORRELATIONS)
def test_the_covariance_that_the_oracle_implies_is_exact(features):
    # L_tilde = L A + noise: rows that are units give A, units of noise give a root of the noise's covariance
    d = 7
    back, there = (np.log, np.exp) if features == "log_normal" else (np.asarray, np.asarray)
    root = back(oracle.draw_exact(features, there(np.zeros((d, d))), Unit()))
    A = back(oracle.draw_exact(features, there(np.eye(d)), Unit())) - root
    R = oracle.CORRELATIONS[features](d)
    np.testing.assert_allclose(A.T @ R @ A + root.T @ root, R, atol=1e-12)  # of X_tilde
    across = R @ A  # of X and X_tilde: that of X but for each column and its own knockoff
    np.testing.assert_allclose(across - np.diag(np.diag(across)), R - np.eye(d), atol=1e-12)
    assert (np.diag(across) < 0.9).all()


def test_knockoffs_of_a_t_with_one_width_for_all_rows_are_seen(monkeypatch):
    X = designs.heavy_tailed(200_000, 6, np.random.default_rng(1))
    monkeypatch.setattr(oracle, "DEGREES", 1e9)  # a Gaussian's rows
    assert _largest_shift(X, oracle.draw_exact("t", X, np.random.default_rng(2))) > 0.009


def _largest_shift(X, X_tilde):
    cut = np.quantile(np.abs(X), 0.8)
    far, far_tilde = np.abs(X) > cut, np.abs(X_tilde) > cut
    before = [(far[:, j] & far[:, j + 1]).mean() for j in range(5)]
    first = [(far_tilde[:, j] & far[:, j + 1]).mean() for j in range(5)]
    second = [(far[:, j] & far_tilde[:, j + 1]).mean() for j in range(5)]
    return np.abs(np.array([first, second]) - before).max()


def test_the_oracle_of_a_law_without_exact_knockoffs_says_so():
    with pytest.raises(ValueError, match="no exact knockoffs of 'hmm'"):
        methods.METHODS["oracle"](designs.draw("hmm_linear", 0), (0.1,), 0)
    heavy, chain = designs.draw("t_linear", 0), designs.draw("hmm_linear", 0)
    assert methods.able("oracle", heavy) and methods.able("knockpy", chain) and not methods.able("oracle", chain)
