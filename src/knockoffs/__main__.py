"""``python -m knockoffs``: the command line, where the ``knockoffs`` script is not on the path."""

from knockoffs.cli.app import main

if __name__ == "__main__":
    main()
