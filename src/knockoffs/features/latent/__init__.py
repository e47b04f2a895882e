"""The latent family: X_j = g_j(L_j), L a mixture of Gaussians; any table, with missing cells."""
