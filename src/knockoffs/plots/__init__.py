"""Figures for a paper, on matplotlib's axes (``pip install 'knockoffs[plots]'``): one file a figure."""
