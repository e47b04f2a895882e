"""The paper, reproduced: one module for each figure.

Each module has ``CONFIG`` and ``QUICK`` (settings of the full size and of some minutes), ``run(config, rng, context)``,
which returns the rows of a table, and ``plot(table)``, which returns a figure.
"""

FIGURES = ("fig1", "fig2", "fig3", "fdr", "robustness", "discovery", "schematic")
SEED = 2019  # the year of the paper
