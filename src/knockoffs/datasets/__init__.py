"""Public data sets: read from a folder, or fetched from their source when asked to."""

from knockoffs.datasets.bank import load_bank
from knockoffs.datasets.bankruptcy import load_bankruptcy
from knockoffs.datasets.dataset import DataSet, fill_median, normal_scores
from knockoffs.datasets.hiv import load_hiv
from knockoffs.datasets.nhanes import load_nhanes

__all__ = ["DataSet", "fill_median", "load_bank", "load_bankruptcy", "load_hiv", "load_nhanes", "normal_scores"]
