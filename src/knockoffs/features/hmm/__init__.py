"""Hidden Markov models of sequences and of genotypes: model.py (law, inference), emissions.py, fit.py and mosaic.py."""

from knockoffs.features.hmm.emissions import DiscreteEmissions, GaussianEmissions
from knockoffs.features.hmm.fit import fit_hidden_markov
from knockoffs.features.hmm.model import HiddenMarkov, from_hmmlearn

__all__ = ["DiscreteEmissions", "GaussianEmissions", "HiddenMarkov", "fit_hidden_markov", "from_hmmlearn"]
