"""hidimstat 0.4.0 with its defaults: Gaussian equicorrelated knockoffs and LassoCV."""

import numpy as np
from task import answer, importing, load


def pipeline(options):
    from hidimstat import model_x_knockoff_importance

    X, y = load(options, "pipeline_X"), load(options, "pipeline_y")

    def select():
        selected, _, _ = model_x_knockoff_importance(X, y, fdr=0.1, random_state=0)
        return np.asarray(selected) > 0

    return select


def fit_gaussian(options):
    from hidimstat.samplers import GaussianKnockoffs

    X = load(options, "fit_X")
    return lambda: GaussianKnockoffs().fit(X).sigma_tilde_decompose_


answer(
    {
        "pipeline": pipeline,
        "fit_gaussian": fit_gaussian,
        "imports": importing("from hidimstat.knockoffs import ModelXKnockoff"),
    }
)
