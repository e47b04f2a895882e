"""Lambda paths: what moves, one file for each way to follow the loss, and W along lambda."""
