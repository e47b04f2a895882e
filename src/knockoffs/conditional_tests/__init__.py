"""p-values for every feature from P^X: the conditional randomization test, for tables too small for knockoffs."""

TEST_MODELS = ("best", "lasso", "boosting")  # models of y that conditional tests take by name
MOST_TESTED = 10_000  # rows of conditional tests, whose cost is that of some hundred draws of every column
