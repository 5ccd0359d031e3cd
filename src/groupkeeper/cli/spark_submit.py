"""The program for spark-submit: `groupkeeper pipeline` with the words that follow."""

import sys

from groupkeeper.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["pipeline", *sys.argv[1:]]))
