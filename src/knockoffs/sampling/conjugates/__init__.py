"""Exchangeable conjugates, one file each."""
