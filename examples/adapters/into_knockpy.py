"""Our knockoffs in knockpy: ``forward`` takes them as ``Xk``, and every ``fstat`` of knockpy then scores them."""

import numpy as np
from knockpy.knockoff_filter import KnockoffFilter

from knockoffs import knockoff_filter, knockoff_source, read_table


def knockpy_with_our_knockoffs(X, y, *, fdr=0.1, fstat="lasso", feature_model="auto", seed=0):
    """Selection by a statistic of knockpy on our knockoffs; a fitted KnockoffFilter comes with it."""
    rng = np.random.default_rng(seed).spawn(1)[0]  # a stream of its own: X may have been drawn with this very seed
    table = read_table(X)
    pair = knockoff_source(feature_model)(table, rng=rng).sampler.sample(table.X, rng)
    kfilter = KnockoffFilter(fstat=fstat)
    np.random.seed(seed)  # noqa: NPY002 - knockpy draws from the global state
    kfilter.forward(X=pair.X, Xk=pair.X_tilde, y=np.asarray(y, dtype=float), fdr=fdr, Sigma=np.eye(pair.n_columns))
    return knockoff_filter(kfilter.W, fdr), kfilter  # our threshold: knockpy's is wrong where W has ties
