import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tests.refusals import refuses

from knockoffs.errors import InputError
from knockoffs.features.gaussian import gaussian_features
from knockoffs.features.gaussian_mixture import gaussian_mixture_features
from knockoffs.sampling.conjugates.independent import Independent
from knockoffs.sampling.network import BayesianNetwork, Identity, Node
from knockoffs.sampling.sampler import sample_knockoffs


def hidden_zero(X, rng):
    return {"H": np.zeros(len(X), dtype=int)}


def leaf(name, columns, parents=()):
    return Node(name, parents, Identity(), columns=columns)


def test_nodes_are_kept_in_topological_order():
    H, A, B = Node("H", (), Identity()), leaf("A", [0], ("H",)), leaf("B", [1], ("H",))
    network = BayesianNetwork((B, A, H), sample_hidden=hidden_zero)
    assert network.nodes[0].name == "H"
    assert network.blanket_of == {"H": ("B", "A"), "A": ("H",), "B": ("H",)}


def test_blanket_holds_parents_children_and_their_other_parents():
    G, H, C = Node("G", (), Identity()), Node("H", (), Identity()), Node("C", ("G", "H"), Identity(), columns=[0])
    network = BayesianNetwork((G, H, C), sample_hidden=lambda X, rng: {"G": X[:, 0], "H": X[:, 0]})
    assert set(network.blanket_of["G"]) == {"H", "C"}


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([Node("A", ("B",), Identity()), Node("B", ("A",), Identity()), leaf("X", [0])], r"cycle: '[AB]' -> '[AB]'"),
        ([*(Node(name, (above,), Identity()) for name, above in ("AC", "BA", "CB")), leaf("X", [0])], "'A' -> 'B'"),
        ([leaf("A", [0]), leaf("B", [1], ("A",))], "observed node 'A' has the child 'B'"),
        ([leaf("A", [0, 1]), leaf("B", [1])], "column 1 is claimed by node 'A' and by node 'B'"),
        ([leaf("A", [0]), leaf("B", [3])], r"columns \[1, 2\] belong to no node"),
        ([Node("A", (), None, columns=[0])], "node 'A' has no conjugate"),
        ([leaf("A", [0], ("Q",))], "node 'A' has the parent 'Q', which is not a node"),
        ([leaf("A", [0]), leaf("A", [1])], "two nodes are called 'A'"),
        ([leaf("A", [])], "node 'A' owns no column"),
        ([Node("H", (), Identity())], "no node is observed"),
        ([Node("H", (), Identity()), leaf("A", [0], ("H",))], "sample_hidden is missing"),
    ],
)
def test_what_is_not_a_network_is_refused_by_name(nodes, message):
    refuses(message, BayesianNetwork, tuple(nodes))


def test_conjugate_that_lacks_a_method_is_refused_with_the_method():
    class Half:
        def sample(self, u, blanket, rng):
            return u

    with pytest.raises(InputError, match="conjugate of node 'A' lacks log_conditional, log_kernel"):
        BayesianNetwork((Node("A", (), Half(), columns=[0]),))


def test_feature_spread_over_two_nodes_is_refused():
    with pytest.raises(InputError, match="feature 0 has columns in node 'A' and in node 'B'"):
        BayesianNetwork((leaf("A", [0]), leaf("B", [1])), feature_of=np.array([0, 0]))


def test_features_are_checked_unless_a_law_has_checked_them():
    nodes = (leaf("A", [0]), leaf("B", [1]))
    refuses("no column for feature 1", BayesianNetwork, nodes, feature_of=np.array([0, 2]))
    assert BayesianNetwork(nodes, feature_of=[1, 0]).feature_of.dtype == np.intp
    refuses("no column for feature 1", gaussian_features, np.zeros(2), np.eye(2), feature_of=[0, 2])
    with pytest.raises(InputError, match="no column for feature 1"):
        gaussian_mixture_features([1.0], np.zeros((1, 2)), np.eye(2)[None], feature_of=[0, 2])
    grouped = gaussian_features(np.zeros(2), np.eye(2), feature_of=[0, 0])
    assert grouped.as_network().feature_of.tolist() == [0, 0]


def test_wrong_width_and_missing_hidden_values_are_refused(rng):
    network = BayesianNetwork((Node("H", (), Identity()), leaf("A", [0], ("H",))), sample_hidden=lambda X, rng: {})
    refuses(r"X has shape \(3, 2\): the network has 1 columns", sample_knockoffs, network, np.zeros((3, 2)), rng)
    refuses("no value for the hidden node 'H'", sample_knockoffs, network, np.zeros((3, 1)), rng)


def test_visited_nodes_hold_their_new_values(rng):
    """H moves to 1; its child must see H = 1, and H must have seen the child's old value."""
    seen = {}

    class Record:
        def __init__(self, name, new):
            self.name, self.new = name, new

        def sample(self, u, blanket, rng):
            seen[self.name] = {key: value.copy() for key, value in blanket.items()}
            return np.full_like(u, self.new)

        def log_conditional(self, u, blanket):
            return np.zeros(len(u))

        log_kernel = log_conditional

    nodes = (Node("H", (), Record("H", 1)), Node("A", ("H",), Record("A", 7), columns=[0]))
    network = BayesianNetwork(nodes, sample_hidden=hidden_zero)
    X_tilde = sample_knockoffs(network, np.full((2, 1), 5.0), rng)
    assert (seen["H"]["A"] == 5).all() and (seen["A"]["H"] == 1).all() and (X_tilde == 7).all()


