"""Names, files and functions become sources of knockoffs, and families get tables they can use."""

from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.refusals import refuses

from knockoffs import KnockoffSelector
from knockoffs.draws import check_swaps
from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.features import FAMILIES
from knockoffs.features.gaussian import fit_gaussian, gaussian_features
from knockoffs.features.given import GivenModel
from knockoffs.features.hmm import fit_hidden_markov
from knockoffs.features.latent.fit import fit_latent
from knockoffs.features.network import DiscreteNetwork, fit_discrete_network
from knockoffs.features.source import Fitted, knockoff_source
from knockoffs.registry import imported
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import sample_knockoffs

WEATHER = DiscreteNetwork(
    parents={"rain": (), "wet": ("rain",), "slippery": ("wet",)},
    tables={"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.2, 0.8]], "slippery": [[0.95, 0.05], [0.3, 0.7]]},
    states={"rain": ("yes", "no"), "wet": ("wet", "dry"), "slippery": ("very", "not")},
)


def draw(family, X, **options):
    """Knockoffs as the command line draws them: in the format that came in."""
    source = knockoff_source(family, options or None)
    table = source.read(X)
    sampler = source(table, rng=np.random.default_rng(0)).sampler
    return table.decode(sampler.sample(table.X, np.random.default_rng(1)).X_tilde)


def labels_table(n=60):
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue"], n),
            "sick": rng.random(n) < 0.3,
            "visits": rng.choice([1, 2, 5], n),
            "grade": pl.Series(rng.choice(["low", "high"], n), dtype=pl.Enum(["low", "high"])),
        }
    )


# what the table hands to a fit that takes it
HANDED = {"names": "names", "kinds": "kinds", "groups": "feature_of", "fixed": "covariates"}


def test_a_network_takes_whole_numbers_as_codes_of_themselves():
    assert set(draw(fit_discrete_network, labels_table())["visits"].to_list()) == {1, 2, 5}


def test_labels_get_the_codes_of_a_fitted_network():
    source = knockoff_source(WEATHER)
    table = source.read(pd.DataFrame({"wet": ["dry", "wet"], "rain": ["yes", "no"]}))
    np.testing.assert_array_equal(table.X, [[1, 0], [0, 1]])  # not the alphabet's
    with pytest.raises(InputError, match="column 'wet' of X holds 'damp', and the feature model knows 'wet', 'dry'"):
        source.read(pd.DataFrame({"wet": ["damp"]}))


def test_a_network_comes_from_a_file(data_folder):
    source = knockoff_source(str(next((data_folder / "bif").glob("asia*"))))
    assert len(source.model.parents) == 8
    refuses("nowhere.bif': there is no such file", knockoff_source, "nowhere.bif")


def test_options_are_bound_and_checked():
    assert knockoff_source(fit_gaussian) == Fitted(FAMILIES["gaussian"]) == knockoff_source("gaussian")
    assert knockoff_source(fit_gaussian, {"diagonal": "sdp"}).options == {"diagonal": "sdp"}
    with pytest.raises(InputError, match="feature_model_options='diagonl' is not known. Did you mean 'diagonal'"):
        knockoff_source("gaussian", {"diagonl": "sdp"})
    with pytest.raises(InputError, match="feature_model_options are for a family that is yet to be fitted"):
        knockoff_source(WEATHER, {"diagonal": "sdp"})


def test_a_fit_of_ones_own_returns_a_law_or_a_network():
    X = np.random.default_rng(0).normal(size=(30, 3))
    law = gaussian_features(np.zeros(3), np.eye(3))
    for returned in (law, law.as_network()):
        source = knockoff_source(lambda X, *, rng, n_jobs=None, returned=returned: returned)
        found = source(source.read(X), rng=np.random.default_rng(1))
        pair = found.sampler.sample(X, np.random.default_rng(2))
        np.testing.assert_array_equal(pair.X_tilde, sample_knockoffs(law.as_network(), X, np.random.default_rng(2)))
    source = knockoff_source(lambda X, *, rng, n_jobs=None: None)
    with pytest.raises(
        InputError, match=r"returned NoneType: expected a law with as_network\(\), or a BayesianNetwork"
    ):
        source(source.read(X), rng=np.random.default_rng(1))


