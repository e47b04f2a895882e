"""Features and labels with known non-nulls."""
