"""Latent Dirichlet allocation: model.py (documents and their law) and fit.py."""

from knockoffs.features.lda.fit import fit_latent_dirichlet
from knockoffs.features.lda.model import LatentDirichlet

__all__ = ["LatentDirichlet", "fit_latent_dirichlet"]
