"""The figures: each returns its axes, takes those it is given, shows what it says, and names are only names."""

import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

pytest.importorskip("matplotlib", reason="plots need matplotlib")

import matplotlib  # noqa: E402

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from tests.refusals import refuses

from knockoffs import KnockoffSelector  # noqa: E402
from knockoffs.conditional_tests.resolution import Discovery  # noqa: E402
from knockoffs.plots.effects import effects  # noqa: E402
from knockoffs.plots.features import plot_features  # noqa: E402
from knockoffs.plots.tree import plot_tree  # noqa: E402

NAMES = ("$\\frac{$", "_hidden", "a\nb", "<b>", "n" * 10_000, "100 %", "\u202eturn", "{x}")


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, len(NAMES) + 4))
    y = X[:, :8].sum(axis=1) + rng.standard_normal(200)
    names = [*NAMES, "plain", "few", "label $", "two"]
    columns = {name: X[:, j] for j, name in enumerate(names)}
    columns["few"] = np.round(columns["few"]).clip(-1, 1)
    columns["label $"] = np.array(["$a$", "_b$\\x$", "c" * 200], dtype=object)[rng.integers(0, 3, 200)]
    return pl.DataFrame(columns), y


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 60))
    return X, X[:, :8].sum(axis=1) + rng.standard_normal(300)


COMMON = {"method": "knockoffs", "feature_model": "gaussian", "estimator": "linear", "fdr": 0.2}
COMMON |= {"importance_options": {"rows": "cross_fitted"}}  # random folds


@pytest.fixture(scope="module")
def selector(numbers):
    return KnockoffSelector(**COMMON, importance="swap", random_state=0).fit(*numbers)


@pytest.fixture(scope="module")
def mixed(data):
    options = {"method": "knockoffs", "feature_model_options": {"n_classes": 1}, "estimator": "lasso"}
    return KnockoffSelector(fdr=0.2, **options, random_state=0).fit(*data)


@pytest.fixture(scope="module")
def drawn(numbers):
    return KnockoffSelector(**COMMON, importance="swap", n_draws=3, verdict=False).fit(*numbers)


def texts(ax):
    return [text.get_text() for text in (*ax.get_yticklabels(), *ax.texts)]


def test_W_is_drawn_bar_by_bar_with_its_threshold(selector):
    ax = selector.plot()
    W = selector.W_
    shown = np.sort(np.abs(W))[::-1][:40]
    widths = sorted((abs(bar.get_width()) for bar in ax.patches), reverse=True)
    assert np.allclose(widths, shown[shown > 0])
    assert any(np.allclose(line.get_xdata(), selector.threshold_) for line in ax.lines)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"selected ({int(selector.get_support().sum())})" in labels
    assert f"{int((W != 0).sum()) - 40} of a smaller |W| not shown" in labels
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names[0] == f"x{int(np.argmax(W))}"


def test_every_plot_takes_axes_and_gives_them_back(selector, drawn):
    for draw in (selector.plot, selector.plot_paths, selector.plot_verdict, drawn.plot_stability):
        ax = Figure().subplots()
        assert draw(ax=ax) is ax
        assert not plt.get_fignums()  # no figure but the one given
        assert draw().figure.number in plt.get_fignums()
        plt.close("all")
    ax = Figure().subplots()
    assert selector.plot_knockoffs("x3", ax=ax) is ax
    assert len(selector.plot_knockoffs("x3")) == 3


def test_names_are_only_names(mixed):
    for ax in (mixed.plot(), mixed.plot_paths(), mixed.plot_verdict()):
        ax.figure.canvas.draw()  # a name that were parsed as a formula would fail here
        assert all(len(text) <= 60 and "\n" not in text for text in texts(ax))
    shown = texts(mixed.plot())
    assert {"$\\frac{$", "_hidden", "a\\nb", "\\u202eturn"} & set(shown)
    for column in (*NAMES, "few", "label $"):
        axes = mixed.plot_knockoffs(column)
        axes[0].figure.canvas.draw()


