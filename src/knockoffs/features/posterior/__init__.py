"""X_H given X_O: samplers of the hidden nodes."""
