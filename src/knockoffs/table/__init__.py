"""A table comes in: columns, target, files, and batches of rows."""
