"""The matrix D of Gaussian knockoffs."""
