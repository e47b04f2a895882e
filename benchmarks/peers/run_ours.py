"""Our own package, timed as the peers are."""

import numpy as np
from task import answer, importing, load


def diagonal(options):
    from knockoffs.sampling.diagonal import solve_diagonal

    Sigma = load(options, f"ar1_{options['p']}")
    return lambda: np.diagonal(solve_diagonal(Sigma, options["method"]))


def draw_gaussian(options):
    from knockoffs.sampling.conjugates.gaussian import Gaussian, GaussianLaw
    from knockoffs.sampling.network import BayesianNetwork, Node
    from knockoffs.sampling.sampler import sample_knockoffs

    X, Sigma, D = load(options, "draw_X"), load(options, "draw_Sigma"), load(options, "draw_D")

    def draw():
        law = GaussianLaw(np.zeros(len(Sigma)), Sigma, D)  # a new one, so that its factors are timed as well
        network = BayesianNetwork((Node("X", (), Gaussian((law,)), columns=range(len(Sigma))),))
        return sample_knockoffs(network, X, np.random.default_rng(0))[:1000]

    return draw


def draw_mixture(options):
    from knockoffs.features.gaussian_mixture import gaussian_mixture_features
    from knockoffs.sampling.sampler import sample_knockoffs

    X = load(options, "mixture_X")
    model = gaussian_mixture_features(
        load(options, "mixture_weights"), load(options, "mixture_means"), load(options, "mixture_Sigmas")
    )
    return lambda: sample_knockoffs(model.as_network(), X, np.random.default_rng(0))[:1000]


def lasso_statistic(options):
    from knockoffs.response.linear import LassoPathCV

    X, X_tilde, y = (load(options, f"lasso_{name}") for name in ("X", "X_tilde", "y"))

    def statistic():
        coefficients = np.abs(LassoPathCV(random_state=0).fit(np.hstack([X, X_tilde]), y).coef_)
        return coefficients[: X.shape[1]] - coefficients[X.shape[1] :]

    return statistic


def pipeline(options):
    from knockoffs.features.source import knockoff_source
    from knockoffs.importance.coefficients import coefficient_magnitude
    from knockoffs.importance.statistic import ModelScore
    from knockoffs.procedure import select_features
    from knockoffs.response.linear import LassoPathCV

    X, y = load(options, "pipeline_X"), load(options, "pipeline_y")
    source = knockoff_source("gaussian", {"diagonal": options["method"]})

    def select():
        rng = np.random.default_rng(0)
        statistic = ModelScore(LassoPathCV(random_state=0), coefficient_magnitude)
        return select_features(X, y, knockoffs=source, statistic=statistic, fdr=0.1, rng=rng).selected

    return select


def fit_gaussian(options):
    from knockoffs.features.gaussian import fit_gaussian
    from knockoffs.sampling.sampler import sample_knockoffs

    X = load(options, "fit_X")
    # two rows are drawn, so that D and all that a draw needs is there
    return lambda: sample_knockoffs(fit_gaussian(X).as_network(), X[:2], np.random.default_rng(0))


def fit_mixture(options):
    from knockoffs.features.gaussian_mixture import fit_gaussian_mixture

    X = load(options, "fit_mixture_X")
    return lambda: fit_gaussian_mixture(X, n_components=3, rng=np.random.default_rng(0)).log_density(X).mean()


def fit_latent(options):
    from knockoffs.features.latent.fit import fit_latent

    X = load(options, "fit_mixture_X")

    def fit():
        fit_latent(X, rng=np.random.default_rng(0))
        return np.zeros(1)

    return fit


TASKS = {
    task.__name__: task
    for task in (
        diagonal,
        draw_gaussian,
        draw_mixture,
        fit_gaussian,
        fit_mixture,
        fit_latent,
        lasso_statistic,
        pipeline,
    )
}
answer(TASKS | {"imports": importing("from knockoffs import KnockoffSelector")})