def test_paths_meet_W_at_one_whatever_the_seed_was(numbers, drawn, selector):
    path = selector.lambda_path(np.array([0.0, 0.5, 1.0]))
    same = {"rtol": 1e-9, "atol": 1e-12}  # other code adds up the same losses
    assert np.allclose(path.W[:, 2], selector.W_, **same)
    assert np.abs(path.W[:, 0]).max() == 0
    again = drawn.lambda_path(np.array([1.0, 2.0]))
    assert np.allclose(again.W[:, 0], drawn.selection_.draws[0], **same)
    for state in (None, np.random.default_rng(5)):
        loose = KnockoffSelector(**COMMON, importance="swap", verdict=False, random_state=state).fit(*numbers)
        assert np.allclose(loose.lambda_path([1.0, 2.0]).W[:, 0], loose.W_, **same)


def test_paths_of_named_features(selector):
    ax = selector.plot_paths(["x1", "x2"], lams=[0.0, 1.0, 2.0])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["x1", "x2", "58 others"]
    refuses("nothing|not known", selector.plot_paths, ["nothing"])


def test_margins_are_shares_of_rows(mixed):
    ax = mixed.plot_knockoffs("label $", ax=Figure().subplots())
    heights = np.array([bar.get_height() for bar in ax.patches])
    assert np.allclose(heights[:3].sum(), 1) and np.allclose(heights[3:].sum(), 1)
    refuses("column='labels'", mixed.plot_knockoffs, "labels")


def test_what_is_not_there_is_said(selector, numbers):
    X, y = numbers
    refuses("n_draws", selector.plot_stability)
    unchecked = KnockoffSelector(**COMMON, verdict=False, random_state=0).fit(X, y)
    refuses("verdict=True", unchecked.plot_verdict)
    options = {"feature_model": "gaussian", "estimator": "lasso", "method": "conditional_test", "verdict": False}
    tested = KnockoffSelector(**options).fit(X[:, :4], y)
    for draw in (tested.plot_paths, tested.plot_stability):
        refuses("without knockoffs", draw)
    ax = tested.plot()
    assert ax.get_xlabel() == "test statistic, standard deviations"
    assert sum(text.get_text().startswith("p = ") for text in ax.texts) >= 4
    assert ax.get_title(loc="left") == str(tested).split(" (")[0].removesuffix(" for y")


