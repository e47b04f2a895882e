"""p-values for every feature from P^X: the conditional randomization test, for tables too small for knockoffs."""
