"""Controlled feature selection with knockoffs."""
