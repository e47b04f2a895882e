import numpy as np
import pytest

from knockoffs.sampling.factors import eliminate, elimination_order, multiply, restrict


def random_laws(rng, n_states, n_tables):
    laws = []
    for _ in range(n_tables):
        scope = tuple(rng.choice(len(n_states), size=rng.integers(1, 4), replace=False).tolist())
        laws.append((scope, rng.random([n_states[v] for v in scope])))
    return laws


def brute_force(laws, n_states):
    letters = "abcdefg"
    terms = ",".join("".join(letters[v] for v in scope) for scope, _ in laws)
    return np.einsum(f"{terms}->{letters[: len(n_states)]}", *(table for _, table in laws))


def test_elimination_against_einsum():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n_states = [int(m) for m in rng.integers(2, 4, size=5)]
        laws = random_laws(rng, n_states, 6)
        laws += [((v,), rng.random(m)) for v, m in enumerate(n_states)]
        joint = brute_force(laws, n_states)
        fixed = {0: rng.integers(0, n_states[0], size=7), 3: rng.integers(0, n_states[3], size=7)}
        factors = [restrict(scope, table, fixed, 7) for scope, table in laws]
        order, largest = elimination_order((f.scope for f in factors), {v: n_states[v] for v in (1, 2, 4)})
        steps, log_total = eliminate(factors, order, 7)
        assert np.exp(log_total) == pytest.approx(joint.sum(axis=(1, 2, 4))[fixed[0], fixed[3]])
        assert largest >= max(np.prod(step.table.shape[1:]) for step in steps)


def test_products_keep_one_table_for_each_combination_of_groups():
    rng = np.random.default_rng(1)
    table = rng.random((2, 3, 2))
    a, b = np.array([0, 0, 1, 1, 0]), np.array([2, 2, 0, 0, 2])
    product, _ = multiply([restrict((0, 2), table[:, 0], {0: a}, 5), restrict((1, 2), table[0], {1: b}, 5)], 2)
    assert len(product.table) == 2
    assert product.at({}, n_free=1) == pytest.approx(table[a, 0] * table[0, b])


def test_order_of_a_star_keeps_the_centre_for_last_and_a_loop_needs_three():
    star = [(0, leaf) for leaf in range(1, 8)]
    order, largest = elimination_order(star, dict.fromkeys(range(8), 3))
    assert 0 in order[-2:] and largest == 9
    loop = [(i, (i + 1) % 6) for i in range(6)]
    assert elimination_order(loop, dict.fromkeys(range(6), 2))[1] == 8
    assert elimination_order([tuple(range(60))], dict.fromkeys(range(60), 4))[1] == 4**60  # no overflow


def test_products_in_logs_are_those_of_numbers(monkeypatch):
    rng = np.random.default_rng(2)
    for zeros in (0.0, 0.3):
        tables = [((0, 2), rng.random((2, 3))), ((1, 2), rng.random((3, 3))), ((0, 1), rng.random((2, 3)))]
        tables = [(scope, np.where(rng.random(table.shape) < zeros, 0.0, table)) for scope, table in tables]
        factors = [restrict(scope, table, {0: np.array([0, 1, 1, 0])}, 4) for scope, table in tables]
        plain, lack = multiply(factors, 2)
        assert (lack == 0).all()
        with monkeypatch.context() as patched:
            patched.setattr("knockoffs.sampling.factors.LOG_SMALLEST", 0.0)
            in_logs, lack = multiply(factors, 2)
        assert (lack < 0).all()
        restored = np.exp(lack).reshape(-1, 1, 1) * in_logs.table
        assert restored[in_logs.group] == pytest.approx(plain.table[plain.group], rel=1e-12)
