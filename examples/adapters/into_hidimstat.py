"""Our knockoffs in hidimstat: a ``ko_generator`` for ``ModelXKnockoff``."""

import numpy as np
from sklearn.base import BaseEstimator

from knockoffs import knockoff_source, read_table


class OurKnockoffs(BaseEstimator):
    """P^X is fitted by ``fit``; ``sample`` gives an array of shape (n_repeats, n, n_features)."""

    def __init__(self, feature_model="auto", seed=0):
        self.feature_model, self.seed = feature_model, seed

    def fit(self, X, y=None):
        self.table_, self.n_features_in_ = read_table(X), np.shape(X)[1]
        self.drawn_ = knockoff_source(self.feature_model)(self.table_, rng=np.random.default_rng(self.seed))
        return self

    def sample(self, n_repeats=1, random_state=None):
        rng = np.random.default_rng(random_state).spawn(1)[0]  # X may have been drawn with this very seed
        return np.stack([self.drawn_.sampler.sample(self.table_.X, rng).X_tilde for _ in range(n_repeats)])
