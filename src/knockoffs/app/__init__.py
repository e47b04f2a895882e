"""A page in the browser: drop a table, look at its columns, run, read the report. The extra is ``knockoffs[app]``."""
