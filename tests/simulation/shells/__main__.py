"""Long runs: `python -m tests.simulation.shells [--seed N] [--runs N]`."""

import argparse
import logging
import sys
import time

from tests.simulation.shells.lives import run_all

AT_A_TIME = 100
"""Runs, before it is printed how many are done."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--runs", type=int, default=100, help="runs, with consecutive seeds")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)  # what is injected is not worth a line
    started = time.process_time()
    total = 0
    for begun in range(0, options.runs, AT_A_TIME):
        done = min(begun + AT_A_TIME, options.runs)
        total += run_all(range(options.seed + begun, options.seed + done))
        print(f"{done} runs, {total} acknowledgements, {time.process_time() - started:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
