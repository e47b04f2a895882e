"""Selections where sums over the rows are all there is: tables larger than memory, and z-scores without rows."""
