"""knockpy 1.3.5, called as its documentation calls it."""

import numpy as np
from task import answer, importing, load


def diagonal(options):
    from knockpy import mac, mrc

    Sigma = load(options, f"ar1_{options['p']}")
    # compute_smatrix would split p > 1000 into blocks; these are what it calls on one block. SDP: by DSDP
    solve = {"mvr": mrc.solve_mvr, "maximum_entropy": mrc.solve_maxent, "sdp": mac.solve_SDP}[options["method"]]
    return lambda: np.diagonal(solve(Sigma))


def draw_gaussian(options):
    from knockpy.knockoffs import GaussianSampler

    X, Sigma, D = load(options, "draw_X"), load(options, "draw_Sigma"), load(options, "draw_D")
    return lambda: GaussianSampler(X=X, mu=np.zeros(len(Sigma)), Sigma=Sigma, S=D).sample_knockoffs()[:1000]


def lasso_statistic(options):
    from knockpy.knockoff_stats import LassoStatistic

    X, X_tilde, y = (load(options, f"lasso_{name}") for name in ("X", "X_tilde", "y"))
    return lambda: LassoStatistic().fit(X, X_tilde, y)


def pipeline(options):
    from knockpy.knockoff_filter import KnockoffFilter

    X, y = load(options, "pipeline_X"), load(options, "pipeline_y")

    def select():
        knockoff_filter = KnockoffFilter(
            ksampler="gaussian", fstat="lasso", knockoff_kwargs={"method": options["method"]}
        )
        return knockoff_filter.forward(X=X, y=y, fdr=0.1)

    return select


def fit_gaussian(options):
    from knockpy.knockoffs import GaussianSampler

    X = load(options, "fit_X")
    return lambda: GaussianSampler(X=X).fetch_S()


TASKS = {task.__name__: task for task in (diagonal, draw_gaussian, fit_gaussian, lasso_statistic, pipeline)}
answer(TASKS | {"imports": importing("from knockpy.knockoff_filter import KnockoffFilter")})
