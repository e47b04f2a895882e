"""Feature selection with knockoffs: which features matter given all the others, at a controlled false discovery rate.

The public names, in the order of the procedure; everything else is imported from its module. A name is imported when it
is first used, so that ``import knockoffs`` and ``knockoffs --help`` cost nothing. Type checkers and editors read
``__init__.pyi``, which ``make house`` writes from this list.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

_PUBLIC = {
    # selection
    "KnockoffSelector": "selector",
    "select_features": "procedure",
    "fit_streamed": "streaming.stream",
    "select_ghost": "streaming.ghost",
    "Selection": "selection",
    # the table and the target
    "read_table": "table.table",
    "Table": "table.table",
    "Target": "table.target",
    # models of the features
    "FeatureModel": "features",
    "Family": "features",
    "FAMILIES": "features",
    "knockoff_source": "features.source",
    "GivenKnockoffs": "features.given",
    "fit_latent": "features.latent.fit",
    "fit_gaussian": "features.gaussian",
    "gaussian_features": "features.gaussian",
    "fit_gaussian_mixture": "features.gaussian_mixture",
    "fit_naive_bayes": "features.naive_bayes",
    "fit_hidden_markov": "features.hmm",
    "from_hmmlearn": "features.hmm",
    "Mosaic": "features.hmm.mosaic",
    "GenotypeModel": "features.hmm.mosaic",
    "read_fastphase": "features.fastphase",
    "fit_latent_dirichlet": "features.lda",
    "DiscreteNetwork": "features.network",
    "fit_discrete_network": "features.network",
    "read_network": "features.network",
    # knockoffs
    "BayesianNetwork": "sampling.network",
    "Node": "sampling.network",
    "Pair": "sampling.pair",
    "sample_knockoffs": "sampling.sampler",
    "check_definition": "sampling.definition",
    "swap": "sampling.pair",
    "sample_knockoffs_bed": "features.genotypes",
    "verdict": "diagnostics.comparison",
    "Verdict": "diagnostics.verdict",
    # models of y
    "Model": "response",
    "ESTIMATORS": "response",
    "NeuralClassifier": "response.neural",
    "NeuralRegressor": "response.neural",
    "TorchModel": "response.torch_model",
    # Z, W, selection
    "ModelScore": "importance.statistic",
    "Score": "importance",
    "SCORES": "importance",
    "Scores": "importance.scores",
    "accuracy_drop": "importance.accuracy_drop",
    "lambda_path": "importance.paths.lambda_path",
    "Loss": "importance.losses",
    "LOSSES": "importance.losses",
    "knockoff_threshold": "filter",
    "knockoff_filter": "filter",
    "q_values": "filter",
    "false_discovery_proportion": "filter",
    "power": "filter",
    "combine_draws": "filter.e_values",
    "fdp_bounds": "filter.bounds",
    "randomization_tests": "conditional_tests.tests",
    # errors and warnings
    "InputError": "errors",
    "MissingPackageError": "errors",
    "KnockoffWarning": "errors",
}

_NEED_TORCH = ("NeuralClassifier", "NeuralRegressor", "TorchModel")
# without PyTorch they are left out of ``import *`` and ``help``; used by name, they say how to install it
_THERE = [name for name in _PUBLIC if name not in _NEED_TORCH or find_spec("torch") is not None]

__all__ = ["__version__", *_THERE]  # noqa: PLE0604


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
