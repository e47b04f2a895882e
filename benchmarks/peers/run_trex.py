"""T-Rex selector, trexselector 0.6.18, with its defaults."""

from task import answer, importing

answer({"imports": importing("from trexselector import trex")})
