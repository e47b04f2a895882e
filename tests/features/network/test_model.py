from itertools import combinations, product

import numpy as np
import pytest
from tests.refusals import refuses

from knockoffs.errors import InputError
from knockoffs.features.network import DiscreteNetwork, fit_discrete_network
from knockoffs.features.network.leaves import Leaves
from knockoffs.sampling.definition import enumerate_knockoffs, worst_swap
from knockoffs.sampling.factors import eliminate, elimination_order
from knockoffs.sampling.sampler import sample_knockoffs


def log_prob_by_elimination(model, X, values):
    """Log probability with which ``sample_by_elimination`` draws the hidden values, shape (n,)."""
    factors = model.factors(model.evidence(X), len(X))
    order, _ = elimination_order((factor.scope for factor in factors), model.hidden_states)
    log_prob, every = np.zeros(len(X)), np.arange(len(X))
    with np.errstate(divide="ignore", invalid="ignore"):
        for variable, step in zip(order, eliminate(factors, order, len(X))[0], strict=True):
            weights = step.at(values, n_free=1)
            log_prob += np.log(weights[every, values[variable]] / weights.sum(axis=1))
    return np.where(np.isnan(log_prob), -np.inf, log_prob)


def random_network(n_nodes, edges, observe, rng, zeros=0.0, most_states=2):
    names = [f"v{i}" for i in range(n_nodes)]
    n_states = rng.integers(2, most_states + 1, size=n_nodes)
    parents = {name: tuple(names[a] for a, b in edges if b == i) for i, name in enumerate(names)}
    tables = {}
    for i, name in enumerate(names):
        table = rng.dirichlet(np.ones(n_states[i]), size=[n_states[a] for a, b in edges if b == i])
        table = np.where(rng.random(table.shape) < zeros, 0.0, table)
        table[..., 0] += table.sum(axis=-1) == 0
        tables[name] = table / table.sum(axis=-1, keepdims=True)
    return DiscreteNetwork(parents, tables, tuple(names[i] for i in observe))


def brute_force(model):
    """All values of all nodes and their probabilities, from the tables alone."""
    sizes = [np.shape(model.tables[name])[-1] for name in model.order]
    grid = np.array(list(product(*(range(m) for m in sizes))))
    values = {name: grid[:, i] for i, name in enumerate(model.order)}
    p = np.ones(len(grid))
    for name in model.order:
        p *= model.tables[name][tuple(values[other] for other in (*model.parents[name], name))]
    return values, p


def exact_law(model, hidden_knockoff="auto"):
    """Law of (X, X_tilde): P(x) by brute force, P(H | x) as variable elimination draws it, the network's kernels."""
    network = model.as_network(hidden_knockoff=hidden_knockoff)
    leaves = Leaves(model, hidden_knockoff)
    every, p = brute_force(model)
    seen = np.stack([every[name] for name in model.observed], axis=1)
    sizes = {name: np.shape(model.tables[name])[-1] for name in model.order}
    weights = np.cumprod([1, *(sizes[name] for name in model.observed)])
    evidence = np.bincount(seen @ weights[:-1], weights=p, minlength=weights[-1])
    kept = list(leaves._at)

    def log_joint(values):
        X = network.write(values, np.dtype(int))
        with np.errstate(divide="ignore"):
            log_p = np.log(evidence[X @ weights[:-1]])
        out = np.full(len(X), -np.inf)
        rows = np.flatnonzero(log_p > -np.inf)
        out[rows] = log_p[rows]
        if kept:
            hidden = {v: values[node][rows, i] for v, (node, i) in leaves._at.items()}
            out[rows] += log_posterior(X[rows], hidden)
        return out

    def log_posterior(X, H):  # sums over the hidden nodes that are drawn and left aside
        hidden = list(model.hidden_states)
        rest = [v for v in hidden if v not in H]
        total = np.zeros(len(X))
        for states in product(*(range(model.hidden_states[v]) for v in rest)):
            drawn = H | {v: np.full(len(X), s) for v, s in zip(rest, states, strict=True)}
            total += np.exp(log_prob_by_elimination(model, X, drawn))
        with np.errstate(divide="ignore"):
            return np.log(total)

    states = {}
    for node in {node for node, _ in leaves._at.values()}:
        inside = [model.n_states[v] for v, (home, _) in leaves._at.items() if home == node]
        states[node] = np.array(list(product(*map(range, inside))))
    for node in network.observed:
        states[node.name] = np.array(list(product(*(range(sizes[model.observed[c]]) for c in node.columns))))
    return (*enumerate_knockoffs(network, states, log_joint), network)


def all_models(n_nodes):
    pairs = list(combinations(range(n_nodes), 2))
    for mask in range(2 ** len(pairs)):
        edges = [pair for bit, pair in enumerate(pairs) if mask >> bit & 1]
        for size in range(1, n_nodes + 1):
            for observe in combinations(range(n_nodes), size):
                yield edges, observe


