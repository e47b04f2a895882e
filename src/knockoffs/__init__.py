"""Controlled feature selection with knockoffs: which features matter given all the others, at a false discovery rate.

The public names, in the order of the procedure. Each is imported when it is first used, so that ``import knockoffs``
and ``knockoffs --help`` cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PUBLIC = {
    # the whole of it
    "KnockoffSelector": "estimator",
    "select_features": "procedure",
    "Selection": "selection",
    "knockoff_source": "features.source",
    "Brought": "features.source",
    "ModelScore": "importance.statistic",
    "BestOf": "importance.best",
    "follow_lambda": "procedure",
    # P^X
    "fit_gaussian": "features.gaussian",
    "gaussian_features": "features.gaussian",
    "fit_gaussian_mixture": "features.gaussian_mixture",
    "gaussian_mixture_features": "features.gaussian_mixture",
    "NaiveBayes": "features.naive_bayes",
    "fit_naive_bayes": "features.naive_bayes",
    "HiddenMarkov": "features.hidden_markov",
    "fit_hidden_markov": "features.hidden_markov",
    "from_hmmlearn": "features.hidden_markov",
    "Mosaic": "features.hidden_markov.mosaic",
    "HaplotypeModel": "features.hidden_markov.mosaic",
    "GenotypeModel": "features.hidden_markov.mosaic",
    "read_fastphase": "features.fastphase",
    "LatentDirichlet": "features.latent_dirichlet",
    "fit_latent_dirichlet": "features.latent_dirichlet",
    "DiscreteNetwork": "features.discrete_network",
    "fit_discrete_network": "features.discrete_network",
    "read_network": "features.discrete_network",
    # knockoffs
    "BayesianNetwork": "sampling.network",
    "Node": "sampling.network",
    "sample_knockoffs": "sampling.sampler",
    "check_definition": "sampling.definition",
    "swap": "sampling.swap",
    "sample_knockoffs_bed": "table.plink",
    # models of y
    "LassoPathCV": "response.linear",
    "LogisticPathCV": "response.linear",
    "NeuralClassifier": "response.neural",
    "NeuralRegressor": "response.neural",
    "TorchModel": "response.torch_model",
    # Z, W, selection
    "Scores": "importance.scores",
    "accuracy_drop": "importance.accuracy_drop",
    "lambda_path": "importance.paths.lambda_path",
    "LambdaPath": "importance.paths.lambda_path",
    "Loss": "importance.losses",
    "LOSSES": "importance.losses",
    "knockoff_threshold": "filter",
    "knockoff_filter": "filter",
    "q_values": "filter",
    "false_discovery_proportion": "filter",
    "power": "filter",
    # what can go wrong
    "InputError": "errors",
    "KnockoffWarning": "errors",
}

__all__ = ["__version__", *_PUBLIC]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("knockoffs")
        except PackageNotFoundError:  # run from a source tree that is not installed
            return "0+unknown"
    if name in _PUBLIC:
        return getattr(import_module(f"knockoffs.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module 'knockoffs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
