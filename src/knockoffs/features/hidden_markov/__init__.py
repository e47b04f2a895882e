"""Hidden Markov models of sequences and of genotypes: model.py, emissions.py, inference.py, fit.py and mosaic.py."""

from knockoffs.features.hidden_markov.emissions import DiscreteEmissions, GaussianEmissions
from knockoffs.features.hidden_markov.fit import fit_hidden_markov
from knockoffs.features.hidden_markov.model import HiddenMarkov, from_hmmlearn

__all__ = ["DiscreteEmissions", "GaussianEmissions", "HiddenMarkov", "fit_hidden_markov", "from_hmmlearn"]