@pytest.mark.parametrize("hidden_knockoff", ["posterior", "copy"])
@pytest.mark.parametrize("n_nodes", [1, 2, 3, 4])
def test_every_dag_and_every_choice_of_observed_nodes(n_nodes, hidden_knockoff):
    rng = np.random.default_rng(n_nodes)
    for i, (edges, observe) in enumerate(all_models(n_nodes)):
        observe = rng.permutation(observe)
        model = random_network(n_nodes, edges, observe, rng, 0.3 * (i % 2), most_states=3 if n_nodes < 4 else 2)
        X, law, network = exact_law(model, hidden_knockoff)
        assert law.sum() == pytest.approx(1, abs=1e-12)
        assert worst_swap(X, law, network.feature_of) < 1e-12


def test_log_density_against_brute_force():
    rng = np.random.default_rng(1)
    for _ in range(30):
        edges = [pair for pair in combinations(range(6), 2) if rng.random() < 0.4]
        model = random_network(6, edges, (5, 2, 0), rng, zeros=0.2, most_states=3)
        values, p = brute_force(model)
        X = np.stack([values[name] for name in model.observed], axis=1)
        seen, row = np.unique(X, axis=0, return_inverse=True)
        row = row.ravel()  # NumPy 2.0.0 has it as a column
        with np.errstate(divide="ignore"):
            expected = np.log(np.bincount(row, weights=p))
        assert model.log_density(seen) == pytest.approx(expected, rel=1e-10)


def posterior_check(model, n_rows, rng, tolerance):
    """Draws of H given one row of X against brute force."""
    values, p = brute_force(model)
    x = model.sample(1, rng)[0]
    match = np.all([values[name] == code for name, code in zip(model.observed, x, strict=True)], axis=0)
    leaves = Leaves(model)
    drawn = leaves.sample_hidden(np.tile(x, (n_rows, 1)), rng)
    H = np.stack([drawn[node][:, i] for node, i in leaves._at.values()], axis=1)
    kept = np.stack([values[model.order[v]] for v in leaves._at], axis=1)[match]
    for state in np.unique(kept, axis=0):
        exact = p[match][(kept == state).all(axis=1)].sum() / p[match].sum()
        share = (state == H).all(axis=1).mean()
        assert abs(share - exact) <= tolerance * np.sqrt(exact * (1 - exact) / n_rows) + 1e-12


def test_exact_draws_of_the_hidden_nodes():
    # 5 standard errors on some 200 cells: false alarm about 1e-4; a shift of 2 % of a posterior shows.
    rng = np.random.default_rng(2)
    for _ in range(10):
        edges = [pair for pair in combinations(range(6), 2) if rng.random() < 0.5] + [(0, 5)]
        posterior_check(random_network(6, sorted(set(edges)), (5, 4), rng, most_states=3), 20_000, rng, 5)


def test_a_network_too_wide_is_refused():
    # 12 hidden causes of one observed effect: a table of 2^12 entries
    rng = np.random.default_rng(6)
    edges = [(i, 12) for i in range(12)]
    model = random_network(13, edges, (12,), rng)
    with pytest.raises(InputError, match=r"12 hidden nodes exactly needs a table of 4,096 .* limit is max_table=1,000"):
        model.as_network(max_table=1000)
    with pytest.raises(
        InputError, match=r"observed nodes 'v0', .* needs a table of 8,192 entries; the limit is .*1,000"
    ):
        model.observing(model.order).as_network(max_table=1000)


def test_a_copy_of_the_hidden_nodes_depends_less_on_X():
    # A hidden chain with a noisy reading of each step: the readings agree with their knockoffs less often
    rng = np.random.default_rng(9)
    d = 30
    parents = {f"h{i}": (f"h{i - 1}",) if i else () for i in range(d)} | {f"x{i}": (f"h{i}",) for i in range(d)}
    tables = {n: np.array([[0.8, 0.2], [0.2, 0.8]]) if above else np.array([0.5, 0.5]) for n, above in parents.items()}
    observe = [f"x{i}" for i in range(d)]
    agree = {}
    for hidden_knockoff in ("copy", "posterior"):
        model = DiscreteNetwork(parents, tables, observe)
        X = model.sample(2000, rng)
        X_tilde = sample_knockoffs(model.as_network(hidden_knockoff=hidden_knockoff), X, rng)
        agree[hidden_knockoff] = (X_tilde == X).mean()
    assert agree["copy"] < agree["posterior"] - 0.02  # 60,000 cells: 0.02 is ten standard errors
    with pytest.raises(InputError, match="hidden_knockoff='copy' needs a table of 4 entries; the limit is max_table=3"):
        _ = Leaves(model, "copy", 3)._moved


