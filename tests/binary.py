"""Columns of zeros and ones given a class."""

import numpy as np

from knockoffs.features.class_conditional import CategoricalColumn


def binary(columns, p):
    """Columns that are one with probability p, shape (n_classes, n_columns)."""
    return CategoricalColumn(columns, tuple(np.stack([1 - q, q], axis=1) for q in np.transpose(p)))
