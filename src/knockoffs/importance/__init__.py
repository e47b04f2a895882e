"""Z: one file per importance score."""
