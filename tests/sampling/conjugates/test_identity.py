import numpy as np
from numpy.testing import assert_array_equal

from knockoffs.sampling.network import Identity


def test_only_the_value_itself_is_possible_in_every_coordinate():
    u = np.array([[0, 1], [0, 1], [0, 1]])
    u_tilde = np.array([[0, 1], [0, 0], [1, 0]])  # half the same is not the same
    assert_array_equal(Identity().log_kernel(u_tilde, u, {}), [0.0, -np.inf, -np.inf])
    assert_array_equal(Identity().log_kernel(u_tilde[:, 0], u[:, 0], {}), [0.0, 0.0, -np.inf])
    assert_array_equal(Identity().sample(u, {}, np.random.default_rng(0)), u)
