"""Trials: how often features that do not matter are called on a table, with labels drawn so that they do not."""
