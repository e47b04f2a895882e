"""The arena: this package and its peers on the same work, in one run."""
