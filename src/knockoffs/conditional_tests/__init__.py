"""p-values for every feature from P^X: the conditional randomization test, for tables too small for knockoffs."""

MOST_TESTED = 10_000  # rows of conditional tests, whose cost is that of some hundred draws of every column
