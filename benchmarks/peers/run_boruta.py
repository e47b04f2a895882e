"""Boruta 0.4.3 with a forest of depth 5."""

from task import answer, importing

answer({"imports": importing("from boruta import BorutaPy")})
