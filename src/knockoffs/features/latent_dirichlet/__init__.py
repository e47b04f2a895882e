"""Latent Dirichlet allocation: model.py (the law), documents.py (tables and their laws) and fit.py."""

from knockoffs.features.latent_dirichlet.fit import fit_latent_dirichlet
from knockoffs.features.latent_dirichlet.model import LatentDirichlet

__all__ = ["LatentDirichlet", "fit_latent_dirichlet"]
