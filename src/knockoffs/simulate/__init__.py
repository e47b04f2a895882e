"""Features and labels with known non-nulls: the generators of the paper."""

from knockoffs.simulate.labels import draw_non_nulls, level_set_labels, polynomial_labels, simulate_labels
from knockoffs.simulate.mixtures import (
    MixtureParameters,
    draw_mixture,
    mixture_moments,
    sample_mixture,
    simulate_mixture,
)
from knockoffs.simulate.simulation import Simulation
from knockoffs.simulate.three_components import draw_three_components, simulate_three_components

__all__ = [
    "MixtureParameters",
    "Simulation",
    "draw_mixture",
    "draw_non_nulls",
    "draw_three_components",
    "level_set_labels",
    "mixture_moments",
    "polynomial_labels",
    "sample_mixture",
    "simulate_labels",
    "simulate_mixture",
    "simulate_three_components",
]