def test_fitted_tables_are_the_frequencies():
    rng = np.random.default_rng(7)
    truth = random_network(5, [(0, 1), (1, 2), (1, 3), (3, 4)], range(5), rng, most_states=3)
    X = truth.sample(50_000, rng)
    fitted = fit_discrete_network(X, rng=rng, parents=truth.parents, names=truth.observed)
    for name in truth.order:
        assert fitted.tables[name] == pytest.approx(truth.tables[name], abs=0.03)


def test_chow_liu_finds_a_tree_and_long_trees_are_exact():
    rng = np.random.default_rng(8)
    d = 60
    edges = [(int(rng.integers(max(0, i - 3), i)), i) for i in range(1, d)]
    parents = {f"v{i}": tuple(f"v{a}" for a, b in edges if b == i) for i in range(d)}
    tables = {n: np.array([[0.9, 0.1], [0.2, 0.8]]) if above else np.array([0.5, 0.5]) for n, above in parents.items()}
    X = DiscreteNetwork(parents, tables).observing([f"v{i}" for i in range(d)]).sample(5000, rng)
    fitted = fit_discrete_network(X, rng=rng)
    found = {frozenset((int(name), int(above[0]))) for name, above in fitted.parents.items() if above}
    assert found == {frozenset(edge) for edge in edges}
    X_tilde = sample_knockoffs(fitted.as_network(), X, rng)
    # 5 standard errors over 60 + 59 means: false alarm about 1e-4
    gap = X_tilde.astype(float) - X
    assert (np.abs(gap.mean(axis=0)) < 5 * gap.std(axis=0) / np.sqrt(len(X))).all()
    assert 0.1 < (X_tilde != X).mean()  # neighbours agree in 0.85 of the rows, which leaves little room


def test_bad_input():
    parents = {"a": (), "b": ("a",)}
    tables = {"a": [0.5, 0.5], "b": [[0.1, 0.9], [1.0, 0.0]]}
    model = DiscreteNetwork(parents, tables, ("b",), {"a": ("x", "y"), "b": ("no", "yes")})
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=r"row 1: 2 is no state of node 'b', whose states are coded 0, ..., 1"):
        sample_knockoffs(model.as_network(), np.array([[0], [2]]), rng)
    with pytest.raises(InputError, match="rows '1' of X are impossible"):
        all_ones = DiscreteNetwork(parents, {"a": [0.0, 1.0], "b": tables["b"]}, ("b",))
        sample_knockoffs(all_ones.as_network(), np.array([[0], [1]]), rng)
    refuses("the network has a cycle", DiscreteNetwork, {"a": ("b",), "b": ("a",)}, tables)
    with pytest.raises(InputError, match=r"the table of 'b'\[1\] adds up to 1.5, not to 1"):
        DiscreteNetwork(parents, {"a": [0.5, 0.5], "b": [[0.1, 0.9], [1.0, 0.5]]})
    with pytest.raises(InputError, match=r"table of 'b' has shape \(3, 2\): expected \(2, states\)"):
        DiscreteNetwork(parents, {"a": [0.5, 0.5], "b": np.full((3, 2), 0.5)})
    refuses("node 'b' has no table", DiscreteNetwork, parents, {"a": [0.5, 0.5]})
    refuses("parent 'c', which is not a node", DiscreteNetwork, {"a": ("c",)}, tables)
    refuses(r"observe='A' is not known", DiscreteNetwork, parents, tables, ("A",))
    refuses("none twice", DiscreteNetwork, parents, tables, ("a", "a"))
    refuses("codes 0, 1", fit_discrete_network, np.array([[0.5]]), rng=rng)
    with pytest.raises(InputError, match="1,000,001 states together .column 0 has 1,000,000."):
        fit_discrete_network(np.array([[0, 0], [999_999, 0]]), rng=rng)
    with pytest.raises(InputError, match=r"table of '0' has 1.0e\+15 entries, more than 1,048,576"):
        fit_discrete_network(np.array([[0], [10**15 - 1]]), rng=rng, parents={})
    refuses(r"X has shape \(2, 2\): expected one column for each of 1", model.log_density, np.zeros((2, 2)))


@pytest.mark.parametrize("value", [-1, 0.5, 2, np.nan])
def test_codes_that_are_no_states_are_refused_without_hidden_nodes_too(value):
    """A negative code would count from the end, and a fraction be cut."""
    network = DiscreteNetwork({"a": (), "b": ("a",)}, {"a": [0.5, 0.5], "b": [[0.9, 0.1], [0.2, 0.8]]})
    with pytest.raises(InputError, match=f"row 1: {value:.1f} is no state of coordinate 1.*0, ..., 1"):
        sample_knockoffs(network.as_network(), np.array([[0, 1.0], [1, value]]), np.random.default_rng(0))


