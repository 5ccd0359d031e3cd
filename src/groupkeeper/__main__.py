"""`python -m groupkeeper`: the same as the `groupkeeper` command."""

import sys

from groupkeeper.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