def test_without_matplotlib_the_remedy_is_named(selector, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refuses(r"pip install 'knockoffs\[plots\]'", selector.plot)


@pytest.fixture(scope="module")
def found():
    """Tests of eight columns, of which two are nearly the same: y rises with the first, and falls with one of two."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 8))
    X[:, 2] = X[:, 1] + 0.1 * rng.standard_normal(300)
    frame = pl.DataFrame({f"c{j}": X[:, j] for j in range(8)})
    y = 2 * X[:, 0] - 2 * X[:, 1] + rng.standard_normal(300)
    return KnockoffSelector(feature_model="gaussian", estimator="lasso", verdict=False, random_state=0).fit(frame, y)


def test_features_of_a_group_are_no_discoveries_alone(found):
    group = replace(found.discoveries_[-1], features=("c1", "c2"))
    selection = replace(found.selection_, discoveries=(found.discoveries_[0], group))
    labels = [text.get_text() for text in plot_features(selection).get_legend().get_texts()]
    assert labels[0] == "discovery (2)" and labels[1].startswith("not a discovery alone (")


def test_effects_have_the_direction_and_the_size_of_the_truth(found):
    """y is linear: over the middle 90 % of a normal column, 3.29 wide, it changes by 6.6; boosting flattens it."""
    up, down = found.plot_effect("c0"), found.plot_effect("c1")
    rises, falls = (ax.get_title(loc="left").split() for ax in (up, down))
    assert rises[:5] == ["Mean", "of", "y", "rises", "by"] and falls[3:5] == ["falls", "by"]
    assert 5 < float(rises[5]) < 8.5 and rises[6:] == ["along", "c0"]
    assert up.get_xlabel() == "c0" and up.get_ylabel() == "mean of y"
    refuses("feature='c9'", found.plot_effect, "c9")


def test_a_group_is_drawn_along_the_column_on_which_y_depends_most(found):
    both = np.isin(np.arange(8), (0, 7))
    group = replace(found.selection_, selected=both, discoveries=(Discovery(("c7", "c0"), 0.01, 0.01, 3.0),))
    (drawn,) = effects(group, found.table_, found.target_)
    assert drawn.column.name == "c0" and drawn.group == ("c7", "c0")


def test_effects_of_labels_and_of_classes(rng):
    X = pl.DataFrame({"grade": rng.choice(["a", "b", "c"], 300).tolist(), "x": rng.standard_normal(300)})
    y = np.where(X["grade"].to_numpy() == "b", "high", np.where(X["x"].to_numpy() > 0, "mid", "low"))
    selector = KnockoffSelector(verdict=False, random_state=0).fit(X, y)
    ax = selector.plot_effect("grade")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["high", "low", "mid"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b", "c"]
    high = ax.lines[0].get_ydata()
    assert high[1] > 0.9 and max(high[0], high[2]) < 0.1
    assert ax.get_title(loc="left").startswith("Share of each y varies by")


def test_the_effect_on_a_survival_time_is_that_on_the_hazard(rng):
    """The hazard doubles with "treated" and does not depend on the time of censoring; times as numbers would fall."""
    treated = rng.integers(0, 2, 1000).astype(float)
    time, censored = rng.exponential(2.0**-treated), rng.exponential(1.0, 1000)
    X = pl.DataFrame({"treated": treated, "x": rng.standard_normal(1000)})
    y = (np.minimum(time, censored), time <= censored)
    ax = KnockoffSelector(verdict=False, random_state=0).fit(X, y).plot_effect("treated")
    none, doubled = ax.lines[0].get_ydata()
    assert 1.6 < doubled / none < 2.5  # the standard error of the log ratio of about 580 events is 0.08
    assert ax.get_title(loc="left").startswith("Relative hazard rises by") and ax.get_ylabel() == "relative hazard"


def test_the_tree_has_a_thick_line_for_each_discovery(found, selector):
    ax = found.plot_tree()
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert sorted(names) == [f"c{j}" for j in range(8)] and abs(names.index("c1") - names.index("c2")) == 1
    chosen = {tick.get_text() for tick in ax.get_yticklabels() if tick.get_fontweight() == "bold"}
    assert chosen == {name for one in found.discoveries_ for name in one.features}
    ends = {line.get_ydata()[0] for line in ax.lines if line.get_linewidth() == 3 and len(line.get_xdata())}
    assert {names.index(name) for name in chosen} <= ends
    group = replace(found.selection_, discoveries=(Discovery(("c1", "c2"), 0.01, 0.01, 3.0),))
    joints = [
        line for line in plot_tree(group, found.table_).lines if len(line.get_ydata()) and np.ptp(line.get_ydata()) > 0
    ]
    (thick,) = [line for line in joints if line.get_linewidth() == 3]  # the one joint within the group
    assert set(thick.get_ydata()) == {names.index("c1"), names.index("c2")} and len(joints) == 7
    refuses("no tree of groups", selector.plot_tree)
    far = names[0], names[-1]
    other = replace(found.selection_, discoveries=(Discovery(far, 0.01, 0.01, 3.0),))
    refuses("of another tree", plot_tree, other, found.table_)


def test_every_figure_has_a_title(selector, drawn, found):
    figures = [selector.plot(), selector.plot_paths(), selector.plot_verdict(), drawn.plot_stability(), found.plot()]
    for ax in (*figures, found.plot_tree(), found.plot_effect("c0"), selector.plot_knockoffs("x3")[0]):
        assert len(ax.get_title(loc="left")) > 8