def test_blocks_of_rows_change_nothing_where_every_row_has_tables_of_its_own(monkeypatch):
    """Hidden values differ from row to row, so that a block that reads the tables of other rows is seen."""
    rng = np.random.default_rng(12)
    model = random_network(5, [(0, 2), (0, 3), (1, 3), (2, 3), (3, 4)], (2, 3, 4), rng, most_states=3)
    network, X = model.as_network(), model.sample(60, rng)
    values = network.read(X) | network.draw_hidden(X, rng)
    X_tilde = model.sample(60, rng)

    def everything():
        new = network.read(X_tilde)
        kernels = [
            node.conjugate.log_kernel(new[node.name], values[node.name], network.blanket(node, values))
            for node in network.observed
        ]
        laws = [
            node.conjugate.log_conditional(values[node.name], network.blanket(node, values))
            for node in network.observed
        ]
        return [model.log_density(X), *kernels, *laws]

    whole = everything()
    monkeypatch.setattr("knockoffs.sampling.factors.ENTRIES_AT_ONCE", 64)
    for one, other in zip(whole, everything(), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-12)


def test_a_label_above_so_many_columns_that_their_product_is_no_float():
    """Naive Bayes as a network: log P(x) is near -770 a row, and exp(-745) is the smallest float."""
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(600)]
    tables = {name: rng.dirichlet(np.ones(5), size=2) for name in names}
    for name in names[3:]:
        tables[name] = np.tile(tables[name][0], (2, 1))  # tells nothing of the label
    network = DiscreteNetwork({"h": ()} | dict.fromkeys(names, ("h",)), {"h": [0.6, 0.4]} | tables, names)
    X = np.tile(network.sample(1, rng), (20_000, 1))
    log_weights = np.log([0.6, 0.4]) + sum(np.log(tables[name][:, X[0, j]]) for j, name in enumerate(names))
    expected = np.logaddexp.reduce(log_weights)
    assert expected < -745
    assert network.log_density(X[:1]) == pytest.approx(expected, rel=1e-10)
    p = np.exp(log_weights[1] - expected)
    drawn = Leaves(network).sample_hidden(X, rng)["(hidden, kept)"]
    assert abs(drawn.mean() - p) < 5 * np.sqrt(p * (1 - p) / len(X))  # 5 standard errors, false alarm 6e-7


def test_a_column_above_so_many_others_that_their_product_is_no_float():
    """All are seen; half of the others speak for one value of it, a hundred to one each, and half for the other."""
    one = np.array([[0.1, 0.9], [0.001, 0.999]])
    names = [f"x{j}" for j in range(400)]
    tables = {name: one if j % 2 else one[::-1] for j, name in enumerate(names)}
    network = DiscreteNetwork({"h": ()} | dict.fromkeys(names, ("h",)), {"h": [0.5, 0.5]} | tables)
    knockoffs = sample_knockoffs(network.as_network(), np.zeros((20, 401), dtype=int), np.random.default_rng(0))
    assert 0.8 < knockoffs.mean() < 1  # the others are 1 with probability 0.95 whatever it is


def test_slips_in_a_definition_are_told():
    parents = {"a": (), "b": ("a",)}
    tables = {"a": [0.5, 0.5], "b": [[0.1, 0.9], [1.0, 0.0]]}
    refuses("tables has 'c', which is no node", DiscreteNetwork, parents, tables | {"c": [1.0]})
    refuses("the table of 'b' is no array of numbers", DiscreteNetwork, parents, tables | {"b": [[0.1, 0.9], [1.0]]})
    with pytest.raises(InputError, match="the table of 'a' is no array of numbers: could not convert .*'half'"):
        DiscreteNetwork(parents, tables | {"a": ["half", "half"]})
    refuses("states has no names for node 'b'", DiscreteNetwork, parents, tables, states={"a": ("x", "y")})
    with pytest.raises(InputError, match="node 'b' has two states of one name: yes, yes"):
        DiscreteNetwork(parents, tables, states={"a": ("x", "y"), "b": ("yes", "yes")})
    with pytest.raises(InputError, match=r"node 'a' has parents None: a node without parents has \(\)"):
        DiscreteNetwork({"a": None, "b": ("a",)}, tables)
    model = DiscreteNetwork(parents, tables)
    refuses("X has dtype <U1: expected codes 0, 1, ... of the states", model.log_density, np.array([["0", "1"]]))


def test_one_parent_may_come_by_its_name():
    """Its letters are no nodes; and where they are, it is not they that are meant."""
    tables = {"a": [0.5, 0.5], "b": [0.5, 0.5], "ab": [0.2, 0.8], "c": [[0.1, 0.9], [1.0, 0.0]]}
    network = DiscreteNetwork({"a": (), "b": (), "ab": (), "c": "ab"}, tables)
    assert network.parents["c"] == ("ab",)