def test_dtype_and_order_of_columns_survive(rng):
    network = BayesianNetwork((leaf("B", [2, 0]), leaf("A", [1])))
    X = np.arange(6, dtype=np.float32).reshape(2, 3)
    X_tilde = sample_knockoffs(network, X, rng)
    assert X_tilde.dtype == np.float32 and (X_tilde == X).all()


@pytest.mark.parametrize(
    ("drawn", "dtype", "message"),
    [
        (np.array([[0.5]]), np.int64, "dtype int64, which cannot hold 0.5, drawn for node 'X'"),
        (np.array([[300]]), np.uint8, "dtype uint8, which cannot hold 300"),
        (np.array([[2]]), np.bool_, "dtype bool, which cannot hold 2"),
        (np.array([[-1]]), np.uint16, "cannot hold -1"),
    ],
)
@pytest.mark.parametrize("n_columns", [1, 2])
def test_knockoffs_are_never_cut_to_the_type_of_X(drawn, dtype, message, n_columns):
    nodes = [
        Node(name, (), Independent(lambda b, n, rng: drawn, lambda u, b: np.zeros(len(u))), columns=(j,))
        for j, name in enumerate(["X", "Y"][:n_columns])
    ]
    with pytest.raises(InputError, match=message):
        sample_knockoffs(BayesianNetwork(tuple(nodes)), np.ones((1, n_columns), dtype), np.random.default_rng(0))


def drawn_as(shape):
    return Independent(
        draw=lambda blanket, n, rng: rng.normal(size=shape), log_prob=lambda u, blanket: np.zeros(len(u))
    )


@pytest.mark.parametrize("shape", [(6,), (1, 2), (6, 1), (6, 3), (5, 2)])
def test_values_of_another_shape_are_named_and_not_spread_over_the_columns(shape):
    network = BayesianNetwork(
        [Node("A", (), drawn_as(shape), columns=[0, 1]), Node("B", (), drawn_as((6, 1)), columns=[2])]
    )
    with pytest.raises(InputError, match=r"the conjugate of node 'A' drew values of shape .*: expected \(6, 2\)"):
        sample_knockoffs(network, np.zeros((6, 3)), np.random.default_rng(0))


@pytest.mark.parametrize(
    "columns", [np.arange(2), [0, 1], {0, 1}, range(2)], ids=lambda columns: type(columns).__name__
)
def test_columns_come_in_any_collection_and_one_parent_by_its_name(columns):
    hidden = lambda X, rng: {"busy": np.zeros(len(X))}  # noqa: E731
    network = BayesianNetwork(
        [Node("busy", (), Identity()), Node("X", "busy", drawn_as((6, 2)), columns=columns)], sample_hidden=hidden
    )
    assert network.blanket_of == {"busy": ("X",), "X": ("busy",)}
    first, *others = (
        sample_knockoffs(network, X, np.random.default_rng(0)) for X in (np.zeros((6, 2)), [[0.0, 0.0]] * 6)
    )
    assert first.shape == (6, 2) and all((first == other).all() for other in others)


def test_what_is_no_list_of_columns_and_no_hidden_values_is_told():
    refuses(r"node 'X' has columns=3: list them, for instance \[3\]", Node, "X", (), Identity(), columns=3)
    nodes = [Node("K", (), Identity()), Node("X", ("K",), Identity(), columns=[0])]
    with pytest.raises(InputError, match="sample_hidden returned NoneType: expected {name of a node: its values}"):
        sample_knockoffs(BayesianNetwork(nodes, lambda X, rng: None), np.zeros((6, 1)), np.random.default_rng(0))


@pytest.mark.parametrize("column", [True, 0.5, "age", np.bool_(False), 1.0], ids=repr)
def test_columns_that_are_no_places_are_refused(column):
    """A mask of two columns was taken for the places 1 and 0, and half a column for a whole one."""
    with pytest.raises(InputError, match="node 'X' has the column .*: give the places of its columns in X"):
        Node("X", (), Identity(), columns=[column])


def test_slips_in_a_definition_are_told():
    hidden, seen = Node("K", (), Identity()), Node("X", ("K",), Identity(), columns=[0])
    with pytest.raises(InputError, match="conjugate of node 'X' is the class Identity: make one"):
        BayesianNetwork([Node("X", (), Identity, columns=[0])])
    refuses(r"node 'X' has parents=None: a node without parents has \(\)", Node, "X", None, Identity(), columns=[0])
    refuses("nodes is the one node 'K': give a list", BayesianNetwork, hidden)
    refuses("sample_hidden=3 cannot be called", BayesianNetwork, [hidden, seen], sample_hidden=3)
    for value in (3, None):
        network = BayesianNetwork([hidden, seen], sample_hidden=lambda X, rng, value=value: {"K": value})
        with pytest.raises(InputError, match=f"sample_hidden returned {value} for node 'K': expected 6 values"):
            sample_knockoffs(network, np.zeros((6, 1)), np.random.default_rng(0))


def test_only_the_value_itself_is_possible_in_every_coordinate():
    u = np.array([[0, 1], [0, 1], [0, 1]])
    u_tilde = np.array([[0, 1], [0, 0], [1, 0]])  # half the same is not the same
    assert_array_equal(Identity().log_kernel(u_tilde, u, {}), [0.0, -np.inf, -np.inf])
    assert_array_equal(Identity().log_kernel(u_tilde[:, 0], u[:, 0], {}), [0.0, 0.0, -np.inf])
    assert_array_equal(Identity().sample(u, {}, np.random.default_rng(0)), u)
