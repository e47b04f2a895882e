"""What the machine gives: threads by its cores and its load, compiled loops with or without a place to keep them."""
