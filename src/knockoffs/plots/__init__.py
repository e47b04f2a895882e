"""The figures: each function draws on axes or on an empty figure, ``ax``, and returns the axes; new ones by default."""
