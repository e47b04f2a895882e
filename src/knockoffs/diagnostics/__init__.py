"""Are the knockoffs exchangeable with X? Checks that look at X and X_tilde and never at the target."""
