"""Features and labels with known non-nulls."""

from knockoffs.simulate.mixtures import MixtureParameters, Simulation, draw_mixture, mixture_moments, sample_mixture
from knockoffs.simulate.three_components import draw_three_components, simulate_three_components

__all__ = [
    "MixtureParameters",
    "Simulation",
    "draw_mixture",
    "draw_three_components",
    "mixture_moments",
    "sample_mixture",
    "simulate_three_components",
]
