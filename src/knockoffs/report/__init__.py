"""One page that says what was selected and what is promised: a single file that opens from disk, without a network."""