@pytest.mark.parametrize("name", ["gaussian", "mixture"])
def test_constant_columns_stay_beside_the_law(name):
    """They are their own knockoffs, may share a feature with others, and are drawn as they are by tests."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.full(80, 3.0), rng.normal(size=(80, 2))])
    source = knockoff_source(name, {"n_components": 1} if name == "mixture" else None)
    with pytest.warns(KnockoffWarning, match="column 'x0' is constant: its own knockoff"):
        found = source(source.read(X).with_groups({"pair": ["x0", "x2"], "other": ["x1"]}), rng=rng)
    assert found.sampler.feature_of.tolist() == [0, 1, 0]
    for pair in (found.sampler.sample(X, rng), found.sampler.sample(X, rng, 2)):
        assert (pair.X == X).all()
        for knockoff in pair.parts[1:]:
            assert (knockoff[:, 0] == 3).all() and (knockoff[:, 1:] != X[:, 1:]).all()
    assert (found.model.conditional(0, X, rng, 4) == 3).all()
    alone = source(source.read(X[:, 1:]), rng=np.random.default_rng(0)).model
    streams = [np.random.default_rng(7) for _ in range(2)]
    same = alone.conditional(1, X[:, 1:], streams[0], 4)
    np.testing.assert_allclose(found.model.conditional(2, X, streams[1], 4), same)
    with pytest.warns(KnockoffWarning, match="constant"):
        refuses("every column of X is constant", source, source.read(np.ones((9, 2))), rng=rng)


def test_a_mean_and_a_covariance_are_told_where_to_go():
    with pytest.raises(InputError, match=r"\(tuple\): pass .* or gaussian_features\(mean, covariance\)") as refused:
        knockoff_source((np.zeros(50), np.eye(50)))
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("name", FAMILIES)
def test_the_options_of_a_family_are_those_of_its_fit(name):
    family = FAMILIES[name]
    handed = {"X", "rng", "n_jobs", *(HANDED[word] for word in family.takes if word in HANDED)}
    assert set(signature(imported(family.fit)).parameters) == handed | set(family.options)


def test_a_chain_takes_labels_or_numbers_and_not_codes_for_numbers():
    """Labels of 25 kinds are still symbols, and a table of both is refused by name."""
    rng = np.random.default_rng(0)
    many = pl.DataFrame({f"site {j}": rng.choice([*"abcdefghijklmnopqrstuvwxy"], 80) for j in range(3)})
    knockoffs = draw(fit_hidden_markov, many, n_states=2, n_starts=1)
    assert knockoffs.schema == many.schema
    mixed = labels_table().with_columns(weight=rng.random(60))
    refuses(r"X has columns of numbers, 'weight' \(for instance 0\.\d+\)", draw, fit_hidden_markov, mixed)
    refuses("X has columns of numbers, 'weight'", draw, fit_discrete_network, mixed)
    refuses("emissions='gaussian', and X holds labels", draw, fit_hidden_markov, labels_table(), emissions="gaussian")
    assert set(draw(fit_hidden_markov, labels_table(), n_states=2, n_starts=1)["visits"].to_list()) == {1, 2, 5}


def table_for(takes):
    """Small table of everything that a family takes: labels, numbers of every kind, missing cells."""
    rng, n = np.random.default_rng(3), 60
    size = rng.standard_normal(n)
    columns = {}
    if "labels" in takes:
        columns["colour"] = np.array(["blue", "green", "red"])[np.digitize(size + rng.standard_normal(n), [-0.5, 0.7])]
        columns["grade"] = np.array(["high", "low"])[(size > rng.standard_normal(n)).astype(int)]
        columns["place"] = rng.choice(["east", "west"], n)
    if "numbers" in takes and "alike" not in takes:
        columns |= {"size": size, "weight": size + rng.standard_normal(n), "visits": rng.poisson(np.exp(size / 2))}
    if "missing" in takes:
        columns = {
            name: [None if lost else value for value, lost in zip(values.tolist(), rng.random(n) < 0.1, strict=True)]
            for name, values in columns.items()
        }
    return pl.DataFrame(columns)


OPTIONS = {"naive_bayes": {"n_classes": 2}, "hmm": {"n_states": 2}, "mixture": {"n_components": 1}}


@pytest.mark.filterwarnings("ignore:.*shrunk towards the diagonal")
@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in ("fastphase", "genotypes", "lda")])
def test_every_family_takes_what_it_says_and_gives_a_pair(name):
    """lda takes counts alone, genotypes 0, 1, 2, and fastphase needs files: theirs are in files of their own."""
    frame = table_for(FAMILIES[name].takes)
    source = knockoff_source(name, OPTIONS.get(name))
    table = source.read(frame)
    settled = source(table, rng=np.random.default_rng(0), n_jobs=None)
    pair = settled.sampler.sample(table.X, np.random.default_rng(1))
    assert isinstance(pair, Pair)
    assert pair.X.shape == pair.X_tilde.shape == frame.shape
    assert np.isfinite(pair.X).all() and np.isfinite(pair.X_tilde).all()  # missing cells are filled
    np.testing.assert_array_equal(pair.X[~np.isnan(table.X)], table.X[~np.isnan(table.X)])  # and nothing else is
    assert (pair.X != pair.X_tilde).any(axis=0).all()
    back = table.decode(pair.X_tilde)
    assert back.columns == frame.columns
    if "labels" in FAMILIES[name].takes:  # a Gaussian makes fractions of whole numbers
        assert back.schema == frame.schema
    for column in frame.columns:
        if frame[column].dtype == pl.String:
            assert set(back[column]) <= set(frame[column].drop_nulls())


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if "missing" not in family.takes])
def test_what_a_family_does_not_take_is_refused_by_the_column(name):
    frame = table_for(FAMILIES[name].takes)
    hole = frame.with_columns(pl.when(pl.arange(len(frame)) == 4).then(None).otherwise(frame.columns[0]).alias("hole"))
    refuses("X contains NaN in column 'hole', the first in row 4", knockoff_source(name).read, hole)
    if "labels" not in FAMILIES[name].takes:
        with pytest.raises(InputError, match="labels, not numbers, in column 'city', for instance 'Basel'"):
            knockoff_source(name).read(frame.with_columns(city=pl.Series(["Bern", "Basel"] * 30)))


def test_a_given_law_takes_missing_cells_where_it_can_draw_them():
    """A fitted Gaussian has a sampler of its own where columns are constant, and draws no cells."""
    X = np.random.default_rng(0).standard_normal((60, 3))
    holes = X.copy()
    holes[3, 1] = np.nan
    refuses("X contains NaN in column 'x1'", knockoff_source(fit_gaussian(X)).read, holes)
    latent = fit_latent(X, rng=np.random.default_rng(0), n_classes=1)
    assert knockoff_source(latent).read(holes).missing
    assert KnockoffSelector(feature_model=latent).__sklearn_tags__().input_tags.allow_nan
    assert not KnockoffSelector(feature_model=fit_gaussian(X)).__sklearn_tags__().input_tags.allow_nan


# ---- groups of a chain -----------------------------------------------------------------------------------------------


def chain_rows(n=300, p=12):
    rng = np.random.default_rng(5)
    H = rng.integers(2, size=(n, 1)) * np.ones(p, dtype=int)
    for j in range(1, p):
        H[:, j] = np.where(rng.random(n) < 0.9, H[:, j - 1], rng.integers(2, size=n))
    return np.where(rng.random((n, p)) < 0.95, H, 1 - H).astype(float)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]), ([0, 1] * 6, list(range(12)))],
    ids=["neighbours", "not together"],
)
def test_a_chain_is_copied_in_the_groups_of_the_table(groups, expected):
    """A model that is fitted, and one that is known; a group that is not together is several stretches."""
    X, rng = chain_rows(), np.random.default_rng(0)
    fitted = knockoff_source("hmm", {"n_states": 2, "n_starts": 1})
    table = fitted.read(X).with_groups(groups)
    settled = fitted(table, rng=rng)
    given = GivenModel(settled.model)
    for found in (settled, given(given.read(X).with_groups(groups), rng=rng)):
        assert found.sampler.feature_of.tolist() == expected
        np.testing.assert_array_equal(check_swaps(found.sampler.feature_of, table.feature_of), table.feature_of)
    assert fitted(fitted.read(X), rng=rng).sampler.feature_of.tolist() == list(range(12))


def test_automatic_groups_of_a_chain_are_of_neighbours():
    X = chain_rows()
    for source in (knockoff_source("hmm"), knockoff_source("fastphase", {"prefix": "x"})):
        table = source.read(X).with_groups("auto")
        assert table.ordered and table.grouped and (np.diff(table.feature_of) >= 0).all()
    assert not knockoff_source("gaussian").read(X).ordered
