"""The command line: one file per command (``page`` is ``knockoffs app``), and what they share.

``program`` holds the program and makes a command's flags from the list of options, ``checks`` refuses bad calls before
any data are read, ``files`` reads and writes, ``output`` prints, ``interrupt`` handles Ctrl-C, and ``app`` runs it all.
"""
